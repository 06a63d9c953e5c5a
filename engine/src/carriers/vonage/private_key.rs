//! The application's private key: converts the PEM text of a setting to PKCS#8 in DER.
//!
//! Sources: PEM is RFC 7468, PKCS#8 is RFC 5208 (section 5), a bare RSA key (PKCS#1) is RFC 8017 (appendix A.1.2). Vonage's
//! dashboard writes `BEGIN PRIVATE KEY`; older tools write `BEGIN RSA PRIVATE KEY`.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::carriers::order::PrivateKey;

/// The range that the signing libraries accept; RFC 7518, 3.3, requires the lower bound.
const MODULUS_BITS: std::ops::RangeInclusive<usize> = 2048..=4096;

/// A 4096-bit key takes 3,300 bytes of text.
const TEXT_BYTES_MAX: usize = 16 * 1024;

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const SEQUENCE: u8 = 0x30;

/// `SEQUENCE { rsaEncryption (1.2.840.113549.1.1.1), NULL }`.
const RSA_ALGORITHM: [u8; 15] =
    [0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];

/// Reads a key. Line ends may be missing or written as `\n`, as in single-line settings. An error says what is wrong and
/// never quotes the text.
pub fn read(text: &str) -> Result<PrivateKey, &'static str> {
    if text.len() > TEXT_BYTES_MAX {
        return Err("is too long for a private key");
    }
    let text = text.replace("\\r", "").replace("\\n", "\n");
    if text.contains("ENCRYPTED") {
        return Err("is encrypted; remove its password");
    }
    if let Some(der) = section(&text, "PRIVATE KEY") {
        let der = der.ok_or(UNREADABLE)?;
        let rsa = inside_pkcs8(&der).ok_or("is not an RSA key in PKCS#8 (BEGIN PRIVATE KEY)")?;
        return is_usable(rsa).map(|()| PrivateKey(der));
    }
    if let Some(der) = section(&text, "RSA PRIVATE KEY") {
        let der = der.ok_or(UNREADABLE)?;
        is_usable(&der)?;
        return Ok(PrivateKey(pkcs8(&der)));
    }
    Err("is not a private key in PEM, which starts with -----BEGIN PRIVATE KEY-----")
}

const UNREADABLE: &str = "is truncated or damaged: there is no valid base64 between its BEGIN and END lines";

/// The bytes between the lines of this label; `Some(None)` when the end is missing or the content is not base64.
fn section(text: &str, label: &str) -> Option<Option<Vec<u8>>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let Some((body, _)) = rest.split_once(&format!("-----END {label}-----")) else { return Some(None) };
    let body: String = body.split_whitespace().collect();
    Some(STANDARD.decode(body).ok())
}

/// The RSA key inside a `PrivateKeyInfo`; `None` for any other content.
fn inside_pkcs8(der: &[u8]) -> Option<&[u8]> {
    let (content, []) = element(der, SEQUENCE)? else { return None };
    let (_version, rest) = element(content, INTEGER)?;
    let rest = rest.strip_prefix(&RSA_ALGORITHM)?;
    // Attributes may follow the key.
    element(rest, OCTET_STRING).map(|(key, _)| key)
}

/// Checks that an `RSAPrivateKey` is complete and has a supported length.
fn is_usable(rsa: &[u8]) -> Result<(), &'static str> {
    let bits = modulus_bits(rsa).ok_or("is not an RSA key")?;
    match MODULUS_BITS.contains(&bits) {
        true => Ok(()),
        false => Err("is not an RSA key of 2048 to 4096 bits"),
    }
}

/// Bits of the modulus of an `RSAPrivateKey` with two primes: version 0 and eight integers.
fn modulus_bits(rsa: &[u8]) -> Option<usize> {
    const INTEGERS: usize = 8;
    let (content, []) = element(rsa, SEQUENCE)? else { return None };
    let (&[0], mut rest) = element(content, INTEGER)? else { return None };
    let mut bits = None;
    for _ in 0..INTEGERS {
        let (number, after) = element(rest, INTEGER)?;
        let first = number.iter().position(|byte| *byte != 0)?;
        let leading = number.get(first)?.leading_zeros() as usize;
        bits = bits.or(Some((number.len() - first) * 8 - leading));
        rest = after;
    }
    rest.is_empty().then_some(bits?)
}

/// Wraps an `RSAPrivateKey` as a `PrivateKeyInfo` of version 0.
fn pkcs8(rsa: &[u8]) -> Vec<u8> {
    let mut content = vec![INTEGER, 1, 0];
    content.extend_from_slice(&RSA_ALGORITHM);
    content.extend(wrapped(OCTET_STRING, rsa));
    wrapped(SEQUENCE, &content)
}

fn wrapped(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut der = vec![tag];
    let length = content.len().to_be_bytes();
    let significant: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    match (significant.as_slice(), u8::try_from(significant.len())) {
        ([], _) => der.push(0),
        ([short], _) if *short < 0x80 => der.push(*short),
        (long, Ok(count)) => {
            der.push(0x80 | count);
            der.extend_from_slice(long);
        }
        // A length field never has more than 255 bytes.
        (_, Err(_)) => return Vec::new(),
    }
    der.extend_from_slice(content);
    der
}

/// The content of the first element, if it has this tag, and the bytes after it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    const LENGTH_BYTES_MAX: usize = 3;
    let [found, length, rest @ ..] = der else { return None };
    if *found != tag {
        return None;
    }
    if *length < 0x80 {
        return rest.split_at_checked(usize::from(*length));
    }
    let count = usize::from(length & 0x7f);
    if count == 0 || count > LENGTH_BYTES_MAX {
        return None;
    }
    let (length, rest) = rest.split_at_checked(count)?;
    rest.split_at_checked(length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // The same key in both formats, generated for these tests with `openssl genrsa -traditional` and `openssl pkcs8 -topk8`.
    const PKCS1: &str = include_str!("test_key_pkcs1.pem");
    const PKCS8: &str = include_str!("test_key_pkcs8.pem");

    #[test]
    fn both_formats_give_the_same_key() {
        let wrapped = read(PKCS1).unwrap();
        assert_eq!(wrapped, read(PKCS8).unwrap());
        assert!(wrapped.pkcs8().len() > 1_000);
    }

    #[test]
    fn a_key_may_be_on_one_line() {
        let key = read(PKCS8).unwrap();
        assert_eq!(read(&PKCS8.replace('\n', "\\n")).unwrap(), key);
        assert_eq!(read(&PKCS8.replace('\n', "\\r\\n")).unwrap(), key);
        assert_eq!(read(&PKCS8.replace('\n', "\r\n")).unwrap(), key);
        assert_eq!(read(&PKCS8.replace('\n', " ")).unwrap(), key);
        assert_eq!(read(&PKCS8.replace('\n', "")).unwrap(), key);
    }

    #[test]
    fn invalid_keys_are_rejected_and_never_quoted() {
        let body: String = PKCS8.lines().filter(|line| !line.starts_with('-')).collect();
        let pem = |label: &str, der: &[u8]| {
            format!("-----BEGIN {label}-----\n{}\n-----END {label}-----", STANDARD.encode(der))
        };
        let whole = read(PKCS8).unwrap().0;
        let rsa = inside_pkcs8(&whole).unwrap().to_vec();
        let mut more = whole.clone();
        more.push(0);
        let mut elliptic = whole.clone();
        elliptic[14] = 0x02; // another algorithm's identifier
        let short = wrapped(SEQUENCE, &[wrapped(INTEGER, &[0]), wrapped(INTEGER, &[5]).repeat(8)].concat());
        for wrong in [
            "",
            "private.key",
            &body,
            &PKCS8[..PKCS8.len() / 2],
            &PKCS8.replace("PRIVATE", "PUBLIC"),
            &PKCS8.replace("PRIVATE", "ENCRYPTED PRIVATE"),
            &pem("PRIVATE KEY", &whole[..whole.len() - 1]),
            &pem("PRIVATE KEY", &more),
            &pem("PRIVATE KEY", &elliptic),
            &pem("PRIVATE KEY", &rsa),
            &pem("PRIVATE KEY", &pkcs8(&short)),
            &pem("RSA PRIVATE KEY", &whole),
            &pem("RSA PRIVATE KEY", &short),
            &pem("EC PRIVATE KEY", &rsa),
            &" ".repeat(TEXT_BYTES_MAX + 1),
        ] {
            let message = read(wrong).unwrap_err();
            assert!(!message.contains(&body[..16]), "{message}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(der in proptest::collection::vec(any::<u8>(), 0..64), text in ".{0,64}") {
            let pem = |label: &str| format!("-----BEGIN {label}-----{}-----END {label}-----", STANDARD.encode(&der));
            prop_assert!(read(&pem("PRIVATE KEY")).is_err());
            prop_assert!(read(&pem("RSA PRIVATE KEY")).is_err());
            prop_assert!(read(&text).is_err());
        }

        #[test]
        fn wrapping_is_reversible(content in proptest::collection::vec(any::<u8>(), 0..70_000)) {
            let der = wrapped(OCTET_STRING, &content);
            prop_assert_eq!(element(&der, OCTET_STRING), Some((content.as_slice(), &[][..])));
        }
    }
}

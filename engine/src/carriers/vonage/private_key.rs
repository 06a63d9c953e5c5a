//! The application's private key: converts the PEM text of a setting to PKCS#8 in DER.
//!
//! Sources: PEM is RFC 7468, PKCS#8 is RFC 5208 (section 5), an RSA key in the older form (PKCS#1) is RFC 8017
//! (appendix A.1.2). The dashboard gives `BEGIN PRIVATE KEY`; older tools write `BEGIN RSA PRIVATE KEY`.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use der::asn1::{AnyRef, UintRef};
use der::{Decode as _, Encode as _, Tag, Tagged as _};

use crate::carriers::order::PrivateKey;

/// Shorter keys are refused by what signs with them (RFC 7518, 3.3, asks for as much), longer ones too.
const MODULUS_BITS: std::ops::RangeInclusive<usize> = 2048..=4096;

/// A 4096-bit key takes 3,300 bytes of text.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// `SEQUENCE { rsaEncryption (1.2.840.113549.1.1.1), NULL }`.
const RSA_ALGORITHM: der::Result<AnyRef<'_>> = AnyRef::new(
    Tag::Sequence,
    &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00],
);

/// Reads a key. Line ends may be missing or written as `\n`, as in single-line settings. An error says what is wrong
/// and never quotes the text.
pub fn read(text: &str) -> Result<PrivateKey, &'static str> {
    if text.len() > TEXT_BYTES_MAX {
        return Err("is too long for a private key");
    }
    let text = text.replace("\\r", "").replace("\\n", "\n");
    if text.contains("ENCRYPTED") {
        return Err("is encrypted: take the password off it");
    }
    if let Some(der) = section(&text, "PRIVATE KEY") {
        let der = der.ok_or(UNREADABLE)?;
        let rsa = inside_pkcs8(&der).ok_or("is not an RSA key in PKCS#8 (BEGIN PRIVATE KEY)")?;
        check_rsa(rsa)?;
        return Ok(PrivateKey(der));
    }
    if let Some(der) = section(&text, "RSA PRIVATE KEY") {
        let der = der.ok_or(UNREADABLE)?;
        check_rsa(&der)?;
        return pkcs8(&der).map(PrivateKey).map_err(|_| NO_RSA_KEY);
    }
    Err("is not a private key in PEM, which starts with -----BEGIN PRIVATE KEY-----")
}

const UNREADABLE: &str = "is truncated or damaged: there is no valid base64 between its BEGIN and END lines";
const NO_RSA_KEY: &str = "is not an RSA key";

/// The bytes between the lines of this label; `Some(None)` when the end is missing or they are no base64.
///
/// By hand, because a reader of strict RFC 7468 refuses a key without line breaks, as one-line settings have it.
fn section(text: &str, label: &str) -> Option<Option<Vec<u8>>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let Some((body, _)) = rest.split_once(&format!("-----END {label}-----")) else { return Some(None) };
    let body: String = body.split_whitespace().collect();
    Some(STANDARD.decode(body).ok())
}

/// The RSA key inside a `PrivateKeyInfo`, if it is one: a version, an algorithm, the key; attributes may follow.
fn inside_pkcs8(der: &[u8]) -> Option<&[u8]> {
    let parts = Vec::<AnyRef<'_>>::from_der(der).ok()?;
    let [version, algorithm, key, ..] = parts.as_slice() else { return None };
    let is_rsa =
        version.tag() == Tag::Integer && Ok(*algorithm) == RSA_ALGORITHM && key.tag() == Tag::OctetString;
    is_rsa.then(|| key.value())
}

/// Checks that an `RSAPrivateKey` is complete (two primes, nine integers) and has a supported length.
fn check_rsa(rsa: &[u8]) -> Result<(), &'static str> {
    let numbers = Vec::<UintRef<'_>>::from_der(rsa).map_err(|_| NO_RSA_KEY)?;
    let [version, modulus, _, _, _, _, _, _, _] = numbers.as_slice() else { return Err(NO_RSA_KEY) };
    if version.as_bytes() != [0] {
        return Err(NO_RSA_KEY);
    }
    let modulus = modulus.as_bytes();
    let leading = modulus.first().map_or(0, |byte| byte.leading_zeros() as usize);
    match MODULUS_BITS.contains(&(modulus.len() * 8 - leading)) {
        true => Ok(()),
        false => Err("is not an RSA key of 2048 to 4096 bits"),
    }
}

/// An `RSAPrivateKey` as a `PrivateKeyInfo` of version 0.
fn pkcs8(rsa: &[u8]) -> der::Result<Vec<u8>> {
    [AnyRef::new(Tag::Integer, &[0])?, RSA_ALGORITHM?, AnyRef::new(Tag::OctetString, rsa)?].to_der()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // The same key twice, made for these tests by `openssl genrsa -traditional` and `openssl pkcs8 -topk8`.
    const PKCS1: &str = include_str!("test_key_pkcs1.pem");
    const PKCS8: &str = include_str!("test_key_pkcs8.pem");

    #[test]
    fn both_forms_are_the_same_key() {
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
    fn invalid_keys_are_rejected_without_quoting_them() {
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
        // A SEQUENCE of nine INTEGERs: the version, 0, and eight times 5.
        let short = [&[0x30, 27, 0x02, 1, 0][..], &[0x02, 1, 5].repeat(8)].concat();
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
            &pem("PRIVATE KEY", &pkcs8(&short).unwrap()),
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
    }
}

//! The format of an API key: `sidetone_`, 43 characters of secret, 6 characters of checksum.
//!
//! Secret scanners recognise the fixed prefix. The checksum rejects a mistyped or invented key without a database query.

use std::fmt;

use crate::base::hash::sha256_hex;

/// The prefix of every key.
pub const KEY_PREFIX: &str = "sidetone_";

/// Length of a complete key.
pub const KEY_BYTES: usize = KEY_PREFIX.len() + SECRET_CHARS + CHECKSUM_CHARS;

/// The random part: 32 bytes in base 62 take at most this many digits.
const SECRET_CHARS: usize = 43;

/// The CRC-32 of the characters before it: 32 bits in base 62 take at most this many digits.
const CHECKSUM_CHARS: usize = 6;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A key in clear text: shown once when it is created, and sent with every request. Only its [hash](Self::sha256_hex) is stored.
///
/// `Debug` hides the secret. There is no `PartialEq`: compare hashes, in constant time.
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    /// Encodes 32 random bytes as a key.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        let mut text = String::with_capacity(KEY_BYTES);
        text.push_str(KEY_PREFIX);
        text.extend(base62::<SECRET_CHARS, _>(bytes).map(char::from));
        let checksum = checksum(&text);
        text.extend(checksum.map(char::from));
        Self(text)
    }

    /// Accepts a text with the format of a key and a correct checksum. Only storage knows whether the key exists.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(KEY_PREFIX)?;
        if text.len() != KEY_BYTES || !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return None;
        }
        let (body, checksum) = text.split_at(KEY_BYTES - CHECKSUM_CHARS);
        (checksum.as_bytes() == self::checksum(body)).then(|| Self(text.to_owned()))
    }

    /// The complete key, secret included.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value that is stored and looked up: the SHA-256 of the complete key, in lower-case hexadecimal.
    pub fn sha256_hex(&self) -> String {
        sha256_hex(self.0.as_bytes())
    }

    /// Identifies the key in a list: `sidetone_…` and its last 4 characters.
    pub fn hint(&self) -> String {
        format!("{KEY_PREFIX}…{}", &self.0[KEY_BYTES - 4..])
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({})", self.hint())
    }
}

/// The checksum digits of a key that starts with `body`.
fn checksum(body: &str) -> [u8; CHECKSUM_CHARS] {
    base62(crc32fast::hash(body.as_bytes()).to_be_bytes())
}

/// The big-endian number as exactly `DIGITS` digits of base 62, padded with `0` on the left.
fn base62<const DIGITS: usize, const BYTES: usize>(mut number: [u8; BYTES]) -> [u8; DIGITS] {
    let mut text = [b'0'; DIGITS];
    for digit in text.iter_mut().rev() {
        let mut remainder = 0_u16;
        for byte in &mut number {
            let dividend = remainder << 8 | u16::from(*byte);
            *byte = (dividend / 62) as u8;
            remainder = dividend % 62;
        }
        *digit = ALPHABET[usize::from(remainder)];
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sha2::{Digest, Sha256};

    use super::*;

    /// Bytes, key and hash, computed with Python's `int`, `binascii.crc32` and `hashlib`.
    fn reference_keys() -> [([u8; 32], &'static str, &'static str); 5] {
        let mut one = [0; 32];
        one[31] = 1;
        let mut counting = [0; 32];
        counting.iter_mut().zip(0..).for_each(|(byte, n)| *byte = n);
        [
            (
                [0; 32],
                "sidetone_00000000000000000000000000000000000000000002byoua",
                "aa34dca2386f4f5ed3068d822741c1091ffe5917eeab1c9e376aaf205234f0a4",
            ),
            (
                one,
                "sidetone_00000000000000000000000000000000000000000014ZUSbK",
                "9dae68b5537e1fd73288ec5c020aa3785a4a11d55e6bf7dafca587a05b9a75f1",
            ),
            (
                counting,
                "sidetone_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf2znSyi",
                "7f0a809a89866cf4dc5aeec2b8c9a50723f93a2dab9ff15a8f1885b7762bffd7",
            ),
            (
                [0xff; 32],
                "sidetone_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp10gBHO0",
                "52137a09f970e53f3416ccfe68c3741b1eb2dafb505e13d14180f65aa10806dd",
            ),
            (
                Sha256::digest(b"sidetone").into(),
                "sidetone_tuFzsOHiz47X5ezVYDbqcLhvG9RA9j2EmV0utPHRN8w1mJL9S",
                "56849a6938fe174f85c7f65bb70cae420a4b5b75fd405c3e3f75bfc964b2e14e",
            ),
        ]
    }

    #[test]
    fn matches_the_reference_implementation() {
        for (bytes, text, hash) in reference_keys() {
            let key = ApiKey::from_bytes(bytes);
            assert_eq!(key.as_str(), text);
            assert_eq!(key.sha256_hex(), hash);
            assert_eq!(ApiKey::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn never_shows_the_secret() {
        let key = ApiKey::from_bytes([0xff; 32]);
        assert_eq!(key.hint(), "sidetone_…BHO0");
        assert_eq!(
            format!("{key:?} {:#?}", Some(&key)),
            "ApiKey(sidetone_…BHO0) Some(\n    ApiKey(sidetone_…BHO0),\n)"
        );
    }

    #[test]
    fn rejects_malformed_keys() {
        let key = ApiKey::from_bytes([7; 32]).as_str().to_owned();
        let others = [
            String::new(),
            "sidetone_".to_owned(),
            key[1..].to_owned(),
            key[..KEY_BYTES - 1].to_owned(),
            format!("{key}0"),
            format!(" {key}"),
            format!("{key}\n"),
            key.replace("sidetone_", "Sidetone_"),
            key.replace("sidetone_", "sidetone-"),
            format!("sidetone_{}", "0".repeat(49)),
            format!("sidetone_{}", "é".repeat(24) + "0"),
            format!("sidetone_{}", "-".repeat(49)),
            "0".repeat(KEY_BYTES),
            "€".repeat(20),
        ];
        for text in others {
            assert!(ApiKey::parse(&text).is_none(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn generated_keys_parse(bytes in any::<[u8; 32]>()) {
            let key = ApiKey::from_bytes(bytes);
            prop_assert_eq!(key.as_str().len(), KEY_BYTES);
            prop_assert_eq!(ApiKey::parse(key.as_str()).unwrap().sha256_hex(), key.sha256_hex());
        }

        #[test]
        fn detects_one_changed_character(bytes in any::<[u8; 32]>(), at in 0..KEY_BYTES, other in any::<char>(), digit in 0..62usize) {
            let key = ApiKey::from_bytes(bytes);
            for other in [other, char::from(ALPHABET[digit])] {
                let changed: String = key.as_str().chars().enumerate().map(|(i, c)| if i == at { other } else { c }).collect();
                prop_assert_eq!(ApiKey::parse(&changed).is_some(), changed == key.as_str());
            }
        }

        #[test]
        fn never_panics(text in any::<String>()) {
            prop_assert!(ApiKey::parse(&text).is_none());
            let prefixed = format!("{KEY_PREFIX}{text}");
            prop_assert!(ApiKey::parse(&prefixed).is_none());
        }
    }
}

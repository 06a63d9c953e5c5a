//! Secrets of 32 bytes that are stored or sent: whoever has no key cannot read or change them.
//!
//! A secret is as long as one block of HMAC-SHA256, so a block is its one-time pad, and a second one its tag. An AEAD crate
//! would be 10 KB of the gzipped Worker.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

use crate::base::hash::hmac_sha256;

const NONCE_BYTES: usize = 16;
const SECRET_BYTES: usize = 32;
const TAG_BYTES: usize = 16;

/// Seals a secret. `label` says what it is for: with another one, it does not open. A nonce is random, and used once.
pub fn seal(key: &[u8], label: &str, nonce: [u8; NONCE_BYTES], secret: &[u8; SECRET_BYTES]) -> String {
    let cipher = xor(secret, &pad(key, &nonce, label));
    STANDARD.encode([&nonce[..], &cipher, &tag(key, &nonce, label, &cipher)].concat())
}

/// Seals a secret in the same way each time it is asked for. The key seals one secret for each label: two that share a nonce
/// would tell of each other.
pub fn seal_alike(key: &[u8], label: &str, secret: &[u8; SECRET_BYTES]) -> String {
    let mut nonce = [0; NONCE_BYTES];
    nonce.copy_from_slice(&hmac_sha256(key, format!("nonce:1:{label}").as_bytes())[..NONCE_BYTES]);
    seal(key, label, nonce, secret)
}

/// The secret that was sealed with this key for this label.
pub fn unseal(key: &[u8], label: &str, text: &str) -> Option<[u8; SECRET_BYTES]> {
    let bytes = STANDARD.decode(text).ok()?;
    let (nonce, rest) = bytes.split_first_chunk::<NONCE_BYTES>()?;
    let (cipher, found) = rest.split_first_chunk::<SECRET_BYTES>()?;
    let is_genuine = bool::from(tag(key, nonce, label, cipher).ct_eq(found));
    is_genuine.then(|| xor(cipher, &pad(key, nonce, label)))
}

fn pad(key: &[u8], nonce: &[u8], label: &str) -> [u8; SECRET_BYTES] {
    hmac_sha256(&hmac_sha256(key, b"seal:1"), &[nonce, label.as_bytes()].concat())
}

fn tag(key: &[u8], nonce: &[u8], label: &str, cipher: &[u8]) -> [u8; TAG_BYTES] {
    let message = [nonce, label.as_bytes(), cipher].concat();
    let mut tag = [0; TAG_BYTES];
    tag.copy_from_slice(&hmac_sha256(&hmac_sha256(key, b"seal:1:tag"), &message)[..TAG_BYTES]);
    tag
}

fn xor(one: &[u8; SECRET_BYTES], other: &[u8; SECRET_BYTES]) -> [u8; SECRET_BYTES] {
    let mut both = *one;
    both.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other);
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8; SECRET_BYTES] = b"thirty-two bytes of a secret ...";

    #[test]
    fn a_secret_opens_with_its_key_and_label_only() {
        let sealed = seal(b"key", "tool:1", [7; NONCE_BYTES], SECRET);
        assert_eq!(sealed.len(), 88);
        assert_eq!(unseal(b"key", "tool:1", &sealed), Some(*SECRET));
        for (key, label) in [("other", "tool:1"), ("key", "tool:2"), ("key", ""), ("", "tool:1")] {
            assert_eq!(unseal(key.as_bytes(), label, &sealed), None, "{key} {label}");
        }
        let again = seal(b"key", "tool:1", [8; NONCE_BYTES], SECRET);
        let (one, other) = (STANDARD.decode(&sealed).unwrap(), STANDARD.decode(&again).unwrap());
        assert!(one.iter().zip(&other).filter(|(one, other)| one == other).count() < 8, "{sealed} {again}");
    }

    #[test]
    fn a_secret_can_be_sealed_again_in_the_same_way() {
        let sealed = seal_alike(b"key", "tool:1", SECRET);
        assert_eq!(sealed, seal_alike(b"key", "tool:1", SECRET));
        assert_eq!(unseal(b"key", "tool:1", &sealed), Some(*SECRET));
        let nonce = |sealed: &str| STANDARD.decode(sealed).unwrap()[..NONCE_BYTES].to_vec();
        for (key, label) in [("key", "tool:2"), ("other", "tool:1")] {
            assert_ne!(nonce(&seal_alike(key.as_bytes(), label, SECRET)), nonce(&sealed), "{key} {label}");
        }
    }

    #[test]
    fn what_was_changed_does_not_open() {
        let sealed = seal(b"key", "tool:1", [7; NONCE_BYTES], SECRET);
        let bytes = STANDARD.decode(&sealed).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(unseal(b"key", "tool:1", &STANDARD.encode(&changed)), None, "byte {at}");
            assert_eq!(unseal(b"key", "tool:1", &STANDARD.encode(&bytes[..at])), None, "{at} bytes");
        }
        let longer = STANDARD.encode([&bytes[..], b"x"].concat());
        for text in ["", "no base64", longer.as_str()] {
            assert_eq!(unseal(b"key", "tool:1", text), None, "{text}");
        }
    }
}

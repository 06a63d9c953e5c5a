//! The code of a hand-over: the source tells it once the workspace does not run there any more, and it opens one import.
//!
//! It is the key with which the file's secrets are sealed, and a tag over the import's id. Whoever has the file alone can
//! neither read a secret nor let the workspace run, and of several imports of one file, one opens.
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq as _;

use crate::base::hash::{hmac_sha256, sha256_hex};

/// What a code begins with.
const PREFIX: &str = "move_";
const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;

/// The key with which the secrets in a file are sealed.
pub type FileKey = [u8; KEY_BYTES];

/// A code. `Debug` hides it.
#[derive(Clone)]
pub struct Code {
    key: FileKey,
    tag: [u8; TAG_BYTES],
}

impl Code {
    /// The code that opens this import of the file with this key.
    pub fn new(key: FileKey, import_id: &str) -> Self {
        Self { key, tag: tag(&key, import_id) }
    }

    /// Reads a code.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
        let (key, rest) = bytes.split_first_chunk::<KEY_BYTES>()?;
        Some(Self { key: *key, tag: rest.try_into().ok()? })
    }

    /// The code as text, for the operator.
    pub fn to_text(&self) -> String {
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode([&self.key[..], &self.tag].concat()))
    }

    /// The file's key, if this is the code of this import, and the key has this SHA-256.
    pub fn opens(&self, import_id: &str, key_sha256: &str) -> Option<FileKey> {
        let is_its_tag = tag(&self.key, import_id).ct_eq(&self.tag);
        let is_its_key = key_digest(&self.key).as_bytes().ct_eq(key_sha256.as_bytes());
        bool::from(is_its_tag & is_its_key).then_some(self.key)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("move_…")
    }
}

/// What a file says of its key.
pub fn key_digest(key: &FileKey) -> String {
    sha256_hex(key)
}

fn tag(key: &FileKey, import_id: &str) -> [u8; TAG_BYTES] {
    let mut tag = [0; TAG_BYTES];
    tag.copy_from_slice(&hmac_sha256(key, format!("open:1:{import_id}").as_bytes())[..TAG_BYTES]);
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: FileKey = [7; KEY_BYTES];

    #[test]
    fn a_code_opens_the_import_that_it_was_made_for() {
        let code = Code::new(KEY, "imp_1");
        let read = Code::parse(&code.to_text()).unwrap();
        assert_eq!(read.opens("imp_1", &key_digest(&KEY)), Some(KEY));
        assert_eq!(read.opens("imp_2", &key_digest(&KEY)), None);
        assert_eq!(read.opens("imp_1", &key_digest(&[8; KEY_BYTES])), None);
        assert_eq!(Code::new([8; KEY_BYTES], "imp_1").opens("imp_1", &key_digest(&KEY)), None);
        assert_eq!(format!("{code:?}"), "move_…");
    }

    #[test]
    fn other_texts_are_no_code() {
        let code = Code::new(KEY, "imp_1").to_text();
        for bad in
            ["", "move_", &code[5..], &code[..code.len() - 2], &format!("{code}AA"), &format!("{code} ")]
        {
            assert!(Code::parse(bad).is_none(), "{bad}");
        }
    }
}

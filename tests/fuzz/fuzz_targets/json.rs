//! `json::read` accepts what serde_json accepts, with the same value, or reports an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use sidetone_engine::base::field::FIELD_PATH_BYTES_MAX;
use sidetone_engine::base::json::{JsonError, read};

fuzz_target!(|bytes: &[u8]| {
    let theirs = serde_json::from_slice::<Value>(bytes);
    match read(bytes) {
        Ok(ours) => {
            assert_eq!(ours, theirs.expect("accepted by us, rejected by serde_json"));
            let written = serde_json::to_vec(&ours).expect("it can be written");
            assert!(!has_nul(&ours), "U+0000 was accepted");
            assert_eq!(read(&written), Ok(ours), "what was written is read back");
        }
        Err(JsonError::Unreadable { message }) => {
            // Apart from depth, what is unreadable for us is unreadable for serde_json.
            assert!(theirs.is_err() || message.contains("nested deeper"), "{message}");
        }
        Err(JsonError::Refused { field, .. }) => assert!(field.len() <= FIELD_PATH_BYTES_MAX + 3),
    }
});

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(members) => members.iter().any(|(name, member)| name.contains('\0') || has_nul(member)),
        _ => false,
    }
}

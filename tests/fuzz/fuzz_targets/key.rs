//! Generated keys parse to themselves; other texts are rejected.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidetone_engine::base::api_key::{ApiKey, KEY_BYTES};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Some(key) = ApiKey::parse(text)
    {
        assert_eq!((key.as_str(), text.len()), (text, KEY_BYTES));
    }
    let Some((secret, rest)) = bytes.split_first_chunk::<32>() else {
        return;
    };
    let key = ApiKey::from_bytes(*secret);
    assert_eq!(ApiKey::parse(key.as_str()).expect("a generated key parses").sha256_hex(), key.sha256_hex());
    if let [at, other, ..] = rest {
        let mut changed = key.as_str().as_bytes().to_vec();
        let at = usize::from(*at) % KEY_BYTES;
        changed[at] = *other;
        let same = changed == key.as_str().as_bytes();
        let parsed = String::from_utf8(changed).ok().and_then(|text| ApiKey::parse(&text));
        assert_eq!(parsed.is_some(), same, "a changed character is detected");
    }
});

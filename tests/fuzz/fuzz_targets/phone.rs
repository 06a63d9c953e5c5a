//! `E164::parse` accepts `+` and 7 to 15 digits, the first not 0, and nothing else.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidetone_engine::base::phone::E164;

fuzz_target!(|text: &str| {
    let digits = text.strip_prefix('+').unwrap_or_default();
    let expected = (7..=15).contains(&digits.len())
        && !digits.starts_with('0')
        && digits.bytes().all(|b| b.is_ascii_digit());
    match E164::parse(text) {
        Ok(number) => assert!(expected && number.as_str() == text),
        Err(_) => assert!(!expected),
    }
    let json = serde_json::to_string(text).expect("a text can be written");
    assert_eq!(serde_json::from_str::<E164>(&json).is_ok(), expected);
});

//! Whole numbers as clients send them: in JSON, a query or a header.
use serde_json::{Number, Value};

use crate::base::limits::INTEGER_MAX;

/// From a JSON number or a text.
pub(crate) fn from_value(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => from_text(text),
        Value::Number(number) => from_number(number),
        _ => None,
    }
}

/// From a number without a fraction: `5.0` is 5. A float must be small enough to be exact.
pub(crate) fn from_number(number: &Number) -> Option<i64> {
    let exact = |float: &f64| float.fract() == 0.0 && float.abs() <= INTEGER_MAX as f64;
    number.as_i64().or_else(|| number.as_f64().filter(exact).map(|float| float as i64))
}

/// From a text in its one canonical spelling: `5` and `-5`, not `+5`, `05` or `5e0`.
pub(crate) fn from_text(text: &str) -> Option<i64> {
    text.parse::<i64>().ok().filter(|number| number.to_string() == text)
}

/// From a revision, which is no negative number.
pub(crate) fn revision(value: &Value) -> Option<i64> {
    from_value(value).filter(|revision| (0..=INTEGER_MAX).contains(revision))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn accepts_only_exact_integers_in_canonical_form() {
        for (value, expected) in [
            (json!(5), Some(5)),
            (json!(5.0), Some(5)),
            (json!("-5"), Some(-5)),
            (json!(i64::MAX), Some(i64::MAX)),
            (json!(5.5), None),
            (json!(1e300), None),
            (json!(u64::MAX), None),
            (json!("+5"), None),
            (json!("05"), None),
            (json!("5.0"), None),
            (json!(" 5"), None),
            (json!(true), None),
        ] {
            assert_eq!(from_value(&value), expected, "{value}");
        }
        assert_eq!(revision(&json!("3")), Some(3));
        assert_eq!(revision(&json!(-3)), None);
    }
}

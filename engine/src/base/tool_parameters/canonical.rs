//! A canonical text: values that JSON Schema calls equal give the same text. Members are sorted by name; `1` and `1.0` are
//! written alike.

use serde_json::Value;

use crate::base::tool_parameters::number;

/// The length of the text is proportional to that of the value; the caller bounds the depth.
pub(super) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    push(&mut text, value);
    text
}

fn push(text: &mut String, value: &Value) {
    match value {
        Value::Number(number) => match number::integer(number) {
            Some(integer) => text.push_str(&integer.to_string()),
            None => text.push_str(&number.to_string()),
        },
        Value::Array(items) => {
            text.push('[');
            for item in items {
                push(text, item);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            text.push('{');
            for name in names {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                push(text, &members[name]);
                text.push(',');
            }
            text.push('}');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_values_have_one_text() {
        assert_eq!(
            canonical(&json!({"b": [1.0, -0.0], "a": null})),
            canonical(&json!({"a": null, "b": [1, 0]}))
        );
        for (a, b) in [
            (json!(1), json!(true)),
            (json!("1"), json!(1)),
            (json!([]), json!({})),
            (json!([[1], 2]), json!([[1, 2]])),
        ] {
            assert_ne!(canonical(&a), canonical(&b));
        }
    }
}

//! Why a command could not do its work.
use std::fmt;

use serde_json::Value;

/// A sentence or more for whoever typed the command.
#[derive(Debug)]
pub struct Failure(pub String);

impl Failure {
    /// With this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// What an error of the service says, and on a line of its own each wrong field that its message does not tell already. `None` if
/// it is none of Sidetone's.
pub fn told(error: &Value, indent: &str) -> Option<String> {
    let message = error["message"].as_str()?;
    let mut text = message.to_owned();
    for field in error["details"]["fields"].as_array().into_iter().flatten() {
        let part = |name: &str| field[name].as_str().unwrap_or_default();
        let (name, problem) = (part("field"), part("message"));
        if message != format!("{name}: {problem}") {
            text.push_str(&format!("\n{indent}{name} {problem}"));
        }
    }
    Some(text)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_message_says_is_not_said_again() {
        let field = |name: &str, message: &str| json!({"field": name, "message": message});
        let one = json!({"message": "model: is wrong", "details": {"fields": [field("model", "is wrong")]}});
        assert_eq!(told(&one, "  ").as_deref(), Some("model: is wrong"));
        let fields = [field("model", "is wrong"), field("voice", "is, too")];
        let two = json!({"message": "2 problems: model, voice", "details": {"fields": fields}});
        let lines = "2 problems: model, voice\n  model is wrong\n  voice is, too";
        assert_eq!(told(&two, "  ").as_deref(), Some(lines));
        assert_eq!(told(&json!({}), "  "), None);
    }
}

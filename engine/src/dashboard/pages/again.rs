//! Runs that are started again as they were: with the options that the read of a run or batch tells.
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::base::dollars;
use crate::dashboard::frame::Frame;
use crate::dashboard::pages::form::act;
use crate::dashboard::pages::parts::at;

/// The options of a start that a run or batch was started with.
const OPTIONS: [&str; 7] = ["mode", "tools", "seed", "repeat", "max_cost_microusd", "variables", "metadata"];

/// A start with the same options.
pub struct Again<'a> {
    operation: &'static str,
    /// What is started: the name of its id, and the id.
    what: (&'static str, &'a str),
    options: Map<String, Value>,
}

impl<'a> Again<'a> {
    /// Of a run or batch as it is read.
    pub fn of(operation: &'static str, read: &Value, what: (&'static str, &'a str)) -> Self {
        let is_given =
            |value: &Value| !value.is_null() && value.as_object().is_none_or(|all| !all.is_empty());
        let options = OPTIONS.into_iter().filter(|name| is_given(at(read, name)));
        let options = options.map(|name| (name.to_owned(), at(read, name).clone())).collect();
        Self { operation, what, options }
    }

    /// The body of the call; an id that stands in its path is no part of it.
    pub fn body(&self) -> Value {
        let mut body = Map::new();
        if self.what.0 != "id" {
            body.insert(self.what.0.to_owned(), self.what.1.into());
        }
        body.extend(self.options.clone());
        body.into()
    }

    /// A button that starts it.
    pub fn form(&self, frame: &Frame, then: &str, label: &str) -> Markup {
        let options: Vec<(&str, String)> =
            self.options.iter().map(|(name, value)| (name.as_str(), typed(name, value))).collect();
        let mut fields = vec![self.what];
        fields.extend(options.iter().map(|(name, value)| (*name, value.as_str())));
        act(frame, self.operation, &fields, then, html! { button.primary { (label) } })
    }
}

/// A value as a form has it: amounts are dollars, and maps JSON.
fn typed(name: &str, value: &Value) -> String {
    match value {
        Value::String(word) => word.clone(),
        Value::Number(number) if name.ends_with(dollars::SUFFIX) => {
            dollars::shown(number.as_i64().unwrap_or_default())
        }
        other => other.to_string(),
    }
}

//! Reads the value of a keyword in the form that the metaschema requires, and reports a problem for any other form.

use serde_json::{Number, Value};

use crate::base::field::Step;
use crate::base::tool_parameters::compile::Draft;
use crate::base::tool_parameters::compile::keywords::Keywords;
use crate::base::tool_parameters::number;
use crate::base::tool_parameters::pattern::Pattern;
use crate::base::tool_parameters::schema::NodeId;

/// Most patterns in one schema; each takes memory and time to compile.
const PATTERNS_MAX: usize = 64;

impl<'d> Keywords<'_, 'd> {
    pub(super) fn since(&self, draft: Draft) -> bool {
        self.compiler.draft >= draft
    }

    pub(super) fn problem(&mut self, keyword: &str, message: &str) {
        self.compiler.problem(self.id, &[key(keyword)], message);
    }

    /// The node of the subschema at this path below the current one.
    pub(super) fn below(&mut self, names: &[&str]) -> NodeId {
        let mut pointer = self.compiler.pointers[self.id].clone();
        for name in names {
            pointer.push('/');
            pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        }
        self.compiler.node_at(pointer)
    }

    pub(super) fn schema(&mut self, keyword: &str) -> Option<NodeId> {
        self.object.get(keyword)?;
        Some(self.below(&[keyword]))
    }

    pub(super) fn schema_list(&mut self, keyword: &str) -> Option<Vec<NodeId>> {
        match self.object.get(keyword)? {
            Value::Array(items) if !items.is_empty() => {
                Some((0..items.len()).map(|index| self.below(&[keyword, &index.to_string()])).collect())
            }
            // Drafts 2019-09 and 7 share this code for `items`; only draft 7 allows an empty list.
            Value::Array(_) if keyword == "items" && self.compiler.draft == Draft::Seven => Some(Vec::new()),
            _ => {
                self.problem(keyword, "must be a list of at least one schema");
                None
            }
        }
    }

    pub(super) fn schemas_by_name(&mut self, keyword: &str) -> Vec<(String, NodeId)> {
        self.members(keyword)
            .into_iter()
            .map(|(name, _)| (name.clone(), self.below(&[keyword, name])))
            .collect()
    }

    pub(super) fn members(&mut self, keyword: &str) -> Vec<(&'d String, &'d Value)> {
        match self.object.get(keyword) {
            None => Vec::new(),
            Some(Value::Object(members)) => members.iter().collect(),
            Some(_) => {
                self.problem(keyword, "must be an object");
                Vec::new()
            }
        }
    }

    pub(super) fn text(&mut self, keyword: &str) -> Option<&'d str> {
        let text = self.object.get(keyword)?.as_str();
        if text.is_none() {
            self.problem(keyword, "must be a string");
        }
        text
    }

    pub(super) fn flag(&mut self, keyword: &str) -> Option<bool> {
        let flag = self.object.get(keyword)?.as_bool();
        if flag.is_none() {
            self.problem(keyword, "must be true or false");
        }
        flag
    }

    pub(super) fn number(&mut self, keyword: &str) -> Option<Number> {
        let number = self.object.get(keyword)?.as_number();
        if number.is_none() {
            self.problem(keyword, "must be a number");
        }
        number.cloned()
    }

    pub(super) fn count(&mut self, keyword: &str) -> Option<u64> {
        let number = self.object.get(keyword)?.as_number();
        let whole = number.filter(|number| number::is_integer(number));
        match whole {
            Some(number) if number::compare(number, &Number::from(0)).is_ge() => {
                // A count beyond u64 exceeds every possible length.
                let count = number::integer(number).and_then(|count| u64::try_from(count).ok());
                Some(count.unwrap_or(u64::MAX))
            }
            _ => {
                self.problem(keyword, "must be a whole number, 0 or more");
                None
            }
        }
    }

    pub(super) fn names_of(&mut self, value: &Value, below: Vec<Step>) -> Option<Vec<String>> {
        let names: Option<Vec<String>> = value
            .as_array()
            .and_then(|names| names.iter().map(|name| name.as_str().map(str::to_owned)).collect());
        let mut sorted = names.clone().unwrap_or_default();
        sorted.sort_unstable();
        if names.is_none() || sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            self.compiler.problem(self.id, &below, "must be a list of unique names");
            return None;
        }
        names
    }

    pub(super) fn pattern(&mut self, source: &str, below: Vec<Step>) -> Option<Pattern> {
        self.compiler.patterns += 1;
        if self.compiler.patterns > PATTERNS_MAX {
            self.compiler.problem(
                self.id,
                &below,
                format!("exceeds the limit of {PATTERNS_MAX} patterns per schema"),
            );
            return None;
        }
        if self.compiler.was_checked {
            return Some(Pattern::later(source));
        }
        match Pattern::parse(source) {
            Ok(pattern) => Some(pattern),
            Err(message) => {
                self.compiler.problem(self.id, &below, message);
                None
            }
        }
    }
}

pub(super) fn key(name: &str) -> Step {
    Step::Key(name.to_owned())
}

//! Selects the attached tool that the user's words ask for.
use std::collections::{BTreeMap, BTreeSet};

use super::words::{identifier_words, is_stop, stemmed, unique_terms};
use crate::base::ordered::Ordered as _;
use crate::conversation::ToolSpec;

/// Words in tool names that do not distinguish tools.
const WEAK_WORDS: [&str; 27] = [
    "api", "call", "check", "create", "data", "do", "fetch", "find", "get", "info", "list", "look", "lookup",
    "make", "new", "post", "query", "read", "retrieve", "run", "search", "send", "set", "show", "tool",
    "update", "v1",
];

/// Different terms of a description that are kept: more than one in words has.
const DESCRIPTION_TERMS_MAX: usize = 256;

/// The terms of the tools' names and descriptions, and the tools that each is of.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolIndex {
    terms: BTreeMap<String, Vec<(usize, Part)>>,
    tools: Vec<Counts>,
}

/// Of which part of a tool a term is.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// A distinctive term of the name.
    Strong,
    /// Another one of the name.
    Weak,
    /// One of the description that is not in the name.
    Description,
}

/// Terms of a tool, by part.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    strong: usize,
    weak: usize,
    description: usize,
}

impl Counts {
    fn count(&mut self, part: Part) {
        match part {
            Part::Strong => self.strong += 1,
            Part::Weak => self.weak += 1,
            Part::Description => self.description += 1,
        }
    }
}

/// The best match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ToolMatch {
    /// Index among the attached tools.
    pub(super) index: usize,
    /// Number of the text's content words that name or describe the tool.
    pub(super) matched: usize,
}

impl ToolIndex {
    pub(super) fn new(tools: &[ToolSpec]) -> Self {
        let mut index = Self::default();
        for tool in tools {
            index.add(tool);
        }
        index
    }

    /// How many tools it has.
    pub(super) fn len(&self) -> usize {
        self.tools.len()
    }

    pub(super) fn add(&mut self, tool: &ToolSpec) {
        let words = identifier_words(&tool.name);
        let (mut weak, mut strong): (Vec<_>, Vec<_>) =
            words.iter().partition(|word| is_stop(word) || WEAK_WORDS.contains(&word.as_str()));
        if strong.is_empty() {
            std::mem::swap(&mut weak, &mut strong);
        }
        let strong: BTreeSet<String> = strong.into_iter().map(|word| stemmed(word)).into_set();
        let weak: BTreeSet<String> = weak.into_iter().map(|word| stemmed(word)).into_set();
        let description: BTreeSet<String> = unique_terms(&tool.description)
            .into_iter()
            .filter(|term| !strong.contains(term) && !weak.contains(term))
            .take(DESCRIPTION_TERMS_MAX)
            .into_set();
        let place = self.tools.len();
        let mut counts = Counts::default();
        for (part, terms) in [(Part::Strong, strong), (Part::Weak, weak), (Part::Description, description)] {
            for term in terms {
                counts.count(part);
                self.terms.entry(term).or_default().push((place, part));
            }
        }
        self.tools.push(counts);
    }

    /// The best match for the text's terms, if any; the first attached tool wins a tie.
    pub(super) fn best(&self, said: &[String]) -> Option<ToolMatch> {
        let said: BTreeSet<&str> = said.iter().map(String::as_str).into_set();
        let mut found = vec![Counts::default(); self.tools.len()];
        for (place, part) in said.iter().filter_map(|term| self.terms.get(*term)).flatten() {
            if let Some(counts) = found.get_mut(*place) {
                counts.count(*part);
            }
        }
        let mut best: Option<(usize, ToolMatch)> = None;
        for (index, (tool, found)) in self.tools.iter().zip(&found).enumerate() {
            let Some((score, matched)) = fit(tool, found, said.len()) else {
                continue;
            };
            if best.is_none_or(|(best, _)| score > best) {
                best = Some((score, ToolMatch { index, matched }));
            }
        }
        best.map(|(_, tool)| tool)
    }
}

/// The score and the number of matching words, or `None` without a match.
///
/// A tool matches when all distinctive words of its name occur; or one of them and a word of the description; or two words of
/// the description that make up a third of the user's words.
fn fit(tool: &Counts, found: &Counts, said: usize) -> Option<(usize, usize)> {
    let Counts { strong, weak, description: described } = *found;
    let named = tool.strong > 0 && strong == tool.strong;
    let half_named = strong > 0 && described > 0;
    let described_well = described >= tool.description.clamp(1, 2) && described * 3 >= said;
    if !(named || half_named || described_well) {
        return None;
    }
    Some((strong * 3 + weak + described, strong + weak + described))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const TOOLS: [(&str, &str); 5] = [
        ("lookup_order", "Tells the status of a parcel by its number."),
        ("cancelOrder", "Cancels a purchase."),
        ("book_table", "Reserves seats in the restaurant."),
        ("get_weather", "Forecast for a city."),
        ("search", ""),
    ];

    #[test]
    fn a_name_matches_by_its_distinctive_words() {
        assert_eq!(chosen("Where is my order 1234?"), Some("lookup_order"));
        assert_eq!(chosen("Please cancel the ORDER"), Some("cancelOrder"));
        assert_eq!(chosen("I'd like to book a table for 4"), Some("book_table"));
        assert_eq!(chosen("How's the weather?"), Some("get_weather"));
        assert_eq!(chosen("search shoes"), Some("search"));
    }

    #[test]
    fn a_description_matches_by_two_words() {
        assert_eq!(chosen("What's the status of my parcel?"), Some("lookup_order"));
        assert_eq!(chosen("A forecast for the city"), Some("get_weather"));
        assert_eq!(chosen("My parcel has a dent and the colour fades in sunlight"), None);
    }

    #[test]
    fn other_words_match_nothing() {
        assert_eq!(chosen("Tell me a joke"), None);
        assert_eq!(chosen(""), None);
        assert_eq!(ToolIndex::new(&[]).best(&["order".into()]), None);
        let nameless =
            ToolSpec { name: "_".into(), description: String::new(), parameters: Value::Null.into() };
        assert_eq!(ToolIndex::new(&[nameless]).best(&["order".into()]), None);
    }

    #[test]
    fn names_in_other_scripts_work() {
        let tool =
            ToolSpec { name: "x".into(), description: "予約する".into(), parameters: Value::Null.into() };
        assert!(ToolIndex::new(&[tool]).best(&unique_terms("予約する")).is_some());
    }

    fn chosen(text: &str) -> Option<&'static str> {
        let tools = TOOLS.map(|(name, description)| ToolSpec {
            name: name.into(),
            description: description.into(),
            parameters: Value::Null.into(),
        });
        let tool = ToolIndex::new(&tools).best(&unique_terms(text))?;
        Some(TOOLS[tool.index].0)
    }
}

//! From a schema document to [`Schema`]: every keyword is checked as the draft's metaschema would, and every reference is
//! resolved. Places in the document are visited from a queue, so that no document makes this recurse.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::canonical::canonical;
use super::pattern::Pattern;
use super::schema::{Bound, Counted, Node, NodeId, Rule, Schema, Type, Values};
use super::{PROBLEMS_MAX, whole};
use crate::field::{self, FieldProblem, Step};

/// Most patterns in one schema; each takes memory and time to compile.
const PATTERNS_MAX: usize = 64;

/// Most characters of an `enum` or `const` that a message repeats.
const VALUES_SHOWN_CHARS_MAX: usize = 200;

const SUPPORTED_DRAFTS: &str = "https://json-schema.org/draft/2020-12/schema, https://json-schema.org/draft/2019-09/schema or http://json-schema.org/draft-07/schema";

/// Compiles the document, whose depth the caller has bounded.
pub(super) fn compile(document: &Value) -> Result<Schema, Vec<FieldProblem>> {
    let draft = Draft::of(document)?;
    let mut compiler = Compiler {
        document,
        draft,
        ids: BTreeMap::new(),
        places: Vec::new(),
        nodes: Vec::new(),
        anchors: BTreeMap::new(),
        anchor_refs: Vec::new(),
        patterns: 0,
        problems: Vec::new(),
    };
    compiler.node_at(String::new());
    while compiler.nodes.len() < compiler.places.len() && compiler.problems.len() < PROBLEMS_MAX {
        let node = compiler.node(compiler.nodes.len());
        compiler.nodes.push(node);
    }
    compiler.finish()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Draft {
    Seven,
    Of2019,
    Of2020,
}

impl Draft {
    fn of(document: &Value) -> Result<Self, Vec<FieldProblem>> {
        let Some(name) = document.get("$schema") else {
            return Ok(Self::Of2020);
        };
        let name = name.as_str().unwrap_or_default();
        let name = name.strip_suffix('#').unwrap_or(name);
        match name.split_once("://json-schema.org/") {
            Some(("http" | "https", "draft/2020-12/schema")) => Ok(Self::Of2020),
            Some(("http" | "https", "draft/2019-09/schema")) => Ok(Self::Of2019),
            Some(("http" | "https", "draft-07/schema")) => Ok(Self::Seven),
            _ => Err(vec![FieldProblem {
                path: "$schema".to_owned(),
                message: format!(
                    "is not a supported draft; leave it out, or use {SUPPORTED_DRAFTS}"
                ),
            }]),
        }
    }
}

struct Compiler<'d> {
    document: &'d Value,
    draft: Draft,
    /// The node of each place met so far; a place is a JSON pointer.
    ids: BTreeMap<String, NodeId>,
    places: Vec<String>,
    /// The nodes made so far, in the order of `places`.
    nodes: Vec<Node>,
    anchors: BTreeMap<String, NodeId>,
    /// References by name, settled when all names are known: the node that refers, the name, and the keyword.
    anchor_refs: Vec<(NodeId, String, &'static str)>,
    patterns: usize,
    problems: Vec<FieldProblem>,
}

impl<'d> Compiler<'d> {
    fn node_at(&mut self, place: String) -> NodeId {
        if let Some(id) = self.ids.get(&place) {
            return *id;
        }
        let id = self.places.len();
        self.places.push(place.clone());
        self.ids.insert(place, id);
        id
    }

    fn node(&mut self, id: NodeId) -> Node {
        match self.document.pointer(&self.places[id]) {
            Some(Value::Bool(true)) => Node::Anything,
            Some(Value::Bool(false)) => Node::Nothing,
            Some(Value::Object(object)) => Node::Rules(
                Keywords {
                    compiler: self,
                    id,
                    object,
                }
                .rules(),
            ),
            _ => {
                self.problem(id, &[], "must be a schema: an object, or true or false");
                Node::Nothing
            }
        }
    }

    fn problem(&mut self, id: NodeId, below: &[Step], message: impl Into<String>) {
        let steps = steps(self.document, &self.places[id]);
        let path = field::path(steps.iter().chain(below));
        self.problems.push(FieldProblem {
            path,
            message: message.into(),
        });
    }

    fn finish(mut self) -> Result<Schema, Vec<FieldProblem>> {
        if self.problems.is_empty() {
            self.settle_anchors();
        }
        if self.problems.is_empty()
            && let Some(id) = first_loop(&self.nodes)
        {
            self.problem(id, &[], "refers to itself without going into a property or an item, so it can never be decided");
        }
        self.problems.truncate(PROBLEMS_MAX);
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        let asks = |rule: &Rule| matches!(rule, Rule::UnseenItems(_) | Rule::UnseenProperties(_));
        let tracks_seen = self
            .nodes
            .iter()
            .any(|node| matches!(node, Node::Rules(rules) if rules.iter().any(asks)));
        if self.nodes.is_empty() {
            return Err(whole("must be a JSON Schema object"));
        }
        Ok(Schema {
            nodes: self.nodes,
            tracks_seen,
        })
    }

    fn settle_anchors(&mut self) {
        for (id, name, keyword) in std::mem::take(&mut self.anchor_refs) {
            match (self.anchors.get(&name), &mut self.nodes[id]) {
                (Some(target), Node::Rules(rules)) => rules.insert(0, Rule::Ref(*target)),
                _ => {
                    let message = format!(
                        "refers to an anchor that is not in this schema: #{}",
                        field::shortened(&name)
                    );
                    self.problem(id, &[Step::Key(keyword.to_owned())], message);
                }
            }
        }
    }
}

/// Reads the keywords of one schema object. Each reader takes a keyword if it has the form the metaschema asks for, and
/// notes a problem if not.
struct Keywords<'c, 'd> {
    compiler: &'c mut Compiler<'d>,
    id: NodeId,
    object: &'d Map<String, Value>,
}

impl<'d> Keywords<'_, 'd> {
    fn rules(mut self) -> Vec<Rule> {
        self.notes();
        self.names();
        let mut rules = Vec::new();
        self.references(&mut rules);
        let siblings_of_ref =
            self.compiler.draft == Draft::Seven && self.object.contains_key("$ref");
        let kept = rules.len();
        self.values(&mut rules);
        self.numbers(&mut rules);
        self.counts(&mut rules);
        self.requirements(&mut rules);
        self.combinations(&mut rules);
        self.properties(&mut rules);
        self.items(&mut rules);
        self.unseen(&mut rules);
        if siblings_of_ref {
            rules.truncate(kept); // draft 7: what stands beside $ref is ignored
        }
        rules
    }

    /// Keywords that say something to people only, and definitions that others refer to.
    fn notes(&mut self) {
        for keyword in [
            "$comment",
            "title",
            "description",
            "format",
            "contentEncoding",
            "contentMediaType",
        ] {
            self.text(keyword);
        }
        for keyword in ["readOnly", "writeOnly", "deprecated"] {
            self.flag(keyword);
        }
        if self
            .object
            .get("examples")
            .is_some_and(|value| !value.is_array())
        {
            self.problem("examples", "must be an array");
        }
        self.schemas_by_name("definitions");
        if self.since(Draft::Of2019) {
            self.schemas_by_name("$defs");
            self.schema("contentSchema");
        }
    }

    fn names(&mut self) {
        if let Some(id) = self.text("$id") {
            match id.strip_prefix('#') {
                Some(name) if self.compiler.draft == Draft::Seven => self.anchor("$id", name),
                _ if self.id == 0 && !id.contains('#') => {}
                _ if self.id == 0 => self.problem("$id", "must not contain #"),
                _ => self.problem("$id", "may stand at the top of the schema only; refer to places with #/$defs/… instead"),
            }
        }
        self.text("$schema");
        if self.since(Draft::Of2019) {
            if let Some(name) = self.text("$anchor") {
                self.anchor("$anchor", name);
            }
            if self
                .object
                .get("$vocabulary")
                .is_some_and(|value| !value.is_object())
            {
                self.problem("$vocabulary", "must be an object");
            }
            if self.compiler.draft == Draft::Of2019 {
                self.flag("$recursiveAnchor");
            }
        }
        if self.since(Draft::Of2020)
            && let Some(name) = self.text("$dynamicAnchor")
        {
            self.anchor("$dynamicAnchor", name);
        }
    }

    fn anchor(&mut self, keyword: &'static str, name: &str) {
        let first = |c: char| c.is_ascii_alphabetic() || c == '_';
        let other = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        if !name.starts_with(first) || !name.chars().all(other) {
            self.problem(
                keyword,
                "must start with a letter or _ and go on with letters, digits, - . or _",
            );
            return;
        }
        let id = self.id;
        if self
            .compiler
            .anchors
            .insert(name.to_owned(), id)
            .is_some_and(|other| other != id)
        {
            self.problem(keyword, "is given to two places; each anchor names one");
        }
    }

    /// With one document and no `$id` inside it, a dynamic or recursive reference leads where a plain one does.
    fn references(&mut self, rules: &mut Vec<Rule>) {
        self.reference("$ref", rules);
        match self.compiler.draft {
            Draft::Seven => {}
            Draft::Of2019 => self.reference("$recursiveRef", rules),
            Draft::Of2020 => self.reference("$dynamicRef", rules),
        }
    }

    fn reference(&mut self, keyword: &'static str, rules: &mut Vec<Rule>) {
        let Some(target) = self.text(keyword) else {
            return;
        };
        let Some(fragment) = target.strip_prefix('#') else {
            self.problem(
                keyword,
                "must start with #: only places in this same schema can be referred to",
            );
            return;
        };
        let Ok(fragment) = percent_encoding::percent_decode_str(fragment).decode_utf8() else {
            self.problem(keyword, "is not UTF-8 once its percent signs are decoded");
            return;
        };
        if !fragment.is_empty() && !fragment.starts_with('/') {
            self.compiler
                .anchor_refs
                .push((self.id, fragment.into_owned(), keyword));
        } else if self.compiler.document.pointer(&fragment).is_none() {
            self.problem(keyword, "refers to a place that is not in this schema");
        } else {
            rules.push(Rule::Ref(self.compiler.node_at(fragment.into_owned())));
        }
    }

    fn values(&mut self, rules: &mut Vec<Rule>) {
        match self.object.get("type") {
            None => {}
            Some(Value::Array(names)) => {
                let types: Option<Vec<Type>> = names.iter().map(|name| Type::parse(name.as_str()?)).collect();
                match types {
                    Some(types) if !types.is_empty() && types.iter().enumerate().all(|(i, t)| !types[..i].contains(t)) => {
                        rules.push(Rule::Type(types));
                    }
                    _ => self.problem("type", "must list different types, each one of null, boolean, object, array, number, integer, string"),
                }
            }
            Some(name) => match name.as_str().and_then(Type::parse) {
                Some(one) => rules.push(Rule::Type(vec![one])),
                None => self.problem("type", "must be one of null, boolean, object, array, number, integer, string, or a list of those"),
            },
        }
        match self.object.get("enum") {
            None => {}
            Some(Value::Array(values)) => rules.push(Rule::OneOfValues(values_of(values))),
            Some(_) => self.problem("enum", "must be an array"),
        }
        if let Some(value) = self.object.get("const") {
            rules.push(Rule::Const(values_of(std::slice::from_ref(value))));
        }
    }

    fn numbers(&mut self, rules: &mut Vec<Rule>) {
        for (keyword, bound) in [
            ("minimum", Bound::AtLeast),
            ("exclusiveMinimum", Bound::MoreThan),
            ("maximum", Bound::AtMost),
            ("exclusiveMaximum", Bound::LessThan),
        ] {
            if let Some(limit) = self.number(keyword) {
                rules.push(Rule::Range { bound, limit });
            }
        }
        if let Some(divisor) = self.number("multipleOf") {
            if super::number::compare(&divisor, &Number::from(0)).is_gt() {
                rules.push(Rule::MultipleOf(divisor));
            } else {
                self.problem("multipleOf", "must be more than 0");
            }
        }
    }

    fn counts(&mut self, rules: &mut Vec<Rule>) {
        for (keyword, what, bound) in [
            ("minLength", Counted::Characters, Bound::AtLeast),
            ("maxLength", Counted::Characters, Bound::AtMost),
            ("minItems", Counted::Items, Bound::AtLeast),
            ("maxItems", Counted::Items, Bound::AtMost),
            ("minProperties", Counted::Properties, Bound::AtLeast),
            ("maxProperties", Counted::Properties, Bound::AtMost),
        ] {
            if let Some(limit) = self.count(keyword) {
                rules.push(Rule::Count { what, bound, limit });
            }
        }
        if self.flag("uniqueItems") == Some(true) {
            rules.push(Rule::UniqueItems);
        }
        if let Some(source) = self.text("pattern")
            && let Some(pattern) = self.pattern(source, vec![key("pattern")])
        {
            rules.push(Rule::Pattern(pattern));
        }
    }

    fn requirements(&mut self, rules: &mut Vec<Rule>) {
        if let Some(value) = self.object.get("required")
            && let Some(names) = self.names_of(value, vec![key("required")])
        {
            rules.push(Rule::Required(names));
        }
        if self.since(Draft::Of2019) {
            for (given, value) in self.members("dependentRequired") {
                if let Some(required) =
                    self.names_of(value, vec![key("dependentRequired"), key(given)])
                {
                    rules.push(Rule::RequiredWith {
                        given: given.clone(),
                        required,
                    });
                }
            }
            for (given, node) in self.schemas_by_name("dependentSchemas") {
                rules.push(Rule::SchemaWith { given, node });
            }
        }
        self.dependencies(rules);
    }

    /// `dependencies` is draft 7's; the later metaschemas still check its form, and give it no effect.
    fn dependencies(&mut self, rules: &mut Vec<Rule>) {
        let has_effect = self.compiler.draft == Draft::Seven;
        for (given, value) in self.members("dependencies") {
            let rule = if value.is_array() {
                let required = self.names_of(value, vec![key("dependencies"), key(given)]);
                required.map(|required| Rule::RequiredWith {
                    given: given.clone(),
                    required,
                })
            } else {
                Some(Rule::SchemaWith {
                    given: given.clone(),
                    node: self.below(&["dependencies", given]),
                })
            };
            rules.extend(rule.filter(|_| has_effect));
        }
    }

    fn combinations(&mut self, rules: &mut Vec<Rule>) {
        rules.extend(self.schema_list("allOf").map(Rule::AllOf));
        rules.extend(self.schema_list("anyOf").map(Rule::AnyOf));
        rules.extend(self.schema_list("oneOf").map(Rule::OneOf));
        rules.extend(self.schema("not").map(Rule::Not));
        let (then, otherwise) = (self.schema("then"), self.schema("else"));
        if let Some(condition) = self.schema("if") {
            rules.push(Rule::If {
                condition,
                then,
                otherwise,
            });
        }
    }

    fn properties(&mut self, rules: &mut Vec<Rule>) {
        let named = self
            .schemas_by_name("properties")
            .into_iter()
            .collect::<BTreeMap<_, _>>();
        let mut patterns = Vec::new();
        for (source, node) in self.schemas_by_name("patternProperties") {
            let below = vec![key("patternProperties"), key(&source)];
            if let Some(pattern) = self.pattern(&source, below) {
                patterns.push((pattern, node));
            }
        }
        let others = self.schema("additionalProperties");
        if !named.is_empty() || !patterns.is_empty() || others.is_some() {
            rules.push(Rule::Properties {
                named,
                patterns,
                others,
            });
        }
        rules.extend(self.schema("propertyNames").map(Rule::PropertyNames));
    }

    fn items(&mut self, rules: &mut Vec<Rule>) {
        let (first, others) = if self.since(Draft::Of2020) {
            if self.object.get("items").is_some_and(Value::is_array) {
                self.problem(
                    "items",
                    "must be one schema; in draft 2020-12 a list of schemas is called prefixItems",
                );
                return;
            }
            (
                self.schema_list("prefixItems").unwrap_or_default(),
                self.schema("items"),
            )
        } else if self.object.get("items").is_some_and(Value::is_array) {
            (
                self.schema_list("items").unwrap_or_default(),
                self.schema("additionalItems"),
            )
        } else {
            self.schema("additionalItems");
            (Vec::new(), self.schema("items"))
        };
        if !first.is_empty() || others.is_some() {
            rules.push(Rule::Items { first, others });
        }
        let (min, max) = if self.since(Draft::Of2019) {
            (self.count("minContains"), self.count("maxContains"))
        } else {
            (None, None)
        };
        if let Some(node) = self.schema("contains") {
            let counts_as_seen = self.since(Draft::Of2020);
            rules.push(Rule::Contains {
                node,
                min: min.unwrap_or(1),
                max,
                counts_as_seen,
            });
        }
    }

    fn unseen(&mut self, rules: &mut Vec<Rule>) {
        if self.since(Draft::Of2019) {
            rules.extend(
                self.schema("unevaluatedProperties")
                    .map(Rule::UnseenProperties),
            );
            rules.extend(self.schema("unevaluatedItems").map(Rule::UnseenItems));
        }
    }

    fn since(&self, draft: Draft) -> bool {
        self.compiler.draft >= draft
    }

    fn problem(&mut self, keyword: &str, message: &str) {
        self.compiler.problem(self.id, &[key(keyword)], message);
    }

    /// The node of the place that many names below this one.
    fn below(&mut self, names: &[&str]) -> NodeId {
        let mut place = self.compiler.places[self.id].clone();
        for name in names {
            place.push('/');
            place.push_str(&name.replace('~', "~0").replace('/', "~1"));
        }
        self.compiler.node_at(place)
    }

    fn schema(&mut self, keyword: &str) -> Option<NodeId> {
        self.object.get(keyword)?;
        Some(self.below(&[keyword]))
    }

    fn schema_list(&mut self, keyword: &str) -> Option<Vec<NodeId>> {
        match self.object.get(keyword)? {
            Value::Array(items) if !items.is_empty() => Some(
                (0..items.len())
                    .map(|index| self.below(&[keyword, &index.to_string()]))
                    .collect(),
            ),
            // Draft 2019-09 and 7 share this with `items`, where draft 7 alone lets the list be empty.
            Value::Array(_) if keyword == "items" && self.compiler.draft == Draft::Seven => {
                Some(Vec::new())
            }
            _ => {
                self.problem(keyword, "must be a list of at least one schema");
                None
            }
        }
    }

    fn schemas_by_name(&mut self, keyword: &str) -> Vec<(String, NodeId)> {
        self.members(keyword)
            .into_iter()
            .map(|(name, _)| (name.clone(), self.below(&[keyword, name])))
            .collect()
    }

    fn members(&mut self, keyword: &str) -> Vec<(&'d String, &'d Value)> {
        match self.object.get(keyword) {
            None => Vec::new(),
            Some(Value::Object(members)) => members.iter().collect(),
            Some(_) => {
                self.problem(keyword, "must be an object");
                Vec::new()
            }
        }
    }

    fn text(&mut self, keyword: &str) -> Option<&'d str> {
        let text = self.object.get(keyword)?.as_str();
        if text.is_none() {
            self.problem(keyword, "must be a string");
        }
        text
    }

    fn flag(&mut self, keyword: &str) -> Option<bool> {
        let flag = self.object.get(keyword)?.as_bool();
        if flag.is_none() {
            self.problem(keyword, "must be true or false");
        }
        flag
    }

    fn number(&mut self, keyword: &str) -> Option<Number> {
        let number = self.object.get(keyword)?.as_number();
        if number.is_none() {
            self.problem(keyword, "must be a number");
        }
        number.cloned()
    }

    fn count(&mut self, keyword: &str) -> Option<u64> {
        let number = self.object.get(keyword)?.as_number();
        let whole = number.filter(|number| super::number::is_integer(number));
        match whole {
            Some(number) if super::number::compare(number, &Number::from(0)).is_ge() => {
                // What is beyond u64 is beyond everything that can be counted.
                let count =
                    super::number::integer(number).and_then(|count| u64::try_from(count).ok());
                Some(count.unwrap_or(u64::MAX))
            }
            _ => {
                self.problem(keyword, "must be a whole number, 0 or more");
                None
            }
        }
    }

    fn names_of(&mut self, value: &Value, below: Vec<Step>) -> Option<Vec<String>> {
        let names: Option<Vec<String>> = value.as_array().and_then(|names| {
            names
                .iter()
                .map(|name| name.as_str().map(str::to_owned))
                .collect()
        });
        let mut sorted = names.clone().unwrap_or_default();
        sorted.sort_unstable();
        if names.is_none() || sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            self.compiler
                .problem(self.id, &below, "must be a list of different names");
            return None;
        }
        names
    }

    fn pattern(&mut self, source: &str, below: Vec<Step>) -> Option<Pattern> {
        self.compiler.patterns += 1;
        if self.compiler.patterns > PATTERNS_MAX {
            self.compiler.problem(
                self.id,
                &below,
                format!("is one pattern too many; a schema may have {PATTERNS_MAX}"),
            );
            return None;
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

fn key(name: &str) -> Step {
    Step::Key(name.to_owned())
}

fn values_of(values: &[Value]) -> Values {
    let mut shown = String::new();
    for value in values {
        if !shown.is_empty() {
            shown.push_str(", ");
        }
        shown.push_str(&value.to_string());
    }
    if let Some((end, _)) = shown.char_indices().nth(VALUES_SHOWN_CHARS_MAX) {
        shown.truncate(end);
        shown.push('…');
    }
    Values {
        canonical: values.iter().map(canonical).collect(),
        shown,
    }
}

/// The steps that a JSON pointer takes in the document.
fn steps(document: &Value, pointer: &str) -> Vec<Step> {
    let mut place = Some(document);
    let mut steps = Vec::new();
    for token in pointer.split('/').skip(1) {
        let name = token.replace("~1", "/").replace("~0", "~");
        let index = name
            .parse::<usize>()
            .ok()
            .filter(|_| place.is_some_and(Value::is_array));
        place = match index {
            Some(index) => place.and_then(|value| value.get(index)),
            None => place.and_then(|value| value.get(&name)),
        };
        steps.push(index.map_or(Step::Key(name), Step::Index));
    }
    steps
}

/// The first node that leads back to itself while staying at the same value.
fn first_loop(nodes: &[Node]) -> Option<NodeId> {
    let edges: Vec<Vec<NodeId>> = nodes
        .iter()
        .map(|node| match node {
            Node::Rules(rules) => rules.iter().flat_map(Rule::in_place).collect(),
            Node::Anything | Node::Nothing => Vec::new(),
        })
        .collect();
    let mut state = vec![Visit::No; nodes.len()];
    for start in 0..nodes.len() {
        let mut open: Vec<(NodeId, usize)> = vec![(start, 0)];
        while let Some((id, next)) = open.pop() {
            if next == 0 {
                match state[id] {
                    Visit::Done => continue,
                    Visit::Open => return Some(id),
                    Visit::No => state[id] = Visit::Open,
                }
            }
            match edges[id].get(next) {
                Some(target) => open.extend([(id, next + 1), (*target, 0)]),
                None => state[id] = Visit::Done,
            }
        }
    }
    None
}

#[derive(Clone, Copy)]
enum Visit {
    No,
    Open,
    Done,
}

//! Compiles the keywords of each draft.

use serde_json::{Map, Number, Value};

use crate::base::ordered::Ordered as _;
use crate::base::tool_parameters::canonical::canonical;
use crate::base::tool_parameters::compile::readers::key;
use crate::base::tool_parameters::compile::{Compiler, Draft};
use crate::base::tool_parameters::number;
use crate::base::tool_parameters::schema::{Bound, Counted, NodeId, Rule, Type, Values};

/// Most characters of an `enum` or `const` in a message.
const VALUES_SHOWN_CHARS_MAX: usize = 200;

/// Reads the keywords of one schema object. Each method compiles a keyword of the form that the metaschema requires, and
/// reports a problem for any other form.
pub(super) struct Keywords<'c, 'd> {
    pub(super) compiler: &'c mut Compiler<'d>,
    pub(super) id: NodeId,
    pub(super) object: &'d Map<String, Value>,
}

impl<'d> Keywords<'_, 'd> {
    pub(super) fn rules(mut self) -> Vec<Rule> {
        self.notes();
        self.names();
        let mut rules = Vec::new();
        self.references(&mut rules);
        let siblings_of_ref = self.compiler.draft == Draft::Seven && self.object.contains_key("$ref");
        let kept = rules.len();
        self.values(&mut rules);
        self.numbers(&mut rules);
        self.counts(&mut rules);
        self.requirements(&mut rules);
        self.combinations(&mut rules);
        self.properties(&mut rules);
        self.items(&mut rules);
        self.unevaluated(&mut rules);
        if siblings_of_ref {
            rules.truncate(kept); // draft 7 ignores the siblings of $ref
        }
        rules
    }

    /// Annotations and definitions: checked for their form, without effect of their own.
    fn notes(&mut self) {
        for keyword in ["$comment", "title", "description", "format", "contentEncoding", "contentMediaType"] {
            self.text(keyword);
        }
        for keyword in ["readOnly", "writeOnly", "deprecated"] {
            self.flag(keyword);
        }
        if self.object.get("examples").is_some_and(|value| !value.is_array()) {
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
                _ => self.problem(
                    "$id",
                    "is allowed at the top of the schema only; refer to subschemas with #/$defs/… instead",
                ),
            }
        }
        self.text("$schema");
        if self.since(Draft::Of2019) {
            if let Some(name) = self.text("$anchor") {
                self.anchor("$anchor", name);
            }
            if self.object.get("$vocabulary").is_some_and(|value| !value.is_object()) {
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
                "must start with a letter or _ and continue with letters, digits, - . or _",
            );
            return;
        }
        let id = self.id;
        if self.compiler.anchors.insert(name.to_owned(), id).is_some_and(|other| other != id) {
            self.problem(keyword, "is used twice; each anchor names one subschema");
        }
    }

    /// In one document without a nested `$id`, a dynamic or recursive reference resolves like a plain one.
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
            self.problem(keyword, "must start with #: only references within this schema are supported");
            return;
        };
        let Ok(fragment) = percent_encoding::percent_decode_str(fragment).decode_utf8() else {
            self.problem(keyword, "is not UTF-8 once its percent signs are decoded");
            return;
        };
        if !fragment.is_empty() && !fragment.starts_with('/') {
            self.compiler.anchor_refs.push((self.id, fragment.into_owned(), keyword));
        } else if self.compiler.document.pointer(&fragment).is_none() {
            self.problem(keyword, "refers to a subschema that does not exist");
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
            if number::compare(&divisor, &Number::from(0)).is_gt() {
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
                if let Some(required) = self.names_of(value, vec![key("dependentRequired"), key(given)]) {
                    rules.push(Rule::RequiredWith { given: given.clone(), required });
                }
            }
            for (given, node) in self.schemas_by_name("dependentSchemas") {
                rules.push(Rule::SchemaWith { given, node });
            }
        }
        self.dependencies(rules);
    }

    /// `dependencies` belongs to draft 7; the later metaschemas still check its form, without effect.
    fn dependencies(&mut self, rules: &mut Vec<Rule>) {
        let has_effect = self.compiler.draft == Draft::Seven;
        for (given, value) in self.members("dependencies") {
            let rule = if value.is_array() {
                let required = self.names_of(value, vec![key("dependencies"), key(given)]);
                required.map(|required| Rule::RequiredWith { given: given.clone(), required })
            } else {
                Some(Rule::SchemaWith { given: given.clone(), node: self.below(&["dependencies", given]) })
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
            rules.push(Rule::If { condition, then, otherwise });
        }
    }

    fn properties(&mut self, rules: &mut Vec<Rule>) {
        let named = self.schemas_by_name("properties").into_map();
        let mut patterns = Vec::new();
        for (source, node) in self.schemas_by_name("patternProperties") {
            let below = vec![key("patternProperties"), key(&source)];
            if let Some(pattern) = self.pattern(&source, below) {
                patterns.push((pattern, node));
            }
        }
        let others = self.schema("additionalProperties");
        if !named.is_empty() || !patterns.is_empty() || others.is_some() {
            rules.push(Rule::Properties { named, patterns, others });
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
            (self.schema_list("prefixItems").unwrap_or_default(), self.schema("items"))
        } else if self.object.get("items").is_some_and(Value::is_array) {
            (self.schema_list("items").unwrap_or_default(), self.schema("additionalItems"))
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
            let counts_as_evaluated = self.since(Draft::Of2020);
            rules.push(Rule::Contains { node, min: min.unwrap_or(1), max, counts_as_evaluated });
        }
    }

    fn unevaluated(&mut self, rules: &mut Vec<Rule>) {
        if self.since(Draft::Of2019) {
            rules.extend(self.schema("unevaluatedProperties").map(Rule::UnevaluatedProperties));
            rules.extend(self.schema("unevaluatedItems").map(Rule::UnevaluatedItems));
        }
    }
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
    Values { canonical: values.iter().map(canonical).into_set(), shown }
}

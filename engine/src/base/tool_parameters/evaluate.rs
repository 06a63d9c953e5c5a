//! Validates a value against a compiled schema within a step budget, so that a hostile schema cannot consume unbounded time.

mod descend;

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

use crate::base::field::{self, FieldProblem, Step};
use crate::base::tool_parameters::canonical::canonical;
use crate::base::tool_parameters::pattern::Pattern;
use crate::base::tool_parameters::schema::{Bound, Counted, Node, NodeId, Rule, Schema, Type};
use crate::base::tool_parameters::{PROBLEMS_MAX, number, whole};

/// Step budget of one validation; about a hundredth of a second, in which nothing else runs on its thread.
const STEPS_MAX: u64 = 100_000;

/// Deepest nesting of applied schemas; bounds the stack.
const NESTED_SCHEMAS_MAX: usize = 256;

/// Bytes of text that may be copied or compared per step.
const BYTES_PER_STEP: u64 = 16;

/// Validates the value; the caller has bounded its depth.
pub(super) fn check(schema: &Schema, value: &Value) -> Result<(), Vec<FieldProblem>> {
    let mut evaluator =
        Evaluator { schema, steps_left: STEPS_MAX, nested: 0, quiet: 0, problems: Vec::new() };
    match evaluator.node(0, value, &Location::Root, &mut Evaluated::default()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(evaluator.problems),
        Err(BudgetExhausted) => Err(whole(
            "take too long to validate against the tool's parameters; send smaller arguments or simplify the schema",
        )),
    }
}

struct BudgetExhausted;

type Outcome = Result<bool, BudgetExhausted>;

struct Evaluator<'s> {
    schema: &'s Schema,
    steps_left: u64,
    nested: usize,
    /// Above 0, a failure is not reported: an alternative may still match.
    quiet: usize,
    problems: Vec<FieldProblem>,
}

/// The current location in the value; formatted only to report a problem.
#[derive(Clone, Copy)]
enum Location<'a> {
    Root,
    Key(&'a Location<'a>, &'a str),
    Index(&'a Location<'a>, usize),
}

impl Location<'_> {
    fn path(&self) -> String {
        let mut steps = Vec::new();
        let mut location = self;
        loop {
            match location {
                Location::Root => break,
                Location::Key(outer, key) => {
                    steps.push(Step::Key((*key).to_owned()));
                    location = outer;
                }
                Location::Index(outer, index) => {
                    steps.push(Step::Index(*index));
                    location = outer;
                }
            }
        }
        field::path(steps.iter().rev())
    }
}

/// The properties and items that schemas have evaluated in one value; maintained only when a rule needs them.
#[derive(Default)]
struct Evaluated<'v> {
    properties: BTreeSet<&'v str>,
    items: BTreeSet<usize>,
}

impl Evaluated<'_> {
    fn size(&self) -> u64 {
        (self.properties.len() + self.items.len()) as u64
    }
}

impl<'s> Evaluator<'s> {
    fn node<'v>(
        &mut self,
        id: NodeId,
        value: &'v Value,
        location: &Location<'_>,
        evaluated: &mut Evaluated<'v>,
    ) -> Outcome {
        self.spend(1)?;
        let rules = match self.schema.nodes.get(id) {
            Some(Node::Rules(rules)) => rules,
            Some(Node::Anything) => return Ok(true),
            Some(Node::Nothing) | None => {
                return Ok(self.fail(location, || "is not allowed".to_owned()));
            }
        };
        if self.nested == NESTED_SCHEMAS_MAX {
            return Err(BudgetExhausted);
        }
        self.nested += 1;
        let mut mine = Evaluated::default();
        let mut fits = true;
        for rule in rules {
            fits &= self.rule(rule, value, location, &mut mine)?;
            if !fits && (self.quiet > 0 || self.problems.len() >= PROBLEMS_MAX) {
                break;
            }
        }
        self.nested -= 1;
        if fits && self.schema.tracks_evaluated {
            self.spend(mine.size())?;
            evaluated.properties.append(&mut mine.properties);
            evaluated.items.append(&mut mine.items);
        }
        Ok(fits)
    }

    /// As [`Self::node`], for an alternative that may fail without a problem.
    fn fits_quietly<'v>(
        &mut self,
        id: NodeId,
        value: &'v Value,
        location: &Location<'_>,
        evaluated: &mut Evaluated<'v>,
    ) -> Outcome {
        self.quiet += 1;
        let outcome = self.node(id, value, location, evaluated);
        self.quiet -= 1;
        outcome
    }

    fn rule<'v>(
        &mut self,
        rule: &'s Rule,
        value: &'v Value,
        location: &Location<'_>,
        evaluated: &mut Evaluated<'v>,
    ) -> Outcome {
        self.spend(1)?;
        match (rule, value) {
            (Rule::Type(types), _) => {
                if types.iter().any(|one| is_type(value, *one)) {
                    return Ok(true);
                }
                Ok(self.fail(location, || {
                    format!(
                        "must be {}",
                        types.iter().map(|one| one.article()).collect::<Vec<_>>().join(" or ")
                    )
                }))
            }
            (Rule::OneOfValues(values), _) => {
                if values.canonical.contains(&self.canonical(value)?) {
                    return Ok(true);
                }
                Ok(self.fail(location, || format!("must be one of {}", values.shown)))
            }
            (Rule::Const(values), _) => {
                if values.canonical.contains(&self.canonical(value)?) {
                    return Ok(true);
                }
                Ok(self.fail(location, || format!("must be {}", values.shown)))
            }
            (Rule::Range { bound, limit }, Value::Number(number)) => {
                Ok(self.range(*bound, limit, number, location))
            }
            (Rule::MultipleOf(divisor), Value::Number(number)) => {
                self.spend(16)?;
                Ok(number::is_multiple(number, divisor)
                    || self.fail(location, || format!("must be a multiple of {divisor}")))
            }
            (Rule::Count { what, bound, limit }, _) => self.count(*what, *bound, *limit, value, location),
            (Rule::Pattern(pattern), Value::String(text)) => {
                let matches = self.matches(pattern, text)?;
                Ok(matches
                    || self.fail(location, || {
                        format!("must match the pattern {}", field::shortened(pattern.source()))
                    }))
            }
            (Rule::UniqueItems, Value::Array(items)) => {
                let mut met = BTreeSet::new();
                for item in items {
                    if !met.insert(self.canonical(item)?) {
                        return Ok(self.fail(location, || "must not contain the same item twice".to_owned()));
                    }
                }
                Ok(true)
            }
            (Rule::Required(names), Value::Object(members)) => self.required(names, members, location, ""),
            (Rule::RequiredWith { given, required }, Value::Object(members))
                if members.contains_key(given) =>
            {
                self.required(
                    required,
                    members,
                    location,
                    &format!(" when {} is given", field::shortened(given)),
                )
            }
            (Rule::SchemaWith { given, node }, Value::Object(members)) if members.contains_key(given) => {
                self.node(*node, value, location, evaluated)
            }
            (Rule::Ref(node), _) => self.node(*node, value, location, evaluated),
            (Rule::AllOf(nodes), _) => self.all_of(nodes, value, location, evaluated),
            (Rule::AnyOf(nodes), _) => self.any_of(nodes, value, location, evaluated),
            (Rule::OneOf(nodes), _) => self.one_of(nodes, value, location, evaluated),
            (Rule::Not(node), _) => {
                let fits = self.fits_quietly(*node, value, location, &mut Evaluated::default())?;
                Ok(!fits || self.fail(location, || "matches a form that is not allowed (not)".to_owned()))
            }
            (Rule::If { condition, then, otherwise }, _) => {
                let branch =
                    if self.fits_quietly(*condition, value, location, evaluated)? { then } else { otherwise };
                branch.map_or(Ok(true), |node| self.node(node, value, location, evaluated))
            }
            (Rule::Properties { named, patterns, others }, Value::Object(members)) => {
                self.properties(named, patterns, *others, members, location, evaluated)
            }
            (Rule::PropertyNames(node), Value::Object(members)) => {
                self.property_names(*node, members, location)
            }
            (Rule::Items { first, others }, Value::Array(items)) => {
                self.items(first, *others, items, location, evaluated)
            }
            (Rule::Contains { node, min, max, counts_as_evaluated }, Value::Array(items)) => {
                let (count, found) = self.contains(*node, items, location)?;
                if *counts_as_evaluated && self.schema.tracks_evaluated {
                    evaluated.items.extend(found);
                }
                if count < *min {
                    return Ok(self.fail(location, || {
                        format!("must contain at least {min} matching items (contains)")
                    }));
                }
                Ok(max.is_none_or(|max| count <= max)
                    || self.fail(location, || "contains too many matching items (contains)".to_owned()))
            }
            (Rule::UnevaluatedProperties(node), Value::Object(members)) => {
                self.unevaluated_properties(*node, members, location, evaluated)
            }
            (Rule::UnevaluatedItems(node), Value::Array(items)) => {
                self.unevaluated_items(*node, items, location, evaluated)
            }
            _ => Ok(true), // the rule applies to another type of value
        }
    }

    fn all_of<'v>(
        &mut self,
        nodes: &[NodeId],
        value: &'v Value,
        location: &Location<'_>,
        evaluated: &mut Evaluated<'v>,
    ) -> Outcome {
        let mut fits = true;
        for node in nodes {
            fits &= self.node(*node, value, location, evaluated)?;
            if !fits && self.quiet > 0 {
                break;
            }
        }
        Ok(fits)
    }

    fn any_of<'v>(
        &mut self,
        nodes: &[NodeId],
        value: &'v Value,
        location: &Location<'_>,
        evaluated: &mut Evaluated<'v>,
    ) -> Outcome {
        let mut fits = false;
        for node in nodes {
            fits |= self.fits_quietly(*node, value, location, evaluated)?;
            if fits && !self.schema.tracks_evaluated {
                break;
            }
        }
        Ok(fits || self.fail(location, || "matches none of the allowed forms (anyOf)".to_owned()))
    }

    fn one_of<'v>(
        &mut self,
        nodes: &[NodeId],
        value: &'v Value,
        location: &Location<'_>,
        evaluated: &mut Evaluated<'v>,
    ) -> Outcome {
        let mut count = 0;
        for node in nodes {
            count += usize::from(self.fits_quietly(*node, value, location, evaluated)?);
            if count > 1 {
                return Ok(self.fail(location, || {
                    "matches more than one of the allowed forms, and must match exactly one (oneOf)"
                        .to_owned()
                }));
            }
        }
        Ok(count == 1 || self.fail(location, || "matches none of the allowed forms (oneOf)".to_owned()))
    }

    fn range(&mut self, bound: Bound, limit: &Number, number: &Number, location: &Location<'_>) -> bool {
        let order = number::compare(number, limit);
        let (fits, words) = match bound {
            Bound::AtLeast => (order.is_ge(), "at least"),
            Bound::MoreThan => (order.is_gt(), "more than"),
            Bound::AtMost => (order.is_le(), "at most"),
            Bound::LessThan => (order.is_lt(), "less than"),
        };
        fits || self.fail(location, || format!("must be {words} {limit}"))
    }

    fn count(
        &mut self,
        what: Counted,
        bound: Bound,
        limit: u64,
        value: &Value,
        location: &Location<'_>,
    ) -> Outcome {
        let (count, noun) = match (what, value) {
            (Counted::Characters, Value::String(text)) => {
                self.spend(text.len() as u64 / BYTES_PER_STEP)?;
                (text.chars().count(), "characters")
            }
            (Counted::Items, Value::Array(items)) => (items.len(), "items"),
            (Counted::Properties, Value::Object(members)) => (members.len(), "properties"),
            _ => return Ok(true),
        };
        let (fits, words) = match bound {
            Bound::AtLeast | Bound::MoreThan => (count as u64 >= limit, "at least"),
            Bound::AtMost | Bound::LessThan => (count as u64 <= limit, "at most"),
        };
        Ok(fits || self.fail(location, || format!("must have {words} {limit} {noun}")))
    }

    fn required(
        &mut self,
        names: &[String],
        members: &Map<String, Value>,
        location: &Location<'_>,
        when: &str,
    ) -> Outcome {
        let mut fits = true;
        for name in names {
            self.spend(1)?;
            if !members.contains_key(name) {
                fits = self.fail(&Location::Key(location, name), || format!("is required{when}"));
            }
        }
        Ok(fits)
    }

    fn matches(&mut self, pattern: &Pattern, text: &str) -> Outcome {
        pattern.is_match(text, &mut self.steps_left).ok_or(BudgetExhausted)
    }

    fn canonical(&mut self, value: &Value) -> Result<String, BudgetExhausted> {
        let text = canonical(value);
        self.spend(text.len() as u64 / BYTES_PER_STEP)?;
        Ok(text)
    }

    fn spend(&mut self, steps: u64) -> Result<(), BudgetExhausted> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(BudgetExhausted)?;
        Ok(())
    }

    /// Records the problem unless failures are quiet or the limit is reached; always returns false.
    fn fail(&mut self, location: &Location<'_>, message: impl FnOnce() -> String) -> bool {
        if self.quiet == 0 && self.problems.len() < PROBLEMS_MAX {
            self.problems.push(FieldProblem { field: location.path(), message: message() });
        }
        false
    }
}

fn is_type(value: &Value, one: Type) -> bool {
    match (one, value) {
        (Type::Null, Value::Null)
        | (Type::Boolean, Value::Bool(_))
        | (Type::Object, Value::Object(_))
        | (Type::Array, Value::Array(_))
        | (Type::Number, Value::Number(_))
        | (Type::String, Value::String(_)) => true,
        (Type::Integer, Value::Number(number)) => number::is_integer(number),
        _ => false,
    }
}

//! Checks a value against a compiled schema, with a budget: a hostile schema runs out of steps, not out of patience.

mod descend;

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

use crate::base::field::{self, FieldProblem, Step};
use crate::base::tool_parameters::canonical::canonical;
use crate::base::tool_parameters::pattern::Pattern;
use crate::base::tool_parameters::schema::{Bound, Counted, Node, NodeId, Rule, Schema, Type};
use crate::base::tool_parameters::{PROBLEMS_MAX, number, whole};

/// Most steps that one check may take; about a tenth of a second.
const STEPS_MAX: u64 = 1_000_000;

/// Most schemas applied one inside the other; bounds the stack.
const NESTED_SCHEMAS_MAX: usize = 256;

/// Bytes of text that cost one step to copy or compare.
const BYTES_PER_STEP: u64 = 16;

/// Checks the value, whose depth the caller has bounded.
pub(super) fn check(schema: &Schema, value: &Value) -> Result<(), Vec<FieldProblem>> {
    let mut run = Run { schema, steps_left: STEPS_MAX, nested: 0, quiet: 0, problems: Vec::new() };
    match run.node(0, value, &Place::Root, &mut Seen::default()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(run.problems),
        Err(TooCostly) => Err(whole(
            "take too long to check against the tool's parameters; send less, or simplify that schema",
        )),
    }
}

struct TooCostly;

type Outcome = Result<bool, TooCostly>;

struct Run<'s> {
    schema: &'s Schema,
    steps_left: u64,
    nested: usize,
    /// Above 0, a failure is not a problem: another form may still fit.
    quiet: usize,
    problems: Vec<FieldProblem>,
}

/// Where in the value the run is; written out only when there is a problem to report.
#[derive(Clone, Copy)]
enum Place<'a> {
    Root,
    Key(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl Place<'_> {
    fn path(&self) -> String {
        let mut steps = Vec::new();
        let mut place = self;
        loop {
            match place {
                Place::Root => break,
                Place::Key(outer, key) => {
                    steps.push(Step::Key((*key).to_owned()));
                    place = outer;
                }
                Place::Index(outer, index) => {
                    steps.push(Step::Index(*index));
                    place = outer;
                }
            }
        }
        field::path(steps.iter().rev())
    }
}

/// What schemas have looked at, of one value; kept only if a rule asks.
#[derive(Default)]
struct Seen<'v> {
    properties: BTreeSet<&'v str>,
    items: BTreeSet<usize>,
}

impl Seen<'_> {
    fn size(&self) -> u64 {
        (self.properties.len() + self.items.len()) as u64
    }
}

impl<'s> Run<'s> {
    fn node<'v>(&mut self, id: NodeId, value: &'v Value, place: &Place<'_>, seen: &mut Seen<'v>) -> Outcome {
        self.spend(1)?;
        let rules = match self.schema.nodes.get(id) {
            Some(Node::Rules(rules)) => rules,
            Some(Node::Anything) => return Ok(true),
            Some(Node::Nothing) | None => {
                return Ok(self.fail(place, || "is not allowed".to_owned()));
            }
        };
        if self.nested == NESTED_SCHEMAS_MAX {
            return Err(TooCostly);
        }
        self.nested += 1;
        let mut mine = Seen::default();
        let mut fits = true;
        for rule in rules {
            fits &= self.rule(rule, value, place, &mut mine)?;
            if !fits && (self.quiet > 0 || self.problems.len() >= PROBLEMS_MAX) {
                break;
            }
        }
        self.nested -= 1;
        if fits && self.schema.tracks_seen {
            self.spend(mine.size())?;
            seen.properties.append(&mut mine.properties);
            seen.items.append(&mut mine.items);
        }
        Ok(fits)
    }

    /// As [`Self::node`], for a form that may fail without that being a problem.
    fn fits_quietly<'v>(
        &mut self,
        id: NodeId,
        value: &'v Value,
        place: &Place<'_>,
        seen: &mut Seen<'v>,
    ) -> Outcome {
        self.quiet += 1;
        let outcome = self.node(id, value, place, seen);
        self.quiet -= 1;
        outcome
    }

    fn rule<'v>(
        &mut self,
        rule: &'s Rule,
        value: &'v Value,
        place: &Place<'_>,
        seen: &mut Seen<'v>,
    ) -> Outcome {
        self.spend(1)?;
        match (rule, value) {
            (Rule::Type(types), _) => {
                if types.iter().any(|one| is_type(value, *one)) {
                    return Ok(true);
                }
                Ok(self.fail(place, || {
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
                Ok(self.fail(place, || format!("must be one of {}", values.shown)))
            }
            (Rule::Const(values), _) => {
                if values.canonical.contains(&self.canonical(value)?) {
                    return Ok(true);
                }
                Ok(self.fail(place, || format!("must be {}", values.shown)))
            }
            (Rule::Range { bound, limit }, Value::Number(number)) => {
                Ok(self.range(*bound, limit, number, place))
            }
            (Rule::MultipleOf(divisor), Value::Number(number)) => {
                self.spend(8)?;
                Ok(number::is_multiple(number, divisor)
                    || self.fail(place, || format!("must be a multiple of {divisor}")))
            }
            (Rule::Count { what, bound, limit }, _) => self.count(*what, *bound, *limit, value, place),
            (Rule::Pattern(pattern), Value::String(text)) => {
                let matches = self.matches(pattern, text)?;
                Ok(matches
                    || self.fail(place, || {
                        format!("must match the pattern {}", field::shortened(pattern.source()))
                    }))
            }
            (Rule::UniqueItems, Value::Array(items)) => {
                let mut met = BTreeSet::new();
                for item in items {
                    if !met.insert(self.canonical(item)?) {
                        return Ok(self.fail(place, || "must not contain the same item twice".to_owned()));
                    }
                }
                Ok(true)
            }
            (Rule::Required(names), Value::Object(members)) => self.required(names, members, place, ""),
            (Rule::RequiredWith { given, required }, Value::Object(members))
                if members.contains_key(given) =>
            {
                self.required(
                    required,
                    members,
                    place,
                    &format!(" when {} is given", field::shortened(given)),
                )
            }
            (Rule::SchemaWith { given, node }, Value::Object(members)) if members.contains_key(given) => {
                self.node(*node, value, place, seen)
            }
            (Rule::Ref(node), _) => self.node(*node, value, place, seen),
            (Rule::AllOf(nodes), _) => self.all_of(nodes, value, place, seen),
            (Rule::AnyOf(nodes), _) => self.any_of(nodes, value, place, seen),
            (Rule::OneOf(nodes), _) => self.one_of(nodes, value, place, seen),
            (Rule::Not(node), _) => {
                let fits = self.fits_quietly(*node, value, place, &mut Seen::default())?;
                Ok(!fits || self.fail(place, || "has a form that is not allowed".to_owned()))
            }
            (Rule::If { condition, then, otherwise }, _) => {
                let branch =
                    if self.fits_quietly(*condition, value, place, seen)? { then } else { otherwise };
                branch.map_or(Ok(true), |node| self.node(node, value, place, seen))
            }
            (Rule::Properties { named, patterns, others }, Value::Object(members)) => {
                self.properties(named, patterns, *others, members, place, seen)
            }
            (Rule::PropertyNames(node), Value::Object(members)) => self.property_names(*node, members, place),
            (Rule::Items { first, others }, Value::Array(items)) => {
                self.items(first, *others, items, place, seen)
            }
            (Rule::Contains { node, min, max, counts_as_seen }, Value::Array(items)) => {
                let (count, found) = self.contains(*node, items, place)?;
                if *counts_as_seen && self.schema.tracks_seen {
                    seen.items.extend(found);
                }
                if count < *min {
                    return Ok(
                        self.fail(place, || format!("must contain at least {min} of the items asked for"))
                    );
                }
                Ok(max.is_none_or(|max| count <= max)
                    || self.fail(place, || "contains too many of the items asked for".to_owned()))
            }
            (Rule::UnseenProperties(node), Value::Object(members)) => {
                self.unseen_properties(*node, members, place, seen)
            }
            (Rule::UnseenItems(node), Value::Array(items)) => self.unseen_items(*node, items, place, seen),
            _ => Ok(true), // a rule about another type of value
        }
    }

    fn all_of<'v>(
        &mut self,
        nodes: &[NodeId],
        value: &'v Value,
        place: &Place<'_>,
        seen: &mut Seen<'v>,
    ) -> Outcome {
        let mut fits = true;
        for node in nodes {
            fits &= self.node(*node, value, place, seen)?;
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
        place: &Place<'_>,
        seen: &mut Seen<'v>,
    ) -> Outcome {
        let mut fits = false;
        for node in nodes {
            fits |= self.fits_quietly(*node, value, place, seen)?;
            if fits && !self.schema.tracks_seen {
                break;
            }
        }
        Ok(fits || self.fail(place, || "fits none of the forms allowed here (anyOf)".to_owned()))
    }

    fn one_of<'v>(
        &mut self,
        nodes: &[NodeId],
        value: &'v Value,
        place: &Place<'_>,
        seen: &mut Seen<'v>,
    ) -> Outcome {
        let mut count = 0;
        for node in nodes {
            count += usize::from(self.fits_quietly(*node, value, place, seen)?);
            if count > 1 {
                return Ok(self.fail(place, || {
                    "fits more than one of the forms allowed here, and must fit exactly one (oneOf)"
                        .to_owned()
                }));
            }
        }
        Ok(count == 1 || self.fail(place, || "fits none of the forms allowed here (oneOf)".to_owned()))
    }

    fn range(&mut self, bound: Bound, limit: &Number, number: &Number, place: &Place<'_>) -> bool {
        let order = number::compare(number, limit);
        let (fits, words) = match bound {
            Bound::AtLeast => (order.is_ge(), "at least"),
            Bound::MoreThan => (order.is_gt(), "more than"),
            Bound::AtMost => (order.is_le(), "at most"),
            Bound::LessThan => (order.is_lt(), "less than"),
        };
        fits || self.fail(place, || format!("must be {words} {limit}"))
    }

    fn count(
        &mut self,
        what: Counted,
        bound: Bound,
        limit: u64,
        value: &Value,
        place: &Place<'_>,
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
        Ok(fits || self.fail(place, || format!("must have {words} {limit} {noun}")))
    }

    fn required(
        &mut self,
        names: &[String],
        members: &Map<String, Value>,
        place: &Place<'_>,
        when: &str,
    ) -> Outcome {
        let mut fits = true;
        for name in names {
            self.spend(1)?;
            if !members.contains_key(name) {
                fits = self.fail(&Place::Key(place, name), || format!("is required{when}"));
            }
        }
        Ok(fits)
    }

    fn matches(&mut self, pattern: &Pattern, text: &str) -> Outcome {
        pattern.is_match(text, &mut self.steps_left).ok_or(TooCostly)
    }

    fn canonical(&mut self, value: &Value) -> Result<String, TooCostly> {
        let text = canonical(value);
        self.spend(text.len() as u64 / BYTES_PER_STEP)?;
        Ok(text)
    }

    fn spend(&mut self, steps: u64) -> Result<(), TooCostly> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(TooCostly)?;
        Ok(())
    }

    /// Notes the problem unless the run is quiet or has enough of them; always false.
    fn fail(&mut self, place: &Place<'_>, message: impl FnOnce() -> String) -> bool {
        if self.quiet == 0 && self.problems.len() < PROBLEMS_MAX {
            self.problems.push(FieldProblem { field: place.path(), message: message() });
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

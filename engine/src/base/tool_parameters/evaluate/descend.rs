//! Rules that apply to children of the value: properties, their names, and items.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::base::ordered::Ordered as _;
use crate::base::tool_parameters::evaluate::{
    BYTES_PER_STEP, BudgetExhausted, Evaluated, Evaluator, Location, Outcome,
};
use crate::base::tool_parameters::pattern::Pattern;
use crate::base::tool_parameters::schema::NodeId;

impl<'s> Evaluator<'s> {
    pub(super) fn properties<'v>(
        &mut self,
        named: &BTreeMap<String, NodeId>,
        patterns: &[(Pattern, NodeId)],
        others: Option<NodeId>,
        members: &'v Map<String, Value>,
        location: &Location<'_>,
        evaluated: &mut Evaluated<'v>,
    ) -> Outcome {
        let mut fits = true;
        for (name, member) in members {
            let mut nodes: BTreeSet<NodeId> = named.get(name).copied().into_set();
            for (pattern, node) in patterns {
                if self.matches(pattern, name)? {
                    nodes.insert(*node);
                }
            }
            if nodes.is_empty() {
                nodes.extend(others);
            }
            self.spend(1)?;
            if !nodes.is_empty() && self.schema.tracks_evaluated {
                evaluated.properties.insert(name);
            }
            for node in nodes {
                fits &= self.node(node, member, &Location::Key(location, name), &mut Evaluated::default())?;
            }
        }
        Ok(fits)
    }

    pub(super) fn property_names(
        &mut self,
        node: NodeId,
        members: &Map<String, Value>,
        location: &Location<'_>,
    ) -> Outcome {
        let mut fits = true;
        for name in members.keys() {
            self.spend(name.len() as u64 / BYTES_PER_STEP)?;
            let (inside, text) = (Location::Key(location, name), Value::from(name.as_str()));
            if !self.fits_quietly(node, &text, &inside, &mut Evaluated::default())? {
                fits = self.fail(&inside, || "is not an allowed name".to_owned());
            }
        }
        Ok(fits)
    }

    pub(super) fn items<'v>(
        &mut self,
        first: &[NodeId],
        others: Option<NodeId>,
        items: &'v [Value],
        location: &Location<'_>,
        evaluated: &mut Evaluated<'v>,
    ) -> Outcome {
        let mut fits = true;
        for (index, item) in items.iter().enumerate() {
            let Some(node) = first.get(index).copied().or(others) else {
                break;
            };
            fits &= self.node(node, item, &Location::Index(location, index), &mut Evaluated::default())?;
            if self.schema.tracks_evaluated {
                evaluated.items.insert(index);
            }
        }
        Ok(fits)
    }

    /// The number and the indices of the items that match.
    pub(super) fn contains(
        &mut self,
        node: NodeId,
        items: &[Value],
        location: &Location<'_>,
    ) -> Result<(u64, Vec<usize>), BudgetExhausted> {
        let mut found = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if self.fits_quietly(node, item, &Location::Index(location, index), &mut Evaluated::default())? {
                found.push(index);
            }
        }
        Ok((found.len() as u64, found))
    }

    pub(super) fn unevaluated_properties<'v>(
        &mut self,
        node: NodeId,
        members: &'v Map<String, Value>,
        location: &Location<'_>,
        evaluated: &mut Evaluated<'v>,
    ) -> Outcome {
        let mut fits = true;
        for (name, member) in members {
            self.spend(1)?;
            if evaluated.properties.insert(name) {
                fits &= self.node(node, member, &Location::Key(location, name), &mut Evaluated::default())?;
            }
        }
        Ok(fits)
    }

    pub(super) fn unevaluated_items<'v>(
        &mut self,
        node: NodeId,
        items: &'v [Value],
        location: &Location<'_>,
        evaluated: &mut Evaluated<'v>,
    ) -> Outcome {
        let mut fits = true;
        for (index, item) in items.iter().enumerate() {
            self.spend(1)?;
            if evaluated.items.insert(index) {
                fits &=
                    self.node(node, item, &Location::Index(location, index), &mut Evaluated::default())?;
            }
        }
        Ok(fits)
    }
}

//! The rules that go one step down: into properties, their names, and items.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::base::tool_parameters::evaluate::{BYTES_PER_STEP, Outcome, Place, Run, Seen, TooCostly};
use crate::base::tool_parameters::pattern::Pattern;
use crate::base::tool_parameters::schema::NodeId;

impl<'s> Run<'s> {
    pub(super) fn properties<'v>(
        &mut self,
        named: &BTreeMap<String, NodeId>,
        patterns: &[(Pattern, NodeId)],
        others: Option<NodeId>,
        members: &'v Map<String, Value>,
        place: &Place<'_>,
        seen: &mut Seen<'v>,
    ) -> Outcome {
        let mut fits = true;
        for (name, member) in members {
            let mut nodes: BTreeSet<NodeId> = named.get(name).copied().into_iter().collect();
            for (pattern, node) in patterns {
                if self.matches(pattern, name)? {
                    nodes.insert(*node);
                }
            }
            if nodes.is_empty() {
                nodes.extend(others);
            }
            self.spend(1)?;
            if !nodes.is_empty() && self.schema.tracks_seen {
                seen.properties.insert(name);
            }
            for node in nodes {
                fits &= self.node(node, member, &Place::Key(place, name), &mut Seen::default())?;
            }
        }
        Ok(fits)
    }

    pub(super) fn property_names(
        &mut self,
        node: NodeId,
        members: &Map<String, Value>,
        place: &Place<'_>,
    ) -> Outcome {
        let mut fits = true;
        for name in members.keys() {
            self.spend(name.len() as u64 / BYTES_PER_STEP)?;
            let (inside, text) = (Place::Key(place, name), Value::from(name.as_str()));
            if !self.fits_quietly(node, &text, &inside, &mut Seen::default())? {
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
        place: &Place<'_>,
        seen: &mut Seen<'v>,
    ) -> Outcome {
        let mut fits = true;
        for (index, item) in items.iter().enumerate() {
            let Some(node) = first.get(index).copied().or(others) else {
                break;
            };
            fits &= self.node(node, item, &Place::Index(place, index), &mut Seen::default())?;
            if self.schema.tracks_seen {
                seen.items.insert(index);
            }
        }
        Ok(fits)
    }

    /// How many items fit, and which.
    pub(super) fn contains(
        &mut self,
        node: NodeId,
        items: &[Value],
        place: &Place<'_>,
    ) -> Result<(u64, Vec<usize>), TooCostly> {
        let mut found = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if self.fits_quietly(node, item, &Place::Index(place, index), &mut Seen::default())? {
                found.push(index);
            }
        }
        Ok((found.len() as u64, found))
    }

    pub(super) fn unseen_properties<'v>(
        &mut self,
        node: NodeId,
        members: &'v Map<String, Value>,
        place: &Place<'_>,
        seen: &mut Seen<'v>,
    ) -> Outcome {
        let mut fits = true;
        for (name, member) in members {
            self.spend(1)?;
            if seen.properties.insert(name) {
                fits &= self.node(node, member, &Place::Key(place, name), &mut Seen::default())?;
            }
        }
        Ok(fits)
    }

    pub(super) fn unseen_items<'v>(
        &mut self,
        node: NodeId,
        items: &'v [Value],
        place: &Place<'_>,
        seen: &mut Seen<'v>,
    ) -> Outcome {
        let mut fits = true;
        for (index, item) in items.iter().enumerate() {
            self.spend(1)?;
            if seen.items.insert(index) {
                fits &= self.node(node, item, &Place::Index(place, index), &mut Seen::default())?;
            }
        }
        Ok(fits)
    }
}

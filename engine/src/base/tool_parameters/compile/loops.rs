//! Finds subschemas that refer to themselves without descending into the value.

use crate::base::tool_parameters::schema::{Node, NodeId, Rule};

/// The first node that leads back to itself at the same value.
pub(super) fn first_loop(nodes: &[Node]) -> Option<NodeId> {
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

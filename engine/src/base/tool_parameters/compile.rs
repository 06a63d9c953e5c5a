//! Compiles a schema document to a [`Schema`]: checks every keyword as the draft's metaschema does, and resolves every
//! reference. Subschemas are visited from a queue, so compilation does not recurse.

mod keywords;
mod loops;
mod readers;

use std::collections::BTreeMap;

use serde_json::Value;

use self::keywords::Keywords;
use self::loops::first_loop;
use crate::base::field::{self, FieldProblem, Step};
use crate::base::tool_parameters::schema::{Node, NodeId, Rule, Schema};
use crate::base::tool_parameters::{PROBLEMS_MAX, whole};

const SUPPORTED_DRAFTS: &str = "https://json-schema.org/draft/2020-12/schema, https://json-schema.org/draft/2019-09/schema or http://json-schema.org/draft-07/schema";

/// Compiles the document; the caller has bounded its depth. The patterns of one that `was_checked` are compiled when a text
/// is first compared with them.
pub(super) fn compile(document: &Value, was_checked: bool) -> Result<Schema, Vec<FieldProblem>> {
    let draft = Draft::of(document)?;
    let mut compiler = Compiler {
        document,
        draft,
        ids: BTreeMap::new(),
        pointers: Vec::new(),
        nodes: Vec::new(),
        anchors: BTreeMap::new(),
        anchor_refs: Vec::new(),
        patterns: 0,
        was_checked,
        problems: Vec::new(),
    };
    compiler.node_at(String::new());
    while compiler.nodes.len() < compiler.pointers.len() && compiler.problems.len() < PROBLEMS_MAX {
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
                field: "$schema".to_owned(),
                message: format!("is not a supported draft; leave it out, or use {SUPPORTED_DRAFTS}"),
            }]),
        }
    }
}

struct Compiler<'d> {
    document: &'d Value,
    draft: Draft,
    /// The node of each subschema found so far, by JSON pointer.
    ids: BTreeMap<String, NodeId>,
    pointers: Vec<String>,
    /// The compiled nodes, in the order of `pointers`.
    nodes: Vec<Node>,
    anchors: BTreeMap<String, NodeId>,
    /// References to anchors: the referring node, the anchor's name, and the keyword. Resolved when all anchors are known.
    anchor_refs: Vec<(NodeId, String, &'static str)>,
    patterns: usize,
    was_checked: bool,
    problems: Vec<FieldProblem>,
}

impl<'d> Compiler<'d> {
    fn node_at(&mut self, pointer: String) -> NodeId {
        if let Some(id) = self.ids.get(&pointer) {
            return *id;
        }
        let id = self.pointers.len();
        self.pointers.push(pointer.clone());
        self.ids.insert(pointer, id);
        id
    }

    fn node(&mut self, id: NodeId) -> Node {
        match self.document.pointer(&self.pointers[id]) {
            Some(Value::Bool(true)) => Node::Anything,
            Some(Value::Bool(false)) => Node::Nothing,
            Some(Value::Object(object)) => Node::Rules(Keywords { compiler: self, id, object }.rules()),
            _ => {
                self.problem(id, &[], "must be a schema: an object, or true or false");
                Node::Nothing
            }
        }
    }

    fn problem(&mut self, id: NodeId, below: &[Step], message: impl Into<String>) {
        let steps = steps(self.document, &self.pointers[id]);
        let path = field::path(steps.iter().chain(below));
        self.problems.push(FieldProblem { field: path, message: message.into() });
    }

    fn finish(mut self) -> Result<Schema, Vec<FieldProblem>> {
        if self.problems.is_empty() {
            self.resolve_anchors();
        }
        if self.problems.is_empty()
            && let Some(id) = first_loop(&self.nodes)
        {
            self.problem(
                id,
                &[],
                "refers to itself without going into a property or an item, so validation would never end",
            );
        }
        self.problems.truncate(PROBLEMS_MAX);
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        let asks = |rule: &Rule| matches!(rule, Rule::UnevaluatedItems(_) | Rule::UnevaluatedProperties(_));
        let tracks_evaluated =
            self.nodes.iter().any(|node| matches!(node, Node::Rules(rules) if rules.iter().any(asks)));
        if self.nodes.is_empty() {
            return Err(whole("must be a JSON Schema object"));
        }
        Ok(Schema { nodes: self.nodes, tracks_evaluated })
    }

    fn resolve_anchors(&mut self) {
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

/// The path of a JSON pointer in the document.
fn steps(document: &Value, pointer: &str) -> Vec<Step> {
    let mut value = Some(document);
    let mut steps = Vec::new();
    for token in pointer.split('/').skip(1) {
        let name = token.replace("~1", "/").replace("~0", "~");
        let index = name.parse::<usize>().ok().filter(|_| value.is_some_and(Value::is_array));
        value = match index {
            Some(index) => value.and_then(|value| value.get(index)),
            None => value.and_then(|value| value.get(&name)),
        };
        steps.push(index.map_or(Step::Key(name), Step::Index));
    }
    steps
}

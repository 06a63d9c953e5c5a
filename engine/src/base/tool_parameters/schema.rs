//! A compiled schema: nodes that refer to one another by number, each a list of rules.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Number;

use crate::base::tool_parameters::pattern::Pattern;

/// Which node of [`Schema::nodes`].
pub(super) type NodeId = usize;

/// The whole document; node 0 is its root.
#[derive(Clone)]
pub(super) struct Schema {
    pub nodes: Vec<Node>,
    /// Whether a rule anywhere asks which properties or items were already looked at.
    pub tracks_seen: bool,
}

/// One schema of the document.
#[derive(Clone)]
pub(super) enum Node {
    /// `true`
    Anything,
    /// `false`
    Nothing,
    /// An object; the rules that ask what was already looked at come last.
    Rules(Vec<Rule>),
}

/// One keyword, or the keywords that only mean something together.
#[derive(Clone)]
pub(super) enum Rule {
    Type(Vec<Type>),
    OneOfValues(Values),
    Const(Values),
    Range { bound: Bound, limit: Number },
    MultipleOf(Number),
    Count { what: Counted, bound: Bound, limit: u64 },
    Pattern(Pattern),
    UniqueItems,
    Required(Vec<String>),
    RequiredWith { given: String, required: Vec<String> },
    Ref(NodeId),
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If { condition: NodeId, then: Option<NodeId>, otherwise: Option<NodeId> },
    SchemaWith { given: String, node: NodeId },
    Properties { named: BTreeMap<String, NodeId>, patterns: Vec<(Pattern, NodeId)>, others: Option<NodeId> },
    PropertyNames(NodeId),
    Items { first: Vec<NodeId>, others: Option<NodeId> },
    Contains { node: NodeId, min: u64, max: Option<u64>, counts_as_seen: bool },
    UnseenProperties(NodeId),
    UnseenItems(NodeId),
}

impl Rule {
    /// The schemas that apply to the same value as this rule does.
    pub fn in_place(&self) -> Vec<NodeId> {
        match self {
            Self::Ref(node) | Self::Not(node) | Self::SchemaWith { node, .. } => vec![*node],
            Self::AllOf(nodes) | Self::AnyOf(nodes) | Self::OneOf(nodes) => nodes.clone(),
            Self::If { condition, then, otherwise } => {
                [Some(*condition), *then, *otherwise].into_iter().flatten().collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The values of `enum` or `const`, in the spelling that makes equal values equal texts.
#[derive(Clone)]
pub(super) struct Values {
    pub canonical: BTreeSet<String>,
    /// The values as a person reads them, for the message.
    pub shown: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    AtLeast,
    MoreThan,
    AtMost,
    LessThan,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    Characters,
    Items,
    Properties,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Type {
    Null,
    Boolean,
    Object,
    Array,
    Number,
    Integer,
    String,
}

impl Type {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "object" => Self::Object,
            "array" => Self::Array,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "string" => Self::String,
            _ => return None,
        })
    }

    /// With its article, for messages.
    pub fn article(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "true or false",
            Self::Object => "an object",
            Self::Array => "an array",
            Self::Number => "a number",
            Self::Integer => "a whole number",
            Self::String => "a string",
        }
    }
}

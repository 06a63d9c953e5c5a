//! A compiled schema: nodes with lists of rules, referring to one another by index.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Number;

use crate::base::tool_parameters::pattern::Pattern;

/// Index into [`Schema::nodes`].
pub(super) type NodeId = usize;

/// A compiled document; node 0 is its root.
#[derive(Clone)]
pub(super) struct Schema {
    pub nodes: Vec<Node>,
    /// Whether any rule needs to know which properties or items were evaluated.
    pub tracks_evaluated: bool,
}

#[derive(Clone)]
pub(super) enum Node {
    /// `true`
    Anything,
    /// `false`
    Nothing,
    /// An object; the `unevaluated…` rules come last.
    Rules(Vec<Rule>),
}

/// One keyword, or keywords that have a meaning only together.
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
    Contains { node: NodeId, min: u64, max: Option<u64>, counts_as_evaluated: bool },
    UnevaluatedProperties(NodeId),
    UnevaluatedItems(NodeId),
}

impl Rule {
    /// The schemas that this rule applies to the same value.
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

/// The values of `enum` or `const`, as canonical texts.
#[derive(Clone)]
pub(super) struct Values {
    pub canonical: BTreeSet<String>,
    /// The values for the message.
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

    /// The type with its article, for messages.
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

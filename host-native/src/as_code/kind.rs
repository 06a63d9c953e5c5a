//! The kinds of resources that a folder has, as the table of operations describes them.
use std::sync::OnceLock;

use serde_json::{Map, Value};
use sidetone_engine::interfaces::generated::requests;
use sidetone_engine::operations::by_id;
use sidetone_engine::operations::operation::Operation;

/// The kinds, in the order in which they are applied: each refers only to those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An HTTP tool.
    Tool,
    /// A knowledge document.
    Document,
    /// An assistant.
    Assistant,
    /// A persona.
    Persona,
    /// A scenario.
    Scenario,
    /// A simulation.
    Simulation,
}

/// A field that names other resources: by id in the service, by the stems of their files in a folder.
#[derive(Debug)]
pub struct Reference {
    /// The field in a file.
    pub key: &'static str,
    /// The field of the service.
    pub field: &'static str,
    /// What it names.
    pub kind: Kind,
    /// The operation that sets a list; one name is set with the other fields.
    pub set: Option<&'static str>,
}

/// What differs between kinds.
struct Facts {
    folder: &'static str,
    noun: &'static str,
    /// The ids of the operations end in this, or in its plural.
    operations: [&'static str; 5],
    references: &'static [Reference],
}

const TOOL: Facts = Facts {
    folder: "tools",
    noun: "tool",
    operations: ["list_tools", "get_tool", "create_tool", "update_tool", "delete_tool"],
    references: &[],
};
const DOCUMENT: Facts = Facts {
    folder: "knowledge",
    noun: "knowledge document",
    operations: [
        "list_knowledge_documents",
        "get_knowledge_document",
        "create_knowledge_document",
        "update_knowledge_document",
        "delete_knowledge_document",
    ],
    references: &[],
};
const ASSISTANT: Facts = Facts {
    folder: "assistants",
    noun: "assistant",
    operations: [
        "list_assistants",
        "get_assistant",
        "create_assistant",
        "update_assistant",
        "delete_assistant",
    ],
    references: &[
        Reference { key: "tools", field: "tool_ids", kind: Kind::Tool, set: Some("set_assistant_tools") },
        Reference {
            key: "knowledge",
            field: "knowledge_ids",
            kind: Kind::Document,
            set: Some("set_assistant_knowledge"),
        },
    ],
};
const PERSONA: Facts = Facts {
    folder: "personas",
    noun: "persona",
    operations: [
        "list_simulation_personas",
        "get_simulation_persona",
        "create_simulation_persona",
        "update_simulation_persona",
        "delete_simulation_persona",
    ],
    references: &[],
};
const SCENARIO: Facts = Facts {
    folder: "scenarios",
    noun: "scenario",
    operations: [
        "list_simulation_scenarios",
        "get_simulation_scenario",
        "create_simulation_scenario",
        "update_simulation_scenario",
        "delete_simulation_scenario",
    ],
    references: &[],
};
const SIMULATION: Facts = Facts {
    folder: "simulations",
    noun: "simulation",
    operations: [
        "list_simulations",
        "get_simulation",
        "create_simulation",
        "update_simulation",
        "delete_simulation",
    ],
    references: &[
        Reference { key: "assistant", field: "assistant_id", kind: Kind::Assistant, set: None },
        Reference { key: "persona", field: "persona_id", kind: Kind::Persona, set: None },
        Reference { key: "scenario", field: "scenario_id", kind: Kind::Scenario, set: None },
    ],
};

/// What is done with a resource.
#[derive(Debug, Clone, Copy)]
pub enum Verb {
    /// `GET` of all.
    List,
    /// `GET` of one.
    Get,
    /// `POST`.
    Create,
    /// `PATCH`.
    Update,
    /// `DELETE`.
    Delete,
}

/// A field of a kind, as files have it.
#[derive(Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// The schema of its value.
    pub schema: Value,
    /// The value that it has where a file leaves it out. `None`: the file must have it, or the service chooses.
    pub default: Option<Value>,
    /// Whether every file has it.
    pub required: bool,
}

impl Kind {
    /// All kinds, in the order in which they are applied.
    pub const ALL: [Self; 6] =
        [Self::Tool, Self::Document, Self::Assistant, Self::Persona, Self::Scenario, Self::Simulation];

    const fn facts(self) -> &'static Facts {
        match self {
            Self::Tool => &TOOL,
            Self::Document => &DOCUMENT,
            Self::Assistant => &ASSISTANT,
            Self::Persona => &PERSONA,
            Self::Scenario => &SCENARIO,
            Self::Simulation => &SIMULATION,
        }
    }

    /// The folder of its files.
    pub const fn folder(self) -> &'static str {
        self.facts().folder
    }

    /// The kind whose files are in this folder.
    pub fn of_folder(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.folder() == name)
    }

    /// What it is called.
    pub const fn noun(self) -> &'static str {
        self.facts().noun
    }

    /// The fields that name other resources.
    pub const fn references(self) -> &'static [Reference] {
        self.facts().references
    }

    /// The reference with this key.
    pub fn reference(self, key: &str) -> Option<&'static Reference> {
        self.references().iter().find(|reference| reference.key == key)
    }

    /// The operation.
    pub fn operation(self, verb: Verb) -> &'static Operation {
        operation(self.facts().operations[verb as usize])
    }

    /// Whether the service refuses a write that is based on an old revision.
    pub fn has_revisions(self) -> bool {
        self.operation(Verb::Update).revision
    }

    /// Whether a workspace has each name only once.
    pub const fn has_unique_names(self) -> bool {
        matches!(self, Self::Tool | Self::Document)
    }

    /// The fields of its files.
    pub fn fields(self) -> &'static [Field] {
        static FIELDS: OnceLock<Vec<Vec<Field>>> = OnceLock::new();
        let all = FIELDS.get_or_init(|| Self::ALL.into_iter().map(fields).collect());
        all.get(self as usize).map_or(&[], Vec::as_slice)
    }

    /// The field with this name.
    pub fn field(self, name: &str) -> Option<&'static Field> {
        self.fields().iter().find(|field| field.name == name)
    }

    /// Whether lists leave this field out, so that it is read one by one.
    pub fn is_left_out_of_lists(self, field: &str) -> bool {
        self == Self::Document && field == "content"
    }
}

/// The operation with this id. The table has it: a test looks.
#[expect(clippy::expect_used, reason = "the ids are constants")]
pub fn operation(id: &str) -> &'static Operation {
    by_id(id).expect("an operation of the table")
}

/// The fields of a kind: what its creation takes, with the references under their names in files, and what is attached.
fn fields(kind: Kind) -> Vec<Field> {
    let body = requests(kind.operation(Verb::Create)).body.unwrap_or_default();
    let is_required = |name: &str| {
        body["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name))
    };
    let mut fields = Vec::new();
    let mut attached =
        kind.references().iter().filter(|reference| reference.set.is_some()).map(|reference| {
            let schema = serde_json::json!({"type": "array", "items": {"type": "string"}});
            Field {
                name: reference.key.to_owned(),
                schema,
                default: Some(Value::Array(Vec::new())),
                required: false,
            }
        });
    for (name, schema) in body["properties"].as_object().into_iter().flatten() {
        let reference = kind.references().iter().find(|reference| reference.field == name);
        let default = schema.get("default").cloned().or_else(|| may_be_null(schema).then_some(Value::Null));
        fields.push(Field {
            name: reference.map_or(name.as_str(), |reference| reference.key).to_owned(),
            schema: schema.clone(),
            default: default.map(|default| filled(schema, &default)),
            required: is_required(name),
        });
    }
    // Before what is seldom set.
    let place = fields.iter().position(|field| !field.required).unwrap_or(fields.len());
    for (offset, field) in attached.by_ref().enumerate() {
        fields.insert(place + offset, field);
    }
    // The name comes first.
    fields.sort_by_key(|field| field.name != "name");
    fields
}

fn may_be_null(schema: &Value) -> bool {
    schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "null"))
}

/// Whether a value of this schema is an object or a list.
pub fn has_parts(schema: &Value) -> bool {
    let is = |kind: &Value| kind == "object" || kind == "array";
    is(&schema["type"]) || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(is))
}

/// The value with the defaults of what it leaves out, so that two ways to write the same are equal.
pub fn filled(schema: &Value, value: &Value) -> Value {
    each_part(schema, value, &|schema, map: &mut Map<String, Value>| {
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            if !map.contains_key(name)
                && let Some(default) = default_of(schema)
            {
                map.insert(name.clone(), filled(schema, &default));
            }
        }
    })
}

/// The value without what has its default.
pub fn stripped(schema: &Value, value: &Value) -> Value {
    each_part(schema, value, &|schema, map: &mut Map<String, Value>| {
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            if let (Some(value), Some(default)) = (map.get(name), default_of(schema))
                && filled(schema, value) == filled(schema, &default)
            {
                map.shift_remove(name);
            }
        }
    })
}

fn default_of(schema: &Value) -> Option<Value> {
    schema.get("default").cloned().or_else(|| may_be_null(schema).then_some(Value::Null))
}

/// Changes each object within the value for which the schema names properties.
fn each_part(schema: &Value, value: &Value, change: &dyn Fn(&Value, &mut Map<String, Value>)) -> Value {
    match value {
        Value::Object(map) => {
            let mut changed = Map::new();
            for (name, value) in map {
                let inner = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                changed.insert(name.clone(), each_part(inner, value, change));
            }
            if schema.get("properties").is_some() {
                change(schema, &mut changed);
            }
            Value::Object(changed)
        }
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| each_part(&schema["items"], item, change)).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_has_every_operation() {
        for kind in Kind::ALL {
            for verb in [Verb::List, Verb::Get, Verb::Create, Verb::Update, Verb::Delete] {
                assert!(!kind.operation(verb).path.is_empty());
            }
            for set in kind.references().iter().filter_map(|reference| reference.set) {
                assert!(!operation(set).path.is_empty());
            }
            for reference in kind.references() {
                assert!(reference.kind < kind, "{} come before {}", reference.kind.folder(), kind.folder());
                assert!(kind.field(reference.key).is_some(), "{}", reference.key);
            }
            assert!(kind.field("name").is_some());
            assert!(kind.field("metadata").is_some());
        }
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let speech = Kind::Assistant.field("speech").unwrap();
        let value = json!({"speed": 1.5});
        assert_eq!(filled(&speech.schema, &value)["end_of_turn_min_ms"], 500);
        assert_eq!(stripped(&speech.schema, &filled(&speech.schema, &value)), value);
        assert_eq!(Kind::Assistant.field("first_message").unwrap().default, Some(json!("")));
        assert_eq!(Kind::Assistant.field("model").unwrap().default, None, "the server chooses it");
        assert_eq!(Kind::Persona.field("model").unwrap().default, Some(Value::Null));
        let evaluations = &Kind::Scenario.field("evaluations").unwrap().schema;
        let value = json!([{"kind": "transcript", "includes": "ten"}]);
        assert_eq!(filled(evaluations, &value)[0]["role"], "any");
        assert_eq!(stripped(evaluations, &filled(evaluations, &value)), value);
    }
}

//! The bodies of requests. What is within them, such as an evaluation, is a component with a name, there once.
use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use serde_json::{Map, Value};

use crate::operations::operation::{BodySchema, Presence};
use crate::operations::schema;

const COMPONENTS: &str = "#/components/schemas/";

/// What the bodies refer to.
pub(super) struct Bodies(SchemaGenerator);

impl Bodies {
    pub(super) fn new() -> Self {
        Self(schema::request_generator())
    }

    /// The schema of a body.
    pub(super) fn schema(&mut self, body: BodySchema) -> Value {
        schema::documented_request(body.schema, body.presence == Presence::Partial, &mut self.0)
    }

    /// Adds what the document's bodies refer to. A component of the same name that is another one, because a response has all
    /// of its fields and a request need not, gets `Input` after its name here.
    pub(super) fn merge(mut self, paths: &mut Map<String, Value>, components: &mut Map<String, Value>) {
        let mut own = self.0.take_definitions(true);
        own.values_mut().for_each(schema::normalise);
        let mut wanted: Vec<String> = Vec::new();
        let mut bodies: Vec<&mut Value> = paths
            .values_mut()
            .filter_map(Value::as_object_mut)
            .flat_map(|methods| methods.values_mut())
            .filter_map(|operation| operation.pointer_mut("/requestBody/content/application~1json/schema"))
            .collect();
        for body in &mut bodies {
            references(body, &mut |name| wanted.push(name.clone()));
        }
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        while let Some(name) = wanted.pop() {
            let Some(definition) = own.get_mut(&name).filter(|_| !names.contains_key(&name)) else {
                continue;
            };
            references(definition, &mut |inner| wanted.push(inner.clone()));
            let same = components.get(&name).is_none_or(|known| known == definition);
            names.insert(name.clone(), if same { name } else { format!("{name}Input") });
        }
        let mut rename = |name: &mut String| {
            if let Some(new) = names.get(name) {
                name.clone_from(new);
            }
        };
        for body in bodies {
            references(body, &mut rename);
        }
        for (name, new) in &names {
            if let Some(mut definition) = own.remove(name) {
                references(&mut definition, &mut |name| {
                    if let Some(new) = names.get(name) {
                        name.clone_from(new);
                    }
                });
                components.insert(new.clone(), definition);
            }
        }
        components.sort_keys();
    }
}

/// Shows every name that a schema refers to, and takes what becomes of it.
pub(super) fn references(schema: &mut Value, see: &mut impl FnMut(&mut String)) {
    match schema {
        Value::Object(fields) => {
            for (field, value) in fields {
                match value {
                    Value::String(place) if field == "$ref" => {
                        if let Some(name) = place.strip_prefix(COMPONENTS) {
                            let mut name = name.to_owned();
                            see(&mut name);
                            *place = format!("{COMPONENTS}{name}");
                        }
                    }
                    other => references(other, see),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| references(item, see)),
        _ => {}
    }
}

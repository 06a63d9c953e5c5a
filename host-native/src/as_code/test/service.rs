//! A service in memory that gets the resources of a folder as simulations need them.
use std::collections::HashMap;

use serde_json::{Map, Value, json};
use sidetone_engine::ports::HttpError;

use super::models::{self, is_built_in};
use crate::Sandbox;
use crate::as_code::failure::{Failure, told};
use crate::as_code::folder::{Folder, names, shown};
use crate::as_code::kind::{Kind, Verb, operation};

/// The fields that name a voice or an ear: written conversations have neither, and a provider's is not configured here.
const SPOKEN: [&str; 2] = ["voice", "transcriber"];

/// The service, with what was created in it so far.
pub struct Service<'a> {
    /// Where it runs.
    pub sandbox: Sandbox,
    folder: &'a Folder,
    model: Option<&'a str>,
    ids: HashMap<(Kind, &'a str), String>,
}

impl<'a> Service<'a> {
    /// Without resources yet.
    pub fn new(folder: &'a Folder, model: Option<&'a str>) -> Self {
        // Tools are mocked or fail; their URLs may be those of a developer's machine.
        let sandbox = Sandbox::with_settings(&[("SIDETONE_ALLOW_PRIVATE_TARGETS", "1")]);
        sandbox.answer_http_with(|_| {
            Err(HttpError::Failed(
                "a test calls no endpoints; the scenario needs tool_mocks for this tool".to_owned(),
            ))
        });
        Self { sandbox, folder, model, ids: HashMap::new() }
    }

    /// The id of the resource of a file, which is created when it is needed first.
    pub fn id(&mut self, kind: Kind, stem: &'a str) -> Result<String, Failure> {
        if let Some(id) = self.ids.get(&(kind, stem)) {
            return Ok(id.clone());
        }
        let folder = self.folder;
        let entry =
            folder.of(kind).get(stem).ok_or_else(|| Failure(format!("{} is missing", shown(kind, stem))))?;
        let mut body = Map::new();
        let mut attached = Vec::new();
        for (name, value) in &entry.stated {
            let Some(reference) = kind.reference(name) else {
                body.insert(name.clone(), value.clone());
                continue;
            };
            let ids: Vec<String> = names(value)
                .into_iter()
                .map(|name| self.id(reference.kind, name))
                .collect::<Result<_, _>>()?;
            match reference.set {
                Some(set) => attached.push((set, json!({ (reference.field): ids }))),
                None => drop(body.insert(reference.field.to_owned(), json!(ids.first()))),
            }
        }
        self.adapt(kind, &mut body);
        let refused = |answer: &Value| Failure(format!("{}: {}", shown(kind, stem), problem(answer)));
        let created = self.sandbox.post(kind.operation(Verb::Create).path, Value::Object(body));
        if created.status != 201 {
            return Err(refused(&created.json));
        }
        let id = created["id"].as_str().unwrap_or_default().to_owned();
        for (set, body) in attached {
            let set = self.sandbox.put(&operation(set).path.replace("{id}", &id), body);
            if set.status != 200 {
                return Err(refused(&set.json));
            }
        }
        self.ids.insert((kind, stem), id.clone());
        Ok(id)
    }

    /// Whether a scenario says what `{{now}}` is.
    pub fn states_now(&self, scenario: &str) -> bool {
        let variables =
            self.folder.of(Kind::Scenario).get(scenario).and_then(|entry| entry.stated.get("variables"));
        variables.is_some_and(|variables| variables.get("now").is_some())
    }

    /// What cannot be reached from here is left out, or replaced as the command says.
    fn adapt(&self, kind: Kind, body: &mut Map<String, Value>) {
        if kind == Kind::Assistant {
            for field in SPOKEN {
                if body.get(field).and_then(Value::as_str).is_some_and(|name| !is_built_in(name)) {
                    body.remove(field);
                }
            }
        }
        if let Some(model) = self.model {
            for field in models::fields(kind) {
                match kind {
                    Kind::Assistant => drop(body.insert((*field).to_owned(), json!(model))),
                    // Theirs is the assistant's.
                    _ => drop(body.remove(*field)),
                }
            }
        }
    }
}

/// What the service says is wrong.
pub fn problem(answer: &Value) -> String {
    told(&answer["error"], "  ").unwrap_or_else(|| "no answer".to_owned())
}

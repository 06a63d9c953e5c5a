//! Runs an operation for REST or MCP: checks the input, runs the operation, repeats it after a concurrent change of the
//! data it read, replays the stored response of an Idempotency-Key, and adds secrets.
use serde_json::{Map, Value};

use crate::base::error::{Code, Error, FieldProblem};
use crate::base::field;
use crate::base::json;
use crate::base::limits::{STALE_ATTEMPTS_MAX, TEST_TOKEN_SECONDS_MAX};
use crate::base::phone::E164;
use crate::base::whole_number;
use crate::interfaces::api::Api;
use crate::interfaces::generated::RequestSchemas;
use crate::live;
use crate::operations::all_problems;
use crate::operations::context::{Context, Identity};
use crate::operations::following::Follow;
use crate::operations::id_kinds;
use crate::operations::operation::{Effects, File, Input, Next, Operation, Output};
use crate::operations::validate::{self, Place, Strictness};
use crate::storage::fault::Fault;
use crate::storage::idempotency::{Idempotency, OneTimeSecret, Stored};
use crate::storage::signing::SecretOwner;

/// A parsed request of REST or MCP, not validated yet.
pub struct Raw {
    /// The path's values, decoded, in order.
    pub path: Vec<String>,
    /// The query's values: texts from REST, any JSON from MCP.
    pub query: Map<String, Value>,
    /// The body; `None` where the operation takes none.
    pub body: Option<Value>,
    /// If-Match.
    pub if_revision: Option<i64>,
    /// Idempotency-Key.
    pub idempotency_key: Option<String>,
    /// Last-Event-ID; 0 without it.
    pub after_event: i64,
    /// Whether texts are converted into what the schema asks for.
    pub strictness: Strictness,
    /// What is already known to be wrong.
    pub problems: Vec<FieldProblem>,
}

/// An operation's answer, ready to send.
pub struct Answer {
    /// 200, 201 or 204.
    pub status: u16,
    /// The body, with the secret in it.
    pub body: Option<String>,
    /// The revision for `ETag`.
    pub etag: Option<i64>,
    /// Whether it repeats an earlier response.
    pub replayed: bool,
    /// What is sent in place of a body.
    pub file: Option<Box<File>>,
    /// What is followed: a stream of events is sent in place of the body.
    pub follow: Option<Follow>,
    /// Where a list continues.
    pub next: Option<Next>,
    /// Whether the body has a secret in it that is shown only this once.
    pub reveals: bool,
}

/// Runs `operation`.
pub async fn dispatch(
    api: &Api,
    context: &mut Context,
    operation: &'static Operation,
    raw: Raw,
) -> Result<Answer, Fault> {
    let answer = run(api, context, operation, raw).await;
    context.note_key_use().await;
    answer
}

async fn run(
    api: &Api,
    context: &mut Context,
    operation: &'static Operation,
    mut raw: Raw,
) -> Result<Answer, Fault> {
    context.running(operation.id);
    context.check_role(operation.for_admins)?;
    if operation.effects != Effects::Read {
        context.audit_as(operation.id, raw.path.first().cloned());
    }
    let schemas = api.interfaces().schemas(operation)?;
    let input = match checked(schemas, context, operation, &mut raw) {
        Ok(input) => input,
        Err(error) => {
            // Without a key, a client learns nothing about the form of a request.
            authenticate(context).await?;
            let body = raw.body.as_ref().and_then(Value::as_object);
            return Err(complete(error, operation, schemas, body, false, context).into());
        }
    };
    for _ in 0..STALE_ATTEMPTS_MAX {
        let outcome = match (operation.run)(context, &input).await {
            // The operation may have refused before it asked storage anything: whoever has no key
            // is told so first, and an answer stored under an Idempotency-Key stands.
            Err(Fault::Refused(error)) if error.code != Code::Unauthorized => {
                context.authenticate().await.and_then(|_| {
                    let error = id_kinds::explain(error, operation, &input.path);
                    Err(complete(error, operation, schemas, Some(&input.body), true, context).into())
                })
            }
            outcome => outcome,
        };
        match outcome {
            Ok(output) => return answer(context, output, false),
            Err(Fault::Stale) => {
                context.restart();
                // The role of a person may be what has changed.
                context.check_role(operation.for_admins)?;
            }
            Err(Fault::Replay(stored)) => {
                if let Some(error) = stored.failure() {
                    return Err(error.into());
                }
                let Stored { status, body, etag, reveal } = *stored;
                let output = Output { etag, reveal, ..Output::stored(status, body) };
                return answer(context, output, true);
            }
            Err(fault) => return Err(fault),
        }
    }
    Err(Fault::Stale)
}

/// Looks up the key, also at a bootstrap key's first use.
pub async fn authenticate(context: &mut Context) -> Result<Identity, Fault> {
    match context.authenticate().await {
        Err(Fault::Stale) => context.authenticate().await,
        other => other,
    }
}

/// The input of the operation. Problems of the query and of the body are reported together.
fn checked(
    schemas: &RequestSchemas,
    context: &mut Context,
    operation: &'static Operation,
    raw: &mut Raw,
) -> Result<Input, Error> {
    let mut problems = std::mem::take(&mut raw.problems);
    let query = checked_query(schemas, operation, raw, &mut problems)?;
    if let (Some(schema), Some(body)) = (&schemas.body, &mut raw.body) {
        let of_body = validate::problems(schema, body, raw.strictness, Place::Body);
        // An argument that belongs into the body is named once, with its place.
        let is_beside = |field: &str| {
            raw.strictness == Strictness::Coerce && problems.iter().any(|known| known.field == field)
        };
        let is_told = |one: &FieldProblem| body.get(&one.field).is_none() && is_beside(&one.field);
        let of_body: Vec<FieldProblem> = of_body.into_iter().filter(|one| !is_told(one)).collect();
        problems.extend(of_body);
    }
    if !problems.is_empty() {
        problems.extend(wrong_number(operation, raw));
    }
    validate::refuse(&problems)?;
    let body = match raw.body.take() {
        Some(Value::Object(map)) if schemas.body.is_some() => map,
        _ => Map::new(),
    };
    let path = std::mem::take(&mut raw.path);
    let idempotency = match raw.idempotency_key.take() {
        Some(key) => {
            let (query, body) = (Value::Object(query.clone()), Value::Object(body.clone()));
            Some(Idempotency::new(&key, operation.id, &path, &query, &body)?)
        }
        None => None,
    };
    context.set_idempotency(idempotency);
    Ok(Input { path, query, body, if_revision: raw.if_revision, after_event: raw.after_event })
}

/// The error with the other problems of the body.
fn complete(
    error: Error,
    operation: &Operation,
    schemas: &RequestSchemas,
    body: Option<&Map<String, Value>>,
    passed_schema: bool,
    context: &Context,
) -> Error {
    match (operation.body, &schemas.body, body) {
        (Some(shape), Some(schema), Some(body)) => {
            all_problems::complete(error, shape, schema, body, passed_schema, context.services.config())
        }
        _ => error,
    }
}

/// What is wrong with a telephone number in the path. Alone it is refused by its operation, with a code of its own.
fn wrong_number(operation: &Operation, raw: &Raw) -> Option<FieldProblem> {
    let mut named = operation.path_names().zip(&raw.path);
    let (name, number) = named.find(|(name, _)| *name == "number")?;
    E164::parse(number).err().map(|error| FieldProblem::new(name, error.to_string()))
}

/// Query values arrive as texts (REST) or JSON (MCP) and obey the same rules: the wrong form is a 400, a value out of
/// range or an unknown name a 422.
fn checked_query(
    schemas: &RequestSchemas,
    operation: &'static Operation,
    raw: &mut Raw,
    problems: &mut Vec<FieldProblem>,
) -> Result<Map<String, Value>, Error> {
    let sent = std::mem::take(&mut raw.query);
    let schema = schemas.query.as_ref();
    if schema.is_none() && sent.is_empty() {
        return Ok(sent);
    }
    let nothing = Value::Object(Map::from_iter([("additionalProperties".to_owned(), Value::Bool(false))]));
    let schema = schema.unwrap_or(&nothing);
    let mut typed = Map::new();
    let mut malformed = Vec::new();
    for (name, value) in gathered(schema, sent, &mut malformed) {
        let Some(kind) = schema["properties"][&name]["type"].as_str() else {
            // Unknown: refused below, by name.
            typed.insert(name, value);
            continue;
        };
        let value = match (kind, value) {
            ("integer", value @ (Value::String(_) | Value::Number(_))) => {
                match whole_number::from_value(&value) {
                    Some(number) => number.into(),
                    None => {
                        malformed.push(FieldProblem::new(name, "must be a whole number, such as 20"));
                        continue;
                    }
                }
            }
            ("string", Value::String(text)) => match id_kinds::wrong_form(&name, &text) {
                Some(message) => {
                    malformed.push(FieldProblem::new(name, message));
                    continue;
                }
                None => text.into(),
            },
            // A word of an enum, as JSON has it.
            ("string", word @ (Value::Bool(_) | Value::Null))
                if raw.strictness == Strictness::Coerce
                    && takes_word(&schema["properties"][&name], &word) =>
            {
                word.to_string().into()
            }
            ("object", value) => match object(value, raw.strictness) {
                Some(entries) => entries.into(),
                None => {
                    let message = format!(
                        "must be an object; in a query, each entry is a parameter: {name}.<name>=<value>"
                    );
                    malformed.push(FieldProblem::new(name, message));
                    continue;
                }
            },
            ("boolean", value @ Value::Bool(_)) => value,
            ("boolean", Value::String(text)) if text == "true" || text == "1" => Value::Bool(true),
            ("boolean", Value::String(text)) if text == "false" || text == "0" => Value::Bool(false),
            ("boolean", _) => {
                malformed.push(FieldProblem::new(name, "must be true or false"));
                continue;
            }
            (kind, _) => {
                malformed.push(FieldProblem::new(name, format!("must be of type {kind}")));
                continue;
            }
        };
        typed.insert(name, value);
    }
    if !malformed.is_empty() && problems.is_empty() {
        return Err(Error::fields(Code::InvalidParameter, &malformed));
    }
    problems.extend(malformed);
    let place = match raw.strictness {
        Strictness::Strict => Place::Query,
        Strictness::Coerce => Place::Arguments(operation, schemas.body.as_ref()),
    };
    let mut value = Value::Object(typed);
    problems.extend(validate::problems(schema, &mut value, Strictness::Strict, place));
    match value {
        Value::Object(typed) => Ok(typed),
        _ => Ok(Map::new()),
    }
}

/// Whether `true`, `false` or `null` is one of the words that a schema allows.
fn takes_word(schema: &Value, word: &Value) -> bool {
    let words = schema["enum"].as_array();
    words.is_some_and(|words| words.iter().any(|one| one.as_str() == Some(word.to_string().as_str())))
}

/// The object that was sent; over MCP also as a text.
fn object(value: Value, strictness: Strictness) -> Option<Map<String, Value>> {
    match (value, strictness) {
        (Value::Object(entries), _) => Some(entries),
        (Value::String(text), Strictness::Coerce) => match json::read(text.as_bytes()) {
            Ok(Value::Object(entries)) => Some(entries),
            _ => None,
        },
        _ => None,
    }
}

/// The parameters, with the entries of an object put together: `metadata.name=value`, and `metadata[name]=value`, as OpenAPI's
/// clients write it.
fn gathered(
    schema: &Value,
    sent: Map<String, Value>,
    malformed: &mut Vec<FieldProblem>,
) -> Map<String, Value> {
    let object_of = |name: &str| {
        let (object, entry) = name.split_once(['.', '['])?;
        let is_object = schema["properties"][object]["type"] == "object";
        let entry = match name.as_bytes().get(object.len()) {
            Some(b'[') => entry.strip_suffix(']')?,
            _ => entry,
        };
        is_object.then(|| (object.to_owned(), entry.to_owned()))
    };
    let mut all = Map::new();
    for (name, value) in sent {
        match object_of(&name) {
            None => drop(all.insert(name, value)),
            Some((object, entry)) => match all.entry(object).or_insert_with(|| Map::new().into()) {
                Value::Object(entries) if !entries.contains_key(&entry) => drop(entries.insert(entry, value)),
                _ => {
                    malformed.push(FieldProblem::new(field::shortened(&name), "is given twice; give it once"))
                }
            },
        }
    }
    all
}

fn answer(context: &Context, output: Output, replayed: bool) -> Result<Answer, Fault> {
    let Output { status, body, etag, reveal, file, follow, next } = output;
    let reveals = reveal.is_some();
    let body = match (body, reveal) {
        (Some(body), Some(reveal)) => Some(with_secret(context, &body, &reveal)?),
        (body, _) => body,
    };
    Ok(Answer { status, body, etag, replayed, file, follow, next, reveals })
}

/// By how much the clocks of hosts and isolates may differ.
const CLOCKS_DIFFER_MS: i64 = 60_000;

fn with_secret(context: &Context, body: &str, reveal: &OneTimeSecret) -> Result<String, Fault> {
    let server_secret = &context.services.config().secret;
    let secrets: Vec<(&str, Value)> = match reveal {
        OneTimeSecret::Tool { id, version, origin } => {
            vec![("signing_secret", origin.secret(server_secret, SecretOwner::Tool(id), *version).into())]
        }
        OneTimeSecret::Webhook { id, version, origin } => {
            vec![("signing_secret", origin.secret(server_secret, SecretOwner::Webhook(id), *version).into())]
        }
        OneTimeSecret::ApiKey { key } => {
            vec![("key", key.as_ref().map_or(Value::Null, |key| key.reveal().into()))]
        }
        // A stored response that came from another host: its links were signed there, or by nobody, as none is valid for longer.
        OneTimeSecret::TestToken { token }
            if token.workspace_id != *context.workspace_id()?
                || token.expires_at_ms
                    > context.now_ms + TEST_TOKEN_SECONDS_MAX * 1_000 + CLOCKS_DIFFER_MS =>
        {
            ["url", "websocket_url", "token"].map(|name| (name, Value::Null)).into()
        }
        OneTimeSecret::TestToken { token } => {
            let token = token.sign(server_secret)?;
            let base_url = &context.services.config().base_url;
            vec![
                ("url", live::page_url(base_url, &token).into()),
                ("websocket_url", live::socket_url(base_url, &token).into()),
                ("token", token.into()),
            ]
        }
    };
    let mut map: Map<String, Value> = serde_json::from_str(body)
        .map_err(|error| Fault::Bug(format!("an answer is not an object: {error}")))?;
    map.extend(secrets.into_iter().map(|(name, secret)| (name.to_owned(), secret)));
    Ok(Value::Object(map).to_string())
}

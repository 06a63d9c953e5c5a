//! How servers refuse a field that they do not know: each has words of its own.
use serde_json::{Value, json};

/// A refusal of a field: its status and its body.
type Refusal = fn(&str, &Value) -> (u16, String);

/// The fields that strict servers refuse, one at a time.
const REFUSED: [&str; 2] = ["max_completion_tokens", "seed"];

/// The forms by name; the model `strict-<name>` uses it.
pub const FORMS: &[(&str, Refusal)] = &[
    ("openai", |name, _| {
        let message = format!("Unsupported parameter: '{name}' is not supported with this model.");
        let error = json!({"message": message, "type": "invalid_request_error", "param": name, "code": "unsupported_parameter"});
        (400, json!({ "error": error }).to_string())
    }),
    ("mistral", |name, body| {
        let detail = json!([{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted", "input": body[name]}]);
        let error = json!({"object": "error", "message": {"detail": detail}, "type": "invalid_request_error", "param": null, "code": null});
        (422, error.to_string())
    }),
    ("fastapi", |name, body| {
        // The whole request is in it, with the names of all other fields.
        let detail = json!([{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted", "input": body}]);
        (422, json!({ "detail": detail }).to_string())
    }),
    ("vllm", |name, _| {
        let message = format!(
            "[{{'type': 'extra_forbidden', 'loc': ('body', '{name}'), 'msg': 'Extra inputs are not permitted'}}]"
        );
        (400, json!({"object": "error", "message": message, "type": "BadRequestError", "param": null, "code": 400}).to_string())
    }),
    ("google", |name, _| {
        let message = format!("Invalid JSON payload received. Unknown name \"{name}\": Cannot find field.");
        (400, json!([{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]).to_string())
    }),
    ("groq", |name, _| {
        let error =
            json!({"message": format!("property '{name}' is unsupported"), "type": "invalid_request_error"});
        (400, json!({ "error": error }).to_string())
    }),
    ("text", |name, _| (400, format!("Failed to deserialize the JSON body: unknown field `{name}`"))),
    ("elsewhere", |name, _| {
        let reasons = json!([{"why": "unexpected", "field": {"path": ["$", name]}}]);
        (418, json!({"status": "refused", "reasons": reasons}).to_string())
    }),
    ("in-200", |name, _| {
        let error = json!({"message": format!("unknown argument: {name}"), "type": "invalid_request_error", "code": 400});
        (200, json!({ "error": error }).to_string())
    }),
];

/// The refusal of a model `strict-<name>`; `None` when it accepts the request.
pub(super) fn of(model: &str, body: &Value) -> Option<(u16, String)> {
    let name = REFUSED.into_iter().find(|name| body.get(*name).is_some())?;
    let (_, form) = FORMS.iter().find(|(form, _)| Some(*form) == model.strip_prefix("strict-"))?;
    Some(form(name, body))
}

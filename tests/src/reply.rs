//! Responses, checked against the contract's rules for every response.
use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};
use sidetone_engine::base::error::Code;

/// An HTTP response.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as it was sent.
    pub body: Bytes,
    /// The body as JSON; null when it is empty or something else.
    pub json: Value,
}

impl std::ops::Index<&str> for Reply {
    type Output = Value;

    fn index(&self, name: &str) -> &Value {
        &self.json[name]
    }
}

impl Reply {
    /// Builds a reply from its parts.
    pub fn new(status: u16, headers: HeaderMap, body: Bytes) -> Self {
        let json = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Self { status, headers, body, json }
    }

    /// Panics unless the contract allows the response: no server error, always a request id, and the envelope around every error.
    /// MCP's own errors are JSON-RPC errors.
    pub fn sound(self) -> Self {
        assert!(self.status != 500, "an internal error: {self:?}");
        let request_id = self.header("x-request-id").unwrap_or_default();
        assert!(request_id.starts_with("req_"), "no X-Request-Id: {self:?}");
        if self.status < 400 || self.json["jsonrpc"] == "2.0" {
            return self;
        }
        let code = self.code();
        let known = Code::ALL.iter().find(|known| known.as_str() == code);
        let Some(known) = known else { panic!("not an envelope with a known code: {self:?}") };
        assert_eq!(known.status(), self.status, "{self:?}");
        let error = &self.json["error"];
        assert!(error["message"].as_str().is_some_and(|message| message.len() > 10), "{self:?}");
        assert_eq!(error["request_id"], request_id, "{self:?}");
        assert!(error.get("details").is_none_or(Value::is_object), "{self:?}");
        assert!(self.body.len() < 64 * 1024, "an error of {} bytes", self.body.len());
        self
    }

    /// Expects 200.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.status, 200, "{self:?}");
        self
    }

    /// Expects 201.
    #[track_caller]
    pub fn created(self) -> Self {
        assert_eq!(self.status, 201, "{self:?}");
        self
    }

    /// Expects 204 without a body.
    #[track_caller]
    pub fn empty(self) -> Self {
        assert_eq!(self.status, 204, "{self:?}");
        assert!(self.body.is_empty(), "{self:?}");
        self
    }

    /// Expects an error with this code and its status.
    #[track_caller]
    pub fn refused(self, code: &str) -> Self {
        let known = Code::ALL.iter().find(|known| known.as_str() == code).expect("a code of the contract");
        assert_eq!((self.status, self.code()), (known.status(), code), "{self:?}");
        self
    }

    /// Expects an error that names exactly these fields, in this order.
    #[track_caller]
    pub fn naming(self, fields: &[&str]) -> Self {
        assert_eq!(self.fields(), fields, "{self:?}");
        self
    }

    /// The error's code; empty when there is none.
    pub fn code(&self) -> &str {
        self.json["error"]["code"].as_str().unwrap_or_default()
    }

    /// The fields an error names.
    pub fn fields(&self) -> Vec<&str> {
        fields_of(&self.json)
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The path and query of the next part of a list, from the `Link` header.
    #[track_caller]
    pub fn next(&self) -> Option<String> {
        let link = self.header("link")?;
        let url =
            link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\"")).expect("rel=next");
        let path = url.splitn(4, '/').nth(3).expect("an absolute URL");
        Some(format!("/{path}"))
    }

    /// The ids of a list, in order.
    #[track_caller]
    pub fn ids(&self) -> Vec<String> {
        ids_of(&self.json)
    }
}

/// The result of an MCP tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolReply {
    /// Whether the result is an error.
    pub is_error: bool,
    /// The REST body: the text block as JSON.
    pub json: Value,
    /// Whether this repeats a stored response.
    pub replayed: bool,
    /// What continues the list, if there is more.
    pub next: Option<String>,
    /// How to ask for less, where the result is large.
    pub advice: Option<String>,
}

impl std::ops::Index<&str> for ToolReply {
    type Output = Value;

    fn index(&self, name: &str) -> &Value {
        &self.json[name]
    }
}

/// How to ask for less, if the block says that.
fn advice(block: &Value) -> Option<String> {
    let text: Value = serde_json::from_str(block["text"].as_str()?).ok()?;
    Some(text["note"].as_str()?.to_owned())
}

impl ToolReply {
    /// Parses a `tools/call` result; panics unless its form works for all clients.
    #[track_caller]
    pub fn read(reply: &Reply) -> Self {
        let result = &reply.json["result"];
        assert!(result.is_object(), "no tool result: {reply:?}");
        let content = result["content"].as_array().expect("content is a list");
        assert_eq!(content[0]["type"], "text", "{result}");
        let text = content[0]["text"].as_str().expect("a text block");
        let json: Value = serde_json::from_str(text).expect("the text block is the REST body");
        let structured = &result["structuredContent"];
        let next = match (&json, structured["next"].as_str()) {
            (Value::Array(_), Some(next)) => {
                assert_eq!(*structured, json!({"items": json, "next": next}));
                Some(next.to_owned())
            }
            (Value::Array(_), None) => {
                assert_eq!(*structured, json!({ "items": json }));
                None
            }
            _ => {
                assert_eq!(*structured, json);
                None
            }
        };
        // Clients that show only texts get it in a text of its own.
        let more: Vec<Value> = next
            .iter()
            .map(|next| json!({"type": "text", "text": json!({ "next": next }).to_string()}))
            .collect();
        let texts = content[1..].iter().filter(|block| advice(block).is_none()).cloned();
        assert_eq!(texts.collect::<Vec<_>>(), more, "{result}");
        assert!(structured.is_object(), "{result}");
        let is_error = result["isError"].as_bool().expect("isError is always said");
        assert_eq!(is_error, json.get("error").is_some_and(|error| error.get("code").is_some()), "{result}");
        let replayed = result["_meta"]["sidetone/idempotent-replayed"] == json!(true);
        let advice = content.last().and_then(advice).filter(|_| content.len() > 1);
        Self { is_error, json, replayed, next, advice }
    }

    /// Expects success.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert!(!self.is_error, "{self:?}");
        self
    }

    /// Expects an error with this code.
    #[track_caller]
    pub fn refused(self, code: &str) -> Self {
        assert!(self.is_error, "{self:?}");
        assert_eq!(self.code(), code, "{self:?}");
        self
    }

    /// Expects an error that names exactly these fields, in this order.
    #[track_caller]
    pub fn naming(self, fields: &[&str]) -> Self {
        assert_eq!(self.fields(), fields, "{self:?}");
        self
    }

    /// The error's code; empty when there is none.
    pub fn code(&self) -> &str {
        self.json["error"]["code"].as_str().unwrap_or_default()
    }

    /// The fields an error names.
    pub fn fields(&self) -> Vec<&str> {
        fields_of(&self.json)
    }
}

/// The ids of a JSON list of resources.
#[track_caller]
pub fn ids_of(list: &Value) -> Vec<String> {
    let list = list.as_array().unwrap_or_else(|| panic!("not a list: {list}"));
    list.iter().map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
}

fn fields_of(json: &Value) -> Vec<&str> {
    let fields = json["error"]["details"]["fields"].as_array();
    fields.into_iter().flatten().filter_map(|field| field["field"].as_str()).collect()
}

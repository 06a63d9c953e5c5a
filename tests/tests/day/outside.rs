//! What the service calls: a model, tools, receivers of events, a carrier. Each takes its (virtual) time, or more than it
//! is given.
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::{Value, json};
use sidetone_engine::ports::{BoxFuture, Clock, Http, HttpError, HttpReply, HttpRequest};

use crate::time::{Time, TimePort, lock};

/// What an answer of the model costs at most, in millionths of a US dollar: see [`Outside::model`] and [`settings`].
pub const ANSWER_MICROUSD: i64 = 360;
const INPUT_TOKENS: i64 = 100;
const OUTPUT_TOKENS: i64 = 20;
/// How long the model thinks.
const MODEL_MS: (i64, i64) = (400, 1_100);
const QUICK_MS: i64 = 40;

/// A receiver that answers, for the workspace with this number.
pub fn receiver_of(workspace: usize) -> String {
    format!("https://receiver.example/well/{workspace}")
}

/// A receiver that never answers.
pub const HANGING_RECEIVER: &str = "https://receiver.example/hang";
/// A tool that never answers.
pub const HANGING_TOOL: &str = "https://tool.example/hang";

/// The settings that go with it.
pub fn settings() -> Vec<(&'static str, String)> {
    let rates =
        json!({"input_microusd_per_1m_tokens": 2_000_000, "output_microusd_per_1m_tokens": 8_000_000});
    vec![
        ("SIDETONE_PROVIDERS", json!({"paid": {"base_url": "https://model.example/v1"}}).to_string()),
        ("SIDETONE_MODELS", json!({"paid/model": rates}).to_string()),
    ]
}

/// An event that a receiver has accepted for the first time.
#[derive(Debug, Clone)]
pub struct Arrival {
    pub workspace: usize,
    pub event: Value,
    pub at_ms: i64,
    /// Whether the receiver was asked before and refused.
    pub retried: bool,
}

/// The outside world.
pub struct Outside {
    time: Arc<Time>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    arrivals: Vec<Arrival>,
    /// Ids of events that a receiver has refused once.
    refused: std::collections::BTreeSet<String>,
    receivers_asked: u64,
    /// Orders to the carrier, newest last.
    orders: Vec<Value>,
    models_asked: u64,
}

impl Outside {
    pub fn new(time: &Arc<Time>) -> Arc<Self> {
        Arc::new(Self { time: time.clone(), seen: Mutex::default() })
    }

    /// What receivers have accepted so far.
    pub fn arrivals(&self) -> Vec<Arrival> {
        lock(&self.seen).arrivals.clone()
    }

    /// The last order to the carrier, and the carrier's id of its call.
    pub fn last_order(&self) -> Option<(Value, String)> {
        let seen = lock(&self.seen);
        seen.orders.last().map(|order| (order.clone(), carrier_call_id(seen.orders.len())))
    }

    async fn answer(&self, request: HttpRequest) -> Result<HttpReply, HttpError> {
        let now_ms = TimePort(self.time.clone()).now_ms();
        let url = request.url.clone();
        if url.ends_with("/hang") {
            self.time.until(now_ms + i64::try_from(request.deadline_ms).unwrap_or(i64::MAX)).await;
            return Err(HttpError::Timeout);
        }
        if url.starts_with("https://model.example/") {
            return self.model(&request, now_ms).await;
        }
        if let Some((_, workspace)) = url.split_once("/well/") {
            let workspace =
                workspace.parse().map_err(|_| HttpError::Failed("no such receiver".to_owned()))?;
            self.time.until(now_ms + QUICK_MS).await;
            return Ok(self.receive(workspace, &request, now_ms));
        }
        if url.starts_with("http://telnyx.example/") {
            let mut seen = lock(&self.seen);
            if url.ends_with("/v2/calls") {
                seen.orders.push(serde_json::from_slice(&request.body).unwrap_or_default());
            }
            let data = json!({"call_control_id": carrier_call_id(seen.orders.len())});
            return Ok(reply(200, "application/json", json!({"data": data}).to_string()));
        }
        Err(HttpError::Failed(format!("nobody is at {url}")))
    }

    /// An answer of a fixed price, after a time that depends on the question.
    async fn model(&self, request: &HttpRequest, now_ms: i64) -> Result<HttpReply, HttpError> {
        let nth = {
            let mut seen = lock(&self.seen);
            seen.models_asked += 1;
            seen.models_asked
        };
        let (least, range) = MODEL_MS;
        let thinks_ms = least + i64::try_from(request.body.len() + nth as usize * 37).unwrap_or(0) % range;
        self.time.until(now_ms + thinks_ms).await;
        let question = String::from_utf8_lossy(&request.body);
        let text = match question.contains("You look back at") {
            true => json!({"summary": "They asked and were told.", "sentiment": "positive"}).to_string(),
            false => format!("This is answer number {nth}."),
        };
        let delta = json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]});
        let usage = json!({"choices": [], "usage": {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS}});
        let body = format!("data: {delta}\n\ndata: {usage}\n\ndata: [DONE]\n\n");
        Ok(reply(200, "text/event-stream", body))
    }

    /// Every ninth request fails at first.
    fn receive(&self, workspace: usize, request: &HttpRequest, at_ms: i64) -> HttpReply {
        let event: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let id = event["id"].as_str().unwrap_or_default().to_owned();
        let mut seen = lock(&self.seen);
        seen.receivers_asked += 1;
        let retried = seen.refused.contains(&id);
        if seen.receivers_asked.is_multiple_of(9) && !retried {
            seen.refused.insert(id);
            return reply(503, "text/plain", "later".to_owned());
        }
        seen.arrivals.push(Arrival { workspace, event, at_ms, retried });
        reply(200, "text/plain", "ok".to_owned())
    }
}

fn carrier_call_id(nth: usize) -> String {
    format!("v3:call-{nth}")
}

fn reply(status: u16, content_type: &str, body: String) -> HttpReply {
    let headers = vec![("content-type".to_owned(), content_type.to_owned())];
    HttpReply { status, headers, body: Bytes::from(body) }
}

/// The outside world as a port.
pub struct OutsidePort(pub Arc<Outside>);

impl Http for OutsidePort {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpReply, HttpError>> {
        Box::pin(self.0.answer(request))
    }
}

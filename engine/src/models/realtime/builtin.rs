//! The server of `builtin/rules`: it speaks the protocol inside the process, so that a realtime assistant can be tried out for
//! nothing. It reads what it is sent as a server would, and answers at once; its audio is the tone code.
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{RealtimeSettings, wire};
use crate::conversation::{AssistantReply, AssistantTurn, Message, ToolSpec};
use crate::models::AssistantInUse;
use crate::models::asking::assistant::END_CALL;
use crate::ports::SocketMessage;
use crate::speech::audio::Rate;
use crate::speech::exchange::{Arrival, ExchangeId, Transmit};
use crate::speech::tone::ToneEncoder;
use crate::speech::transcribers::encoded;

/// Audio in a message.
const PIECE_MS: i64 = 1_000;

pub(super) struct Builtin {
    assistant: Arc<AssistantInUse>,
    /// Those of the conversation, without the one that ends the call.
    tools: Vec<ToolSpec>,
    hangs_up: bool,
    /// Selects the phrasing.
    pub(super) seed: u64,
    rate: Rate,
    /// The conversation, by the ids of its items.
    items: Vec<(String, Message)>,
    made: u64,
    told: Vec<String>,
}

impl Builtin {
    pub(super) fn new(assistant: Arc<AssistantInUse>, settings: &RealtimeSettings, rate: Rate) -> Self {
        let mut tools = settings.tools.clone();
        tools.truncate(tools.len() - usize::from(settings.hangs_up));
        Self {
            assistant,
            tools,
            hangs_up: settings.hangs_up,
            seed: 0,
            rate,
            items: Vec::new(),
            made: 0,
            told: Vec::new(),
        }
    }

    /// What arrives after this was transmitted.
    pub(super) fn transmitted(&mut self, transmit: Transmit) -> Vec<(ExchangeId, Arrival)> {
        let (id, mut arrivals) = match transmit {
            Transmit::Connect { id, .. } => {
                self.items.clear();
                (id, vec![(id, Arrival::Opened)])
            }
            Transmit::Send { id, message: SocketMessage::Text(text) } => {
                self.read(&serde_json::from_str(&text).unwrap_or_default());
                (id, Vec::new())
            }
            _ => return Vec::new(),
        };
        let told = self.told.drain(..).map(SocketMessage::Text);
        arrivals.extend(told.map(|message| (id, Arrival::Message(message))));
        arrivals
    }

    fn read(&mut self, event: &Value) {
        let item = wire::text(event, "/item_id");
        match wire::text(event, "/type") {
            "conversation.item.create" => self.create(event),
            "conversation.item.delete" => self.items.retain(|(id, _)| id != item),
            "conversation.item.truncate" => {
                let heard_ms = event["audio_end_ms"].as_i64().unwrap_or(0);
                if let Some((_, Message::Assistant { text })) =
                    self.items.iter_mut().find(|(id, _)| id == item)
                {
                    let chars =
                        text.chars().count() as i64 * heard_ms / ToneEncoder::duration_ms(text).max(1);
                    *text = text.chars().take(usize::try_from(chars).unwrap_or(0)).collect();
                }
            }
            "response.create" => self.respond(&event["response"]),
            _ => {}
        }
    }

    fn create(&mut self, event: &Value) {
        let text = |path| wire::text(event, path).to_owned();
        let (id, name) = (text("/item/call_id"), text("/item/name"));
        let message = match (wire::text(event, "/item/type"), wire::text(event, "/item/role")) {
            ("message", "user") => Message::User { text: text("/item/content/0/text") },
            ("message", _) => Message::Assistant { text: text("/item/content/0/text") },
            ("function_call", _) => {
                let arguments = serde_json::from_str(&text("/item/arguments")).unwrap_or_default();
                Message::ToolCall { id, name, arguments }
            }
            _ => Message::ToolResult { id, name, text: text("/item/output"), is_error: false },
        };
        let after = wire::text(event, "/previous_item_id");
        let place = self.items.iter().position(|(id, _)| id == after).map_or(0, |place| place + 1);
        self.items.insert(place, (text("/item/id"), message));
    }

    /// Makes a response of a line that is read out, or of what the rules say.
    fn respond(&mut self, response: &Value) {
        let (text, calls) = match response["instructions"].as_str() {
            Some(told) => (told.split_once("\n\n").map_or(told, |(_, text)| text).to_owned(), Vec::new()),
            None => match self.reply() {
                AssistantReply::Say { text } => (text, Vec::new()),
                AssistantReply::CallTools { text, calls } => {
                    (text, calls.into_iter().map(|call| (call.name, call.arguments)).collect())
                }
                // One of its own tools may have that name.
                AssistantReply::Goodbye { text } if !self.hangs_up => (text, Vec::new()),
                AssistantReply::Goodbye { text } => {
                    (text, vec![(END_CALL.to_owned(), Value::Object(Map::new()))])
                }
            },
        };
        let is_kept = response["conversation"] != "none";
        let id = self.id("resp");
        let mut output = Vec::new();
        self.told.push(format!(r#"{{"type":"response.created","response":{{"id":"{id}"}}}}"#));
        if !text.is_empty() {
            let item = self.id("item");
            let of = format!(r#""response_id":"{id}","item_id":"{item}""#);
            let message = format!(r#"{{"id":"{item}","type":"message","role":"assistant"}}"#);
            self.told.push(format!(r#"{{"type":"response.output_item.added",{of},"item":{message}}}"#));
            let words = wire::quoted(&text);
            self.told
                .push(format!(r#"{{"type":"response.output_audio_transcript.delta",{of},"delta":{words}}}"#));
            let samples = ToneEncoder::speak(&text, self.rate);
            let piece = usize::try_from(self.rate.samples_in(PIECE_MS)).unwrap_or(1);
            for samples in samples.chunks(piece) {
                let audio = encoded(samples, self.rate);
                self.told.push(format!(r#"{{"type":"response.output_audio.delta",{of},"delta":"{audio}"}}"#));
            }
            output.push(message);
            if is_kept {
                self.items.push((item, Message::Assistant { text }));
            }
        }
        for (name, arguments) in calls {
            let (item, call_id) = (self.id("item"), self.id("call"));
            output.push(format!(r#"{{"id":"{item}",{}}}"#, wire::call(&call_id, &name, &arguments)));
            self.items.push((item, Message::ToolCall { id: call_id, name, arguments }));
        }
        let output = output.join(",");
        self.told.push(format!(
            r#"{{"type":"response.done","response":{{"id":"{id}","status":"completed","output":[{output}],"usage":{{"input_tokens":0,"output_tokens":0}}}}}}"#
        ));
    }

    fn reply(&self) -> AssistantReply {
        let history: Vec<Message> = self.items.iter().map(|(_, message)| message.clone()).collect();
        let turn = AssistantTurn {
            instructions: &self.assistant.instructions,
            knowledge: &self.assistant.knowledge,
            tools: &self.tools,
            history: &history,
            seed: self.seed,
        };
        let rules = self.assistant.model().as_ref().ok().and_then(|model| model.by_rules(&turn));
        rules.unwrap_or(AssistantReply::Say { text: String::new() })
    }

    fn id(&mut self, what: &str) -> String {
        self.made += 1;
        format!("{what}_{}", self.made)
    }
}

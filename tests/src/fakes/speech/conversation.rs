//! A session of OpenAI's Realtime API with a model that hears and speaks: `/v1/realtime?model=…`. It refuses what the API
//! refuses, with an `error` event, and answers by simple rules:
//!
//! - to `Use NAME {…}` with a call of that function, to `Say … Then use NAME {…}` with these words and the call, to a function's
//!   output with `It says: …`, and to anything else with `You said: …`;
//! - what it is told to say exactly, it says.
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::g711;
use sidetone_engine::speech::speech_like::speech_like;
use tungstenite::Message;

use super::{
    CHAR_MS, Opened, Over, PIECE_MS, SLOW, Said, Socket, WORDS_MS, base64, loud_ms, samples_of, tell,
};

/// Less audio cannot be committed.
const COMMIT_MS_MIN: i64 = 100;
/// The only voices.
const VOICES: [&str; 3] = ["alloy", "cedar", "marin"];

/// What a model with this end of its name does, beside `FAULTS`.
pub const FAULTS: [(&str, &str); 6] = [
    ("doubles", "sends each event twice, and events that nobody knows"),
    ("jumbles", "tells that a response has begun after it has sent some of it"),
    ("drops", "closes the connection once, in the middle of a function call"),
    ("expires", "ends the session once, at the first question"),
    ("fails", "begins each response and makes nothing of it"),
    ("alters", "adds words to a line that it reads out"),
];

struct Session<'a> {
    socket: &'a mut Socket,
    said: &'a Said,
    name: String,
    term: String,
    rate: Rate,
    has_tools: bool,
    is_described: bool,
    buffer: Vec<i16>,
    items: Vec<Item>,
    made: usize,
    active: Option<Active>,
    /// Sessions of this term before.
    is_first: bool,
}

#[derive(Debug)]
struct Item {
    id: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    User(String),
    /// With the length of its audio in ms, if it has any.
    Assistant(Option<i64>),
    Call {
        call_id: String,
    },
    Output(String),
}

struct Active {
    id: String,
    item: String,
    is_in_conversation: bool,
    text: String,
    /// A function's name and arguments.
    call: Option<(String, String)>,
    events: VecDeque<Value>,
    sent_ms: i64,
    due: Instant,
}

/// The item of a response's function call, beside that of its words.
fn call_item(item: &str) -> String {
    format!("{item}_call")
}

pub(super) fn run(socket: &mut Socket, opened: &Opened, said: &Said) -> Result<(), Over> {
    let name = opened.query("model").unwrap_or_default().to_owned();
    socket.get_ref().set_read_timeout(Some(Duration::from_millis(3)))?;
    let mut session = Session {
        socket,
        said,
        name,
        term: String::new(),
        rate: Rate::Khz24,
        has_tools: false,
        is_described: false,
        buffer: Vec::new(),
        items: Vec::new(),
        made: 0,
        active: None,
        is_first: false,
    };
    session.tell(
        json!({"type": "session.created", "session": {"type": "realtime", "object": "realtime.session"}}),
    )?;
    loop {
        match session.socket.read() {
            Ok(Message::Text(text)) => session.read(&serde_json::from_str(&text)?)?,
            Ok(Message::Close(_)) => return Ok(()),
            Ok(_) => {}
            Err(tungstenite::Error::Io(error))
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return Ok(()),
        }
        session.go_on()?;
    }
}

impl Session<'_> {
    fn tell(&mut self, mut event: Value) -> Result<(), Over> {
        self.made += 1;
        event["event_id"] = format!("event_{}", self.made).into();
        if self.name.ends_with("doubles") {
            tell(self.socket, &event)?;
            tell(self.socket, &json!({"type": "rate_limits.updated", "rate_limits": []}))?;
            tell(self.socket, &json!({"type": "response.sang", "response_id": "x", "song": null}))?;
        }
        tell(self.socket, &event)
    }

    fn refuse(&mut self, event: &Value, code: &str, message: &str) -> Result<(), Over> {
        self.said.refused(&self.term, message);
        self.tell(json!({"type": "error", "error": {"type": "invalid_request_error", "code": code,
            "message": message, "param": null, "event_id": event["event_id"]}}))
    }

    fn new_id(&mut self, what: &str) -> String {
        self.made += 1;
        format!("{what}_{}", self.made)
    }

    fn read(&mut self, event: &Value) -> Result<(), Over> {
        match event["type"].as_str().unwrap_or_default() {
            "session.update" => self.describe(event),
            _ if !self.is_described => Err("a session must be described first".into()),
            "input_audio_buffer.append" => {
                let Some(Ok(bytes)) = event["audio"].as_str().map(|audio| STANDARD.decode(audio)) else {
                    return self.refuse(event, "invalid_value", "Invalid audio.");
                };
                self.buffer.extend(match self.rate {
                    Rate::Khz8 => g711::decode(&bytes),
                    _ => samples_of(&bytes),
                });
                if loud_ms(&self.buffer, self.rate) >= WORDS_MS {
                    self.said.may_stop(&self.name, &self.term)?;
                }
                Ok(())
            }
            "input_audio_buffer.commit" => self.commit(event),
            "input_audio_buffer.clear" => {
                self.buffer.clear();
                self.tell(json!({"type": "input_audio_buffer.cleared"}))
            }
            "conversation.item.create" => self.create(event),
            "conversation.item.delete" => {
                let id = event["item_id"].as_str().unwrap_or_default();
                match self.items.iter().position(|item| item.id == id) {
                    Some(place) => {
                        self.items.remove(place);
                        self.said.deleted(&self.term);
                        self.tell(json!({"type": "conversation.item.deleted", "item_id": id}))
                    }
                    None => self.refuse(event, "item_delete_invalid_item_id", "No such item to delete."),
                }
            }
            "conversation.item.truncate" => self.truncate(event),
            "response.create" => self.respond(event),
            "response.cancel" => self.cancel(event),
            _ => self.refuse(event, "invalid_value", "Unknown event type."),
        }
    }

    fn describe(&mut self, event: &Value) -> Result<(), Over> {
        let session = &event["session"];
        let (input, output) = (&session["audio"]["input"], &session["audio"]["output"]);
        let rate = match (&input["format"], &output["format"]) {
            (input, output) if input != output => None,
            (format, _) if *format == json!({"type": "audio/pcmu"}) => Some(Rate::Khz8),
            (format, _) if *format == json!({"type": "audio/pcm", "rate": 24_000}) => Some(Rate::Khz24),
            _ => None,
        };
        let tools = session["tools"].as_array();
        let fits = |tool: &Value| {
            tool["type"] == "function"
                && tool["name"].is_string()
                && tool["parameters"]["type"] == "object"
                && tool["parameters"]["properties"].is_object()
        };
        let voice = &output["voice"];
        let is_known = session["type"] == "realtime"
            && session["output_modalities"] == json!(["audio"])
            && session["instructions"].is_string()
            && input["turn_detection"].is_null()
            && input["transcription"].is_object()
            && tools.is_none_or(|tools| tools.iter().all(fits))
            && session["max_output_tokens"].as_u64().is_some_and(|tokens| (1..=4_096).contains(&tokens))
            && output["speed"].as_f64().is_none_or(|speed| (0.25..=1.5).contains(&speed));
        let (Some(rate), true) = (rate, is_known) else {
            return self.refuse(event, "invalid_value", "Invalid session.");
        };
        if !voice.is_null() && !VOICES.iter().any(|known| voice == known) {
            return self.refuse(event, "invalid_value", "Invalid value for voice.");
        }
        self.rate = rate;
        self.has_tools = tools.is_some_and(|tools| !tools.is_empty());
        self.term = input["transcription"]["prompt"].as_str().unwrap_or_default().to_owned();
        self.is_first = self.said.connections_of(&self.term) == 0;
        self.said.opened(&self.term);
        self.said.described(&self.term, session);
        self.is_described = true;
        self.tell(json!({"type": "session.updated", "session": session}))
    }

    fn previous(&self) -> Option<String> {
        self.items.last().map(|item| item.id.clone())
    }

    fn commit(&mut self, event: &Value) -> Result<(), Over> {
        let samples = std::mem::take(&mut self.buffer);
        if self.rate.ms_of(samples.len()) < COMMIT_MS_MIN {
            return self.refuse(event, "input_audio_buffer_commit_empty", "The buffer is too small.");
        }
        let (previous, id) = (self.previous(), self.new_id("item"));
        self.tell(
            json!({"type": "input_audio_buffer.committed", "previous_item_id": previous, "item_id": id}),
        )?;
        let item = json!({"id": id, "object": "realtime.item", "type": "message", "role": "user",
            "status": "completed", "content": [{"type": "input_audio", "transcript": null}]});
        self.tell(json!({"type": "conversation.item.added", "previous_item_id": previous, "item": item}))?;
        self.tell(json!({"type": "conversation.item.done", "previous_item_id": previous, "item": item}))?;
        let heard_ms = loud_ms(&samples, self.rate);
        let mut text = String::new();
        if heard_ms >= WORDS_MS {
            self.said.heard(&self.term, heard_ms);
            text = self.said.next(&self.term);
        }
        self.items.push(Item { id: id.clone(), kind: Kind::User(text.clone()) });
        let kind = |name: &str| format!("conversation.item.input_audio_transcription.{name}");
        for word in text.split_inclusive(' ') {
            self.tell(json!({"type": kind("delta"), "item_id": id, "content_index": 0, "delta": word}))?;
        }
        self.tell(json!({"type": kind("completed"), "item_id": id, "content_index": 0, "transcript": text,
            "usage": {"type": "duration", "seconds": heard_ms as f64 / 1_000.0}}))
    }

    fn create(&mut self, event: &Value) -> Result<(), Over> {
        let item = &event["item"];
        let text = |path: &str| item.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let call_id = text("/call_id").filter(|id| !id.is_empty() && id.len() <= 32);
        let kind = match (
            item["type"].as_str().unwrap_or_default(),
            item["role"].as_str().unwrap_or_default(),
        ) {
            ("message", "user") if item["content"][0]["type"] == "input_text" => {
                text("/content/0/text").map(Kind::User)
            }
            ("message", "assistant") if item["content"][0]["type"] == "output_text" => {
                text("/content/0/text").map(|_| Kind::Assistant(None))
            }
            ("function_call", _) if text("/name").is_some() && text("/arguments").is_some() => {
                call_id.map(|call_id| Kind::Call { call_id })
            }
            ("function_call_output", _) => {
                let is_of = |item: &Item| matches!(&item.kind, Kind::Call { call_id: id } if Some(id) == call_id.as_ref());
                text("/output").filter(|_| self.items.iter().any(is_of)).map(Kind::Output)
            }
            _ => None,
        };
        let Some(kind) = kind else {
            return self.refuse(event, "invalid_value", &format!("Invalid item: {item}"));
        };
        let place = match event["previous_item_id"].as_str() {
            None => Some(self.items.len()),
            Some("root") => Some(0),
            Some(previous) => self.items.iter().position(|item| item.id == previous).map(|place| place + 1),
        };
        let id = text("/id").unwrap_or_else(|| self.new_id("item"));
        let (Some(place), false) = (place, self.items.iter().any(|item| item.id == id) || id.len() > 32)
        else {
            return self.refuse(event, "item_create_invalid_item_id", &format!("Invalid ids: {event}"));
        };
        self.said.created(&self.term, item);
        let previous =
            place.checked_sub(1).and_then(|before| self.items.get(before)).map(|item| item.id.clone());
        let mut told = item.clone();
        told["id"] = id.clone().into();
        self.items.insert(place, Item { id, kind });
        self.tell(json!({"type": "conversation.item.added", "previous_item_id": previous, "item": told}))
    }

    fn truncate(&mut self, event: &Value) -> Result<(), Over> {
        let (id, end_ms) = (event["item_id"].as_str().unwrap_or_default(), event["audio_end_ms"].as_i64());
        let active_ms = self.active.as_ref().filter(|active| active.item == id).map(|active| active.sent_ms);
        let audio_ms = active_ms.or_else(|| {
            self.items.iter().find(|item| item.id == id).and_then(|item| match &item.kind {
                Kind::Assistant(audio_ms) => *audio_ms,
                _ => None,
            })
        });
        let (Some(audio_ms), Some(end_ms)) = (audio_ms, end_ms) else {
            return self.refuse(
                event,
                "item_truncate_invalid_item_id",
                "No audio of the assistant to truncate.",
            );
        };
        if !(0..=audio_ms).contains(&end_ms) || event["content_index"] != 0 {
            return self.refuse(event, "invalid_value", "Audio content is shorter than that.");
        }
        if let Some(item) = self.items.iter_mut().find(|item| item.id == id) {
            item.kind = Kind::Assistant(Some(end_ms));
        }
        self.said.truncated(&self.term, end_ms);
        self.tell(json!({"type": "conversation.item.truncated", "item_id": id, "content_index": 0, "audio_end_ms": end_ms}))
    }

    fn cancel(&mut self, event: &Value) -> Result<(), Over> {
        let is_it =
            |active: &mut Active| event["response_id"].is_null() || event["response_id"] == *active.id;
        match self.active.take_if(is_it) {
            Some(active) => {
                self.said.cancelled(&self.term);
                // One more piece was on its way.
                if let Some(audio) =
                    active.events.iter().find(|event| event["type"] == "response.output_audio.delta")
                {
                    self.tell(audio.clone())?;
                }
                self.done(&active, "cancelled")
            }
            None => self.refuse(
                event,
                "response_cancel_not_active",
                "Cancellation failed: no active response found",
            ),
        }
    }

    fn respond(&mut self, event: &Value) -> Result<(), Over> {
        if self.active.is_some() {
            return self.refuse(
                event,
                "conversation_already_has_active_response",
                "A response is in progress.",
            );
        }
        if self.name.ends_with("expires") && self.is_first {
            self.tell(
                json!({"type": "error", "error": {"type": "invalid_request_error", "code": "session_expired",
                "message": "Your session hit the maximum duration of 60 minutes."}}),
            )?;
            return Err("session_expired".into());
        }
        let response = &event["response"];
        let is_in_conversation = response["conversation"] != "none";
        let (text, call) = match response["instructions"].as_str() {
            Some(told) => {
                let text = told.split_once("\n\n").map_or(told, |(_, text)| text);
                let more = if self.name.ends_with("alters") { " So be it." } else { "" };
                (format!("{text}{more}"), None)
            }
            None => self.answer(),
        };
        let (id, item) = (self.new_id("resp"), self.new_id("item"));
        let mut events = VecDeque::new();
        let about = json!({"response_id": id, "item_id": item, "output_index": 0, "content_index": 0});
        let with = |kind: &str, field: &str, value: Value| {
            let mut event = about.clone();
            event["type"] = kind.into();
            event[field] = value;
            event
        };
        let created = json!({"type": "response.created",
            "response": {"id": id, "object": "realtime.response", "status": "in_progress", "output": []}});
        events.push_back(created);
        if !text.is_empty() {
            events.push_back(with(
                "response.output_item.added",
                "item",
                json!({"id": item, "type": "message", "role": "assistant", "content": []}),
            ));
            let ms = text.trim().chars().count() as i64 * CHAR_MS;
            let samples = speech_like(ms, self.rate, 200.0);
            let mut pieces: VecDeque<_> = samples
                .chunks(usize::try_from(PIECE_MS).unwrap_or_default() * self.rate.hz() as usize / 1_000)
                .map(|piece| match self.rate {
                    Rate::Khz8 => base64(&g711::encode(piece)),
                    _ => base64(&piece.iter().flat_map(|sample| sample.to_le_bytes()).collect::<Vec<_>>()),
                })
                .collect();
            // The words run ahead of their audio.
            for word in text.split_inclusive(' ') {
                events.push_back(with("response.output_audio_transcript.delta", "delta", word.into()));
                events.extend(
                    pieces
                        .pop_front()
                        .map(|piece| with("response.output_audio.delta", "delta", piece.into())),
                );
            }
            events.extend(
                pieces.into_iter().map(|piece| with("response.output_audio.delta", "delta", piece.into())),
            );
            events.push_back(with("response.output_audio.done", "x", Value::Null));
            events.push_back(with(
                "response.output_audio_transcript.done",
                "transcript",
                text.as_str().into(),
            ));
        }
        if let Some((name, arguments)) = &call {
            let calls_item = call_item(&item);
            let about = json!({"response_id": id, "item_id": calls_item, "output_index": 1});
            let with = |kind: &str, field: &str, value: Value| {
                let mut event = about.clone();
                event["type"] = kind.into();
                event[field] = value;
                event
            };
            events.push_back(with(
                "response.output_item.added",
                "item",
                json!({"id": calls_item, "type": "function_call",
                "name": name, "call_id": format!("call_{id}"), "arguments": ""}),
            ));
            let (first, rest) = arguments.split_at(arguments.len() / 2);
            events.push_back(with("response.function_call_arguments.delta", "delta", first.into()));
            events.push_back(with("response.function_call_arguments.delta", "delta", rest.into()));
        }
        if self.name.ends_with("fails") && is_in_conversation {
            // Otherwise what was heard of it would stand.
            events.truncate(1);
        }
        if self.name.ends_with("jumbles") && events.len() > 2 {
            events.swap(0, 2);
        }
        let due = Instant::now();
        self.active = Some(Active { id, item, is_in_conversation, text, call, events, sent_ms: 0, due });
        Ok(())
    }

    /// What the model says, or the function that it calls.
    fn answer(&self) -> (String, Option<(String, String)>) {
        match self.items.last().map(|item| &item.kind) {
            Some(Kind::Output(output)) => (format!("It says: {output}"), None),
            _ => {
                let mut lines: Vec<&str> = Vec::new();
                for item in self.items.iter().rev() {
                    match &item.kind {
                        Kind::User(text) => lines.push(text),
                        _ => break,
                    }
                }
                lines.reverse();
                let text = lines.join(" ").trim().to_owned();
                let (said, used) =
                    match text.strip_prefix("Say ").and_then(|rest| rest.split_once(" Then use ")) {
                        Some((said, used)) => (said, Some(used)),
                        None => ("", text.strip_prefix("Use ")),
                    };
                let call = used.filter(|_| self.has_tools);
                let call =
                    call.map(|call| call.split_once(' ').unwrap_or((call.trim_end_matches('.'), "{}")));
                match call {
                    Some((name, arguments)) => {
                        (said.to_owned(), Some((name.to_owned(), arguments.to_owned())))
                    }
                    None => (format!("You said: {text}"), None),
                }
            }
        }
    }

    /// Sends what is due of the response.
    fn go_on(&mut self) -> Result<(), Over> {
        while let Some(active) = self.active.as_mut().filter(|active| active.due <= Instant::now()) {
            let Some(event) = active.events.pop_front() else {
                let Some(active) = self.active.take() else { break };
                let status = if self.name.ends_with("fails") && active.is_in_conversation {
                    "failed"
                } else {
                    "completed"
                };
                self.done(&active, status)?;
                break;
            };
            if event["type"] == "response.output_audio.delta" {
                active.sent_ms += PIECE_MS;
                if self.name.ends_with(SLOW) {
                    active.due = Instant::now() + Duration::from_millis(PIECE_MS.unsigned_abs());
                }
            }
            let is_arguments = event["type"] == "response.function_call_arguments.delta";
            self.tell(event)?;
            if is_arguments && self.name.ends_with("drops") && self.is_first {
                return Err("it drops".into());
            }
        }
        Ok(())
    }

    fn done(&mut self, active: &Active, status: &str) -> Result<(), Over> {
        let audio_ms = if status == "completed" {
            active.text.trim().chars().count() as i64 * CHAR_MS
        } else {
            active.sent_ms
        };
        let mut output = Vec::new();
        if !active.text.is_empty() {
            output.push((
                Kind::Assistant(Some(audio_ms)),
                json!({"id": active.item, "type": "message", "role": "assistant", "status": status,
                    "content": [{"type": "output_audio", "transcript": active.text}]}),
            ));
        }
        if let Some((name, arguments)) = active.call.as_ref().filter(|_| status == "completed") {
            let call_id = format!("call_{}", active.id);
            let item = json!({"id": call_item(&active.item), "type": "function_call", "name": name,
                "call_id": call_id, "arguments": arguments, "status": status});
            output.push((Kind::Call { call_id }, item));
        }
        let mut items = Vec::new();
        for (nth, (kind, item)) in output.into_iter().enumerate() {
            let id = item["id"].as_str().unwrap_or_default().to_owned();
            if active.is_in_conversation && status != "failed" && !self.items.iter().any(|one| one.id == id) {
                self.items.push(Item { id, kind });
            }
            self.tell(
                json!({"type": "response.output_item.done", "response_id": active.id, "output_index": nth, "item": item}),
            )?;
            items.push(item);
        }
        let details = match status {
            "failed" => json!({"type": "failed", "error": {"type": "server_error", "code": "server_error",
                "message": "The server had an error."}}),
            "cancelled" => json!({"type": "cancelled", "reason": "client_cancelled"}),
            _ => Value::Null,
        };
        let audio = audio_ms / 50;
        self.tell(json!({"type": "response.done", "response": {
            "id": active.id, "object": "realtime.response", "status": status, "status_details": details,
            "output": if status == "failed" { json!([]) } else { json!(items) },
            "usage": {"total_tokens": 110 + audio, "input_tokens": 100, "output_tokens": 10 + audio,
                "input_token_details": {"text_tokens": 60, "audio_tokens": 40, "cached_tokens": 20,
                    "cached_tokens_details": {"text_tokens": 20, "audio_tokens": 0}},
                "output_token_details": {"text_tokens": 10, "audio_tokens": audio}}}}))
    }
}

//! The messages on the socket: one JSON object per text message, distinguished by `type`.
//!
//! From the client: `{"type": "user_text", "text": "…"}`, `{"type": "heard", "index": 2, "chars": 17}`,
//! `{"type": "played", "mark": 3}`, `{"type": "hang_up"}`.
//! To the client: [`ServerMessage`]. Binary messages are audio, in both directions ([`AudioFormat`]).
use serde::Serialize;
use serde_json::Value;

use crate::base::field::shortened;
use crate::base::ids::CallId;
use crate::base::json::{self, JsonError};
use crate::base::limits::LIVE_TEXT_CHARS_MAX;
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::conversation::{AssistantSnapshot, EndedReason, TEXT_BYTES_MAX};
use crate::speech::audio::{FRAME_MS, Rate};
use crate::speech::turn_times::TurnTimes;
use crate::storage::calls::Call;

/// A message from the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientMessage {
    /// The user sent a line.
    UserText(String),
    /// The client has stopped speaking a line of the assistant: at its end, or because the user interrupted it.
    Heard {
        /// The index of the line's transcript row.
        index: usize,
        /// How many characters of it were heard.
        chars: usize,
    },
    /// The client has played all audio before this mark.
    Played(u64),
    /// The user hangs up.
    HangUp,
}

/// The audio of both directions: binary messages with samples, mono.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AudioFormat {
    /// Signed 16-bit samples, the lower byte first.
    encoding: &'static str,
    /// Samples per second.
    rate: u32,
    /// How much audio a message of the service has. The client's may have any whole number of samples.
    frame_ms: i64,
}

impl AudioFormat {
    /// The format with this rate.
    pub const fn of(rate: Rate) -> Self {
        Self { encoding: "pcm_s16le", rate: rate.hz(), frame_ms: FRAME_MS }
    }
}

/// What a client with a test token is told at the start.
#[derive(Debug, Clone)]
pub struct Introduction {
    /// The assistant's name.
    pub assistant_name: String,
    /// Its language; may be empty.
    pub language: String,
    /// How long the conversation may last.
    pub max_duration_seconds: u16,
}

impl Introduction {
    /// Of this assistant.
    pub fn of(assistant: &AssistantSnapshot, max_duration_seconds: u16) -> Self {
        let (assistant_name, language) = (assistant.name.clone(), assistant.language.clone());
        Self { assistant_name, language, max_duration_seconds }
    }

    /// The first message.
    pub fn call_started<'a>(&'a self, call: &'a Call, audio: Option<AudioFormat>) -> ServerMessage<'a> {
        let Self { assistant_name, language, max_duration_seconds } = self;
        ServerMessage::CallStarted {
            call,
            max_duration_seconds: *max_duration_seconds,
            assistant_name,
            language,
            audio,
        }
    }
}

/// A message from the service.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage<'a> {
    /// The first message.
    CallStarted {
        /// The call's id in `GET /calls/{id}`.
        call: &'a Call,
        /// The maximum duration of the conversation, in seconds.
        max_duration_seconds: u16,
        /// The assistant's name.
        assistant_name: &'a str,
        /// The assistant's language (BCP 47), for a client that speaks; may be empty.
        language: &'a str,
        /// The format of the audio; null in a written conversation.
        audio: Option<AudioFormat>,
    },
    /// What the user has said so far in a turn that has not ended: it replaces the message before, and may still change.
    /// Empty once the turn is over; what was said is then a [`ServerMessage::UserText`], unless it was nothing.
    UserWords {
        /// The words.
        text: &'a str,
    },
    /// What the user said or typed, in a conversation with audio.
    UserText {
        /// The index of the transcript row.
        index: usize,
        /// The text.
        text: &'a str,
    },
    /// The assistant said something.
    AssistantText {
        /// The index of the transcript row.
        index: usize,
        /// The text.
        text: &'a str,
    },
    /// An assistant's line was cut.
    LineCut {
        /// The index of its transcript row.
        index: usize,
        /// What was heard of it.
        heard: &'a str,
    },
    /// The user has begun to hear the answer.
    Turn {
        /// How long after the end of the user's speech.
        latency_ms: i64,
        /// When each step was done.
        #[serde(flatten)]
        times: TurnTimes,
    },
    /// Return this number as `played` when all earlier audio has been played.
    Mark {
        /// The number.
        mark: u64,
    },
    /// Discard all audio that has not been played, with its marks.
    Clear,
    /// The assistant calls a tool.
    ToolCall {
        /// The index of the transcript row.
        index: usize,
        /// The id of the tool call; its result has the same id.
        id: &'a str,
        /// The tool.
        name: &'a str,
        /// The arguments.
        arguments: Option<&'a Value>,
        /// True if the call was rejected and not sent; the result says why.
        refused: bool,
    },
    /// The tool responded or failed.
    ToolResult {
        /// The index of the transcript row.
        index: usize,
        /// The id of the tool call.
        id: &'a str,
        /// The tool.
        name: &'a str,
        /// The tool's response, or the reason of its failure.
        text: &'a str,
        /// Whether the tool failed.
        is_error: bool,
    },
    /// An error in the client's message or in the service. The conversation continues unless the socket is closed.
    Error {
        /// The error code.
        code: &'static str,
        /// What is wrong and what to do.
        message: String,
    },
    /// The final message. It is not sent if the connection breaks.
    CallEnded {
        /// The call's id; read it with `GET /calls/{id}`.
        call_id: &'a CallId,
        /// Why the conversation ended.
        ended_reason: EndedReason,
        /// The duration.
        duration_ms: i64,
    },
}

impl ServerMessage<'_> {
    /// The JSON text.
    pub fn text(&self) -> String {
        // Serialising our own types cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The message for a transcript row; `None` for the client's own lines.
pub fn of_row(row: &TranscriptRow) -> Option<ServerMessage<'_>> {
    let TranscriptRow { index, text, .. } = row;
    let id = row.tool_call_id.as_deref().unwrap_or_default();
    let name = row.tool_name.as_deref().unwrap_or_default();
    let is_error = row.is_error == Some(true);
    match row.role {
        TranscriptRole::Assistant => Some(ServerMessage::AssistantText { index: *index, text }),
        TranscriptRole::ToolCall => Some(ServerMessage::ToolCall {
            index: *index,
            id,
            name,
            arguments: row.arguments.as_ref(),
            refused: is_error,
        }),
        TranscriptRole::ToolResult => {
            Some(ServerMessage::ToolResult { index: *index, id, name, text, is_error })
        }
        TranscriptRole::User | TranscriptRole::Dtmf | TranscriptRole::System => None,
    }
}

/// Parses a client's message; the error says how to correct it.
pub fn read(text: &str) -> Result<ClientMessage, String> {
    const FORMS: &str = "Send {\"type\": \"user_text\", \"text\": \"…\"}, {\"type\": \"heard\", \"index\": 2, \"chars\": 17}, \
        {\"type\": \"played\", \"mark\": 3} or {\"type\": \"hang_up\"}.";
    let value = json::read(text.as_bytes()).map_err(|error| match error {
        JsonError::Unreadable { message } => format!("The message is not valid JSON: {message} {FORMS}"),
        JsonError::Refused { field, message } => format!("{field} {message}. {FORMS}"),
    })?;
    let Value::Object(mut fields) = value else {
        return Err(format!("A message is a JSON object. {FORMS}"));
    };
    let kind = match fields.remove("type") {
        Some(Value::String(kind)) => kind,
        _ => return Err(format!("The message has no `type`. {FORMS}")),
    };
    let message = match kind.as_str() {
        "user_text" => ClientMessage::UserText(user_text(fields.remove("text"))?),
        "heard" => ClientMessage::Heard {
            index: whole_number("index", fields.remove("index"))?,
            chars: whole_number("chars", fields.remove("chars"))?,
        },
        "played" => match fields.remove("mark").as_ref().and_then(Value::as_u64) {
            Some(mark) => ClientMessage::Played(mark),
            None => return Err("`played` requires `mark`, the number of a mark.".to_owned()),
        },
        "hang_up" => ClientMessage::HangUp,
        other => return Err(format!("There is no message of type `{}`. {FORMS}", shortened(other))),
    };
    match fields.keys().next() {
        Some(name) => Err(format!("`{}` is not a field of `{kind}`; leave it out.", shortened(name))),
        None => Ok(message),
    }
}

/// A number of `heard`. No transcript has more rows, and no line more characters, than a line may have bytes.
fn whole_number(name: &str, value: Option<Value>) -> Result<usize, String> {
    let number = value.as_ref().and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
    match number {
        Some(number) if number <= TEXT_BYTES_MAX => Ok(number),
        _ => Err(format!("`heard` requires `{name}`, a whole number from 0 to {TEXT_BYTES_MAX}.")),
    }
}

fn user_text(text: Option<Value>) -> Result<String, String> {
    let Some(Value::String(text)) = text else {
        return Err("`user_text` requires `text`, a string.".to_owned());
    };
    let chars = text.chars().count();
    if text.trim().is_empty() {
        Err("`text` is empty. Send a text.".to_owned())
    } else if chars > LIVE_TEXT_CHARS_MAX {
        Err(format!("`text` has {chars} characters, more than {LIVE_TEXT_CHARS_MAX}. Send a shorter text."))
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_valid_messages() {
        let said = read(r#"{"type": "user_text", "text": "Hi"}"#);
        assert_eq!(said, Ok(ClientMessage::UserText("Hi".to_owned())));
        assert_eq!(read(r#"{"type":"hang_up"}"#), Ok(ClientMessage::HangUp));
        let heard = read(r#"{"type": "heard", "index": 2, "chars": 0}"#);
        assert_eq!(heard, Ok(ClientMessage::Heard { index: 2, chars: 0 }));
        assert_eq!(read(r#"{"type": "played", "mark": 3}"#), Ok(ClientMessage::Played(3)));
        let longest = "ü".repeat(LIVE_TEXT_CHARS_MAX);
        assert!(read(&format!(r#"{{"type":"user_text","text":"{longest}"}}"#)).is_ok());
    }

    #[test]
    fn errors_say_how_to_correct_a_message() {
        let long = format!(r#"{{"type":"user_text","text":"{}"}}"#, "x".repeat(LIVE_TEXT_CHARS_MAX + 1));
        for (wrong, expected) in [
            ("", "not valid JSON"),
            ("hello", "not valid JSON"),
            ("[]", "JSON object"),
            ("{}", "no `type`"),
            (r#"{"type": 1}"#, "no `type`"),
            (r#"{"type": "audio"}"#, "no message of type `audio`"),
            (r#"{"type": "user_text"}"#, "requires `text`"),
            (r#"{"type": "user_text", "text": null}"#, "requires `text`"),
            (r#"{"type": "user_text", "text": " "}"#, "is empty"),
            (r#"{"type": "user_text", "text": "Hi", "voice": 1}"#, "`voice` is not a field"),
            (r#"{"type": "heard", "index": 2}"#, "requires `chars`"),
            (r#"{"type": "heard", "index": -1, "chars": 3}"#, "requires `index`"),
            (r#"{"type": "heard", "index": 2, "chars": "3"}"#, "requires `chars`"),
            (r#"{"type": "heard", "index": 2, "chars": 1.5}"#, "requires `chars`"),
            (r#"{"type": "heard", "index": 2, "chars": 65537}"#, "from 0 to 65536"),
            (r#"{"type": "heard", "index": 2, "chars": 3, "text": "Hi"}"#, "`text` is not a field"),
            (r#"{"type": "played"}"#, "requires `mark`"),
            (r#"{"type": "played", "mark": -1}"#, "requires `mark`"),
            (r#"{"type": "played", "mark": "3"}"#, "requires `mark`"),
            (r#"{"type": "hang_up", "text": "Hi"}"#, "`text` is not a field"),
            (r#"{"type": "hang_up", "type": "hang_up"}"#, "type"),
            (&long, "more than 4000"),
        ] {
            let message = read(wrong).unwrap_err();
            assert!(message.contains(expected), "{wrong}: {message}");
        }
    }
}

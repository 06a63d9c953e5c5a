//! What passes over the line of a conversation that is held with a simulated caller. Only the caller's audio is audio: nobody
//! listens to the assistant's, so its frames are counted and not carried.
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::carriers::MediaEvent;
use crate::conversation::transcript::TranscriptRow;
use crate::conversation::{CallFault, EndedReason};
use crate::live::audio_line::LineInput;
use crate::live::line::{Line, LineRead};
use crate::live::peer::PeerEvent;
use crate::ports::{Received, SocketMessage};
use crate::simulation::callers_phone::RATE;
use crate::simulation::live_caller::TurnState;
use crate::speech::audio::Rate;
use crate::storage::calls::Call;

/// From the service to the caller. A binary message is a frame to play.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToCaller {
    Opened,
    Mark { mark: u64 },
    Clear,
    Row { row: TranscriptRow },
    TurnState { turn_state: TurnState },
}

/// From the caller to the service. A binary message is audio.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToService {
    Played {
        mark: u64,
    },
    /// So much of the audio is lost.
    Lost {
        samples: usize,
    },
    Note {
        text: String,
    },
    Stop {
        reason: EndedReason,
        fault: CallFault,
    },
}

/// A message of either side.
pub(super) fn as_message(message: &impl Serialize) -> SocketMessage {
    // Serialising our own types cannot fail.
    SocketMessage::Text(serde_json::to_string(message).unwrap_or_default())
}

/// The caller's audio.
pub(super) fn as_audio(samples: &[i16]) -> SocketMessage {
    SocketMessage::Binary(samples.iter().flat_map(|sample| sample.to_le_bytes()).collect())
}

/// The service's end.
pub(super) struct SimulatedLine;

impl Line for SimulatedLine {
    fn rate(&self) -> Rate {
        RATE
    }

    fn read(&mut self, _: i64, received: Received) -> LineRead {
        LineRead::of(match received {
            Received::Message(SocketMessage::Binary(bytes)) => {
                let samples = bytes.as_chunks::<2>().0.iter().map(|sample| i16::from_le_bytes(*sample));
                LineInput::Media(MediaEvent::Audio(samples.collect()))
            }
            Received::Message(SocketMessage::Text(text)) => match serde_json::from_str(&text) {
                Ok(ToService::Played { mark }) => LineInput::Media(MediaEvent::Played(mark.to_string())),
                Ok(ToService::Lost { samples }) => LineInput::Lost(samples),
                Ok(ToService::Note { text }) => LineInput::Note(text),
                Ok(ToService::Stop { reason, fault }) => LineInput::End(PeerEvent::Stop { reason, fault }),
                Err(_) => LineInput::Unreadable,
            },
            Received::TooLarge => LineInput::TooLarge,
            Received::Nothing | Received::Control => return LineRead::default(),
            Received::Stopping => LineInput::Stopping,
            Received::Gone => LineInput::Gone,
        })
    }

    fn audio(&mut self, _: &[i16]) -> SocketMessage {
        SocketMessage::Binary(Bytes::new())
    }

    fn mark(&mut self, mark: u64) -> SocketMessage {
        as_message(&ToCaller::Mark { mark })
    }

    fn clear(&mut self) -> SocketMessage {
        as_message(&ToCaller::Clear)
    }

    fn opened(&mut self, _: &Call) -> Option<SocketMessage> {
        Some(as_message(&ToCaller::Opened))
    }

    fn row(&mut self, row: &TranscriptRow) -> Option<SocketMessage> {
        Some(as_message(&ToCaller::Row { row: row.clone() }))
    }

    fn turn_state(&mut self, turn_state: TurnState) -> Option<SocketMessage> {
        Some(as_message(&ToCaller::TurnState { turn_state }))
    }
}

//! Deepgram Flux, which detects turns itself: `/v2/listen`.
use serde_json::{Value, json};
use tungstenite::Message;

use super::{Opened, Over, Said, Socket, decoded, loud_ms, next, tell};

/// Sound that begins a turn.
const BEGINS_MS: i64 = 100;
/// Silence after which a turn has probably ended, and after which it has.
const EAGER_MS: i64 = 300;
const ENDS_MS: i64 = 700;
/// After so much audio without an event, an update says what was heard so far, be it nothing.
const UPDATE_MS: i64 = 250;

struct Turn {
    /// The parts of its text, and how many of them were said.
    parts: Vec<String>,
    said: usize,
    loud_ms: i64,
    silent_ms: i64,
    is_eager: bool,
}

impl Turn {
    fn text(&self) -> String {
        self.parts[..self.said].join(" ")
    }
}

pub(super) fn run(socket: &mut Socket, opened: &Opened, said: &Said) -> Result<(), Over> {
    let (rate, term) = (opened.rate()?, opened.query("keyterm").unwrap_or_default().to_owned());
    if !opened.query("model").is_some_and(|name| name.starts_with("flux-")) {
        return Err("unsupported model".into());
    }
    let ends_ms = opened.query("eot_timeout_ms").and_then(|ms| ms.parse::<i64>().ok());
    if ends_ms.is_some_and(|ms| !(500..=10_000).contains(&ms)) {
        return Err("eot_timeout_ms is out of range".into());
    }
    tell(socket, &json!({"type": "Connected", "request_id": "r1", "sequence_id": 0}))?;
    let (mut sequence, mut index, mut received, mut heard_ms, mut untold_ms) = (0, 0, 0, 0, 0);
    let mut turn: Option<Turn> = None;
    let mut rest: Vec<i16> = Vec::new();
    while let Some(message) = next(socket) {
        let bytes = match message {
            Message::Binary(bytes) => bytes,
            message => match serde_json::from_str::<Value>(message.to_text()?)?["type"].as_str() {
                Some("CloseStream") => return Ok(()),
                Some("Configure") => continue,
                Some("ForceEndTurn") => {
                    if let Some(open) = turn.take() {
                        said.heard(&term, open.loud_ms);
                        let window = (index, rate.ms_of(received));
                        tell(socket, &turn_info(sequence + 1, window, "EndOfTurn", &open.text()))?;
                        (sequence, index) = (sequence + 1, index + 1);
                    }
                    continue;
                }
                _ => return Err("unknown message".into()),
            },
        };
        rest.extend(decoded(opened, &bytes)?);
        let whole = rest.len() - rest.len() % rate.frame_samples();
        for frame in rest.drain(..whole).collect::<Vec<_>>().chunks(rate.frame_samples()) {
            received += frame.len();
            let ms = rate.ms_of(frame.len());
            let is_loud = loud_ms(frame, rate) > 0;
            heard_ms = if is_loud { heard_ms + ms } else { 0 };
            let mut events = Vec::new();
            match &mut turn {
                None if heard_ms >= BEGINS_MS => {
                    said.may_stop(opened.name(), &term)?;
                    let parts: Vec<String> = said.next(&term).split('|').map(str::to_owned).collect();
                    let begun = parts[0].split(' ').next().unwrap_or_default().to_owned();
                    events.extend([("StartOfTurn", String::new()), ("Update", begun)]);
                    turn = Some(Turn { parts, said: 1, loud_ms: heard_ms, silent_ms: 0, is_eager: false });
                }
                Some(turn) if is_loud => {
                    turn.loud_ms += ms;
                    turn.silent_ms = 0;
                    if std::mem::take(&mut turn.is_eager) {
                        turn.said = turn.parts.len().min(turn.said + 1);
                        events.push(("TurnResumed", turn.text()));
                    }
                }
                Some(open) => {
                    open.silent_ms += ms;
                    if open.silent_ms >= ENDS_MS {
                        said.heard(&term, open.loud_ms);
                        events.push(("EndOfTurn", open.text()));
                        turn = None;
                    } else if open.silent_ms >= EAGER_MS && !open.is_eager {
                        open.is_eager = true;
                        events.push(("EagerEndOfTurn", open.text()));
                    }
                }
                None => {}
            }
            untold_ms = if events.is_empty() { untold_ms + ms } else { 0 };
            if untold_ms >= UPDATE_MS {
                untold_ms = 0;
                events.push(("Update", turn.as_ref().map(Turn::text).unwrap_or_default()));
            }
            for (event, transcript) in events {
                sequence += 1;
                tell(socket, &turn_info(sequence, (index, rate.ms_of(received)), event, &transcript))?;
                index += i64::from(event == "EndOfTurn");
            }
        }
    }
    Ok(())
}

/// What Flux tells, of a turn with this index that was heard until then in ms.
fn turn_info(sequence: i64, (index, until_ms): (i64, i64), event: &str, transcript: &str) -> Value {
    json!({
        "type": "TurnInfo", "request_id": "r1", "sequence_id": sequence, "event": event,
        "turn_index": index, "audio_window_start": 0.0, "audio_window_end": until_ms as f64 / 1_000.0,
        "transcript": transcript, "words": [], "end_of_turn_confidence": 0.8,
    })
}

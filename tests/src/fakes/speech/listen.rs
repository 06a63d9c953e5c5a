//! Deepgram's streaming recognition: `/v1/listen`.
use serde_json::{Value, json};
use tungstenite::Message;

use super::{Opened, Over, Said, Socket, WORDS_MS, decoded, loud_ms, next, tell};

pub(super) fn run(socket: &mut Socket, opened: &Opened, said: &Said) -> Result<(), Over> {
    let (rate, term) = (opened.rate()?, opened.query("keyterm").unwrap_or_default().to_owned());
    let seconds = |samples: usize| rate.ms_of(samples) as f64 / 1_000.0;
    // Samples received, and of them those whose words are final.
    let (mut received, mut final_to, mut heard_ms) = (0, 0, 0);
    let mut interim: Option<String> = None;
    let results = |from: usize, to: usize, text: &str, is_final: bool, from_finalize: bool| {
        json!({
            "type": "Results", "channel_index": [0, 1], "start": seconds(from), "duration": seconds(to - from),
            "is_final": is_final, "speech_final": is_final, "from_finalize": from_finalize,
            "channel": {"alternatives": [{"transcript": text, "confidence": 0.98, "words": []}]},
            "metadata": {"request_id": "r1"},
        })
    };
    while let Some(message) = next(socket) {
        let asked = match message {
            Message::Binary(bytes) => {
                let samples = decoded(opened, &bytes)?;
                received += samples.len();
                heard_ms += loud_ms(&samples, rate);
                if heard_ms >= WORDS_MS && interim.is_none() {
                    said.may_stop(opened.name(), &term)?;
                    let text = said.next(&term);
                    let begun = text.split(' ').next().unwrap_or_default().to_owned();
                    tell(socket, &results(final_to, received, &begun, false, false))?;
                    interim = Some(text);
                }
                continue;
            }
            message => serde_json::from_str::<Value>(message.to_text()?)?,
        };
        let is_over = asked["type"] == "CloseStream";
        match asked["type"].as_str() {
            Some("KeepAlive") => continue,
            Some("Finalize" | "CloseStream") => {}
            _ => return Err("unknown message".into()),
        }
        if interim.is_some() {
            said.heard(&term, heard_ms);
        }
        let text = interim.take().unwrap_or_default();
        tell(socket, &results(final_to, received, &text, true, !is_over))?;
        (final_to, heard_ms) = (received, 0);
        if is_over {
            return tell(
                socket,
                &json!({"type": "Metadata", "request_id": "r1", "duration": seconds(received), "channels": 1}),
            );
        }
    }
    Ok(())
}

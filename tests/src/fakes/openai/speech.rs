//! Speech: `/v1/audio/speech` makes a voice-like sound that lasts as long as its text would, and
//! `/v1/audio/transcriptions` understands what the test has announced.
use std::convert::Infallible;
use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::speech_like::speech_like;

use super::{Seen, error, json_response, lock, raw, wrong_key};
use crate::fakes::speech::{SLOW, STOPS};

/// How long a character takes.
pub const CHAR_MS: i64 = 60;
/// What is announced of an utterance whose transcription is answered with a web page.
pub const PAGE: &str = "page";
const WELCOME: &str = "<!doctype html><title>Welcome</title>";

pub(super) async fn speech(State(seen): State<Arc<Seen>>, headers: HeaderMap, body: Bytes) -> Response {
    if let Some(refusal) = wrong_key(&headers) {
        return refusal;
    }
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return error(400, "We could not parse the JSON body of your request.", "invalid_request_error", "");
    };
    let text = body["input"].as_str().unwrap_or_default();
    match body["voice"].as_str() {
        Some(voice) if voice.ends_with("page") => {
            return raw(200, "text/html", Body::from(WELCOME));
        }
        Some("hangs") => return std::future::pending().await,
        Some("breaks") => return raw(200, "audio/pcm", broken(Vec::new())),
        Some(voice) if voice.ends_with("mute") => return raw(200, "audio/pcm", Body::empty()),
        Some("unknown") | None => return error(400, "Invalid voice.", "invalid_request_error", "voice"),
        Some(_) => {}
    }
    let (kind, head) = match body["response_format"].as_str() {
        Some("pcm") => ("audio/pcm", Vec::new()),
        Some("wav") => ("audio/wav", wav_head()),
        _ => {
            return error(
                400,
                "Invalid value: 'response_format'.",
                "invalid_request_error",
                "response_format",
            );
        }
    };
    if text.is_empty() {
        return error(400, "Invalid input.", "invalid_request_error", "input");
    }
    lock(&seen.spoken).push(text.to_owned());
    let samples = speech_like(text.chars().count() as i64 * CHAR_MS, Rate::Khz24, 200.0);
    let bytes: Vec<u8> =
        head.into_iter().chain(samples.iter().flat_map(|sample| sample.to_le_bytes())).collect();
    // Pieces of an odd size, as servers send them: 100 ms.
    let pieces = bytes.chunks(4_801).map(Bytes::copy_from_slice).collect::<Vec<_>>();
    raw(
        200,
        kind,
        match body["voice"].as_str() {
            Some(STOPS) => broken(pieces[..pieces.len() / 2].to_vec()),
            Some(SLOW) => Body::from_stream(stream::iter(pieces).then(|piece| async {
                tokio::time::sleep(Duration::from_millis(150)).await;
                Ok::<_, Infallible>(piece)
            })),
            _ => Body::from_stream(stream::iter(pieces.into_iter().map(Ok::<_, Infallible>))),
        },
    )
}

pub(super) async fn transcription(
    State(seen): State<Arc<Seen>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Some(refusal) = wrong_key(&headers) {
        return refusal;
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let Some((_, boundary)) = kind.split_once("boundary=") else {
        return error(400, "The body is no multipart form.", "invalid_request_error", "");
    };
    let boundary = boundary.trim_matches('"');
    let Some(file) = part(&body, boundary, "file") else {
        return error(400, "`file` is missing.", "invalid_request_error", "file");
    };
    let Some(model) = part(&body, boundary, "model").map(String::from_utf8_lossy) else {
        return error(400, "`model` is missing.", "invalid_request_error", "model");
    };
    let Ok(sound) = hound::WavReader::new(Cursor::new(file)) else {
        return error(400, "Invalid file format.", "invalid_request_error", "file");
    };
    let seconds = f64::from(sound.duration()) / f64::from(sound.spec().sample_rate);
    let term = part(&body, boundary, "prompt").map(String::from_utf8_lossy).unwrap_or_default().into_owned();
    let text = lock(&seen.said).get_mut(&term).and_then(|texts| texts.pop_front()).unwrap_or_default();
    match model {
        model if model.ends_with("hangs") => std::future::pending().await,
        model if model.ends_with(STOPS) => {
            raw(200, "application/json", broken(vec![Bytes::from_static(b"{\"text\": \"When")]))
        }
        model if model.ends_with("empty") => json_response(200, &json!({})),
        model if model.ends_with("page") || text == PAGE => raw(200, "text/html", Body::from(WELCOME)),
        _ => transcribed(&text, seconds, part(&body, boundary, "response_format")),
    }
}

/// A body that breaks off after these pieces.
fn broken(pieces: Vec<Bytes>) -> Body {
    let cut = stream::once(async {
        // What was sent before arrives.
        tokio::time::sleep(Duration::from_millis(50)).await;
        Err(std::io::Error::other("cut off on purpose"))
    });
    Body::from_stream(stream::iter(pieces.into_iter().map(Ok)).chain(cut))
}

/// A transcription in the form that was asked for.
fn transcribed(text: &str, seconds: f64, form: Option<&[u8]>) -> Response {
    let usage = json!({"type": "duration", "seconds": seconds.ceil()});
    match form {
        None | Some(b"json") => json_response(200, &json!({"text": text, "usage": usage})),
        Some(b"text") => raw(200, "text/plain; charset=utf-8", Body::from(format!("{text}\n"))),
        Some(b"verbose_json") => {
            let segment = json!({
                "id": 0, "seek": 0, "start": 0.0, "end": seconds, "text": text, "tokens": [], "temperature": 0.0,
                "avg_logprob": -0.1, "compression_ratio": 1.0, "no_speech_prob": 0.01,
            });
            let segments = if text.is_empty() { vec![] } else { vec![segment] };
            let whole = json!({
                "task": "transcribe", "language": "english", "duration": seconds, "text": text,
                "segments": segments, "usage": usage,
            });
            json_response(200, &whole)
        }
        Some(_) => {
            error(400, "Invalid value: 'response_format'.", "invalid_request_error", "response_format")
        }
    }
}

/// The head of a WAV file whose length is not known when it begins, as OpenAI sends it.
fn wav_head() -> Vec<u8> {
    const UNKNOWN: [u8; 4] = u32::MAX.to_le_bytes();
    let hz = Rate::Khz24.hz();
    // Whole samples of 16 bits, one channel.
    let head: [&[u8; 4]; 11] = [
        b"RIFF",
        &UNKNOWN,
        b"WAVE",
        b"fmt ",
        &16_u32.to_le_bytes(),
        &[1, 0, 1, 0],
        &hz.to_le_bytes(),
        &(2 * hz).to_le_bytes(),
        &[2, 0, 16, 0],
        b"data",
        &UNKNOWN,
    ];
    head.into_iter().flatten().copied().collect()
}

/// The content of a form's part (RFC 7578).
fn part<'a>(body: &'a [u8], boundary: &str, name: &str) -> Option<&'a [u8]> {
    let find = |from: usize, wanted: &[u8]| {
        body[from..].windows(wanted.len()).position(|window| window == wanted).map(|at| from + at)
    };
    let head = find(0, format!("name=\"{name}\"").as_bytes())?;
    let from = find(head, b"\r\n\r\n")? + 4;
    let until = find(from, format!("\r\n--{boundary}").as_bytes())?;
    Some(&body[from..until])
}

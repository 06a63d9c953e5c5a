//! Speech: `/v1/audio/speech` makes a voice-like sound that lasts as long as its text would, and
//! `/v1/audio/transcriptions` understands what the test has announced.
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
        Some(voice) if voice.ends_with("mute") => return raw(200, "audio/pcm", Body::empty()),
        Some("unknown") | None => return error(400, "Invalid voice.", "invalid_request_error", "voice"),
        Some(_) => {}
    }
    if text.is_empty() || body["response_format"] != "pcm" {
        return error(400, "Invalid input.", "invalid_request_error", "input");
    }
    lock(&seen.spoken).push(text.to_owned());
    let samples = speech_like(text.chars().count() as i64 * CHAR_MS, Rate::Khz24, 200.0);
    let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    // Pieces of an odd size, as servers send them: 100 ms.
    let pieces = bytes.chunks(4_801).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect::<Vec<_>>();
    let half = pieces.len() / 2;
    let pieces = stream::iter(pieces);
    raw(
        200,
        "audio/pcm",
        match body["voice"].as_str() {
            Some(STOPS) => {
                let cut = stream::once(async {
                    // What was sent before arrives.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    Err(std::io::Error::other("cut off on purpose"))
                });
                Body::from_stream(pieces.take(half).chain(cut))
            }
            Some(SLOW) => Body::from_stream(pieces.then(|piece| async {
                tokio::time::sleep(Duration::from_millis(150)).await;
                piece
            })),
            _ => Body::from_stream(pieces),
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
    if hound::WavReader::new(Cursor::new(file)).is_err() {
        return error(400, "Invalid file format.", "invalid_request_error", "file");
    }
    let term = part(&body, boundary, "prompt").map(String::from_utf8_lossy).unwrap_or_default().into_owned();
    let text = lock(&seen.said).get_mut(&term).and_then(|texts| texts.pop_front()).unwrap_or_default();
    match model {
        model if model.ends_with("hangs") => std::future::pending().await,
        model if model.ends_with("empty") => json_response(200, &json!({})),
        model if model.ends_with("page") || text == PAGE => raw(200, "text/html", Body::from(WELCOME)),
        _ => json_response(200, &json!({"text": text})),
    }
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

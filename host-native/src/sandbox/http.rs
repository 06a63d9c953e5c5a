//! Outgoing HTTP with scripted responses.
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use sidetone_engine::ports::{BoxFuture, Http, HttpError, HttpReply, HttpRequest, HttpStream};

use super::lock;

/// See [`super::Sandbox::answer_http_with`].
pub(super) type Answering = Arc<dyn Fn(&HttpRequest) -> Result<HttpReply, HttpError> + Send + Sync>;

/// Answers outgoing requests with scripted responses, and records them.
#[derive(Default)]
pub(super) struct ScriptedHttp {
    pub(super) queued: Mutex<VecDeque<Result<ScriptedAnswer, HttpError>>>,
    pub(super) fallback: Mutex<Option<Answering>>,
    pub(super) sent: Mutex<Vec<HttpRequest>>,
    pub(super) meanwhile: Mutex<Option<Action>>,
}

/// See [`super::Sandbox::meanwhile`].
pub(super) type Action = Box<dyn FnOnce() + Send>;

/// A response, with its body in pieces.
pub(super) struct ScriptedAnswer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<Result<Bytes, HttpError>>,
}

impl From<HttpReply> for ScriptedAnswer {
    fn from(HttpReply { status, headers, body }: HttpReply) -> Self {
        Self { status, headers, body: vec![Ok(body)] }
    }
}

impl ScriptedHttp {
    fn next(&self, request: HttpRequest) -> Result<ScriptedAnswer, HttpError> {
        let mut left_bytes = request.response_bytes_max;
        let queued = lock(&self.queued).pop_front();
        let fallback = lock(&self.fallback).clone();
        let answer = match (queued, fallback) {
            (Some(answer), _) => answer,
            (None, Some(fallback)) => fallback(&request).map(ScriptedAnswer::from),
            (None, None) => Err(HttpError::Failed("no answer is scripted".to_owned())),
        };
        lock(&self.sent).push(request);
        let action = lock(&self.meanwhile).take();
        if let Some(action) = action {
            action();
        }
        let mut answer = answer?;
        let mut begun = BytesMut::new();
        for piece in &mut answer.body {
            if let Ok(bytes) = piece {
                let room = left_bytes.min(bytes.len());
                begun.extend_from_slice(&bytes[..room]);
                left_bytes -= room;
                if room < bytes.len() {
                    let (status, headers) = (answer.status, answer.headers.clone());
                    let body = std::mem::take(&mut begun).freeze();
                    *piece = Err(HttpError::TooLarge(HttpReply { status, headers, body }));
                    break;
                }
            }
        }
        // An error ends the body.
        if let Some(place) = answer.body.iter().position(Result::is_err) {
            answer.body.truncate(place + 1);
        }
        Ok(answer)
    }
}

impl Http for ScriptedHttp {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpReply, HttpError>> {
        let reply = self.next(request).and_then(|ScriptedAnswer { status, headers, body }| {
            let pieces = body.into_iter().collect::<Result<Vec<Bytes>, _>>()?;
            Ok(HttpReply { status, headers, body: Bytes::from(pieces.concat()) })
        });
        Box::pin(async move { reply })
    }

    fn open(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpStream, HttpError>> {
        let stream = self.next(request).map(|ScriptedAnswer { status, headers, body }| HttpStream {
            status,
            headers,
            body: Box::pin(stream::iter(body)),
        });
        Box::pin(async move { stream })
    }
}

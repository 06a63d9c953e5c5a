//! Stores the recording while the conversation runs: one write at a time, beside the conversation. Storage that is slow or
//! fails ends the recording, never the call.
use std::collections::VecDeque;
use std::pin::pin;
use std::task::{Context, Poll};

use futures_util::future::{Either, select};

use crate::base::limits::{
    RECORDING_FINAL_MS, RECORDING_TRIES, RECORDING_TRY_AGAIN_MS, RECORDING_WAITING_MAX,
};
use crate::live::session::LiveSession;
use crate::ports::BoxFuture;
use crate::services::Services;
use crate::speech::recorder::Segment;
use crate::storage::fault::Fault;
use crate::storage::recordings::Recording;

/// The recording of a conversation.
pub(super) struct RecordingWriter<'a> {
    session: &'a LiveSession,
    /// `None`: a write is under way, nothing was recorded yet, or the recording has ended.
    recording: Option<Recording>,
    writing: Option<BoxFuture<'a, Option<Recording>>>,
    waiting: VecDeque<Segment>,
    is_begun: bool,
    is_over: bool,
    /// Whether it ended before the call, and that was not told.
    is_cut: bool,
}

impl<'a> RecordingWriter<'a> {
    pub(super) fn new(session: &'a LiveSession) -> Self {
        let waiting = VecDeque::new();
        Self {
            session,
            recording: None,
            writing: None,
            waiting,
            is_begun: false,
            is_over: false,
            is_cut: false,
        }
    }

    /// Takes a segment. If too many wait, the recording ends with what is stored: it has no holes.
    pub(super) fn add(&mut self, segment: Segment) {
        if self.is_over {
            return;
        }
        if !self.is_begun {
            self.is_begun = true;
            let LiveSession { services, call, .. } = self.session;
            self.recording = Some(Recording::new(services, &call.workspace_id, &call.id, segment.rate));
        }
        match self.waiting.len() < RECORDING_WAITING_MAX {
            true => self.waiting.push_back(segment),
            false => self.end(),
        }
        self.begin_write();
    }

    /// Continues to write. Never blocks the conversation, so it returns nothing.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) {
        while let Some(writing) = &mut self.writing {
            let Poll::Ready(recording) = writing.as_mut().poll(context) else { return };
            self.writing = None;
            match recording.filter(|_| !self.is_over) {
                Some(recording) => self.recording = Some(recording),
                None => self.end(),
            }
            self.begin_write();
        }
    }

    /// Writes the rest, but does not keep the end of the call waiting for long.
    pub(super) async fn finish(&mut self) {
        std::future::poll_fn(|context| {
            self.poll(context);
            Poll::Ready(())
        })
        .await;
        if self.writing.is_none() {
            return;
        }
        let clock = &self.session.services.ports().clock;
        let late = clock.sleep(RECORDING_FINAL_MS);
        let written = std::future::poll_fn(|context| {
            self.poll(context);
            if self.writing.is_some() { Poll::Pending } else { Poll::Ready(()) }
        });
        if let Either::Right(_) = select(pin!(written), late).await {
            self.writing = None;
            self.end();
        }
    }

    /// Whether the recording has ended because it could not be written; true once.
    pub(super) const fn take_cut(&mut self) -> bool {
        std::mem::replace(&mut self.is_cut, false)
    }

    /// Nothing is added any more. What is being written still belongs to it.
    fn end(&mut self) {
        self.is_cut |= !self.is_over;
        self.is_over = true;
        self.recording = None;
        self.waiting.clear();
    }

    fn begin_write(&mut self) {
        if self.writing.is_some() {
            return;
        }
        let Some(recording) = self.recording.take() else { return };
        match self.waiting.pop_front() {
            Some(segment) => {
                self.writing = Some(Box::pin(write(&self.session.services, recording, segment)));
            }
            None => self.recording = Some(recording),
        }
    }
}

/// The recording with the segment; `None` if it cannot be written.
async fn write(services: &Services, recording: Recording, segment: Segment) -> Option<Recording> {
    for _ in 0..RECORDING_TRIES {
        match recording.clone().write(services, &segment).await {
            Ok(recording) => return Some(recording),
            Err(Fault::Stale) => return None,
            Err(_) => services.ports().clock.sleep(RECORDING_TRY_AGAIN_MS).await,
        }
    }
    None
}

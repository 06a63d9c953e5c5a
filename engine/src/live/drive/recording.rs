//! Stores the recording while the conversation runs: one segment at a time, beside the conversation, whose journal counts what
//! is stored. Storage that is slow or fails ends the recording, never the call.
use std::collections::VecDeque;
use std::pin::pin;
use std::task::{Context, Poll};

use futures_util::future::{Either, select};

use crate::base::limits::{
    RECORDING_FINAL_MS, RECORDING_TRIES, RECORDING_TRY_AGAIN_MS, RECORDING_UNCOUNTED_MAX,
    RECORDING_WAITING_MAX,
};
use crate::live::session::LiveSession;
use crate::ports::BoxFuture;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::speech::recorder::Segment;
use crate::storage::fault::Fault;
use crate::storage::recordings::Recording;

/// The recording of a conversation.
pub(super) struct RecordingWriter<'a> {
    session: &'a LiveSession,
    /// `None`: a write is under way, nothing was recorded yet, or the recording has ended.
    recording: Option<Recording>,
    writing: Option<BoxFuture<'a, Option<(Recording, Statement)>>>,
    waiting: VecDeque<Segment>,
    /// What counts the segments that are stored.
    uncounted: Vec<Statement>,
    is_finishing: bool,
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
            uncounted: Vec::new(),
            is_finishing: false,
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
            let Poll::Ready(stored) = writing.as_mut().poll(context) else { return };
            self.writing = None;
            match stored {
                Some((recording, count)) => {
                    self.uncounted.push(count);
                    self.recording = Some(recording).filter(|_| !self.is_over);
                }
                None => self.end(),
            }
            self.begin_write();
        }
    }

    /// What counts the segments stored since the last call, for the next write of the journal.
    pub(super) fn take_uncounted(&mut self) -> Vec<Statement> {
        let uncounted = std::mem::take(&mut self.uncounted);
        self.begin_write();
        uncounted
    }

    /// Writes the rest, but does not keep the end of the call waiting for long.
    pub(super) async fn finish(&mut self) {
        self.is_finishing = true;
        self.begin_write();
        self.store_rest().await;
        let uncounted = std::mem::take(&mut self.uncounted);
        let services = &self.session.services;
        if !uncounted.is_empty() && !write_or_give_up(services, uncounted).await {
            self.end();
        }
    }

    async fn store_rest(&mut self) {
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
        let is_full = self.uncounted.len() >= RECORDING_UNCOUNTED_MAX && !self.is_finishing;
        if self.writing.is_some() || is_full {
            return;
        }
        let Some(recording) = self.recording.take() else { return };
        match self.waiting.pop_front() {
            Some(segment) => {
                self.writing = Some(Box::pin(store(&self.session.services, recording, segment)));
            }
            None => self.recording = Some(recording),
        }
    }
}

/// Counts what is stored. Whether that was possible.
async fn write_or_give_up(services: &Services, uncounted: Vec<Statement>) -> bool {
    for _ in 0..RECORDING_TRIES {
        match services.ports().database.write(uncounted.clone()).await {
            Ok(_) => return true,
            Err(_) => services.ports().clock.sleep(RECORDING_TRY_AGAIN_MS).await,
        }
    }
    false
}

/// The recording with the segment, and what counts it; `None` if it cannot be stored.
async fn store(
    services: &Services,
    recording: Recording,
    segment: Segment,
) -> Option<(Recording, Statement)> {
    for _ in 0..RECORDING_TRIES {
        match recording.clone().store(services, &segment).await {
            Ok(stored) => return Some(stored),
            Err(Fault::Stale) => return None,
            Err(_) => services.ports().clock.sleep(RECORDING_TRY_AGAIN_MS).await,
        }
    }
    None
}

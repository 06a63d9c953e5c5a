//! The kinds of events, listed once.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::ids::{CallId, RunId, WebhookId};

macro_rules! kinds {
    ($(#[doc = $doc:literal] $name:ident = $text:literal;)*) => {
        /// The kind of an event.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum EventKind {
            $(#[doc = $doc] #[serde(rename = $text)] $name,)*
        }

        /// A kind of event, or `*` for all.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum Subscription {
            $(#[doc = $doc] #[serde(rename = $text)] $name,)*
            /// Every kind of event, kinds of later versions included.
            #[serde(rename = "*")]
            All,
        }

        impl EventKind {
            /// Every kind, with what it tells, for the documentation.
            pub const ALL: &'static [(Self, &'static str)] = &[$((Self::$name, $doc.trim_ascii())),*];

            /// The stored and sent name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

kinds! {
    /// A call of any source was created.
    CallStarted = "call.started";
    /// A call is over, with or without a conversation.
    CallEnded = "call.ended";
    /// An ended call was analyzed.
    CallAnalyzed = "call.analyzed";
    /// The recording of a call can be downloaded. It is sent after the end of the call.
    RecordingReady = "recording.ready";
    /// A simulation run finished; `passed` has the result.
    SimulationRunCompleted = "simulation.run.completed";
    /// A simulation run failed, so it has no result.
    SimulationRunError = "simulation.run.error";
    /// A test event that was requested for a webhook.
    WebhookTest = "webhook.test";
}

/// What an event tells about.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// What happened.
    pub kind: EventKind,
    /// To which call, run or webhook.
    pub subject_id: &'a str,
    /// The call that it tells about, also of a run.
    pub call_id: Option<&'a CallId>,
}

impl EventKind {
    /// It happened to this call.
    pub fn of_call(self, id: &CallId) -> About<'_> {
        About { kind: self, subject_id: id, call_id: Some(id) }
    }

    /// It happened to this run, with this call.
    pub fn of_run<'a>(self, id: &'a RunId, call_id: Option<&'a CallId>) -> About<'a> {
        About { kind: self, subject_id: id, call_id }
    }

    /// It happened to this webhook.
    pub fn of_webhook(self, id: &WebhookId) -> About<'_> {
        About { kind: self, subject_id: id, call_id: None }
    }

    /// The name of the subject in an event's `data`.
    pub const fn subject(self) -> &'static str {
        match self {
            Self::CallStarted | Self::CallEnded | Self::CallAnalyzed | Self::RecordingReady => "call",
            Self::SimulationRunCompleted | Self::SimulationRunError => "run",
            Self::WebhookTest => "webhook",
        }
    }

    /// The schema of the subject, which is what REST returns for it.
    pub const fn subject_schema(self) -> &'static str {
        match self {
            Self::CallStarted | Self::CallEnded | Self::CallAnalyzed | Self::RecordingReady => "Call",
            Self::SimulationRunCompleted | Self::SimulationRunError => "RunDetail",
            Self::WebhookTest => "Webhook",
        }
    }
}

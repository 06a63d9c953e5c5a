//! The kinds of events, listed once.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

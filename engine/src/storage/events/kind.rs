//! The kinds of events, listed once.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! kinds {
    ($($name:ident = $text:literal;)*) => {
        /// The kind of an event.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[allow(missing_docs, reason = "the names say it")]
        pub enum EventKind {
            $(#[serde(rename = $text)] $name,)*
        }

        /// A kind of event, or `*` for all.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[allow(missing_docs, reason = "the names say it")]
        pub enum Subscription {
            $(#[serde(rename = $text)] $name,)*
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
    CallStarted = "call.started";
    CallEnded = "call.ended";
    CallAnalyzed = "call.analyzed";
    RecordingReady = "recording.ready";
    SimulationRunCompleted = "simulation.run.completed";
    SimulationRunError = "simulation.run.error";
    WebhookTest = "webhook.test";
}

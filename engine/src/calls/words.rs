//! The closed lists of words a call is described with.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ports::DatabaseError;
use crate::statement::Row;

macro_rules! words {
    ($(#[doc = $about:literal])* $name:ident { $($(#[doc = $doc:literal])* $word:ident = $text:literal,)* }) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum $name { $($(#[doc = $doc])* #[serde(rename = $text)] $word,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$word,)*];

            /// As it is written, here and in the database.
            #[must_use]
            pub const fn as_str(self) -> &'static str { match self { $(Self::$word => $text,)* } }

            /// The word that is written like this.
            pub fn parse(text: &str) -> Result<Self, DatabaseError> {
                match text {
                    $($text => Ok(Self::$word),)*
                    other => Err(DatabaseError::Shape(format!("{other} is no {}", stringify!($name)))),
                }
            }
        }
    };
}

words! {
    /// Where a call comes from.
    Source {
        /// Somebody called a bound number.
        Inbound = "inbound",
        /// The service placed it.
        Outbound = "outbound",
        /// A browser's voice test.
        Browser = "browser",
        /// A simulated caller.
        Simulation = "simulation",
    }
}

words! {
    /// Who placed a call.
    Direction {
        /// The other side.
        Inbound = "inbound",
        /// The service.
        Outbound = "outbound",
    }
}

words! {
    /// Where a call is.
    CallStatus {
        /// Accepted and waiting.
        Queued = "queued",
        /// The other side's telephone rings.
        Ringing = "ringing",
        /// The two sides are connected.
        InProgress = "in_progress",
        /// Over.
        Ended = "ended",
    }
}

words! {
    /// What came of a call.
    Outcome {
        /// There was a conversation.
        Completed = "completed",
        /// Nobody answered.
        NoAnswer = "no_answer",
        /// The line was busy.
        Busy = "busy",
        /// It could not be connected or broke.
        Failed = "failed",
        /// It was called off before anybody talked.
        Canceled = "canceled",
        /// A machine answered.
        Voicemail = "voicemail",
    }
}

words! {
    /// How the caller felt about the call.
    Sentiment {
        /// Pleased.
        Positive = "positive",
        /// Neither.
        Neutral = "neutral",
        /// Displeased.
        Negative = "negative",
        /// It cannot be told.
        Unknown = "unknown",
    }
}

words! {
    /// Whose fault it is that a call did not go well.
    CallFault {
        /// Nobody's: it went well, or as such things go.
        None = "none",
        /// The other side's.
        Caller = "caller",
        /// The assistant's configuration.
        Assistant = "assistant",
        /// The server's settings.
        Operator = "operator",
        /// A model's or a voice's provider.
        Provider = "provider",
        /// The telephone carrier.
        Carrier = "carrier",
        /// This service.
        Platform = "platform",
    }
}

words! {
    /// Who analysed a call.
    AnalysisMethod {
        /// The built-in rules.
        Rule = "rule",
        /// A model.
        Model = "model",
    }
}

/// A column that holds a word of such a list, or NULL.
pub fn optional<T>(
    row: Row<'_>,
    column: &str,
    parse: fn(&str) -> Result<T, DatabaseError>,
) -> Result<Option<T>, DatabaseError> {
    row.optional_text(column)?.filter(|text| !text.is_empty()).map(|text| parse(&text)).transpose()
}

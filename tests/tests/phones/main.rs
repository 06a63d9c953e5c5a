//! Telephone calls with four carriers. Fakes play the carriers over real sockets, with their requests and signatures, and
//! the call log must match what happened. Each scenario is written once and runs with each
//! carrier. On the binary, or on the Worker with `SIDETONE_TEST_HOST=worker`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

/// Creates a test of each scenario for each carrier: `twilio::a_scenario`, …
macro_rules! with_each_carrier {
    ($($(#[$about:meta])* $scenario:ident),* $(,)?) => {
        with_each_carrier!(@ twilio "twilio" $($(#[$about])* $scenario)*);
        with_each_carrier!(@ telnyx "telnyx" $($(#[$about])* $scenario)*);
        with_each_carrier!(@ plivo "plivo" $($(#[$about])* $scenario)*);
        with_each_carrier!(@ vonage "vonage" $($(#[$about])* $scenario)*);
    };
    (@ $carrier:ident $name:literal $($(#[$about:meta])* $scenario:ident)*) => {
        mod $carrier {
            $(#[test]
            $(#[$about])*
            fn $scenario() {
                super::$scenario($name);
            })*
        }
    };
}

mod coming_back;
mod cut_short;
mod hang_up;
mod hard_to_hear;
mod inbound;
mod keys;
mod machines;
mod media;
mod outbound;
mod realtime;
mod recorded_caller;
mod recordings;
mod refused;
mod replays;
mod slow_tools;
mod sockets_beside_answers;
mod speaking_while_writing;
mod speech;
mod speech_breaks;
mod speech_faults;
mod speech_providers;
mod status;
mod support;
mod talked_over;
mod thinking_early;
mod transfers;

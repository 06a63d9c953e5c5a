//! Telephone calls with four carriers, whose fakes play the other end over real sockets: what they ask and sign
//! is theirs, and what the call log says afterwards is what happened. Each scenario is written once and runs with each
//! carrier. On the binary, or on the Worker where `SIDETONE_TEST_HOST` says so.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

/// Makes a test of each scenario for each carrier: `twilio::a_scenario`, …
macro_rules! with_each_carrier {
    ($($scenario:ident),* $(,)?) => {
        with_each_carrier!(@ twilio "twilio" $($scenario)*);
        with_each_carrier!(@ telnyx "telnyx" $($scenario)*);
        with_each_carrier!(@ plivo "plivo" $($scenario)*);
        with_each_carrier!(@ vonage "vonage" $($scenario)*);
    };
    (@ $carrier:ident $name:literal $($scenario:ident)*) => {
        mod $carrier {
            $(#[test]
            fn $scenario() {
                super::$scenario($name);
            })*
        }
    };
}

mod hang_up;
mod inbound;
mod media;
mod outbound;
mod refused;
mod status;
mod support;

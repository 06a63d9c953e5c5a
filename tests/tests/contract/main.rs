//! The contract as scenarios. `SIDETONE_TEST_HOST=native cargo test` runs them against the real binary, `worker` against
//! the Worker in workerd; what does not apply there is reported as ignored.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are tests: they panic when something is wrong"
)]

mod assistants;
mod auth;
mod bad_input;
mod blame;
mod call_properties;
mod calls;
mod carriers;
mod deliveries;
mod error_messages;
mod every_operation;
mod faults;
mod hosts;
mod keys;
mod knowledge;
mod live;
mod mcp;
mod newcomers;
mod numbers;
mod outcomes;
mod paid;
mod properties;
mod recordings;
mod round_trips;
mod runs;
mod simulations;
mod snapshots;
mod tools;
mod webhooks;

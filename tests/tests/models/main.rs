//! Asking models, over real HTTP from a fake server where the model's name selects the behaviour, and in
//! a Sandbox with scripted responses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test code: a test that cannot continue must panic"
)]
mod analyst;
mod assistant;
mod caller;
mod http;
mod judge;
mod retries;
mod sandbox;
mod support;

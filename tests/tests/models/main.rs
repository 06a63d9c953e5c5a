//! Asking models over real HTTP, of a fake server that behaves as the model's name says; and, in
//! a sandbox, of scripted answers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test code: a scenario that cannot go on says so loudly"
)]
mod analyst;
mod assistant;
mod caller;
mod http;
mod judge;
mod patience;
mod sandbox;
mod support;

//! Stored data: batches of statements, calls, runs, events, recordings, jobs, spending.
pub mod batch;
pub mod calls;
pub(crate) mod column;
pub(crate) mod cost;
pub(crate) mod deliveries;
pub mod events;
pub mod fault;
pub(crate) mod idempotency;
pub mod jobs;
pub mod migrations;
pub mod recordings;
pub(crate) mod runs;
pub mod signing;
pub(crate) mod snapshots;
pub mod spending;
pub(crate) mod test_token;
pub(crate) mod workspaces;

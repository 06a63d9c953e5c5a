//! Stored data: batches of statements, calls, runs, events, recordings, jobs, spending.
pub mod batch;
pub mod calls;
pub(crate) mod column;
pub mod cost;
pub mod deliveries;
pub mod events;
pub mod fault;
pub mod idempotency;
pub mod jobs;
pub mod migrations;
pub mod recordings;
pub mod runs;
pub mod signing;
pub mod snapshots;
pub mod spending;
pub mod test_token;
pub mod workspaces;

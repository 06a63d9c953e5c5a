//! Calls: the log of all telephone calls, browser tests and simulated calls.
pub(crate) mod delete;
pub(crate) mod delete_many;
pub(crate) mod follow;
pub(crate) mod get;
pub(crate) mod hang_up;
pub(crate) mod list;
pub(crate) mod over_time;
pub(crate) mod place;
pub(crate) mod recording;
pub(crate) mod waveform;

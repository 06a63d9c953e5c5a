//! Calls: the log of all telephone calls, browser tests and simulated calls.
pub mod get;
pub mod hang_up;
pub mod list;
pub mod place;
pub mod recording;
pub mod waveform;

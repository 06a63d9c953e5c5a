//! Calls: the log of all that were placed, taken, tested and simulated.
pub mod get;
pub mod list;
pub mod recording;
pub mod waveform;

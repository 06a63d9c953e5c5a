//! Calls: the log of all that were placed, taken, tested and simulated.
pub mod get;
pub mod hang_up;
pub mod list;
pub mod place;
pub mod recording;
pub mod waveform;

//! Calls: the log of all that were placed, taken, tested and simulated.
pub(crate) mod get;
pub(crate) mod hang_up;
pub(crate) mod list;
pub(crate) mod place;
pub(crate) mod recording;
pub(crate) mod waveform;

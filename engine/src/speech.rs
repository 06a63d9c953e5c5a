//! What speaks and what listens.
pub mod tone;

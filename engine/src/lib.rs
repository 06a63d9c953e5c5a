//! Sidetone's engine: it decides everything and touches nothing.
//!
//! No socket, clock, randomness, file or thread lives here; a host lends them through [`ports`].
pub mod conversation;
pub mod evaluation;
pub mod json;
pub mod models;
pub mod phone;
pub mod simulation;
pub mod targets;

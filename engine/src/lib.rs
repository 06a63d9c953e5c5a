//! Sidetone's engine: it decides everything and touches nothing.
//!
//! No socket, clock, randomness, file or thread lives here; a host lends them through [`ports`].
pub mod auth;
pub mod conversation;
pub mod field;
pub mod json;
pub mod models;
pub mod phone;
pub mod simulation;
pub mod targets;
pub mod tool_parameters;

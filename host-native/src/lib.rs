//! Self-hosted Sidetone: the engine with SQLite, hyper and the system clock, as one binary. [`Sandbox`] is the
//! in-memory variant for tests.
pub mod blobs;
pub mod cli;
pub mod data;
pub mod database;
mod fair;
pub mod http_client;
pub mod keys;
mod lateness;
mod memory;
pub mod open_files;
mod runner;
pub mod sandbox;
pub mod server;
pub mod settings;
pub mod smtp;
pub mod system;
pub mod web_socket_client;

pub use sandbox::Sandbox;

//! Sidetone self-hosted: the engine over SQLite, hyper and the system's clock, as one binary; and, for tests, over
//! nothing but memory: [`Sandbox`].
pub mod blobs;
pub mod cli;
pub mod data;
pub mod database;
pub mod http_client;
pub mod keys;
mod runner;
pub mod sandbox;
pub mod server;
pub mod settings;
pub mod system;

pub use sandbox::Sandbox;

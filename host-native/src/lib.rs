//! Self-hosted Sidetone: the engine with SQLite, hyper and the system clock, as one binary. [`Sandbox`] is the
//! in-memory variant for tests.
mod as_code;
pub mod backup;
pub mod blobs;
pub mod check;
pub mod cli;
pub mod data;
pub mod database;
pub mod doctor;
mod fair;
mod folder_lock;
pub mod http_client;
pub mod keys;
mod lateness;
pub mod log;
mod lost_database;
mod memory;
pub mod metrics;
pub mod moving;
pub mod open_files;
mod outside;
mod runner;
pub mod sandbox;
pub mod server;
mod service_client;
pub mod settings;
pub mod smtp;
pub mod system;
mod text;
mod traces;
pub mod web_socket_client;

pub use sandbox::Sandbox;

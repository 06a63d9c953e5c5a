//! Sidetone's engine: it decides everything and touches nothing.
//!
//! No socket, clock, randomness, file or thread lives here; a host lends them through [`ports`].
//! Start reading at [`engine::Engine::handle`]: a request comes in there. [`operations`] lists what
//! the service can do.
#![cfg_attr(
    target_arch = "wasm32",
    allow(
        clippy::arc_with_non_send_sync,
        reason = "hosts with threads share what a Worker's one thread has"
    )
)]
pub mod audio;
pub mod auth;
pub mod batch;
pub mod blobs;
pub mod calls;
pub mod carriers;
pub mod config;
pub mod context;
pub mod conversation;
pub mod crud;
pub mod docs;
pub mod documents;
pub mod engine;
pub mod error;
pub mod evaluation;
pub mod events;
pub mod faces;
pub mod field;
pub mod hash;
pub mod idempotency;
pub mod ids;
pub mod jobs;
pub mod json;
pub mod limits;
pub mod live;
pub mod mcp;
pub mod migrations;
pub mod models;
#[cfg(not(target_arch = "wasm32"))]
pub mod openapi;
pub mod operation;
pub mod operations;
pub mod page;
pub mod perform;
pub mod phone;
pub mod ports;
pub mod range;
pub mod recordings;
mod refusal;
pub mod rest;
pub mod router;
pub mod schema;
pub mod signing;
pub mod simulation;
pub mod speech;
pub mod spending;
pub mod statement;
pub mod targets;
pub mod telephony;
pub mod time;
pub mod tool_parameters;
pub mod validate;
pub mod workspaces;

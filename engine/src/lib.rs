//! Sidetone's engine: it decides everything and touches nothing.
//!
//! No socket, clock, randomness, file or thread lives here; a host lends them through [`ports`].
//! Start reading at [`engine`]: every request enters at [`engine::Engine::begin`].
//!
//! The modules are floors, from the ground up: [`base`], [`ports`], [`speech`], [`conversation`], [`models`],
//! [`simulation`], [`carriers`], [`config`], [`services`], [`storage`], [`live`], [`jobs`], [`operations`],
//! [`interfaces`], [`dashboard`], [`engine`]. Each imports only from its own floor and those below it; `tests/floors.rs` holds them to
//! that.
#![cfg_attr(
    target_arch = "wasm32",
    allow(
        clippy::arc_with_non_send_sync,
        reason = "hosts with threads share what a Worker's one thread has"
    )
)]
pub mod base;
pub mod carriers;
pub mod config;
pub mod conversation;
pub mod dashboard;
pub mod engine;
pub mod interfaces;
pub mod jobs;
pub mod live;
pub mod models;
pub mod operations;
pub mod ports;
pub mod services;
pub mod simulation;
pub mod speech;
pub mod storage;

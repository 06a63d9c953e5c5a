//! Sidetone on Cloudflare Workers: the engine over D1, R2, Queues and fetch. Empty on every other target.
#![cfg(target_arch = "wasm32")]
#![allow(clippy::arc_with_non_send_sync, reason = "the engine's ports are Arcs; a Worker has one thread")]
mod d1;
mod http;
mod isolate;
mod keys;
mod queue;
mod r2;
mod server;
mod settings;
mod socket;
mod system;

use worker::web_sys::{Request, Response};
use worker::{Context, Env, MessageBatch, ScheduleContext, ScheduledEvent, event};

/// A request.
#[event(fetch)]
async fn fetch(request: Request, env: Env, context: Context) -> worker::Result<Response> {
    server::answer(request, &env, &context).await
}

/// Hints that jobs are due.
#[event(queue)]
async fn queue(batch: MessageBatch<queue::Hint>, env: Env, _: Context) -> worker::Result<()> {
    if !queue::consume(&batch, &env).await {
        batch.retry_all();
    }
    // An error from here would be a panic.
    Ok(())
}

/// Runs what is due although no hint came, and removes what has expired.
#[event(scheduled)]
async fn scheduled(_: ScheduledEvent, env: Env, _: ScheduleContext) {
    queue::scheduled(&env).await;
}

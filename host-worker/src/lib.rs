//! Sidetone on Cloudflare Workers: the engine with D1, R2, Queues and fetch. Empty on other targets.
#![cfg(target_arch = "wasm32")]
#![allow(clippy::arc_with_non_send_sync, reason = "the engine's ports are Arcs; a Worker has one thread")]
mod d1;
mod homes;
mod http;
mod isolate;
mod keys;
mod queue;
mod r2;
mod server;
mod settings;
mod socket;
mod system;
mod traces;
mod web_sockets;

use worker::web_sys::{Request, Response};
use worker::{Context, Env, MessageBatch, ScheduleContext, ScheduledEvent, event};

/// Answers a request.
#[event(fetch)]
async fn fetch(request: Request, env: Env, context: Context) -> worker::Result<Response> {
    server::answer(request, &env, &context).await
}

/// Runs jobs announced by hints.
#[event(queue)]
async fn queue(batch: MessageBatch<queue::Hint>, env: Env, context: Context) -> worker::Result<()> {
    if !queue::consume(&batch, &env, &context).await {
        batch.retry_all();
    }
    // Returning an error would panic.
    Ok(())
}

/// Runs due jobs without a hint, and the sweep.
#[event(scheduled)]
async fn scheduled(_: ScheduledEvent, env: Env, context: ScheduleContext) {
    queue::scheduled(&env, &context).await;
}

//! Waiting for an end: a read that is answered once what it reads has ended, so that its client asks seldom.
//!
//! Between two looks, the request has a place among those who follow something, and nothing else: no connection to the
//! database, and nothing of what it is going to read. A service that stops answers at once.
use std::pin::pin;

use futures_util::future::select;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::base::limits::{WAIT_PAUSE_MS_MAX, WAIT_PAUSE_MS_MIN, WAIT_SECONDS_MAX};
use crate::operations::context::Context;
use crate::operations::following;
use crate::operations::operation::Input;
use crate::ports::statement::Statement;
use crate::storage::fault::Fault;

/// How long a read waits.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Wait {
    /// Answers when it has ended, at the latest after so many seconds, as it is then. Default: 0, at once. While too many
    /// requests wait, the answer comes at once as well.
    #[schemars(range(min = 0, max = WAIT_SECONDS_MAX))]
    wait_seconds: Option<i64>,
}

/// Waits while `goes_on` finds a row, as long as the request asks for. The time counts from the beginning of the request, so
/// the messages of a JSON-RPC batch wait no longer than one of them.
pub(crate) async fn until_over(
    context: &mut Context,
    input: &Input,
    goes_on: Statement,
) -> Result<(), Fault> {
    let Wait { wait_seconds } = input.query()?;
    let until_ms = context.now_ms + wait_seconds.filter(|_| context.may_wait).unwrap_or(0) * 1_000;
    let services = context.services.clone();
    let (clock, stopping) = (&services.ports().clock, services.stopping());
    let mut pause_ms = WAIT_PAUSE_MS_MIN;
    let mut place = None;
    loop {
        let left_ms = until_ms - clock.now_ms();
        if left_ms <= 0 || stopping.has_begun() {
            break;
        }
        let [found] = context.read_each([goes_on.clone()]).await?;
        if found.is_empty() {
            break;
        }
        if place.is_none() {
            place = context.services.followers().take(context.workspace_id()?, 1, following::KEPT);
        }
        if place.is_none() {
            break;
        }
        let pause = clock.sleep(pause_ms.min(left_ms).unsigned_abs());
        select(pin!(stopping.begun()), pause).await;
        pause_ms = (pause_ms * 2).min(WAIT_PAUSE_MS_MAX);
    }
    // A key that was revoked meanwhile reads nothing.
    context.restart();
    Ok(())
}

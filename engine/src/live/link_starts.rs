//! How many conversations a test link has begun, and how fast: who holds a link needs no key, so that only this keeps them from
//! filling the log of the workspace. The tokens that were used tell, until the link expires.
use serde_json::json;

use crate::base::error::{Code, Error};
use crate::base::limits::{LINK_STARTS_MAX, LINK_STARTS_WINDOW_MAX, LINK_STARTS_WINDOW_MS};
use crate::ports::statement::{Rows, Statement};
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::test_token::TestToken;

const OF_LINK: &str = "FROM used_test_tokens WHERE workspace_id = :ws AND link_id = :link";

/// The statement for [`check`]; in workspace `:ws`.
pub(super) fn select(token: &TestToken, now_ms: i64) -> Statement {
    sql!(
        format!(
            "SELECT COUNT(*) AS begun, COUNT(*) FILTER (WHERE used_at > :since) AS lately,
             COALESCE(MIN(used_at) FILTER (WHERE used_at > :since), 0) AS first_ms {OF_LINK}"
        ),
        link = token.first_id.as_deref(),
        since = now_ms - LINK_STARTS_WINDOW_MS
    )
}

/// Refuses another start of a link that has begun as many conversations as it may.
pub(super) fn check(rows: &Rows, now_ms: i64) -> Result<(), Fault> {
    let Some(row) = rows.first() else { return Ok(()) };
    if row.integer("begun")? >= LINK_STARTS_MAX {
        let message = format!(
            "This test link has begun {LINK_STARTS_MAX} conversations, and no link begins more. Ask for a new one (POST /assistants/{{id}}/test-token)."
        );
        let details = json!({"limit": LINK_STARTS_MAX, "of": "conversations of a test link"});
        return Err(Error::new(Code::LimitReached, message).with_details(details).into());
    }
    if row.integer("lately")? < LINK_STARTS_WINDOW_MAX {
        return Ok(());
    }
    let wait_ms = row.integer("first_ms")? + LINK_STARTS_WINDOW_MS - now_ms;
    let wait_s = (wait_ms.max(1) + 999) / 1_000;
    let message = format!(
        "This test link has begun {LINK_STARTS_WINDOW_MAX} conversations within a minute, which is the most. Start again in {wait_s} s."
    );
    let error = Error::new(Code::TooManyStarts, message);
    Err(Error { retry_after_s: Some(wait_s), ..error.with_details(json!({"limit": LINK_STARTS_WINDOW_MAX})) }
        .into())
}

/// Fails the batch that begins a conversation if others of the link have begun since [`select`].
pub(super) fn guard(token: &TestToken, now_ms: i64) -> Statement {
    sql!(
        format!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE (SELECT COUNT(*) {OF_LINK}) >= :most
             OR (SELECT COUNT(*) {OF_LINK} AND used_at > :since) >= :lately"
        ),
        link = token.first_id.as_deref(),
        most = LINK_STARTS_MAX,
        since = now_ms - LINK_STARTS_WINDOW_MS,
        lately = LINK_STARTS_WINDOW_MAX
    )
    .in_workspace(&token.workspace_id)
}

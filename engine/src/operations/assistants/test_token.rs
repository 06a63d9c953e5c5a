//! `POST /assistants/{id}/test-token`: a link that opens one conversation in a browser.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Assistant;
use crate::base::error::Code;
use crate::base::ids::TestTokenId;
use crate::base::limits::{
    TEST_TOKEN_DURATION_SECONDS_DEFAULT, TEST_TOKEN_SECONDS_MAX, TEST_TOKEN_SECONDS_MIN,
    TEST_TOKEN_TTL_SECONDS_DEFAULT, TEST_TOKENS_WITH_VALUES_MAX,
};
use crate::base::time::Timestamp;
use crate::base::values::{Metadata, Variables};
use crate::conversation::{Texts, Values};
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output, Success};
use crate::operations::{checks, resource, variables};
use crate::storage::fault::Fault;
use crate::storage::idempotency::OneTimeSecret;
use crate::storage::test_token::{TestToken, TokenValues};

/// `POST /assistants/{id}/test-token`
pub const OPERATION: Operation = Operation::post("create_browser_test_token", "/assistants/{id}/test-token", run!(run))
    .with_success(Success::Ok)
    .reaching_out()
    .docs(
        "Test in the browser",
        "Creates a short-lived link to a page that talks to the assistant, aloud or by text. The link opens one \
        conversation, which is a call (`source: browser`) and can incur usage once its WebSocket is opened; opening the \
        page alone does not. Anybody with the link can talk at the workspace's expense until it expires: never publish it.",
    )
    .optional_body::<Body>()
    .returns::<IssuedToken>()
    .errors(&[Code::MissingVariables, Code::LimitReached]);

/// Options of the link and of its conversation; all have defaults.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    /// How long the link can be used. Less than 30 counts as 30, more than 3600 as 3600; default 300.
    #[serde(default)]
    #[schemars(with = "i64")]
    ttl_seconds: Option<i64>,
    /// How long the conversation may last. Less than 30 counts as 30, more than 3600 as 3600; default 600.
    #[serde(default)]
    #[schemars(with = "i64")]
    max_duration_seconds: Option<i64>,
    /// Whether the page offers to start again: each time with a token of its own, until this one expires. Each
    /// conversation is a call of its own. Default: false, one conversation.
    #[serde(default)]
    restartable: bool,
    /// What fills in `{{name}}` in the assistant's instructions and opening message, by name. Names have small letters,
    /// digits and underscores; at most 64, each of up to 1,024 bytes, 16 KiB in all.
    #[serde(default)]
    variables: Variables,
    /// Texts of your own that are kept with the call, by name. At most 50, with names of up to 64 characters and values of up to 512
    /// bytes, 4 KiB in all.
    #[serde(default)]
    metadata: Metadata,
}

/// A test token and the addresses that use it.
#[derive(Serialize, JsonSchema)]
struct IssuedToken {
    /// The page to open in a browser.
    url: String,
    /// The WebSocket behind the page, for a client of your own: JSON text messages, and audio if you add `&audio=speech`.
    /// Its messages: <https://github.com/sidetone/sidetone/blob/main/docs/testing.md#test-in-the-browser>.
    websocket_url: String,
    /// The token that both addresses contain.
    token: String,
    /// When the link expires.
    expires_at: Timestamp,
    /// The seconds until the link expires.
    ttl_seconds: i64,
    /// How long the conversation may last.
    max_duration_seconds: i64,
    /// Whether the link may start again.
    restartable: bool,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Body { ttl_seconds, max_duration_seconds, restartable, variables, metadata } = input.body()?;
    let ttl_seconds = clamped(ttl_seconds, TEST_TOKEN_TTL_SECONDS_DEFAULT);
    let max_duration_seconds = clamped(max_duration_seconds, TEST_TOKEN_DURATION_SECONDS_DEFAULT);
    let assistant: Assistant = resource::one(context, &input.id()).await?;
    let texts = Texts {
        instructions: &assistant.draft.instructions,
        first_message: &assistant.draft.first_message,
        voicemail_message: "",
    };
    let now = Timestamp::from_ms(context.now_ms);
    variables::check(&texts.wanted(), &Values::without_telephone(&variables, now))?;
    let id: TestTokenId = context.services.new_id();
    let token = TestToken {
        first_id: restartable.then(|| id.clone()),
        id,
        workspace_id: context.workspace_id()?.clone(),
        assistant_id: assistant.id,
        expires_at_ms: context.now_ms + ttl_seconds * 1_000,
        max_duration_seconds: u16::try_from(max_duration_seconds).unwrap_or(u16::MAX),
    };
    // The response stored under an Idempotency-Key contains the token's claims, not the token.
    let answer = IssuedToken {
        url: String::new(),
        websocket_url: String::new(),
        token: String::new(),
        expires_at: Timestamp::from_ms(token.expires_at_ms),
        ttl_seconds,
        max_duration_seconds,
        restartable,
    };
    let statements = match variables.is_empty() && metadata.is_empty() {
        true => Vec::new(),
        false => vec![
            // The sweep deletes those that have expired, a while later.
            checks::room_among(
                "test_token_values",
                " AND expires_at > :now",
                vec![("now", context.now_ms.into())],
                TEST_TOKENS_WITH_VALUES_MAX,
            ),
            TokenValues { variables, metadata }.insert(&token),
        ],
    };
    let output = Output::ok(&answer)?.revealing(OneTimeSecret::TestToken { token });
    context.commit(statements, output).await.map_err(no_room)
}

/// The error when the workspace has as many test tokens with values as it can have.
fn no_room(fault: Fault) -> Fault {
    const THESE: &str = "test tokens with variables or metadata that were not used";
    checks::explain_limit(fault, THESE, TEST_TOKENS_WITH_VALUES_MAX, "Use them, or wait until they expire.")
}

fn clamped(asked: Option<i64>, default: i64) -> i64 {
    asked.unwrap_or(default).clamp(TEST_TOKEN_SECONDS_MIN, TEST_TOKEN_SECONDS_MAX)
}

//! The numbers that other pages repeat.
use sidetone_engine::base::error::PROBLEMS_MAX;
use sidetone_engine::base::fair_pool::THRESHOLD;
use sidetone_engine::base::limits::*;
use sidetone_engine::base::targets::URL_BYTES_MAX;
use sidetone_engine::base::tool_parameters::{TOOL_PARAMETERS_BYTES_MAX, TOOL_PARAMETERS_DEPTH_MAX};
use sidetone_engine::conversation::{REPEATS_MAX, SILENCES_MAX, TOOL_RESULT_BYTES_MAX};
use sidetone_engine::jobs::JOBS_PER_INVOCATION;
use sidetone_engine::simulation::{
    EVALUATION_INCLUDES_CHARS_MAX, EVALUATIONS_PER_SCENARIO_MAX, SIMULATION_TURNS_MAX,
};

use crate::PAGE;
use crate::render::{bytes, characters, count, duration, megabytes, plain_bytes, word};
use crate::sources::{of_migrations, of_source};

/// What other pages repeat of the table, and what its own page says outside of the cells that are compared.
pub fn repeated() -> Vec<(&'static str, Vec<String>)> {
    let token_seconds = format!("{TEST_TOKEN_SECONDS_MIN} to {}", count(TEST_TOKEN_SECONDS_MAX));
    let retention = format!("(1 to {};", count(RETENTION_DAYS_MAX));
    let rows = format!("at most {}", count(PAGE_ROWS_MAX));
    let name = format!("1 to {}", characters(NAME_CHARS_MAX));
    let day = "24 hours";
    for ms in [SECRET_OVERLAP_MS_MAX, IDEMPOTENCY_WINDOW_MS.unsigned_abs(), LATE_PRICE_MS.unsigned_abs()] {
        assert_eq!(duration(ms), day);
    }
    let pauses: Vec<i64> = DELIVERY_RETRY_MS.iter().map(|pause| pause / 1_000).collect();
    assert_eq!(pauses, [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]);
    vec![
        (
            PAGE,
            vec![
                format!(
                    "a transcript above {} counts {TRANSCRIPT_MEMORY_PER_BYTE} bytes for each further byte",
                    bytes(TRANSCRIPT_INCLUDED_BYTES)
                ),
                format!("leaves {LIVE_SESSIONS_FOR_NEWCOMERS} to those that have none"),
                format!("at most {} times what is still free", word(THRESHOLD)),
                format!(
                    "the binary continues after 0.{} s",
                    of_source("engine/src/jobs/sweep.rs", "CONTINUE_MS").trim_end_matches("00")
                ),
                format!("at least {MEMORY_MB_MIN}; see [Budgets]"),
                format!(
                    "{} on a Worker; {} where it cannot be measured",
                    of_source("host-worker/src/settings.rs", "MEMORY_MB").trim_matches('"'),
                    count(MEMORY_MB_DEFAULT)
                ),
                format!(
                    "{} and {}, which are also the most",
                    count(RUNS_AT_ONCE_MAX),
                    count(CALLS_AT_ONCE_MAX)
                ),
            ],
        ),
        (
            "docs/assistants-and-knowledge.md",
            vec![
                format!("| `name` | required, {name} |"),
                format!("at most {}: who", plain_bytes(INSTRUCTIONS_BYTES_MAX)),
                format!("the opening line, at most {}", characters(FIRST_MESSAGE_CHARS_MAX)),
                format!("({name}). `content` has at most {}.", bytes(DOCUMENT_BYTES_MAX)),
                format!(
                    "at most {DOCUMENTS_PER_ASSISTANT_MAX} documents and {} of knowledge",
                    bytes(KNOWLEDGE_PER_ASSISTANT_BYTES_MAX)
                ),
            ],
        ),
        (
            "docs/tools.md",
            vec![
                format!("HTTPS URL of at most {}", plain_bytes(URL_BYTES_MAX)),
                format!("in at most {}", characters(TOOL_DESCRIPTION_CHARS_MAX)),
                format!(
                    "{} to {} ms, default {}",
                    count(TOOL_TIMEOUT_MS_MIN),
                    count(TOOL_TIMEOUT_MS_MAX),
                    count(TOOL_TIMEOUT_MS_DEFAULT)
                ),
                format!("An assistant has at most {TOOLS_PER_ASSISTANT_MAX} tools"),
                format!("reads at most {}", bytes(TOOL_RESPONSE_BYTES_MAX)),
                format!("the first {}", plain_bytes(TOOL_RESULT_BYTES_MAX)),
                format!("at most {}, {TOOL_PARAMETERS_DEPTH_MAX} levels", bytes(TOOL_PARAMETERS_BYTES_MAX)),
                format!("For {day}, or `overlap_ms`"),
            ],
        ),
        (
            "docs/testing.md",
            vec![
                format!("After {} starts", word(JOB_ATTEMPTS_MAX)),
                format!("{} messages were wrong", word(LIVE_WRONG_MESSAGES_MAX)),
                format!("`evaluations` (at most {EVALUATIONS_PER_SCENARIO_MAX})"),
                format!("`includes` has at most {}", characters(EVALUATION_INCLUDES_CHARS_MAX)),
                format!("`repeat` (1 to {REPEAT_MAX})"),
                format!("at most {} together", count(BATCH_RUNS_MAX)),
                format!("`wait_seconds` (at most {WAIT_SECONDS_MAX})"),
                format!("at most {BATCH_FAILURES_MAX} of them"),
                format!("{} in a request", count(RUNS_DELETED_AT_ONCE)),
                format!("cut to {BATCH_FAILURE_CHARS_MAX} characters"),
                format!("at most {SIMULATION_TURNS_MAX} lines"),
                format!(
                    "`ttl_seconds` (default {TEST_TOKEN_TTL_SECONDS_DEFAULT}) and `max_duration_seconds` (default \
                     {TEST_TOKEN_DURATION_SECONDS_DEFAULT}) range from {token_seconds}"
                ),
                format!("(at most {})", characters(LIVE_TEXT_CHARS_MAX)),
                format!("send {LIVE_MESSAGES_BURST} messages at once"),
                format!("a message had more than {}", bytes(SOCKET_MESSAGE_BYTES_MAX)),
            ],
        ),
        (
            "docs/webhooks.md",
            vec![
                format!("at most {WEBHOOKS_MAX} webhooks"),
                format!("An event above {}", megabytes(EVENT_BYTES_MAX)),
                format!("Any 2xx within {}", duration(DELIVERY_DEADLINE_MS)),
                "after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h".to_owned(),
                format!("up to {DELIVERY_JITTER_PERCENT_MAX} % at random"),
                format!("the first {}", plain_bytes(DELIVERY_RESPONSE_KEPT_BYTES_MAX)),
                format!("events and deliveries for {}", duration(EVENT_KEPT_MS.unsigned_abs())),
                format!("is {day} unless you set `overlap_ms` (0 to {})", count(SECRET_OVERLAP_MS_MAX)),
            ],
        ),
        (
            "docs/rest-api.md",
            vec![
                format!("{} wrong keys from one address within a minute", word(INVALID_CREDENTIALS_MAX))
                    .replacen('t', "T", 1),
                format!("at most {}, with `Content-Type", bytes(BODY_BYTES_MAX)),
                format!("(default and at most {}) and {}", count(PAGE_ROWS_MAX), bytes(PAGE_BYTES_MAX)),
                format!("`limit` (default {PAGE_ROWS_DEFAULT}, {rows})"),
                format!("(1 to {IDEMPOTENCY_KEY_CHARS_MAX} printable ASCII characters"),
                format!("For {day} the same request"),
                format!("at most {PROBLEMS_MAX}"),
                format!("did not arrive in time. It has {}", duration(REQUEST_READ_MS)),
                format!("larger than {}", bytes(BODY_BYTES_MAX)),
                format!("is too large. It has at most {}", bytes(HEAD_BYTES_MAX)),
            ],
        ),
        (
            "docs/calls.md",
            vec![
                format!("silent {} times in a row", word(SILENCES_MAX)),
                format!("the same sentence {} times in a row", word(REPEATS_MAX)),
                format!("At most {}", characters(SEARCH_CHARS_MAX)),
                format!("at most {} in a request", count(CALLS_DELETED_AT_ONCE)),
                format!("the first {} words", of_source("engine/src/storage/calls/search.rs", "WORDS_MAX")),
                format!("{PAGE_ROWS_DEFAULT} rows; {rows}"),
                format!("A page has at most {}", bytes(PAGE_BYTES_MAX)),
                format!("reports within {day}"),
                retention,
            ],
        ),
        (
            "docs/telephone-numbers.md",
            vec![
                format!("default {}, at most {}", of_migrations("calls_at_once"), count(CALLS_AT_ONCE_MAX)),
                format!("for {day}, whatever happened"),
            ],
        ),
        (
            "docs/models.md",
            vec![
                format!("at most {} models to ask", word(MODEL_FALLBACKS_MAX)),
                format!("asks a model up to {} times", word(MODEL_ATTEMPTS_MAX)),
                format!("at most {} minutes. Sidetone honours", word(MODEL_TOTAL_MS / 60_000)),
                format!("counting {} bytes", word(MODEL_BYTES_PER_TOKEN)),
                format!("at least {} minutes", word(PHONE_CALL_SECONDS_MIN / 60)),
                format!("({} per attempt)", duration(MODEL_ATTEMPT_MS)),
                format!("`Retry-After` up to {}", duration(MODEL_RETRY_AFTER_MS_MAX)),
                format!("{} (one US dollar)", count(RUN_COST_MICROUSD_DEFAULT)),
            ],
        ),
        (
            "docs/deploying-at-the-edge.md",
            vec![format!("up to {JOBS_PER_INVOCATION} runs"), format!("at most {JOBS_PER_INVOCATION} jobs")],
        ),
        (
            "docs/moving-a-workspace.md",
            vec![
                format!("up to {MOVE_PART_ROWS_MAX} rows, or {} of recordings", bytes(MOVE_BLOBS_BYTES)),
                format!("At most {} workspaces move at once", word(MOVES_AT_ONCE_MAX)),
            ],
        ),
        (
            "CHANGELOG.md",
            vec![
                format!("a budget of {}", bytes(RESPONSES_BYTES_MAX)),
                format!("reads of more than {}", bytes(RESPONSE_SMALL_BYTES)),
                format!("less than {}", bytes(RESPONSE_WINDOW_BYTES_MIN)),
                format!("The head of a request has at most {}", bytes(HEAD_BYTES_MAX)),
                format!("`limit` (1 to {}, which is the default)", count(PAGE_ROWS_MAX)),
                format!("A part has at most {}", bytes(PAGE_BYTES_MAX)),
                format!("end after {}", duration(LONG_READ_MS)),
                format!(
                    "can have {} of each kind of resource and {} API keys",
                    count(ASSISTANTS_MAX),
                    count(KEYS_MAX)
                ),
                format!("at most {WEBHOOKS_MAX} webhooks"),
                format!("`calls_at_once` (default {})", of_migrations("calls_at_once")),
            ],
        ),
    ]
}

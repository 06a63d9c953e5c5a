//! The rows of the table: what the constants say, in the words of the page.
use sidetone_engine::base::error::PROBLEMS_MAX;
use sidetone_engine::base::fair_pool::FairPool;
use sidetone_engine::base::json::JSON_DEPTH_MAX;
use sidetone_engine::base::limits::*;
use sidetone_engine::base::targets::URL_BYTES_MAX;
use sidetone_engine::base::tool_parameters::{TOOL_PARAMETERS_BYTES_MAX, TOOL_PARAMETERS_DEPTH_MAX};
use sidetone_engine::conversation::{
    DURATION_MS_MAX, NOTES_MAX, REPEATS_MAX, SILENCES_MAX, TEXT_BYTES_MAX, TOOL_CALLS_PER_TURN_MAX,
    TOOL_RESULT_BYTES_MAX, TRANSCRIPT_BYTES_MAX, TURNS_MAX, VOICEMAIL_SILENCE_MS, VOICEMAIL_WAIT_MS,
};
use sidetone_engine::jobs::JOBS_PER_INVOCATION;
use sidetone_engine::simulation::{
    EVALUATION_ARGUMENTS_BYTES_MAX, EVALUATION_INCLUDES_CHARS_MAX, EVALUATION_TIMES_MAX,
    EVALUATIONS_PER_SCENARIO_MAX, SIMULATION_TURNS_MAX,
};
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::options::SpeechOptions;
use sidetone_engine::speech::recorder::FRAME_BYTES;

use crate::render::{bytes, characters, count, dollars, duration, megabytes, plain_bytes};
use crate::sources::{of_migrations, of_source, read};

/// A limit: what is limited, its default, and its most.
pub type Limit = (&'static str, String, String);

/// Every row with a constant of the engine's.
pub fn limits() -> Vec<Limit> {
    [
        requests(),
        dashboard(),
        resources(),
        conversations(),
        models_and_events(),
        budgets(),
        memory(),
        retention(),
        moves(),
    ]
    .concat()
}

fn requests() -> Vec<Limit> {
    let list_bytes = bytes(PAGE_BYTES_MAX);
    let window = format!("at least {} in {}", bytes(RESPONSE_WINDOW_BYTES_MIN), duration(RESPONSE_WINDOW_MS));
    let slow_body = format!(
        "{}, and 1 s more for each {} that has arrived",
        duration(BODY_GRACE_MS),
        bytes(BODY_BYTES_PER_S_MIN).trim_start_matches("1 ")
    );
    let wrong_keys =
        format!("{INVALID_CREDENTIALS_MAX} in {}", duration(INVALID_CREDENTIALS_WINDOW_MS.unsigned_abs()));
    vec![
        most("request body", bytes(BODY_BYTES_MAX)),
        most("levels of a body's JSON", count(JSON_DEPTH_MAX)),
        most(
            "part of the file of a [move](moving-a-workspace.md), from the operator",
            bytes(MOVE_PART_BYTES_MAX),
        ),
        most("time to send a request", duration(REQUEST_READ_MS)),
        most("time for a body that arrives slowly (self-hosted)", slow_body),
        most("head of a request (self-hosted)", bytes(HEAD_BYTES_MAX)),
        most("time to send a head, from its first byte (self-hosted)", duration(HEAD_READ_MS)),
        most("clients that follow calls and runs", count(FOLLOWERS_MAX)),
        most("stream of events", duration(FOLLOW_MS_MAX.unsigned_abs())),
        (
            "a read that waits for an end (`wait_seconds`)",
            "at once".to_owned(),
            duration((WAIT_SECONDS_MAX * 1_000).unsigned_abs()),
        ),
        most("reading a response that waits for its client (self-hosted)", window),
        most("`Idempotency-Key`", characters(IDEMPOTENCY_KEY_CHARS_MAX)),
        most(
            "time for which an `Idempotency-Key` is remembered",
            duration(IDEMPOTENCY_WINDOW_MS.unsigned_abs()),
        ),
        most("wrong API keys", wrong_keys),
        most("databases of a Worker", count(SHARDS_BESIDE_MAX + 1)),
        most(
            "databases in which a Worker's timer looks for more than due calls",
            count(SHARDS_PER_TIMER_MAX),
        ),
        most("workspaces that [move](moving-a-workspace.md) at once", count(MOVES_AT_ONCE_MAX)),
        most("difference in size of databases that count as equally full", bytes(FILL_STEP_BYTES)),
        most(
            "time for which a number is kept for a request that is binding it",
            duration(NUMBER_CLAIM_MS.unsigned_abs()),
        ),
        most(
            "large responses that are stored for an `Idempotency-Key`",
            format!(
                "{}, each of more than {}",
                count(LARGE_RESPONSES_STORED_MAX),
                bytes(LARGE_RESPONSE_BYTES)
            ),
        ),
        ("rows of a list in a response", count(LIST_ROWS_DEFAULT), count(PAGE_ROWS_MAX)),
        ("rows of a page of calls, runs or deliveries", count(PAGE_ROWS_DEFAULT), count(PAGE_ROWS_MAX)),
        most("bytes of a list in a response", list_bytes.clone()),
        most("bytes of a page of calls, without `metadata` and analyses", list_bytes),
        most("calls whose waits the statistics count", count(WAITS_CALLS_MAX)),
        ("days of the statistics over time", count(STATISTICS_DAYS_DEFAULT), count(STATISTICS_DAYS_MAX)),
        most("search text", characters(SEARCH_CHARS_MAX)),
        most("words of a search text", of_source("engine/src/storage/calls/search.rs", "WORDS_MAX")),
        most("problems that an error names", count(PROBLEMS_MAX)),
        most("messages of an MCP batch", count(MCP_BATCH_MESSAGES_MAX)),
        most(
            "replies of an MCP batch",
            format!("{}, and the one that passes it", bytes(MCP_BATCH_REPLIES_BYTES_MAX)),
        ),
        most("argument of an MCP prompt", characters(MCP_PROMPT_ARGUMENT_CHARS_MAX)),
        most("assistants or calls on a page of MCP resources", count(MCP_RESOURCES_PER_PAGE)),
        (
            "rows of a page of calls, runs or deliveries of an MCP tool",
            count(MCP_PAGE_ROWS_DEFAULT),
            count(PAGE_ROWS_MAX),
        ),
        most("runs that an MCP tool shows of those it has started", count(MCP_STARTED_RUNS_SHOWN)),
        most("pages of calls among the MCP resources", count(MCP_RESOURCE_CALL_PAGES_MAX)),
    ]
}

fn dashboard() -> Vec<Limit> {
    let window = duration(SIGN_IN_WINDOW_MS.unsigned_abs());
    vec![
        most("code or link to sign in", duration(SIGN_IN_MS.unsigned_abs())),
        most("tries of a code", count(SIGN_IN_TRIES_MAX)),
        most("tries of all codes for an e-mail address", format!("{SIGN_IN_ADDRESS_TRIES_MAX} in {window}")),
        most(
            "wrong tries of all codes for an e-mail address",
            format!("{SIGN_IN_ADDRESS_DAY_TRIES_MAX} in {}", duration(SIGN_IN_DAY_MS.unsigned_abs())),
        ),
        most(
            "codes for an e-mail address from one network address",
            format!("{SIGN_IN_MAILS_MAX} in {window}"),
        ),
        most(
            "codes for an e-mail address",
            format!("{SIGN_IN_ADDRESS_MAX} in {}", duration(SIGN_IN_MS.unsigned_abs())),
        ),
        most("codes for a network address", format!("{SIGN_IN_SOURCE_MAX} in {window}")),
        most("codes for an IPv6 block (/48)", format!("{SIGN_IN_BLOCK_MAX} in {window}")),
        most(
            "sign-ins at an OpenID provider that are begun and not finished",
            format!("{OPENID_SOURCE_MAX} in {window}"),
        ),
        most("sign-in link of the first start", duration(FIRST_LINK_MS.unsigned_abs())),
        most("session that is not used", duration(SESSION_MS.unsigned_abs())),
        most("sessions of a person", count(SESSIONS_MAX)),
        most("workspaces of a person", count(MEMBERSHIPS_MAX)),
        most("people of a workspace", count(PEOPLE_MAX)),
        most("open invitations", count(INVITATIONS_MAX)),
        most(
            "invitations that are sent",
            format!("{INVITATIONS_SENT_MAX} in {}", duration(INVITATIONS_SENT_WINDOW_MS.unsigned_abs())),
        ),
        most(
            "invitations that are mailed",
            format!(
                "{INVITATIONS_TO_ADDRESS_MAX} in {}",
                duration(INVITATIONS_SENT_WINDOW_MS.unsigned_abs())
            ),
        ),
        most("invitation", duration(INVITATION_MS.unsigned_abs())),
        most("name of a workspace in a mail", characters(MAIL_NAME_CHARS_MAX as u64)),
        most("age of an OpenID provider's document and keys", duration(OPENID_KEPT_MS.unsigned_abs())),
        most("fields of a form", count(FORM_FIELDS_MAX)),
    ]
}

fn resources() -> Vec<Limit> {
    let patterns = of_source("engine/src/base/tool_parameters/compile/readers.rs", "PATTERNS_MAX");
    let parameters = format!(
        "{}, {TOOL_PARAMETERS_DEPTH_MAX} levels, {patterns} patterns",
        bytes(TOOL_PARAMETERS_BYTES_MAX)
    );
    let kinds =
        [ASSISTANTS_MAX, TOOLS_MAX, DOCUMENTS_MAX, NUMBERS_MAX, PERSONAS_MAX, SCENARIOS_MAX, SIMULATIONS_MAX];
    assert!(kinds.iter().all(|kind| *kind == kinds[0]), "they share a row: {kinds:?}");
    let overlap = duration(SECRET_OVERLAP_MS_MAX);
    let speech = SpeechOptions::default();
    vec![
        most("name", characters(NAME_CHARS_MAX)),
        most("name of a simulation", characters(2 * NAME_CHARS_MAX + 3)),
        most("instructions of an assistant, persona or scenario", plain_bytes(INSTRUCTIONS_BYTES_MAX)),
        most("opening line (`first_message`)", characters(FIRST_MESSAGE_CHARS_MAX)),
        most("`language` of an assistant", characters(LANGUAGE_CHARS_MAX)),
        most(
            "`keyterms` of an assistant",
            format!(
                "{}, {} each, {} in all, {SPEECH_KEYTERM_BYTES_MORE} for each added",
                count(KEYTERMS_MAX),
                characters(KEYTERM_CHARS_MAX),
                plain_bytes(SPEECH_KEYTERMS_BYTES_MAX)
            ),
        ),
        most(
            "`transfers` of an assistant",
            format!(
                "{}; names of {}, `when` of {}",
                count(TRANSFERS_MAX),
                characters(TRANSFER_NAME_CHARS_MAX),
                count(TRANSFER_WHEN_CHARS_MAX)
            ),
        ),
        most(
            "message for an answering machine (`voicemail.message`)",
            characters(VOICEMAIL_MESSAGE_CHARS_MAX),
        ),
        (
            "`speech.end_of_turn_min_ms`",
            count(speech.end_of_turn_min_ms),
            format!("{} to {}", count(END_OF_TURN_MS_MIN), count(END_OF_TURN_MS_MAX)),
        ),
        (
            "`speech.end_of_turn_max_ms`",
            count(speech.end_of_turn_max_ms),
            format!("{} to {}", count(END_OF_TURN_MS_MIN), count(END_OF_TURN_MS_MAX)),
        ),
        (
            "`speech.interruption_words_min`",
            count(speech.interruption_words_min),
            format!("0 to {}", count(INTERRUPTION_WORDS_MAX)),
        ),
        ("`speech.speed`", "1".to_owned(), "0.5 to 2".to_owned()),
        most("`speech.filler`", characters(FILLER_CHARS_MAX)),
        ("`conditions.jitter_ms` of a scenario", "0".to_owned(), count(JITTER_MS_MAX)),
        ("`conditions.noise_db` of a scenario", "none".to_owned(), format!("−{} to 0", NOISE_DB_MIN.abs())),
        most("earlier revisions of an assistant", count(ASSISTANT_REVISIONS_KEPT)),
        most("tools of an assistant", count(TOOLS_PER_ASSISTANT_MAX)),
        most("documents of an assistant", count(DOCUMENTS_PER_ASSISTANT_MAX)),
        most("content of a document", bytes(DOCUMENT_BYTES_MAX)),
        most("knowledge of an assistant", bytes(KNOWLEDGE_PER_ASSISTANT_BYTES_MAX)),
        most("name of a tool", characters(TOOL_NAME_CHARS_MAX)),
        most("description of a tool", characters(TOOL_DESCRIPTION_CHARS_MAX)),
        most("parameters of a tool", parameters),
        most(
            "tests of tools under way",
            format!("{}, fewer while other workspaces test", count(TOOL_TESTS_MAX)),
        ),
        (
            "`timeout_ms` of a tool",
            count(TOOL_TIMEOUT_MS_DEFAULT),
            format!("{} to {}", count(TOOL_TIMEOUT_MS_MIN), count(TOOL_TIMEOUT_MS_MAX)),
        ),
        most("URL of a tool or webhook", plain_bytes(URL_BYTES_MAX)),
        most(
            "assistants, tools, documents, number bindings, personas, scenarios, simulations",
            format!("{} of each", count(ASSISTANTS_MAX)),
        ),
        most("API keys that are not revoked", count(KEYS_MAX)),
        most("webhooks", count(WEBHOOKS_MAX)),
        most("`events` of a webhook", count(WEBHOOK_EVENTS_MAX)),
        most("`variables`", format!("{}, {} together", count(VARIABLES_MAX), bytes(VARIABLES_BYTES_MAX))),
        most("value of a variable", plain_bytes(VARIABLE_VALUE_BYTES_MAX)),
        most("name of a variable", characters(VARIABLE_NAME_CHARS_MAX)),
        most("`metadata`", format!("{}, {} together", count(METADATA_MAX), bytes(METADATA_BYTES_MAX))),
        most("value in `metadata`", plain_bytes(METADATA_VALUE_BYTES_MAX)),
        most("name in `metadata`", characters(METADATA_NAME_CHARS_MAX)),
        most("entries of `metadata` in a filter", count(METADATA_FILTERS_MAX)),
        most("`metadata` of all runs of one start together", plain_bytes(STARTED_METADATA_BYTES_MAX)),
        most(
            "test tokens with `variables` or `metadata` that are neither used nor expired",
            count(TEST_TOKENS_WITH_VALUES_MAX),
        ),
        most("evaluations of a scenario", count(EVALUATIONS_PER_SCENARIO_MAX)),
        most("`includes` of an evaluation", characters(EVALUATION_INCLUDES_CHARS_MAX)),
        most("`arguments` of an evaluation, as JSON", bytes(EVALUATION_ARGUMENTS_BYTES_MAX)),
        most("`times` of an evaluation", count(EVALUATION_TIMES_MAX)),
        ("rulings of the judge on a criterion", count(1), count(JUDGE_VOTES_MAX)),
        most("tools that a scenario answers for", count(TOOL_MOCKS_MAX)),
        most("answers in place of one tool", count(MOCKED_ANSWERS_MAX)),
        most("tools in `mocks_unused`", count(MOCKS_UNUSED_MAX)),
        most("`tool_mocks`, as JSON", bytes(TOOL_MOCKS_BYTES_MAX)),
        ("`delay_ms` of an answer in place of a tool", count(0), count(MOCK_DELAY_MS_MAX)),
        most("queued runs", format!("{}, and the batch that passes it", count(RUNS_QUEUED_MAX))),
        most("runs of a batch", count(BATCH_RUNS_MAX)),
        most("runs that one request deletes by a filter", count(RUNS_DELETED_AT_ONCE)),
        most("calls that one request deletes by a filter", count(CALLS_DELETED_AT_ONCE)),
        ("runs of one simulation in a batch (`repeat`)", count(1), count(REPEAT_MAX)),
        most(
            "failures that a batch shows",
            format!("{}, texts of {}", count(BATCH_FAILURES_MAX), characters(BATCH_FAILURE_CHARS_MAX)),
        ),
        most("texts of the simulations of a batch", bytes(BATCH_SNAPSHOTS_BYTES_MAX)),
        most(
            "what a run stores of its assistant, and of its simulation",
            format!("{} each", megabytes(SNAPSHOT_BYTES_MAX)),
        ),
        most("`variables` of the runs of one start together", bytes(STARTED_VARIABLES_BYTES_MAX)),
        most(
            "what a workspace keeps of the configurations that runs and calls ran with",
            bytes(SNAPSHOTS_KEPT_BYTES_MAX),
        ),
        ("time for which a rotated secret still signs", overlap.clone(), overlap),
    ]
}

fn conversations() -> Vec<Limit> {
    let token_seconds = format!("{TEST_TOKEN_SECONDS_MIN} to {} s", count(TEST_TOKEN_SECONDS_MAX));
    assert_eq!(PHONE_CALL_SECONDS_MAX * 1_000, DURATION_MS_MAX, "they share a row");
    assert_eq!(1_000 % LIVE_MESSAGE_MS, 0);
    vec![
        ("lifetime of a test token", format!("{TEST_TOKEN_TTL_SECONDS_DEFAULT} s"), token_seconds.clone()),
        most(
            "conversations of a test link that may start again",
            format!(
                "{}, and {} within {}",
                count(LINK_STARTS_MAX),
                count(LINK_STARTS_WINDOW_MAX),
                duration(LINK_STARTS_WINDOW_MS.unsigned_abs())
            ),
        ),
        ("duration of a browser test", format!("{TEST_TOKEN_DURATION_SECONDS_DEFAULT} s"), token_seconds),
        most(
            "duration of a telephone call or simulation",
            format!(
                "{}; on the telephone, the conversation ends {} s earlier, before the carrier does",
                duration(DURATION_MS_MAX.unsigned_abs()),
                PHONE_END_MARGIN_MS / 1_000
            ),
        ),
        most(
            "duration of a telephone call when little money is left",
            format!(
                "at least {}, of them {} s of conversation",
                duration(PHONE_CALL_SECONDS_MIN.unsigned_abs() * 1_000),
                PHONE_CALL_SECONDS_MIN - PHONE_END_MARGIN_MS / 1_000
            ),
        ),
        most(
            "duration of the line of a telephone call after its transfer",
            format!(
                "{}; without a report of its end, it is hung up {} later",
                duration(PHONE_TRANSFER_SECONDS_MAX.unsigned_abs() * 1_000),
                duration(PHONE_TRANSFER_MARGIN_MS.unsigned_abs())
            ),
        ),
        most(
            "returns of a caller whom nobody took",
            format!(
                "{TRANSFER_RETURNS_MAX}; {} without a report of the carrier count as an answer",
                duration(PHONE_TRANSFER_RING_MS.unsigned_abs())
            ),
        ),
        most("lines of both sides", count(TURNS_MAX)),
        most("duration of a voice run with a provider's voice", duration(HELD_RUN_MS_MAX.unsigned_abs())),
        most("lines of both sides of a simulation", count(SIMULATION_TURNS_MAX)),
        most("tool calls between two lines", count(TOOL_CALLS_PER_TURN_MAX)),
        most("keys and pauses in one call of `send_keys`", count(SEND_KEYS_CHARS_MAX)),
        most(
            "silence of an answering machine until its greeting counts as over",
            duration(VOICEMAIL_SILENCE_MS.unsigned_abs()),
        ),
        most("wait for the end of that greeting", duration(VOICEMAIL_WAIT_MS.unsigned_abs())),
        most("equal lines of the assistant in a row", count(REPEATS_MAX)),
        most("silences in a row", count(SILENCES_MAX)),
        most("time that counts as a silence in the browser", duration(BROWSER_SILENCE_MS.unsigned_abs())),
        most("time that counts as a silence on the telephone", duration(PHONE_SILENCE_MS.unsigned_abs())),
        most(
            "time without anything from the carrier, once its audio has begun",
            duration(PHONE_DEAD_MS.unsigned_abs()),
        ),
        most("log of a conversation's inputs", bytes(CALL_INPUTS_BYTES_MAX)),
        most("transcript", bytes(TRANSCRIPT_BYTES_MAX)),
        most("rows of the role `system` in a transcript", count(NOTES_MAX)),
        most("one line", bytes(TEXT_BYTES_MAX)),
        most("response of a tool", bytes(TOOL_RESPONSE_BYTES_MAX)),
        most("result of a tool for model and transcript", plain_bytes(TOOL_RESULT_BYTES_MAX)),
        most("message of a browser test", bytes(SOCKET_MESSAGE_BYTES_MAX)),
        most("text of a message", characters(LIVE_TEXT_CHARS_MAX)),
        most(
            "messages of a browser test at once, pings and pongs among them",
            format!("{LIVE_MESSAGES_BURST}, then one each 0.{} s", LIVE_MESSAGE_MS / 100),
        ),
        most("wrong or too fast messages", count(LIVE_WRONG_MESSAGES_MAX)),
        most("time a telephone rings", duration(u64::from(PHONE_RING_SECONDS) * 1_000)),
        most("time that an accepted call waits for its first ring", duration(PHONE_QUEUE_MS.unsigned_abs())),
        most("`SIDETONE_APOLOGY`", characters(APOLOGY_CHARS_MAX)),
        most(
            "cost of models and speech of a browser test or telephone call",
            format!("{}, or what is left of the month", dollars(LIVE_COST_MICROUSD_MAX)),
        ),
        ("cost of a run", dollars(RUN_COST_MICROUSD_DEFAULT), "what is left of the month".to_owned()),
        most("starts of a run that never ends", count(JOB_ATTEMPTS_MAX)),
    ]
}

fn models_and_events() -> Vec<Limit> {
    vec![
        most("one attempt to get an answer", duration(MODEL_ATTEMPT_MS)),
        most("attempts of one model", count(MODEL_ATTEMPTS_MAX)),
        most("all attempts, fallbacks included", duration(MODEL_TOTAL_MS)),
        most("`Retry-After` of a provider", duration(MODEL_RETRY_AFTER_MS_MAX)),
        ("fallbacks of a model", "none".to_owned(), count(MODEL_FALLBACKS_MAX)),
        most("tokens of an answer", count(MODEL_REPLY_TOKENS_MAX)),
        most("tokens of an answer of a realtime model", count(REALTIME_REPLY_TOKENS_MAX)),
        most("audio of an answer of a realtime model", duration(REALTIME_AUDIO_MS_MAX.unsigned_abs())),
        most("a realtime model sends nothing of an answer", duration(REALTIME_RESPONSE_MS.unsigned_abs())),
        most(
            "pauses of an answer of a realtime model, together",
            duration(REALTIME_PAUSES_MS_MAX.unsigned_abs()),
        ),
        most("a session of a realtime model", duration(REALTIME_SESSION_MS.unsigned_abs())),
        most("knowledge that a realtime model gets", bytes(REALTIME_KNOWLEDGE_BYTES_MAX)),
        most("text of an answer", bytes(MODEL_TEXT_BYTES_MAX)),
        most("tool calls of an answer", count(MODEL_CALLS_MAX)),
        most("one delivery of an event", duration(DELIVERY_DEADLINE_MS)),
        most("attempts of a delivery", count(DELIVERY_RETRY_MS.len() + 1)),
        most("size of an event", megabytes(EVENT_BYTES_MAX)),
        most("text that is synthesized before it is heard", characters(SPEECH_AHEAD_CHARS)),
        most("a segment of a recording (self-hosted)", duration(RECORDING_SEGMENT_MS.unsigned_abs())),
        most("a segment of a recording (Worker)", duration(RECORDING_SEGMENT_METERED_MS.unsigned_abs())),
        most("segments of a recording that wait for storage", count(RECORDING_WAITING_MAX)),
        most("time that the end of a call waits for its recording", duration(RECORDING_FINAL_MS)),
    ]
}

fn budgets() -> Vec<Limit> {
    let live_cost = format!("{}, or what is left of the month", dollars(LIVE_COST_MICROUSD_MAX));
    let call_cost = format!(
        "{} and {} minutes at the carrier's rate, or what is left of the month",
        dollars(LIVE_COST_MICROUSD_MAX),
        PHONE_CALL_SECONDS_MAX / 60
    );
    let kept_for_phones = LIVE_SESSIONS_MAX * KEPT_FOR_PHONES_PERCENT / 100;
    let places = format!("{}, of them {} browser tests", count(alone(0)), count(alone(kept_for_phones)));
    let everywhere = of_source("engine/src/storage/jobs/claim.rs", "PLACES_OF_ALL_PROCESSES");
    let at_the_edge = everywhere.parse().unwrap();
    let webhook = format!("{DELIVERIES_AT_ONCE}, of {} together", bytes(DELIVERIES_AT_ONCE_BYTES_MAX));
    let pause = format!(
        "an eighth of its age, {} to {}",
        RUN_WAIT_MS_MIN / 1_000,
        duration(RUN_WAIT_MS_MAX.unsigned_abs())
    );
    vec![
        most("money that a browser test reserves under a monthly limit", live_cost),
        (
            "money that a run reserves under a monthly limit",
            dollars(RUN_COST_MICROUSD_DEFAULT),
            "what is left of the month".to_owned(),
        ),
        most("money that a telephone call reserves under a monthly limit", call_cost),
        ("simulation runs in progress", of_migrations("runs_at_once"), count(RUNS_AT_ONCE_MAX)),
        ("telephone calls in progress", of_migrations("calls_at_once"), count(CALLS_AT_ONCE_MAX)),
        most("browser and telephone conversations", count(LIVE_SESSIONS_MAX)),
        (
            "timers of a process with conversations that end more than 20 ms late, of the last 5 to 10 s (self-hosted)",
            format!("{LATE_PERCENT_DEFAULT} %, at least {LATE_MIN}"),
            "100 %".to_owned(),
        ),
        most("conversations of one workspace alone", places),
        most(
            "spans of traces that wait in an isolate (Worker)",
            format!("{}, of {} together", count(TRACE_SPANS_MAX), bytes(TRACE_BYTES_MAX)),
        ),
        most("simulation runs at once (self-hosted)", shared_places(RUNS_AT_ONCE, "")),
        most(
            "hang-ups, and calls that are settled and analyzed, at once (self-hosted)",
            shared_places(CALL_JOBS_AT_ONCE, "each kind of "),
        ),
        most("webhooks that are sent events at once (self-hosted)", shared_places(DELIVERY_JOBS_AT_ONCE, "")),
        most("jobs at once of each queue (Worker)", shared_places(at_the_edge, "")),
        most("jobs of one queue message (Worker)", count(JOBS_PER_INVOCATION)),
        most("events that are sent to a webhook at once", webhook),
        most("deliveries that wait for their receivers", count(DELIVERIES_WAITING_MAX)),
        most("pause of a queued run that waits for money or memory", pause),
        most("request bodies with a valid API key (self-hosted)", bytes(BODIES_BYTES_MAX)),
        most("request bodies without one (self-hosted)", bytes(UNKNOWN_BODIES_BYTES_MAX)),
        most("beginning of a request body that is not counted (self-hosted)", bytes(BODY_BYTES_FREE)),
        most("memory of what starts of runs read and write", bytes(STARTS_BYTES_MAX)),
        most("responses that clients have not read yet (self-hosted)", bytes(RESPONSES_BYTES_MAX)),
        most("responses that are not counted among them (self-hosted)", bytes(RESPONSE_SMALL_BYTES)),
        most("time of a long read, waiting included (self-hosted)", duration(LONG_READ_MS)),
    ]
}

fn memory() -> Vec<Limit> {
    let percent = |percent: u64| format!("{percent} %");
    let for_runs = format!(
        "{MEMORY_KEPT_FOR_LIVE_PERCENT} %; the first run of a workspace that has none leaves {KEPT_FOR_PHONES_PERCENT} %"
    );
    let per_ms = |rate: Rate| u64::from(rate.hz()) / 1_000 * FRAME_BYTES;
    let recording = format!(
        "two segments, at {} bytes for each millisecond at 8 kHz and {} at 16 kHz",
        per_ms(Rate::Khz8),
        per_ms(Rate::Khz16)
    );
    let rules = format!(
        "1 byte for each byte of its texts, {KNOWLEDGE_INDEX_MEMORY_PER_BYTE} for each byte of its knowledge, and {} \
         for each tool, if that is more",
        bytes(TOOL_INDEX_MEMORY_BYTES)
    );
    vec![
        (
            "memory of conversations, runs and the assistants that they use",
            "half of the machine's; see [Settings](#settings)".to_owned(),
            format!("at least {MEMORY_MB_MIN} MiB"),
        ),
        most("memory that browser tests leave to telephone calls", percent(KEPT_FOR_PHONES_PERCENT)),
        most("memory that runs leave to conversations", for_runs),
        most(
            "memory that a workspace that has some leaves to those that have none",
            percent(MEMORY_FOR_NEWCOMERS_PERCENT),
        ),
        most("memory of a conversation or run", bytes(CONVERSATION_MEMORY_BYTES)),
        most("memory of a recording of a running call", recording),
        most(
            "memory of an assistant in use",
            format!("{ASSISTANT_MEMORY_PER_BYTE} bytes for each byte of its texts"),
        ),
        most("… with `builtin/rules`", rules),
        most(
            "… with a provider's model",
            "1 byte more for each byte of its texts: the request contains them".to_owned(),
        ),
        most(
            "memory of a simulation",
            format!("{SIMULATION_MEMORY_PER_BYTE} bytes for each byte of persona, scenario and evaluations"),
        ),
    ]
}

fn retention() -> Vec<Limit> {
    let days = format!("1 to {} days", count(RETENTION_DAYS_MAX));
    let batches = i64::try_from(RETENTION_CHUNKS_MAX).unwrap();
    let round = |batch: i64| format!("{}, in batches of {batch}", count(batches * batch));
    assert!(read("wrangler.toml").contains(r#"crons = ["* * * * *"]"#), "each minute");
    vec![
        most("events and deliveries", duration(EVENT_KEPT_MS.unsigned_abs())),
        most("entries of the audit log", duration(AUDIT_KEPT_MS.unsigned_abs())),
        ("calls", "kept".to_owned(), days.clone()),
        ("recordings", "kept".to_owned(), days),
        (
            "transcripts in the database",
            "kept".to_owned(),
            format!("1 to {} days", count(ARCHIVE_DAYS_MAX.unsigned_abs())),
        ),
        most(
            "transcripts that a round archives",
            format!(
                "{}, in batches of at most {ARCHIVE_CALLS_MAX} and {}",
                i64::try_from(ARCHIVE_BATCHES_MAX).unwrap() * ARCHIVE_CALLS_MAX,
                bytes(ARCHIVE_BYTES_MAX.unsigned_abs())
            ),
        ),
        most("archived transcripts that one page of calls reads", count(ARCHIVES_READ_MAX as u64)),
        most(
            "time until the clean-up looks for old transcripts again",
            duration(ARCHIVE_PAUSE_MS.unsigned_abs()),
        ),
        most("time between two clean-ups (self-hosted)", duration(SWEEP_MS.unsigned_abs())),
        most("time between two clean-ups (Worker)", duration(60_000)),
        most(
            "rounds of a clean-up",
            format!("{SWEEP_ROUNDS_MAX}; on a Worker {SWEEP_ROUNDS_PER_INVOCATION_MAX}"),
        ),
        most(
            "calls that a round deletes for their age",
            round(RETENTION_CALLS_MAX).replace("of 50", "of at most 50 and 8 MiB"),
        ),
        most("recordings that a round deletes for their age", round(RETENTION_RECORDINGS_MAX)),
    ]
}

fn moves() -> Vec<Limit> {
    let rows = format!("{}, words of calls {}", count(MOVE_PART_ROWS_MAX), count(MOVE_PART_WORDS_MAX));
    let ends = format!("at {} of rows, or {} of files", bytes(MOVE_ROWS_BYTES), bytes(MOVE_BLOBS_BYTES));
    let looked_at = u64::try_from(MOVE_LOOKED_AT_MAX).unwrap() * MOVE_LOOKS_MAX as u64;
    let recordings = format!(
        "{}, fewer if they have {} segments",
        count(MOVE_ERASED_RECORDINGS_MAX),
        count(MOVE_ERASED_SEGMENTS_MAX)
    );
    vec![
        most("head of the file of a move", bytes(MOVE_HEAD_BYTES_MAX)),
        most("models, voices or transcribers that it names", count(MOVE_NEEDS_MAX)),
        most("line that a part of a move begins with", bytes(MOVE_PART_HEAD_BYTES_MAX)),
        most("rows in a part", rows),
        most("beginning of what the next part has", ends),
        most(
            "files of recordings and transcripts in a part",
            format!("{}, {} each", count(MOVE_PART_BLOBS_MAX), bytes(MOVE_BLOB_BYTES_MAX)),
        ),
        most("tools and webhooks in a part of signing secrets", count(MOVE_PART_SECRETS_MAX)),
        most("rows that a step of a move looks at", count(looked_at)),
        most("rows that a step erases", count(MOVE_ERASED_ROWS_MAX)),
        most("recordings that a step erases", recordings),
    ]
}

fn most(what: &'static str, most: String) -> Limit {
    (what, String::new(), most)
}

/// How many conversations a workspace can have while nobody else has one.
fn alone(kept: u64) -> usize {
    let mut pool = FairPool::new(LIVE_SESSIONS_MAX).keeping_for_newcomers(LIVE_SESSIONS_FOR_NEWCOMERS);
    std::iter::from_fn(|| pool.take(&"ws", 1, kept).then_some(())).count()
}

fn shared_places(places: u64, of: &str) -> String {
    let all = FairPool::<()>::for_one_holder(places).free();
    format!("{} of {of}one workspace, {} of all", count(places), count(all))
}

//! The limits of the service, each with its unit at the end of its name. A limit that one module alone knows stands there:
//! those of a conversation in `conversation/limits.rs`, of a tool's schema in `base/tool_parameters.rs`, of an evaluation in
//! `simulation/evaluation.rs`. `docs/settings-and-limits.md` has all that a user or an operator can reach;
//! `tests/limits/` compares it with these constants.

/// Size of a request body; a host rejects a larger one before it has read all of it.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Total size of the bodies in memory that come with a known API key.
pub const BODIES_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The same for all others.
pub const UNKNOWN_BODIES_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The beginning of a body, which takes no more memory than its connection.
pub const BODY_BYTES_FREE: u64 = 8 * 1024;
/// API keys that are remembered as valid, to tell whose bodies they are.
pub const KNOWN_KEYS_MAX: usize = 10_000;
/// Time after which a body must have arrived at [`BODY_BYTES_PER_S_MIN`].
pub const BODY_GRACE_MS: u64 = 5_000;
/// The slowest that a body may arrive.
pub const BODY_BYTES_PER_S_MIN: u64 = 1024;
/// Deadline of one read of the database that can be long.
pub const LONG_READ_MS: u64 = 5_000;
/// Size of a request's head.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Time for a request's head, from its first byte.
pub const HEAD_READ_MS: u64 = 10_000;
/// Time in which a host must receive the whole request.
pub const REQUEST_READ_MS: u64 = 30_000;
/// Deadline of one request to a carrier.
pub const CARRIER_DEADLINE_MS: u64 = 15_000;
/// Size of a carrier's response.
pub const CARRIER_RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// Time a telephone rings before the carrier gives up.
pub const PHONE_RING_SECONDS: u32 = 60;
/// Duration of a telephone call.
pub const PHONE_CALL_SECONDS_MAX: i64 = 3_600;
/// A call without any sign of life (no callback, no media) for this long is ended with the status known so far. Longer than
/// the ring time.
pub const PHONE_CONNECT_MS: i64 = 180_000;
/// Time between the carrier accepting a call and the telephone ringing. Carriers place one or two calls a second and queue
/// the rest; at one a second, 1,800 queued calls fit.
pub const PHONE_QUEUE_MS: i64 = 1_800_000;
const _: () = assert!(PHONE_QUEUE_MS > PHONE_CONNECT_MS);
/// Time in which a carrier reports why a call was not connected, after it closed the media socket.
pub const PHONE_REPORT_WAIT_MS: i64 = 30_000;
/// Time in which audio must arrive once the call is answered and its media socket is open.
pub const PHONE_START_MS: i64 = 10_000;
/// How often a conversation reads its leg: whether the carrier reported the end, or a hang-up was requested.
pub const PHONE_LEG_CHECK_MS: i64 = 5_000;
/// How often the journal records how much of the assistant's line was heard while it is spoken: after a crash, the line is
/// cut there.
pub const PHONE_HEARD_MS: i64 = 2_000;
/// Unreadable or misplaced carrier messages before the call is ended: five seconds of audio.
pub const PHONE_WRONG_MESSAGES_MAX: u32 = 250;
/// Audio sent to a carrier ahead of playback.
pub const PHONE_AHEAD_MS: i64 = 10_000;
/// How often the carrier is asked (by a mark) what it has played.
pub const PHONE_MARK_MS: i64 = 1_000;
/// The same for a browser, which answers cheaply: what was heard is known this exactly.
pub const BROWSER_MARK_MS: i64 = 100;
/// A line without a confirming mark counts as played this long after the end of its audio.
pub const PHONE_MARK_LATE_MS: i64 = 2_000;
/// Time for playing the remaining speech after a conversation. The lease is not extended during it.
pub const PHONE_FINAL_PLAYBACK_MS: i64 = 60_000;
const _: () = assert!(PHONE_FINAL_PLAYBACK_MS < LIVE_LEASE_MS - LIVE_LEASE_EXTEND_MS);
/// How much earlier than the carrier's limit (which counts from the answer) a conversation ends. Otherwise the carrier ends
/// it in the middle of a word, and the call log says that the person hung up.
pub const PHONE_END_MARGIN_MS: i64 = PHONE_FINAL_PLAYBACK_MS + 2 * PHONE_START_MS;
const _: () = assert!(PHONE_END_MARGIN_MS < PHONE_CALL_SECONDS_MAX * 1_000);
/// Incoming audio that may be ahead of real time.
pub const PHONE_BURST_MS: i64 = 10_000;
/// Keys pressed before a pause of this length become one line.
pub const PHONE_KEYS_MS: i64 = 2_000;
/// Keys in one such line.
pub const PHONE_KEYS_MAX: usize = 64;
/// Length of the sentence that an assistant says when its model fails.
pub const APOLOGY_CHARS_MAX: usize = 300;
/// On a telephone, nothing heard for this long during the user's turn is a silence.
pub const PHONE_SILENCE_MS: i64 = 20_000;
/// Concurrent telephone calls of a workspace.
pub const CALLS_AT_ONCE_MAX: u64 = 10_000;
/// Largest difference between a carrier signature's time and the clock, in either direction.
pub const CARRIER_SIGNATURE_AGE_MS_MAX: i64 = 300_000;
/// Bytes of a carrier's error message that are passed on.
pub const CARRIER_MESSAGE_BYTES_MAX: usize = 500;
/// Audio in one message of a media socket.
pub const MEDIA_CHUNK_MS_MAX: usize = 3_000;
/// Shortest lifetime of a test token, and shortest conversation it opens.
pub const TEST_TOKEN_SECONDS_MIN: i64 = 30;
/// Longest lifetime of a test token, and longest conversation it opens.
pub const TEST_TOKEN_SECONDS_MAX: i64 = 3_600;
/// Default lifetime of a test token.
pub const TEST_TOKEN_TTL_SECONDS_DEFAULT: i64 = 300;
/// Default duration of a test conversation.
pub const TEST_TOKEN_DURATION_SECONDS_DEFAULT: i64 = 600;

/// Size of a WebSocket message; a larger one closes the socket.
pub const SOCKET_MESSAGE_BYTES_MAX: usize = 32 * 1024;
/// A client that does not accept a message for this long counts as disconnected.
pub const SOCKET_SEND_MS: u64 = 10_000;
/// Time a host waits for the client's close frame.
pub const SOCKET_CLOSE_MS: u64 = 2_000;
/// Concurrent live conversations in one process. Workspaces share them fairly; clients beyond that are asked to retry
/// later.
pub const LIVE_SESSIONS_MAX: u64 = 1_000;
/// Conversations of these that workspaces with one already leave to those without.
pub const LIVE_SESSIONS_FOR_NEWCOMERS: u64 = 20;
/// Percentage of the conversations and of the memory that browser tests leave to telephone calls.
pub const KEPT_FOR_PHONES_PERCENT: u64 = 10;
/// Percentage of the memory that runs leave to live conversations: runs can wait.
pub const MEMORY_KEPT_FOR_LIVE_PERCENT: u64 = 25;
/// Percentage of the memory that workspaces that use some leave to those that use none.
pub const MEMORY_FOR_NEWCOMERS_PERCENT: u64 = 5;
/// Memory of one conversation beside its assistant.
pub const CONVERSATION_MEMORY_BYTES: u64 = 300 * 1024;
/// Memory of an assistant in use, for each byte of its stored text: the text itself, the text as its model takes it, and
/// while it is read, what it is read from.
pub const ASSISTANT_MEMORY_PER_BYTE: u64 = 4;
/// Memory of what the rule model finds knowledge with, for each byte of it.
pub const KNOWLEDGE_INDEX_MEMORY_PER_BYTE: u64 = 48;
/// Memory of what the rule model finds a tool with.
pub const TOOL_INDEX_MEMORY_BYTES: u64 = 16 * 1024;
/// Memory of a simulation, for each byte of its stored text: the text, as its simulation takes it, the caller's lines, and
/// the results of its evaluations.
pub const SIMULATION_MEMORY_PER_BYTE: u64 = 4;
/// Memory of a conversation for each byte of its transcript: the transcript, the history, and the request to a model.
pub const TRANSCRIPT_MEMORY_PER_BYTE: u64 = 4;
/// The size of a transcript that [`CONVERSATION_MEMORY_BYTES`] includes.
pub const TRANSCRIPT_INCLUDED_BYTES: u64 = 32 * 1024;
/// Memory for conversations where the host does not measure the machine's.
pub const MEMORY_MB_DEFAULT: u64 = 1_024;
/// Least memory for conversations: what the largest assistant and a few conversations need.
pub const MEMORY_MB_MIN: u64 = 24;
/// Length of a line of text in a live conversation.
pub const LIVE_TEXT_CHARS_MAX: usize = 4_000;
/// In a text conversation, nothing received for this long during the user's turn is a silence.
pub const LIVE_SILENCE_MS: i64 = 60_000;
/// Burst size of a client's messages.
pub const LIVE_MESSAGES_BURST: u32 = 20;
/// After a burst, one more message is allowed per this interval.
pub const LIVE_MESSAGE_MS: i64 = 500;
/// Invalid or rate-limited messages before the conversation is closed.
pub const LIVE_WRONG_MESSAGES_MAX: u32 = 10;
/// Model cost of a live conversation, in millionths of a US dollar.
pub const LIVE_COST_MICROUSD_MAX: i64 = 1_000_000;
/// Shortest telephone call that is begun when little money is left: enough for a conversation before [`PHONE_END_MARGIN_MS`].
pub const PHONE_CALL_SECONDS_MIN: i64 = 180;
const _: () = assert!(PHONE_END_MARGIN_MS < PHONE_CALL_SECONDS_MIN * 1_000);
/// Lease of a process on its live conversation.
pub const LIVE_LEASE_MS: i64 = 120_000;
/// How often the lease is extended.
pub const LIVE_LEASE_EXTEND_MS: i64 = 40_000;

/// Length of the name of an assistant, document, persona, scenario, simulation or key.
pub const NAME_CHARS_MAX: u64 = 120;
/// Size of the instructions of an assistant, persona or scenario.
pub const INSTRUCTIONS_BYTES_MAX: usize = 32_768;
/// Length of an assistant's opening message.
pub const FIRST_MESSAGE_CHARS_MAX: u64 = 2_000;
/// Length of `provider/name` for a model or a voice.
pub const MODEL_CHARS_MAX: u64 = 200;
/// Tools of one assistant.
pub const TOOLS_PER_ASSISTANT_MAX: usize = 64;
/// Documents of one assistant.
pub const DOCUMENTS_PER_ASSISTANT_MAX: usize = 128;
/// Size of one knowledge document.
pub const DOCUMENT_BYTES_MAX: usize = 50 * 1024;
/// Size of all knowledge of one assistant.
pub const KNOWLEDGE_PER_ASSISTANT_BYTES_MAX: i64 = 200 * 1024;
/// Length of a document's source label.
pub const SOURCE_CHARS_MAX: u64 = 200;
/// Length of a tool's name; the model providers' limit.
pub const TOOL_NAME_CHARS_MAX: u64 = 64;
/// Length of a tool's description.
pub const TOOL_DESCRIPTION_CHARS_MAX: u64 = 2_000;
/// Shortest timeout of a tool.
pub const TOOL_TIMEOUT_MS_MIN: u64 = 100;
/// Longest timeout of a tool.
pub const TOOL_TIMEOUT_MS_MAX: u64 = 30_000;
/// Default timeout of a tool.
pub const TOOL_TIMEOUT_MS_DEFAULT: i64 = 5_000;
/// Size of a tool's response; a larger one is an error result.
pub const TOOL_RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// Assistants of a workspace.
pub const ASSISTANTS_MAX: i64 = 10_000;
/// Tools of a workspace.
pub const TOOLS_MAX: i64 = 10_000;
/// Knowledge documents of a workspace.
pub const DOCUMENTS_MAX: i64 = 10_000;
/// Personas of a workspace.
pub const PERSONAS_MAX: i64 = 10_000;
/// Scenarios of a workspace.
pub const SCENARIOS_MAX: i64 = 10_000;
/// Simulations of a workspace.
pub const SIMULATIONS_MAX: i64 = 10_000;
/// Number bindings of a workspace.
pub const NUMBERS_MAX: i64 = 10_000;
/// API keys of a workspace that are not revoked.
pub const KEYS_MAX: i64 = 1_000;
/// Webhooks of a workspace: the batch that changes data also writes one delivery per webhook for its event.
pub const WEBHOOKS_MAX: i64 = 250;
/// Entries in a webhook's `events`.
pub const WEBHOOK_EVENTS_MAX: u64 = 16;
/// Deliveries of a workspace that may wait for their receivers, shared equally by its webhooks. A webhook whose receiver
/// fails while more than its part waits is disabled.
pub const DELIVERIES_WAITING_MAX: i64 = 50_000;
/// Deadline of one delivery attempt (Standard Webhooks: 15 to 30 s).
pub const DELIVERY_DEADLINE_MS: u64 = 15_000;
/// Bytes of a receiver's response that are read.
pub const DELIVERY_RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a receiver's response that are stored.
pub const DELIVERY_RESPONSE_KEPT_BYTES_MAX: usize = 1024;
/// The pauses after the first failed attempt, the second and so on. A delivery that then fails again is given up (Svix's
/// schedule, 27 h 35 min in total).
pub const DELIVERY_RETRY_MS: [i64; 7] =
    [5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000];
/// Random extra time per pause, in percent: a receiver that was down does not get all retries at the same time.
pub const DELIVERY_JITTER_PERCENT_MAX: i64 = 10;
/// Concurrent attempts to one webhook.
pub const DELIVERIES_AT_ONCE: usize = 16;
/// Total size of the bodies of concurrent attempts, when there is more than one.
pub const DELIVERIES_AT_ONCE_BYTES_MAX: i64 = 1024 * 1024;
/// Rounds of deliveries to one webhook before a host with a single worker serves other webhooks.
pub const DELIVERY_ROUNDS_MAX: usize = 16;
/// Size of an event's body: a row of D1 holds 2 MB. A larger event is sent with ids only.
pub const EVENT_BYTES_MAX: usize = 1_800_000;
/// Retention of events and deliveries.
pub const EVENT_KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// How often a long-running process begins to sweep. At the edge the cron in `wrangler.toml` says it.
pub const SWEEP_MS: i64 = 5 * 60 * 1000;
/// Rounds of the sweep in a row; then such a process looks at its other work.
pub const SWEEP_ROUNDS_MAX: usize = 32;
/// Rounds of the sweep in one invocation at the edge: one batch each, and the requests for recordings.
pub const SWEEP_ROUNDS_PER_INVOCATION_MAX: usize = 4;
/// Expired rows of a kind that one round of the sweep removes.
pub const SWEEP_ROWS_MAX: i64 = 500;
/// Total size of the events that one round removes with their deliveries, when there is more than one.
pub const SWEEP_BYTES_MAX: i64 = 8 * 1024 * 1024;
/// Events without deliveries that one round removes.
pub const SWEEP_LONE_EVENTS_MAX: i64 = 50;
/// Events of earlier versions whose call one round finds out; their sizes are unknown, so they are few.
pub const SWEEP_UNREAD_EVENTS_MAX: i64 = 50;
/// How long after the end of a deleted call its carrier may still report a price, which then counts.
pub const LATE_PRICE_MS: i64 = 24 * 60 * 60 * 1000;
/// Longest retention of calls and recordings that a workspace can set, in days.
pub const RETENTION_DAYS_MAX: u64 = 3_650;
/// Workspaces per round of the sweep whose calls, or recordings, are older than they are kept; the rest waits for the next
/// round.
pub const RETENTION_WORKSPACES_MAX: usize = 16;
/// Batches per round that delete such calls, and as many that delete such recordings, each of one workspace.
pub const RETENTION_CHUNKS_MAX: usize = 16;
/// Calls of one such batch.
pub const RETENTION_CALLS_MAX: i64 = 50;
/// Recordings of one such batch.
pub const RETENTION_RECORDINGS_MAX: i64 = 200;
/// Pages of the text index that one batch of the sweep merges while words of deleted calls are in it.
pub const SEARCH_MERGE_PAGES: i64 = 256;
/// Such batches per round.
pub const SEARCH_MERGES_MAX: usize = 8;
/// Calls that one batch of the sweep moves from the text index of an earlier version.
pub const SEARCH_UPGRADE_CALLS_MAX: i64 = 100;
/// Their transcripts, without the last one: D1 holds texts of 2 MB.
pub const SEARCH_UPGRADE_BYTES_MAX: i64 = 256 * 1024;
/// Such batches per round.
pub const SEARCH_UPGRADE_BATCHES_MAX: usize = 8;
/// After a rotation, the old secret signs for this long unless the request shortens it.
pub const SECRET_OVERLAP_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// Length of a carrier's region.
pub const REGION_CHARS_MAX: u64 = 64;
/// Default number of rows per page.
pub const PAGE_ROWS_DEFAULT: i64 = 200;
/// Largest number of rows per page.
pub const PAGE_ROWS_MAX: u64 = 1_000;
/// Size of all responses that clients have not read yet, in one process.
pub const RESPONSES_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// A response up to this size takes hardly more memory than its connection, and is not counted.
pub const RESPONSE_SMALL_BYTES: u64 = 16 * 1024;
/// Time in which a client must read [`RESPONSE_WINDOW_BYTES_MIN`] of a response that waits for it.
pub const RESPONSE_WINDOW_MS: u64 = 30_000;
/// What a client must read of a response in that time: 6.4 KiB a second.
pub const RESPONSE_WINDOW_BYTES_MIN: u64 = 192 * 1024;
/// Size of the rows of one part of a list; a single row may be larger.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Length of what continues a list (`after`).
pub const CURSOR_CHARS_MAX: u64 = 400;
/// Messages of one JSON-RPC batch (a feature of MCP's revision 2025-03-26).
pub const MCP_BATCH_MESSAGES_MAX: usize = 50;
/// Once the replies of such a batch exceed this size, its remaining requests are rejected.
pub const MCP_BATCH_REPLIES_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Largest page number: keeps `page × limit` exact in a float.
pub const PAGE_MAX: u64 = 1_000_000_000;
/// Size of a run's snapshot of its assistant or scenario: a row of D1 holds 2 MB.
pub const SNAPSHOT_BYTES_MAX: usize = 1_800_000;
/// Size of the snapshots of all runs of one batch.
pub const BATCH_SNAPSHOTS_BYTES_MAX: i64 = 8 * 1024 * 1024;
/// Bytes of a long list in one SQL statement.
pub const STATEMENT_LIST_BYTES_MAX: usize = 512 * 1024;
/// Simulations in one batch.
pub const BATCH_RUNS_MAX: usize = 1_000;
/// Concurrent runs of a workspace.
pub const RUNS_AT_ONCE_MAX: u64 = 1_000;
/// Longest conversation of a voice run that is held for real: with its evaluations, it fits into a quarter of an hour, which
/// is all that a Worker has for a message of its queue.
pub const HELD_RUN_MS_MAX: i64 = 600_000;
/// Bytes of the latest line that a run in progress shows.
pub const LAST_LINE_BYTES_MAX: usize = 200;
/// Longest conversation time between two checkpoints.
pub const CHECKPOINT_MS: i64 = 3_000;
/// Default model cost of one run, in millionths of a US dollar.
pub const RUN_COST_MICROUSD_DEFAULT: i64 = 1_000_000;
/// Shortest pause of a queued run that waits for money or memory that other conversations have.
pub const RUN_WAIT_MS_MIN: i64 = 1_000;
/// Longest such pause.
pub const RUN_WAIT_MS_MAX: i64 = 30_000;
/// Waiting runs that continue when a conversation gives its reservation back.
pub const RUNS_WOKEN_MAX: i64 = 16;
/// Length of a search text.
pub const SEARCH_CHARS_MAX: u64 = 500;
/// Size of a call in a list, without its transcript and its analysis.
pub const CALL_ROW_BYTES_MAX: i64 = 1_500;
/// Size of a recording: two and a half hours of two channels at 8 kHz.
pub const RECORDING_BYTES_MAX: usize = 288 * 1024 * 1024;
/// Lowest sample rate of a recording: that of the telephone network.
pub const RECORDING_RATE_HZ_MIN: u32 = 8_000;
/// Highest sample rate of a recording.
pub const RECORDING_RATE_HZ_MAX: u32 = 48_000;
/// A recording whose write takes longer counts as failed, and its blob is removed.
pub const RECORDING_WRITE_MS_MAX: i64 = 24 * 60 * 60 * 1000;
/// Duration of a segment of a running call's recording where a write costs nothing but time. A crash loses about as much.
pub const RECORDING_SEGMENT_MS: i64 = 5_000;
/// The same where each write is counted: an hour is 120 writes of the 1,000 that an invocation at the edge has, and a
/// segment is 1 to 3 MB of the 128 MB of its isolate.
pub const RECORDING_SEGMENT_METERED_MS: i64 = 30_000;
/// Segments of a running call's recording that wait for storage, beside the one that is being written.
pub const RECORDING_WAITING_MAX: usize = 3;
/// How often a segment is written if storage fails.
pub const RECORDING_TRIES: u32 = 3;
/// The pause between two tries.
pub const RECORDING_TRY_AGAIN_MS: u64 = 1_000;
/// How long the end of a call waits for the last segments of its recording.
pub const RECORDING_FINAL_MS: u64 = 5_000;
/// Recordings that one round of the sweep removes: each takes a request, and an invocation at the edge has 50.
pub const RECORDINGS_SWEPT_MAX: usize = 16;
/// When the sweep tries again to remove a recording that could not be removed.
pub const RECORDING_RETRY_MS: i64 = 10 * 60 * 1000;
/// Resolution of a waveform.
pub const WAVEFORM_PEAKS_PER_SECOND: u32 = 10;
/// Bytes of a blob in memory while it is streamed.
pub const BLOB_PIECE_BYTES: u64 = 256 * 1024;
/// The largest integer that a JSON client can represent exactly: 2^53 − 1.
pub const INTEGER_MAX: i64 = (1 << 53) - 1;

/// Length of an Idempotency-Key.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;
/// How long the response to an Idempotency-Key is kept.
pub const IDEMPOTENCY_WINDOW_MS: i64 = 24 * 60 * 60 * 1000;
/// Attempts of an operation whose data changed between reading and writing.
pub const STALE_ATTEMPTS_MAX: u32 = 200;
/// How often the holder of a call's lease repeats a write that the carrier's reports made stale.
pub const LEASED_ATTEMPTS_MAX: u32 = 8;

/// Invalid keys from one address before requests are rejected with 429.
pub const INVALID_CREDENTIALS_MAX: u32 = 10;
/// The window in which invalid keys are counted.
pub const INVALID_CREDENTIALS_WINDOW_MS: i64 = 60_000;
/// Addresses that are tracked; beyond that the older half is dropped.
pub const INVALID_CREDENTIALS_ADDRESSES_MAX: usize = 10_000;

/// Simulation runs of a workspace that a process runs at once, when no other workspace has any; they mostly wait for models
/// and tools. There is an eighth more of places, for the others.
pub const RUNS_AT_ONCE: u64 = 64;
/// Likewise, hang-ups; and likewise, calls that are settled and analyzed.
pub const CALL_JOBS_AT_ONCE: u64 = 64;
/// Likewise, webhooks. Deliveries only wait, and an unresponsive receiver takes long.
pub const DELIVERY_JOBS_AT_ONCE: u64 = 128;
/// Lease on a claimed job.
pub const JOB_LEASE_MS: i64 = 60_000;
/// Attempts of a job. The end of its process counts as an attempt, so the limit exceeds the number of restarts on a bad
/// day.
pub const JOB_ATTEMPTS_MAX: i64 = 12;
/// The pause after the first failed attempt of a job; it doubles each time.
pub const JOB_RETRY_MS: i64 = 1_000;
/// Doublings of that pause.
pub const JOB_RETRY_DOUBLINGS_MAX: i64 = 10;

/// Deadline of one request to a model, to the last byte.
pub const MODEL_ATTEMPT_MS: u64 = 60_000;
/// Total time for a model's answer: all attempts, pauses and fallbacks.
pub const MODEL_TOTAL_MS: u64 = 120_000;
/// Attempts of the same request to one model.
pub const MODEL_ATTEMPTS_MAX: u32 = 3;
/// Attempts of the same request to one model when its answers cannot be used.
pub const MODEL_GARBLED_MAX: u32 = 2;
/// Fallback models of a model.
pub const MODEL_FALLBACKS_MAX: usize = 4;
/// The pause before the first retry of a model request; it doubles each time.
pub const MODEL_RETRY_MS: u64 = 500;
/// Longest pause requested by a provider that is observed; a longer one ends the attempts.
pub const MODEL_RETRY_AFTER_MS_MAX: u64 = 20_000;
/// Size of a model's response on the wire; a streamed one takes some hundred bytes per word.
pub const MODEL_RESPONSE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of an error response that are read.
pub const MODEL_ERROR_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a provider's error message that are passed on.
pub const MODEL_ERROR_TEXT_BYTES_MAX: usize = 300;
/// Size of one line, and of one event, of a streamed response.
pub const MODEL_EVENT_BYTES_MAX: usize = 1024 * 1024;
/// Size of the text of one answer, and of a line of a conversation.
pub const MODEL_TEXT_BYTES_MAX: usize = 64 * 1024;
/// Tool calls in one answer.
pub const MODEL_CALLS_MAX: usize = 64;
/// Size of the arguments of all tool calls in one answer.
pub const MODEL_ARGUMENTS_BYTES_MAX: usize = 256 * 1024;
/// Token limit sent to a model; it includes reasoning tokens.
pub const MODEL_REPLY_TOKENS_MAX: u32 = 4_096;
/// Bytes per token, for estimates when a provider does not report usage. It overestimates rather than underestimates:
/// plain English has about four bytes per token, Chinese about three.
pub const MODEL_BYTES_PER_TOKEN: usize = 3;
/// Size of the transcript that a judge or an analyst receives.
pub const MODEL_TRANSCRIPT_BYTES_MAX: usize = 256 * 1024;
/// Size of one row of that transcript. As JSON a row takes up to six times as much, so at least two rows fit.
pub const MODEL_ROW_BYTES_MAX: usize = 16 * 1024;
/// Audio before the moment in which speech was noticed that belongs to an utterance.
pub const SPEECH_PRE_ROLL_MS: i64 = 500;
/// Audio without a final result that is sent again over a new connection.
pub const SPEECH_REPLAY_MS: i64 = 10_000;
/// The pauses before the attempts that follow a failed one, for connections and requests of speech providers. When the last
/// of these attempts fails too, the utterance or line has failed.
pub const SPEECH_RETRY_MS: [i64; 3] = [0, 500, 2_000];
/// Time in which a speech provider must open a connection.
pub const SPEECH_CONNECT_MS: i64 = 10_000;
/// Without anything else to send, a speech provider gets a sign of life this often.
pub const SPEECH_KEEP_ALIVE_MS: i64 = 5_000;
/// A connection that lasted this long was a good one: the attempts are counted anew.
pub const SPEECH_STEADY_MS: i64 = 10_000;
/// A provider that has not answered for this long after the end of an utterance is asked again over a new connection.
pub const SPEECH_RESULT_LATE_MS: i64 = 5_000;
/// Time for the last results at the end of a call.
pub const SPEECH_CLOSE_MS: i64 = 3_000;
/// Size of a message of a speech provider; a larger one ends the connection.
pub const SPEECH_MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// Unreadable messages of a speech provider in a row before its connection counts as broken.
pub const SPEECH_UNREADABLE_MAX: u32 = 20;
/// Size of the text of one utterance.
pub const SPEECH_TEXT_BYTES_MAX: usize = 16 * 1024;
/// Utterances without a result; beyond that the oldest has failed.
pub const SPEECH_UTTERANCES_MAX: usize = 16;
/// Results of a transcriber that its driver has not taken yet.
pub const SPEECH_EVENTS_MAX: usize = 64;
/// Key terms sent to a speech provider.
pub const SPEECH_KEYTERMS_MAX: usize = 100;
/// Size of all key terms sent to a speech provider: they are part of an address, or of a model's prompt.
pub const SPEECH_KEYTERMS_BYTES_MAX: usize = 2_000;
/// Audio in one request for a transcript; longer utterances are cut.
pub const TRANSCRIPTION_MS_MAX: i64 = 30_000;
/// The last part of such a piece in which the quietest place to cut is looked for.
pub const TRANSCRIPTION_CUT_MS: i64 = 3_000;
/// Requests for transcripts of one person that wait or are under way; each holds up to 1 MB of audio.
pub const TRANSCRIPTIONS_MAX: usize = 6;
/// Deadline of one request for a transcript.
pub const TRANSCRIPTION_DEADLINE_MS: u64 = 10_000;
/// No attempt begins later than this after the first one.
pub const TRANSCRIPTION_TOTAL_MS: i64 = 15_000;
/// Size of a call's summary.
pub const SUMMARY_BYTES_MAX: usize = 1_000;
/// Size of a judge's reason.
pub const REASON_BYTES_MAX: usize = 1_000;
/// The least and most that an assistant's end of turn can be set to.
pub const END_OF_TURN_MS_MIN: i64 = 100;
/// See [`END_OF_TURN_MS_MIN`].
pub const END_OF_TURN_MS_MAX: i64 = 10_000;
/// Words that interrupt an assistant.
pub const INTERRUPTION_WORDS_MAX: i64 = 10;
/// Characters of what an assistant says while it waits for a tool.
pub const FILLER_CHARS_MAX: usize = 200;
/// How often the model is asked early in one turn.
pub const EARLY_QUESTIONS_MAX: u32 = 3;
/// Turns of a call whose times are kept: the latest.
pub const CALL_TURNS_MAX: usize = 200;
/// Calls of which the statistics count how long the caller waited: the latest.
pub const WAITS_CALLS_MAX: i64 = 1_000;
/// Earlier revisions of an assistant that are kept.
pub const ASSISTANT_REVISIONS_KEPT: i64 = 50;
/// Key terms of an assistant.
pub const KEYTERMS_MAX: usize = 100;
/// Characters of a key term.
pub const KEYTERM_CHARS_MAX: usize = 50;
/// Characters of a language tag (BCP 47, section 4.4.1).
pub const LANGUAGE_CHARS_MAX: usize = 35;
/// Time for opening an outgoing WebSocket.
pub const SOCKET_CONNECT_MS: u64 = 10_000;
/// Size of a message that arrives on an outgoing WebSocket.
pub const CLIENT_MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Messages that wait to be sent on an outgoing WebSocket: half a minute of speech.
pub const CLIENT_QUEUE_BYTES_MAX: usize = 1024 * 1024;

/// The longest delay of a packet that a scenario can ask for.
pub const JITTER_MS_MAX: i64 = 1_000;
/// The quietest noise that a scenario can ask for, in dB of full scale: below it, 16 bits have none.
pub const NOISE_DB_MIN: i64 = -90;

/// Sessions of the dashboard end this long after they were last used.
pub const SESSION_MS: i64 = 30 * 24 * 3_600_000;
/// A session that is used is extended at most this often.
pub const SESSION_SEEN_MS: i64 = 3_600_000;
/// The time of an API key's last use is at most this much behind, to save writes.
pub const KEY_USED_MS: i64 = 3_600_000;
/// Sessions of one person; the one that was not used for longest goes.
pub const SESSIONS_MAX: i64 = 20;
/// Characters that are kept of what a browser says about itself.
pub const SESSION_CLIENT_CHARS_MAX: usize = 200;
/// Workspaces of one person.
pub const MEMBERSHIPS_MAX: i64 = 100;
/// How long a code and a link to sign in are good.
pub const SIGN_IN_MS: i64 = 600_000;
/// Tries of one code.
pub const SIGN_IN_TRIES_MAX: i64 = 5;
/// The time over which requests for codes are counted.
pub const SIGN_IN_WINDOW_MS: i64 = 3_600_000;
/// Codes for one address within [`SIGN_IN_WINDOW_MS`].
pub const SIGN_IN_MAILS_MAX: i64 = 5;
/// Codes for one network address within [`SIGN_IN_WINDOW_MS`].
pub const SIGN_IN_SOURCE_MAX: i64 = 20;
/// How long an invitation is good.
pub const INVITATION_MS: i64 = 7 * 24 * 3_600_000;
/// Open invitations of a workspace.
pub const INVITATIONS_MAX: i64 = 100;
/// People of a workspace.
pub const PEOPLE_MAX: i64 = 200;
/// How long an entry of the audit log is kept.
pub const AUDIT_KEPT_MS: i64 = 400 * 24 * 3_600_000;
/// Deadline of a request to an OpenID provider.
pub const OPENID_DEADLINE_MS: u64 = 10_000;
/// Bytes that are read of its answer.
pub const OPENID_REPLY_BYTES_MAX: usize = 256 * 1024;
/// How long its document and its keys are used before they are fetched again.
pub const OPENID_KEPT_MS: i64 = 600_000;
/// How old its keys are at least when they are fetched again for a key that is not among them.
pub const OPENID_REFRESH_MS: i64 = 60_000;
/// Characters of an e-mail address (RFC 5321, 4.5.3.1.3).
pub const EMAIL_CHARS_MAX: usize = 254;
/// Fields of a form.
pub const FORM_FIELDS_MAX: usize = 2_000;
/// Deadline of a request to the mail API.
pub const MAIL_DEADLINE_MS: u64 = 10_000;
/// Bytes that are read of its answer.
pub const MAIL_REPLY_BYTES_MAX: usize = 16 * 1024;
/// How long the sign-in link of the first start is good; the next start prints another one.
pub const FIRST_LINK_MS: i64 = 24 * 3_600_000;

//! Every limit, named once, with its unit last. Schemas, checks and documentation read them here.

/// A request body; larger ones are refused before they are read whole.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// How long a host waits for a whole request.
pub const REQUEST_READ_MS: u64 = 30_000;
/// One request to a carrier.
pub const CARRIER_DEADLINE_MS: u64 = 15_000;
/// A carrier's answer.
pub const CARRIER_RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// How long a telephone rings before the carrier gives up.
pub const PHONE_RING_SECONDS: u32 = 60;
/// How long a telephone call may last.
pub const PHONE_CALL_SECONDS_MAX: i64 = 3_600;
/// How long nothing may come of a call (no callback, no media) before it is settled as it is. More than it may ring.
pub const PHONE_CONNECT_MS: i64 = 180_000;
/// How long a call that its carrier has taken may wait before it rings: carriers send out one or two calls a second, and
/// what is ordered faster stands in a queue of theirs. At one a second, the 1,800th still has its turn.
pub const PHONE_QUEUE_MS: i64 = 1_800_000;
const _: () = assert!(PHONE_QUEUE_MS > PHONE_CONNECT_MS);
/// How long a carrier has to tell why a call was not connected after it has closed its media.
pub const PHONE_TOLD_MS: i64 = 30_000;
/// How long audio may take to come once the call is answered and its media socket is open.
pub const PHONE_START_MS: i64 = 10_000;
/// How often a conversation looks whether the carrier says that its call is over, or somebody wants it to be.
pub const PHONE_LOOK_MS: i64 = 5_000;
/// Messages of a carrier that cannot be read, or come out of place, before the call is ended: five seconds of audio.
pub const PHONE_WRONG_MESSAGES_MAX: u32 = 250;
/// Audio that is sent to a carrier before it is played, at most.
pub const PHONE_AHEAD_MS: i64 = 10_000;
/// How often a carrier is asked to tell what it has played.
pub const PHONE_MARK_MS: i64 = 1_000;
/// How long after the end of its audio a line is taken for played when no mark came back.
pub const PHONE_MARK_LATE_MS: i64 = 2_000;
/// For how long the last words of a conversation are still spoken. Nobody extends the lease meanwhile.
pub const PHONE_LAST_WORDS_MS: i64 = 60_000;
const _: () = assert!(PHONE_LAST_WORDS_MS < LIVE_LEASE_MS - LIVE_LEASE_KEPT_MS);
/// How much shorter a conversation is than the carrier's limit, which counts from the answer: else the carrier ends it, in
/// the middle of a word, and the log has it that the person hung up.
pub const PHONE_FAREWELL_MS: i64 = PHONE_LAST_WORDS_MS + 2 * PHONE_START_MS;
const _: () = assert!(PHONE_FAREWELL_MS < PHONE_CALL_SECONDS_MAX * 1_000);
/// How much audio may come in faster than time passes.
pub const PHONE_BURST_MS: i64 = 10_000;
/// After this pause keys that were pressed are a line of their own.
pub const PHONE_KEYS_MS: i64 = 2_000;
/// Keys in one such line.
pub const PHONE_KEYS_MAX: usize = 64;
/// When it is the turn of somebody on the telephone and nothing is heard for so long, that is a silence.
pub const PHONE_SILENCE_MS: i64 = 20_000;
/// Telephone calls a workspace may have at once.
pub const CALLS_AT_ONCE_MAX: u64 = 10_000;
/// How old, or how far ahead, a carrier's signature may be.
pub const CARRIER_SIGNATURE_AGE_MS_MAX: i64 = 300_000;
/// What a carrier says of an error, as far as it is passed on.
pub const CARRIER_MESSAGE_BYTES_MAX: usize = 500;
/// Audio in one message of a media socket.
pub const MEDIA_CHUNK_MS_MAX: usize = 3_000;
/// A test token's lifetime and the longest conversation it opens, at least.
pub const TEST_TOKEN_SECONDS_MIN: i64 = 30;
/// And at most.
pub const TEST_TOKEN_SECONDS_MAX: i64 = 3_600;
/// A test token's lifetime when none is asked for.
pub const TEST_TOKEN_TTL_SECONDS_DEFAULT: i64 = 300;
/// A test conversation's length when none is asked for.
pub const TEST_TOKEN_DURATION_SECONDS_DEFAULT: i64 = 600;

/// A message over a WebSocket; a larger one closes it.
pub const SOCKET_MESSAGE_BYTES_MAX: usize = 32 * 1024;
/// A client that takes nothing of a message for so long is gone.
pub const SOCKET_SEND_MS: u64 = 10_000;
/// How long a host waits for the client's part of closing.
pub const SOCKET_CLOSE_MS: u64 = 2_000;
/// Live conversations in one process; further ones are told to wait.
pub const LIVE_SESSIONS_MAX: usize = 1_000;
/// A line typed in a live conversation.
pub const LIVE_TEXT_CHARS_MAX: usize = 4_000;
/// When it is the user's turn and nothing comes for so long, that is a silence.
pub const LIVE_SILENCE_MS: i64 = 60_000;
/// Messages a client may send at once.
pub const LIVE_MESSAGES_BURST: u32 = 20;
/// After a burst, a client may send one more each time this has passed.
pub const LIVE_MESSAGE_MS: i64 = 500;
/// Messages that are wrong, or come too fast, before the conversation is closed.
pub const LIVE_WRONG_MESSAGES_MAX: u32 = 10;
/// What the models of a live conversation may cost, in millionths of a US dollar.
pub const LIVE_COST_MICROUSD_MAX: i64 = 1_000_000;
/// How long a live conversation stays its process's when nothing extends that.
pub const LIVE_LEASE_MS: i64 = 120_000;
/// How often it is extended.
pub const LIVE_LEASE_KEPT_MS: i64 = 40_000;

/// Names of assistants, documents, personas, scenarios, simulations and keys.
pub const NAME_CHARS_MAX: u64 = 120;
/// Instructions of an assistant, a persona or a scenario.
pub const INSTRUCTIONS_BYTES_MAX: usize = 32_768;
/// An assistant's opening message.
pub const FIRST_MESSAGE_CHARS_MAX: u64 = 2_000;
/// `provider/name` of a model or a voice.
pub const MODEL_CHARS_MAX: u64 = 200;
/// Tools an assistant can have.
pub const TOOLS_PER_ASSISTANT_MAX: usize = 64;
/// Documents an assistant can have.
pub const DOCUMENTS_PER_ASSISTANT_MAX: usize = 128;
/// One knowledge document.
pub const DOCUMENT_BYTES_MAX: usize = 50 * 1024;
/// All knowledge of one assistant.
pub const KNOWLEDGE_PER_ASSISTANT_BYTES_MAX: i64 = 200 * 1024;
/// A document's source label.
pub const SOURCE_CHARS_MAX: u64 = 200;
/// A tool's name, as the models' providers allow it.
pub const TOOL_NAME_CHARS_MAX: u64 = 64;
/// What a tool is for.
pub const TOOL_DESCRIPTION_CHARS_MAX: u64 = 2_000;
/// A tool's shortest deadline.
pub const TOOL_TIMEOUT_MS_MIN: u64 = 100;
/// A tool's longest deadline.
pub const TOOL_TIMEOUT_MS_MAX: u64 = 30_000;
/// A tool's deadline when none is given.
pub const TOOL_TIMEOUT_MS_DEFAULT: i64 = 5_000;
/// A tool's answer; more is an error result.
pub const TOOL_RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// Webhooks of a workspace: each event is written for each of them in the batch of what it tells.
pub const WEBHOOKS_MAX: i64 = 250;
/// Entries of a webhook's `events`.
pub const WEBHOOK_EVENTS_MAX: u64 = 16;
/// The whole of one attempt to deliver an event (Standard Webhooks: 15 to 30 s).
pub const DELIVERY_DEADLINE_MS: u64 = 15_000;
/// What is read of a receiver's answer.
pub const DELIVERY_RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// What is kept of it.
pub const DELIVERY_RESPONSE_KEPT_BYTES_MAX: usize = 1024;
/// The pauses after the first failed attempt, the second and so on; a delivery that fails once more
/// is given up (the schedule of Svix, 27 h 35 min in all).
pub const DELIVERY_RETRY_MS: [i64; 7] =
    [5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000];
/// What chance adds to a pause at most, in parts of a hundred: a receiver that was down is not met by
/// all at once.
pub const DELIVERY_JITTER_PERCENT_MAX: i64 = 10;
/// Attempts to one webhook that are under way at once.
pub const DELIVERIES_AT_ONCE: usize = 16;
/// Bodies that are held for them, where it is more than one.
pub const DELIVERIES_AT_ONCE_BYTES_MAX: i64 = 1024 * 1024;
/// How often a host that runs nothing else may take deliveries of one webhook before others have a turn.
pub const DELIVERY_ROUNDS_MAX: usize = 16;
/// An event's body: a row of D1 holds 2 MB. A larger one is sent with ids only.
pub const EVENT_BYTES_MAX: usize = 1_800_000;
/// How long events and deliveries are kept.
pub const EVENT_KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// How many old rows a sweep removes at once.
pub const SWEEP_ROWS_MAX: i64 = 500;
/// How often it does so in one go; what is left waits for the next sweep.
pub const SWEEP_CHUNKS_MAX: usize = 8;
/// How long the old secret still signs after a rotation, unless the request says less.
pub const SECRET_OVERLAP_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// A carrier's region.
pub const REGION_CHARS_MAX: u64 = 64;
/// Rows on a page when no limit is given.
pub const PAGE_ROWS_DEFAULT: i64 = 200;
/// Rows on a page at most.
pub const PAGE_ROWS_MAX: u64 = 1_000;
/// The highest page number: keeps `page × limit` exact in a float.
pub const PAGE_MAX: u64 = 1_000_000_000;
/// What one run keeps of its assistant, or of its scenario: a row of D1 holds 2 MB.
pub const SNAPSHOT_BYTES_MAX: usize = 1_800_000;
/// What all runs of one batch keep together.
pub const BATCH_SNAPSHOTS_BYTES_MAX: i64 = 8 * 1024 * 1024;
/// What one statement carries of a long list.
pub const STATEMENT_LIST_BYTES_MAX: usize = 512 * 1024;
/// Simulations one batch starts at most.
pub const BATCH_RUNS_MAX: usize = 1_000;
/// Runs a workspace may have in progress at once.
pub const RUNS_AT_ONCE_MAX: u64 = 1_000;
/// What a run in progress shows of the line spoken last.
pub const LAST_LINE_BYTES_MAX: usize = 200;
/// How far a conversation may get between two notes of how far it is, where nothing else asks for one.
pub const CHECKPOINT_MS: i64 = 3_000;
/// What the models of one run may cost when nothing else is said, in millionths of a US dollar.
pub const RUN_COST_MICROUSD_DEFAULT: i64 = 1_000_000;
/// A search's text.
pub const SEARCH_CHARS_MAX: u64 = 500;
/// Transcripts in one list of calls.
pub const CALL_LIST_TRANSCRIPTS_BYTES_MAX: i64 = 4 * 1024 * 1024;
/// A recording's file: two and a half hours of two channels at 8 kHz.
pub const RECORDING_BYTES_MAX: usize = 288 * 1024 * 1024;
/// The fewest samples a second of a recording: a telephone's.
pub const RECORDING_RATE_HZ_MIN: u32 = 8_000;
/// The most.
pub const RECORDING_RATE_HZ_MAX: u32 = 48_000;
/// An attempt to keep a recording that takes longer has ended: what it wrote is removed.
pub const RECORDING_WRITE_MS_MAX: i64 = 24 * 60 * 60 * 1000;
/// Recordings a sweep removes at once: a request each, and an invocation at the edge has 50.
pub const RECORDINGS_SWEPT_MAX: usize = 16;
/// How finely a waveform is drawn.
pub const WAVEFORM_PEAKS_PER_SECOND: u32 = 10;
/// How much of a blob is in memory while it is sent.
pub const BLOB_PIECE_BYTES: u64 = 256 * 1024;
/// The largest integer a JSON client can hold exactly: 2^53 − 1.
pub const INTEGER_MAX: i64 = (1 << 53) - 1;

/// An Idempotency-Key.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;
/// How long an Idempotency-Key is remembered.
pub const IDEMPOTENCY_WINDOW_MS: i64 = 24 * 60 * 60 * 1000;
/// How often an operation starts over when others changed what it read.
pub const STALE_ATTEMPTS_MAX: u32 = 200;

/// Wrong keys from one address before it is told to wait.
pub const INVALID_CREDENTIALS_MAX: u32 = 10;
/// The window in which they are counted.
pub const INVALID_CREDENTIALS_WINDOW_MS: i64 = 60_000;
/// Addresses remembered at once; beyond that the older half is forgotten.
pub const INVALID_CREDENTIALS_ADDRESSES_MAX: usize = 10_000;

/// How long a claimed job stays its claimer's when nothing extends it.
pub const JOB_LEASE_MS: i64 = 60_000;
/// How often a job is started before it is given up. A process that is killed counts as a try, so
/// this is more than a bad day of restarts has.
pub const JOB_ATTEMPTS_MAX: i64 = 12;
/// The pause after a failed try; doubles each time.
pub const JOB_RETRY_MS: i64 = 1_000;
/// How often the pause doubles at most.
pub const JOB_RETRY_DOUBLINGS_MAX: i64 = 10;

/// How long a model may take for one answer, to its last byte.
pub const MODEL_ATTEMPT_MS: u64 = 60_000;
/// How long asking may take in all: every try, every pause, every fallback.
pub const MODEL_TOTAL_MS: u64 = 120_000;
/// How often one model is asked the same before it is given up.
pub const MODEL_ATTEMPTS_MAX: u32 = 3;
/// How often a model is asked the same when its answers cannot be used.
pub const MODEL_GARBLED_MAX: u32 = 2;
/// Models that are asked in place of one that cannot answer.
pub const MODEL_FALLBACKS_MAX: usize = 4;
/// The pause before a model is asked again; doubles each time.
pub const MODEL_RETRY_MS: u64 = 500;
/// A provider that asks for a longer pause than this is not waited for.
pub const MODEL_RETRY_AFTER_MS_MAX: u64 = 20_000;
/// An answer of a model on the wire; a streamed one takes some hundred bytes for each word.
pub const MODEL_RESPONSE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What is read of a refusal.
pub const MODEL_ERROR_BYTES_MAX: usize = 64 * 1024;
/// What a provider says of an error, as far as it is passed on.
pub const MODEL_ERROR_TEXT_BYTES_MAX: usize = 300;
/// One line of a streamed answer, and one event of it.
pub const MODEL_EVENT_BYTES_MAX: usize = 1024 * 1024;
/// The words of one answer: what a conversation keeps of a line.
pub const MODEL_TEXT_BYTES_MAX: usize = 64 * 1024;
/// Tool calls of one answer.
pub const MODEL_CALLS_MAX: usize = 64;
/// The arguments of all tool calls of one answer.
pub const MODEL_ARGUMENTS_BYTES_MAX: usize = 256 * 1024;
/// Tokens a model is asked to keep to; those it only thinks with count.
pub const MODEL_REPLY_TOKENS_MAX: u32 = 4_096;
/// What a token is taken to be of a request or an answer whose provider counts none: rather too many tokens than too few,
/// for plain English has four bytes to one, and Chinese about three.
pub const MODEL_BYTES_PER_TOKEN: usize = 3;
/// Bytes of a transcript that a judge or an analyst is shown.
pub const MODEL_TRANSCRIPT_BYTES_MAX: usize = 256 * 1024;
/// Bytes of one row of it; six times as much as JSON still leaves room for two.
pub const MODEL_ROW_BYTES_MAX: usize = 16 * 1024;
/// A call's summary.
pub const SUMMARY_BYTES_MAX: usize = 1_000;
/// A judge's reason.
pub const REASON_BYTES_MAX: usize = 1_000;

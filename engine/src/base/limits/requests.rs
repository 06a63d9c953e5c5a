//! Requests, responses, pages of lists, and idempotency.

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
/// Default number of rows per part of a list.
pub const LIST_ROWS_DEFAULT: i64 = 1_000;
/// Default number of rows per page of calls, runs or deliveries.
pub const PAGE_ROWS_DEFAULT: i64 = 200;
/// Largest number of rows per page or part.
pub const PAGE_ROWS_MAX: u64 = 1_000;
/// A stored response that is larger counts among [`LARGE_RESPONSES_STORED_MAX`]. An index has the number, too.
pub const LARGE_RESPONSE_BYTES: usize = 131_072;
/// Large responses of a workspace that are stored for a repetition with the same `Idempotency-Key`.
pub const LARGE_RESPONSES_STORED_MAX: i64 = 500;
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
/// Length of an argument of an MCP prompt.
pub const MCP_PROMPT_ARGUMENT_CHARS_MAX: usize = 2_000;
/// Assistants, or calls, on one page of the MCP resources.
pub const MCP_RESOURCES_PER_PAGE: usize = 50;
/// Pages of calls among the MCP resources: the latest ones. Older calls are read by their ids.
pub const MCP_RESOURCE_CALL_PAGES_MAX: usize = 4;
/// Default number of rows per page of an MCP tool.
pub const MCP_PAGE_ROWS_DEFAULT: i64 = 20;
/// Runs that an MCP tool which starts many shows of them.
pub const MCP_STARTED_RUNS_SHOWN: usize = 10;
/// Larger results of MCP tools say how to ask for less.
pub const MCP_LARGE_RESULT_BYTES: usize = 64 * 1024;
/// Largest page number: keeps `page × limit` exact in a float.
pub const PAGE_MAX: u64 = 1_000_000_000;
/// Bytes of a long list in one SQL statement.
pub const STATEMENT_LIST_BYTES_MAX: usize = 512 * 1024;
/// Length of a search text.
pub const SEARCH_CHARS_MAX: u64 = 500;
/// Size of a call in a list, without its transcript, its analysis and its waits.
pub const CALL_ROW_BYTES_MAX: i64 = 1_500;
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
/// Days of the statistics over time, without a parameter.
pub const STATISTICS_DAYS_DEFAULT: i64 = 30;
/// Days of the statistics over time.
pub const STATISTICS_DAYS_MAX: i64 = 90;
/// Calls of which the statistics count how long the caller waited: the latest.
pub const WAITS_CALLS_MAX: i64 = 1_000;

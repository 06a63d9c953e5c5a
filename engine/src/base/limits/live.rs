//! Live conversations: tokens, sockets, messages, leases, and memory.

/// Shortest lifetime of a test token, and shortest conversation it opens.
pub const TEST_TOKEN_SECONDS_MIN: i64 = 30;
/// Longest lifetime of a test token, and longest conversation it opens.
pub const TEST_TOKEN_SECONDS_MAX: i64 = 3_600;
/// Default lifetime of a test token.
pub const TEST_TOKEN_TTL_SECONDS_DEFAULT: i64 = 300;
/// Default duration of a test conversation.
pub const TEST_TOKEN_DURATION_SECONDS_DEFAULT: i64 = 600;
/// Conversations that one test link begins, if it may start again: more than a person holds in an hour.
pub const LINK_STARTS_MAX: i64 = 200;
/// Conversations of these within [`LINK_STARTS_WINDOW_MS`]: who tries and reloads a page begins fewer.
pub const LINK_STARTS_WINDOW_MAX: i64 = 10;
/// See [`LINK_STARTS_WINDOW_MAX`].
pub const LINK_STARTS_WINDOW_MS: i64 = 60_000;
/// Size of a WebSocket message; a larger one closes the socket.
pub const SOCKET_MESSAGE_BYTES_MAX: usize = 32 * 1024;
/// A client that does not accept a message for this long counts as disconnected.
pub const SOCKET_SEND_MS: u64 = 10_000;
/// Time a host waits for the client's close frame.
pub const SOCKET_CLOSE_MS: u64 = 2_000;
/// Tests of tools that one workspace has under way in one process.
pub const TOOL_TESTS_MAX: u64 = 32;
/// Concurrent live conversations in one process. Workspaces share them fairly; clients beyond that are asked to retry
/// later. What a machine can bear is less: its memory, and the audio that is late, limit conversations before this does.
pub const LIVE_SESSIONS_MAX: u64 = 10_000;
/// Conversations of these that workspaces with one already leave to those without.
pub const LIVE_SESSIONS_FOR_NEWCOMERS: u64 = 20;
/// How often a process looks how late its timers are.
pub const LATENESS_TICK_MS: u64 = 20;
/// A timer that ends so much after it was due is late: the length of a frame of audio.
pub const LATE_MS: i64 = 20;
/// A process counts the timers of the current window of this length and of the one before.
pub const LATENESS_WINDOW_MS: i64 = 5_000;
/// Fewer late timers are chance, as when the machine did something else for a moment.
pub const LATE_MIN: u64 = 5;
/// Percentage of the timers that may be late, before a process with conversations begins no further one with audio.
pub const LATE_PERCENT_DEFAULT: u64 = 1;
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
/// In a browser test, nothing received for this long during the user's turn is a silence.
pub const BROWSER_SILENCE_MS: i64 = 60_000;
/// Burst size of a client's messages.
pub const LIVE_MESSAGES_BURST: u32 = 20;
/// After a burst, one more message is allowed per this interval.
pub const LIVE_MESSAGE_MS: i64 = 500;
/// Invalid or rate-limited messages before the conversation is closed.
pub const LIVE_WRONG_MESSAGES_MAX: u32 = 10;
/// Cost of models and speech of a live conversation, in millionths of a US dollar.
pub const LIVE_COST_MICROUSD_MAX: i64 = 1_000_000;
/// Lease of a process on its live conversation.
pub const LIVE_LEASE_MS: i64 = 120_000;
/// How often the lease is extended.
pub const LIVE_LEASE_EXTEND_MS: i64 = 40_000;
/// How long a spoken conversation goes on without writing its journal, and reading its leg in the same batch: what a crash
/// loses at most of the line being spoken, and how late a hang-up is noticed whose signal was lost.
pub const SPOKEN_SAVE_MS: i64 = 10_000;
const _: () = assert!(SPOKEN_SAVE_MS < LIVE_LEASE_EXTEND_MS);
/// How soon a new line of a spoken conversation is in its journal.
pub const SPOKEN_ROW_SAVE_MS: i64 = 2_000;
/// How long after a signal a conversation looks, and how often it writes for those who follow it.
pub const LIVE_LOOK_MS: i64 = 500;
/// How often it writes for them how much of a line was heard.
pub const WATCHED_HEARD_MS: i64 = 2_000;
/// How long a start with a test link waits for the end of the conversation that it replaces. After that it goes on: the other
/// one has been told to end, or its process has died.
pub const REPLACED_END_MS: i64 = 3_000;
/// How often it looks meanwhile, at least.
pub const REPLACED_LOOK_MS: i64 = 500;
/// Bytes of the latest line that a run in progress shows.
pub const LAST_LINE_BYTES_MAX: usize = 200;
/// How often the model is asked early in one turn.
pub const EARLY_QUESTIONS_MAX: u32 = 3;
/// Size of the log of a conversation's inputs. A longer one ends there.
pub const CALL_INPUTS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Turns of a call whose times are kept: the latest.
pub const CALL_TURNS_MAX: usize = 200;

//! Live conversations: tokens, sockets, messages, leases, and memory.

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
/// Tests of tools that one workspace has under way in one process.
pub const TOOL_TESTS_MAX: u64 = 32;
/// Concurrent live conversations in one process. Workspaces share them fairly; clients beyond that are asked to retry
/// later. What a machine can bear is less: its memory, and the audio that is late, limit conversations before this does.
pub const LIVE_SESSIONS_MAX: u64 = 10_000;
/// Conversations of these that workspaces with one already leave to those without.
pub const LIVE_SESSIONS_FOR_NEWCOMERS: u64 = 20;
/// Audio of a conversation that a process gets to so much after it was due is late: the length of a frame.
pub const AUDIO_LATE_MS: i64 = 20;
/// A process looks at the audio that was due in the current window of this length and in the one before.
pub const LATENESS_WINDOW_MS: i64 = 5_000;
/// Less audio that is late is chance, as when one conversation had to wait once.
pub const LATE_AUDIO_MIN: u64 = 20;
/// Percentage of the audio that may be late, before a process begins no further conversation with audio.
pub const LATE_AUDIO_PERCENT_DEFAULT: u64 = 1;
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
/// Cost of models and speech of a live conversation, in millionths of a US dollar.
pub const LIVE_COST_MICROUSD_MAX: i64 = 1_000_000;
/// Lease of a process on its live conversation.
pub const LIVE_LEASE_MS: i64 = 120_000;
/// How often the lease is extended.
pub const LIVE_LEASE_EXTEND_MS: i64 = 40_000;
/// Bytes of the latest line that a run in progress shows.
pub const LAST_LINE_BYTES_MAX: usize = 200;
/// How often the model is asked early in one turn.
pub const EARLY_QUESTIONS_MAX: u32 = 3;
/// Size of the log of a conversation's inputs. A longer one ends there.
pub const CALL_INPUTS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Turns of a call whose times are kept: the latest.
pub const CALL_TURNS_MAX: usize = 200;

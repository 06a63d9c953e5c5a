//! Language models: attempts, answers, and what they cost.

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
/// The same for a model that hears and speaks: a token is 50 ms of its audio.
pub const REALTIME_REPLY_TOKENS_MAX: u32 = 2_048;
/// Audio of one answer of such a model that is played; more is dropped.
pub const REALTIME_AUDIO_MS_MAX: i64 = 120_000;
/// Without anything of an answer for so long, the session is given up and opened again.
pub const REALTIME_RESPONSE_MS: i64 = 10_000;
/// The pauses that an answer may have, together: a server that says a little now and then leaves the person in silence.
pub const REALTIME_PAUSES_MS_MAX: i64 = 20_000;
const _: () = assert!(REALTIME_PAUSES_MS_MAX >= REALTIME_RESPONSE_MS);
/// A session is replaced between two turns when it is that old: OpenAI ends one after 60 minutes.
pub const REALTIME_SESSION_MS: i64 = 50 * 60_000;
/// Bytes of an assistant's knowledge that such a model gets: OpenAI takes 16,384 tokens of instructions and tools, and
/// bills them with every answer.
pub const REALTIME_KNOWLEDGE_BYTES_MAX: usize = 32 * 1024;
/// Bytes per token, for estimates when a provider does not report usage. It overestimates rather than underestimates:
/// plain English has about four bytes per token, Chinese about three.
pub const MODEL_BYTES_PER_TOKEN: usize = 3;
/// Size of the transcript that a judge or an analyst receives.
pub const MODEL_TRANSCRIPT_BYTES_MAX: usize = 256 * 1024;
/// Size of one row of that transcript. As JSON a row takes up to six times as much, so at least two rows fit.
pub const MODEL_ROW_BYTES_MAX: usize = 16 * 1024;
/// Size of a call's summary.
pub const SUMMARY_BYTES_MAX: usize = 1_000;
/// Size of a judge's reason.
pub const REASON_BYTES_MAX: usize = 1_000;

//! What a workspace configures: fields of resources, and how many it may have.

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
/// What one assistant says to an answering machine.
pub const VOICEMAIL_MESSAGE_CHARS_MAX: u64 = 2_000;
/// People to whom one assistant can hand a call over.
pub const TRANSFERS_MAX: usize = 16;
/// Length of the name of one of them.
pub const TRANSFER_NAME_CHARS_MAX: u64 = 64;
/// Length of what says when a call is handed over.
pub const TRANSFER_WHEN_CHARS_MAX: u64 = 500;
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
/// Assistants that one batch of a deletion detaches something from: each keeps a revision with all of its texts.
pub const DETACHED_AT_ONCE: i64 = 50;
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
/// After a rotation, the old secret signs for this long unless the request shortens it.
pub const SECRET_OVERLAP_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// Length of a carrier's region.
pub const REGION_CHARS_MAX: u64 = 64;
/// The least and most that an assistant's end of turn can be set to.
pub const END_OF_TURN_MS_MIN: i64 = 100;
/// See [`END_OF_TURN_MS_MIN`].
pub const END_OF_TURN_MS_MAX: i64 = 10_000;
/// Words that interrupt an assistant.
pub const INTERRUPTION_WORDS_MAX: i64 = 10;
/// Characters of what an assistant says while it waits for a tool.
pub const FILLER_CHARS_MAX: usize = 200;
/// Earlier revisions of an assistant that are kept.
pub const ASSISTANT_REVISIONS_KEPT: i64 = 50;
/// Key terms of an assistant.
pub const KEYTERMS_MAX: usize = 100;
/// Characters of a key term.
pub const KEYTERM_CHARS_MAX: usize = 50;
/// Characters of a language tag (BCP 47, section 4.4.1).
pub const LANGUAGE_CHARS_MAX: usize = 35;

//! Everything the service can do, in one table. REST, MCP, OpenAPI, the documentation page and tests are derived from it.
//! To add an operation, write its function and its row, and list the row here.
/// The function of an operation, as its row takes it.
macro_rules! run {
    ($function:ident) => {
        |context, input| Box::pin($function(context, input))
    };
}

pub(crate) mod all_problems;
pub(crate) mod assistants;
pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod calls;
mod checks;
pub(crate) mod context;
mod date_range;
mod deleting;
pub(crate) mod events;
mod field_at_fault;
pub mod following;
pub(crate) mod get_snapshot;
pub(crate) mod id_kinds;
pub(crate) mod keys;
pub(crate) mod knowledge;
pub(crate) mod listing;
pub(crate) mod numbers;
pub mod operation;
mod paging;
pub(crate) mod personas;
mod resource;
mod rotation;
pub(crate) mod runs;
pub(crate) mod scenarios;
pub(crate) mod schema;
pub(crate) mod simulations;
pub(crate) mod speech;
pub(crate) mod tools;
pub(crate) mod validate;
pub(crate) mod variables;
pub(crate) mod waiting;
pub(crate) mod webhooks;
pub(crate) mod workspace;

use crate::operations::operation::Operation;

/// The groups, in the order they are documented, with a sentence each.
pub const GROUPS: &[(&str, &str)] = &[
    ("Assistants", "The configuration that answers a call: instructions, model, voice, tools and knowledge."),
    ("Tools", "Your HTTP endpoints that an assistant can call during a conversation."),
    ("Knowledge", "Plain-text documents that an assistant answers from once they are attached."),
    ("Numbers", "Which assistant answers calls to which phone number."),
    ("Webhooks", "Endpoints that events are sent to."),
    ("Calls", "The call log: transcripts, outcomes and costs."),
    ("Simulations", "Simulated callers that test an assistant, and their runs."),
    ("Speech", "Available models and voices, and their prices."),
    ("Keys", "API keys of the workspace."),
    ("Workspace", "The workspace: its limits and its spending."),
    ("Service", "Routes that require no API key."),
];

/// The texts of a row that only the documents need. A WebAssembly module embeds finished documents and omits these
/// texts.
const fn documented(row: Operation, group: &'static str) -> Operation {
    if cfg!(target_arch = "wasm32") { row.without_docs() } else { row.in_group(group) }
}

macro_rules! table {
    ($($group:literal => [$($row:expr),* $(,)?],)*) => { &[$($(const { documented($row, $group) }),*),*] };
}

/// The table, by group. The order is the order of the MCP tool list.
pub static OPERATIONS: &[Operation] = table![
    "Assistants" => [
        assistants::LIST,
        assistants::GET,
        assistants::CREATE,
        assistants::UPDATE,
        assistants::DELETE,
        assistants::attachments::SET_TOOLS,
        assistants::attachments::SET_KNOWLEDGE,
        assistants::revisions::LIST,
        assistants::revisions::RESTORE,
        assistants::test_token::OPERATION,
    ],
    "Tools" => [
        tools::LIST,
        tools::GET,
        tools::CREATE,
        tools::UPDATE,
        tools::DELETE,
        tools::ROTATE_SECRET,
        tools::test::OPERATION,
    ],
    "Knowledge" => [
        knowledge::LIST,
        knowledge::GET,
        knowledge::CREATE,
        knowledge::UPDATE,
        knowledge::DELETE,
    ],
    "Numbers" => [
        numbers::LIST,
        numbers::GET,
        numbers::BIND,
        numbers::UNBIND,
    ],
    "Calls" => [
        calls::list::OPERATION,
        calls::over_time::OPERATION,
        calls::get::OPERATION,
        calls::follow::OPERATION,
        calls::place::OPERATION,
        calls::hang_up::OPERATION,
        calls::recording::DOWNLOAD,
        calls::waveform::OPERATION,
        calls::recording::DELETE,
        calls::delete::OPERATION,
        calls::delete_many::OPERATION,
    ],
    "Webhooks" => [
        webhooks::LIST,
        webhooks::CREATE,
        webhooks::UPDATE,
        webhooks::DELETE,
        webhooks::ROTATE_SECRET,
        webhooks::test::OPERATION,
        webhooks::list_deliveries::OPERATION,
        webhooks::redeliver::OPERATION,
        events::LIST,
    ],
    "Simulations" => [
        personas::LIST,
        personas::GET,
        personas::CREATE,
        personas::UPDATE,
        personas::DELETE,
        scenarios::LIST,
        scenarios::GET,
        scenarios::CREATE,
        scenarios::UPDATE,
        scenarios::DELETE,
        simulations::LIST,
        simulations::GET,
        simulations::CREATE,
        simulations::UPDATE,
        simulations::DELETE,
        runs::start::OPERATION,
        runs::batch::OPERATION,
        runs::inline::OPERATION,
        runs::get_batch::OPERATION,
        runs::list::OPERATION,
        runs::get::OPERATION,
        runs::follow::OPERATION,
        runs::delete::OPERATION,
        runs::delete_many::OPERATION,
        get_snapshot::OPERATION,
    ],
    "Speech" => [
        speech::LIST_TTS_RATES,
        speech::LIST_STT_RATES,
        speech::LIST_MODELS,
    ],
    "Keys" => [
        keys::LIST,
        keys::CREATE,
        keys::REVOKE,
    ],
    "Workspace" => [
        workspace::GET,
        workspace::UPDATE,
        audit::LIST,
    ],
];

/// The operation with this id.
pub fn by_id(id: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.id == id)
}

//! Everything the service can do, in one table. REST, MCP, OpenAPI, the documentation page and the
//! tests come from it; adding an operation is adding a file and a row.
pub mod assistants;
pub mod auth;
pub mod calls;
pub mod context;
mod crud;
pub mod keys;
pub mod knowledge;
pub mod numbers;
pub mod operation;
pub mod personas;
mod refusal;
pub mod rotation;
pub mod runs;
pub mod scenarios;
pub mod schema;
pub mod simulations;
pub mod speech;
pub mod tools;
pub mod validate;
pub mod webhooks;
pub mod workspace;

use crate::operations::operation::Operation;

/// The groups, in the order they are documented, with a sentence each.
pub const GROUPS: &[(&str, &str)] = &[
    ("Assistants", "What answers a call: instructions, model, voice, and what it may use."),
    ("Tools", "HTTP endpoints of yours that an assistant may call during a conversation."),
    ("Knowledge", "Plain-text documents that an assistant answers from, once attached."),
    ("Numbers", "Which assistant answers calls to which phone number."),
    ("Webhooks", "Where events are sent."),
    ("Calls", "The log of calls: what was said, what came of it, what it cost."),
    ("Simulations", "Simulated callers that test an assistant, and the runs of them."),
    ("Speech", "Models and voices that can be used, and what speech costs."),
    ("Keys", "API keys of the workspace."),
    ("Workspace", "The workspace itself: its limits and what it has spent."),
    ("Service", "Routes that need no key."),
];

/// What may reach a service outside of this one, beside what can incur usage. The interface counts all that writes
/// an assistant among it.
pub const REACHING_OUT: &[&str] = &[
    "create_assistant",
    "update_assistant",
    "delete_assistant",
    "set_assistant_tools",
    "set_assistant_knowledge",
    "create_browser_test_token",
    "hang_up_call",
    "test_webhook",
    "redeliver_webhook_delivery",
];

/// A row as this target needs it: what only documents tell stays out of a module that is handed them.
#[cfg(target_arch = "wasm32")]
macro_rules! row {
    ($row:expr) => {
        Operation { group: "", title: "", description: "", response: None, errors: &[], ..$row }
    };
}
#[cfg(not(target_arch = "wasm32"))]
macro_rules! row {
    ($row:expr) => {
        $row
    };
}

macro_rules! table {
    ($($row:expr),* $(,)?) => { &[$(row!($row)),*] };
}

/// The table. The order is the order of the MCP tool list.
pub static OPERATIONS: &[Operation] = table![
    assistants::list::OPERATION,
    assistants::get::OPERATION,
    assistants::create::OPERATION,
    assistants::update::OPERATION,
    assistants::delete::OPERATION,
    assistants::set_tools::OPERATION,
    assistants::set_knowledge::OPERATION,
    assistants::test_token::OPERATION,
    tools::LIST,
    tools::GET,
    tools::CREATE,
    tools::UPDATE,
    tools::DELETE,
    tools::rotate_secret::OPERATION,
    knowledge::LIST,
    knowledge::GET,
    knowledge::CREATE,
    knowledge::UPDATE,
    knowledge::DELETE,
    numbers::LIST,
    numbers::BIND,
    numbers::UNBIND,
    calls::list::OPERATION,
    calls::get::OPERATION,
    calls::place::OPERATION,
    calls::hang_up::OPERATION,
    calls::recording::DOWNLOAD,
    calls::waveform::OPERATION,
    calls::recording::DELETE,
    webhooks::LIST,
    webhooks::CREATE,
    webhooks::UPDATE,
    webhooks::DELETE,
    webhooks::rotate_secret::OPERATION,
    webhooks::test::OPERATION,
    webhooks::list_deliveries::OPERATION,
    webhooks::redeliver::OPERATION,
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
    runs::list::OPERATION,
    runs::get::OPERATION,
    runs::delete::OPERATION,
    speech::LIST_TTS_RATES,
    speech::LIST_MODELS,
    keys::LIST,
    keys::CREATE,
    keys::REVOKE,
    workspace::GET,
    workspace::UPDATE,
];

/// The operation with this id.
pub fn by_id(id: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.id == id)
}

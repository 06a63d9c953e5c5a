//! Tools: the user's HTTP endpoints, which an assistant can call during a conversation.
pub mod test;

use serde_json::{Map, Value, json};

use crate::base::error::{Code, Error, FieldProblem};
use crate::base::ids::ToolId;
use crate::base::limits;
use crate::base::targets::URL_BYTES_MAX;
use crate::base::text::is_function_name;
use crate::base::time::Timestamp;
use crate::base::tool_parameters::ToolParameters;
use crate::base::values::Metadata;
use crate::config::Config;
use crate::operations::assistants::attachments;
use crate::operations::checks::check_target;
use crate::operations::context::Context;
use crate::operations::operation::Operation;
use crate::operations::resource::{self, Created, Resource, resource};
use crate::operations::rotation;
use crate::ports::statement::Statement;
use crate::storage::batch::Batch;
use crate::storage::fault::Fault;
use crate::storage::idempotency::OneTimeSecret;
use crate::storage::signing::Origin;
use crate::storage::snapshots::ToolMethod;

resource! {
    /// An HTTP tool.
    pub struct Tool {
        /// `tool_…`
        id: ToolId,
        draft: {
            /// Function name: letters, digits and underscore, not starting with a digit. Unique in the workspace.
            #[schemars(length(min = 1, max = limits::TOOL_NAME_CHARS_MAX), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]{0,63}$"))]
            name: String,
            /// Public HTTPS URL that is called. At most 2,048 bytes.
            #[schemars(length(min = 1, max = URL_BYTES_MAX), extend("x-max-bytes" = URL_BYTES_MAX))]
            url: String,
            /// HTTP method: POST, PUT and PATCH send the arguments as JSON, GET and DELETE as query parameters.
            #[serde(default)]
            method: ToolMethod,
            /// What the tool is for; tells the model when to call it.
            #[serde(default)]
            #[schemars(length(max = limits::TOOL_DESCRIPTION_CHARS_MAX))]
            description: String,
            /// JSON Schema (`type: object`) of the arguments that the model passes.
            #[serde(default = "no_parameters")]
            parameters: Map<String, Value>,
            /// How long the call may take, in milliseconds.
            #[serde(default = "default_timeout_ms")]
            #[schemars(range(min = limits::TOOL_TIMEOUT_MS_MIN, max = limits::TOOL_TIMEOUT_MS_MAX))]
            timeout_ms: i64,
            /// Texts of your own, by name. At most 50, with names of up to 64 characters and values of up to 512 bytes, 4 KiB in all. An
            /// update replaces all of them.
            #[serde(default)]
            metadata: Metadata,
        },
        #[serde(skip)]
        revision,
    }
    noun: "tool", table: "tools", path: "/tools", initially: { secret_version = "1" }
}

/// `GET /tools`
pub const LIST: Operation = resource::list::<Tool>("list_tools")
    .docs("List tools", "Lists the HTTP tools of the workspace, newest first.");

/// `GET /tools/{id}`
pub const GET: Operation = resource::get::<Tool>("get_tool").docs("Get a tool", "Returns one HTTP tool.");

/// `POST /tools`
pub const CREATE: Operation = resource::create::<Tool>("create_tool")
    .docs(
        "Create a tool",
        "Creates an HTTP tool. Its URL is not called yet. The response contains the signing secret, which is shown only \
        once: callbacks are signed with it (Standard Webhooks). Attach the tool to an assistant to use it.",
    )
    .returns::<Created<Tool>>()
    .errors(&[Code::PrivateTarget, Code::InsecureTarget, Code::NameTaken, Code::LimitReached]);

/// `PATCH /tools/{id}`
pub const UPDATE: Operation = resource::update::<Tool>("update_tool")
    .docs(
        "Update a tool",
        "Changes the given fields; the others keep their values. The signing secret stays the same.",
    )
    .errors(&[Code::PrivateTarget, Code::InsecureTarget, Code::NameTaken]);

/// `DELETE /tools/{id}`
pub const DELETE: Operation = resource::delete::<Tool>("delete_tool").docs(
    "Delete a tool",
    "Deletes a tool permanently and detaches it from all assistants, whose revisions increase. With many assistants it \
    does so in steps: if the request breaks off, repeat it.",
);

/// `POST /tools/{id}/rotate-secret`
pub const ROTATE_SECRET: Operation =
    rotation::rotate::<Tool>("rotate_tool_secret", "/tools/{id}/rotate-secret").docs(
        "Rotate a tool's secret",
        "Creates a new signing secret, which the response shows only once. For `overlap_ms` callbacks carry two \
        signatures, of the new and of the previous secret; conversations in progress follow. Only the latest two \
        secrets ever sign.",
    );

impl Resource for Tool {
    const LIMIT: i64 = limits::TOOLS_MAX;
    const HELD_BY: &'static str = attachments::TOOL_IS_ATTACHED;

    fn check(draft: &Draft, config: &Config) -> Result<(), Error> {
        let mut problems = Vec::new();
        if !is_function_name(&draft.name) {
            problems.push(FieldProblem::new(
                "name",
                "must consist of letters, digits and underscores and not start with a digit, such as `find_slot`",
            ));
        }
        if let Err(some) = ToolParameters::parse(&Value::Object(draft.parameters.clone())) {
            problems.extend(some.into_iter().map(|problem| {
                let dot = if problem.field.is_empty() || problem.field.starts_with('[') { "" } else { "." };
                FieldProblem::new(format!("parameters{dot}{}", problem.field), problem.message)
            }));
        }
        check_target(&draft.url, config, problems)
    }

    fn updated_with(&self, next: &Self, _: &Context) -> Batch {
        Batch::from([attachments::own_tools_are_free("tool_id", &next.id)])
    }

    fn secret(id: &ToolId, version: i64) -> Option<OneTimeSecret> {
        Some(OneTimeSecret::Tool { id: id.clone(), version, origin: Origin::default() })
    }

    fn deleted_with(id: &ToolId, now: Timestamp) -> Vec<Statement> {
        attachments::TOOLS.detach(id, now)
    }

    fn explain(&self, fault: Fault) -> Fault {
        attachments::own_tool_taken(resource::name_taken::<Self>(fault, &self.draft.name), Some("name"))
    }
}

fn no_parameters() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!("object")), ("properties".to_owned(), json!({}))])
}

fn default_timeout_ms() -> i64 {
    limits::TOOL_TIMEOUT_MS_DEFAULT
}

//! Personas: the character of a simulated caller.
use crate::base::error::Error;
use crate::base::ids::PersonaId;
use crate::base::limits;
use crate::base::time::Timestamp;
use crate::base::values::Metadata;
use crate::config::Config;
use crate::operations::checks::check_model;
use crate::operations::operation::Operation;
use crate::operations::resource::{self, Resource, resource};
use crate::ports::statement::Statement;
use crate::sql;

resource! {
    /// A persona.
    pub struct Persona {
        /// `pers_…`
        id: PersonaId,
        draft: {
            /// The name of the persona.
            #[schemars(length(min = 1, max = limits::NAME_CHARS_MAX))]
            name: String,
            /// Instructions for the simulated caller. At most 32,768 bytes.
            #[schemars(length(min = 1, max = limits::INSTRUCTIONS_BYTES_MAX), extend("x-max-bytes" = limits::INSTRUCTIONS_BYTES_MAX))]
            system_prompt: String,
            /// `provider/name` of the model that speaks as this caller; null for the assistant's own.
            #[serde(default)]
            #[schemars(length(min = 1, max = limits::MODEL_CHARS_MAX))]
            model: Option<String>,
            /// Texts of your own, by name. At most 50, with names of up to 64 characters and values of up to 512 bytes, 4 KiB in all. An
            /// update replaces all of them.
            #[serde(default)]
            metadata: Metadata,
        },
        #[serde(skip)]
        revision,
    }
    noun: "persona", table: "personas", path: "/simulations/personas"
}

/// `GET /simulations/personas`
pub const LIST: Operation = resource::list::<Persona>("list_simulation_personas")
    .docs("List personas", "Lists the personas of the workspace, newest first.");

/// `GET /simulations/personas/{id}`
pub const GET: Operation =
    resource::get::<Persona>("get_simulation_persona").docs("Get a persona", "Returns one persona.");

/// `POST /simulations/personas`
pub const CREATE: Operation = resource::create::<Persona>("create_simulation_persona")
    .docs("Create a persona", "Creates a persona: the simulated caller's character and way of speaking.");

/// `PATCH /simulations/personas/{id}`
pub const UPDATE: Operation = resource::update::<Persona>("update_simulation_persona").docs(
    "Update a persona",
    "Changes the given fields; the others keep their values. Queued runs keep the configuration they were started with.",
);

/// `DELETE /simulations/personas/{id}`
pub const DELETE: Operation = resource::delete::<Persona>("delete_simulation_persona").docs(
    "Delete a persona",
    "Deletes a persona permanently, together with the simulations that use it. Runs and their configuration are kept.",
);

impl Resource for Persona {
    const LIMIT: i64 = limits::PERSONAS_MAX;

    fn check(draft: &Draft, config: &Config) -> Result<(), Error> {
        check_model("model", draft.model.as_deref(), config)
    }

    fn deleted_with(id: &PersonaId, _: Timestamp) -> Vec<Statement> {
        vec![sql!("DELETE FROM simulations WHERE workspace_id = :ws AND persona_id = :id", id = id)]
    }
}

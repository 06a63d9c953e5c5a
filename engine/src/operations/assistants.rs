//! Assistants: the configuration that answers a call.
pub(crate) mod attachments;
pub(crate) mod revisions;
pub(crate) mod test_token;

use std::ops::RangeInclusive;

use crate::base::error::{Error, FieldProblem};
use crate::base::ids::{AssistantId, DocumentId, ToolId};
use crate::base::limits;
use crate::base::values::Metadata;
use crate::config::Config;
use crate::conversation::{Transfer, Voicemail, VoicemailAction};
use crate::models::settings::provider_of;
use crate::models::{RULES_MODEL, realtime};
use crate::operations::checks::{unknown_provider, unknown_speech_provider};
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::operations::resource::{self, Declared, Resource, resource};
use crate::operations::validate;
use crate::ports::statement::Statement;
use crate::speech::language::is_language_tag;
use crate::speech::options::SpeechOptions;
use crate::speech::settings::{BROWSER, SpeechProvider, TONE};
use crate::speech::synthesizers;
use crate::speech::transcribers::TranscriberKind;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::fault::Fault;
use crate::storage::idempotency;
use crate::storage::snapshots::PipelineMode;

resource! {
    /// An assistant. GET returns the fields that PATCH takes.
    pub struct Assistant {
        /// `asst_…`
        id: AssistantId,
        draft: {
            /// The name of the assistant.
            #[schemars(length(min = 1, max = limits::NAME_CHARS_MAX))]
            name: String,
            /// Business instructions: the assistant's role and tasks. At most 32,768 bytes.
            #[schemars(length(min = 1, max = limits::INSTRUCTIONS_BYTES_MAX), extend("x-max-bytes" = limits::INSTRUCTIONS_BYTES_MAX))]
            instructions: String,
            /// The assistant's opening message; when empty, it waits for the caller to speak.
            #[serde(default)]
            #[schemars(length(max = limits::FIRST_MESSAGE_CHARS_MAX))]
            first_message: String,
            /// `provider/name` of a configured provider, such as `builtin/rules`. Default: the server's.
            #[serde(default)]
            #[schemars(length(min = 1, max = limits::MODEL_CHARS_MAX))]
            model: String,
            /// `provider/name` of a configured provider, such as `builtin/tone`. Default: the server's.
            #[serde(default)]
            #[schemars(length(min = 1, max = limits::MODEL_CHARS_MAX))]
            voice: String,
            /// How speech is processed.
            #[serde(default)]
            pipeline_mode: PipelineMode,
            /// `provider/name` of a configured provider that recognises speech, such as `deepgram/nova-3`. Default: the
            /// server's. Assistants with the voice `builtin/tone` or `builtin/browser` hear with its counterpart.
            #[serde(default)]
            #[schemars(length(max = limits::MODEL_CHARS_MAX))]
            transcriber: String,
            /// The language of the conversation (BCP 47), such as `en` or `pt-BR`; when empty, the transcriber detects it
            /// if it can.
            #[serde(default)]
            #[schemars(length(max = limits::LANGUAGE_CHARS_MAX))]
            language: String,
            /// Names and terms that callers are likely to say, for the transcriber.
            #[serde(default)]
            #[schemars(length(max = limits::KEYTERMS_MAX), inner(length(min = 1, max = limits::KEYTERM_CHARS_MAX)))]
            keyterms: Vec<String>,
            /// How the assistant takes turns and speaks.
            #[serde(default)]
            speech: SpeechOptions,
            /// Whether calls are recorded. If not, nothing of their audio is kept.
            #[serde(default = "recorded")]
            record: bool,
            /// Whether its model can press keys in outbound telephone calls, with the tool `send_keys`.
            #[serde(default)]
            keys: bool,
            /// People to whom the assistant can hand a call over. Its model gets the tool `transfer_call` for that.
            #[serde(default)]
            #[schemars(length(max = limits::TRANSFERS_MAX))]
            transfers: Vec<Transfer>,
            /// What the assistant does when an answering machine answers its outbound call, which the carrier then detects, for a
            /// price of its own. Null: nothing is detected.
            #[serde(default)]
            voicemail: Option<Voicemail>,
            /// Texts of your own, by name. At most 50, with names of up to 64 characters and values of up to 512 bytes, 4 KiB in all. An
            /// update replaces all of them.
            #[serde(default)]
            metadata: Metadata,
        },
        computed: {
            /// Attached tools, in order.
            tool_ids: Vec<ToolId> = "(SELECT json_group_array(tool_id) FROM (SELECT tool_id FROM assistant_tools WHERE assistant_id = assistants.id ORDER BY position))",
            /// Attached knowledge documents, in order.
            knowledge_ids: Vec<DocumentId> = "(SELECT json_group_array(document_id) FROM (SELECT document_id FROM assistant_documents WHERE assistant_id = assistants.id ORDER BY position))",
        },
        /// Increases with every change, starting at 1.
        revision,
    }
    noun: "assistant", table: "assistants", path: "/assistants"
}

const fn recorded() -> bool {
    true
}

/// `GET /assistants`
pub const LIST: Operation = resource::list::<Assistant>("list_assistants")
    .docs("List assistants", "Lists the assistants of the workspace, newest first.");

/// `GET /assistants/{id}`
pub const GET: Operation = resource::get::<Assistant>("get_assistant").docs(
    "Get an assistant",
    "Returns one assistant: its configuration, attached tools and documents, and its revision.",
);

/// `POST /assistants`
pub const CREATE: Operation = resource::create::<Assistant>("create_assistant").reaching_out().docs(
    "Create an assistant",
    "Creates an assistant. This places no call and incurs no usage. Attach tools and knowledge afterwards.",
);

/// `PATCH /assistants/{id}`
pub const UPDATE: Operation =
    resource::update::<Assistant>("update_assistant").reaching_out().with_revision().docs(
        "Update an assistant",
        "Changes the given fields, in `speech` the given settings; the others keep their values. Send the revision you read to have the update refused, \
        not overwrite, when somebody else has changed the assistant since. An update that changes nothing keeps the \
        revision.",
    );

/// `DELETE /assistants/{id}`
pub const DELETE: Operation = Operation::delete("delete_assistant", Assistant::PATH_OF_ONE, run!(delete))
    .reaching_out()
    .with_revision()
    .docs(
        "Delete an assistant",
        "Deletes an assistant permanently, together with its number bindings and simulations. Runs and their \
            configuration are kept.",
    );

impl Resource for Assistant {
    const LIMIT: i64 = limits::ASSISTANTS_MAX;
    const MERGED: &'static [&'static str] = &["speech"];

    fn normalize(draft: &mut Draft, config: &Config) {
        if draft.model.is_empty() {
            draft.model.clone_from(&config.default_model);
        }
        if draft.voice.is_empty() {
            draft.voice.clone_from(&config.default_voice);
        }
    }

    fn check(draft: &Draft, config: &Config) -> Result<(), Error> {
        let mut problems = Vec::new();
        let mut refuse = |field: &str, message: String| problems.push(FieldProblem::new(field, message));
        match provider_of(&draft.model).and_then(|name| config.catalog.providers.get(name)) {
            None => refuse("model", unknown_provider(&draft.model, config)),
            Some(provider)
                if draft.pipeline_mode == PipelineMode::Realtime
                    && draft.model != RULES_MODEL
                    && !provider.is_realtime(&draft.model) =>
            {
                refuse(
                    "pipeline_mode",
                    format!(
                        "realtime needs a model that hears and speaks, which `{}` does not; use cascading",
                        draft.model
                    ),
                )
            }
            Some(_) => {}
        }
        if draft.pipeline_mode == PipelineMode::Realtime && draft.model == RULES_MODEL && draft.voice != TONE
        {
            refuse("voice", format!("must be `{TONE}`, which `{RULES_MODEL}` speaks in realtime"));
        }
        let is_builtin = [TONE, BROWSER].contains(&draft.voice.as_str());
        if !is_builtin && config.speech.speaker(&draft.voice).is_none() {
            let builtin = [TONE, BROWSER];
            refuse("voice", unknown_speech_provider(&draft.voice, &builtin, config, |_| true));
        }
        if !draft.transcriber.is_empty()
            && draft.transcriber != TONE
            && config.speech.hearer(&draft.transcriber).is_none()
        {
            let message =
                unknown_speech_provider(&draft.transcriber, &[TONE], config, SpeechProvider::can_hear);
            refuse("transcriber", message);
        }
        let language = draft.language.as_str();
        if !language.is_empty() && !is_language_tag(language) {
            let message = "must be a language's code, such as `en` or `pt-BR` (BCP 47), and not its name";
            refuse("language", message.to_owned());
        }
        if draft.speech.end_of_turn_min_ms > draft.speech.end_of_turn_max_ms {
            refuse(
                "speech.end_of_turn_max_ms",
                format!("must be at least end_of_turn_min_ms, {}", draft.speech.end_of_turn_min_ms),
            );
        }
        let keyterm_bytes: usize =
            draft.keyterms.iter().map(|term| term.len() + limits::SPEECH_KEYTERM_BYTES_MORE).sum();
        if keyterm_bytes > limits::SPEECH_KEYTERMS_BYTES_MAX {
            let most = limits::SPEECH_KEYTERMS_BYTES_MAX;
            let more = limits::SPEECH_KEYTERM_BYTES_MORE;
            let message =
                format!("must have at most {most} bytes in all, {more} for each added; has {keyterm_bytes}");
            refuse("keyterms", message);
        }
        if let Some(speeds) = speeds(draft, config)
            && draft.speech.speed != SpeechOptions::default().speed
            && !speeds.contains(&draft.speech.speed)
        {
            let (slowest, fastest) = (speeds.start(), speeds.end());
            refuse("speech.speed", format!("must be {slowest} to {fastest} with this voice"));
        }
        if let Some(least_ms) = turn_ends_ms_min(draft, config)
            && draft.speech.end_of_turn_max_ms < least_ms
        {
            let message = format!("must be at least {least_ms} with this transcriber");
            refuse("speech.end_of_turn_max_ms", message);
        }
        for (at, Transfer { name, .. }) in draft.transfers.iter().enumerate() {
            if draft.transfers[..at].iter().any(|other| other.name == *name) {
                refuse(&format!("transfers[{at}].name"), "is the name of another one in the list".to_owned());
            }
        }
        if let Some(Voicemail { action: VoicemailAction::LeaveMessage, message }) = &draft.voicemail
            && message.trim().is_empty()
        {
            refuse("voicemail.message", "is required to leave a message".to_owned());
        }
        validate::refuse(&problems)
    }

    fn etag(&self) -> Option<i64> {
        Some(self.revision)
    }

    fn before_update(&self) -> Vec<Statement> {
        revisions::keep(self)
    }

    fn updated_with(&self, next: &Self, _: &Context) -> Batch {
        Batch::from([attachments::own_tools_are_free("assistant_id", &next.id)])
    }

    fn explain(&self, fault: Fault) -> Fault {
        attachments::own_tool_taken(fault, None)
    }
}

/// The speeds that the assistant's voice can have; `None` where that is not known, or where it has but one.
fn speeds(draft: &Draft, config: &Config) -> Option<RangeInclusive<f64>> {
    if draft.pipeline_mode == PipelineMode::Realtime {
        return (draft.model != RULES_MODEL).then_some(realtime::SPEEDS);
    }
    let (provider, _) = config.speech.speaker(&draft.voice)?;
    synthesizers::speeds(provider.api)
}

/// The least value of `end_of_turn_max_ms`, where the transcriber ends turns itself.
fn turn_ends_ms_min(draft: &Draft, config: &Config) -> Option<i64> {
    if draft.pipeline_mode == PipelineMode::Realtime {
        return None;
    }
    let transcriber = config.speech.transcriber_of(&draft.voice, &draft.transcriber).ok()?;
    let (provider, model) = config.speech.hearer(&transcriber)?;
    TranscriberKind::of(provider.api, model)?.turn_ends_ms_min()
}

impl Assistant {
    /// Refuses a revision that is not the current one.
    fn check_revision(&self, input: &Input) -> Result<(), Error> {
        resource::check_revision(Self::NOUN, self.revision, input)
    }
}

async fn delete(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let current: Assistant = resource::one(context, &input.id()).await?;
    current.check_revision(input)?;
    let mut statements = vec![resource::unchanged(&current)];
    statements.push(idempotency::forget_deleted(Assistant::NOUN, &current.id));
    statements.push(revisions::forget(&current));
    for table in ["numbers", "simulations", "assistant_tools", "assistant_documents"] {
        let delete = format!("DELETE FROM {table} WHERE workspace_id = :ws AND assistant_id = :id");
        statements.push(sql!(delete, id = &current.id));
    }
    statements.push(sql!("DELETE FROM assistants WHERE workspace_id = :ws AND id = :id", id = &current.id));
    context.commit(statements, Output::empty()).await
}

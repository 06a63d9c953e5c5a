//! `POST /assistants`: makes an assistant.
use super::{Assistant, Draft};
use crate::base::ids::prefix;
use crate::base::time;
use crate::operations::context::Context;
use crate::operations::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::schema;
use crate::sql;
use crate::storage::fault::Fault;

/// `POST /assistants`
pub const OPERATION: Operation = Operation {
    id: "create_assistant",
    method: http::Method::POST,
    path: "/assistants",
    group: "Assistants",
    title: "Create an assistant",
    description: "Creates an assistant. Nothing is called or spent. Attach tools and knowledge afterwards.",
    effects: Effects::Create,
    success: Success::Created,
    revision: false,
    query: None,
    body: BodySchema::whole(schema::of::<Draft>),
    response: Some(schema::of::<Assistant>),
    errors: &[],
    run: |context, input| Box::pin(run(context, input)),
};

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let mut draft: Draft = input.body()?;
    let config = context.services.config();
    if draft.model.is_empty() {
        draft.model.clone_from(&config.default_model);
    }
    if draft.voice.is_empty() {
        draft.voice.clone_from(&config.default_voice);
    }
    draft.check(config)?;
    let now_ms = context.now_ms;
    let assistant = Assistant {
        id: context.id(prefix::ASSISTANT),
        draft,
        tool_ids: Vec::new(),
        knowledge_ids: Vec::new(),
        revision: 1,
        created_at: time::format(now_ms),
        updated_at: time::format(now_ms),
    };
    let Draft { name, instructions, first_message, model, voice, pipeline_mode } = &assistant.draft;
    let insert = sql!(
        "INSERT INTO assistants (workspace_id, id, name, instructions, first_message, model, voice, pipeline_mode, revision, created_at, updated_at)
         VALUES (:ws, ?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8, ?8)",
        &assistant.id,
        name,
        instructions,
        first_message,
        model,
        voice,
        pipeline_mode.as_str(),
        now_ms,
    );
    let output = Output::created(&assistant)?.with_etag(1);
    context.commit(vec![insert], output).await
}

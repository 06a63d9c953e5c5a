//! Models and voices that can be used here, and what speech costs.
use schemars::JsonSchema;
use serde::Serialize;

use super::assistants::PipelineMode;
use crate::context::Context;
use crate::error::Fault;
use crate::operation::{Effects, Input, Operation, Output, Success};
use crate::schema;

/// `GET /tts/rates`
pub const LIST_TTS_RATES: Operation = Operation {
    id: "list_tts_rates",
    method: http::Method::GET,
    path: "/tts/rates",
    group: "Speech",
    title: "List speech rates",
    description: "Lists the voices whose rates are known, with their price for 1,000 characters in millionths of a US \
        dollar. `builtin/tone` is a tone code for tests: free, deterministic and readable by its own transcriber.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: None,
    body: None,
    response: Some(schema::of::<Vec<TtsRate>>),
    errors: &[],
    run: |context, input| Box::pin(rates(context, input)),
};

/// `GET /models`
pub const LIST_MODELS: Operation = Operation {
    id: "list_models",
    path: "/models",
    title: "List models",
    description: "Lists what an assistant's `model` may be. A name of `*` says that any name of that provider passes. \
        `builtin/rules` is a rule model: free, offline and deterministic; it answers from knowledge, calls matching \
        tools, and is no language model.",
    response: Some(schema::of::<Vec<Model>>),
    run: |context, input| Box::pin(models(context, input)),
    ..LIST_TTS_RATES
};

/// A voice's price.
#[derive(Serialize, JsonSchema)]
pub struct TtsRate {
    /// `provider/name`
    voice: &'static str,
    /// The provider.
    provider: &'static str,
    /// Millionths of a US dollar for 1,000 characters.
    microusd_per_1k_chars: i64,
    /// BCP 47 tags; `*` for any.
    languages: Vec<&'static str>,
    /// Where it can be used.
    pipeline_modes: Vec<PipelineMode>,
}

/// A model that can be used.
#[derive(Serialize, JsonSchema)]
pub struct Model {
    /// `provider/name`; a name of `*` for any.
    model: String,
    /// The provider.
    provider: String,
    /// Where it can be used.
    pipeline_modes: Vec<PipelineMode>,
    /// Whether an assistant that names no model gets it.
    default: bool,
}

async fn rates(context: &mut Context, _: &Input) -> Result<Output, Fault> {
    context.authenticate().await?;
    Output::ok(&[TtsRate {
        voice: "builtin/tone",
        provider: "builtin",
        microusd_per_1k_chars: 0,
        languages: vec!["*"],
        pipeline_modes: vec![PipelineMode::Cascading],
    }])
}

async fn models(context: &mut Context, _: &Input) -> Result<Output, Fault> {
    context.authenticate().await?;
    let config = context.engine.config();
    let models: Vec<Model> = config
        .providers
        .iter()
        .map(|(name, provider)| {
            let model = match name.as_str() {
                "builtin" => "builtin/rules".to_owned(),
                other => format!("{other}/*"),
            };
            let mut pipeline_modes = vec![PipelineMode::Cascading];
            if provider.realtime {
                pipeline_modes.push(PipelineMode::Realtime);
            }
            let default = config.default_model == model
                || (name != "builtin" && config.default_model.starts_with(&format!("{name}/")));
            Model { model, provider: name.clone(), pipeline_modes, default }
        })
        .collect();
    Output::ok(&models)
}

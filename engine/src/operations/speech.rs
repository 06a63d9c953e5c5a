//! Available models and voices, and their prices.
use schemars::JsonSchema;
use serde::Serialize;

use crate::models::RULES_MODEL;
use crate::models::settings::{ModelSettings, provider_of};
use crate::operations::context::Context;
use crate::operations::listing::{self, Part};
use crate::operations::operation::{Input, Operation, Output};
use crate::speech::settings::{BROWSER, TONE};
use crate::storage::fault::Fault;
use crate::storage::snapshots::PipelineMode;

/// `GET /tts/rates`
pub const LIST_TTS_RATES: Operation = Operation::get("list_tts_rates", "/tts/rates", run!(rates))
    .docs(
        "List speech rates",
        "Lists the voices whose rates are known, with their price per 1,000 characters in millionths of a US dollar. \
        `builtin/tone` is a tone code for tests: free, deterministic and readable by its own transcriber. \
        `builtin/browser` stands for the voices and the recogniser of the caller's browser: free, and for browser tests \
        alone.",
    )
    .query::<Part>()
    .returns::<Vec<TtsRate>>();

/// `GET /models`
pub const LIST_MODELS: Operation = Operation::get("list_models", "/models", run!(models))
    .docs(
        "List models",
        "Lists the values that an assistant's `model` can have. A name of `*` stands for any name of that provider; models \
        that the operator has described are listed separately, with their prices. `builtin/rules` is a rule model: \
        free, offline and deterministic; it answers from knowledge, calls matching tools, and is not a language model.",
    )
    .query::<Part>()
    .returns::<Vec<Model>>();

/// A voice and its price.
#[derive(Serialize, JsonSchema)]
pub struct TtsRate {
    /// `provider/name`
    voice: &'static str,
    /// The provider.
    provider: &'static str,
    /// Price per 1,000 characters, in millionths of a US dollar.
    microusd_per_1k_chars: i64,
    /// BCP 47 tags; `*` for any.
    languages: Vec<&'static str>,
    /// The pipeline modes it can be used in.
    pipeline_modes: Vec<PipelineMode>,
}

/// An available model.
#[derive(Serialize, JsonSchema)]
pub struct Model {
    /// `provider/name`; a name of `*` for any.
    model: String,
    /// The provider.
    provider: String,
    /// The pipeline modes it can be used in.
    pipeline_modes: Vec<PipelineMode>,
    /// Whether assistants without a model use it.
    default: bool,
    /// Price per million input tokens, in millionths of a US dollar; null when unknown, and its costs then count as 0.
    input_microusd_per_1m_tokens: Option<u64>,
    /// Price per million output tokens.
    output_microusd_per_1m_tokens: Option<u64>,
}

async fn rates(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    context.authenticate().await?;
    let rates = [BROWSER, TONE].map(|voice| TtsRate {
        voice,
        provider: "builtin",
        microusd_per_1k_chars: 0,
        languages: vec!["*"],
        pipeline_modes: vec![PipelineMode::Cascading],
    });
    listing::of_all(&input.query()?, &rates, |rate| rate.voice)
}

async fn models(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    context.authenticate().await?;
    let config = context.services.config();
    let mut models = Vec::new();
    for (name, provider) in &config.catalog.providers {
        let mut pipeline_modes = vec![PipelineMode::Cascading];
        if provider.realtime {
            pipeline_modes.push(PipelineMode::Realtime);
        }
        let model = |model: &str, settings: &ModelSettings| Model {
            model: model.to_owned(),
            provider: name.clone(),
            pipeline_modes: pipeline_modes.clone(),
            default: config.default_model == model,
            input_microusd_per_1m_tokens: settings.input_microusd_per_1m_tokens,
            output_microusd_per_1m_tokens: settings.output_microusd_per_1m_tokens,
        };
        if provider.endpoint.is_none() {
            let free = Some(0);
            let rates = ModelSettings {
                input_microusd_per_1m_tokens: free,
                output_microusd_per_1m_tokens: free,
                ..ModelSettings::default()
            };
            models.push(model(RULES_MODEL, &rates));
            continue;
        }
        let is_here = |model: &str| provider_of(model) == Some(name);
        let described = config.catalog.models.iter().filter(|(name, _)| is_here(name));
        models.extend(described.map(|(name, settings)| model(name, settings)));
        let mut any = model(&format!("{name}/*"), &ModelSettings::default());
        any.default =
            is_here(&config.default_model) && !config.catalog.models.contains_key(&config.default_model);
        models.push(any);
    }
    listing::of_all(&input.query()?, &models, |model| &model.model)
}

//! Available models, voices and transcribers, and their prices.
use std::collections::BTreeMap;

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

/// The provider of what needs none.
const BUILTIN: &str = "builtin";

/// `GET /tts/rates`
pub const LIST_TTS_RATES: Operation = Operation::get("list_tts_rates", "/tts/rates", run!(rates))
    .docs(
        "List speech rates",
        "Lists the values that an assistant's `voice` can have, with their price per 1,000 characters in millionths of a \
        US dollar. A name of `*` stands for any voice of that provider; voices that the operator has described are listed \
        separately. \
        `builtin/tone` is a tone code for tests: free, deterministic and readable by its own transcriber. \
        `builtin/browser` stands for the voices and the recogniser of the caller's browser: free, and for browser tests \
        alone.",
    )
    .query::<Part>()
    .returns::<Vec<TtsRate>>();

/// `GET /stt/rates`
pub const LIST_STT_RATES: Operation = Operation::get("list_stt_rates", "/stt/rates", run!(transcription_rates))
    .docs(
        "List transcription rates",
        "Lists the values that an assistant's `transcriber` can have, with their price per minute of audio in millionths \
        of a US dollar. A name of `*` stands for any transcriber of that provider; transcribers that the operator has \
        described are listed separately. `builtin/tone` reads the voice `builtin/tone` and hears nothing else: free and \
        deterministic.",
    )
    .query::<Part>()
    .returns::<Vec<SttRate>>();

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
    /// `provider/name`; a name of `*` for any.
    voice: String,
    /// The provider.
    provider: String,
    /// Price per 1,000 characters, in millionths of a US dollar; null when unknown, and its costs then count as 0.
    microusd_per_1k_chars: Option<u64>,
    /// BCP 47 tags; `*` for any. Empty when the provider decides.
    languages: Vec<&'static str>,
    /// The pipeline modes it can be used in.
    pipeline_modes: Vec<PipelineMode>,
}

/// A transcriber and its price.
#[derive(Serialize, JsonSchema)]
pub struct SttRate {
    /// `provider/name`; a name of `*` for any.
    transcriber: String,
    /// The provider.
    provider: String,
    /// Whether assistants that name no transcriber use it, unless their voice is built in.
    default: bool,
    /// Price per minute of audio, in millionths of a US dollar; null when unknown, and its costs then count as 0.
    microusd_per_minute: Option<u64>,
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

/// What the operator has described of a provider.
fn described<'a, S>(
    all: &'a BTreeMap<String, S>,
    provider: &'a str,
) -> impl Iterator<Item = (&'a String, &'a S)> {
    all.iter().filter(move |(name, _)| provider_of(name) == Some(provider))
}

fn modes(cascading: bool, realtime: bool) -> Vec<PipelineMode> {
    let cascading = cascading.then_some(PipelineMode::Cascading);
    cascading.into_iter().chain(realtime.then_some(PipelineMode::Realtime)).collect()
}

async fn rates(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    context.authenticate().await?;
    let config = context.services.config();
    let speech = &config.speech;
    // Whether it has models that speak with its voices.
    let speaks = |provider: &str| {
        config.catalog.providers.get(provider).is_some_and(|provider| provider.realtime_url.is_some())
    };
    let rate = |provider: &str, voice: &str, microusd_per_1k_chars| TtsRate {
        voice: voice.to_owned(),
        provider: provider.to_owned(),
        microusd_per_1k_chars,
        languages: if provider == BUILTIN { vec!["*"] } else { Vec::new() },
        pipeline_modes: modes(true, voice == TONE || speaks(provider)),
    };
    let mut rates = vec![rate(BUILTIN, BROWSER, Some(0)), rate(BUILTIN, TONE, Some(0))];
    for name in speech.providers.keys() {
        rates.extend(
            described(&speech.voices, name)
                .map(|(voice, settings)| rate(name, voice, settings.microusd_per_1k_chars)),
        );
        rates.push(rate(name, &format!("{name}/*"), None));
    }
    listing::of_all(&input.query()?, &rates, |rate| &rate.voice)
}

async fn transcription_rates(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    context.authenticate().await?;
    let speech = &context.services.config().speech;
    let default = speech.default_transcriber.as_deref().unwrap_or_default();
    let rate = |provider: &str, transcriber: &str, microusd_per_minute| SttRate {
        transcriber: transcriber.to_owned(),
        provider: provider.to_owned(),
        default: transcriber == default && provider != BUILTIN,
        microusd_per_minute,
        pipeline_modes: modes(true, transcriber == TONE),
    };
    let mut rates = vec![rate(BUILTIN, TONE, Some(0))];
    for (name, _) in speech.providers.iter().filter(|(_, provider)| provider.can_hear()) {
        rates.extend(
            described(&speech.transcribers, name)
                .map(|(one, settings)| rate(name, one, settings.microusd_per_minute)),
        );
        if provider_of(default) == Some(name.as_str()) && !speech.transcribers.contains_key(default) {
            rates.push(rate(name, default, None));
        }
        rates.push(rate(name, &format!("{name}/*"), None));
    }
    listing::of_all(&input.query()?, &rates, |rate| &rate.transcriber)
}

async fn models(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    context.authenticate().await?;
    let config = context.services.config();
    let mut models = Vec::new();
    for (name, provider) in &config.catalog.providers {
        let model = |model: &str, settings: &ModelSettings| Model {
            model: model.to_owned(),
            provider: name.clone(),
            pipeline_modes: modes(
                provider.is_written(model),
                provider.is_realtime(model) || provider.endpoint.is_none(),
            ),
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
        models.extend(described(&config.catalog.models, name).map(|(name, settings)| model(name, settings)));
        let mut any = model(&format!("{name}/*"), &ModelSettings::default());
        any.default = provider_of(&config.default_model) == Some(name)
            && !config.catalog.models.contains_key(&config.default_model);
        models.push(any);
    }
    listing::of_all(&input.query()?, &models, |model| &model.model)
}

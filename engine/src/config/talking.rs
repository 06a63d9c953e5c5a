//! How an assistant talks on a line: with a transcriber, a model and a voice, or with one model for all three.
use std::sync::Arc;

use super::Config;
use crate::base::limits::REALTIME_KNOWLEDGE_BYTES_MAX;
use crate::base::setting::Secret;
use crate::conversation::{AssistantSnapshot, PipelineMode, ToolSpec};
use crate::models::realtime::RealtimeSettings;
use crate::models::settings::provider_of;
use crate::models::{AssistantInUse, RULES_MODEL, for_realtime};
use crate::ports::Party;
use crate::speech::settings::{OPENAI_TRANSCRIBER, TONE};
use crate::speech::transcribers::TranscriberSettings;

/// The address of the server inside the process, which nothing connects to.
const BUILTIN_URL: &str = "http://builtin";

/// What decides how an assistant talks.
#[derive(Debug, Clone, Copy)]
pub struct Talking<'a> {
    /// Its pipeline.
    pub pipeline_mode: PipelineMode,
    /// Its model, `provider/name`.
    pub model: &'a str,
    /// Its voice, `provider/name`.
    pub voice: &'a str,
    /// Its transcriber, `provider/name`; empty for the default.
    pub transcriber: &'a str,
}

impl<'a> From<&'a AssistantSnapshot> for Talking<'a> {
    fn from(assistant: &'a AssistantSnapshot) -> Self {
        Self {
            pipeline_mode: assistant.pipeline_mode,
            model: &assistant.model,
            voice: &assistant.voice,
            transcriber: &assistant.transcriber,
        }
    }
}

impl Talking<'_> {
    /// Whether one model hears and speaks, of a provider. The rule model hears and speaks the tone code.
    #[must_use]
    pub fn is_realtime(self) -> bool {
        self.pipeline_mode == PipelineMode::Realtime && self.model != RULES_MODEL
    }

    /// Whether it talks in the tone code.
    #[must_use]
    pub fn is_tone(self) -> bool {
        self.voice == TONE && !self.is_realtime()
    }

    /// The part of `name` after the provider, if that is the model's.
    fn of_provider(self, name: &str) -> Option<&str> {
        let (provider, name) = name.split_once('/')?;
        (Some(provider) == provider_of(self.model)).then_some(name)
    }
}

impl Config {
    /// The transcriber of an assistant's conversations. That of a model which hears is its provider's: it only writes down
    /// what the model has heard.
    ///
    /// # Errors
    ///
    /// Why it cannot talk on a line; for the assistant's author.
    pub fn transcriber_of(&self, talking: Talking<'_>) -> Result<String, String> {
        if !talking.is_realtime() {
            return self.speech.transcriber_of(talking.voice, talking.transcriber);
        }
        let provider = provider_of(talking.model).unwrap_or_default();
        if self.catalog.providers.get(provider).is_none_or(|one| !one.is_realtime(talking.model)) {
            return Err(format!(
                "`{}` is no model that hears and speaks, of a configured provider",
                talking.model
            ));
        }
        Ok(match talking.of_provider(talking.transcriber) {
            Some(_) => talking.transcriber.to_owned(),
            None if provider == "openai" => OPENAI_TRANSCRIBER.to_owned(),
            None => format!("{provider}/"),
        })
    }

    /// The session of an assistant whose model hears and speaks, in a conversation with these instructions and tools; `None`
    /// for others.
    #[must_use]
    pub fn realtime_of(
        &self,
        assistant: &Arc<AssistantInUse>,
        instructions: &str,
        tools: &[ToolSpec],
    ) -> Option<RealtimeSettings> {
        let talking = Talking::from(&***assistant);
        if talking.pipeline_mode != PipelineMode::Realtime {
            return None;
        }
        let transcriber = self.transcriber_of(talking).ok()?;
        let builtin = (!talking.is_realtime()).then(|| assistant.clone());
        let (name, model) = assistant.model.split_once('/')?;
        let provider = self.catalog.providers.get(name)?;
        let key = provider.endpoint.as_ref().and_then(|endpoint| endpoint.api_key.clone());
        let prices = self.catalog.settings(&assistant.model).cloned().unwrap_or_default();
        let knowledge_bytes = prices.knowledge_bytes().min(REALTIME_KNOWLEDGE_BYTES_MAX);
        let (prompt, tools, hangs_up) =
            for_realtime(instructions, &assistant.knowledge, tools, knowledge_bytes);
        let speed = assistant.speech.speed;
        Some(RealtimeSettings {
            transcription: TranscriberSettings {
                party: Party::model(name),
                base_url: provider
                    .realtime_url
                    .clone()
                    .or_else(|| builtin.as_ref().map(|_| BUILTIN_URL.to_owned()))?,
                api_key: key.unwrap_or_else(|| Secret::new("")),
                model: talking.of_provider(&transcriber).unwrap_or_default().to_owned(),
                language: Some(assistant.language.clone()).filter(|language| !language.is_empty()),
                keyterms: assistant.keyterms.clone(),
                turn_ends_ms: assistant.speech.end_of_turn_max_ms,
            },
            model: model.to_owned(),
            voice: talking.of_provider(&assistant.voice).map(str::to_owned),
            speed: ((speed - 1.0).abs() > f64::EPSILON).then_some(speed),
            prompt,
            tools,
            hangs_up,
            builtin,
            prices,
        })
    }
}

//! The voice and the ear of a conversation, as its assistant and the operator set them.
use super::session::LiveSession;
use crate::base::setting::Secret;
use crate::config::Talking;
use crate::models::realtime::{Realtime, RealtimeEar, RealtimeMouth};
use crate::models::settings::provider_of;
use crate::ports::Party;
use crate::speech::audio::Rate;
use crate::speech::end_of_turn::Patience;
use crate::speech::language::primary_language;
use crate::speech::listener::Listener;
use crate::speech::settings::{SpeechApi, SpeechCatalog, TONE};
use crate::speech::synthesizer::Synthesizer;
use crate::speech::synthesizers::{self, Fallback, SynthesizerSettings};
use crate::speech::tone::ToneDecoder;
use crate::speech::transcriber::Transcriber;
use crate::speech::transcribers::{self, TranscriberKind, TranscriberSettings};
use crate::speech::voice::{Ear, Mouth, TurnTaking, Voice};
use crate::storage::snapshots::AssistantSnapshot;

/// The voice of a conversation on a line of this rate, and the session of a model that hears and speaks. What is not
/// configured any more is replaced by the tone code, which nobody understands: check
/// [`transcriber_of`](crate::config::Config::transcriber_of) first.
pub(super) fn voice_of(session: &LiveSession, rate: Rate) -> (Voice, Option<Realtime>) {
    let (config, assistant) = (session.services.config(), &session.assistant);
    let turn_taking = TurnTaking {
        interruptible: assistant.speech.interruptible,
        interruption_words_min: usize::try_from(assistant.speech.interruption_words_min).unwrap_or(0),
        language: assistant.language.clone(),
    };
    let realtime = config.realtime_of(assistant, &session.texts.instructions, session.tools());
    let realtime = realtime.map(|settings| Realtime::new(&settings, rate));
    let (ear, mouth) = match &realtime {
        Some(session) => {
            let mouth = Mouth::Speech(Box::new(RealtimeMouth(session.clone())));
            match Talking::from(&***assistant).is_realtime() {
                true => (listening(assistant, rate, Box::new(RealtimeEar(session.clone()))), mouth),
                false => (Ear::Tone(Box::new(ToneDecoder::new(rate))), mouth),
            }
        }
        None => {
            let ear = ear(&config.speech, assistant, rate);
            let mouth = mouth(&config.speech, assistant);
            (ear.unwrap_or_else(|| Ear::Tone(Box::new(ToneDecoder::new(rate)))), mouth.unwrap_or(Mouth::Tone))
        }
    };
    (Voice::new(rate, ear, mouth, turn_taking, assistant.record), realtime)
}

/// An ear with this transcriber.
fn listening(assistant: &AssistantSnapshot, rate: Rate, transcriber: Box<dyn Transcriber>) -> Ear {
    let default = Patience::default();
    let (min_ms, max_ms) = (assistant.speech.end_of_turn_min_ms, assistant.speech.end_of_turn_max_ms);
    let patience = Patience { min_ms, max_ms, unfinished_ms: default.unfinished_ms.max(min_ms), ..default };
    Ear::Speech(Box::new(Listener::new(rate, transcriber, patience, &assistant.language)))
}

fn ear(speech: &SpeechCatalog, assistant: &AssistantSnapshot, rate: Rate) -> Option<Ear> {
    let name = speech.transcriber_of(&assistant.voice, &assistant.transcriber).ok()?;
    if name == TONE {
        return None;
    }
    let (provider, model) = speech.hearer(&name)?;
    let kind = TranscriberKind::of(provider.api, model)?;
    let settings = TranscriberSettings {
        party: Party::speech(provider_of(&name)?),
        base_url: provider.base_url.clone(),
        api_key: provider.api_key.clone().unwrap_or_else(|| Secret::new("")),
        model: model.to_owned(),
        language: Some(assistant.language.clone()).filter(|language| !language.is_empty()),
        keyterms: assistant.keyterms.clone(),
        turn_ends_ms: assistant.speech.end_of_turn_max_ms,
    };
    Some(listening(assistant, rate, transcribers::new(kind, settings, rate)))
}

fn mouth(speech: &SpeechCatalog, assistant: &AssistantSnapshot) -> Option<Mouth> {
    let AssistantSnapshot { voice, language, speech: options, .. } = assistant;
    speaker(speech, voice, language, options.speed).map(Mouth::Speech)
}

/// A voice with its fallbacks; `None` if its provider is not configured.
pub(super) fn speaker(
    speech: &SpeechCatalog,
    voice: &str,
    language: &str,
    speed: f64,
) -> Option<Box<dyn Synthesizer>> {
    let first = synthesizer(speech, voice, language, speed)?;
    // The settings' check admits no fallback without a provider, so what they are billed is in the order of the settings.
    let others = speech.with_fallbacks(voice).skip(1);
    let others: Vec<_> = others.filter_map(|voice| synthesizer(speech, voice, language, speed)).collect();
    Some(match others.is_empty() {
        true => first,
        false => Box::new(Fallback::new(first, others)),
    })
}

fn synthesizer(
    speech: &SpeechCatalog,
    voice: &str,
    language: &str,
    speed: f64,
) -> Option<Box<dyn Synthesizer>> {
    let (provider, name) = speech.speaker(voice)?;
    let path = match provider.api {
        SpeechApi::OpenAi | SpeechApi::Cartesia => "",
        SpeechApi::Deepgram | SpeechApi::ElevenLabs => "/v1",
    };
    // OpenAI's own server requires a model; compatible ones have one.
    let default_model = voice.starts_with("openai/").then(|| "gpt-4o-mini-tts".to_owned());
    let settings = SynthesizerSettings {
        party: Party::speech(provider_of(voice)?),
        base_url: format!("{}{path}", provider.base_url),
        api_key: provider.api_key.clone(),
        model: speech.voices.get(voice).and_then(|settings| settings.model.clone()).or(default_model),
        voice: name.to_owned(),
        language: primary_language(language),
        speed: ((speed - 1.0).abs() > f64::EPSILON).then_some(speed),
    };
    Some(synthesizers::new(provider.api, settings))
}

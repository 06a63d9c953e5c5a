//! The voices of providers.
//!
//! Each file is one provider's protocol. Those over a WebSocket share `streaming`, which knows about lines, deadlines and
//! connections; the protocol itself is a `streaming::Dialect`.
use std::ops::RangeInclusive;

use crate::base::setting::Secret;
use crate::ports::Party;

use super::audio::Rate;
use super::settings::SpeechApi;
use super::synthesizer::Synthesizer;

mod aura;
mod cartesia;
mod container;
mod elevenlabs;
mod failure;
mod fallback;
mod lines;
mod openai;
mod socket_link;
mod streaming;
#[cfg(test)]
mod testing;
mod word_map;

pub use cartesia::VERSION as CARTESIA_VERSION;
pub use fallback::Fallback;
pub(super) use lines::has_words;

/// The rate of every provider's audio. One rate for all of them means that a change of the voice in the middle of a line
/// needs no conversion.
pub const RATE: Rate = Rate::Khz24;

/// How to reach a voice.
#[derive(Debug, Clone, PartialEq)]
pub struct SynthesizerSettings {
    /// Whose server it is.
    pub party: Party,
    /// Up to the path of the interface, such as `https://api.openai.com/v1`. `http` and `ws` are the same here, and so are
    /// `https` and `wss`.
    pub base_url: String,
    /// The key, where the server wants one.
    pub api_key: Option<Secret>,
    /// The model, where the provider has several for a voice.
    pub model: Option<String>,
    /// The voice, by the provider's name or id.
    pub voice: String,
    /// The language of the text without its region (`en`, `de`, …), where the provider can be told.
    pub language: Option<String>,
    /// The speed of speech; 1 is the voice's own.
    pub speed: Option<f64>,
}

impl SynthesizerSettings {
    /// An address below the base, with another scheme for the same security.
    fn address(&self, plain: &str, secure: &str, path: &str) -> String {
        let base = self.base_url.trim_end_matches('/');
        match base.split_once("://") {
            Some(("http" | "ws", rest)) => format!("{plain}://{rest}{path}"),
            Some(("https" | "wss", rest)) => format!("{secure}://{rest}{path}"),
            _ => format!("{base}{path}"),
        }
    }

    /// The address of a request.
    fn http(&self, path: &str) -> String {
        self.address("http", "https", path)
    }

    /// The address of a socket.
    fn socket(&self, path: &str, query: &[(&str, Option<&str>)]) -> String {
        let mut pairs = form_urlencoded::Serializer::new(String::new());
        for (name, value) in query {
            if let Some(value) = value {
                pairs.append_pair(name, value);
            }
        }
        self.address("ws", "wss", &format!("{path}?{}", pairs.finish()))
    }

    /// The speed, as far as the provider goes along: it refuses others, and the line with them.
    fn speed_within(&self, possible: RangeInclusive<f64>) -> Option<f64> {
        self.speed.map(|speed| speed.clamp(*possible.start(), *possible.end()))
    }

    /// The key as a header with a prefix before it.
    fn key_header(&self, name: &'static str, prefix: &str) -> Vec<(&'static str, String)> {
        self.api_key.iter().map(|key| (name, format!("{prefix}{}", key.reveal()))).collect()
    }
}

/// The speeds that the voices of a protocol can have; `None` where any is taken.
#[must_use]
pub const fn speeds(api: SpeechApi) -> Option<RangeInclusive<f64>> {
    match api {
        SpeechApi::OpenAi => None,
        SpeechApi::Deepgram => Some(aura::SPEEDS),
        SpeechApi::ElevenLabs => Some(elevenlabs::SPEEDS),
        SpeechApi::Cartesia => Some(cartesia::SPEEDS),
    }
}

/// A voice of a provider, for one call.
#[must_use]
pub fn new(api: SpeechApi, settings: SynthesizerSettings) -> Box<dyn Synthesizer> {
    use streaming::Streaming;
    match api {
        SpeechApi::OpenAi => Box::new(openai::OpenAi::new(settings)),
        SpeechApi::Deepgram => Box::new(Streaming::new(aura::Aura::new(settings))),
        SpeechApi::ElevenLabs => Box::new(Streaming::new(elevenlabs::ElevenLabs::new(settings))),
        SpeechApi::Cartesia => Box::new(Streaming::new(cartesia::Cartesia::new(settings))),
    }
}

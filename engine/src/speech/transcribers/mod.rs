//! The protocols of speech recognition providers, each a [`Transcriber`]: pure state machines without a socket or a clock.
//!
//! | file | protocol |
//! | --- | --- |
//! | `deepgram.rs` | Deepgram, streaming (`/v1/listen`) |
//! | `flux.rs` | Deepgram Flux, streaming, which decides itself when a turn ends (`/v2/listen`) |
//! | `openai_file.rs` | OpenAI and compatible servers: a request for each utterance (`/audio/transcriptions`) |
//! | `openai_realtime.rs` | OpenAI and compatible servers: a transcription session over a WebSocket |
//!
//! What they share: the connection with its retries (`socket_link.rs`), the audio that may have to be sent again
//! (`audio_log.rs`), the events and their texts (`events.rs`), and what a failure says and whose it is (`report.rs`).
use crate::base::limits::{SPEECH_KEYTERM_BYTES_MORE, SPEECH_KEYTERMS_BYTES_MAX, SPEECH_KEYTERMS_MAX};
use crate::base::setting::Secret;
use crate::ports::Party;

use super::audio::Rate;
use super::end_of_turn::Patience;
use super::language::primary_language;
use super::settings::SpeechApi;
use super::transcriber::Transcriber;

mod audio_log;
mod deepgram;
mod events;
mod flux;
mod multipart;
mod openai_file;
mod openai_realtime;
mod report;
mod socket_link;

pub(crate) use openai_realtime::{
    Conversing, OpenaiRealtime, Told, conversation_request, encoded, transcription_of,
};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod test_driver;

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriberKind {
    /// Deepgram's streaming recognition.
    Deepgram,
    /// Deepgram's recognition that detects turns.
    DeepgramFlux,
    /// A request for each utterance, at OpenAI or a compatible server.
    OpenaiFile,
    /// A transcription session, at OpenAI or a compatible server.
    OpenaiRealtime,
}

impl TranscriberKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Deepgram, Self::DeepgramFlux, Self::OpenaiFile, Self::OpenaiRealtime];

    /// The protocol for a provider's model, by its name, as `docs/settings-and-limits.md` says; `None` if the provider only
    /// speaks. Every OpenAI-compatible server has [`TranscriberKind::OpenaiFile`].
    #[must_use]
    pub fn of(api: SpeechApi, model: &str) -> Option<Self> {
        Some(match api {
            SpeechApi::Deepgram if model.starts_with("flux") => Self::DeepgramFlux,
            SpeechApi::Deepgram => Self::Deepgram,
            SpeechApi::OpenAi if model.contains("-realtime") || model.contains("-live") => {
                Self::OpenaiRealtime
            }
            SpeechApi::OpenAi => Self::OpenaiFile,
            SpeechApi::ElevenLabs | SpeechApi::Cartesia => return None,
        })
    }

    /// The shortest silence after which it can end a turn in any case, where it decides that itself.
    #[must_use]
    pub const fn turn_ends_ms_min(self) -> Option<i64> {
        match self {
            Self::DeepgramFlux => Some(*flux::TURN_ENDS_MS.start()),
            Self::Deepgram | Self::OpenaiFile | Self::OpenaiRealtime => None,
        }
    }

    /// How long after the end of speech a final transcript is awaited: the 99th percentile as the field measured it. Flux
    /// has no such figure, because it ends the turn itself: after [`TranscriberSettings::turn_ends_ms`] without speech at
    /// the latest. This is for the default.
    #[must_use]
    pub const fn final_wait_ms(self) -> i64 {
        match self {
            Self::Deepgram => 350,
            Self::DeepgramFlux => Patience::DEFAULT.max_ms + flux::TELLS_MS,
            Self::OpenaiFile => 2_010,
            Self::OpenaiRealtime => 1_660,
        }
    }

    /// The name in messages for the operator.
    const fn label(self) -> &'static str {
        match self {
            Self::Deepgram => "Deepgram",
            Self::DeepgramFlux => "Deepgram Flux",
            Self::OpenaiFile | Self::OpenaiRealtime => "the transcription server",
        }
    }
}

/// What a protocol needs to know.
#[derive(Debug, Clone)]
pub struct TranscriberSettings {
    /// Whose server it is.
    pub party: Party,
    /// Without a trailing slash. Deepgram: without the version (`https://api.deepgram.com`); OpenAI and compatible servers:
    /// with it (`https://api.openai.com/v1`). For sockets, `https` and `http` stand for `wss` and `ws`, and a base that
    /// already ends in `/realtime` is taken as it is.
    pub base_url: String,
    /// May be empty for a server without authentication.
    pub api_key: Secret,
    /// The model's name at the provider.
    pub model: String,
    /// BCP 47; `None` leaves it to the provider.
    pub language: Option<String>,
    /// Words that the person is likely to say.
    pub keyterms: Vec<String>,
    /// The silence after which a turn is over in any case, for a provider that decides when a turn ends.
    pub turn_ends_ms: i64,
}

impl TranscriberSettings {
    /// `en` of `en-US`.
    fn primary_language(&self) -> Option<String> {
        primary_language(self.language.as_deref()?)
    }

    /// The key terms that fit: not empty, without line breaks, at most [`SPEECH_KEYTERMS_MAX`] of them.
    fn fitting_keyterms(&self) -> Vec<String> {
        let mut bytes = 0;
        let terms = self.keyterms.iter().map(|term| events::spoken(term)).filter(|term| !term.is_empty());
        terms
            .take(SPEECH_KEYTERMS_MAX)
            .take_while(|term| {
                bytes += term.len() + SPEECH_KEYTERM_BYTES_MORE;
                bytes <= SPEECH_KEYTERMS_BYTES_MAX
            })
            .collect()
    }
}

/// The transcriber of one person in one call. `line_rate` is the rate at which the person is heard: the transcriber takes
/// no more than that carries, where its provider allows it.
#[must_use]
pub fn new(kind: TranscriberKind, settings: TranscriberSettings, line_rate: Rate) -> Box<dyn Transcriber> {
    match kind {
        TranscriberKind::Deepgram => Box::new(deepgram::Deepgram::new(&settings, line_rate)),
        TranscriberKind::DeepgramFlux => Box::new(flux::Flux::new(&settings, line_rate)),
        TranscriberKind::OpenaiFile => Box::new(openai_file::OpenaiFile::new(settings, line_rate)),
        TranscriberKind::OpenaiRealtime => Box::new(OpenaiRealtime::new(&settings)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_decides_the_protocol() {
        for (api, model, kind) in [
            (SpeechApi::Deepgram, "nova-3", Some(TranscriberKind::Deepgram)),
            (SpeechApi::Deepgram, "flux-general-en", Some(TranscriberKind::DeepgramFlux)),
            (SpeechApi::OpenAi, "gpt-transcribe", Some(TranscriberKind::OpenaiFile)),
            (SpeechApi::OpenAi, "gpt-live-transcribe", Some(TranscriberKind::OpenaiRealtime)),
            (SpeechApi::OpenAi, "gpt-realtime-whisper", Some(TranscriberKind::OpenaiRealtime)),
            (SpeechApi::OpenAi, "faster-distil-whisper-small.en", Some(TranscriberKind::OpenaiFile)),
            (SpeechApi::ElevenLabs, "scribe_v1", None),
            (SpeechApi::Cartesia, "ink-whisper", None),
        ] {
            assert_eq!(TranscriberKind::of(api, model), kind, "{api:?} {model}");
        }
    }

    #[test]
    fn key_terms_and_languages_are_bounded() {
        let settings = TranscriberSettings {
            party: Party::speech("test"),
            base_url: String::new(),
            api_key: Secret::new("k"),
            model: String::new(),
            language: Some("de-CH".into()),
            turn_ends_ms: 3_000,
            keyterms: [" Sidetone\n ", "", "\0"].map(str::to_owned).to_vec(),
        };
        assert_eq!(settings.primary_language().as_deref(), Some("de"));
        assert_eq!(settings.fitting_keyterms(), ["Sidetone"]);
        let many = TranscriberSettings { keyterms: vec!["term".into(); 1_000], ..settings.clone() };
        assert_eq!(many.fitting_keyterms().len(), SPEECH_KEYTERMS_MAX);
        let long = TranscriberSettings { keyterms: vec!["x".repeat(900); 5], ..settings };
        assert_eq!(long.fitting_keyterms().len(), 2);
    }

    #[test]
    fn every_kind_waits_as_its_row_says() {
        for kind in TranscriberKind::ALL {
            let settings = TranscriberSettings {
                party: Party::speech("test"),
                base_url: "https://stt.example".into(),
                api_key: Secret::new("k"),
                model: "m".into(),
                language: None,
                turn_ends_ms: 3_000,
                keyterms: vec![],
            };
            let transcriber = new(kind, settings, Rate::Khz8);
            assert_eq!(transcriber.final_wait_ms(), kind.final_wait_ms());
            assert_eq!(transcriber.detects_turns(), kind == TranscriberKind::DeepgramFlux);
            let rate = if kind == TranscriberKind::OpenaiRealtime { Rate::Khz24 } else { Rate::Khz8 };
            assert_eq!(transcriber.rate(), rate);
        }
    }
}

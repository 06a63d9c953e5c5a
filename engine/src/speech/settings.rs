//! Settings of speech: which providers can recognise and synthesize speech, with their prices and fallbacks.
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::base::limits::INTEGER_MAX;
use crate::base::ordered::Ordered as _;
use crate::base::setting::{Secret, SettingError, api_key, base_url_of};
use crate::speech::transcribers::TranscriberKind;

/// The settings read here.
pub const SETTINGS: &[&str] = &[
    "SIDETONE_DEEPGRAM_API_KEY",
    "SIDETONE_DEEPGRAM_BASE_URL",
    "SIDETONE_ELEVENLABS_API_KEY",
    "SIDETONE_ELEVENLABS_BASE_URL",
    "SIDETONE_CARTESIA_API_KEY",
    "SIDETONE_CARTESIA_BASE_URL",
    "SIDETONE_DEFAULT_TRANSCRIBER",
    "SIDETONE_TRANSCRIBERS",
    "SIDETONE_VOICES",
];

/// The offline voice, and the transcriber that reads it.
pub const TONE: &str = "builtin/tone";
/// The browser's own recogniser and voices: the page of a test token speaks the lines itself, over the text socket. On a
/// telephone it is refused.
pub const BROWSER: &str = "builtin/browser";

/// OpenAI's transcriber where none is named.
pub const OPENAI_TRANSCRIBER: &str = "openai/gpt-4o-mini-transcribe";
/// Transcribers of assistants that name none and whose voice's provider only speaks: the first whose provider is configured.
const DEFAULT_TRANSCRIBERS: [&str; 2] = ["deepgram/nova-3", OPENAI_TRANSCRIBER];

/// Providers of speech with settings of their own: name, protocol, the settings of key and address, default address.
const KNOWN_PROVIDERS: [(&str, SpeechApi, [&str; 2], &str); 3] = [
    (
        "deepgram",
        SpeechApi::Deepgram,
        ["SIDETONE_DEEPGRAM_API_KEY", "SIDETONE_DEEPGRAM_BASE_URL"],
        "https://api.deepgram.com",
    ),
    (
        "elevenlabs",
        SpeechApi::ElevenLabs,
        ["SIDETONE_ELEVENLABS_API_KEY", "SIDETONE_ELEVENLABS_BASE_URL"],
        "https://api.elevenlabs.io",
    ),
    (
        "cartesia",
        SpeechApi::Cartesia,
        ["SIDETONE_CARTESIA_API_KEY", "SIDETONE_CARTESIA_BASE_URL"],
        "https://api.cartesia.ai",
    ),
];

/// The setting that configures the key of this provider of speech.
#[must_use]
pub fn key_setting(provider: &str) -> Option<&'static str> {
    let known = KNOWN_PROVIDERS.iter().find(|(name, ..)| *name == provider);
    known
        .map(|(_, _, [key, _], _)| *key)
        .or_else(|| (provider == "openai").then_some("SIDETONE_OPENAI_API_KEY"))
}

fn no_transcriber() -> String {
    "no transcriber is configured: set `transcriber`, or the operator sets SIDETONE_DEFAULT_TRANSCRIBER"
        .to_owned()
}

/// The most fallbacks of a voice.
pub const VOICE_FALLBACKS_MAX: usize = 3;

/// The protocol of a speech provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpeechApi {
    /// OpenAI's HTTP API: `/audio/speech` and `/audio/transcriptions`. Also spoken by Kokoro-FastAPI, speaches, Piper
    /// servers, whisper servers and Groq.
    OpenAi,
    /// Deepgram: `listen` (v1, and v2 for Flux) and `speak`.
    Deepgram,
    /// ElevenLabs: speech only.
    ElevenLabs,
    /// Cartesia: speech only.
    Cartesia,
}

/// A provider of speech.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeechProvider {
    /// Its protocol.
    pub api: SpeechApi,
    /// Without a trailing slash.
    pub base_url: String,
    /// The API key; `None` for a server without authentication.
    pub api_key: Option<Secret>,
}

/// The operator's settings for one voice; all are optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VoiceSettings {
    /// The model that speaks with this voice, for providers with several.
    pub model: Option<String>,
    /// Price of 1,000 characters, in millionths of a US dollar.
    pub microusd_per_1k_chars: Option<u64>,
    /// Voices (`provider/name`) that take over, in this order, when this one fails.
    pub fallback: Vec<String>,
}

/// The operator's settings for one transcriber; all are optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TranscriberRates {
    /// Price of a minute of audio, in millionths of a US dollar.
    pub microusd_per_minute: Option<u64>,
}

/// The configured providers of speech, and the operator's settings for voices and transcribers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpeechCatalog {
    /// Providers by name, without `builtin`.
    pub providers: BTreeMap<String, SpeechProvider>,
    /// Settings of voices by `provider/name`.
    pub voices: BTreeMap<String, VoiceSettings>,
    /// Settings of transcribers by `provider/name`.
    pub transcribers: BTreeMap<String, TranscriberRates>,
    /// The transcriber of assistants that name none.
    pub default_transcriber: Option<String>,
    /// By provider, the prices of voices and of transcribers that have none: see `SpeechCatalog::assume_prices`.
    pub assumed: AssumedRates,
}

/// Rates by provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AssumedRates {
    voices: BTreeMap<String, u64>,
    transcribers: BTreeMap<String, u64>,
}

impl SpeechProvider {
    /// Whether it recognises speech. Each one synthesizes it.
    #[must_use]
    pub fn can_hear(&self) -> bool {
        TranscriberKind::of(self.api, "").is_some()
    }
}

impl SpeechCatalog {
    /// Reads the settings through `get`. `openai` has the OpenAI-compatible servers that are configured for models.
    ///
    /// # Errors
    ///
    /// An invalid setting, by name.
    pub fn from_settings(
        get: impl Fn(&str) -> Option<String>,
        openai: impl Iterator<Item = (String, SpeechProvider)>,
    ) -> Result<Self, SettingError> {
        let mut providers: BTreeMap<String, SpeechProvider> = openai.into_map();
        for (name, api, [key_name, url_name], default_url) in KNOWN_PROVIDERS {
            let Some(key) = get(key_name) else { continue };
            let base_url = get(url_name).unwrap_or_else(|| default_url.to_owned());
            let provider = SpeechProvider {
                api,
                base_url: base_url_of(url_name, &base_url)?,
                api_key: Some(api_key(key_name, &key)?),
            };
            providers.insert(name.to_owned(), provider);
        }
        let mut catalog = Self { providers, ..Self::default() };
        catalog.voices = read_map("SIDETONE_VOICES", get("SIDETONE_VOICES"))?;
        catalog.transcribers = read_map("SIDETONE_TRANSCRIBERS", get("SIDETONE_TRANSCRIBERS"))?;
        catalog.default_transcriber = get("SIDETONE_DEFAULT_TRANSCRIBER").map(|text| text.trim().to_owned());
        catalog.check()?;
        Ok(catalog)
    }

    /// The provider of a voice (`provider/name`).
    #[must_use]
    pub fn speaker<'a>(&'a self, voice: &'a str) -> Option<(&'a SpeechProvider, &'a str)> {
        let (provider, name) = voice.split_once('/')?;
        // As a part of an address, dots would lead elsewhere. In lists, `*` stands for any name.
        let is_plain = name != "*" && name.split('/').all(|part| !["", ".", ".."].contains(&part));
        (is_plain && !name.contains(char::is_control)).then_some((self.providers.get(provider)?, name))
    }

    /// The provider of a transcriber (`provider/name`), if it can hear.
    #[must_use]
    pub fn hearer<'a>(&'a self, transcriber: &'a str) -> Option<(&'a SpeechProvider, &'a str)> {
        self.speaker(transcriber).filter(|(provider, _)| provider.can_hear())
    }

    /// The transcriber of a conversation: the one that the assistant names, else the operator's default, else one of the
    /// voice's own provider. The tone code is heard by its own decoder.
    ///
    /// # Errors
    ///
    /// Why an assistant with this voice cannot talk on a line; for the assistant's author.
    pub fn transcriber_of(&self, voice: &str, named: &str) -> Result<String, String> {
        match voice {
            TONE => return Ok(TONE.to_owned()),
            BROWSER => return Err(format!("{BROWSER} is for browser tests alone")),
            _ => {}
        }
        let Some((provider, _)) = self.speaker(voice) else {
            return Err(format!("`{voice}` is no voice of a configured provider"));
        };
        let named = Some(named).filter(|name| !name.is_empty() && *name != TONE);
        let chosen = named.or(self.default_transcriber.as_deref().filter(|name| *name != TONE));
        if let Some(name) = chosen {
            return match self.hearer(name) {
                Some(_) => Ok(name.to_owned()),
                None => Err(format!("`{name}` is no transcriber of a configured provider")),
            };
        }
        let provider_name = voice.split('/').next().unwrap_or_default();
        match provider.api {
            SpeechApi::Deepgram => Ok(format!("{provider_name}/nova-3")),
            SpeechApi::OpenAi if provider_name == "openai" => Ok(OPENAI_TRANSCRIBER.to_owned()),
            // A server of one's own is not replaced by somebody else's: audio would leave the machine.
            SpeechApi::ElevenLabs | SpeechApi::Cartesia => self.default_for_speakers(),
            SpeechApi::OpenAi => Err(no_transcriber()),
        }
    }

    /// The transcriber beside a provider that only speaks.
    fn default_for_speakers(&self) -> Result<String, String> {
        let configured = DEFAULT_TRANSCRIBERS.iter().find(|name| self.hearer(name).is_some());
        configured.map(|name| (*name).to_owned()).ok_or_else(no_transcriber)
    }

    fn check(&self) -> Result<(), SettingError> {
        let wrong = |name: &'static str, message: String| Err(SettingError { name, message });
        for (voice, settings) in &self.voices {
            if self.speaker(voice).is_none() {
                return wrong("SIDETONE_VOICES", format!("`{voice}` is no voice of a configured provider"));
            }
            if settings.fallback.len() > VOICE_FALLBACKS_MAX {
                let message = format!("`{voice}` has more than {VOICE_FALLBACKS_MAX} fallbacks");
                return wrong("SIDETONE_VOICES", message);
            }
            // The tone code is no fallback: a person would hear a modem.
            for other in &settings.fallback {
                if other == voice || self.speaker(other).is_none() {
                    let message = format!(
                        "`{other}` cannot be a fallback of `{voice}`: it must be another voice of a configured provider"
                    );
                    return wrong("SIDETONE_VOICES", message);
                }
            }
            if settings.microusd_per_1k_chars.is_some_and(is_too_large) {
                return wrong("SIDETONE_VOICES", format!("`{voice}` has a rate above {INTEGER_MAX}"));
            }
        }
        for (transcriber, rates) in &self.transcribers {
            if self.hearer(transcriber).is_none() {
                let message = format!("`{transcriber}` is no transcriber of a configured provider");
                return wrong("SIDETONE_TRANSCRIBERS", message);
            }
            if rates.microusd_per_minute.is_some_and(is_too_large) {
                let message = format!("`{transcriber}` has a rate above {INTEGER_MAX}");
                return wrong("SIDETONE_TRANSCRIBERS", message);
            }
        }
        match &self.default_transcriber {
            Some(name) if name != TONE && self.hearer(name).is_none() => wrong(
                "SIDETONE_DEFAULT_TRANSCRIBER",
                format!("`{name}` is not `provider/name` of a configured provider that recognises speech"),
            ),
            _ => Ok(()),
        }
    }

    /// Whether a conversation with this voice may have a cost: the voice, one of its fallbacks, or a transcriber has a price.
    #[must_use]
    pub fn may_cost(&self, voice: &str) -> bool {
        if [TONE, BROWSER].contains(&voice) {
            return false;
        }
        let has_price = |voice: &str| self.voice_rate(voice).is_some_and(|rate| rate > 0);
        self.with_fallbacks(voice).any(has_price)
            || self.transcribers.values().any(|rates| rates.microusd_per_minute.is_some_and(|rate| rate > 0))
    }

    /// The price of 1,000 characters.
    fn voice_rate(&self, voice: &str) -> Option<u64> {
        let own = self.voices.get(voice).and_then(|settings| settings.microusd_per_1k_chars);
        own.or_else(|| self.assumed.voices.get(voice.split_once('/')?.0).copied())
    }

    /// The same as for models: `ModelCatalog::assume_prices`.
    pub(crate) fn assume_prices(&mut self) {
        let voices = self.voices.iter().map(|(name, settings)| (name, settings.microusd_per_1k_chars));
        self.assumed.voices = dearest(voices);
        let transcribers = self.transcribers.iter().map(|(name, rates)| (name, rates.microusd_per_minute));
        self.assumed.transcribers = dearest(transcribers);
    }

    /// A voice, then those that take its place, in their order.
    pub fn with_fallbacks<'a>(&'a self, voice: &'a str) -> impl Iterator<Item = &'a str> {
        let settings = self.voices.get(voice);
        std::iter::once(voice).chain(settings.into_iter().flat_map(|one| &one.fallback).map(String::as_str))
    }

    /// The price of speech with a voice and those that take its place, whose `chars` are in the order of
    /// [`with_fallbacks`](Self::with_fallbacks), in millionths of a US dollar. Each voice's is rounded up, and 0 without a
    /// rate.
    #[must_use]
    pub fn speech_microusd(&self, voice: &str, chars: &[u64]) -> i64 {
        let prices = self
            .with_fallbacks(voice)
            .zip(chars)
            .map(|(voice, chars)| price(*chars, self.voice_rate(voice), 1_000));
        prices.fold(0, i64::saturating_add).min(INTEGER_MAX)
    }

    /// The price of transcribed audio, in millionths of a US dollar, rounded up; 0 without a rate.
    #[must_use]
    pub fn transcription_microusd(&self, transcriber: &str, audio_ms: i64) -> i64 {
        let own = self.transcribers.get(transcriber).and_then(|rates| rates.microusd_per_minute);
        let rate = own.or_else(|| self.assumed.transcribers.get(transcriber.split_once('/')?.0).copied());
        price(audio_ms.max(0).unsigned_abs(), rate, 60_000)
    }
}

/// The highest rate of each provider that has one.
fn dearest<'a>(rates: impl Iterator<Item = (&'a String, Option<u64>)>) -> BTreeMap<String, u64> {
    let mut dearest = BTreeMap::new();
    for (name, rate) in rates {
        if let (Some((provider, _)), Some(rate)) = (name.split_once('/'), rate) {
            let known: &mut u64 = dearest.entry(provider.to_owned()).or_default();
            *known = rate.max(*known);
        }
    }
    dearest
}

fn price(amount: u64, rate: Option<u64>, per: u128) -> i64 {
    let price = (u128::from(amount) * u128::from(rate.unwrap_or(0))).div_ceil(per);
    i64::try_from(price).unwrap_or(INTEGER_MAX).min(INTEGER_MAX)
}

const fn is_too_large(rate: u64) -> bool {
    rate > INTEGER_MAX.unsigned_abs()
}

fn read_map<T: for<'de> Deserialize<'de>>(
    name: &'static str,
    text: Option<String>,
) -> Result<BTreeMap<String, T>, SettingError> {
    let Some(text) = text else { return Ok(BTreeMap::new()) };
    serde_json::from_str(&text).map_err(|error| SettingError {
        name,
        message: format!("{error}; expected {{\"provider/name\": {{…}}}}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog(pairs: &[(&str, &str)]) -> Result<SpeechCatalog, SettingError> {
        let pairs: BTreeMap<_, _> = pairs.iter().copied().collect();
        let local = SpeechProvider {
            api: SpeechApi::OpenAi,
            base_url: "http://127.0.0.1:1/v1".to_owned(),
            api_key: None,
        };
        let get = |name: &str| pairs.get(name).map(|value| (*value).to_owned());
        SpeechCatalog::from_settings(get, [("local".to_owned(), local)].into_iter())
    }

    #[test]
    fn a_voice_finds_its_transcriber() {
        let deepgram = ("SIDETONE_DEEPGRAM_API_KEY", "k");
        let default = ("SIDETONE_DEFAULT_TRANSCRIBER", "local/whisper");
        let speech = catalog(&[deepgram]).unwrap();
        let of = |voice: &str, named: &str| speech.transcriber_of(voice, named).ok();
        assert_eq!(of(TONE, ""), Some(TONE.to_owned()));
        assert_eq!(of("deepgram/aura-2-thalia-en", ""), Some("deepgram/nova-3".to_owned()));
        assert_eq!(of("local/af_heart", ""), None);
        assert_eq!(of("local/af_heart", "local/whisper"), Some("local/whisper".to_owned()));
        assert_eq!(of("local/af_heart", "elevenlabs/x"), None);
        for name in ["", "..", ".", "a/../b", "a\u{7}"] {
            assert_eq!(of(&format!("local/{name}"), "deepgram/nova-3"), None, "{name:?}");
        }
        assert_eq!(of(BROWSER, ""), None);
        assert_eq!(of("nobody/x", "local/whisper"), None);
        let speech = catalog(&[deepgram, default]).unwrap();
        let of = |voice: &str, named: &str| speech.transcriber_of(voice, named).ok();
        assert_eq!(of("deepgram/aura-2-thalia-en", ""), Some("local/whisper".to_owned()));
    }

    #[test]
    fn a_provider_that_only_speaks_is_heard_by_another() {
        let elevenlabs = ("SIDETONE_ELEVENLABS_API_KEY", "k");
        let alone = catalog(&[elevenlabs]).unwrap();
        let error = alone.transcriber_of("elevenlabs/rachel", "").unwrap_err();
        assert!(error.contains("SIDETONE_DEFAULT_TRANSCRIBER"), "{error}");
        let both = catalog(&[elevenlabs, ("SIDETONE_DEEPGRAM_API_KEY", "k")]).unwrap();
        assert_eq!(both.transcriber_of("elevenlabs/rachel", ""), Ok("deepgram/nova-3".to_owned()));
    }

    #[test]
    fn prices_are_rounded_up() {
        let speech = catalog(&[
            (
                "SIDETONE_VOICES",
                r#"{"local/v": {"microusd_per_1k_chars": 15000, "fallback": ["local/w", "local/other"]},
                    "local/w": {"microusd_per_1k_chars": 4000}}"#,
            ),
            ("SIDETONE_TRANSCRIBERS", r#"{"local/t": {"microusd_per_minute": 4300}}"#),
        ]);
        let speech = speech.unwrap();
        assert_eq!(speech.speech_microusd("local/v", &[1]), 15);
        assert_eq!(
            speech.speech_microusd("local/v", &[1, 1_001, 9]),
            15 + 4_004,
            "each voice at its own rate"
        );
        assert_eq!(speech.speech_microusd("local/w", &[1, 1_001]), 4, "it has no fallback");
        assert_eq!(speech.speech_microusd("local/other", &[1_000]), 0);
        assert_eq!(speech.transcription_microusd("local/t", 1), 1);
        assert_eq!(speech.transcription_microusd("local/t", 120_000), 8_600);
        let mut limited = speech;
        limited.assume_prices();
        assert_eq!(limited.speech_microusd("local/other", &[1_000]), 15_000, "as much as the dearest");
        assert_eq!(limited.speech_microusd("local/w", &[1_000]), 4_000);
        assert_eq!(limited.transcription_microusd("local/T", 60_000), 4_300);
        assert_eq!(limited.transcription_microusd("other/t", 60_000), 0);
    }

    #[test]
    fn invalid_settings_are_named_and_no_key_is_shown() {
        for (name, value) in [
            ("SIDETONE_VOICES", "[]"),
            ("SIDETONE_VOICES", r#"{"nobody/v": {}}"#),
            ("SIDETONE_VOICES", r#"{"local/v": {"fallback": ["local/v"]}}"#),
            ("SIDETONE_VOICES", r#"{"local/v": {"fallback": ["builtin/tone"]}}"#),
            ("SIDETONE_TRANSCRIBERS", r#"{"elevenlabs/t": {}}"#),
            ("SIDETONE_DEFAULT_TRANSCRIBER", "elevenlabs/t"),
            ("SIDETONE_DEEPGRAM_API_KEY", "hush hush"),
        ] {
            let error = catalog(&[(name, value), ("SIDETONE_ELEVENLABS_API_KEY", "hush")]).unwrap_err();
            assert_eq!(error.name, name, "{value}");
            assert!(!error.to_string().contains("hush"), "{error}");
        }
        let shown = format!("{:?}", catalog(&[("SIDETONE_CARTESIA_API_KEY", "hush")]).unwrap());
        assert!(!shown.contains("hush"), "{shown}");
    }
}

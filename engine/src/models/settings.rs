//! Settings of model providers: endpoints, prices, and fallbacks.
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::base::limits::{
    INTEGER_MAX, KNOWLEDGE_PER_ASSISTANT_BYTES_MAX, MODEL_BYTES_PER_TOKEN, MODEL_FALLBACKS_MAX,
    MODEL_REPLY_TOKENS_MAX,
};
use crate::base::setting::{Secret, SettingError, api_key, base_url_of};

/// What the service adds to the texts of a request, at least.
const REQUEST_FRAME_BYTES: u64 = 2_048;

/// The default endpoint of the provider `openai`.
const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

/// The configured providers, and the operator's settings for individual models.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelCatalog {
    /// Providers by name; always contains `builtin`.
    pub providers: BTreeMap<String, ModelProvider>,
    /// Settings of models by `provider/name`.
    pub models: BTreeMap<String, ModelSettings>,
    /// By provider, the prices of models that have none: see `ModelCatalog::assume_prices`.
    pub assumed: BTreeMap<String, ModelSettings>,
}

impl ModelCatalog {
    /// Whether a question to this model may have a cost: it or one of its fallbacks has a price.
    #[must_use]
    pub fn may_cost(&self, model: &str) -> bool {
        let has_price = |model: &str| {
            self.settings(model)
                .is_some_and(|settings| settings.rates().into_iter().flatten().any(|rate| rate > 0))
        };
        let fallback = self.settings(model).map(|settings| settings.fallback.as_slice()).unwrap_or_default();
        has_price(model) || fallback.iter().any(|model| has_price(model))
    }

    /// The settings of a model, whatever case its name is written in: many servers ignore it, and a price must not be
    /// avoided by it.
    #[must_use]
    pub fn settings(&self, model: &str) -> Option<&ModelSettings> {
        let own = self.models.get(model).or_else(|| {
            self.models
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(model))
                .map(|(_, settings)| settings)
        });
        own.or_else(|| self.assumed.get(provider_of(model)?))
    }

    /// Lets models without a price cost as much as the dearest model of their provider. A spending limit of the operator
    /// then holds whatever name a workspace writes; servers of which no model has a price stay free.
    pub(crate) fn assume_prices(&mut self) {
        for (model, settings) in &self.models {
            let Some(provider) = provider_of(model).filter(|_| settings.has_price()) else { continue };
            let assumed = self.assumed.entry(provider.to_owned()).or_default();
            for (assumed, rate) in assumed.rates_mut().into_iter().zip(settings.rates()) {
                *assumed = (*assumed).max(rate);
            }
        }
        for (model, settings) in &mut self.models {
            if let Some(assumed) = provider_of(model).and_then(|provider| self.assumed.get(provider))
                && !settings.has_price()
            {
                for (rate, assumed) in settings.rates_mut().into_iter().zip(assumed.rates()) {
                    *rate = assumed;
                }
            }
        }
    }

    /// The providers with an account of which no model has a price: a spending limit does not hold for them.
    pub(crate) fn without_prices(&self) -> impl Iterator<Item = &str> {
        let has_account = |provider: &ModelProvider| {
            provider.endpoint.as_ref().is_some_and(|endpoint| endpoint.api_key.is_some())
        };
        let has_price = |name: &str| {
            self.models
                .iter()
                .any(|(model, settings)| provider_of(model) == Some(name) && settings.has_price())
        };
        let accounts = self.providers.iter().filter(move |(_, provider)| has_account(provider));
        accounts.map(|(name, _)| name.as_str()).filter(move |name| !has_price(name))
    }

    /// What one answer of this model or a fallback may cost whose request is that large: an estimate of its input with what
    /// the service adds, and the longest output.
    #[must_use]
    pub fn answer_may_cost_microusd(&self, model: &str, request_bytes: u64) -> i64 {
        let bytes = request_bytes.saturating_add(REQUEST_FRAME_BYTES);
        let (tokens, output) =
            (bytes.div_ceil(MODEL_BYTES_PER_TOKEN as u64), u64::from(MODEL_REPLY_TOKENS_MAX));
        let cost =
            |model: &str| self.settings(model).map_or(0, |settings| settings.cost_microusd(tokens, output));
        let model = self.settings(model).and_then(|settings| settings.text_model.as_deref()).unwrap_or(model);
        let fallback = self.settings(model).map(|settings| settings.fallback.as_slice()).unwrap_or_default();
        fallback.iter().map(|model| cost(model)).fold(cost(model), i64::max)
    }
}

/// A provider of models and voices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelProvider {
    /// Where it has models that hear and speak (OpenAI's Realtime protocol); `None` if it has none.
    pub realtime_url: Option<String>,
    /// Its endpoint; `None` for `builtin`, which runs in the engine.
    pub endpoint: Option<Endpoint>,
}

/// An OpenAI-compatible server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Without a trailing slash; requests go to `{base_url}/chat/completions`.
    pub base_url: String,
    /// The API key; `None` for a server without authentication.
    pub api_key: Option<Secret>,
}

impl ModelProvider {
    /// Whether a model (`provider/name`) hears and speaks. OpenAI's say so in their names, also behind another address; other
    /// servers know theirs.
    #[must_use]
    pub fn is_realtime(&self, model: &str) -> bool {
        self.realtime_url.is_some() && (!is_openais(model) || speaks(model))
    }

    /// Whether a model (`provider/name`) writes.
    #[must_use]
    pub fn is_written(&self, model: &str) -> bool {
        !(is_openais(model) && speaks(model))
    }
}

/// Whether a model (`provider/name`) has a name of OpenAI's.
fn is_openais(model: &str) -> bool {
    model.rsplit('/').next().is_some_and(|name| name.starts_with("gpt-"))
}

/// Whether OpenAI's name says that the model hears and speaks. Some of these only write down what they hear, or translate it.
fn speaks(model: &str) -> bool {
    let is_other = ["whisper", "transcribe", "translate"].iter().any(|other| model.contains(other));
    model.contains("realtime") && !is_other
}

/// The operator's settings for one model; all are optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// Price of a million input tokens, in millionths of a US dollar.
    pub input_microusd_per_1m_tokens: Option<u64>,
    /// Price of a million output tokens, in millionths of a US dollar.
    pub output_microusd_per_1m_tokens: Option<u64>,
    /// Price of a million input tokens that the provider had cached; the price of others if it has none.
    pub cached_input_microusd_per_1m_tokens: Option<u64>,
    /// Price of a million input tokens of audio; the price of text if it has none.
    pub audio_input_microusd_per_1m_tokens: Option<u64>,
    /// Price of a million input tokens of audio that the provider had cached; the price of others if it has none.
    pub cached_audio_input_microusd_per_1m_tokens: Option<u64>,
    /// Price of a million output tokens of audio; the price of text if it has none.
    pub audio_output_microusd_per_1m_tokens: Option<u64>,
    /// Bytes of an assistant's knowledge in a request, for models with a small context window.
    pub knowledge_bytes_max: Option<usize>,
    /// Models (`provider/name`) to ask in this order when this one fails.
    pub fallback: Vec<String>,
    /// For a model that hears and speaks: the model (`provider/name`) that answers in its place what is written, such as
    /// conversations by text and the analysis of calls.
    pub text_model: Option<String>,
}

impl ModelSettings {
    /// Whether a price is set; it may be 0.
    fn has_price(&self) -> bool {
        self.rates().iter().any(Option::is_some)
    }

    /// The cost of an answer in millionths of a US dollar, rounded up; 0 without rates.
    #[must_use]
    pub fn cost_microusd(&self, input_tokens: u64, output_tokens: u64) -> i64 {
        Self::price(&[
            (input_tokens, self.input_microusd_per_1m_tokens),
            (output_tokens, self.output_microusd_per_1m_tokens),
        ])
    }

    /// The price of tokens with these rates, rounded up.
    #[must_use]
    pub fn price(tokens: &[(u64, Option<u64>)]) -> i64 {
        let priced = tokens.iter().map(|(tokens, rate)| u128::from(*tokens) * u128::from(rate.unwrap_or(0)));
        let millionths = priced.fold(0, u128::saturating_add);
        i64::try_from(millionths.div_ceil(1_000_000)).unwrap_or(INTEGER_MAX).min(INTEGER_MAX)
    }

    /// The price of cached text.
    #[must_use]
    pub fn cached_input(&self) -> Option<u64> {
        self.cached_input_microusd_per_1m_tokens.or(self.input_microusd_per_1m_tokens)
    }

    /// The price of audio in.
    #[must_use]
    pub fn audio_input(&self) -> Option<u64> {
        self.audio_input_microusd_per_1m_tokens.or(self.input_microusd_per_1m_tokens)
    }

    /// The price of cached audio in.
    #[must_use]
    pub fn cached_audio_input(&self) -> Option<u64> {
        self.cached_audio_input_microusd_per_1m_tokens.or_else(|| self.audio_input())
    }

    /// The price of audio out.
    #[must_use]
    pub fn audio_output(&self) -> Option<u64> {
        self.audio_output_microusd_per_1m_tokens.or(self.output_microusd_per_1m_tokens)
    }

    fn rates_mut(&mut self) -> [&mut Option<u64>; 6] {
        [
            &mut self.input_microusd_per_1m_tokens,
            &mut self.output_microusd_per_1m_tokens,
            &mut self.cached_input_microusd_per_1m_tokens,
            &mut self.audio_input_microusd_per_1m_tokens,
            &mut self.cached_audio_input_microusd_per_1m_tokens,
            &mut self.audio_output_microusd_per_1m_tokens,
        ]
    }

    /// All its rates.
    fn rates(&self) -> [Option<u64>; 6] {
        [
            self.input_microusd_per_1m_tokens,
            self.output_microusd_per_1m_tokens,
            self.cached_input_microusd_per_1m_tokens,
            self.audio_input_microusd_per_1m_tokens,
            self.cached_audio_input_microusd_per_1m_tokens,
            self.audio_output_microusd_per_1m_tokens,
        ]
    }

    /// The most bytes of knowledge in a request.
    #[must_use]
    pub fn knowledge_bytes(&self) -> usize {
        let most = usize::try_from(KNOWLEDGE_PER_ASSISTANT_BYTES_MAX).unwrap_or(usize::MAX);
        self.knowledge_bytes_max.unwrap_or(most).min(most)
    }
}

/// `openai` of `openai/gpt-5`; `None` when the text is not `provider/name`.
pub fn provider_of(model: &str) -> Option<&str> {
    let (provider, name) = model.split_once('/')?;
    // Nothing that cannot be seen: zero-width characters, marks of direction.
    let is_hidden = |c: char| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !is_hidden(c);
    let plain = |text: &str| !text.is_empty() && text.chars().all(is_plain);
    // Some servers read these as another name of a model, which has no price then; in lists, `*` stands for any name.
    let whole = name.split('/').all(|part| !["", ".", "..", "*"].contains(&part)) && !name.contains('%');
    (plain(provider) && plain(name) && whole).then_some(provider)
}

/// Reads the configured providers; the result always contains `builtin`.
pub(crate) fn read_providers(
    get: impl Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, ModelProvider>, SettingError> {
    let builtin = ModelProvider { realtime_url: None, endpoint: None };
    let mut providers = BTreeMap::from([("builtin".to_owned(), builtin)]);
    if let Some(key) = get("SIDETONE_OPENAI_API_KEY") {
        let base_url = get("SIDETONE_OPENAI_BASE_URL").unwrap_or_else(|| OPENAI_BASE_URL.to_owned());
        let endpoint = Endpoint {
            base_url: base_url_of("SIDETONE_OPENAI_BASE_URL", &base_url)?,
            api_key: Some(api_key("SIDETONE_OPENAI_API_KEY", &key)?),
        };
        let realtime_url = match get("SIDETONE_OPENAI_REALTIME_URL") {
            Some(url) => realtime_url("SIDETONE_OPENAI_REALTIME_URL", &url)?,
            None => endpoint.base_url.clone(),
        };
        let openai = ModelProvider { realtime_url: Some(realtime_url), endpoint: Some(endpoint) };
        providers.insert("openai".to_owned(), openai);
    }
    if let Some(text) = get("SIDETONE_PROVIDERS") {
        providers.extend(further_providers(&text)?);
    }
    Ok(providers)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderSetting {
    base_url: String,
    #[serde(default)]
    api_key: Option<String>,
    #[serde(default)]
    realtime_url: Option<String>,
}

/// A URL of sockets: `wss` and `ws`, or `https` and `http` for the same.
fn realtime_url(name: &'static str, url: &str) -> Result<String, SettingError> {
    let url = url.trim();
    match url.strip_prefix("ws") {
        Some(rest) => base_url_of(name, &format!("http{rest}")),
        None => base_url_of(name, url),
    }
}

fn further_providers(text: &str) -> Result<BTreeMap<String, ModelProvider>, SettingError> {
    const NAME: &str = "SIDETONE_PROVIDERS";
    let wrong = |message: String| SettingError { name: NAME, message };
    // The value contains API keys, and serde_json's message may quote it, so only the position is reported.
    let parsed: BTreeMap<String, ProviderSetting> = serde_json::from_str(text).map_err(|error| {
        wrong(format!(
            "invalid at column {}; expected {{\"name\": {{\"base_url\": \"https://…\", \"api_key\": \"…\"}}}}",
            error.column()
        ))
    })?;
    let mut providers = BTreeMap::new();
    for (name, setting) in parsed {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(plain) || name == "builtin" {
            return Err(wrong(format!(
                "`{name}` is not a valid provider name: use a-z, 0-9, - and _, and not `builtin`"
            )));
        }
        let named = |error: SettingError| wrong(format!("`{name}`: {}", error.message));
        let key = setting.api_key.filter(|key| !key.trim().is_empty());
        let endpoint = Endpoint {
            base_url: base_url_of(NAME, &setting.base_url).map_err(named)?,
            api_key: key.map(|key| api_key(NAME, &key)).transpose().map_err(named)?,
        };
        let url = setting.realtime_url.filter(|url| !url.trim().is_empty());
        let realtime_url = url.map(|url| realtime_url(NAME, &url)).transpose().map_err(named)?;
        providers.insert(name, ModelProvider { realtime_url, endpoint: Some(endpoint) });
    }
    Ok(providers)
}

/// Reads SIDETONE_MODELS, by `provider/name`.
pub(crate) fn read_models(
    text: Option<String>,
    providers: &BTreeMap<String, ModelProvider>,
) -> Result<BTreeMap<String, ModelSettings>, SettingError> {
    let wrong = |message: String| SettingError { name: "SIDETONE_MODELS", message };
    let Some(text) = text else { return Ok(BTreeMap::new()) };
    let models: BTreeMap<String, ModelSettings> = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("{error}; expected {{\"provider/name\": {{…}}}}")))?;
    for (model, settings) in &models {
        let is_remote = |model: &str| {
            let provider = provider_of(model).and_then(|name| providers.get(name));
            provider.is_some_and(|provider| provider.endpoint.is_some())
        };
        if !is_remote(model) {
            return Err(wrong(format!("`{model}` is not `provider/name` of a configured provider")));
        }
        if let Some(text_model) = settings.text_model.as_deref().filter(|text_model| !is_remote(text_model)) {
            return Err(wrong(format!(
                "`{text_model}` cannot be the text_model of `{model}`: it must be a model of a configured provider"
            )));
        }
        // The rule model is no fallback: it would replace a language model unnoticed.
        for other in &settings.fallback {
            if other == model || !is_remote(other) {
                return Err(wrong(format!(
                    "`{other}` cannot be a fallback of `{model}`: it must be another model of a configured provider"
                )));
            }
        }
        if settings.fallback.len() > MODEL_FALLBACKS_MAX {
            return Err(wrong(format!("`{model}` has more than {MODEL_FALLBACKS_MAX} fallbacks")));
        }
        if settings.rates().into_iter().flatten().any(|rate| rate > INTEGER_MAX.unsigned_abs()) {
            return Err(wrong(format!("`{model}` has a rate above {INTEGER_MAX}")));
        }
    }
    Ok(models)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn providers(pairs: &[(&str, &str)]) -> Result<BTreeMap<String, ModelProvider>, SettingError> {
        let pairs: BTreeMap<_, _> = pairs.iter().copied().collect();
        read_providers(|name| pairs.get(name).map(|value| (*value).to_owned()))
    }

    #[test]
    fn realtime_models_have_an_address() {
        let openai = |more: &[(&str, &str)]| {
            let pairs = [&[("SIDETONE_OPENAI_API_KEY", "k")], more].concat();
            providers(&pairs).map(|mut all| all.remove("openai").unwrap())
        };
        let known = openai(&[]).unwrap();
        assert_eq!(known.realtime_url.as_deref(), Some("https://api.openai.com/v1"));
        assert!(known.is_realtime("openai/gpt-realtime-2.1") && !known.is_written("openai/gpt-realtime-2.1"));
        for other in ["gpt-5", "gpt-audio", "gpt-4o-audio-preview", "gpt-realtime-whisper"] {
            assert!(!known.is_realtime(&format!("openai/{other}")), "{other}");
        }
        let own = openai(&[("SIDETONE_OPENAI_REALTIME_URL", "wss://rt.example/v1/realtime/")]).unwrap();
        assert_eq!(own.realtime_url.as_deref(), Some("https://rt.example/v1/realtime"));
        let wrong = openai(&[("SIDETONE_OPENAI_REALTIME_URL", "ftp://rt.example")]).unwrap_err();
        assert_eq!(wrong.name, "SIDETONE_OPENAI_REALTIME_URL");
        let text = r#"{"a": {"base_url": "http://a.example", "realtime_url": "ws://a.example/rt"}, "b": {"base_url": "http://b.example"}}"#;
        let further = providers(&[("SIDETONE_PROVIDERS", text)]).unwrap();
        assert!(!further["a"].is_realtime("a/gpt-5"), "OpenAI's, behind another address");
        assert!(further["a"].is_realtime("a/anything") && further["a"].is_written("a/anything"));
        assert!(!further["b"].is_realtime("b/realtime"));
    }

    fn models(text: &str) -> Result<BTreeMap<String, ModelSettings>, SettingError> {
        let known =
            providers(&[("SIDETONE_PROVIDERS", r#"{"local": {"base_url": "http://127.0.0.1:1/v1/"}}"#)]);
        read_models(Some(text.to_owned()), &known.unwrap())
    }

    #[test]
    fn under_the_operators_limit_no_name_avoids_a_price() {
        let text = r#"{"local/big": {"input_microusd_per_1m_tokens": 5, "output_microusd_per_1m_tokens": 9},
            "local/small": {"input_microusd_per_1m_tokens": 7}, "local/free": {"input_microusd_per_1m_tokens": 0},
            "local/unpriced": {"knowledge_bytes_max": 10, "fallback": ["local/big"]}}"#;
        let mut catalog = ModelCatalog { models: models(text).unwrap(), ..ModelCatalog::default() };
        let cost = |catalog: &ModelCatalog, model: &str| {
            let settings = catalog.settings(model).cloned().unwrap_or_default();
            settings.cost_microusd(1_000_000, 1_000_000)
        };
        assert_eq!(cost(&catalog, "local/big-2024-08-06"), 0);
        catalog.assume_prices();
        for (model, microusd) in [
            ("local/big", 14),
            ("local/BIG", 14),
            ("local/small", 7),
            ("local/free", 0),
            ("local/unpriced", 16),
            ("local/big-2024-08-06", 16),
            ("local/big?x=1", 16),
            ("other/big", 0),
        ] {
            assert_eq!(cost(&catalog, model), microusd, "{model}");
        }
        assert!(catalog.may_cost("local/anything") && !catalog.may_cost("other/anything"));
        assert_eq!(catalog.settings("local/unpriced").unwrap().fallback, ["local/big"]);
    }

    #[test]
    fn no_spelling_avoids_a_price() {
        let text =
            r#"{"local/Big": {"input_microusd_per_1m_tokens": 5, "output_microusd_per_1m_tokens": 9}}"#;
        let catalog = ModelCatalog { models: models(text).unwrap(), ..ModelCatalog::default() };
        assert!(catalog.may_cost("local/big") && catalog.may_cost("local/BIG"));
        assert!(!catalog.may_cost("local/bigger"), "another model");
        assert_eq!(catalog.answer_may_cost_microusd("local/bIG", 3_000_000), 5 + 1);
        for no_name in [
            "local/Big/",
            "local//Big",
            "local/",
            "local/Big ",
            "local/Big\u{7f}",
            "/Big",
            "local/./Big",
            "local/%42ig",
            "local/*",
            "local/Big\u{200b}",
        ] {
            assert_eq!(provider_of(no_name), None, "{no_name:?}");
        }
        assert_eq!(provider_of("local/org/Big:free"), Some("local"));
    }

    #[test]
    fn a_server_may_have_no_key() {
        let text = r#"{"local": {"base_url": "http://127.0.0.1:1/v1/"}}"#;
        let local = providers(&[("SIDETONE_PROVIDERS", text)]).unwrap().remove("local").unwrap();
        let endpoint = local.endpoint.unwrap();
        assert_eq!(endpoint.base_url, "http://127.0.0.1:1/v1");
        assert_eq!(endpoint.api_key, None);
    }

    #[test]
    fn keys_are_never_shown() {
        let providers = providers(&[("SIDETONE_OPENAI_API_KEY", " sk-secret\n")]).unwrap();
        assert!(!format!("{providers:?}").contains("sk-secret"));
        let endpoint = providers["openai"].endpoint.as_ref().unwrap();
        assert_eq!(endpoint.api_key.as_ref().unwrap().reveal(), "sk-secret");
    }

    #[test]
    fn invalid_settings_are_not_quoted() {
        for setting in [
            [("SIDETONE_OPENAI_API_KEY", "sk-hush hush"), ("SIDETONE_PROVIDERS", "")],
            [("SIDETONE_OPENAI_API_KEY", "k"), ("SIDETONE_OPENAI_BASE_URL", "https://a:hush@b.example/v1")],
            [("SIDETONE_OPENAI_API_KEY", "k"), ("SIDETONE_OPENAI_BASE_URL", "https://b.example/v1?key=hush")],
            [("SIDETONE_OPENAI_API_KEY", "k"), ("SIDETONE_OPENAI_BASE_URL", "hush")],
        ] {
            let error = providers(&setting).unwrap_err().to_string();
            assert!(error.starts_with("SIDETONE_OPENAI_") && !error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn costs_are_rounded_up() {
        let models = models(
            r#"{"local/m": {"input_microusd_per_1m_tokens": 150000, "output_microusd_per_1m_tokens": 600000}}"#,
        );
        let settings = &models.unwrap()["local/m"];
        assert_eq!(settings.cost_microusd(0, 0), 0);
        assert_eq!(settings.cost_microusd(1, 0), 1);
        assert_eq!(settings.cost_microusd(1_000, 100), 210);
        assert_eq!(settings.cost_microusd(u64::MAX, u64::MAX), INTEGER_MAX);
        assert_eq!(ModelSettings::default().cost_microusd(1_000_000, 1_000_000), 0);
    }

    #[test]
    fn invalid_model_settings_are_rejected() {
        for text in [
            "[]",
            r#"{"m": {}}"#,
            r#"{"nobody/m": {}}"#,
            r#"{"builtin/rules": {}}"#,
            r#"{"local/m": {"rate": 1}}"#,
            r#"{"local/m": {"input_microusd_per_1m_tokens": -1}}"#,
            r#"{"local/m": {"fallback": ["local/m"]}}"#,
            r#"{"local/m": {"fallback": ["builtin/rules"]}}"#,
            r#"{"local/m": {"text_model": "builtin/rules"}}"#,
            r#"{"local/m": {"audio_output_microusd_per_1m_tokens": 9007199254740992}}"#,
            r#"{"local/m": {"fallback": ["local/a", "local/b", "local/c", "local/d", "local/e"]}}"#,
        ] {
            assert_eq!(models(text).unwrap_err().name, "SIDETONE_MODELS", "{text}");
        }
    }
}

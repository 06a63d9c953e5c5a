//! The settings that all hosts share, read once at startup. An invalid setting stops the startup with its name.
use std::collections::BTreeMap;

use ipnet::IpNet;

use crate::base::limits::ARCHIVE_DAYS_MAX;
use crate::base::setting::SettingError;
use crate::carriers::{self, Carriers};
use crate::models::settings::{self, ModelCatalog, ModelProvider, provider_of};
use crate::speech::settings::{self as speech_settings, SpeechApi, SpeechCatalog, SpeechProvider, TONE};

use values::{
    apology, bootstrap_hashes, http_url, late_percent, memory_bytes, metrics_hash, operator_hash, proxies,
    secret, switch, whole_number,
};

pub use ceilings::Ceilings;
pub use mail::{MAIL_FROM, MailRoute, MailSettings, Protection, SMTP_URL, SmtpSettings};
pub use open_id::OpenIdSettings;
pub use shards::SHARDS;
pub use sign_up::{SIGN_UP, SignUp};
pub use talking::Talking;

mod ceilings;
mod mail;
mod open_id;
mod shards;
mod sign_up;
mod talking;
mod values;

/// Settings that the engine reads; every host uses the same names.
pub const SETTINGS: &[&str] = &[
    "SIDETONE_BASE_URL",
    "SIDETONE_SECRET",
    "SIDETONE_BOOTSTRAP_KEYS",
    "SIDETONE_DEFAULT_MODEL",
    "SIDETONE_DEFAULT_VOICE",
    "SIDETONE_APOLOGY",
    "SIDETONE_OPENAI_API_KEY",
    "SIDETONE_OPENAI_BASE_URL",
    "SIDETONE_OPENAI_REALTIME_URL",
    "SIDETONE_PROVIDERS",
    "SIDETONE_MODELS",
    "SIDETONE_ALLOW_PRIVATE_TARGETS",
    "SIDETONE_TRUSTED_PROXIES",
    "SIDETONE_MEMORY_MB",
    ARCHIVE_DAYS,
    LATE_PERCENT,
    "SIDETONE_MONTHLY_SPEND_LIMIT_MICROUSD",
    "SIDETONE_RUNS_AT_ONCE",
    "SIDETONE_CALLS_AT_ONCE",
    "SIDETONE_MAIL_URL",
    "SIDETONE_MAIL_API_KEY",
    MAIL_FROM,
    SMTP_URL,
    SHARDS,
    SIGN_UP,
    OPERATOR_KEY,
    METRICS_TOKEN,
    "SIDETONE_GOOGLE_CLIENT_ID",
    "SIDETONE_GOOGLE_CLIENT_SECRET",
    "SIDETONE_GOOGLE_ISSUER",
];

/// How many timers may be late while further conversations begin.
const LATE_PERCENT: &str = "SIDETONE_LATE_PERCENT";

/// After how many days transcripts go to the storage of blobs.
const ARCHIVE_DAYS: &str = "SIDETONE_ARCHIVE_DAYS";

/// The key of whoever runs the service.
pub const OPERATOR_KEY: &str = "SIDETONE_OPERATOR_KEY";

/// What whoever reads the metrics sends.
const METRICS_TOKEN: &str = "SIDETONE_METRICS_TOKEN";

/// Variables of clients, which the guides export on the machine that also runs the service.
const CLIENT_VARIABLES: &[&str] =
    &["SIDETONE_KEY", "SIDETONE_URL", "SIDETONE_API_KEY", "SIDETONE_FROM_OPERATOR_KEY", "SIDETONE_MOVE_CODE"];

/// The operator's configuration.
#[derive(Clone)]
pub struct Config {
    /// The public URL without a trailing slash.
    pub base_url: String,
    /// The server secret, from which every signing secret is derived.
    pub secret: String,
    /// The databases beside the first one, by their names; only a Worker has any.
    pub shards: Vec<String>,
    /// SHA-256 of each bootstrap key.
    pub bootstrap_hashes: Vec<String>,
    /// The default model of assistants.
    pub default_model: String,
    /// The default voice of assistants.
    pub default_voice: String,
    /// What an assistant says on the telephone before it hangs up because its model failed.
    pub apology: String,
    /// The configured providers, and the operator's settings for individual models.
    pub catalog: ModelCatalog,
    /// The configured providers of speech, and the operator's settings for voices and transcribers.
    pub speech: SpeechCatalog,
    /// For development only: allows tools and webhooks with private addresses.
    pub allow_private_targets: bool,
    /// The operator's accounts with telephone carriers.
    pub carriers: Carriers,
    /// Proxies whose `X-Forwarded-For` header is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// The memory that conversations may use together. A host that can measure the machine sets the default.
    pub memory_bytes: u64,
    /// Percentage of the process's timers that may be late, before no further conversation with audio begins; 100 for no limit.
    pub late_percent: u64,
    /// After how many days the transcript of an ended call goes to the storage of blobs; `None`: never.
    pub archive_days: Option<i64>,
    /// How the dashboard sends mails; `None`: what they would say goes to the log.
    pub mail: Option<MailSettings>,
    /// Where people sign in to the dashboard besides by e-mail.
    pub google: Option<OpenIdSettings>,
    /// Who may sign in for the first time.
    pub sign_up: SignUp,
    /// SHA-256 of the key that makes links to sign the operator in; `None`: only the command line makes them.
    pub operator_hash: Option<String>,
    /// SHA-256 of the token for the page with metrics; `None`: only this machine reads it.
    pub metrics_hash: Option<String>,
    /// What a workspace can have at most, whatever it sets itself.
    pub ceilings: Ceilings,
}

impl Config {
    /// Reads the settings through `lookup`; an empty value counts as unset.
    pub fn from_settings(
        lookup: impl Fn(&str) -> Option<String>,
        default_base_url: &str,
        default_secret: &str,
    ) -> Result<Self, SettingError> {
        // One function for all settings, instead of a copy of the host's for each: 20 KB of the Worker.
        let get: &dyn Fn(&str) -> Option<String> =
            &|name| lookup(name).filter(|value| !value.trim().is_empty());
        let providers = settings::read_providers(get)?;
        let models = settings::read_models(get("SIDETONE_MODELS"), &providers)?;
        let model = get("SIDETONE_DEFAULT_MODEL").unwrap_or_else(|| "builtin/rules".to_owned());
        let mut speech = SpeechCatalog::from_settings(get, speech_servers(&providers))?;
        let voice = get("SIDETONE_DEFAULT_VOICE").unwrap_or_else(|| TONE.to_owned());
        let not_configured = |name: &'static str, value: &str, mut known: Vec<&str>| {
            known.sort_unstable();
            let known = known.join(", ");
            let message = format!("`{value}` is not `provider/name` of a configured provider ({known})");
            Err(SettingError { name, message })
        };
        if !provider_of(&model).is_some_and(|provider| providers.contains_key(provider)) {
            let known = providers.keys().map(String::as_str).collect();
            return not_configured("SIDETONE_DEFAULT_MODEL", &model, known);
        }
        if voice != TONE && speech.speaker(&voice).is_none() {
            let known = speech.providers.keys().map(String::as_str).chain(["builtin"]).collect();
            return not_configured("SIDETONE_DEFAULT_VOICE", &voice, known);
        }
        let ceilings = Ceilings::from_settings(get)?;
        let mut catalog = ModelCatalog { providers, models, ..ModelCatalog::default() };
        if ceilings.monthly_spend_limit_microusd.is_some() {
            catalog.assume_prices();
            speech.assume_prices();
        }
        let base_url = get("SIDETONE_BASE_URL").unwrap_or_else(|| default_base_url.to_owned());
        Ok(Self {
            base_url: http_url("SIDETONE_BASE_URL", &base_url)?,
            secret: secret(&get("SIDETONE_SECRET").unwrap_or_else(|| default_secret.to_owned()))?,
            shards: shards::shards(get(SHARDS))?,
            bootstrap_hashes: bootstrap_hashes(get("SIDETONE_BOOTSTRAP_KEYS"))?,
            default_model: model,
            default_voice: voice,
            apology: apology(get("SIDETONE_APOLOGY"))?,
            catalog,
            speech,
            allow_private_targets: switch(get("SIDETONE_ALLOW_PRIVATE_TARGETS"))?,
            carriers: Carriers::from_settings(get)?,
            trusted_proxies: proxies(get("SIDETONE_TRUSTED_PROXIES"))?,
            memory_bytes: memory_bytes(get("SIDETONE_MEMORY_MB"))?,
            late_percent: late_percent(get(LATE_PERCENT))?,
            archive_days: whole_number(ARCHIVE_DAYS, get(ARCHIVE_DAYS), 1, ARCHIVE_DAYS_MAX)?,
            mail: MailSettings::from_settings(get)?,
            google: OpenIdSettings::from_settings(get)?,
            sign_up: SignUp::from_setting(get(SIGN_UP))?,
            operator_hash: operator_hash(get(OPERATOR_KEY))?,
            metrics_hash: metrics_hash(get(METRICS_TOKEN))?,
            ceilings,
        })
    }

    /// What a host logs at the start: settings that are set and not known, which are likely misspelled, and settings
    /// that are dangerous. `names` are those of everything that is set, `own` the settings that only the host reads.
    pub fn warnings(&self, names: impl Iterator<Item = String>, own: &[&str]) -> Vec<String> {
        let names: Vec<String> = names.collect();
        let unknown = self.unknown_settings(names.iter().map(String::as_str), own);
        let mut warnings: Vec<String> = unknown
            .map(|name| format!("{name} is not a setting of this version; check its spelling"))
            .collect();
        warnings.extend(self.dangers());
        warnings
    }

    /// Every setting, with those that only the host reads, and the variables of clients.
    pub fn known_settings<'a>(own: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        let ours = [SETTINGS, carriers::SETTINGS, speech_settings::SETTINGS, CLIENT_VARIABLES];
        ours.into_iter().flatten().chain(own).copied()
    }

    /// Those of these names that nothing reads.
    pub fn unknown_settings<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
        own: &'a [&'a str],
    ) -> impl Iterator<Item = &'a str> {
        let is_known = |name: &str| Self::known_settings(own).any(|known| known == name);
        names.filter(move |name| name.starts_with("SIDETONE_") && !is_known(name))
    }

    /// What is dangerous about the settings.
    pub fn dangers(&self) -> Vec<String> {
        let mut dangers = Vec::new();
        if self.allow_private_targets {
            dangers.push(
                "SIDETONE_ALLOW_PRIVATE_TARGETS is on: tools and webhooks may point anywhere; for development only"
                    .to_owned(),
            );
        }
        if self.ceilings.monthly_spend_limit_microusd.is_some() {
            dangers.extend(self.limit_warnings());
        }
        dangers
    }

    /// For what a spending limit does not hold.
    pub(crate) fn limit_warnings(&self) -> impl Iterator<Item = String> {
        let models: Vec<&str> = self.catalog.without_prices().collect();
        let models = (!models.is_empty()).then(|| {
            format!(
                "The spending limit does not hold for models of {}: SIDETONE_MODELS has no price for any of them, so they \
                 count as free.",
                models.join(", ")
            )
        });
        models.into_iter().chain(self.carriers.without_rates_warning())
    }
}

/// The OpenAI-compatible servers of models: each may recognise and synthesize speech, too.
fn speech_servers(
    providers: &BTreeMap<String, ModelProvider>,
) -> impl Iterator<Item = (String, SpeechProvider)> {
    providers.iter().filter_map(|(name, provider)| {
        let endpoint = provider.endpoint.as_ref()?;
        let provider = SpeechProvider {
            api: SpeechApi::OpenAi,
            base_url: endpoint.base_url.clone(),
            api_key: endpoint.api_key.clone(),
        };
        Some((name.clone(), provider))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::base::limits::APOLOGY_CHARS_MAX;

    fn read(pairs: &[(&str, &str)]) -> Result<Config, SettingError> {
        let map: BTreeMap<_, _> = pairs.iter().copied().collect();
        Config::from_settings(
            |name| map.get(name).map(|value| (*value).to_owned()),
            "http://127.0.0.1:8787",
            "a server secret of some length",
        )
    }

    #[test]
    fn the_defaults_are_offline_and_free() {
        let config = read(&[]).unwrap();
        assert_eq!(config.default_model, "builtin/rules");
        assert_eq!(config.catalog.providers.keys().collect::<Vec<_>>(), ["builtin"]);
    }

    #[test]
    fn an_invalid_setting_is_named() {
        for (name, value) in [
            ("SIDETONE_BASE_URL", "voice.example.com"),
            ("SIDETONE_SECRET", "short"),
            ("SIDETONE_BOOTSTRAP_KEYS", "sidetone_nope"),
            ("SIDETONE_OPERATOR_KEY", "sidetone_nope"),
            ("SIDETONE_METRICS_TOKEN", "short"),
            ("SIDETONE_DEFAULT_MODEL", "gpt"),
            ("SIDETONE_DEFAULT_VOICE", "nobody/alloy"),
            ("SIDETONE_PROVIDERS", "{"),
            ("SIDETONE_PROVIDERS", r#"{"builtin": {"base_url": "https://a.example"}}"#),
            ("SIDETONE_ALLOW_PRIVATE_TARGETS", "yes"),
            ("SIDETONE_TRUSTED_PROXIES", "proxy.example"),
            ("SIDETONE_TRUSTED_PROXIES", "10.0.0.0/33"),
            ("SIDETONE_MEMORY_MB", "23"),
            ("SIDETONE_MEMORY_MB", "half"),
            ("SIDETONE_LATE_PERCENT", "101"),
            ("SIDETONE_LATE_PERCENT", "1%"),
            ("SIDETONE_MONTHLY_SPEND_LIMIT_MICROUSD", "-1"),
            ("SIDETONE_MONTHLY_SPEND_LIMIT_MICROUSD", "5 dollars"),
            ("SIDETONE_RUNS_AT_ONCE", "0"),
            ("SIDETONE_CALLS_AT_ONCE", "10001"),
            ("SIDETONE_APOLOGY", &"x".repeat(APOLOGY_CHARS_MAX + 1)),
        ] {
            assert_eq!(read(&[(name, value)]).err().map(|error| error.name), Some(name), "{value}");
        }
    }

    #[test]
    fn a_misspelled_setting_gives_a_warning() {
        let config = read(&[]).unwrap();
        let warnings = |names: &[&str]| {
            config.warnings(names.iter().map(|name| (*name).to_owned()), &["SIDETONE_LISTEN"])
        };
        let good =
            ["SIDETONE_SECRET", "SIDETONE_LISTEN", "SIDETONE_TWILIO_ACCOUNT_SID", "SIDETONE_KEY", "PATH"];
        assert_eq!(warnings(&good), Vec::<String>::new());
        assert_eq!(
            warnings(&["SIDETONE_KEYS"]),
            ["SIDETONE_KEYS is not a setting of this version; check its spelling"]
        );
    }

    #[test]
    fn an_invalid_provider_list_does_not_show_keys() {
        let text = r#"{"groq": {"base_url": "https://a.example", "api_key": "sk-secret", "x": "sk-secret"}}"#;
        let error = read(&[("SIDETONE_PROVIDERS", text)]).err().unwrap();
        assert!(!error.to_string().contains("sk-secret"), "{error}");
    }
}

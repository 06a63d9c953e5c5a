//! The settings that all hosts share, read once at startup. An invalid setting stops the startup with its name.
use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::base::api_key::ApiKey;
use crate::base::hash::sha256_hex;
use crate::base::limits::{
    APOLOGY_CHARS_MAX, ARCHIVE_DAYS_MAX, CALLS_AT_ONCE_MAX, INTEGER_MAX, LATE_PERCENT_DEFAULT,
    MEMORY_MB_DEFAULT, MEMORY_MB_MIN, RUNS_AT_ONCE_MAX,
};
use crate::base::setting::{Secret, SettingError};
use crate::carriers::{self, Carriers};
use crate::models::settings::{self, ModelCatalog, ModelProvider, provider_of};
use crate::speech::settings::{self as speech_settings, SpeechApi, SpeechCatalog, SpeechProvider, TONE};

pub use mail::{MAIL_FROM, MailRoute, MailSettings, Protection, SMTP_URL, SmtpSettings};
pub use sign_up::{SIGN_UP, SignUp};
pub use talking::Talking;

mod mail;
mod sign_up;
mod talking;

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
/// The shortest such token, in bytes.
const METRICS_TOKEN_BYTES_MIN: usize = 16;

/// Said on the telephone when the assistant's model fails.
const DEFAULT_APOLOGY: &str = "I am sorry, I have a technical problem. Please call again later.";

/// Variables of clients, which the guides export on the machine that also runs the service.
const CLIENT_VARIABLES: &[&str] = &["SIDETONE_KEY"];

/// The operator's configuration.
#[derive(Clone)]
pub struct Config {
    /// The public URL without a trailing slash.
    pub base_url: String,
    /// The server secret, from which every signing secret is derived.
    pub secret: String,
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

/// An OpenID provider and our registration there.
#[derive(Clone)]
pub struct OpenIdSettings {
    /// The provider's URL, as it writes it itself.
    pub issuer: String,
    /// Our name there.
    pub client_id: String,
    /// Our secret there, if it gives us one.
    pub client_secret: Option<Secret>,
}

impl OpenIdSettings {
    fn from_settings(get: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingError> {
        let issuer =
            get("SIDETONE_GOOGLE_ISSUER").unwrap_or_else(|| "https://accounts.google.com".to_owned());
        http_url("SIDETONE_GOOGLE_ISSUER", &issuer)?;
        let client_secret = get("SIDETONE_GOOGLE_CLIENT_SECRET").map(Secret::new);
        match get("SIDETONE_GOOGLE_CLIENT_ID") {
            Some(client_id) => Ok(Some(Self { issuer, client_id, client_secret })),
            None if client_secret.is_some() => Err(SettingError {
                name: "SIDETONE_GOOGLE_CLIENT_ID",
                message: "is required with SIDETONE_GOOGLE_CLIENT_SECRET".to_owned(),
            }),
            None => Ok(None),
        }
    }
}

/// The operator's limits for each workspace, above those that the workspace sets itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceilings {
    /// Costs of a month, in millionths of a US dollar; `None` for no limit.
    pub monthly_spend_limit_microusd: Option<i64>,
    /// Concurrent simulation runs.
    pub runs_at_once: i64,
    /// Concurrent telephone calls.
    pub calls_at_once: i64,
}

impl Ceilings {
    fn from_settings(get: impl Fn(&str) -> Option<String>) -> Result<Self, SettingError> {
        let number = |name, least, most| whole_number(name, get(name), least, most);
        let (runs, calls) = (RUNS_AT_ONCE_MAX.cast_signed(), CALLS_AT_ONCE_MAX.cast_signed());
        Ok(Self {
            monthly_spend_limit_microusd: number("SIDETONE_MONTHLY_SPEND_LIMIT_MICROUSD", 0, INTEGER_MAX)?,
            runs_at_once: number("SIDETONE_RUNS_AT_ONCE", 1, runs)?.unwrap_or(runs),
            calls_at_once: number("SIDETONE_CALLS_AT_ONCE", 1, calls)?.unwrap_or(calls),
        })
    }
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

    /// Every setting, with those that only the host reads.
    pub fn known_settings<'a>(own: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        let ours = [SETTINGS, carriers::SETTINGS, speech_settings::SETTINGS];
        ours.into_iter().flatten().chain(own).copied()
    }

    /// Those of these names that nothing reads.
    pub fn unknown_settings<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
        own: &'a [&'a str],
    ) -> impl Iterator<Item = &'a str> {
        let is_known = |name: &str| {
            CLIENT_VARIABLES.contains(&name) || Self::known_settings(own).any(|known| known == name)
        };
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

fn whole_number(
    name: &'static str,
    text: Option<String>,
    least: i64,
    most: i64,
) -> Result<Option<i64>, SettingError> {
    let read = |text: String| match text.trim().parse::<i64>() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(SettingError {
            name,
            message: format!("must be a whole number from {least} to {most}, not `{text}`"),
        }),
    };
    text.map(read).transpose()
}

fn apology(text: Option<String>) -> Result<String, SettingError> {
    let text = text.map_or_else(|| DEFAULT_APOLOGY.to_owned(), |text| text.trim().to_owned());
    let chars = text.chars().count();
    if chars > APOLOGY_CHARS_MAX {
        let message =
            format!("has {chars} characters, more than {APOLOGY_CHARS_MAX}: it is one short sentence");
        return Err(SettingError { name: "SIDETONE_APOLOGY", message });
    }
    Ok(text)
}

fn http_url(name: &'static str, text: &str) -> Result<String, SettingError> {
    // A URL may have a password in it.
    let shown = if text.contains('@') { "it" } else { &format!("`{text}`") };
    let wrong =
        || SettingError { name, message: format!("{shown} is not a URL such as https://voice.example.com") };
    let url = url::Url::parse(text).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || url.query().is_some() || !url.has_host() {
        return Err(wrong());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

fn secret(text: &str) -> Result<String, SettingError> {
    const SECRET_BYTES_MIN: usize = 16;
    if text.len() < SECRET_BYTES_MIN {
        return Err(SettingError {
            name: "SIDETONE_SECRET",
            message: format!("must have at least {SECRET_BYTES_MIN} random bytes"),
        });
    }
    Ok(text.to_owned())
}

fn bootstrap_hashes(list: Option<String>) -> Result<Vec<String>, SettingError> {
    list.unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .enumerate()
        .map(|(n, text)| match ApiKey::parse(text) {
            Some(key) => Ok(key.sha256_hex()),
            None => Err(SettingError {
                name: "SIDETONE_BOOTSTRAP_KEYS",
                message: format!(
                    "entry {} is not an API key (`sidetone_` and 49 characters, the last 6 a checksum)",
                    n + 1
                ),
            }),
        })
        .collect()
}

fn operator_hash(key: Option<String>) -> Result<Option<String>, SettingError> {
    let Some(text) = key else { return Ok(None) };
    let message =
        "is not a key (`sidetone_` and 49 characters, the last 6 a checksum); `sidetone secrets` prints one";
    let wrong = || SettingError { name: OPERATOR_KEY, message: message.to_owned() };
    ApiKey::parse(text.trim()).map(|key| Some(key.sha256_hex())).ok_or_else(wrong)
}

fn metrics_hash(token: Option<String>) -> Result<Option<String>, SettingError> {
    let Some(token) = token else { return Ok(None) };
    let token = token.trim();
    if token.len() < METRICS_TOKEN_BYTES_MIN {
        let message = format!("needs at least {METRICS_TOKEN_BYTES_MIN} bytes");
        return Err(SettingError { name: METRICS_TOKEN, message });
    }
    Ok(Some(sha256_hex(token.as_bytes())))
}

fn switch(value: Option<String>) -> Result<bool, SettingError> {
    match value.as_deref() {
        None | Some("0" | "false") => Ok(false),
        Some("1" | "true") => Ok(true),
        Some(other) => Err(SettingError {
            name: "SIDETONE_ALLOW_PRIVATE_TARGETS",
            message: format!("must be 1 or 0, not `{other}`"),
        }),
    }
}

fn memory_bytes(value: Option<String>) -> Result<u64, SettingError> {
    let Some(text) = value else { return Ok(MEMORY_MB_DEFAULT * 1024 * 1024) };
    let megabytes = text.trim().parse::<u64>().ok().filter(|megabytes| *megabytes >= MEMORY_MB_MIN);
    let bytes = megabytes.and_then(|megabytes| megabytes.checked_mul(1024 * 1024));
    bytes.ok_or_else(|| SettingError {
        name: "SIDETONE_MEMORY_MB",
        message: format!("must be a whole number of megabytes, at least {MEMORY_MB_MIN}, not `{text}`"),
    })
}

fn late_percent(value: Option<String>) -> Result<u64, SettingError> {
    let Some(text) = value else { return Ok(LATE_PERCENT_DEFAULT) };
    let percent = text.trim().parse::<u64>().ok().filter(|percent| *percent <= 100);
    let message = || format!("must be a whole number from 0 to 100, not `{text}`");
    percent.ok_or_else(|| SettingError { name: LATE_PERCENT, message: message() })
}

/// Addresses and networks (`10.0.0.0/8`).
fn proxies(list: Option<String>) -> Result<Vec<IpNet>, SettingError> {
    list.unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(|text| {
            network(text).ok_or_else(|| SettingError {
                name: "SIDETONE_TRUSTED_PROXIES",
                message: format!(
                    "`{text}` is not an IP address such as 10.0.0.7 or a network such as 10.0.0.0/8; names of hosts are not \
                     looked up"
                ),
            })
        })
        .collect()
}

fn network(text: &str) -> Option<IpNet> {
    match text.split_once('/') {
        Some((address, bits)) => IpNet::new(address.parse().ok()?, bits.parse().ok()?).ok(),
        None => text.parse::<IpAddr>().ok().map(|address| IpNet::from(address.to_canonical())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

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

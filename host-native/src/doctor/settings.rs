//! The settings: those that are wrong, and names that nothing reads, which are likely misspelled.
use sidetone_engine::config::Config;

use super::{Finding, State};
use crate::server::tls::Tls;
use crate::settings::{HOST_SETTINGS, Settings, TlsFiles, variable};
use crate::text::counted;

/// What all names begin with.
const PREFIX: &str = "SIDETONE_";
/// A name that is less alike is no suggestion.
const ALIKE_MIN: f64 = 0.88;
/// In place of the server secret, which is looked at by itself: this must make none.
const NO_SECRET: &str = "a secret that nothing is signed with";

/// What is found; the configuration, unless a setting is wrong.
pub fn examine(settings: &Settings) -> (Vec<Finding>, Option<Config>) {
    let names: Vec<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| is_ours(name))
        .collect();
    examine_these(settings, &names, variable)
}

fn examine_these(
    settings: &Settings,
    names: &[String],
    lookup: impl Fn(&str) -> Option<String>,
) -> (Vec<Finding>, Option<Config>) {
    let mut found = Vec::new();
    let config = settings.config(lookup, settings.listen, NO_SECRET);
    match &config {
        Ok(config) => {
            let unknown = config.unknown_settings(names.iter().map(String::as_str), HOST_SETTINGS);
            found.extend(unknown.map(|name| Finding::warning("settings", misspelled(name))));
            found.extend(config.dangers().into_iter().map(|danger| Finding::warning("settings", danger)));
            if found.is_empty() {
                found.push(Finding::good(
                    "settings",
                    format!("{}, all known", counted(names.len() as u64, "setting")),
                ));
            }
        }
        Err(error) => found.push(Finding::problem("settings", error.to_string())),
    }
    found.extend(settings.tls.as_ref().map(certificate));
    (found, config.ok())
}

fn is_ours(name: &str) -> bool {
    name.starts_with(PREFIX)
}

fn without_prefix(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}

fn misspelled(name: &str) -> String {
    // What two names begin with counts most, and that all begin alike says nothing.
    let alike = |known: &&str| strsim::jaro_winkler(without_prefix(name), without_prefix(known));
    let nearest = Config::known_settings(HOST_SETTINGS).max_by(|a, b| alike(a).total_cmp(&alike(b)));
    match nearest.filter(|known| alike(known) >= ALIKE_MIN) {
        Some(known) => format!("{name} is not a setting of this version; did you mean {known}?"),
        None => format!("{name} is not a setting of this version; remove it, or check its spelling"),
    }
}

fn certificate(files: &TlsFiles) -> Finding {
    let (state, detail) = match Tls::load(files.clone()) {
        Ok(_) => (State::Good, format!("{} and its key fit together", files.cert.display())),
        Err(error) => (State::Problem, error.to_string()),
    };
    Finding::new("certificate", state, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_name_gets_a_suggestion() {
        for (name, meant) in [
            ("SIDETONE_LISTENS", "SIDETONE_LISTEN"),
            ("SIDETONE_TRUSTED_PROXY", "SIDETONE_TRUSTED_PROXIES"),
            ("SIDETONE_TWILIO_AUTHTOKEN", "SIDETONE_TWILIO_AUTH_TOKEN"),
            ("SIDETONE_BASEURL", "SIDETONE_BASE_URL"),
            ("SIDETONE_OPENAI_KEY", "SIDETONE_OPENAI_API_KEY"),
            ("SIDETONE_DATA_DIR", "SIDETONE_DATA"),
            ("SIDETONE_URLS", "SIDETONE_URL"),
            ("SIDETONE_APIKEY", "SIDETONE_API_KEY"),
        ] {
            assert!(misspelled(name).ends_with(&format!("did you mean {meant}?")), "{}", misspelled(name));
        }
    }

    #[test]
    fn a_name_that_is_like_no_other_gets_none() {
        for name in ["FOO", "BAR", "PORT", "DEBUG", "LOG_LEVEL", "TELNYX_FOO", "QQQ_WWW_EEE"] {
            let told = misspelled(&format!("SIDETONE_{name}"));
            assert!(told.ends_with("remove it, or check its spelling"), "{told}");
        }
    }

    #[test]
    fn what_stops_the_start_is_found() {
        let settings = Settings::read(|_| None).unwrap();
        for (name, value) in [("SIDETONE_SHARDS", "DB_2"), ("SIDETONE_MEMORY_MB", "half")] {
            let lookup = |asked: &str| (asked == name).then(|| value.to_owned());
            let start = settings.config(lookup, settings.listen, "the secret of a data folder");
            let (found, config) = examine_these(&settings, &[name.to_owned()], lookup);
            assert_eq!(found, [Finding::problem("settings", start.err().unwrap().to_string())]);
            assert!(found[0].detail.starts_with(name) && config.is_none(), "{found:?}");
        }
        let (found, config) = examine_these(&settings, &[], |_| None);
        assert!(found.iter().all(|one| one.state == State::Good) && config.is_some(), "{found:?}");
    }
}

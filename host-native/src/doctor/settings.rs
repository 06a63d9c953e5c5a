//! The settings: those that are wrong, and names that nothing reads, which are likely misspelled.
use sidetone_engine::config::Config;

use super::{Finding, State};
use crate::server::tls::Tls;
use crate::settings::{self, HOST_SETTINGS, Settings, TlsFiles};

/// A name that is less alike is no suggestion.
const ALIKE_MIN: f64 = 0.92;
/// In place of the server secret, which is looked at by itself: this must make none.
const NO_SECRET: &str = "a secret that nothing is signed with";

/// What is found; the configuration, unless a setting is wrong.
pub fn examine(settings: &Settings) -> (Vec<Finding>, Option<Config>) {
    let mut found = Vec::new();
    let names: Vec<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| is_ours(name))
        .collect();
    let config = configuration(settings);
    match &config {
        Ok(config) => {
            let unknown = config.unknown_settings(names.iter().map(String::as_str), HOST_SETTINGS);
            found.extend(unknown.map(|name| Finding::warning("settings", misspelled(name))));
            found.extend(config.dangers().into_iter().map(|danger| Finding::warning("settings", danger)));
            if found.is_empty() {
                found.push(Finding::good("settings", format!("{} are set, and all are known", names.len())));
            }
        }
        Err(error) => found.push(Finding::problem("settings", error.to_string())),
    }
    found.extend(settings.tls.as_ref().map(certificate));
    (found, config.ok())
}

fn is_ours(name: &str) -> bool {
    name.starts_with("SIDETONE_")
}

fn configuration(settings: &Settings) -> Result<Config, sidetone_engine::base::setting::SettingError> {
    let private_key =
        settings::text_or_file(settings::PRIVATE_KEY, std::env::var(settings::PRIVATE_KEY).ok())?;
    let lookup = |name: &str| match name {
        settings::PRIVATE_KEY => private_key.clone(),
        name => std::env::var(name).ok(),
    };
    let base_url = settings::base_url(settings.listen, settings.tls.is_some());
    Config::from_settings(lookup, &base_url, NO_SECRET)
}

fn misspelled(name: &str) -> String {
    let alike = |known: &&str| strsim::jaro_winkler(name, known);
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
        ] {
            assert!(misspelled(name).ends_with(&format!("did you mean {meant}?")), "{}", misspelled(name));
        }
        assert!(misspelled("SIDETONE_QQQ_WWW_EEE").contains("spelling"));
    }
}

//! The settings, from the Worker's variables and secrets, with the same names as on the native host.
use sidetone_engine::base::setting::SettingError;
use sidetone_engine::config::{Config, SMTP_URL};
use sidetone_engine::ports::otlp::Collector;
use worker::js_sys::Object;
use worker::wasm_bindgen::JsCast;
use worker::{Env, console_warn};

/// Memory for conversations, unless SIDETONE_MEMORY_MB is set: half of what an isolate has.
const MEMORY_MB: &str = "64";

/// Who collects traces, by OpenTelemetry's own variables.
pub fn collector(env: &Env) -> Result<Option<Collector>, SettingError> {
    Collector::from_settings(|name| env.var(name).ok().map(|value| value.to_string()))
}

/// Reads the settings. `default_base_url` is used without SIDETONE_BASE_URL.
pub fn read(env: &Env, default_base_url: &str) -> Result<Config, SettingError> {
    let lookup = |name: &str| {
        let set = env.var(name).ok().map(|value| value.to_string());
        set.or_else(|| (name == "SIDETONE_MEMORY_MB").then(|| MEMORY_MB.to_owned()))
    };
    // No default secret: a generated one would differ between isolates.
    let config = Config::from_settings(lookup, default_base_url, "")?;
    if config.mail.as_ref().is_some_and(|mail| mail.smtp().is_some()) {
        return Err(SettingError {
            name: SMTP_URL,
            message: "is not available on a Worker, which cannot send by SMTP; set SIDETONE_MAIL_URL"
                .to_owned(),
        });
    }
    let names = Object::keys(env.unchecked_ref::<Object>()).into_iter().filter_map(|name| name.as_string());
    for warning in config.warnings(names, &[]) {
        console_warn!("{warning}");
    }
    Ok(config)
}

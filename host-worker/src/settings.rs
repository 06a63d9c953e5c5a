//! The settings, from the Worker's variables and secrets, under the same names as on the native host.
use sidetone_engine::base::setting::SettingError;
use sidetone_engine::config::Config;
use worker::js_sys::Object;
use worker::wasm_bindgen::JsCast;
use worker::{Env, console_warn};

/// Reads them; `default_base_url` counts where SIDETONE_BASE_URL is not set.
pub fn read(env: &Env, default_base_url: &str) -> Result<Config, SettingError> {
    let lookup = |name: &str| env.var(name).ok().map(|value| value.to_string());
    // No default secret: one made here would be another one in every isolate.
    let config = Config::from_settings(lookup, default_base_url, "")?;
    let names = Object::keys(env.unchecked_ref::<Object>()).into_iter().filter_map(|name| name.as_string());
    for warning in config.warnings(names, &[]) {
        console_warn!("{warning}");
    }
    Ok(config)
}

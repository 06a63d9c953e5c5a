//! The settings, from the Worker's variables and secrets under the same names as on a box.
use sidetone_engine::base::setting::SettingError;
use sidetone_engine::config::{Config, unknown_settings};
use worker::js_sys::Object;
use worker::wasm_bindgen::JsCast;
use worker::{Env, console_warn};

/// Reads them; `default_base_url` counts where SIDETONE_BASE_URL is not set.
pub fn read(env: &Env, default_base_url: &str) -> Result<Config, SettingError> {
    let lookup = |name: &str| env.var(name).ok().map(|value| value.to_string());
    // No default secret: one made here would be another one in every isolate.
    let config = Config::from_settings(lookup, default_base_url, "")?;
    let names = Object::keys(env.unchecked_ref::<Object>()).into_iter().filter_map(|name| name.as_string());
    for name in unknown_settings(names, &[]) {
        console_warn!("{name} is not a setting of this version; check its spelling");
    }
    if config.allow_private_targets {
        console_warn!(
            "SIDETONE_ALLOW_PRIVATE_TARGETS is on: tools and webhooks may point anywhere; for development only"
        );
    }
    Ok(config)
}

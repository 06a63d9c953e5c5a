//! `sidetone secrets`: new secrets for a Worker, and what to do after the service's own was lost.
use clap::Subcommand;
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::base::hash::sha256_hex;
use sidetone_engine::config::OPERATOR_KEY;
use tokio::runtime::Runtime;

use super::place::Place;
use super::{Failure, failure, print_line};

#[derive(Subcommand)]
pub enum Command {
    /// Continue with the current server secret, or a new one, after the one of the database was lost or changed. The
    /// signing secrets of all tools and webhooks change.
    Accept,
}

/// Runs it.
pub fn run(command: Option<Command>, runtime: &Runtime) -> Result<(), Failure> {
    let Some(Command::Accept) = command else { return Ok(print_line(&secrets()?)?) };
    let place = Place::of_service()?;
    let _lock = place.data.lock()?;
    if !place.settings.has_secret {
        place.data.secret_or_new()?;
    }
    let engine = place.engine_alone()?;
    runtime.block_on(engine.accept_secret()).map_err(failure)?;
    Ok(print_line(
        "The database now belongs to the current server secret. Tools and webhooks have new signing secrets, which nobody \
         has seen: POST /tools/{id}/rotate-secret and POST /webhooks/{id}/rotate-secret each make another one and show it \
         once, for the receiver.",
    )?)
}

/// The secrets that a Worker requires as settings; the native host creates its own.
fn secrets() -> Result<String, getrandom::Error> {
    let random = || {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map(|()| bytes)
    };
    let (secret, key, operator) = (random()?, ApiKey::from_bytes(random()?), ApiKey::from_bytes(random()?));
    Ok(format!(
        "SIDETONE_SECRET={}\nSIDETONE_BOOTSTRAP_KEYS={}\n{OPERATOR_KEY}={}",
        sha256_hex(&secret),
        key.as_str(),
        operator.as_str()
    ))
}

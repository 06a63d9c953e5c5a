//! Asking a provider's model: again when that may help, another model when it does not, and never
//! for longer than [`MODEL_TOTAL_MS`]. Asking changes nothing anywhere, so it is safe to repeat.
use std::sync::atomic::{AtomicU8, Ordering};

use super::attempt::{AttemptError, Next, attempt};
use super::outcome::{Answered, FailureCode, ModelFailure, Usage};
use crate::base::limits::{
    MODEL_ATTEMPT_MS, MODEL_ATTEMPTS_MAX, MODEL_GARBLED_MAX, MODEL_RETRY_AFTER_MS_MAX, MODEL_RETRY_MS,
    MODEL_TOTAL_MS,
};
use crate::conversation::CallFault;
use crate::models::openai::answer::{Answer, Finish};
use crate::models::openai::request::{ChatRequest, Options};
use crate::models::settings::{Endpoint, ModelCatalog, ModelSettings, provider_of};
use crate::ports::Ports;

/// A model of a provider, and those asked in its place.
pub struct Provider {
    targets: Vec<Target>,
}

/// One model where it is.
pub struct Target {
    /// `provider/name`.
    model: String,
    /// `name`.
    pub name: String,
    pub endpoint: Endpoint,
    pub settings: ModelSettings,
    /// The [`Options`] it has not refused.
    options: AtomicU8,
}

impl Provider {
    /// The model of that name with its fallbacks, if the settings still know its provider.
    pub fn new(catalog: &ModelCatalog, model: &str) -> Result<Self, ModelFailure> {
        let first = Target::new(catalog, model).ok_or_else(|| ModelFailure::not_configured(model))?;
        let fallback = first.settings.fallback.clone();
        let others = fallback.iter().filter_map(|model| Target::new(catalog, model));
        Ok(Self { targets: std::iter::once(first).chain(others).collect() })
    }

    /// Asks until an answer can be used, or what it took has cost `most_microusd`: what is begun is paid. `request` makes the question for a model; `read` takes what
    /// is wanted out of an answer, or says what is wrong with it, after "it ".
    pub async fn ask<T>(
        &self,
        ports: &Ports,
        most_microusd: i64,
        request: impl Fn(&Target) -> ChatRequest,
        read: impl Fn(&Answer) -> Result<T, &'static str>,
    ) -> Result<Answered<T>, ModelFailure> {
        let started_ms = ports.clock.now_ms();
        let mut spent = AskedSoFar { started_ms, most_microusd, ..AskedSoFar::default() };
        let mut first = (FailureCode::Unavailable, CallFault::Provider);
        let mut told: Vec<String> = Vec::new();
        for target in &self.targets {
            match target.ask(ports, &request(target), &read, &mut spent).await {
                Ok(reply) => {
                    let AskedSoFar { usage, cost_microusd, requests, .. } = spent;
                    return Ok(Answered { reply, usage, cost_microusd, requests });
                }
                Err(error) => {
                    if told.is_empty() {
                        first = (error.code, error.fault);
                    }
                    told.push(format!("{} {}", target.model, error.what));
                }
            }
            if spent.is_all() {
                break;
            }
        }
        // The model that was wanted says what kind of failure it is; the others are told of.
        let (code, fault) = first;
        let AskedSoFar { usage, cost_microusd, requests, .. } = spent;
        let message = format!("{}.", told.join("; "));
        Err(ModelFailure { code, fault, message, usage, cost_microusd, requests })
    }
}

/// What asking has taken so far.
#[derive(Default)]
struct AskedSoFar {
    started_ms: i64,
    usage: Usage,
    cost_microusd: i64,
    /// What it may cost.
    most_microusd: i64,
    requests: u32,
    /// Pauses, for a clock that stands still or goes back.
    paused_ms: u64,
}

impl AskedSoFar {
    /// What is left of [`MODEL_TOTAL_MS`].
    fn left_ms(&self, now_ms: i64) -> u64 {
        let gone_ms = u64::try_from(now_ms.saturating_sub(self.started_ms)).unwrap_or(0);
        MODEL_TOTAL_MS.saturating_sub(gone_ms.max(self.paused_ms))
    }

    /// Whether asking once more would cost more than it may.
    const fn is_all(&self) -> bool {
        self.cost_microusd >= self.most_microusd
    }
}

impl Target {
    fn new(catalog: &ModelCatalog, model: &str) -> Option<Self> {
        let provider = provider_of(model)?;
        let endpoint = catalog.providers.get(provider)?.endpoint.clone()?;
        let name = model.get(provider.len() + 1..)?.to_owned();
        let settings = catalog.models.get(model).cloned().unwrap_or_default();
        let options = AtomicU8::new(Options::ALL.bits());
        Some(Self { model: model.to_owned(), name, endpoint, settings, options })
    }

    async fn ask<T>(
        &self,
        ports: &Ports,
        request: &ChatRequest,
        read: &impl Fn(&Answer) -> Result<T, &'static str>,
        spent: &mut AskedSoFar,
    ) -> Result<T, AttemptError> {
        let (mut attempts, mut garbled) = (0, 0);
        loop {
            let left_ms = spent.left_ms(ports.clock.now_ms());
            if left_ms == 0 {
                let what = "was not asked any more: it had taken too long already".to_owned();
                return Err(AttemptError::new(FailureCode::Timeout, what, Next::GiveUp));
            }
            let options = Options::from_bits(self.options.load(Ordering::Relaxed));
            let tried = attempt(ports, self, request, options, MODEL_ATTEMPT_MS.min(left_ms)).await;
            spent.requests += 1;
            if let Some(tokens) = tried.tokens.or(tried.estimate) {
                let cost = self.settings.cost_microusd(tokens.input, tokens.output);
                spent.cost_microusd = spent.cost_microusd.saturating_add(cost);
            }
            let told = tried.tokens.unwrap_or_default();
            let (input_tokens, output_tokens) = (told.input, told.output);
            let uncounted_answers = u32::from(tried.estimate.is_some());
            spent.usage.add(Usage { input_tokens, output_tokens, uncounted_answers });
            let error =
                match tried.outcome.and_then(|answer| read(&answer).map_err(|why| unfit(&answer, why))) {
                    Ok(reply) => return Ok(reply),
                    Err(error) => error,
                };
            attempts += 1;
            garbled += u32::from(error.code == FailureCode::Garbled);
            let asked_pause_ms = match error.next {
                // Every turn here takes a field away, so there is an end to it.
                Next::Without(left) => {
                    self.options.fetch_and(left.bits(), Ordering::Relaxed);
                    attempts -= 1;
                    continue;
                }
                Next::GiveUp => return Err(error),
                Next::Again(_) if spent.is_all() => return Err(paid_enough(tried_often(error, attempts))),
                Next::Again(_) if attempts >= MODEL_ATTEMPTS_MAX || garbled >= MODEL_GARBLED_MAX => {
                    return Err(tried_often(error, attempts));
                }
                // Waiting would not have made an unfit answer better.
                Next::Again(_) if error.code == FailureCode::Garbled => continue,
                Next::Again(pause_ms) => pause_ms,
            };
            let pause_ms = asked_pause_ms.unwrap_or_else(|| own_pause_ms(ports, attempts));
            let left_ms = spent.left_ms(ports.clock.now_ms());
            if pause_ms > MODEL_RETRY_AFTER_MS_MAX || pause_ms >= left_ms {
                return Err(tried_often(error, attempts));
            }
            ports.clock.sleep(pause_ms).await;
            spent.paused_ms = spent.paused_ms.saturating_add(pause_ms);
        }
    }
}

/// The answer is one, but not to this question.
fn unfit(answer: &Answer, why: &str) -> AttemptError {
    let cause = match answer.finish {
        Finish::Done => "",
        Finish::Length => " (it ran into its limit of tokens)",
        Finish::ContentFilter => " (its provider withheld the rest)",
    };
    let what = format!("gave an answer that cannot be used: it {why}{cause}");
    AttemptError::new(FailureCode::Garbled, what, Next::Again(None))
}

fn tried_often(error: AttemptError, attempts: u32) -> AttemptError {
    let what = match attempts {
        0 | 1 => error.what,
        n => format!("{}, asked {n} times", error.what),
    };
    AttemptError { what, ..error }
}

fn paid_enough(error: AttemptError) -> AttemptError {
    let what = format!("{}, and not again because it had cost as much as it may", error.what);
    AttemptError { what, ..error }
}

/// Twice as long each time, and a little different for everybody, so that many who were refused
/// together do not come back together.
fn own_pause_ms(ports: &Ports, attempts: u32) -> u64 {
    let pause_ms = MODEL_RETRY_MS << attempts.saturating_sub(1).min(8);
    let mut byte = [0];
    ports.random.fill(&mut byte);
    pause_ms + pause_ms * u64::from(byte[0]) / 512
}

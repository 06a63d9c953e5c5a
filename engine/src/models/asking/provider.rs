//! Requests to a provider's model: retries where they can help, then fallback models, for at most [`MODEL_TOTAL_MS`].
//! Requests have no side effects, so they can be repeated safely.
use std::sync::atomic::{AtomicU8, Ordering};

use super::attempt::{AttemptError, Next, attempt};
use super::outcome::{Answered, FailureCode, ModelFailure, Usage};
use super::written::Written;
use crate::base::limits::{
    MODEL_ATTEMPT_MS, MODEL_ATTEMPTS_MAX, MODEL_GARBLED_MAX, MODEL_RETRY_AFTER_MS_MAX, MODEL_RETRY_MS,
    MODEL_TOTAL_MS,
};
use crate::base::text::hide_words;
use crate::conversation::CallFault;
use crate::models::openai::completion::{Completion, Finish, TokenCount};
use crate::models::openai::request::{ChatRequest, Options};
use crate::models::settings::{Endpoint, ModelCatalog, ModelSettings, provider_of};
use crate::ports::{Party, Ports};

/// A provider's model and its fallbacks.
pub struct ProviderModel {
    targets: Vec<Target>,
}

/// One model at its endpoint.
pub struct Target {
    /// `provider/name`.
    model: String,
    /// `name`.
    pub name: String,
    pub endpoint: Endpoint,
    /// Whom a request is for.
    pub party: Party,
    pub settings: ModelSettings,
    /// The [`Options`] that it has not rejected.
    options: AtomicU8,
}

impl ProviderModel {
    /// The model with its fallbacks, if its provider is still configured.
    pub fn new(catalog: &ModelCatalog, model: &str) -> Result<Self, ModelFailure> {
        // A model that hears and speaks leaves what is written to another one.
        let model =
            catalog.settings(model).and_then(|settings| settings.text_model.as_deref()).unwrap_or(model);
        let first = Target::new(catalog, model).ok_or_else(|| ModelFailure::not_configured(model))?;
        let fallback = first.settings.fallback.clone();
        let others = fallback.iter().filter_map(|model| Target::new(catalog, model));
        Ok(Self { targets: std::iter::once(first).chain(others).collect() })
    }

    /// Asks until an answer can be used or the budget is exhausted; started requests are billed. A request whose input alone
    /// costs more than is left is not sent. `request` builds the request for a model; `read` extracts the result from an answer, or says what is wrong with it (the message starts with "it ").
    /// Once something of an answer was taken from `written`, no other is asked for.
    pub async fn ask<T>(
        &self,
        ports: &Ports,
        allowance: Allowance,
        request: impl Fn(&Target) -> ChatRequest,
        read: impl Fn(&Completion) -> Result<T, &'static str>,
        written: Option<&Written>,
    ) -> Result<Answered<T>, ModelFailure> {
        let started_ms = ports.clock.now_ms();
        let mut budget = Budget { started_ms, allowance, ..Budget::default() };
        let mut first = (FailureCode::Unavailable, CallFault::Provider);
        let mut failures: Vec<String> = Vec::new();
        for target in &self.targets {
            match target.ask(ports, &request(target), &read, &mut budget, written).await {
                Ok(reply) => {
                    let Budget { usage, cost_microusd, requests, .. } = budget;
                    return Ok(Answered { reply, usage, cost_microusd, requests });
                }
                Err(error) => {
                    if failures.is_empty() {
                        first = (error.code, error.fault);
                    }
                    failures.push(format!("{} {}", target.model, error.what));
                }
            }
            if budget.is_exhausted() || written.is_some_and(Written::was_taken) {
                break;
            }
        }
        // The requested model determines the code; the fallbacks' failures are in the message.
        let (code, fault) = first;
        let Budget { usage, cost_microusd, requests, .. } = budget;
        let message = format!("{}.", failures.join("; "));
        Err(ModelFailure { code, fault, message, usage, cost_microusd, requests })
    }
}

impl ProviderModel {
    /// What a request to the first model costs that was dropped after so many bytes of its answer: an estimate.
    pub fn dropped(&self, request: impl Fn(&Target) -> ChatRequest, written_bytes: usize) -> Answered<()> {
        let Some(target) = self.targets.first() else { return Answered::free(()) };
        let options = Options::from_bits(target.options.load(Ordering::Relaxed));
        let tokens = TokenCount::estimate(request(target).body(&target.name, options).len(), written_bytes);
        let cost_microusd = target.settings.cost_microusd(tokens.input, tokens.output);
        let usage = Usage { uncounted_answers: 1, ..Usage::default() };
        Answered { reply: (), usage, cost_microusd, requests: 1 }
    }
}

/// What one question may cost, in millionths of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// What its conversation may still spend.
    pub left_microusd: i64,
    /// What the input may cost while the conversation has spent nothing: however little is left, the first question is
    /// answered, so a limit may be passed by that one.
    pub first_microusd: i64,
}

impl From<i64> for Allowance {
    fn from(left_microusd: i64) -> Self {
        Self { left_microusd, first_microusd: 0 }
    }
}

/// Time and cost limits of one question, with what was used so far.
#[derive(Default)]
struct Budget {
    started_ms: i64,
    usage: Usage,
    cost_microusd: i64,
    allowance: Allowance,
    requests: u32,
    /// Total of the pauses, for a clock that stops or goes back.
    paused_ms: u64,
}

impl Budget {
    /// What is left of [`MODEL_TOTAL_MS`].
    fn left_ms(&self, now_ms: i64) -> u64 {
        let gone_ms = u64::try_from(now_ms.saturating_sub(self.started_ms)).unwrap_or(0);
        MODEL_TOTAL_MS.saturating_sub(gone_ms.max(self.paused_ms))
    }

    /// Whether the cost limit is reached.
    const fn is_exhausted(&self) -> bool {
        self.cost_microusd >= self.allowance.left_microusd
    }

    /// Whether a request may be sent whose input costs this much.
    fn allows(&self, input_microusd: i64) -> bool {
        let Allowance { left_microusd, first_microusd } = self.allowance;
        match self.cost_microusd {
            0 => input_microusd <= left_microusd.max(first_microusd),
            spent => input_microusd <= left_microusd.saturating_sub(spent),
        }
    }
}

impl Target {
    fn new(catalog: &ModelCatalog, model: &str) -> Option<Self> {
        let provider = provider_of(model)?;
        let endpoint = catalog.providers.get(provider)?.endpoint.clone()?;
        let name = model.get(provider.len() + 1..)?.to_owned();
        let settings = catalog.settings(model).cloned().unwrap_or_default();
        let options = AtomicU8::new(Options::ALL.bits());
        let party = Party::model(provider);
        Some(Self { model: model.to_owned(), name, endpoint, party, settings, options })
    }

    /// What failed, without the provider's key: a server may quote it in an error.
    fn without_key(&self, what: String) -> String {
        match &self.endpoint.api_key {
            Some(key) => hide_words(&what, &[key.reveal()], "…"),
            None => what,
        }
    }

    async fn ask<T>(
        &self,
        ports: &Ports,
        request: &ChatRequest,
        read: &impl Fn(&Completion) -> Result<T, &'static str>,
        budget: &mut Budget,
        written: Option<&Written>,
    ) -> Result<T, AttemptError> {
        let (mut attempts, mut garbled) = (0, 0);
        loop {
            let left_ms = budget.left_ms(ports.clock.now_ms());
            if left_ms == 0 {
                let what = "was not asked: the time limit was reached".to_owned();
                return Err(AttemptError::new(FailureCode::Timeout, what, Next::GiveUp));
            }
            let options = Options::from_bits(self.options.load(Ordering::Relaxed));
            let deadline_ms = MODEL_ATTEMPT_MS.min(left_ms);
            let body = request.body(&self.name, options);
            let input = TokenCount::estimate(body.len(), 0);
            if !budget.allows(self.settings.cost_microusd(input.input, input.output)) {
                let what = "was not asked: the question costs more than is left of the cost limit".to_owned();
                return Err(AttemptError::new(FailureCode::CostLimit, what, Next::GiveUp));
            }
            let tried = attempt(ports, self, body, options, deadline_ms, written).await;
            budget.requests += 1;
            if let Some(tokens) = tried.tokens.or(tried.estimate) {
                let cost = self.settings.cost_microusd(tokens.input, tokens.output);
                budget.cost_microusd = budget.cost_microusd.saturating_add(cost);
            }
            let failures = tried.tokens.unwrap_or_default();
            let (input_tokens, output_tokens) = (failures.input, failures.output);
            let uncounted_answers = u32::from(tried.estimate.is_some());
            budget.usage.add(Usage { input_tokens, output_tokens, uncounted_answers });
            let read = |answer: Completion| {
                let reply = read(&answer).map_err(|why| unusable(&answer, why))?;
                if let Some(written) = written.filter(|_| answer.finish == Finish::Length) {
                    written.cut_short();
                }
                Ok(reply)
            };
            let error = match tried.outcome.and_then(read) {
                Ok(reply) => return Ok(reply),
                Err(error) => AttemptError { what: self.without_key(error.what), ..error },
            };
            // Before a pause, in which it could be taken.
            if written.is_some_and(|written| !written.forget()) {
                return Err(error);
            }
            attempts += 1;
            garbled += u32::from(error.code == FailureCode::Garbled);
            let asked_pause_ms = match error.next {
                // Each iteration here removes an option, so the loop terminates.
                Next::Without(left) => {
                    self.options.fetch_and(left.bits(), Ordering::Relaxed);
                    attempts -= 1;
                    continue;
                }
                Next::GiveUp => return Err(error),
                Next::Again(_) if budget.is_exhausted() => {
                    return Err(over_budget(after_attempts(error, attempts)));
                }
                Next::Again(_) if attempts >= MODEL_ATTEMPTS_MAX || garbled >= MODEL_GARBLED_MAX => {
                    return Err(after_attempts(error, attempts));
                }
                // A pause would not improve an unusable answer.
                Next::Again(_) if error.code == FailureCode::Garbled => continue,
                Next::Again(pause_ms) => pause_ms,
            };
            let pause_ms = asked_pause_ms.unwrap_or_else(|| own_pause_ms(ports, attempts));
            let left_ms = budget.left_ms(ports.clock.now_ms());
            if pause_ms > MODEL_RETRY_AFTER_MS_MAX || pause_ms >= left_ms {
                return Err(after_attempts(error, attempts));
            }
            ports.clock.sleep(pause_ms).await;
            budget.paused_ms = budget.paused_ms.saturating_add(pause_ms);
        }
    }
}

/// A valid completion that does not answer the request.
fn unusable(answer: &Completion, why: &str) -> AttemptError {
    let cause = match answer.finish {
        Finish::Done => "",
        Finish::Length => " (it reached its token limit)",
        Finish::ContentFilter => " (the provider's content filter removed the rest)",
    };
    let what = format!("gave an unusable answer: it {why}{cause}");
    AttemptError::new(FailureCode::Garbled, what, Next::Again(None))
}

fn after_attempts(error: AttemptError, attempts: u32) -> AttemptError {
    let what = match attempts {
        0 | 1 => error.what,
        n => format!("{}, asked {n} times", error.what),
    };
    AttemptError { what, ..error }
}

fn over_budget(error: AttemptError) -> AttemptError {
    let what = format!("{}, not retried because the cost limit was reached", error.what);
    AttemptError { what, ..error }
}

/// Exponential backoff with jitter, so that requests that failed together are not retried together.
fn own_pause_ms(ports: &Ports, attempts: u32) -> u64 {
    let pause_ms = MODEL_RETRY_MS << attempts.saturating_sub(1).min(8);
    let mut byte = [0];
    ports.random.fill(&mut byte);
    pause_ms + pause_ms * u64::from(byte[0]) / 512
}

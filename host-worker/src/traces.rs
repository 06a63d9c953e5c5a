//! Traces of calls over OTLP/HTTP. What ends a call collects its spans and goes on; they are sent when the invocation has done
//! everything else. What the collector does not take in time is lost.
use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use sidetone_engine::base::limits::{
    TRACE_BYTES_MAX, TRACE_DEADLINE_MS, TRACE_SPANS_AT_ONCE, TRACE_SPANS_MAX,
};
use sidetone_engine::ports::otlp::{self, Collector};
use sidetone_engine::ports::{self, Clock as _, Step};
use worker::{
    AbortController, CacheMode, Delay, Fetch, Headers, Method, Request, RequestInit, RequestRedirect,
    console_log, console_warn,
};

use crate::http::AbortOnDrop;
use crate::system::{PlatformClock, PlatformRandom};

/// How long spans on their way count at most: the platform may stop whoever sends them.
const LEAVING_MS_MAX: i64 = 30_000;

/// Collects spans until they are sent.
pub struct Traces {
    collector: Collector,
    waiting: RefCell<Waiting>,
    /// Whether the last ones were lost, so that this is logged once.
    is_lost: Cell<bool>,
    /// Whether there was no room for the last ones, likewise.
    is_full: Cell<bool>,
}

#[derive(Default)]
struct Waiting {
    spans: Vec<String>,
    bytes: usize,
    /// Those on their way.
    leaving: Vec<Leaving>,
}

/// Spans on their way: until when they count, how many they are, and their size.
#[derive(Clone, Copy, PartialEq)]
struct Leaving {
    until_ms: i64,
    spans: usize,
    bytes: usize,
}

impl Waiting {
    /// The number and the size of all that are kept.
    fn kept(&mut self, now_ms: i64) -> (usize, usize) {
        self.leaving.retain(|leaving| now_ms < leaving.until_ms);
        let here = (self.spans.len(), self.bytes);
        self.leaving.iter().fold(here, |(spans, bytes), one| (spans + one.spans, bytes + one.bytes))
    }

    fn leave(&mut self, now_ms: i64) -> (Vec<String>, Leaving) {
        let spans = std::mem::take(&mut self.spans);
        let bytes = std::mem::take(&mut self.bytes);
        let leaving = Leaving { until_ms: now_ms + LEAVING_MS_MAX, spans: spans.len(), bytes };
        self.leaving.push(leaving);
        (spans, leaving)
    }
}

impl Traces {
    /// For this collector.
    pub fn new(collector: Collector) -> Self {
        Self { collector, waiting: RefCell::default(), is_lost: Cell::default(), is_full: Cell::default() }
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.waiting.borrow().spans.is_empty()
    }

    /// Sends the collected spans.
    pub async fn send(&self) {
        if self.is_empty() {
            return;
        }
        let (spans, leaving) = self.waiting.borrow_mut().leave(PlatformClock.now_ms());
        for spans in spans.chunks(TRACE_SPANS_AT_ONCE) {
            let problem = self.post(self.collector.body(spans)).await.err();
            let has_failed = problem.is_some();
            self.note(problem);
            if has_failed {
                // The others would take as long again.
                break;
            }
        }
        let mut waiting = self.waiting.borrow_mut();
        if let Some(at) = waiting.leaving.iter().position(|one| *one == leaving) {
            waiting.leaving.swap_remove(at);
        }
    }

    fn note(&self, problem: Option<String>) {
        match (self.is_lost.replace(problem.is_some()), problem) {
            (false, Some(problem)) => {
                console_warn!("the collector takes no traces: they are lost: {problem}");
            }
            (true, None) => console_log!("the collector takes traces again"),
            _ => {}
        }
    }

    async fn post(&self, body: String) -> Result<(), String> {
        let request = self.request(body).map_err(|error| error.to_string())?;
        let controller = AbortController::default();
        let signal = controller.signal();
        // Nobody reads the response's body.
        let _abort = AbortOnDrop::new(controller);
        let sending = Fetch::Request(request);
        let deadline = Delay::from(Duration::from_millis(TRACE_DEADLINE_MS));
        match select(pin!(sending.send_with_signal(&signal)), pin!(deadline)).await {
            Either::Left((Ok(response), _)) if (200..300).contains(&response.status_code()) => Ok(()),
            Either::Left((Ok(response), _)) => Err(format!("it answered {}", response.status_code())),
            Either::Left((Err(error), _)) => Err(error.to_string()),
            Either::Right(_) => Err(format!("it did not answer within {TRACE_DEADLINE_MS} ms")),
        }
    }

    fn request(&self, body: String) -> worker::Result<Request> {
        let headers = Headers::new();
        for (name, value) in &self.collector.headers {
            headers.set(name, value)?;
        }
        headers.set("content-type", "application/json")?;
        let mut init = RequestInit::new();
        init.with_method(Method::Post)
            .with_headers(headers)
            .with_redirect(RequestRedirect::Manual)
            .with_cache(CacheMode::NoStore)
            .with_body(Some(body.into()));
        Request::new_with_init(&self.collector.url, &init)
    }
}

impl ports::Traces for Traces {
    fn ended(&self, call: Step) {
        let spans = otlp::spans(&call, &PlatformRandom);
        let size: usize = spans.iter().map(String::len).sum();
        let mut waiting = self.waiting.borrow_mut();
        let (number, bytes) = waiting.kept(PlatformClock.now_ms());
        let is_full = number + spans.len() > TRACE_SPANS_MAX || bytes + size > TRACE_BYTES_MAX;
        if !is_full {
            waiting.spans.extend(spans);
            waiting.bytes += size;
        }
        drop(waiting);
        if !self.is_full.replace(is_full) && is_full {
            console_warn!("there is no room for a call's trace: it is lost");
        }
    }
}

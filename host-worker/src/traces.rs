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
use sidetone_engine::ports::{self, Step};
use worker::{
    AbortController, CacheMode, Delay, Fetch, Headers, Method, Request, RequestInit, RequestRedirect,
    console_warn,
};

use crate::http::AbortOnDrop;
use crate::system::PlatformRandom;

/// Collects spans until they are sent.
pub struct Traces {
    collector: Collector,
    waiting: RefCell<Waiting>,
    /// Whether the last ones were lost, so that this is logged once.
    is_lost: Cell<bool>,
}

#[derive(Default)]
struct Waiting {
    spans: Vec<String>,
    bytes: usize,
}

impl Traces {
    /// For this collector.
    pub fn new(collector: Collector) -> Self {
        Self { collector, waiting: RefCell::default(), is_lost: Cell::default() }
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.waiting.borrow().spans.is_empty()
    }

    /// Sends the collected spans.
    pub async fn send(&self) {
        let Waiting { spans, .. } = self.waiting.take();
        for spans in spans.chunks(TRACE_SPANS_AT_ONCE) {
            let problem = self.post(self.collector.body(spans)).await.err();
            self.note(problem);
        }
    }

    fn note(&self, problem: Option<String>) {
        if let (false, Some(problem)) = (self.is_lost.replace(problem.is_some()), problem) {
            console_warn!("the collector takes no traces: they are lost: {problem}");
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
        let mut waiting = self.waiting.borrow_mut();
        let spans = otlp::spans(&call, &PlatformRandom);
        let (number, bytes) =
            (waiting.spans.len() + spans.len(), waiting.bytes + spans.iter().map(String::len).sum::<usize>());
        if number <= TRACE_SPANS_MAX && bytes <= TRACE_BYTES_MAX {
            waiting.spans.extend(spans);
            waiting.bytes = bytes;
        } else {
            drop(waiting);
            self.note(Some("too many wait".to_owned()));
        }
    }
}

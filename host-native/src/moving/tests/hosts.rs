//! The two hosts of a move, as far as the command line sees them.
use std::cell::{Cell, RefCell};
use std::future::ready;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{Request, Response};
use serde_json::{Value, json};
use sidetone_engine::storage::moves::part::{Chain, Head, Kind, Part, Tally};

use crate::moving::host::MoveHost;
use crate::moving::sample::{head, parts, workspace};
use crate::moving::stop::Stop;

/// The import's id.
pub(super) const IMPORT: &str = "imp_1";
/// The code that opens it.
pub(super) const CODE: &str = "move_imp_1";

fn said(status: u16, body: &Value) -> Response<Bytes> {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    Response::builder().status(status).body(body).unwrap()
}

fn refused(reason: &str, details: &Value) -> Response<Bytes> {
    let mut details = details.clone();
    details["reason"] = json!(reason);
    let message = format!("Refused as {reason}.");
    said(409, &json!({"error": {"code": "move_refused", "message": message, "details": details}}))
}

fn nothing() -> Response<Bytes> {
    said(404, &json!({"error": {"code": "not_found", "message": "Nothing is there."}}))
}

/// What a request asks for, and its body as JSON.
fn asked(request: &Request<Bytes>) -> (String, Value) {
    let path = request.uri().to_string().replace(&*workspace(), "WS");
    (format!("{} {path}", request.method()), serde_json::from_slice(request.body()).unwrap_or_default())
}

/// A host whose workspace Acme moves away.
#[derive(Debug)]
pub(super) struct Source {
    /// How often it still waits.
    waits: Cell<u32>,
    state: RefCell<&'static str>,
    exports: Cell<u32>,
    released: RefCell<Option<(String, String)>>,
}

impl Source {
    /// It is asked so often before it is frozen.
    pub(super) fn waiting(times: u32) -> Self {
        Self {
            waits: Cell::new(times),
            state: RefCell::new("none"),
            exports: Cell::new(0),
            released: RefCell::new(None),
        }
    }

    /// The import that it was handed over to, and where that is.
    pub(super) fn released(&self) -> Option<(String, String)> {
        self.released.borrow().clone()
    }

    pub(super) fn is_closed(&self) -> bool {
        *self.state.borrow() != "none"
    }

    fn told(&self) -> Value {
        let state = *self.state.borrow();
        let export_id = format!("exp_{}", self.exports.get());
        let mut told = json!({"state": state, "export_id": export_id});
        if ["frozen", "released"].contains(&state) {
            told["head"] = serde_json::from_str(&head(&export_id).to_line()).unwrap();
        }
        if let Some((import_id, moved_to)) = self.released() {
            told["import_id"] = json!(import_id);
            told["moved_to"] = json!(moved_to);
            told["released_at"] = json!("2026-11-28T17:05:09.000Z");
        }
        told
    }

    fn close(&self) -> Response<Bytes> {
        let state = *self.state.borrow();
        match state {
            "none" => {
                self.exports.set(self.exports.get() + 1);
                self.state.replace("closing");
            }
            "closing" | "frozen" => {}
            _ => return refused("moved", &json!({})),
        }
        let waits = self.waits.get();
        if waits > 0 {
            self.waits.set(waits - 1);
            let line = json!({"what": "lines", "count": 1, "until": "2026-11-28T16:40:00.000Z"});
            let mut told = self.told();
            told["waiting_for"] = json!([{"what": "conversations", "count": waits}, line]);
            return said(200, &told);
        }
        self.state.replace("frozen");
        said(200, &self.told())
    }

    fn part(&self, place: Option<&str>) -> Response<Bytes> {
        if !["frozen", "released"].contains(&*self.state.borrow()) {
            return refused("not_frozen", &json!({}));
        }
        let parts = parts();
        let at = match place {
            None => 0,
            Some(place) => {
                1 + parts.iter().position(|part| part.head.next.as_deref() == Some(place)).unwrap()
            }
        };
        Response::new(parts[at].to_bytes())
    }

    fn release(&self, body: &Value) -> Response<Bytes> {
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        let to = (text("import_id"), text("moved_to"));
        let state = *self.state.borrow();
        let export_id = format!("exp_{}", self.exports.get());
        match state {
            "frozen" | "released" if text("export_id") != export_id => {
                return refused("other_export", &json!({}));
            }
            "frozen" => {
                self.state.replace("released");
                self.released.replace(Some(to.clone()));
            }
            "released" if self.released().is_some_and(|(import, _)| import == to.0) => {}
            "released" => return refused("released_elsewhere", &json!({})),
            _ => return refused("not_frozen", &json!({})),
        }
        said(200, &json!({"code": format!("move_{}", to.0)}))
    }

    fn erase(&self) -> Response<Bytes> {
        let state = *self.state.borrow();
        let next = match state {
            "released" => "erasing",
            "erasing" | "gone" => "gone",
            _ => return refused("not_released", &json!({})),
        };
        self.state.replace(next);
        said(200, &json!({"state": next, "table": "calls", "rows_erased": 2}))
    }

    fn answer(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let (asked, body) = asked(request);
        match asked.as_str() {
            "GET /operator/workspaces?named=Acme%20%26%20S%C3%B6hne" => {
                said(200, &json!({"id": workspace(), "name": "Acme", "state": null}))
            }
            "POST /operator/exports/WS" => self.close(),
            "GET /operator/exports/WS" if !self.is_closed() => nothing(),
            "GET /operator/exports/WS" => said(200, &self.told()),
            "DELETE /operator/exports/WS" if self.released().is_some() => refused("moved", &json!({})),
            "DELETE /operator/exports/WS" => {
                self.state.replace("none");
                said(204, &Value::Null)
            }
            "POST /operator/exports/WS/release" => self.release(&body),
            "POST /operator/exports/WS/erase" => self.erase(),
            path => match path.strip_prefix("GET /operator/exports/WS/parts") {
                Some(query) => self.part(query.strip_prefix("?after=")),
                None => nothing(),
            },
        }
    }
}

/// A host that takes it.
#[derive(Debug, Default)]
pub(super) struct Target {
    import: RefCell<Option<Arriving>>,
    refuses: RefCell<Option<String>>,
    other_sends: Cell<u64>,
}

#[derive(Debug)]
struct Arriving {
    head: Head,
    state: &'static str,
    received: Vec<Bytes>,
}

impl Arriving {
    /// Of its parts without the end.
    fn chain(&self) -> Chain {
        let mut chain = Chain::of(&self.head);
        let parts = self.received.iter().map(|bytes| Part::read(bytes).unwrap().head);
        parts.filter(|head| !matches!(head.kind, Kind::End(_))).for_each(|head| chain.add(&head));
        chain
    }
}

impl Target {
    /// The parts that it has.
    pub(super) fn received(&self) -> Vec<Bytes> {
        self.import.borrow().as_ref().map(|import| import.received.clone()).unwrap_or_default()
    }

    /// It begins nothing, for this reason.
    pub(super) fn refuse(&self, reason: &str) {
        self.refuses.replace(Some(reason.to_owned()));
    }

    /// Before the second part, another command sends so many.
    pub(super) fn another_sends(&self, parts: u64) {
        self.other_sends.set(parts);
    }

    fn begin(&self, body: &Value) -> Response<Bytes> {
        if let Some(reason) = &*self.refuses.borrow() {
            return refused(reason, &json!({}));
        }
        let head = Head::from_line(&body.to_string()).unwrap();
        let mut import = self.import.borrow_mut();
        let import = import.get_or_insert_with(|| Arriving { head, state: "arriving", received: Vec::new() });
        let warnings = ["It does not know the carrier `plivo`."];
        let next = import.received.len() + 1;
        let chain = import.chain();
        said(200, &json!({"state": import.state, "next_part": next, "chain": chain, "warnings": warnings}))
    }

    fn told(&self) -> Response<Bytes> {
        let import = self.import.borrow();
        let Some(import) = &*import else { return nothing() };
        let mut told = json!({
            "state": import.state,
            "export_id": import.head.export_id,
            "base_url": "https://voice.example.com",
            "next_part": import.received.len() + 1,
            "chain": import.chain(),
        });
        if import.state != "arriving" {
            told["import_id"] = json!(IMPORT);
        }
        said(200, &told)
    }

    fn receive(&self, n: usize, bytes: &Bytes) -> Response<Bytes> {
        let mut import = self.import.borrow_mut();
        let Some(import) = &mut *import else { return nothing() };
        if n == 2 {
            let ahead = self.other_sends.take();
            let sent = parts().into_iter().skip(1).take(usize::try_from(ahead).unwrap());
            import.received.extend(sent.map(|part| part.to_bytes()));
        }
        let next = import.received.len() + 1;
        match n {
            n if n > next => return refused("out_of_order", &json!({"next_part": next})),
            n if n == next => import.received.push(bytes.clone()),
            _ => {}
        }
        said(200, &json!({"next_part": import.received.len() + 1}))
    }

    fn verify(&self) -> Response<Bytes> {
        let mut import = self.import.borrow_mut();
        let Some(import) = &mut *import else { return nothing() };
        let mut tally = Tally::of(&import.head);
        let received: Vec<Part> = import.received.iter().map(|bytes| Part::read(bytes).unwrap()).collect();
        let (end, others) = received.split_last().unwrap();
        others.iter().for_each(|part| tally.add(part).unwrap());
        assert_eq!(end.head.kind, Kind::End(tally));
        import.state = "arrived";
        said(200, &json!({"state": "arrived", "import_id": IMPORT}))
    }

    fn open(&self, body: &Value) -> Response<Bytes> {
        let mut import = self.import.borrow_mut();
        let Some(import) = &mut *import else { return nothing() };
        if body["code"] != CODE {
            return refused("wrong_code", &json!({}));
        }
        import.state = match import.state {
            "arrived" => "opening",
            "opening" | "running" => "running",
            _ => return refused("not_arrived", &json!({})),
        };
        said(200, &json!({"state": import.state}))
    }

    fn remove(&self) -> Response<Bytes> {
        let mut import = self.import.borrow_mut();
        match &mut *import {
            Some(arriving) if arriving.state != "canceling" => {
                arriving.state = "canceling";
                said(200, &json!({"state": "canceling"}))
            }
            _ => {
                *import = None;
                said(204, &Value::Null)
            }
        }
    }

    fn answer(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let (asked, body) = asked(request);
        match asked.as_str() {
            "GET /operator/workspaces?named=WS" => said(200, &json!({"id": workspace(), "name": "Acme"})),
            "POST /operator/imports" => self.begin(&body),
            "GET /operator/imports/WS" => self.told(),
            "POST /operator/imports/WS/verify" => self.verify(),
            "POST /operator/imports/WS/open" => self.open(&body),
            "DELETE /operator/imports/WS" => self.remove(),
            path => match path.strip_prefix("PUT /operator/imports/WS/parts/") {
                Some(n) => self.receive(n.parse().unwrap(), request.body()),
                None => nothing(),
            },
        }
    }
}

macro_rules! host {
    ($host:ident, $place:literal) => {
        impl MoveHost for $host {
            fn ask(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response<Bytes>, Stop>> {
                Box::pin(ready(Ok(self.answer(&request))))
            }

            fn place(&self) -> &str {
                $place
            }

            fn option(&self) -> String {
                format!(" --url {}", $place)
            }
        }
    };
}

host!(Source, "https://box.example.com");
host!(Target, "https://edge.example.com");

/// A command that dies at its nth request, whichever host that is to.
#[derive(Debug)]
pub(super) struct Dying {
    left: Cell<u32>,
    dies_after: bool,
}

impl Dying {
    /// Before or after the nth request.
    pub(super) fn shared(nth: u32, dies_after: bool) -> Self {
        Self { left: Cell::new(nth), dies_after }
    }

    /// A host, as this command sees it.
    pub(super) fn host<'a>(&'a self, host: &'a dyn MoveHost) -> DyingHost<'a> {
        DyingHost { command: self, host }
    }
}

pub(super) struct DyingHost<'a> {
    command: &'a Dying,
    host: &'a dyn MoveHost,
}

impl MoveHost for DyingHost<'_> {
    fn ask(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response<Bytes>, Stop>> {
        Box::pin(async move {
            let left = self.command.left.get().saturating_sub(1);
            self.command.left.set(left);
            if left == 0 && !self.command.dies_after {
                return Err(Stop::failed("it died"));
            }
            let answer = self.host.ask(request).await;
            if left == 0 { Err(Stop::failed("it died")) } else { answer }
        })
    }

    fn place(&self) -> &str {
        self.host.place()
    }

    fn option(&self) -> String {
        self.host.option()
    }
}

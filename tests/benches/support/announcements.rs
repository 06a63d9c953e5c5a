//! The share of an incoming call's webhook that is spent on verification, parsing and the answer document.
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderMap;
use sidetone::keys::RingKeys;
use sidetone::sandbox::block_on;
use sidetone_engine::base::ids::{CallId, Id, WorkspaceId};
use sidetone_engine::carriers::{
    Callback, Carrier, CarrierEvent, CarrierName, Check, Connect, IncomingCall, Reply,
};
use sidetone_engine::config::Config;
use sidetone_engine::live::telephony::Route;
use sidetone_engine::live::telephony::leg::command_id;
use sidetone_engine::live::telephony::token::{CallToken, Purpose};
use sidetone_engine::ports::Keys;
use sidetone_tests::fakes::carrier::{CallEvent, CallbackRequest};
use sidetone_tests::process::{Folder, bootstrap_key};

use crate::callbacks::{self, Line, callback, now_ms};
use crate::desk::{self, quantile_us, wires};

/// The number of calls to each carrier's number.
const CALLS: usize = 250;
/// Calls before this one are not measured.
const WARM_UP: usize = 50;
/// Repetitions of the measurement in this process; the median counts.
const ROUNDS: usize = 15;
/// The allowed share of the three stages in a request's time.
pub const SHARE_MAX: f64 = 0.5;

/// One carrier's callbacks, with the binary's response times.
struct Announced {
    provider: &'static str,
    callbacks: Vec<CallbackRequest>,
    /// For the first callback of a call, which stores the call.
    first: Vec<Duration>,
    /// For the repeated callback, which writes nothing.
    again: Vec<Duration>,
}

/// Prints the cost by carrier; returns the greatest share.
pub fn measure() -> f64 {
    println!("An incoming call's webhook, one at a time: microseconds");
    println!(
        "{:<8} {:>8} {:>8} {:>8} {:>12} {:>7} {:>12} {:>7}",
        "", "check", "read", "document", "request p50", "share", "repeated p50", "share"
    );
    let mut greatest = 0.0_f64;
    for announced in announce() {
        let ours = InProcess::new(announced.provider);
        let [check, read, document] = ours.stages_us(&announced.callbacks);
        let all = check + read + document;
        let (first, again) = (quantile_us(&announced.first, 0.5), quantile_us(&announced.again, 0.5));
        println!(
            "{:<8} {check:>8.1} {read:>8.1} {document:>8.1} {first:>12.0} {:>6.1}% {again:>12.0} {:>6.1}%",
            announced.provider,
            all / first * 100.0,
            all / again * 100.0
        );
        greatest = greatest.max(all / first);
    }
    greatest
}

/// Announces incoming calls to the binary, alternating between the carriers.
fn announce() -> Vec<Announced> {
    let (folder, key) = (Folder::new(), bootstrap_key(1));
    let server = callbacks::start(&folder.path().join("data"), &key);
    let (_, numbers) = desk::desk(&mut server.connect(&key), 4 * CALLS + 1);
    let wires = wires();
    let mut all: Vec<Announced> = wires
        .iter()
        .map(|(carrier, _)| Announced {
            provider: carrier.provider(),
            callbacks: Vec::new(),
            first: Vec::new(),
            again: Vec::new(),
        })
        .collect();
    let mut line = Line::new(server.address());
    let mut send = |request: &CallbackRequest| {
        let sent = line.send(request);
        assert_eq!(sent.problem, None);
        sent.time
    };
    for nth in 0..CALLS {
        for (at, (carrier, wire)) in wires.iter().enumerate() {
            let phone = carrier.prepare_call(&format!("+4477{nth:06}7"), &numbers[at]);
            let request = callback(&**wire, phone.call(), &CallEvent::Incoming, 0)
                .expect("the carrier announces calls");
            let (first, again) = (send(&request), send(&request));
            if nth >= WARM_UP {
                all[at].first.push(first);
                all[at].again.push(again);
                all[at].callbacks.push(request);
            }
        }
    }
    let calls = server.connect(&key).expect(200, "GET", "/calls?limit=1", None);
    assert_eq!(calls["pagination"]["total"], 4 * CALLS, "every call is in the call log once");
    assert!(server.stop().success(), "the server stops cleanly");
    all
}

/// The same work in this process, without socket, database or runtime.
struct InProcess {
    carrier: Arc<dyn Carrier>,
    secret: String,
    base_url: String,
    token: CallToken,
}

impl InProcess {
    fn new(provider: &str) -> Self {
        let settings = desk::settings();
        let lookup =
            |name: &str| settings.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        let config = Config::from_settings(lookup, "", "").expect("the settings are valid");
        let provider = CarrierName::parse(provider).expect("a carrier");
        let carrier = config.carriers.get(provider).expect("an account").clone();
        let token = CallToken::new(&an_id::<WorkspaceId>(), &an_id::<CallId>());
        Self { carrier, secret: config.secret, base_url: config.base_url, token }
    }

    /// Microseconds per callback for each of the three stages.
    fn stages_us(&self, callbacks: &[CallbackRequest]) -> [f64; 3] {
        let headers: Vec<HeaderMap> = callbacks.iter().map(headers).collect();
        let now_ms = now_ms();
        let callbacks: Vec<Callback<'_>> = callbacks
            .iter()
            .zip(&headers)
            .map(|(sent, headers)| Callback {
                method: sent.method,
                url: &sent.url,
                headers,
                body: &sent.body,
                now_ms,
            })
            .collect();
        let incoming: Vec<IncomingCall> = callbacks.iter().map(|callback| self.read(callback)).collect();
        let each = |work: &dyn Fn(usize)| {
            let mut rounds: Vec<f64> = (0..ROUNDS)
                .map(|_| {
                    let began = Instant::now();
                    (0..callbacks.len()).for_each(work);
                    began.elapsed().as_secs_f64() * 1e6 / callbacks.len() as f64
                })
                .collect();
            rounds.sort_by(f64::total_cmp);
            rounds[ROUNDS / 2]
        };
        [
            each(&|nth| assert!(self.is_genuine(&callbacks[nth]), "the signature is valid")),
            each(&|nth| drop(std::hint::black_box(self.read(&callbacks[nth])))),
            each(&|nth| drop(std::hint::black_box(self.document(&incoming[nth], now_ms)))),
        ]
    }

    fn is_genuine(&self, callback: &Callback<'_>) -> bool {
        match self.carrier.check(callback) {
            Check::Genuine | Check::GenuineToken { .. } => true,
            Check::Ed25519 { public_key, message, signature } => {
                block_on(RingKeys.verify_ed25519(public_key, Bytes::from(message), signature))
            }
            Check::Unsigned | Check::Forged(_) => false,
        }
    }

    /// Routes and parses a callback.
    fn read(&self, callback: &Callback<'_>) -> IncomingCall {
        let path = callback.url.strip_prefix(&self.base_url).expect("a URL of the service");
        let path = path.split('?').next().unwrap_or_default();
        assert_eq!(Route::of(path), Some(Route::Voice(self.carrier.provider())));
        match self.carrier.read(callback).expect("the callback parses").pop() {
            Some(CarrierEvent::Incoming(call)) => call,
            other => panic!("{other:?} is not an incoming call"),
        }
    }

    /// The answer document or command, with its signed URLs.
    fn document(&self, call: &IncomingCall, now_ms: i64) -> Reply {
        let sign = |purpose| self.token.sign(&self.secret, purpose).expect("the ids can be encoded");
        let base = format!("{}/carriers/{}", self.base_url, self.carrier.provider().as_str());
        let (about, media) = (sign(Purpose::Callback), sign(Purpose::Media));
        self.carrier.answer(&Connect {
            carrier_call_id: &call.carrier_call_id,
            our_number: &call.to,
            media_url: &format!("{}/media/{media}", base.replacen("http", "ws", 1)),
            status_url: &format!("{base}/status?call={about}"),
            command_id: &command_id(&self.token.call_id, "answer"),
            now_ms,
            max_seconds: 3_600,
        })
    }
}

fn headers(callback: &CallbackRequest) -> HeaderMap {
    let pair = |(name, value): &(&'static str, String)| {
        let name = http::HeaderName::from_bytes(name.as_bytes()).expect("a name");
        (name, http::HeaderValue::from_str(value).expect("a value"))
    };
    callback.headers.iter().map(pair).collect()
}

fn an_id<I: Id>() -> I {
    I::from_bytes([7; 16])
}

//! Checks of the call log and of events.
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;
use sidetone_tests::fakes::carrier::EndKind;
use sidetone_tests::process::Client;
use sidetone_tests::receiver::Receiver;

use crate::phones::{Played, Script};
use crate::round::{Round, TIMEOUT, lock, text};

/// The calls of both workspaces.
pub struct Log(Vec<Vec<Value>>);

impl Log {
    pub fn read(round: &Round) -> Self {
        let read = |key: &String| {
            let list = Client::new(round.address(), key).expect(200, "GET", "/calls?limit=1000", None);
            list["calls"].as_array().expect("calls").clone()
        };
        Self(round.keys.iter().map(read).collect())
    }

    /// Reads the call log after the end of all calls.
    pub fn settled(round: &Round) -> Self {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let log = Self::read(round);
            let open: Vec<&Value> = log.calls().filter(|call| call["status"] != "ended").collect();
            if open.is_empty() {
                return log;
            }
            assert!(Instant::now() < deadline, "calls without an end: {open:#?}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    pub fn count(&self) -> usize {
        self.calls().count()
    }

    fn calls(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().flatten()
    }

    /// The calls to or from a unique number.
    fn with(&self, workspace: usize, side: &str, number: &str) -> Vec<&Value> {
        self.0[workspace].iter().filter(|call| call[side] == number).collect()
    }

    /// One order per key and one call per order; every call that a client got or that rang is in the log once.
    pub fn check_orders(&self, round: &Round) {
        for order in lock(&round.ordered).iter() {
            let calls = self.with(order.workspace, "to", &order.to);
            let orders = round.carriers.get(order.provider).orders(&order.to).len();
            let what = format!("{} {}: {orders} orders, {calls:#?}", order.provider, order.to);
            if order.is_refused() {
                // Each rejected try was an order, and one try may have died before it was sent.
                assert!((orders..=orders + 1).contains(&calls.len()) && calls.len() <= order.tries, "{what}");
            } else {
                assert!(orders <= 1 && calls.len() <= 1, "{what}");
            }
            if orders > 0 || order.answer.is_some() {
                assert!(!calls.is_empty(), "{what}");
            }
            if let Some(id) = order.call_id() {
                assert!(calls.iter().any(|call| call["id"] == id.as_str()), "{id} of {what}");
            }
        }
        for played in lock(&round.played).iter() {
            let calls = self.of(played);
            let what = format!("{} {:?} {}: {calls:#?}", played.provider, played.script, played.id);
            assert_eq!(calls.len(), 1, "{what}");
            if !played.outbound || played.script != Script::Silent {
                assert_eq!(calls[0]["carrier_call_id"], played.id.as_str(), "{what}");
            }
        }
        let known = lock(&round.ordered).iter().map(|order| order.to.clone()).collect::<BTreeSet<_>>();
        let callers = lock(&round.played).iter().map(|played| played.from.clone()).collect::<BTreeSet<_>>();
        for call in self.calls() {
            assert!(
                known.contains(&text(&call["to"])) || callers.contains(&text(&call["from"])),
                "unexpected call: {call}"
            );
        }
        let ids: Vec<String> = self
            .calls()
            .filter(|call| !call["carrier_call_id"].is_null())
            .map(|call| format!("{} {}", call["provider"], call["carrier_call_id"]))
            .collect();
        assert_eq!(
            ids.iter().collect::<BTreeSet<_>>().len(),
            ids.len(),
            "two calls have the same carrier id"
        );
    }

    /// Ends that the carrier reported are in the log immediately, and the first report counts.
    pub fn check_told(&self, round: &Round) {
        for played in lock(&round.played).iter().filter(|played| !played.media) {
            let call = self.of(played)[0];
            let reason = match played.script {
                Script::Silent => continue,
                Script::Ends(EndKind::Busy) | Script::EndsFirst(EndKind::Busy) => "busy",
                Script::Ends(EndKind::NoAnswer) | Script::EndsFirst(EndKind::NoAnswer) => "no_answer",
                // These two carriers report that the person hung up. The expected reason depends on how long the person waited.
                Script::Short | Script::Talks | Script::Vanishes
                    if ["telnyx", "plivo"].contains(&played.provider)
                        && call["ended_reason"] == "user_hung_up" =>
                {
                    "user_hung_up"
                }
                Script::Short | Script::Talks | Script::Vanishes => "media_lost",
                Script::Ends(_) | Script::EndsFirst(_) => call["ended_reason"].as_str().unwrap_or("an end"),
            };
            let seen = (&call["status"], &call["ended_reason"]);
            assert_eq!(seen, (&"ended".into(), &reason.into()), "{:?}: {call:#}", played.script);
        }
    }

    /// All calls have ended completely.
    pub fn check_ends(&self, round: &Round) {
        self.check_told(round);
        for call in self.calls() {
            let whole = ["outcome", "ended_reason", "ended_at", "fault"];
            assert!(whole.iter().all(|name| call[*name].is_string()), "{call:#}");
        }
    }

    /// Each call has three events, and one more if it is recorded, each with one id and one body, and there are no other
    /// events. Returns the number of requests.
    pub fn check_events(&self, webhook: &Receiver) -> usize {
        let kinds = ["call.started", "call.ended", "call.analyzed"];
        let of = |call: &Value, kind: &str| format!("{kind} {}", text(&call["id"]));
        let mut expected: BTreeSet<String> =
            self.calls().flat_map(|call| kinds.map(|kind| of(call, kind))).collect();
        let recorded = self.calls().filter(|call| call["recording"].is_object());
        expected.extend(recorded.map(|call| of(call, "recording.ready")));
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            let mut bodies: BTreeMap<String, Vec<u8>> = BTreeMap::new();
            for received in webhook.received() {
                let body: Value = serde_json::from_slice(&received.body).expect("a whole body");
                let id = text(&body["id"]);
                let first = bodies.entry(id.clone()).or_insert_with(|| received.body.clone());
                assert_eq!(*first, received.body);
                let event = format!("{} {}", text(&body["type"]), text(&body["data"]["call"]["id"]));
                told.entry(event).or_default().insert(id);
            }
            assert!(told.values().all(|ids| ids.len() == 1), "an event has two ids: {told:#?}");
            let arrived: BTreeSet<String> = told.into_keys().collect();
            let unexpected: Vec<_> = arrived.difference(&expected).collect();
            assert!(unexpected.is_empty(), "events without a call: {unexpected:?}");
            if arrived == expected {
                return webhook.count();
            }
            let missing: Vec<_> = expected.difference(&arrived).collect();
            assert!(Instant::now() < deadline, "missing events: {missing:?}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    fn of(&self, played: &Played) -> Vec<&Value> {
        match played.outbound {
            true => self.with(played.workspace, "to", &played.to),
            false => self.with(played.workspace, "from", &played.from),
        }
    }
}

//! Clients that place calls and retry with the same key until they get a response.
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_tests::Choices;
use sidetone_tests::fakes::carrier::{Behaviour, behaviour};
use sidetone_tests::process::{Answer, Client};

use crate::phones::{self, a_number};
use crate::round::{Desk, Round, TIMEOUT, lock, text};

/// The maximum number of orders per client.
const ORDERS_MAX: usize = 16;
/// The last digits of the called numbers, which select the carrier's behaviour. Most orders are accepted.
const ENDINGS: [&str; 10] = ["7777", "7777", "7777", "7777", "7777", "0408", "0444", "0500", "0201", "0400"];

/// An order for a call, with one Idempotency-Key.
pub struct Ordered {
    pub workspace: usize,
    pub provider: &'static str,
    /// Only this order calls this number.
    pub to: String,
    body: Value,
    /// The first response; `None` if the client gave up.
    pub answer: Option<Answer>,
    pub tries: usize,
}

impl Ordered {
    pub fn status(&self) -> Option<u16> {
        self.answer.as_ref().map(|answer| answer.status)
    }

    /// The call id in the response.
    pub fn call_id(&self) -> Option<String> {
        let answer = self.answer.as_ref()?;
        match answer.status {
            201 => Some(text(&answer["id"])),
            _ => Some(text(&answer["error"]["details"]["call_id"])),
        }
    }

    /// Whether the carrier rejects such orders: nothing rings, and the key may be used again.
    pub fn is_refused(&self) -> bool {
        !behaviour(&self.to).has_the_call()
    }

    fn send(&self, address: SocketAddr, key: &str) -> std::io::Result<Answer> {
        let headers = [("idempotency-key", self.to.as_str())];
        Client::new(address, key).send("POST", "/calls/outbound", &headers, Some(&self.body))
    }
}

/// Places one call after the other during the kills, and one afterwards.
pub fn run<'scope>(
    scope: &'scope Scope<'scope, '_>,
    round: &'scope Round,
    desk: &'scope Desk,
    mut choices: Choices,
) {
    for _ in 0..ORDERS_MAX {
        let last = !round.will_be_killed();
        // The process dies while the carrier holds an order.
        let ending = if last { "7777" } else { choices.one_of(&ENDINGS) };
        let to = a_number(ending);
        let answered = Arc::new(AtomicBool::new(false));
        let (number, seen) = (to.clone(), answered.clone());
        let script = Choices(choices.below(u64::MAX));
        scope.spawn(move || phones::rings(round, desk, &number, &seen, script));
        let body = json!({"assistant_id": desk.assistant, "to": to, "from": desk.number});
        let (workspace, provider) = (desk.workspace, desk.carrier.provider());
        let mut order = Ordered { workspace, provider, to, body, answer: None, tries: 0 };
        place(round, &mut order);
        answered.store(true, Ordering::SeqCst);
        lock(&round.ordered).push(order);
        if last {
            return;
        }
        std::thread::sleep(Duration::from_millis(choices.below(120)));
    }
}

fn place(round: &Round, order: &mut Ordered) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        // Reads the address before the check, so that a held order goes to a process that will be killed.
        let address = round.address();
        if behaviour(&order.to) == Behaviour::Hang && !round.will_be_killed() {
            return;
        }
        order.tries += 1;
        if let Ok(answer) = order.send(address, &round.keys[order.workspace]) {
            check_status(order, &answer);
            order.answer = Some(answer);
            return;
        }
        assert!(Instant::now() < deadline, "no answer to an order to call {}", order.to);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The status follows from the carrier's behaviour; after a crash it may be 504 (unknown).
fn check_status(order: &Ordered, answer: &Answer) {
    let usual = match behaviour(&order.to) {
        Behaviour::Take => 201,
        Behaviour::Broken | Behaviour::NoId | Behaviour::Cut | Behaviour::Hang => 504,
        _ => 502,
    };
    let known = answer.status == usual || (order.tries > 1 && answer.status == 409);
    assert!(known, "{} {}, try {}: {answer:?}", order.provider, order.to, order.tries);
}

/// Repeats every order much later: the client gets the same call, and the carrier gets no order.
pub fn ask_again(round: &Round) {
    for order in lock(&round.ordered).iter().filter(|order| !order.is_refused()) {
        let carrier = round.carriers.get(order.provider);
        let before = carrier.orders(&order.to).len();
        // If no try was ever received, this one would be the first.
        let Some(first) = order.call_id().or_else(|| (before > 0).then(String::new)) else { continue };
        let again = order.send(round.address(), &round.keys[order.workspace]).expect("the server answers");
        let again = Ordered { answer: Some(again), body: Value::Null, to: order.to.clone(), ..*order };
        let answers = (order.answer.as_ref(), again.answer.as_ref());
        assert_eq!(carrier.orders(&order.to).len(), before, "{answers:?}");
        match order.answer {
            Some(_) => {
                assert_eq!((again.status(), again.call_id()), (order.status(), Some(first)), "{answers:?}")
            }
            None => assert_eq!(again.status(), Some(409), "{answers:?}"),
        }
    }
}

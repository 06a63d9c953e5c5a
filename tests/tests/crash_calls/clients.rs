//! Clients that place calls and try again under the same key until they are answered.
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
use crate::round::{Desk, PATIENCE, Round, lock, text};

/// Orders of one client, at most.
const ORDERS_MAX: usize = 16;
/// Numbers that are called, by their ending: most orders are taken.
const ENDINGS: [&str; 10] = ["7777", "7777", "7777", "7777", "7777", "0408", "0444", "0500", "0201", "0400"];

/// A call that was ordered under one key.
pub struct Ordered {
    pub workspace: usize,
    pub provider: &'static str,
    /// Nobody else calls this number.
    pub to: String,
    body: Value,
    /// The first that came; `None` when the client has given up.
    pub answer: Option<Answer>,
    pub tries: usize,
}

impl Ordered {
    pub fn status(&self) -> Option<u16> {
        self.answer.as_ref().map(|answer| answer.status)
    }

    /// The call that the answer names.
    pub fn call_id(&self) -> Option<String> {
        let answer = self.answer.as_ref()?;
        match answer.status {
            201 => Some(text(&answer["id"])),
            _ => Some(text(&answer["error"]["details"]["call_id"])),
        }
    }

    /// Whether the carrier refuses such orders: nothing rings, and the key may be used again.
    pub fn is_refused(&self) -> bool {
        !behaviour(&self.to).has_the_call()
    }

    fn send(&self, address: SocketAddr, key: &str) -> std::io::Result<Answer> {
        let headers = [("idempotency-key", self.to.as_str())];
        Client::new(address, key).send("POST", "/calls/outbound", &headers, Some(&self.body))
    }
}

/// Places one call after the other while the service is killed, and one after that.
pub fn run<'scope>(
    scope: &'scope Scope<'scope, '_>,
    round: &'scope Round,
    desk: &'scope Desk,
    mut choices: Choices,
) {
    for _ in 0..ORDERS_MAX {
        let last = !round.will_be_killed();
        // An order that is held ends with the process.
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
    let deadline = Instant::now() + PATIENCE;
    loop {
        // First where the service is: what is sent to one that will be killed is not held for long.
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

/// An order may be answered as its carrier answers; after a crash, nobody may know.
fn check_status(order: &Ordered, answer: &Answer) {
    let usual = match behaviour(&order.to) {
        Behaviour::Take => 201,
        Behaviour::Broken | Behaviour::NoId | Behaviour::Cut | Behaviour::Hang => 504,
        _ => 502,
    };
    let known = answer.status == usual || (order.tries > 1 && answer.status == 409);
    assert!(known, "{} {}, try {}: {answer:?}", order.provider, order.to, order.tries);
}

/// Much later every client asks again under its key: it is told of the same call, and the carrier of none.
pub fn ask_again(round: &Round) {
    for order in lock(&round.ordered).iter().filter(|order| !order.is_refused()) {
        let carrier = round.carriers.get(order.provider);
        let before = carrier.orders(&order.to).len();
        // Of what was never seen anywhere a second try would be the first.
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

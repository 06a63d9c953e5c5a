//! The other ends of the calls, and carriers that send again what was not taken.
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sidetone_tests::Choices;
use sidetone_tests::fakes::carrier::{Behaviour, CallEvent, EndKind, Phone, behaviour};

use crate::round::{Desk, PATIENCE, Round, lock};

/// Calls of one caller, at most.
const CALLS_MAX: usize = 12;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// Nothing is ever told of it.
    Silent,
    /// It rings, and is told to have ended like this.
    Ends(EndKind),
    /// Its end is told first, and then that it rings.
    EndsFirst(EndKind),
    /// It is answered and over before any media come.
    Short,
    /// It is talked over for a moment, and hung up.
    Talks,
    /// It is talked over; the media vanish, and the end is told.
    Vanishes,
}

const SCRIPTS: [Script; 10] = [
    Script::Silent,
    Script::Ends(EndKind::Busy),
    Script::Ends(EndKind::NoAnswer),
    Script::Ends(EndKind::Failed),
    Script::EndsFirst(EndKind::Busy),
    Script::EndsFirst(EndKind::NoAnswer),
    Script::Short,
    Script::Talks,
    Script::Talks,
    Script::Vanishes,
];
/// A caller is neither busy nor out of reach.
const CALLER_SCRIPTS: [Script; 5] =
    [Script::Silent, Script::Ends(EndKind::Canceled), Script::Short, Script::Talks, Script::Vanishes];

/// A call as its carrier saw it.
pub struct Played {
    pub workspace: usize,
    pub provider: &'static str,
    pub id: String,
    pub from: String,
    pub to: String,
    pub outbound: bool,
    pub script: Script,
    /// Whether a media socket was opened.
    pub media: bool,
}

/// A number that nobody else has, with an ending that chooses what the carrier does.
pub fn a_number(ending: &str) -> String {
    static NUMBERS: AtomicU32 = AtomicU32::new(100_000);
    format!("+44{}{ending}", NUMBERS.fetch_add(1, Ordering::Relaxed))
}

/// Waits for an order to call this number, until it is answered, and plays the other end.
pub fn rings(round: &Round, desk: &Desk, to: &str, answered: &AtomicBool, mut choices: Choices) {
    const MOMENT: Duration = Duration::from_millis(100);
    let mut answered_at = None;
    while desk.carrier.orders(to).is_empty() {
        if answered.load(Ordering::SeqCst) && answered_at.get_or_insert_with(Instant::now).elapsed() > MOMENT
        {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    if behaviour(to) == Behaviour::Hang {
        round.held.fetch_add(1, Ordering::SeqCst);
    }
    if behaviour(to).has_the_call() {
        let script = choices.one_of(&SCRIPTS);
        play(round, desk, desk.carrier.rings(to), script, &mut choices);
    }
}

/// Calls the desk, one call after the other, while the service is killed, and once after that.
pub fn call_in(round: &Round, desk: &Desk, mut choices: Choices) {
    for _ in 0..CALLS_MAX {
        let last = !round.will_be_killed();
        let mut phone = desk.carrier.prepare_call(&a_number("1234"), &desk.number);
        insist(round, &mut phone, &mut choices, &CallEvent::Incoming);
        assert!(phone.is_wanted(), "a call to a bound number is answered: {:?}", phone.announced());
        let script = choices.one_of(&CALLER_SCRIPTS);
        play(round, desk, phone, script, &mut choices);
        if last {
            return;
        }
        std::thread::sleep(Duration::from_millis(choices.below(200)));
    }
}

fn play(round: &Round, desk: &Desk, mut phone: Phone, script: Script, choices: &mut Choices) {
    let mut media = false;
    std::thread::sleep(Duration::from_millis(choices.below(60)));
    let mut told = |phone: &mut Phone, event: CallEvent| insist(round, phone, choices, &event);
    let ended = |how, seconds| CallEvent::Ended { how, seconds };
    let outbound = phone.call().outbound;
    if let Script::EndsFirst(how) = script {
        told(&mut phone, ended(how, 0));
    }
    if outbound && script != Script::Silent {
        told(&mut phone, CallEvent::Ringing);
    }
    match script {
        Script::Silent | Script::EndsFirst(_) => {}
        Script::Ends(how) => told(&mut phone, ended(how, 0)),
        Script::Short | Script::Talks | Script::Vanishes => {
            told(&mut phone, CallEvent::Answered);
            if outbound && !phone.is_wanted() {
                told(&mut phone, CallEvent::Asked);
            }
            if script != Script::Short {
                // The service may be down: then there are no media, and the call is over.
                media = phone.try_media();
            }
            if media {
                std::thread::sleep(Duration::from_millis(300));
                match script {
                    Script::Vanishes => phone.vanish(),
                    _ => phone.close_media(),
                }
            }
            told(&mut phone, ended(EndKind::HungUp, 1));
            told(&mut phone, CallEvent::Priced { seconds: 1 });
        }
    }
    let call = phone.call();
    let played = Played {
        workspace: desk.workspace,
        provider: desk.carrier.provider(),
        id: call.carrier_call_id.clone(),
        from: call.from.clone(),
        to: call.to.clone(),
        outbound,
        script,
        media,
    };
    lock(&round.played).push(played);
}

/// Tells the service until it takes it, and now and then once more. Nothing where the carrier says nothing.
fn insist(round: &Round, phone: &mut Phone, choices: &mut Choices, event: &CallEvent) {
    let asks = matches!(event, CallEvent::Incoming | CallEvent::Asked);
    let mut times = if choices.below(3) == 0 { 2 } else { 1 };
    let mut first = None;
    let deadline = Instant::now() + PATIENCE;
    while times > 0 {
        round.sending.fetch_add(1, Ordering::SeqCst);
        let reply = match first {
            // A question is asked anew: the last answer counts.
            _ if asks => phone.try_to_ask(event),
            Some(nth) => phone.try_again(nth),
            None => {
                let Some(reply) = phone.try_to_tell(event) else { return };
                first = Some(phone.sent() - 1);
                reply
            }
        };
        if matches!(reply, Ok(200..300)) {
            times -= 1;
            continue;
        }
        round.sent_again.fetch_add(1, Ordering::SeqCst);
        assert!(Instant::now() < deadline, "{event:?} of {}: {reply:?}", phone.id());
        std::thread::sleep(Duration::from_millis(15));
    }
}

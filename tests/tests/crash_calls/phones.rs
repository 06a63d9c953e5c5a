//! The other ends of the calls, and carriers that repeat callbacks that were not accepted.
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sidetone_tests::Choices;
use sidetone_tests::fakes::carrier::{Behaviour, CallEvent, EndKind, Phone, behaviour};

use crate::round::{Desk, Round, TIMEOUT, lock};

/// The maximum number of calls per caller.
const CALLS_MAX: usize = 12;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// The carrier reports nothing.
    Silent,
    /// The carrier reports ringing, then this end.
    Ends(EndKind),
    /// The carrier reports the end, then ringing.
    EndsFirst(EndKind),
    /// It ends after the answer, before any media.
    Short,
    /// It is answered, connected for a moment, and hung up.
    Talks,
    /// It is connected, the media connection drops, and the carrier reports the end.
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
/// A caller cannot be busy or unreachable.
const CALLER_SCRIPTS: [Script; 5] =
    [Script::Silent, Script::Ends(EndKind::Canceled), Script::Short, Script::Talks, Script::Vanishes];

/// A call from the carrier's side.
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

/// A unique number whose last digits select the carrier's behaviour.
pub fn a_number(ending: &str) -> String {
    static NUMBERS: AtomicU32 = AtomicU32::new(100_000);
    format!("+44{}{ending}", NUMBERS.fetch_add(1, Ordering::Relaxed))
}

/// Waits for an order to call this number, as long as the order has no response, and plays the other end.
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

/// Calls the desk, one call after the other during the kills, and once afterwards.
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
                // If the service is down, there are no media, and the call is over.
                media = phone.try_media();
            }
            if media {
                std::thread::sleep(Duration::from_millis(300));
                match script {
                    Script::Vanishes => phone.drop_connection(),
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

/// Sends an event until the service accepts it, sometimes once more. No-op if the carrier has no callback for it.
fn insist(round: &Round, phone: &mut Phone, choices: &mut Choices, event: &CallEvent) {
    let asks = matches!(event, CallEvent::Incoming | CallEvent::Asked);
    let mut times = if choices.below(3) == 0 { 2 } else { 1 };
    let mut first = None;
    let deadline = Instant::now() + TIMEOUT;
    while times > 0 {
        round.sending.fetch_add(1, Ordering::SeqCst);
        let reply = match first {
            // A request for instructions is sent again; the last response counts.
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

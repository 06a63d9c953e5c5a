//! What a line costs and takes that was handed over, until it ends.
use std::collections::{BTreeSet, VecDeque};
use std::sync::Mutex;

use sidetone_engine::base::limits::{PHONE_TRANSFER_MS_MAX, PHONE_TRANSFER_SECONDS_MAX};
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::tone::ToneEncoder;
use sidetone_engine::storage::jobs::JobKind;

use super::*;

/// The price of a minute at the carrier.
const MINUTE_MICROUSD: i64 = 10_000;
/// What two hours reserve: both ends, and ours while the other rings.
const WHOLE_MICROUSD: i64 = 242 * MINUTE_MICROUSD;
/// What the first minute of a call costs.
const FIRST_MICROUSD: i64 = MINUTE_MICROUSD;
/// The samples of 20 ms.
const FRAME: usize = 160;
const OVER: CallEvent = CallEvent::Ended { how: EndKind::HungUp, seconds: 600 };

/// An assistant that hands over to Sales, in a workspace with a limit.
fn desk(limit_microusd: i64) -> Desk {
    let desk = Desk::with_settings(&[("SIDETONE_CARRIER_RATES", r#"{"telnyx": 10000}"#)]);
    let transfers = json!([{"name": "Sales", "number": "+4930123456", "when": "They want to buy."}]);
    let change = json!({"transfers": transfers, "first_message": ""});
    assert_eq!(desk.sandbox.patch(&format!("/assistants/{}", desk.assistant), change).status, 200);
    let limit = json!({"monthly_spend_limit_microusd": limit_microusd});
    assert_eq!(desk.sandbox.patch("/workspace", limit).status, 200);
    desk
}

/// A call under way.
struct Talk<'a> {
    desk: &'a Desk,
    call: PhoneCall,
    socket: SandboxSocket<'a>,
    media: Box<dyn sidetone_tests::fakes::carrier::MediaWire>,
}

impl<'a> Talk<'a> {
    fn on(desk: &'a Desk, call: PhoneCall) -> Self {
        let (socket, mut media) = (desk.socket(&call), TelnyxWire.media(&call));
        for message in media.opening() {
            send(&socket, message);
        }
        Self { desk, call, socket, media }
    }

    fn says(&mut self, text: &str) {
        let mut samples = ToneEncoder::speak(text, Rate::Khz8);
        samples.resize(samples.len().next_multiple_of(FRAME), 0);
        for frame in samples.chunks(FRAME) {
            send(&self.socket, self.media.audio(frame));
            self.desk.wait(20);
        }
    }

    /// The person asks for Sales, and the carrier answers like this. The time of the transfer, if it was asked for one.
    fn asks_for_sales(&mut self, status: u16) -> Option<i64> {
        self.desk.sandbox.sent_http();
        self.desk
            .sandbox
            .answer_http_with(move |_| Ok(HttpReply { status, headers: Vec::new(), body: "{}".into() }));
        self.says("Please transfer me to Sales.");
        let mut sent = Vec::new();
        let transfer = (0..100).find_map(|_| {
            sent.extend(self.desk.sandbox.sent_http());
            let found = sent.iter().position(|request| request.url.ends_with("/actions/transfer"));
            self.desk.wait(if found.is_some() { 0 } else { 100 });
            found
        });
        let transfer = &sent[transfer?];
        let body: Value = serde_json::from_slice(&transfer.body).unwrap();
        assert_eq!(body["timeout_secs"], 60, "{body}");
        Some(body["time_limit_secs"].as_i64().unwrap())
    }

    /// Sales is asked for, and answers.
    fn is_handed_over(&mut self) -> Option<i64> {
        let seconds = self.asks_for_sales(200);
        self.desk.tell(&sales(&self.call), &CallEvent::Answered);
        self.desk.wait(1_000);
        self.desk.sandbox.run_jobs();
        seconds
    }
}

fn send(socket: &SandboxSocket<'_>, message: WireMessage) {
    let WireMessage::Text(text) = message else { panic!("a binary message") };
    socket.send(text);
}

/// The nth incoming call, answered; `None` if it is declined.
fn incoming(desk: &Desk, nth: usize) -> Option<PhoneCall> {
    let mut call = phone_call(false, &json!({"webhook_url": "", "stream_url": ""}));
    call.carrier_call_id = format!("v3:call-{nth}");
    desk.sandbox.sent_http();
    desk.sandbox.answer_http(200, "{}");
    desk.tell(&call, &CallEvent::Incoming);
    let sent = desk.sandbox.sent_http().pop().unwrap();
    let answer: Value = serde_json::from_slice(&sent.body).unwrap();
    call.status_url = answer["webhook_url"].as_str()?.to_owned();
    call.format = answer["stream_url"].as_str()?.to_owned();
    Some(call)
}

fn of_workspace(desk: &Desk, name: &str) -> i64 {
    desk.sandbox.get("/workspace").json[name].as_i64().unwrap()
}

fn reserved(desk: &Desk) -> i64 {
    of_workspace(desk, "reserved_microusd")
}

fn spent(desk: &Desk) -> i64 {
    of_workspace(desk, "spent_this_month_microusd")
}

/// What the call costs, which is what was spent.
#[track_caller]
fn cost(desk: &Desk) -> i64 {
    let cost = desk.call()["costs"]["telephony_microusd"].as_i64().unwrap();
    assert_eq!(spent(desk), cost);
    cost
}

/// The call to Sales, of which the carrier tells at the address of the first one.
fn sales(call: &PhoneCall) -> PhoneCall {
    PhoneCall { carrier_call_id: "v3:sales".to_owned(), outbound: true, ..call.clone() }
}

/// A desk whose only call was handed over.
fn handed_over(limit_microusd: i64) -> (Desk, PhoneCall) {
    let desk = desk(limit_microusd);
    let call = incoming(&desk, 0).unwrap();
    let mut talk = Talk::on(&desk, call);
    assert_eq!(talk.is_handed_over(), Some(PHONE_TRANSFER_SECONDS_MAX));
    let call = talk.call.clone();
    drop(talk);
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "transferred"}));
    assert_eq!((reserved(&desk), cost(&desk)), (WHOLE_MICROUSD, FIRST_MICROUSD));
    (desk, call)
}

#[test]
fn a_line_that_was_handed_over_reserves_until_its_end_and_costs_both_ends() {
    let (desk, call) = handed_over(5_000_000);
    assert_eq!(desk.call()["analysis"]["method"], "rule", "the analysis has its own reservation");
    desk.wait(600_000);
    for _ in 0..2 {
        desk.tell(&call, &OVER);
        desk.sandbox.run_jobs();
        // Ten minutes each, and a begun one.
        assert_eq!((reserved(&desk), cost(&desk)), (0, 22 * MINUTE_MICROUSD));
    }
    for _ in 0..2 {
        desk.tell(&call, &CallEvent::Priced { seconds: 660 });
        assert_eq!(cost(&desk), 77_000 + 11 * MINUTE_MICROUSD);
    }
    let other = sales(&call);
    for _ in 0..2 {
        desk.tell(&other, &CallEvent::Priced { seconds: 600 });
        assert_eq!((reserved(&desk), cost(&desk)), (0, 77_000 + 70_000));
    }
    desk.wait(7_200_000);
    desk.sandbox.run_jobs();
    assert!(desk.commands().is_empty(), "the line is over");
    assert_eq!((reserved(&desk), cost(&desk)), (0, 77_000 + 70_000));
}

#[test]
fn a_line_whose_end_nobody_reports_is_hung_up_after_its_time() {
    let (desk, call) = handed_over(5_000_000);
    // After a restart, nobody takes the time for one of a wrong clock.
    block_on(desk.sandbox.services().release_all_leases()).unwrap();
    desk.sandbox.run_jobs();
    desk.wait(PHONE_TRANSFER_MS_MAX - 2_000);
    desk.sandbox.run_jobs();
    assert_eq!((desk.commands(), reserved(&desk)), (Vec::new(), WHOLE_MICROUSD));
    desk.wait(2_000);
    desk.sandbox.run_jobs();
    assert_eq!(desk.commands(), ["hangup"]);
    assert_eq!((reserved(&desk), cost(&desk)), (0, FIRST_MICROUSD + WHOLE_MICROUSD));
    desk.wait(1_000);
    desk.tell(&call, &OVER);
    assert_eq!((reserved(&desk), cost(&desk)), (0, 2 * 123 * MINUTE_MICROUSD));
}

#[test]
fn a_line_that_the_carrier_does_not_hang_up_is_given_up() {
    let (desk, _) = handed_over(5_000_000);
    desk.sandbox.answer_http_with(|_| Err(HttpError::Timeout));
    for _ in 0..220 {
        desk.wait(60_000);
        // Each attempt is an incident.
        block_on(desk.sandbox.services().run_due_jobs("sandbox", JobKind::ALL, 8)).unwrap();
    }
    assert_eq!((reserved(&desk), cost(&desk)), (0, FIRST_MICROUSD + WHOLE_MICROUSD));
}

/// A call that is deleted keeps its leg.
#[test]
fn the_line_of_a_deleted_call_still_counts() {
    let (desk, call) = handed_over(5_000_000);
    let path = format!("/calls/{}", desk.call()["id"].as_str().unwrap());
    assert_eq!(desk.sandbox.delete(&path).status, 204);
    assert_eq!((reserved(&desk), spent(&desk)), (WHOLE_MICROUSD, FIRST_MICROUSD));
    desk.wait(600_000);
    desk.tell(&call, &OVER);
    assert_eq!((reserved(&desk), spent(&desk)), (0, 22 * MINUTE_MICROUSD));
}

#[test]
fn with_less_money_the_line_is_shorter() {
    // An hour of the call itself: 59 minutes are left of it.
    let desk = desk(60 * MINUTE_MICROUSD);
    let call = incoming(&desk, 0).unwrap();
    assert_eq!(Talk::on(&desk, call).is_handed_over(), Some(28 * 60));
    assert_eq!((reserved(&desk), cost(&desk)), (58 * MINUTE_MICROUSD, FIRST_MICROUSD));
}

#[test]
fn for_less_than_three_minutes_the_carrier_is_not_asked() {
    let desk = desk(8 * MINUTE_MICROUSD);
    let call = incoming(&desk, 0).unwrap();
    let mut talk = Talk::on(&desk, call);
    assert_eq!(talk.asks_for_sales(200), None);
    desk.wait(5_000);
    desk.expect(&json!({"status": "in_progress"}));
    assert_eq!(reserved(&desk), 8 * MINUTE_MICROUSD);
    drop(talk);
    desk.wait(60_000);
    desk.sandbox.run_jobs();
    let path = format!("/calls/{}", desk.call()["id"].as_str().unwrap());
    let call = desk.sandbox.get(&path).json;
    let rows = call["transcript"].as_array().unwrap();
    let result = rows.iter().find(|row| row["role"] == "tool_result").unwrap();
    let text = result["text"].as_str().unwrap();
    assert!(text.contains("not transferred: too little of the monthly spending limit"), "{text}");
    assert_eq!(reserved(&desk), 0);
}

#[test]
fn after_a_refusal_the_call_has_what_it_had() {
    for limit in [60 * MINUTE_MICROUSD, 5_000_000] {
        let desk = desk(limit);
        let call = incoming(&desk, 0).unwrap();
        let mut talk = Talk::on(&desk, call);
        assert!(talk.asks_for_sales(422).is_some());
        desk.wait(5_000);
        desk.expect(&json!({"status": "in_progress"}));
        assert_eq!(reserved(&desk), 60 * MINUTE_MICROUSD);
        // Another attempt.
        assert!(talk.is_handed_over().is_some());
        desk.expect(&json!({"status": "ended", "ended_reason": "transferred"}));
        assert!(reserved(&desk) <= limit);
    }
}

/// The carrier ends a call that was placed an hour after its answer, whoever talks.
#[test]
fn the_order_of_a_call_limits_its_transfer() {
    let desk = desk(5_000_000);
    let call = desk.place();
    let mut talk = Talk::on(&desk, call);
    desk.tell(&talk.call, &CallEvent::Answered);
    assert_eq!(talk.is_handed_over(), Some(60 * 60));
    assert_eq!(reserved(&desk), 122 * MINUTE_MICROUSD);
}

#[test]
fn without_a_limit_nothing_is_reserved_and_the_time_is_the_same() {
    let desk = desk(5_000_000);
    desk.sandbox.patch("/workspace", json!({"monthly_spend_limit_microusd": null}));
    let call = incoming(&desk, 0).unwrap();
    let mut talk = Talk::on(&desk, call);
    assert_eq!(talk.is_handed_over(), Some(PHONE_TRANSFER_SECONDS_MAX));
    assert_eq!((reserved(&desk), cost(&desk)), (0, FIRST_MICROUSD));
    desk.wait(PHONE_TRANSFER_MS_MAX);
    desk.sandbox.run_jobs();
    // Nobody knows how long it lasted.
    assert_eq!((desk.commands(), cost(&desk)), (vec!["hangup".to_owned()], FIRST_MICROUSD));
}

/// The process dies before the carrier's answer is stored: whether others talk, nobody knows.
#[test]
fn a_line_reserves_when_its_process_died() {
    let desk = desk(5_000_000);
    let call = incoming(&desk, 0).unwrap();
    let mut talk = Talk::on(&desk, call);
    desk.sandbox.answer_http_with(|_| Err(HttpError::Timeout));
    let ours = desk.sandbox.services().clone();
    desk.sandbox.conversations_may_fail();
    desk.sandbox.meanwhile(move || {
        let lost = sidetone_engine::sql!("UPDATE jobs SET lease = 'another', due_at = 0");
        let write = async move { ours.ports().database.write(vec![lost]).await };
        std::thread::spawn(move || block_on(write)).join().unwrap().unwrap();
    });
    talk.says("Please transfer me to Sales.");
    desk.wait(3_000);
    let call = talk.call.clone();
    drop(talk);
    assert!(reserved(&desk) > WHOLE_MICROUSD);
    block_on(desk.sandbox.services().release_all_leases()).unwrap();
    desk.wait(200_000);
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended"}));
    assert_eq!(reserved(&desk), WHOLE_MICROUSD);
    assert!(!desk.commands().contains(&"hangup".to_owned()));
    desk.tell(&call, &OVER);
    assert_eq!(reserved(&desk), 0);
}

#[test]
fn who_hands_over_call_after_call_is_stopped_by_the_number_of_calls() {
    let desk = desk(1_000_000_000);
    assert_eq!(desk.sandbox.patch("/workspace", json!({"calls_at_once": 3})).status, 200);
    let mut lines = Vec::new();
    while let Some(call) = incoming(&desk, lines.len()) {
        assert!(Talk::on(&desk, call.clone()).is_handed_over().is_some());
        lines.push(call);
    }
    assert_eq!(lines.len(), 3);
    desk.expect(&json!({"ended_reason": "busy", "outcome": "busy"}));
    assert_eq!(desk.order().json["error"]["code"], "too_many_calls");
    desk.tell(&lines[1], &OVER);
    assert!(incoming(&desk, 4).is_some(), "a line has ended");
    assert!(incoming(&desk, 5).is_none());
}

#[test]
fn who_hands_over_call_after_call_is_stopped_by_the_monthly_limit() {
    const LIMIT: i64 = 6_000_000;
    let desk = desk(LIMIT);
    let mut times = BTreeSet::new();
    let mut nth = 0;
    while let Some(call) = incoming(&desk, nth) {
        let mut talk = Talk::on(&desk, call);
        times.extend(talk.is_handed_over());
        assert!(spent(&desk) + reserved(&desk) <= LIMIT);
        drop(talk);
        desk.wait(60_000);
        desk.sandbox.run_jobs();
        nth += 1;
        assert!(nth < 20, "{times:?}");
    }
    // Twice the whole time, and what was left.
    assert!(times.len() >= 2 && times.last() == Some(&PHONE_TRANSFER_SECONDS_MAX), "{times:?}");
    assert!(*times.first().unwrap() < PHONE_TRANSFER_SECONDS_MAX, "{times:?}");
    desk.expect(&json!({"ended_reason": "cost_limit"}));
    assert_eq!(desk.order().json["error"]["code"], "spend_limit_reached");
    assert!(spent(&desk) + reserved(&desk) <= LIMIT);
}

/// Sales is busy. The commands that connect the caller again, which the carrier answers so, one after the other.
fn is_called_back(talk: &Talk<'_>, answers: &[u16]) -> Vec<Value> {
    let desk = talk.desk;
    assert!(desk.commands().is_empty());
    let left = Mutex::new(VecDeque::from(answers.to_vec()));
    desk.sandbox.answer_http_with(move |_| match left.lock().unwrap().pop_front() {
        Some(0) => Err(HttpError::Timeout),
        status => Ok(HttpReply { status: status.unwrap_or(200), headers: Vec::new(), body: "{}".into() }),
    });
    desk.sandbox.sent_http();
    desk.tell(&sales(&talk.call), &CallEvent::Ended { how: EndKind::Busy, seconds: 0 });
    (0..25).for_each(|_| desk.wait(100));
    let sent = desk.sandbox.sent_http();
    let again = sent.iter().filter(|request| request.url.ends_with("/actions/streaming_start"));
    again.map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

#[test]
fn a_caller_is_connected_again_though_the_carrier_fails_at_first() {
    let desk = desk(5_000_000);
    let call = incoming(&desk, 0).unwrap();
    let mut talk = Talk::on(&desk, call);
    assert!(talk.asks_for_sales(200).is_some());
    desk.wait(1_000);
    let commands = is_called_back(&talk, &[503, 0, 429]);
    assert_eq!(commands.len(), 4, "{commands:?}");
    assert!(commands.iter().all(|command| command == &commands[0]), "one command: {commands:?}");
    // The report comes twice, and those of the earlier line are late.
    for event in [CallEvent::Ended { how: EndKind::Busy, seconds: 0 }, CallEvent::Answered] {
        desk.tell(&sales(&talk.call), &event);
    }
    desk.expect(&json!({"status": "in_progress"}));
    let mut call = talk.call.clone();
    call.format = commands[0]["stream_url"].as_str().unwrap().to_owned();
    let mut talk = Talk::on(&desk, call);
    talk.says("Who are you?");
    desk.wait(2_000);
    assert!(desk.commands().is_empty(), "the caller is back, and nobody hangs up");
    drop(talk);
    desk.wait(60_000);
    desk.sandbox.run_jobs();
    let id = desk.call()["id"].as_str().unwrap().to_owned();
    let call = desk.sandbox.get(&format!("/calls/{id}")).json;
    let rows = call["transcript"].as_array().unwrap();
    let result = rows.iter().find(|row| row["role"] == "tool_result").unwrap();
    assert_eq!(result["text"], "\"Sales\" is busy. The caller is back on the line.", "{call}");
    assert!(rows.iter().any(|row| row["text"] == "Who are you?"), "{call}");
}

/// A refusal that does not say that the call is over: the next command is another one, or the carrier would take it for the
/// one that it has refused.
#[test]
fn a_command_that_is_refused_is_followed_by_another_one() {
    let desk = desk(5_000_000);
    let call = incoming(&desk, 0).unwrap();
    let mut talk = Talk::on(&desk, call);
    assert!(talk.asks_for_sales(200).is_some());
    desk.wait(1_000);
    let commands = is_called_back(&talk, &[422]);
    let [first, second] = &commands[..] else { panic!("{commands:?}") };
    assert_ne!(first["command_id"], second["command_id"]);
    assert_eq!(first["stream_url"], second["stream_url"]);
    desk.expect(&json!({"status": "in_progress"}));
}

#[test]
fn a_caller_whom_the_carrier_does_not_connect_again_is_lost() {
    let desk = desk(5_000_000);
    let call = incoming(&desk, 0).unwrap();
    let mut talk = Talk::on(&desk, call);
    assert!(talk.asks_for_sales(200).is_some());
    desk.wait(1_000);
    assert_eq!(is_called_back(&talk, &[404]).len(), 1, "there is no such call any more");
    (0..40).for_each(|_| desk.wait(100));
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "media_lost"}));
    assert_eq!(desk.commands(), ["hangup"]);
    assert_eq!(reserved(&desk), 0);
}

/// At Telnyx our line stays open when the other one ends.
#[test]
fn who_has_talked_and_hangs_up_leaves_no_open_line() {
    let (desk, call) = handed_over(5_000_000);
    desk.tell(&sales(&call), &CallEvent::Ended { how: EndKind::HungUp, seconds: 1 });
    desk.wait(1_000);
    desk.sandbox.run_jobs();
    assert_eq!(desk.commands(), ["hangup"]);
}

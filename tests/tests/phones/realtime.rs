//! Conversations with a model that hears and speaks.
use std::collections::BTreeMap;

use serde_json::{Value, json};
use sidetone_engine::speech::speech_like::speech_like;
use sidetone_tests::browser::{Browser, RATE};
use sidetone_tests::example::LONG_ANSWER;
use sidetone_tests::fakes;
use sidetone_tests::fakes::carrier::{EndKind, Instruction};
use sidetone_tests::fakes::speech::CHAR_MS;
use sidetone_tests::follower::Follower;
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};

use crate::keys::hears_keys;
use crate::speech::{hears_ms, speak};
use crate::support::{Desk, GREETING, Person, lines, texts};

with_each_carrier!(
    a_person_talks_with_a_realtime_model,
    an_answer_is_truncated_where_it_was_heard,
    the_rule_model_speaks_the_protocol_inside_the_service,
    a_realtime_model_presses_keys,
    a_realtime_model_hands_over_to_a_person,
);

/// A desk whose model hears what the test announces with the returned term.
fn desk(provider: &'static str, model: &str) -> (Desk, String) {
    let desk = Desk::new(provider);
    let term = format!("term {}", desk.number);
    let assistant = json!({"model": model, "pipeline_mode": "realtime", "voice": "live/marin", "transcriber": "live/scribe",
        "keyterms": [term], "language": "en"});
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), assistant).ok();
    (desk, term)
}

/// Gives the assistant a tool.
fn with_tool(desk: &Desk) -> Receiver {
    let receiver = Receiver::start(ReceiverBehaviour::Status(200));
    let tool = desk.world.create(
        "/tools",
        json!({"name": "find_order", "description": "Finds an order.", "url": receiver.url(),
               "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}}}),
    );
    desk.world.put(format!("/assistants/{}/tools", desk.assistant.id), json!({"tool_ids": [tool.id]})).ok();
    receiver
}

const fn ms_of(text: &str) -> i64 {
    text.len() as i64 * CHAR_MS
}

fn cost(call: &Value, part: &str) -> i64 {
    call["costs"][part].as_i64().unwrap_or_else(|| panic!("{call}"))
}

/// The person hears the greeting, asks two questions, hears these answers, and hangs up.
#[track_caller]
fn asks_twice(person: &mut Person, answers: [&str; 2]) {
    let mut heard_ms = ms_of(GREETING);
    hears_ms(person, heard_ms);
    for answer in answers {
        speak(person, 1_200);
        heard_ms += ms_of(answer);
        hears_ms(person, heard_ms);
        // The last mark is on its way.
        std::thread::sleep(std::time::Duration::from_millis(700));
    }
    person.hang_up();
}

fn a_person_talks_with_a_realtime_model(provider: &'static str) {
    let (desk, term) = desk(provider, "live/talks");
    let receiver = with_tool(&desk);
    fakes::shared_speech().will_hear(&term, &["When do you open?", r#"Use find_order {"order": 7}"#]);
    let (id, mut person) = desk.connected();
    asks_twice(&mut person, ["You said: When do you open?", "It says: ok"]);
    let call = desk.over(&id);
    assert_eq!(
        lines(&call),
        [
            ("assistant", GREETING),
            ("user", "When do you open?"),
            ("assistant", "You said: When do you open?"),
            ("user", r#"Use find_order {"order": 7}"#),
            ("tool_call", r#"find_order({"order":7})"#),
            ("tool_result", "ok"),
            ("assistant", "It says: ok"),
        ],
        "{call}"
    );
    desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
    assert_eq!(receiver.count(), 1);
    let log = fakes::shared_speech().realtime(&term);
    assert_eq!(log.refused, [""; 0], "{log:?}");
    assert_eq!((log.created.len(), log.deleted, log.truncated_ms.len()), (2, 0, 0), "{log:?}");
    // The greeting, two answers and a call.
    assert_eq!(call["usage"]["llm_input_tokens"], 400, "{call}");
    assert!(cost(&call, "llm_microusd") > 4_000 && cost(&call, "tts_microusd") == 0, "{call}");
    let rows = call["transcript"].as_array().unwrap();
    let ms = |row: usize, field: &str| rows[row][field].as_i64().unwrap();
    let spoken_ms = ms(2, "end_ms") - ms(2, "start_ms");
    assert!((spoken_ms - ms_of("You said: When do you open?")).abs() < 400, "{call}");
    assert!(ms(1, "end_ms") <= ms(2, "start_ms") && ms(1, "start_ms") >= ms(0, "end_ms") - 200, "{call}");
    assert_eq!(call["turns"].as_array().unwrap().len(), 2, "{call}");
}

fn an_answer_is_truncated_where_it_was_heard(provider: &'static str) {
    const LONG: &str = "Tell me everything that you know about the house by the lake and its people.";
    let (desk, term) = desk(provider, "live/talks");
    fakes::shared_speech().will_hear(&term, &[LONG, "Stop, that is enough."]);
    let (id, mut person) = desk.connected();
    hears_ms(&person, ms_of(GREETING));
    speak(&person, 1_200);
    hears_ms(&person, ms_of(GREETING) + 2_000);
    speak(&person, 1_000);
    let call = desk.until(&id, "the answer", |call| texts(call, "assistant").len() == 3);
    person.hang_up();
    let row = &call["transcript"][2];
    let heard = row["text"].as_str().unwrap();
    assert!(row["interrupted"] == true && row["intended_text"] == format!("You said: {LONG}"), "{call}");
    let log = fakes::shared_speech().realtime(&term);
    assert_eq!(log.refused, [""; 0], "{log:?}");
    let [truncated_ms] = log.truncated_ms[..] else { panic!("{log:?}") };
    let spoken_ms = row["end_ms"].as_i64().unwrap() - row["start_ms"].as_i64().unwrap();
    // A mark takes its time to return: less may be known to be heard, never more.
    assert!((-60..=310).contains(&(spoken_ms - truncated_ms)), "{truncated_ms}: {row}");
    assert!((ms_of(heard) - truncated_ms).abs() <= 15 * CHAR_MS, "{heard}: {truncated_ms}");
    assert_eq!(texts(&call, "user"), [LONG, "Stop, that is enough."]);
    assert_eq!(log.deleted, 0, "{log:?}");
    let _ = desk.over(&id);
}

fn a_realtime_model_presses_keys(provider: &'static str) {
    let (desk, term) = desk(provider, "live/talks");
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), json!({"keys": true})).ok();
    let asked = r#"Say I choose. Then use send_keys {"keys": "2#"}"#;
    fakes::shared_speech().will_hear(&term, &[asked, "When do you open?"]);
    let (id, mut person) = desk.connected();
    hears_ms(&person, ms_of(GREETING));
    speak(&person, 1_200);
    assert_eq!(hears_keys(&person, 2), "2#");
    desk.until(&id, "told of the keys", |call| texts(call, "assistant").len() == 3);
    person.until_quiet(700);
    speak(&person, 1_200);
    desk.until(&id, "answered", |call| texts(call, "assistant").len() == 4);
    person.until_quiet(700);
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(
        lines(&call),
        [
            ("assistant", GREETING),
            ("user", asked),
            ("assistant", "I choose."),
            ("tool_call", r##"send_keys({"keys":"2#"})"##),
            ("tool_result", "The keys 2, # were pressed."),
            ("assistant", "It says: The keys 2, # were pressed."),
            ("user", "When do you open?"),
            ("assistant", "You said: When do you open?"),
        ],
        "{call}"
    );
    assert_eq!(fakes::shared_speech().realtime(&term).refused, [""; 0]);
}

fn a_realtime_model_hands_over_to_a_person(provider: &'static str) {
    const SALES: &str = "+4930123456";
    let (desk, term) = desk(provider, "live/talks");
    let transfers = json!({"transfers": [{"name": "Sales", "number": SALES}]});
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), transfers).ok();
    let asked = r#"Say One moment. Then use transfer_call {"name": "Sales"}"#;
    fakes::shared_speech().will_hear(&term, &[asked]);
    let (id, mut person) = desk.connected();
    hears_ms(&person, ms_of(GREETING));
    speak(&person, 1_200);
    hears_ms(&person, ms_of(GREETING) + ms_of("One moment."));
    let dialled = Instruction::Dial {
        to: SALES.to_owned(),
        caller_id: Some(desk.number.clone()),
        seconds: 3_600,
        told: None,
    };
    assert_eq!(person.was_transferred(), dialled);
    person.other_answers();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "completed", "ended_reason": "transferred", "fault": "none"}));
    assert_eq!(
        lines(&call),
        [
            ("assistant", GREETING),
            ("user", asked),
            ("assistant", "One moment."),
            ("tool_call", r#"transfer_call({"name":"Sales"})"#),
            ("tool_result", "Transferred."),
        ],
        "{call}"
    );
    assert_eq!(call["transcript"][2]["interrupted"], false, "{call}");
    assert_eq!((person.transfers(), person.is_commanded_to_end()), (1, false), "{call}");
    assert_eq!(fakes::shared_speech().realtime(&term).refused, [""; 0]);
}

/// Who calls the assistant has no menu, and whoever is called on somebody's behalf is told so.
#[test]
fn a_session_has_the_tools_and_the_instructions_of_its_call() {
    let (desk, term) = desk("telnyx", "live/talks");
    let settings = json!({"keys": true, "transfers": [{"name": "Sales", "number": "+4930123456"}]});
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), settings).ok();
    let session = || fakes::shared_speech().realtime(&term).session;
    let tools = || -> Vec<String> {
        let tools = session()["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let (id, mut person) = desk.connected();
    hears_ms(&person, ms_of(GREETING));
    assert_eq!(tools(), ["transfer_call", "send_keys", "end_call"]);
    let told = session()["instructions"].as_str().unwrap().to_owned();
    assert!(told.contains("on behalf of the person at +44"), "{told}");
    person.hang_up();
    desk.over(&id);
    let mut person = desk.is_called();
    person.answer();
    hears_ms(&person, ms_of(GREETING));
    assert_eq!(tools(), ["transfer_call", "end_call"]);
    assert!(!session()["instructions"].as_str().unwrap().contains("on behalf"), "{}", session());
    person.hang_up();
}

#[test]
fn a_realtime_call_is_followed_as_its_lines_are_spoken_and_cut() {
    const LONG: &str = "Tell me everything that you know about the house by the lake and its people.";
    let (desk, term) = desk("plivo", "live/talks");
    fakes::shared_speech().will_hear(&term, &[LONG, "Stop, that is enough."]);
    let (id, mut person) = desk.connected();
    let follower = Follower::open(&desk.world, &format!("/calls/{id}/events"), None).ok().unwrap();
    hears_ms(&person, ms_of(GREETING));
    speak(&person, 1_200);
    hears_ms(&person, ms_of(GREETING) + 2_000);
    speak(&person, 1_000);
    desk.until(&id, "the answer", |call| texts(call, "assistant").len() == 3);
    person.until_quiet(700);
    person.hang_up();
    let events: Vec<_> = follower.collect();
    assert!(events.is_sorted_by(|one, next| one.id < next.id), "{events:?}");
    let call = desk.over(&id);
    let told = events.iter().filter(|event| event.kind == "transcript").map(|event| &event.data);
    let rows: BTreeMap<u64, &Value> = told.clone().map(|row| (row["index"].as_u64().unwrap(), row)).collect();
    assert_eq!(json!(rows.into_values().collect::<Vec<_>>()), call["transcript"], "{events:?}");
    let answer: Vec<&Value> = told.filter(|row| row["index"] == 2).collect();
    let (last, before) = answer.split_last().unwrap();
    assert!(!before.is_empty(), "it was told while it was spoken: {events:?}");
    for row in before {
        assert!(row["in_progress"] == true && row["interrupted"] == false, "not cut yet: {row}");
    }
    assert!(last["interrupted"] == true && last.get("in_progress").is_none(), "{last}");
    assert_eq!(last["intended_text"], format!("You said: {LONG}"));
    assert_eq!(events.last().map(|event| event.kind.as_str()), Some("ended"));
}

/// The author's words are in the transcript, and what was said instead is noted.
#[test]
fn a_line_that_is_read_out_in_other_words_is_noted() {
    let (desk, _) = desk("vonage", "live/talk-alters");
    let (id, mut person) = desk.connected();
    hears_ms(&person, ms_of(GREETING) + ms_of(" So be it."));
    person.until_quiet(700);
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(texts(&call, "assistant"), [GREETING]);
    let notes = texts(&call, "system");
    let is_noted =
        |note: &&str| note.ends_with(&format!("read out a line in other words: {GREETING} So be it."));
    assert!(notes.len() == 1 && notes.iter().any(is_noted), "{call}");
}

/// A browser sends 16 kHz, and the protocol knows 24.
#[test]
fn a_realtime_model_talks_in_the_browser() {
    let (desk, term) = desk("twilio", "live/talks");
    fakes::shared_speech().will_hear(&term, &["When do you open?"]);
    let mut browser = Browser::open(&desk.world, &desk.assistant.id, "speech");
    browser.expect("call_started");
    browser.hear_ms(ms_of(GREETING));
    browser.speak(&speech_like(1_200, RATE, 120.0));
    let answer = browser.until("the answer", |browser| {
        let is_line = |message: &&Value| message["type"] == "assistant_text";
        browser.messages.iter().filter(is_line).nth(1).map(|message| message["text"].clone())
    });
    assert_eq!(answer, "You said: When do you open?");
    assert_eq!(fakes::shared_speech().realtime(&term).refused, [""; 0]);
}

/// The same model, tools and knowledge as in the other pipeline, for nothing.
fn the_rule_model_speaks_the_protocol_inside_the_service(provider: &'static str) {
    let desk = Desk::new(provider);
    desk.knows(LONG_ANSWER);
    let receiver = with_tool(&desk);
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), json!({"pipeline_mode": "realtime"})).ok();
    // What is to be cut lasts twice as long.
    let (id, person) = desk.place();
    let mut person = person.at_pace(0.5);
    person.ring();
    person.answer();
    assert_eq!(person.hears(), GREETING);
    person.says("When do you open on Saturday?");
    assert_eq!(person.hears(), LONG_ANSWER);
    person.says("Find my order 7, please.");
    let result = person.hears();
    assert_eq!(result, "Ok.");
    person.says("When do you open on Saturday?");
    person.hears_somebody();
    person.says("Goodbye.");
    let goodbye = person.hears();
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
    assert_eq!(receiver.count(), 1, "{call}");
    let said = texts(&call, "assistant");
    assert_eq!(said.last(), Some(&goodbye.as_str()), "{call}");
    let rows = call["transcript"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["interrupted"] == true), "{call}");
    assert_eq!(call["costs"]["total_microusd"].as_i64().unwrap_or(0), cost(&call, "telephony_microusd"));
}

/// What a server does wrong, and what a call makes of it that asks two questions.
#[test]
fn a_call_survives_what_a_server_does_wrong() {
    for fault in ["doubles", "jumbles", "expires", "slow"] {
        let (desk, term) = desk("twilio", &format!("live/talk-{fault}"));
        fakes::shared_speech().will_hear(&term, &["When do you open?", "And on Sunday?"]);
        let (id, mut person) = desk.connected();
        asks_twice(&mut person, ["You said: When do you open?", "You said: And on Sunday?"]);
        let call = desk.over(&id);
        assert_eq!(
            texts(&call, "assistant"),
            [GREETING, "You said: When do you open?", "You said: And on Sunday?"],
            "{fault}: {call}"
        );
        assert_eq!(texts(&call, "user"), ["When do you open?", "And on Sunday?"], "{fault}: {call}");
        let log = fakes::shared_speech().realtime(&term);
        assert_eq!(log.refused, [""; 0], "{fault}: {log:?}");
        desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
    }
}

/// The function call is asked for again in a new session, which knows the conversation, and the tool is called once.
#[test]
fn a_connection_that_breaks_in_a_function_call_calls_the_tool_once() {
    let (desk, term) = desk("telnyx", "live/talk-drops");
    let receiver = with_tool(&desk);
    fakes::shared_speech().will_hear(&term, &["Use find_order"]);
    let (id, mut person) = desk.connected();
    hears_ms(&person, ms_of(GREETING));
    speak(&person, 1_200);
    hears_ms(&person, ms_of(GREETING) + ms_of("It says: ok"));
    std::thread::sleep(std::time::Duration::from_millis(700));
    person.hang_up();
    let call = desk.over(&id);
    let rows = [
        ("assistant", GREETING),
        ("user", "Use find_order"),
        ("tool_call", "find_order({})"),
        ("tool_result", "ok"),
        ("assistant", "It says: ok"),
    ];
    assert_eq!(lines(&call), rows, "{call}");
    assert_eq!(receiver.count(), 1);
    let log = fakes::shared_speech().realtime(&term);
    let roles: Vec<_> = log.created.iter().map(|item| item["role"].as_str().unwrap_or("tool")).collect();
    assert_eq!(
        (roles, log.refused),
        (vec!["assistant", "assistant", "user", "tool"], vec![]),
        "{:?}",
        log.created
    );
    assert_eq!(fakes::shared_speech().connections(&term), 2);
}

/// The call ends with the reason, and its record says what the provider did.
#[test]
fn a_model_that_does_not_answer_ends_the_call() {
    for (model, fault) in
        [("live/talk-refuses", "operator"), ("shut/talks", "operator"), ("live/talk-fails", "provider")]
    {
        let (desk, term) = desk("vonage", model);
        fakes::shared_speech().will_hear(&term, &["When do you open?"]);
        let (id, person) = desk.connected();
        if model.ends_with("fails") {
            hears_ms(&person, ms_of(GREETING));
            speak(&person, 1_200);
        }
        let call = desk.over(&id);
        let reason = call["ended_reason"].as_str().unwrap();
        assert!(["model_failed", "speech_failed"].contains(&reason), "{model}: {call}");
        assert_eq!(call["fault"], fault, "{model}: {call}");
        assert!(
            texts(&call, "system").iter().any(|text| text.contains("the realtime model")),
            "{model}: {call}"
        );
    }
}

/// Its session goes on meanwhile, over the silence of a caller who hears the other telephone ring.
#[test]
fn a_caller_comes_back_to_a_realtime_model() {
    let (desk, term) = desk("plivo", "live/talks");
    let transfers = json!({"transfers": [{"name": "Sales", "number": "+4930123456"}]});
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), transfers).ok();
    let asked = r#"Say One moment. Then use transfer_call {"name": "Sales"}"#;
    fakes::shared_speech().will_hear(&term, &[asked, "When do you open?"]);
    let (id, mut person) = desk.connected();
    hears_ms(&person, ms_of(GREETING));
    speak(&person, 1_200);
    hears_ms(&person, ms_of(GREETING) + ms_of("One moment."));
    person.was_transferred();
    std::thread::sleep(std::time::Duration::from_secs(2));
    person.other_ends(EndKind::NoAnswer, false);
    person.comes_back();
    desk.until(&id, "told why", |call| texts(call, "assistant").len() == 3);
    person.until_quiet(700);
    speak(&person, 1_200);
    desk.until(&id, "answered", |call| texts(call, "assistant").len() == 4);
    person.until_quiet(700);
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "completed", "ended_reason": "user_hung_up", "fault": "none"}));
    let told = r#"Nobody has answered at "Sales". The caller is back on the line."#;
    assert_eq!(texts(&call, "tool_result"), [told]);
    assert_eq!(texts(&call, "user"), [asked, "When do you open?"]);
    assert_eq!(fakes::shared_speech().realtime(&term).refused, [""; 0]);
}

//! The model is asked before the caller's turn has ended for certain.
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_engine::speech::speech_like::speech_like;
use sidetone_tests::fakes;
use sidetone_tests::fakes::openai::behaviour::{FIRST_SENTENCE, SECOND_SENTENCE};
use sidetone_tests::fakes::openai::speech::CHAR_MS;

use crate::speech::hears_ms;
use crate::support::{Desk, Person, TIMEOUT_MS, texts};

with_each_carrier!(
    the_answer_is_ready_when_the_turn_ends,
    an_answer_is_thrown_away_when_the_caller_goes_on,
    tools_are_not_called_early,
    what_is_written_early_is_thrown_away_when_the_caller_goes_on,
    what_is_written_early_is_said_when_the_turn_has_ended,
    nothing_is_asked_early_if_the_author_says_so,
);

/// The silence that ends a turn: long enough for the test to act before.
const END_OF_TURN_MS: i64 = 5_000;

/// A desk that says nothing first, on this model, and hears what the test announces with the returned term.
fn desk(provider: &'static str, model: &str, think_early: bool) -> (Desk, String) {
    let desk = Desk::with_model(provider, model);
    let term = format!("term {}", desk.number);
    let assistant = json!({
        "first_message": "", "voice": "fake/alto", "transcriber": "fake/scribe", "keyterms": [term], "language": "en",
        "speech": {"think_early": think_early, "end_of_turn_min_ms": END_OF_TURN_MS, "end_of_turn_max_ms": END_OF_TURN_MS},
    });
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), assistant).ok();
    (desk, term)
}

/// Speaks, and is silent for a second.
fn speak(person: &Person) {
    let rate = person.rate();
    let mut samples = speech_like(1_200, rate, 120.0);
    samples.extend(vec![0; rate.frame_samples() * 50]);
    person.say(&samples);
}

/// How often the assistant's model was asked to answer this line.
fn asked(line: &str) -> usize {
    let is_about = |body: &Value| {
        let messages = body["messages"].as_array().unwrap();
        let prompt = messages[0]["content"].as_str().unwrap_or_default();
        prompt.starts_with("Be kind.")
            && messages.iter().rfind(|one| one["role"] == "user").unwrap()["content"] == line
    };
    fakes::shared().asked("key-of-the-fake").iter().filter(|asked| is_about(&asked.body)).count()
}

#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_millis(TIMEOUT_MS), "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn hears_something(person: &Person) {
    person.hear_until("speech", |heard| heard.iter().any(|sample| sample.abs() > 1_000).then_some(()));
}

/// A call in which this line is said, and the model is asked about it once. Returns the call.
fn answered_once(desk: &Desk, line: &str) -> Value {
    let (id, mut person) = desk.connected();
    speak(&person);
    hears_something(&person);
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(texts(&call, "user"), [line]);
    assert_eq!(asked(line), 1, "the early answer is the answer");
    call
}

fn the_answer_is_ready_when_the_turn_ends(provider: &'static str) {
    let (desk, term) = desk(provider, "fake/echo", true);
    let line = format!("Early question of {}.", desk.number);
    fakes::shared().will_hear(&term, &[&line]);
    let call = answered_once(&desk, &line);
    assert_eq!(call["transcript"][1]["role"], "assistant", "{call}");
    assert!(
        call["turns"][0]["model_first_ms"].as_i64() >= call["turns"][0]["transcript_ms"].as_i64(),
        "held back"
    );
}

fn an_answer_is_thrown_away_when_the_caller_goes_on(provider: &'static str) {
    let (desk, term) = desk(provider, "fake/echo", true);
    let first = format!("First part of {}.", desk.number);
    fakes::shared().will_hear(&term, &[&first, "And the second."]);
    let both = format!("{first} And the second.");
    let (id, mut person) = desk.connected();
    speak(&person);
    until("asked early", || asked(&first) == 1);
    speak(&person);
    hears_something(&person);
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(texts(&call, "user"), [&both]);
    assert!(texts(&call, "assistant").iter().all(|said| both.starts_with(said)), "{call}");
    assert_eq!((asked(&first), asked(&both)), (1, 1));
    // The fake counts a word as a token. A request that was cancelled in time is estimated.
    let words = |text: &str| i64::try_from(text.split_whitespace().count()).unwrap();
    let usage = &call["usage"];
    assert!(
        usage["llm_output_tokens"] == words(&first) + words(&both) || usage["llm_uncounted_answers"] == 1,
        "{usage}"
    );
}

fn tools_are_not_called_early(provider: &'static str) {
    let (desk, term) = desk(provider, "fake/tools", true);
    let tool = desk.world.create(
        "/tools",
        json!({"name": "note", "description": "Takes a note.", "url": desk.webhook.url(), "parameters": {"type": "object"}}),
    );
    let path = format!("/assistants/{}/tools", desk.assistant.id);
    desk.world.put(path, json!({"tool_ids": [tool.id]})).ok();
    let line = format!("Note the order of {}.", desk.number);
    fakes::shared().will_hear(&term, &[&line]);
    let (id, mut person) = desk.connected();
    speak(&person);
    until("asked early", || asked(&line) == 1);
    // The caller does not wait for the answer.
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(texts(&call, "tool_call"), [""; 0], "{call}");
    assert!(
        call["usage"]["llm_output_tokens"].as_i64() > Some(0) || call["usage"]["llm_uncounted_answers"] == 1
    );
}

/// Adds a tool that is called with the caller's last line.
fn add_tool(desk: &Desk) {
    let parameters = json!({"type": "object", "properties": {"order": {"type": "string"}}});
    let tool = desk.world.create(
        "/tools",
        json!({"name": "note", "description": "Takes a note.", "url": desk.webhook.url(), "parameters": parameters}),
    );
    let path = format!("/assistants/{}/tools", desk.assistant.id);
    desk.world.put(path, json!({"tool_ids": [tool.id]})).ok();
}

/// The lines with which the tool was called.
fn noted(desk: &Desk) -> Vec<String> {
    let received = desk.webhook.received();
    let bodies = received.iter().map(|one| serde_json::from_slice::<Value>(&one.body).unwrap());
    bodies.filter_map(|body| body["arguments"]["order"].as_str().map(str::to_owned)).collect()
}

#[track_caller]
fn has_heard_nothing(person: &Person) {
    let silence =
        person.hear_until("anything", |heard| Some(heard.iter().all(|sample| sample.abs() <= 1_000)));
    assert!(silence, "the caller has heard something");
}

/// The model streams: its first sentence is there, and it writes on, when the caller goes on.
fn what_is_written_early_is_thrown_away_when_the_caller_goes_on(provider: &'static str) {
    let (desk, term) = desk(provider, "fake/writes-slowly", true);
    add_tool(&desk);
    let first = format!("Note this of {}.", desk.number);
    fakes::shared().will_hear(&term, &[&first, "No, note that."]);
    let both = format!("{first} No, note that.");
    let (id, mut person) = desk.connected();
    speak(&person);
    until("asked early", || asked(&first) == 1);
    // Its first sentence arrives at once.
    std::thread::sleep(Duration::from_millis(300));
    has_heard_nothing(&person);
    speak(&person);
    hears_something(&person);
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(texts(&call, "user"), [&both], "{call}");
    let said = texts(&call, "assistant");
    assert!(said.len() == 1 && FIRST_SENTENCE.starts_with(said[0]), "one answer, cut: {call}");
    assert_eq!((asked(&first), asked(&both)), (1, 1), "the second answer was written early as well");
    assert!(!noted(&desk).contains(&first), "the answer that was thrown away has called its tool");
    // Neither answer was complete, so both are estimated.
    let (usage, costs) = (&call["usage"], &call["costs"]);
    assert_eq!(usage["llm_uncounted_answers"], 2, "{usage}");
    assert!(costs["llm_microusd"].as_i64().unwrap() > 0, "{costs}");
}

fn what_is_written_early_is_said_when_the_turn_has_ended(provider: &'static str) {
    let (desk, term) = desk(provider, "fake/writes-slowly", true);
    add_tool(&desk);
    let line = format!("Note the order of {}.", desk.number);
    fakes::shared().will_hear(&term, &[&line]);
    let (id, mut person) = desk.connected();
    speak(&person);
    until("asked early", || asked(&line) == 1);
    std::thread::sleep(Duration::from_millis(300));
    has_heard_nothing(&person);
    assert_eq!(noted(&desk), [""; 0]);
    // The first answer, and some of the one after the tool call.
    hears_ms(&person, (FIRST_SENTENCE.len() + SECOND_SENTENCE.len() + 5) as i64 * CHAR_MS);
    person.hang_up();
    let call = desk.over(&id);
    let rows = call["transcript"].as_array().unwrap();
    let roles: Vec<_> = rows.iter().map(|row| row["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool_call", "tool_result", "assistant"], "{call}");
    assert_eq!(texts(&call, "assistant")[0], format!("{FIRST_SENTENCE} {SECOND_SENTENCE}"));
    assert_eq!(noted(&desk), [line.as_str()], "called once");
    assert_eq!(asked(&line), 2, "the early question, and the one after the tool call");
    let turn = &call["turns"][0];
    assert!(turn["model_first_ms"].as_i64() >= turn["transcript_ms"].as_i64(), "held back: {turn}");
    assert!(rows[2]["start_ms"].as_i64() >= turn["transcript_ms"].as_i64(), "the tool waited: {call}");
}

/// Flux says itself that a turn has probably ended, and that it goes on.
fn flux_desk() -> (Desk, String) {
    let desk = Desk::with_model("twilio", "fake/echo");
    let term = format!("term {}", desk.number);
    let assistant = json!({
        "first_message": "", "voice": "fake/alto", "transcriber": "deepgram/flux-general-en", "keyterms": [term],
        "language": "en",
    });
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), assistant).ok();
    (desk, term)
}

#[test]
fn the_answer_is_ready_when_flux_ends_the_turn() {
    let (desk, term) = flux_desk();
    let line = format!("Early question of {}.", desk.number);
    fakes::shared_speech().will_hear(&term, &[&line]);
    let call = answered_once(&desk, &line);
    let turn = &call["turns"][0];
    assert!(turn["model_first_ms"].as_i64() >= turn["transcript_ms"].as_i64(), "held back: {turn}");
    // That Flux's early sign is enough to ask shows the next test.
}

#[test]
fn what_flux_has_answered_early_is_thrown_away_when_the_caller_goes_on() {
    let (desk, term) = flux_desk();
    let first = format!("First part of {}.", desk.number);
    let both = format!("{first} And the second.");
    fakes::shared_speech().will_hear(&term, &[&format!("{first}|And the second.")]);
    let (id, mut person) = desk.connected();
    let rate = person.rate();
    let silence = |ms: usize| vec![0; rate.frame_samples() * ms / 20];
    let parts =
        [speech_like(1_200, rate, 120.0), silence(600), speech_like(1_000, rate, 120.0), silence(1_000)];
    person.say(&parts.concat());
    hears_something(&person);
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(texts(&call, "user"), [&both], "one turn: {call}");
    assert_eq!(texts(&call, "assistant").len(), 1, "{call}");
    assert!(both.starts_with(texts(&call, "assistant")[0]), "{call}");
    assert_eq!((asked(&first), asked(&both)), (1, 1));
    let words = |text: &str| i64::try_from(text.split_whitespace().count()).unwrap();
    let usage = &call["usage"];
    assert!(
        usage["llm_output_tokens"] == words(&first) + words(&both) || usage["llm_uncounted_answers"] == 1,
        "both are counted: {usage}"
    );
    assert!(call["costs"]["llm_microusd"].as_i64().unwrap() > 0, "{call}");
}

fn nothing_is_asked_early_if_the_author_says_so(provider: &'static str) {
    let (desk, term) = desk(provider, "fake/echo", false);
    let first = format!("Patience of {}.", desk.number);
    fakes::shared().will_hear(&term, &[&first, "And the second."]);
    let (id, mut person) = desk.connected();
    speak(&person);
    // Long enough for an early question, and far from the end of the turn.
    person.heard_for(500);
    speak(&person);
    hears_something(&person);
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(texts(&call, "user"), [format!("{first} And the second.")]);
    assert_eq!(asked(&first), 0);
}

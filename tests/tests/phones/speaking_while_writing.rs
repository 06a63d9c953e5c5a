//! The assistant speaks while its model still writes.
use serde_json::{Value, json};
use sidetone_tests::fakes;
use sidetone_tests::fakes::openai::behaviour::{FIRST_SENTENCE, SECOND_SENTENCE};
use sidetone_tests::fakes::openai::speech::CHAR_MS;

use crate::speech::{hears_ms, speak};
use crate::support::{Desk, texts};

with_each_carrier!(
    the_first_sentence_is_heard_before_the_answer_is_complete,
    an_answer_is_interrupted_while_it_is_written,
    an_answer_that_breaks_off_is_not_said_again,
    an_answer_that_its_token_limit_cut_has_a_row,
    tools_are_called_after_what_is_said_before_them,
);

/// A desk that says nothing first, on this model, and hears what the test announces with the returned term.
fn desk(provider: &'static str, model: &str) -> (Desk, String) {
    let desk = Desk::with_model(provider, model);
    let term = format!("term {}", desk.number);
    let assistant = json!({
        "first_message": "", "voice": "fake/alto", "transcriber": "fake/scribe", "keyterms": [term], "language": "en",
    });
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), assistant).ok();
    (desk, term)
}

fn ms_of(text: &str) -> i64 {
    text.len() as i64 * CHAR_MS
}

/// The model's pause is in the line that the caller hears, so its first sentence was spoken before the model had finished.
fn has_pause(row: &Value) -> bool {
    let spoken_ms = row["end_ms"].as_i64().unwrap() - row["start_ms"].as_i64().unwrap();
    spoken_ms > ms_of(FIRST_SENTENCE) + ms_of(SECOND_SENTENCE) + 500
}

fn the_first_sentence_is_heard_before_the_answer_is_complete(provider: &'static str) {
    let (desk, term) = desk(provider, "fake/writes-slowly");
    fakes::shared().will_hear(&term, &["When do you open on Saturday?"]);
    let (id, mut person) = desk.connected();
    speak(&person, 1_200);
    hears_ms(&person, ms_of(FIRST_SENTENCE) + ms_of(SECOND_SENTENCE));
    std::thread::sleep(std::time::Duration::from_millis(500));
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(texts(&call, "assistant"), [format!("{FIRST_SENTENCE} {SECOND_SENTENCE}")], "one line");
    assert!(has_pause(&call["transcript"][1]), "{call}");
    let turn = &call["turns"][0];
    let steps = ["end_of_speech_ms", "transcript_ms", "model_first_ms", "speech_first_ms", "heard_first_ms"];
    assert!(steps.is_sorted_by_key(|step| turn[step].as_i64().unwrap()), "{turn}");
}

fn an_answer_is_interrupted_while_it_is_written(provider: &'static str) {
    let (desk, term) = desk(provider, "fake/writes-slowly");
    fakes::shared().will_hear(&term, &["When do you open on Saturday?", "No, stop, I meant Sunday."]);
    let (id, mut person) = desk.connected();
    speak(&person, 1_200);
    // Early: on a busy machine the rest sounds before the cut comes.
    hears_ms(&person, 200);
    speak(&person, 1_200);
    // More than its first sentence: some of the next answer.
    hears_ms(&person, ms_of(FIRST_SENTENCE) + 200);
    person.hang_up();
    let call = desk.over(&id);
    let row = &call["transcript"][1];
    assert_eq!((&row["role"], &row["interrupted"]), (&json!("assistant"), &json!(true)), "{call}");
    assert_eq!(row["intended_text"], FIRST_SENTENCE, "what was written until then: {row}");
    assert!(row["text"].as_str().unwrap().len() < FIRST_SENTENCE.len(), "{row}");
    assert_eq!(call["transcript"][2]["text"], "No, stop, I meant Sunday.");
    // The answer that was dropped, and the one that the hang-up has cut off.
    assert!(call["usage"]["llm_uncounted_answers"].as_i64().unwrap() >= 1, "{call}");
}

fn an_answer_that_breaks_off_is_not_said_again(provider: &'static str) {
    let (desk, term) = desk(provider, "fake/breaks-off");
    // An answer that nobody has heard yet may be asked for again.
    desk.world
        .patch(format!("/assistants/{}", desk.assistant.id), json!({"speech": {"think_early": false}}))
        .ok();
    let line = format!("Question of {}.", desk.number);
    fakes::shared().will_hear(&term, &[&line]);
    let (id, mut person) = desk.connected();
    speak(&person, 1_200);
    hears_ms(&person, ms_of(FIRST_SENTENCE));
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    assert_eq!(desk.call(&id)["status"], "in_progress", "it goes on");
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(texts(&call, "assistant"), [FIRST_SENTENCE], "{call}");
    assert!(
        texts(&call, "system")[0].starts_with("The model's answer broke off: fake/breaks-off "),
        "{call}"
    );
    let is_about =
        |body: &Value| body["messages"].as_array().unwrap().iter().any(|one| one["content"] == line.as_str());
    let asked = fakes::shared().asked("key-of-the-fake");
    let asked: Vec<_> =
        asked.iter().filter(|asked| asked.model == "breaks-off" && is_about(&asked.body)).collect();
    assert_eq!(asked.len(), 1, "it is not asked again: {asked:?}");
    desk.expect(&call, &json!({"ended_reason": "user_hung_up", "fault": "none"}));
}

fn an_answer_that_its_token_limit_cut_has_a_row(provider: &'static str) {
    for think_early in [true, false] {
        let (desk, term) = desk(provider, "fake/shape-length");
        let speech = json!({"speech": {"think_early": think_early}});
        desk.world.patch(format!("/assistants/{}", desk.assistant.id), speech).ok();
        fakes::shared().will_hear(&term, &["When do you open?"]);
        let (id, mut person) = desk.connected();
        speak(&person, 1_200);
        hears_ms(&person, ms_of("When do you open?"));
        person.hang_up();
        let call = desk.over(&id);
        assert_eq!(
            texts(&call, "system"),
            ["The assistant's model reached its token limit in the middle of its answer"],
            "{call}"
        );
    }
}

fn tools_are_called_after_what_is_said_before_them(provider: &'static str) {
    let (desk, term) = desk(provider, "fake/writes-slowly");
    let tool = desk.world.create(
        "/tools",
        json!({"name": "note", "description": "Takes a note.", "url": desk.webhook.url(), "parameters": {"type": "object"}}),
    );
    let path = format!("/assistants/{}/tools", desk.assistant.id);
    desk.world.put(path, json!({"tool_ids": [tool.id]})).ok();
    fakes::shared().will_hear(&term, &["Note my order."]);
    let (id, mut person) = desk.connected();
    speak(&person, 1_200);
    // And some of the answer after the tool call.
    hears_ms(&person, ms_of(FIRST_SENTENCE) + ms_of(SECOND_SENTENCE) + 500);
    person.hang_up();
    let call = desk.over(&id);
    let roles: Vec<_> =
        call["transcript"].as_array().unwrap().iter().map(|row| row["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool_call", "tool_result", "assistant"], "{call}");
    assert_eq!(texts(&call, "assistant")[0], format!("{FIRST_SENTENCE} {SECOND_SENTENCE}"));
    assert!(has_pause(&call["transcript"][1]), "{call}");
}

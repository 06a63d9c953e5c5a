//! Live conversations with audio: what the assistant says is played by the client, and what was heard is recorded.
use serde_json::{Value, json};
use sidetone_engine::speech::speech_like::speech_like;
use sidetone_tests::browser::RATE;
use sidetone_tests::example::LONG_ANSWER;
use sidetone_tests::fakes::openai::speech::CHAR_MS;
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};
use sidetone_tests::{Browser, World, fakes};

const GREETING: &str = "Hello, front desk.";
const QUESTION: &str = "When do you open on Saturday?";
const ANSWER: &str = "On Saturday we open at ten.";

/// An assistant with a greeting and a document with opening hours.
fn front_desk(world: &World, settings: &Value) -> String {
    desk_that_knows(world, settings, ANSWER)
}

fn desk_that_knows(world: &World, settings: &Value, content: &str) -> String {
    let mut body = json!({"name": "Front desk", "instructions": "Be kind.", "first_message": GREETING});
    body.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    let assistant = world.create("/assistants", body);
    let hours = world.create("/knowledge", json!({"name": "Hours", "content": content}));
    world.put(format!("/assistants/{}/knowledge", assistant.id), json!({"knowledge_ids": [hours.id]})).ok();
    assistant.id
}

fn tone(world: &World) -> String {
    front_desk(world, &json!({"voice": "builtin/tone"}))
}

fn started(browser: &mut Browser<'_>) -> String {
    let started = browser.expect("call_started");
    let audio = json!({"encoding": "pcm_s16le", "rate": 16_000, "frame_ms": 20});
    assert_eq!(started["audio"], audio, "{started}");
    started["call"]["id"].as_str().unwrap().to_owned()
}

fn rows(call: &Value) -> Vec<(&str, &str, bool)> {
    let rows = call["transcript"].as_array().unwrap();
    rows.iter()
        .map(|row| {
            let word = |name: &str| row[name].as_str().unwrap_or_default();
            (word("role"), word("text"), row["interrupted"] == true)
        })
        .collect()
}

/// Whether each channel of a recording, the caller's and the assistant's, has sound between two times.
fn has_sound(file: &[u8], from_ms: i64, until_ms: i64) -> [bool; 2] {
    const HEAD_BYTES: usize = 44;
    let place = |ms: i64| HEAD_BYTES + usize::try_from(ms).unwrap() * 16 * 4;
    let frames = file[place(from_ms)..place(until_ms)].as_chunks::<4>().0;
    let loud = |low: u8, high: u8| i16::from_le_bytes([low, high]).unsigned_abs() > 500;
    [frames.iter().any(|frame| loud(frame[0], frame[1])), frames.iter().any(|frame| loud(frame[2], frame[3]))]
}

#[test]
fn a_spoken_test_is_recorded_unless_the_assistant_says_otherwise() {
    for is_recorded in [true, false] {
        let world = World::new();
        let settings = json!({"voice": "builtin/tone", "record": is_recorded});
        let mut browser = Browser::open(&world, &front_desk(&world, &settings), "tone");
        let id = started(&mut browser);
        assert_eq!(browser.hear(), GREETING);
        browser.wait(200);
        browser.say(QUESTION);
        assert_eq!(browser.hear(), ANSWER);
        browser.wait(200);
        browser.hang_up();
        let call = world.settled_call(&id);
        let url = format!("/calls/{id}/recording");
        if !is_recorded {
            assert_eq!(call["recording"], Value::Null);
            world.get(&url).refused("not_found");
            continue;
        }
        let file = world.get(&url).ok().body;
        assert_eq!(file.len() as i64 - 44, call["recording"]["duration_ms"].as_i64().unwrap() * 16 * 4);
        for row in call["transcript"].as_array().unwrap() {
            let (from_ms, until_ms) = (row["start_ms"].as_i64().unwrap(), row["end_ms"].as_i64().unwrap());
            let middle_ms = i64::midpoint(from_ms, until_ms);
            let is_assistant = row["role"] == "assistant";
            let sound = has_sound(&file, middle_ms - 100, middle_ms + 100);
            assert_eq!(sound, [!is_assistant, is_assistant], "{row}");
        }
    }
}

#[test]
fn a_spoken_question_gets_a_spoken_answer() {
    let world = World::new();
    let mut browser = Browser::open(&world, &tone(&world), "tone");
    let id = started(&mut browser);
    assert_eq!(browser.expect("assistant_text")["text"], GREETING);
    assert_eq!(browser.hear(), GREETING);
    browser.wait(200);
    browser.say(QUESTION);
    assert_eq!(browser.expect("user_text")["text"], QUESTION);
    assert_eq!(browser.hear(), ANSWER);
    let turn = browser.expect("turn");
    let latency_ms = turn["latency_ms"].as_i64().unwrap();
    assert!((0..5_000).contains(&latency_ms), "{turn}");
    browser.wait(200);
    assert_eq!(browser.hang_up()["ended_reason"], "user_hung_up");
    assert_eq!(browser.until("close", |browser| browser.client.closed()), 1000);
    let call = world.settled_call(&id);
    assert_eq!(
        rows(&call),
        [("assistant", GREETING, false), ("user", QUESTION, false), ("assistant", ANSWER, false)]
    );
    assert_eq!((&call["source"], &call["outcome"]), (&json!("browser"), &json!("completed")), "{call}");
    let times = &call["turns"][0];
    assert_eq!(times["heard_first_ms"], turn["heard_first_ms"], "{call}");
}

/// The line is as long as one of tones may be, and is interrupted early: on a busy machine the rest sounds before the cut comes.
#[test]
fn a_line_that_is_interrupted_is_recorded_as_it_was_heard() {
    const GREETING: &str = "Hello, front desk of the corner shop.";
    let world = World::new();
    let settings = json!({"voice": "builtin/tone", "first_message": GREETING});
    let mut browser = Browser::open(&world, &front_desk(&world, &settings), "tone");
    let id = started(&mut browser);
    let whole_ms = sidetone_engine::speech::tone::ToneEncoder::duration_ms(GREETING);
    browser.until("a third of the greeting", |browser| (browser.played_ms() > whole_ms / 3).then_some(()));
    let heard_ms = browser.played_ms();
    browser.say(QUESTION);
    let cut = browser.expect("line_cut");
    let heard = cut["heard"].as_str().unwrap().to_owned();
    assert_eq!((&cut["index"], browser.clears), (&json!(0), 1), "{cut}");
    assert!(GREETING.starts_with(&heard) && !heard.is_empty() && heard.len() < GREETING.len(), "{cut}");
    assert_eq!(browser.hear(), ANSWER);
    browser.hang_up();
    let call = world.settled_call(&id);
    let [("assistant", text, true), ("user", QUESTION, false), ("assistant", ANSWER, false)] =
        rows(&call)[..]
    else {
        panic!("{call}")
    };
    assert_eq!((text, &call["transcript"][0]["intended_text"]), (&*heard, &json!(GREETING)));
    let time = |name: &str| call["transcript"][0][name].as_i64().unwrap();
    let lasted_ms = time("end_ms") - time("start_ms");
    assert!(lasted_ms >= heard_ms - 200 && lasted_ms <= whole_ms, "{lasted_ms} of {heard_ms}: {call}");
}

#[test]
fn hanging_up_cuts_the_line_being_spoken() {
    let world = World::new();
    let mut browser = Browser::open(&world, &tone(&world), "tone");
    let id = started(&mut browser);
    browser.until("some of the greeting", |browser| (browser.played_ms() > 400).then_some(()));
    drop(browser);
    let call = world.settled_call(&id);
    let [("assistant", text, true)] = rows(&call)[..] else { panic!("{call}") };
    assert!(GREETING.starts_with(text) && text.len() < GREETING.len(), "{call}");
}

#[test]
fn text_is_typed_beside_the_audio_and_interrupts() {
    let world = World::new();
    let mut browser = Browser::open(&world, &tone(&world), "tone");
    let id = started(&mut browser);
    browser.until("the greeting", |browser| (browser.played_ms() > 300).then_some(()));
    browser.client.say(QUESTION);
    assert_eq!(browser.expect("line_cut")["index"], 0);
    assert_eq!(browser.expect("user_text")["text"], QUESTION);
    assert_eq!(browser.hear(), ANSWER);
    browser.hang_up();
    let call = world.settled_call(&id);
    let [("assistant", _, true), ("user", QUESTION, false), ("assistant", ANSWER, false)] = rows(&call)[..]
    else {
        panic!("{call}")
    };
}

#[test]
fn audio_comes_in_pieces_of_any_length() {
    let world = World::new();
    let mut browser = Browser::open(&world, &tone(&world), "tone");
    let id = started(&mut browser);
    assert_eq!(browser.hear(), GREETING);
    let samples = sidetone_engine::speech::tone::ToneEncoder::speak(QUESTION, RATE);
    // Half a second at once, as a page does that was asleep; then single samples; then the rest.
    let (first, rest) = samples.split_at(8_000);
    let (few, rest) = rest.split_at(3);
    browser.send_audio(first);
    few.iter().for_each(|sample| browser.send_audio(&[*sample]));
    rest.chunks(16_000).for_each(|piece| browser.send_audio(piece));
    assert_eq!(browser.hear(), ANSWER);
    browser.hang_up();
    assert_eq!(rows(&world.settled_call(&id))[1], ("user", QUESTION, false));
}

#[test]
fn noise_is_no_turn() {
    let world = World::new();
    let mut browser = Browser::open(&world, &tone(&world), "tone");
    let id = started(&mut browser);
    assert_eq!(browser.hear(), GREETING);
    let mut state = 1_u32;
    let noise: Vec<i16> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as i16 / 4
    })
    .take(RATE.frame_samples() * 50)
    .collect();
    browser.speak(&noise);
    browser.wait(500);
    browser.hang_up();
    assert_eq!(rows(&world.settled_call(&id)), [("assistant", GREETING, false)]);
}

#[test]
fn wrong_messages_are_explained_then_the_socket_closes() {
    let world = World::new();
    let mut browser = Browser::open(&world, &tone(&world), "tone");
    let id = started(&mut browser);
    for (bytes, expected) in [(vec![0; 641], "whole number"), (vec![], "at least one"), (vec![1], "16-bit")] {
        browser.client.send_bytes(bytes);
        let error = browser.expect("error");
        assert_eq!(error["code"], "invalid_message", "{error}");
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
    }
    for (wrong, expected) in [
        (r#"{"type": "heard", "index": 0, "chars": 5}"#, "Send `played`"),
        (r#"{"type": "played", "mark": "x"}"#, "requires `mark`"),
        ("hello", "not valid JSON"),
    ] {
        browser.client.send(wrong);
        let error = browser.expect("error");
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
    }
    // A mark that nobody asked for changes nothing.
    browser.client.send(r#"{"type": "played", "mark": 999}"#);
    for _ in 0..4 {
        browser.client.send_bytes(vec![9; 7]);
    }
    assert_eq!(browser.expect("call_ended")["ended_reason"], "aborted");
    assert_eq!(browser.until("close", |browser| browser.client.closed()), 1008);
    assert_eq!(world.settled_call(&id)["fault"], "caller");
}

#[test]
fn a_message_that_is_too_large_closes_the_socket() {
    let world = World::new();
    let mut browser = Browser::open(&world, &tone(&world), "tone");
    started(&mut browser);
    browser.client.send_bytes(vec![0; 32 * 1024 + 2]);
    assert_eq!(browser.expect("error")["code"], "message_too_large");
    assert_eq!(browser.until("close", |browser| browser.client.closed()), 1009);
}

#[test]
fn audio_that_is_faster_than_a_person_ends_the_conversation() {
    let world = World::new();
    let mut browser = Browser::open(&world, &tone(&world), "tone");
    let id = started(&mut browser);
    for _ in 0..30 {
        browser.send_audio(&[0; 16_000]);
    }
    assert_eq!(browser.expect("error")["code"], "too_fast");
    assert_eq!(browser.expect("call_ended")["ended_reason"], "media_lost");
    assert_eq!(browser.until("close", |browser| browser.client.closed()), 1008);
    assert_eq!(world.settled_call(&id)["fault"], "caller");
}

/// The page has a person, who does not understand tones: it speaks and listens itself then.
#[test]
fn without_a_voice_the_conversation_is_written() {
    for (voice, audio) in
        [("builtin/tone", "speech"), ("builtin/browser", "speech"), ("builtin/browser", "tone")]
    {
        let world = World::new();
        let mut browser = Browser::open(&world, &front_desk(&world, &json!({"voice": voice})), audio);
        assert_eq!(browser.expect("call_started")["audio"], Value::Null, "{voice} {audio}");
        browser.send_audio(&[0; 320]);
        let error = browser.expect("error");
        assert!(error["message"].as_str().unwrap().contains("audio=speech"), "{error}");
        browser.client.say(QUESTION);
        browser.expect("assistant_text");
        assert_eq!(browser.played_ms(), 0);
    }
}

#[test]
fn an_unknown_kind_of_audio_is_refused_and_the_token_stays_valid() {
    let world = World::new();
    let token = world.test_token(&tone(&world));
    let url = token["websocket_url"].as_str().unwrap();
    let path = url.find("/voice-test").map(|at| &url[at..]).unwrap();
    for wrong in ["48000", "", "Speech"] {
        let refusal = world.connect(&format!("{path}&audio={wrong}")).err().unwrap();
        assert_eq!(refusal.status, 422, "{wrong}");
        world.get(format!("{path}&audio={wrong}")).refused("validation_failed");
    }
    world.get(format!("{path}&audio=speech")).refused("upgrade_required");
    assert!(world.connect(&format!("{path}&audio=speech")).is_ok());
}

#[test]
fn a_person_talks_with_a_providers_voice() {
    let world = World::with_fakes();
    let term = format!("browser {}", &world.key()[world.key().len() - 8..]);
    let voice =
        json!({"voice": "fake/alto", "transcriber": "fake/scribe", "keyterms": [term], "language": "en"});
    fakes::shared().will_hear(&term, &[QUESTION]);
    let mut browser = Browser::open(&world, &desk_that_knows(&world, &voice, LONG_ANSWER), "speech");
    let id = started(&mut browser);
    let greeting_ms = GREETING.len() as i64 * CHAR_MS;
    let heard = |ms: i64| move |browser: &mut Browser<'_>| (browser.played_ms() >= ms).then_some(());
    browser.until("the greeting", heard(greeting_ms));
    browser.wait(200);
    browser.speak(&speech_like(1_200, RATE, 120.0));
    assert_eq!(browser.expect("user_text")["text"], QUESTION);
    browser.until("some of the answer", heard(greeting_ms + 600));
    let turn = browser.expect("turn");
    // Half a second of silence ends a turn.
    assert!(turn["latency_ms"].as_i64().unwrap() >= 500, "{turn}");
    browser.hang_up();
    let call = world.settled_call(&id);
    let [("assistant", GREETING, false), ("user", QUESTION, false), ("assistant", text, true)] =
        rows(&call)[..]
    else {
        panic!("{call}")
    };
    assert!(LONG_ANSWER.starts_with(text) && text.len() < LONG_ANSWER.len(), "{call}");
    let costs = &call["costs"];
    assert!(costs["stt_microusd"].as_i64() > Some(0) && costs["tts_microusd"].as_i64() > Some(0), "{costs}");
}

#[test]
fn a_line_that_costs_more_than_is_left_is_cut() {
    let world = World::with_fakes();
    let sentence = "This is one of many sentences of a long line. ";
    let voice =
        json!({"voice": "fake/alto", "transcriber": "fake/scribe", "first_message": sentence.repeat(40)});
    let assistant = front_desk(&world, &voice);
    let spent = world.get("/workspace").json["spent_this_month_microusd"].as_i64().unwrap();
    // What a minute of the line costs is known before it is spoken.
    let limit = json!({"monthly_spend_limit_microusd": spent + 500});
    assert_eq!(world.patch("/workspace", limit).status, 200);
    let mut browser = Browser::open(&world, &assistant, "speech");
    let id = started(&mut browser);
    browser.expect("call_ended");
    let call = world.settled_call(&id);
    assert_eq!(call["ended_reason"], "cost_limit", "{call}");
    let cost = call["costs"]["tts_microusd"].as_i64().unwrap();
    assert!((500..30_000).contains(&cost), "{call}");
}

/// The line that bridges a slow tool, and the answer that waits behind it.
#[test]
#[cfg_attr(test_host = "sandbox", ignore = "needs a tool that answers while the conversation goes on")]
fn who_interrupts_two_lines_is_told_of_both() {
    const FILLER: &str = "One moment please, I am looking into the book of the house for you, page by page.";
    let world = World::with_fakes();
    let receiver = Receiver::start(ReceiverBehaviour::Hold);
    let assistant = front_desk(&world, &json!({"voice": "builtin/tone", "speech": {"filler": FILLER}}));
    let tool = world.create(
        "/tools",
        json!({"name": "book_table", "description": "Books a table at the restaurant", "url": receiver.url(),
            "parameters": {"type": "object"}}),
    );
    world.put(format!("/assistants/{assistant}/tools"), json!({"tool_ids": [tool.id]})).ok();
    let mut browser = Browser::open(&world, &assistant, "tone");
    let id = started(&mut browser);
    assert_eq!(browser.hear(), GREETING);
    browser.client.say("Please book a table at the restaurant");
    let says = |browser: &mut Browser<'_>, text: &str| {
        let said = browser.expect("assistant_text");
        assert!(said["text"].as_str().unwrap().contains(text), "{said}");
        said["index"].clone()
    };
    assert_eq!(says(&mut browser, GREETING), 0);
    let filler = says(&mut browser, FILLER);
    receiver.set(ReceiverBehaviour::Says("The table is booked."));
    let answer = says(&mut browser, "The table is booked.");
    browser.client.say("Stop");
    let cuts = [(); 2].map(|()| browser.expect("line_cut"));
    assert_eq!(cuts.each_ref().map(|cut| &cut["index"]), [&filler, &answer], "{cuts:?}");
    assert_eq!(cuts[1]["heard"], "", "nothing was heard of the line behind: {cuts:?}");
    browser.hang_up();
    let call = world.settled_call(&id);
    let rows = call["transcript"].as_array().unwrap();
    for cut in &cuts {
        let row = rows.iter().find(|row| row["index"] == cut["index"]).unwrap();
        assert_eq!((&row["text"], &row["interrupted"]), (&cut["heard"], &json!(true)), "{row}");
    }
}

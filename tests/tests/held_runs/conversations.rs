//! What is said and heard.
use super::*;

/// Whether something is heard in the middle of these milliseconds.
fn is_loud(channel: &[i16], rate_hz: i64, from_ms: i64, until_ms: i64) -> bool {
    let sample = |ms: i64| usize::try_from(ms * rate_hz / 1_000).unwrap().min(channel.len());
    channel[sample(from_ms)..sample(until_ms)].iter().any(|one| one.unsigned_abs() > 500)
}

fn expect_a_whole_conversation(world: &World, run: &Value) {
    assert_eq!((&run["status"], &run["passed"]), (&json!("completed"), &json!(true)), "{run:#}");
    assert_eq!(texts(run, "assistant")[..2], [GREETING, "On Saturday we open at ten."], "{run:#}");
    assert_eq!(texts(run, "user"), [ASKED, "Goodbye."], "{run:#}");
    assert!(texts(run, "system").is_empty(), "no failure: {run:#}");
    let call = &run["call"];
    world.expect_replay(&world.get(format!("/calls/{}", call["id"].as_str().unwrap())).ok().json);
    assert_eq!((&call["ended_reason"], &call["fault"]), (&json!("user_hung_up"), &json!("none")), "{call}");
    assert_eq!((&call["status"], &call["source"]), (&json!("ended"), &json!("simulation")));
    let turn = &call["turns"][0];
    let steps = ["end_of_speech_ms", "transcript_ms", "model_first_ms", "speech_first_ms", "heard_first_ms"];
    assert!(steps.is_sorted_by_key(|step| turn[step].as_i64().unwrap()), "{turn}");
    // Both voices are in the recording, each where the transcript has its words.
    let file = world.get(format!("/calls/{}/recording", call["id"].as_str().unwrap())).ok().body;
    let ([caller, assistant], rate_hz) = channels(&file);
    let duration_ms = caller.len() as i64 * 1_000 / rate_hz;
    assert_eq!((&call["recording"]["duration_ms"], rate_hz), (&json!(duration_ms), 8_000));
    assert!((call["duration_ms"].as_i64().unwrap() - duration_ms).abs() <= 40, "{call}");
    for row in run["call"]["transcript"].as_array().unwrap() {
        let (from, until) = (row["start_ms"].as_i64().unwrap(), row["end_ms"].as_i64().unwrap());
        let (own, other) = match row["role"].as_str().unwrap() {
            "assistant" => (&assistant, &caller),
            _ => (&caller, &assistant),
        };
        if until - from > 400 {
            assert!(is_loud(own, rate_hz, from + 150, until - 150), "{row}");
            assert!(!is_loud(other, rate_hz, from + 150, until - 150), "{row}");
        }
    }
}

#[test]
fn a_run_with_a_providers_voice_is_spoken_and_passes() {
    let world = World::with_phones();
    let run = Case::new("fake/alto", "fake/scribe").run(&world);
    expect_a_whole_conversation(&world, &run);
    let costs = &run["call"]["costs"];
    let part = |name: &str| costs[name].as_i64().unwrap();
    assert!(part("stt_microusd") > 0 && part("tts_microusd") > 0, "{costs}");
    // The caller's voice is in the run's costs: one line and a goodbye, at 15,000 for 1,000 characters.
    let callers = run["cost_microusd"].as_i64().unwrap() - part("total_microusd");
    assert!(callers >= ASKED.len() as i64 * 15, "{callers}: {run:#}");
    let spent = world.get("/workspace").ok().json["month_to_date_microusd"].as_i64();
    assert!(spent.is_none_or(|spent| spent >= run["cost_microusd"].as_i64().unwrap()), "{spent:?}");
}

#[test]
fn a_realtime_model_is_run_for_real() {
    let world = World::with_phones();
    let mut case = Case::new("fake/alto", "live/scribe");
    case.assistant["model"] = "live/talks".into();
    case.assistant["pipeline_mode"] = "realtime".into();
    let answer = format!("You said: {ASKED}");
    case.scenario["evaluations"][0]["includes"] = answer.as_str().into();
    let run = case.run(&world);
    assert_eq!((&run["status"], &run["passed"]), (&json!("completed"), &json!(true)), "{run:#}");
    assert_eq!(texts(&run, "assistant")[..2], [GREETING, &answer], "{run:#}");
    assert_eq!(texts(&run, "user"), [ASKED, "Goodbye."], "{run:#}");
    assert!(texts(&run, "system").is_empty(), "no failure: {run:#}");
    let call = &run["call"];
    world.expect_replay(&world.get(format!("/calls/{}", call["id"].as_str().unwrap())).ok().json);
    assert!(call["costs"]["llm_microusd"].as_i64().unwrap() > 1_000, "{call}");
}

#[test]
fn providers_with_protocols_of_their_own_are_used_as_in_calls() {
    let world = World::with_phones();
    let run = Case::new("deepgram/aura-2-thalia-en", "deepgram/nova-3").run(&world);
    expect_a_whole_conversation(&world, &run);
}

#[test]
fn models_of_providers_hold_both_sides() {
    let world = World::with_phones();
    let mut case = Case::new("fake/alto", "fake/scribe");
    case.assistant["model"] = json!("fake/echo");
    case.caller = "fake/caller";
    case.scenario["evaluations"] = json!([{"kind": "judge", "role": "assistant", "includes": ASKED}]);
    case.scenario["judge_model"] = json!("fake/judge");
    let run = case.run(&world);
    assert_eq!((&run["status"], &run["passed"]), (&json!("completed"), &json!(true)), "{run:#}");
    assert_eq!(texts(&run, "user")[0], ASKED);
    assert!(run["call"]["costs"]["llm_microusd"].as_i64().unwrap() > 0, "{run:#}");
}

#[test]
fn a_caller_who_talks_over_the_line_cuts_it() {
    const LONG: &str = "Welcome to the front desk of the house by the lake, where everybody is well all day.";
    let world = World::with_phones();
    let mut case = Case::new("deepgram/aura-2-thalia-en", "deepgram/nova-3");
    case.assistant["first_message"] = json!(LONG);
    case.scenario["conditions"] = json!({"talk_over": 100});
    let run = case.run(&world);
    assert_eq!(run["status"], "completed", "{run:#}");
    let row = &run["call"]["transcript"][0];
    let heard = row["text"].as_str().unwrap();
    assert!(row["interrupted"] == true && row["intended_text"] == LONG, "{run:#}");
    assert!(LONG.starts_with(heard) && heard.len() < LONG.len(), "{row}");
    assert_eq!(texts(&run, "user")[0], ASKED, "{run:#}");
}

#[test]
fn a_slow_talker_on_a_bad_line_is_carried() {
    let world = World::with_phones();
    let mut case = Case::new("fake/alto", "fake/scribe");
    case.scenario["conditions"] = json!({"packet_loss": 5, "noise_db": -50, "slow_talker": true});
    case.scenario["evaluations"] = json!([]);
    let run = case.run(&world);
    assert_eq!((&run["status"], &run["error"]), (&json!("completed"), &Value::Null), "{run:#}");
    assert!(!texts(&run, "user").is_empty(), "{run:#}");
    let waveform = world.get(format!("/calls/{}/waveform", run["call"]["id"].as_str().unwrap())).ok();
    let part = |name: &str| waveform[name].as_i64().unwrap();
    let lost_percent = part("missing_ms") * 100 / part("duration_ms");
    assert!((1..=10).contains(&lost_percent), "{lost_percent} % of {} ms", part("duration_ms"));
}

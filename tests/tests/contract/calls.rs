//! The call log: the list, its parameters, search, one call. `call_properties` checks lists and statistics for
//! arbitrary calls.
use serde_json::{Value, json};
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::base::ids::{CallId, Id as _, RunId};
use sidetone_engine::base::limits::{SUMMARY_BYTES_MAX, WAITS_CALLS_MAX};
use sidetone_engine::base::time::Timestamp;
use sidetone_engine::conversation::transcript::{TranscriptRole, TranscriptRow};
use sidetone_engine::speech::turn_times::TurnTimes;
use sidetone_engine::storage::calls::{Analysis, Call, CallStatus, NewCall, Source, write};
use sidetone_tests::call::encoded;
use sidetone_tests::reply::ids_of;
use sidetone_tests::{World, example};

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_call_has_all_fields_at_every_stage() {
    let world = World::with_manual_clock();
    let new = example::new_call(&world);
    world.write(write::insert(&new));
    let path = format!("/calls/{}", new.id);
    let mut begun = json!({
        "id": new.id, "assistant_id": new.assistant_id, "assistant_revision": 3, "source": "inbound", "direction": "inbound",
        "status": "ringing", "from": "+14155550123", "to": "+14155550199", "user_number": null, "provider": "twilio",
        "carrier_call_id": "CA0123456789", "model": "builtin/rules", "voice": "builtin/tone",
        "started_at": "2026-01-01T09:00:00.123Z", "answered_at": null, "ended_at": null, "duration_ms": null, "outcome": null,
        "ended_reason": null, "fault": null, "sentiment": null, "transcript": [], "turns": [], "waits_ms": [], "analysis": null,
        "costs": {"total_microusd": 0, "telephony_microusd": 0, "stt_microusd": 0, "llm_microusd": 0, "tts_microusd": 0},
        "usage": {"llm_input_tokens": 0, "llm_output_tokens": 0, "llm_uncounted_answers": 0}, "recording": null, "simulation_run_id": null, "snapshot": null,
        "variables": {}, "metadata": {},
    });
    assert_eq!(world.get(&path).ok().json, begun);
    begun["turns"] = json!(null);
    begun["variables"] = json!(null);
    assert_eq!(world.get("/calls").ok()["calls"], json!([begun]), "a list leaves the turns out");

    world.write(write::end(&new.workspace_id, &new.id, &example::ended_call(), None));
    world.write(write::analyzed(&new.workspace_id, &new.id, &example::analysis()));
    let over = world.get(&path).ok();
    assert_eq!(over["status"], "ended");
    assert_eq!(over["answered_at"], "2026-01-01T09:00:02.123Z");
    assert_eq!(over["ended_at"], "2026-01-01T09:01:04.123Z");
    assert_eq!((&over["duration_ms"], &over["outcome"]), (&json!(62_000), &json!("completed")));
    assert_eq!((&over["ended_reason"], &over["fault"]), (&json!("user_hung_up"), &json!("none")));
    assert_eq!(over["sentiment"], "positive");
    assert_eq!(
        over["analysis"],
        json!({"summary": "The caller asked for the opening hours.", "sentiment": "positive", "outcome": null, "method": "rule"})
    );
    assert_eq!(over["transcript"][1]["text"], "When do you open\non Saturday?");
    assert_eq!(
        over["turns"],
        json!([{"end_of_speech_ms": 2_900, "transcript_ms": 2_980, "model_first_ms": 2_990, "speech_first_ms": 3_400,
                "heard_first_ms": null}])
    );
    assert_eq!(world.get("/calls").ok()["calls"][0]["turns"], json!(null));
    assert_eq!(over["costs"]["total_microusd"], 100);
    assert_eq!(
        over["usage"],
        json!({"llm_input_tokens": 500, "llm_output_tokens": 60, "llm_uncounted_answers": 1})
    );
    assert_eq!(over["from"], begun["from"]);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_call_is_read_back_byte_for_byte() {
    let world = World::with_manual_clock();
    let (ended, analysis) = (example::ended_call(), example::analysis());
    for (ended, analysis) in [(None, None), (Some(&ended), None), (Some(&ended), Some(&analysis))] {
        let new = example::new_call(&world);
        world.write(write::record(&new, ended, analysis));
        let payload = serde_json::to_string(&Call::of(&new, ended, analysis).unwrap()).unwrap();
        let read = world.get(format!("/calls/{}", new.id)).ok();
        assert_eq!(String::from_utf8_lossy(&read.body), payload);
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn the_status_of_a_call_only_moves_forward() {
    let world = World::with_manual_clock();
    let mut new = example::new_call(&world);
    new.status = CallStatus::Queued;
    world.write(write::insert(&new));
    let state = || {
        let call = world.get(format!("/calls/{}", new.id)).ok();
        (call["status"].as_str().unwrap().to_owned(), call["answered_at"].clone())
    };
    let advance = |status, at_ms| {
        world.write(write::advance(&new.workspace_id, &new.id, status, Timestamp::from_ms(at_ms)))
    };
    advance(CallStatus::Ringing, 1);
    assert_eq!(state(), ("ringing".to_owned(), Value::Null));
    advance(CallStatus::InProgress, 1_000);
    assert_eq!(state(), ("in_progress".to_owned(), json!("1970-01-01T00:00:01.000Z")));
    advance(CallStatus::Ringing, 2_000);
    advance(CallStatus::InProgress, 2_000);
    assert_eq!(state(), ("in_progress".to_owned(), json!("1970-01-01T00:00:01.000Z")));
    world.write(write::end(&new.workspace_id, &new.id, &example::ended_call(), None));
    let over = state();
    advance(CallStatus::InProgress, 3_000);
    assert_eq!(state(), over);
    world.write(write::carried(&new.workspace_id, &new.id, "CB77"));
    assert_eq!(world.get("/calls?search=CB77").ok()["stats"]["total"], 1);
    assert_eq!(world.get("/calls?search=CA0123456789").ok()["stats"]["total"], 0);
}

#[test]
fn an_empty_log_has_zero_statistics() {
    let world = World::new();
    assert_eq!(
        world.get("/calls").ok().json,
        json!({
            "calls": [],
            "stats": {"total": 0, "total_duration_ms": 0, "average_duration_ms": 0, "total_cost_microusd": 0,
                "by_outcome": {"completed": 0, "no_answer": 0, "busy": 0, "failed": 0, "canceled": 0, "voicemail": 0},
                "by_sentiment": {"positive": 0, "neutral": 0, "negative": 0, "unknown": 0},
                "waits": {"turns": 0, "p50_ms": null, "p95_ms": null, "p99_ms": null}},
            "pagination": {"page": 1, "limit": 200, "total": 0, "total_pages": 0},
        })
    );
    assert_eq!(world.get("/calls?page=1000000000&limit=1000").ok()["calls"], json!([]));
    assert_eq!(world.get("/calls?search=x&sort=cost&date_from=2026-01-01").ok()["calls"], json!([]));
}

/// An ended call that started this many ms after the first, with the waits of its turns; `None` was not answered.
fn a_call_with_waits(world: &World, after_ms: i64, source: Source, waits: &[Option<i64>]) {
    let mut new = example::new_call(world);
    (new.started_at, new.source) = (new.started_at + after_ms, source);
    let mut ended = example::ended_call();
    let turn = |(at, wait): (usize, &Option<i64>)| {
        let end_ms = 10_000 * at as i64;
        let heard_first_ms = wait.map(|wait| end_ms + wait);
        TurnTimes { end_of_speech_ms: Some(end_ms), heard_first_ms, ..TurnTimes::default() }
    };
    ended.turns = waits.iter().enumerate().map(turn).collect();
    world.write(write::insert(&new));
    world.write(write::end(&new.workspace_id, &new.id, &ended, None));
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn statistics_have_the_percentiles_of_waits() {
    let world = World::with_manual_clock();
    let waits = |query: &str| world.get(format!("/calls?limit=1&{query}")).ok()["stats"]["waits"].clone();
    let of = |turns: i64, p50: i64, p95: i64, p99: i64| json!({"turns": turns, "p50_ms": p50, "p95_ms": p95, "p99_ms": p99});
    let nothing = json!({"turns": 0, "p50_ms": null, "p95_ms": null, "p99_ms": null});
    a_call_with_waits(&world, 0, Source::Browser, &[None, None]);
    assert_eq!(waits(""), nothing, "no turn was answered");
    assert_eq!(world.get("/calls").ok()["calls"][0]["waits_ms"], json!([]));
    // 10, 20, … 2,000 ms, latest first, in ten calls; one more turn of each was not answered.
    for call in 0..10 {
        let turns: Vec<_> = (1..=20).rev().map(|turn| Some((call * 20 + turn) * 10)).chain([None]).collect();
        a_call_with_waits(&world, call + 1, Source::Inbound, &turns);
    }
    assert_eq!(waits(""), of(200, 1_000, 1_900, 1_980));
    assert_eq!(waits("page=9&sort=cost&order=asc"), of(200, 1_000, 1_900, 1_980), "on every page");
    assert_eq!(waits("source=inbound&search=saturday"), of(200, 1_000, 1_900, 1_980));
    assert_eq!(waits("source=browser"), nothing);
    // The call of the waits 210 to 400 ms alone.
    let time = |after_ms: i64| format!("2026-01-01T09:00:00.{:03}Z", 123 + after_ms);
    assert_eq!(waits(&format!("date_from={}&date_to={}", time(2), time(2))), of(20, 300, 390, 400));
    assert_eq!(world.other().get("/calls").ok()["stats"]["waits"], nothing);
    // One turn is every percentile.
    a_call_with_waits(&world, 20, Source::Outbound, &[Some(0)]);
    assert_eq!(waits("source=outbound"), of(1, 0, 0, 0));
    // Each call of a list has its own.
    let of_calls = &world.get("/calls?limit=2").ok()["calls"];
    assert_eq!(of_calls[0]["waits_ms"], json!([0]));
    assert_eq!(of_calls[1]["waits_ms"], json!((181..=200).rev().map(|turn| turn * 10).collect::<Vec<_>>()));
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn the_waits_are_those_of_the_latest_calls() {
    let world = World::with_manual_clock();
    a_call_with_waits(&world, 0, Source::Inbound, &[Some(60_000)]);
    for call in 1..=WAITS_CALLS_MAX {
        a_call_with_waits(&world, call, Source::Inbound, &[Some(700)]);
    }
    let stats = &world.get("/calls?limit=1").ok()["stats"];
    assert_eq!(stats["total"], WAITS_CALLS_MAX + 1);
    let expected = json!({"turns": WAITS_CALLS_MAX, "p50_ms": 700, "p95_ms": 700, "p99_ms": 700});
    assert_eq!(stats["waits"], expected);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn calls_of_other_workspaces_are_invisible() {
    let world = World::with_manual_clock();
    let stranger = world.other();
    let call = world.a_call();
    stranger.get(format!("/calls/{}", call.id)).refused("not_found");
    for query in [
        String::new(),
        format!("assistant_id={}", call["assistant_id"].as_str().unwrap()),
        format!("search={}", call.id),
        "search=saturday".to_owned(),
        "source=inbound&sort=duration_ms".to_owned(),
        "date_from=2026-01-01T08:00:00Z&date_to=2026-01-01".to_owned(),
        format!(
            "search={}",
            encoded(&format!("x\" OR workspace:\"{}", world.workspace_id().replace('_', "")))
        ),
    ] {
        let list = stranger.get(format!("/calls?{query}")).ok();
        assert_eq!((&list["calls"], &list["stats"]["total"]), (&json!([]), &json!(0)), "{query}");
        let ours = world.get(format!("/calls?{query}")).ok();
        let expected = if query.contains("OR") { 0 } else { 1 };
        assert_eq!(ours["stats"]["total"], expected, "{query}");
    }
    // Writes for one workspace do not affect the other's calls.
    let call_id = CallId::from_stored(&*call.id);
    world.write(write::analyzed(&stranger.workspace_id(), &call_id, &example::analysis()));
    assert_eq!(world.get(format!("/calls/{}", call.id)).ok().json, call.json);
}

#[test]
fn malformed_parameters_are_a_400_and_invalid_values_a_422() {
    let world = World::new();
    for name in ["date_from", "date_to"] {
        for bad in [
            "",
            "yesterday",
            "2026-02-30",
            "2026-01-31T09:00:00",
            "2026-01-31 09:00:00Z",
            "1767258000",
            "2026",
        ] {
            let bad = encoded(bad);
            world.get(format!("/calls?{name}={bad}")).refused("invalid_parameter").naming(&[name]);
        }
        for good in [
            "2026-01-31",
            "2026-01-31T09:00:00Z",
            "2026-01-31T09:00:00.5%2B02:00",
            "0001-01-01",
            "9999-12-31",
        ] {
            world.get(format!("/calls?{name}={good}")).ok();
        }
    }
    world.get("/calls?date_from=x&date_to=y").refused("invalid_parameter").naming(&["date_from", "date_to"]);
    for name in ["page", "limit"] {
        world.get(format!("/calls?{name}=abc")).refused("invalid_parameter").naming(&[name]);
        world.get(format!("/calls?{name}=0")).refused("validation_failed").naming(&[name]);
    }
    world.get("/calls?limit=1001").refused("validation_failed").naming(&["limit"]);
    for name in ["source", "outcome", "sentiment", "sort", "order"] {
        for bad in ["", "bogus", "ASC"] {
            world.get(format!("/calls?{name}={bad}")).refused("validation_failed").naming(&[name]);
        }
    }
    world.get("/calls?status=ended").refused("validation_failed").naming(&["status"]);
    world.get(format!("/calls?search={}", "x".repeat(501))).refused("validation_failed").naming(&["search"]);
    for unknown in ["assistant_id=nobody", "assistant_id=%00", "model=x", "voice='"] {
        assert_eq!(world.get(format!("/calls?{unknown}")).ok()["calls"], json!([]));
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_search_finds_words_numbers_and_ids() {
    let world = World::with_manual_clock();
    let mut new = example::new_call(&world);
    new.user_number = Some("+442071838750".to_owned());
    new.simulation_run_id = Some(RunId::from_stored("run_01abc"));
    world.write(write::record(&new, Some(&example::ended_call()), Some(&example::analysis())));
    world.a_call();
    let total = |search: &str| {
        let list = world.get(format!("/calls?search={}", encoded(search))).ok();
        assert_eq!(list["calls"].as_array().unwrap().len() as i64, list["stats"]["total"].as_i64().unwrap());
        list["stats"]["total"].as_i64().unwrap()
    };
    for (search, expected) in [
        // Transcript and summary: any order, any case, without accents, with a prefix of the last word.
        ("saturday", 2),
        ("Saturday OPEN", 2),
        ("velo cafe gruezi", 2),
        ("satur", 2),
        ("satur open", 0),
        ("opening hours", 2),
        ("summary", 0),
        ("\"on Saturday\"", 2),
        // Numbers in any notation, and their prefixes.
        ("+442071838750", 1),
        ("+44 (20) 7183-8750", 1),
        ("44207183", 1),
        ("+14155550123", 2),
        ("1415555", 2),
        // Ids and their prefixes.
        (&new.id, 1),
        (&new.id[..20], 2),
        ("CA0123456789", 2),
        ("run_01abc", 1),
        ("01abc", 1),
        // No match.
        (" ", 0),
        ("***", 0),
        ("\"", 0),
        ("_", 0),
    ] {
        assert_eq!(total(search), expected, "{search:?}");
    }
}

#[test]
fn every_sorting_filter_and_page_works_on_every_host() {
    let world = World::new();
    let calls: Vec<String> = (0..3).map(|_| world.runs_call().id).collect();
    let one = world.get(format!("/calls/{}", calls[0])).ok().json;
    let day = &one["started_at"].as_str().unwrap()[..10];
    let total = |query: &str| {
        let list = world.get(format!("/calls?{query}")).ok();
        assert_eq!(list["stats"]["total"], list["pagination"]["total"], "{query}");
        (list["pagination"]["total"].as_i64().unwrap(), list["calls"].as_array().unwrap().len())
    };
    for sort in ["started_at", "ended_at", "duration_ms", "cost"] {
        for (order, page) in [("asc", 1), ("desc", 2), ("asc", 3)] {
            let query = format!("sort={sort}&order={order}&page={page}&limit=1");
            assert_eq!(total(&query), (3, 1), "{query}");
            let filtered = format!("{query}&source={}&outcome=completed", one["source"].as_str().unwrap());
            assert_eq!(total(&filtered), (3, 1), "{filtered}");
            let dated = format!("{filtered}&date_from=2025-12-31T23:59:59.999Z&date_to={day}T23:59:59Z");
            assert_eq!(total(&dated), (3, 1), "{dated}");
        }
    }
    assert_eq!(total("date_from=2019-02-03T04:05:06Z&date_to=2019-12-31T01:00:00Z&page=2"), (0, 0));
    assert_eq!(total(&format!("search={}", calls[1])), (1, 1));
    assert_eq!(total("search=nobody-said-this&sort=cost&page=2&model=builtin/rules"), (0, 0));
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn no_search_text_causes_an_error() {
    let world = World::with_manual_clock();
    world.a_call();
    let hostile = [
        "\"",
        "\"\"",
        "\"saturday",
        "saturday\"",
        "'",
        "''; DROP TABLE calls; --",
        "*",
        "saturday*",
        "^saturday",
        "NEAR(a b)",
        "NEAR/2",
        "AND",
        "OR",
        "NOT",
        "a AND",
        "(",
        ")",
        "((((",
        "words:saturday",
        "workspace:ws",
        "- -",
        "{a b}:c",
        "a+b",
        "\\",
        "%",
        "_",
        "\0",
        "a\0b",
        "\u{feff}",
        "\u{202e}",
        "é",
        "e\u{301}",
        "👋🏽",
        "中文",
        "ﬁ",
        "İ",
        "ß",
        "\u{10ffff}",
        ":ws",
        "?1",
        "a:ws",
    ];
    for search in hostile {
        world.get(format!("/calls?search={}", encoded(search))).ok();
    }
    world.get("/calls?search=%FF%FE").ok();
    world.get(format!("/calls?search={}", encoded(&"\"a ".repeat(160)))).ok();
    world.get(format!("/calls?search={}", "é".repeat(500))).ok();
    assert_eq!(world.get("/calls?search=saturday").ok()["stats"]["total"], 1);
}

#[test]
fn an_invalid_key_reveals_nothing() {
    let world = World::new();
    let wrong = ApiKey::from_bytes([8; 32]);
    for query in
        ["", "search=saturday", "sort=cost&source=inbound&page=3", "page=2", "date_from=2026-01-01T09:00:00Z"]
    {
        world
            .with_key(wrong.as_str())
            .from_elsewhere()
            .get(format!("/calls?{query}"))
            .refused("unauthorized");
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn pages_have_no_gaps_or_duplicates() {
    let world = World::with_manual_clock();
    const CALLS: usize = 500;
    let mut ids = Vec::new();
    for n in 0..CALLS {
        let mut new = example::new_call(&world);
        // Over a few hundred days, several calls with the same time.
        new.started_at = new.started_at + (n as i64 / 3) * 2 * 86_400_000;
        world.write(write::insert(&new));
        ids.push(new.id.to_string());
    }
    for (order, filter) in
        [("asc", ""), ("desc", ""), ("desc", "&source=inbound"), ("asc", "&date_from=2026-02-03T10:00:00Z")]
    {
        let mut seen = Vec::new();
        let mut page = 1;
        loop {
            let list = world.get(format!("/calls?limit=7&page={page}&order={order}{filter}")).ok();
            if list["calls"] == json!([]) {
                assert_eq!(list["pagination"]["total_pages"], page - 1);
                break;
            }
            seen.extend(ids_of(&list["calls"]));
            page += 1;
        }
        let mut expected = ids.clone();
        if filter.contains("date") {
            expected.drain(..51);
        }
        if order == "desc" {
            expected.reverse();
        }
        assert_eq!(seen, expected, "{order}{filter}");
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_list_has_at_most_4_mib() {
    let world = World::with_manual_clock();
    const EACH: usize = 1024 * 1024 - 4 * 1024;
    let make = |size: usize| -> NewCall {
        let new = example::new_call(&world);
        let mut ended = example::ended_call();
        let text = "word ".repeat(size / 5);
        ended.transcript = vec![TranscriptRow::new(0, TranscriptRole::User, text, 0, 1)];
        world.write(write::record(&new, Some(&ended), None));
        new
    };
    let small = make(10);
    for _ in 0..5 {
        make(EACH);
    }
    let list = world.get("/calls").ok();
    let shown: Vec<bool> =
        list["calls"].as_array().unwrap().iter().map(|call| call["transcript"].is_array()).collect();
    assert_eq!(
        shown,
        [true, true, true, true, false, false],
        "all later transcripts are omitted, even small ones"
    );
    assert!(world.get(format!("/calls/{}", small.id)).ok()["transcript"].is_array());
    assert!(list.body.len() < 4 * 1024 * 1024);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn the_largest_page_has_at_most_4_mib() {
    let world = World::with_manual_clock();
    let quotes = |bytes: usize| "\"".repeat(bytes);
    let analysis = Analysis { summary: quotes(SUMMARY_BYTES_MAX), ..example::analysis() };
    let mut ended = example::ended_call();
    ended.transcript = vec![TranscriptRow::new(0, TranscriptRole::User, quotes(4_000), 0, 1)];
    for _ in 0..10 {
        let calls = (0..100).flat_map(|_| {
            let mut new = example::new_call(&world);
            new.carrier_call_id = Some(quotes(100));
            write::record(&new, Some(&ended), Some(&analysis))
        });
        world.write(calls.collect());
    }
    let list = world.get("/calls?limit=1000").ok();
    let calls = list["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 1_000);
    assert!(calls[0]["transcript"].is_array() && calls[999]["transcript"].is_null());
    assert!(list.body.len() < 4 * 1024 * 1024, "{}", list.body.len());
}

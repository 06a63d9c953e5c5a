//! Assistants: defaults, limits, revisions, attachments, deletion.
use std::thread;

use http::Method;
use serde_json::{Value, json};
use sidetone_tests::call::UNKNOWN_ID;
use sidetone_tests::{Reply, World};

#[test]
fn a_new_assistant_has_the_server_defaults() {
    let world = World::new();
    let made = world.post("/assistants", json!({"name": "Front desk", "instructions": "Be kind."})).created();
    let id = made["id"].as_str().unwrap().to_owned();
    assert_eq!(id.len(), "asst_".len() + 26);
    assert_eq!(
        made.json,
        json!({
            "id": id, "name": "Front desk", "instructions": "Be kind.", "first_message": "",
            "model": "builtin/rules", "voice": "builtin/tone", "pipeline_mode": "cascading",
            "tool_ids": [], "knowledge_ids": [], "revision": 1,
            "transcriber": "", "language": "", "keyterms": [], "record": true, "keys": false, "transfers": [],
            "voicemail": null,
            "speech": {"end_of_turn_min_ms": 500, "end_of_turn_max_ms": 3000, "interruptible": true,
                "interruption_words_min": 1, "think_early": true, "filler": "", "speed": 1.0},
            "metadata": {}, "created_at": made["created_at"], "updated_at": made["created_at"],
        })
    );
    is_time(&made["created_at"]);
    assert_eq!(made.header("etag"), Some("\"1\""));
    let read = world.get(format!("/assistants/{id}")).ok();
    assert_eq!(read.body, made.body);
    assert_eq!(read.header("etag"), Some("\"1\""));
    assert_eq!(world.get("/assistants").ok().json, json!([made.json]));
}

#[test]
fn a_patch_changes_only_the_given_fields() {
    let world = World::new();
    let body = json!({"name": "A", "instructions": "B", "first_message": "Hello!", "model": "builtin/rules",
        "voice": "builtin/tone", "pipeline_mode": "cascading"});
    let made = world.create("/assistants", body.clone());
    let path = format!("/assistants/{}", made.id);
    let same = world.patch(&path, body).ok();
    assert_eq!(same.json, made.json, "a PATCH that changes nothing keeps the revision");
    assert_eq!(same.header("etag"), Some("\"1\""));
    let changed = world.patch(&path, json!({"first_message": ""})).ok();
    assert_eq!(changed["revision"], 2);
    assert_eq!(changed.header("etag"), Some("\"2\""));
    assert_eq!(changed["first_message"], "");
    assert_eq!(changed["name"], "A", "fields left out keep their values");
    assert_eq!(world.get(&path).ok().json, changed.json);
    assert_eq!(world.patch(&path, json!({})).ok().json, changed.json);
}

#[test]
fn a_patch_changes_only_the_given_settings_of_speech() {
    let world = World::new();
    let made = world.assistant();
    let path = format!("/assistants/{}", made.id);
    let first = json!({"speech": {"filler": "One moment.", "end_of_turn_min_ms": 800}});
    let expected = world.patch(&path, first).ok()["speech"].clone();
    let changed = world.patch(&path, json!({"speech": {"speed": 1.5}})).ok();
    assert_eq!((&changed["speech"]["speed"], &changed["revision"]), (&json!(1.5), &json!(3)));
    let mut kept = changed["speech"].clone();
    kept["speed"] = expected["speed"].clone();
    assert_eq!(kept, expected);
    assert_eq!(world.patch(&path, json!({"speech": {}})).ok()["revision"], 3);
    // The rule that compares two of them sees the one that is kept.
    let error =
        world.patch(&path, json!({"speech": {"end_of_turn_max_ms": 500}})).refused("validation_failed");
    assert_eq!(error.fields(), ["speech.end_of_turn_max_ms"]);
}

#[test]
fn an_unknown_voice_is_refused_with_the_setting_that_it_needs() {
    let world = World::new();
    let refused = |voice: &str| {
        let body = json!({"name": "A", "instructions": "B", "voice": voice});
        world.post("/assistants", body).refused("validation_failed").json.to_string()
    };
    assert!(refused("deepgram/aura-2-thalia-en").contains("SIDETONE_DEEPGRAM_API_KEY"));
    assert!(refused("builtin/alto").contains("builtin/tone, builtin/browser"));
    let spelt = json!({"name": "A", "instructions": "B", "language": "english"});
    world.post("/assistants", spelt).refused("validation_failed");
}

#[test]
fn lists_are_newest_first() {
    let world = World::new();
    let made: Vec<String> = (0..3).map(|_| world.assistant().id).collect();
    let mut listed = world.get("/assistants").ok().ids();
    listed.reverse();
    assert_eq!(listed, made);
}

#[test]
fn name_length_is_counted_in_characters() {
    let world = World::new();
    let longest = "é".repeat(120);
    let made = world.create("/assistants", json!({"name": longest, "instructions": "x"}));
    assert_eq!(made["name"], longest.as_str());
    for name in [String::new(), "é".repeat(121), "x".repeat(121)] {
        let body = json!({"name": name, "instructions": "x"});
        world.post("/assistants", body).refused("validation_failed").naming(&["name"]);
        world
            .patch(format!("/assistants/{}", made.id), json!({"name": name}))
            .refused("validation_failed")
            .naming(&["name"]);
    }
}

#[test]
fn instructions_length_is_counted_in_bytes() {
    let world = World::new();
    for longest in ["x".repeat(32_768), "é".repeat(16_384), "語".repeat(10_922), "😀".repeat(8_192)] {
        let body = json!({"name": "A", "instructions": longest});
        let made = world.create("/assistants", body);
        assert_eq!(made["instructions"], longest.as_str());
    }
    let made = world.assistant();
    for over in ["x".repeat(32_769), "é".repeat(16_385), "語".repeat(10_923), "😀".repeat(8_193)] {
        let body = json!({"name": "A", "instructions": over});
        world.post("/assistants", body).refused("validation_failed").naming(&["instructions"]);
        world
            .patch(format!("/assistants/{}", made.id), json!({"instructions": over}))
            .refused("validation_failed")
            .naming(&["instructions"]);
    }
}

#[test]
fn texts_are_returned_unchanged() {
    let world = World::new();
    for text in [
        "  spaces  ",
        "line\nline\r\n\ttab",
        "\u{1}\u{1f}\u{7f}",
        "👩‍👩‍👧 é e\u{301} \u{202e}",
        "'; DROP TABLE x; --",
        "\\u0041 \"q\" </script>",
        ":ws ?1 %00 {id}",
        "\u{feff}bom",
        "\u{10ffff}\u{fffd}",
    ] {
        // A name is one line, in one direction.
        let is_line = !text.contains(|c: char| c.is_control() || c == '\u{202e}');
        let name = if is_line { text } else { "A" };
        let made =
            world.create("/assistants", json!({"name": name, "instructions": text, "first_message": text}));
        let read = world.get(format!("/assistants/{}", made.id)).ok();
        assert_eq!(read["name"], name);
        for field in ["instructions", "first_message"] {
            assert_eq!(read[field], text, "{field}");
        }
        if !is_line {
            let renamed = world.patch(format!("/assistants/{}", made.id), json!({"name": text}));
            renamed.refused("validation_failed").naming(&["name"]);
        }
    }
}

#[test]
fn a_model_needs_a_configured_provider() {
    let world = World::new();
    for value in ["gpt", "nobody/gpt", "/x", "builtin/", "builtin /x", "builtin/a b", "BUILTIN/rules", " "] {
        for field in ["model", "voice"] {
            let body = json!({"name": "A", "instructions": "B", field: value});
            world.post("/assistants", body).refused("validation_failed").naming(&[field]);
        }
    }
    let both = json!({"name": "A", "instructions": "B", "model": "a/b", "voice": "c/d"});
    world.post("/assistants", both).refused("validation_failed").naming(&["model", "voice"]);
    let any_name = json!({"name": "A", "instructions": "B", "model": "builtin/anything/at-all"});
    world.post("/assistants", any_name).created();
}

#[test]
fn realtime_needs_a_provider_that_supports_it() {
    let world = World::new();
    let body = json!({"name": "A", "instructions": "B", "pipeline_mode": "realtime"});
    let made = world.create("/assistants", body.clone());
    assert_eq!(made["pipeline_mode"], "realtime", "the rule model speaks the tone code");
    let path = format!("/assistants/{}", made["id"].as_str().unwrap());
    world.patch(&path, json!({"voice": "builtin/browser"})).refused("validation_failed").naming(&["voice"]);
    let other = json!({"model": "builtin/anything"});
    world.patch(&path, other).refused("validation_failed").naming(&["pipeline_mode"]);

    let able = World::with_settings(&[("SIDETONE_OPENAI_API_KEY", "sk-test")]);
    let mut body = body;
    body["model"] = "openai/gpt-realtime".into();
    let made = able.create("/assistants", body.clone());
    assert_eq!(made["pipeline_mode"], "realtime");
    body["model"] = "openai/gpt-5".into();
    let refused = able.post("/assistants", body);
    assert!(refused.json.to_string().contains("`openai/gpt-5` does not"), "{}", refused.json);
    refused.refused("validation_failed").naming(&["pipeline_mode"]);
    let further = World::with_settings(&[(
        "SIDETONE_PROVIDERS",
        r#"{"xai": {"base_url": "https://api.x.ai/v1", "realtime_url": "wss://api.x.ai/v1/realtime"},
            "groq": {"base_url": "https://api.groq.example/v1"}}"#,
    )]);
    let body = |model| json!({"name": "A", "instructions": "B", "pipeline_mode": "realtime", "model": model});
    further.post("/assistants", body("xai/voice")).created();
    further.post("/assistants", body("groq/llama")).refused("validation_failed").naming(&["pipeline_mode"]);
    let models = further.get("/models").ok().json;
    assert_eq!(models[1]["pipeline_modes"], json!(["cascading"]), "{models}");
    assert_eq!(models[2]["pipeline_modes"], json!(["cascading", "realtime"]), "{models}");
    able.patch(format!("/assistants/{}", made.id), json!({"model": "builtin/other"}))
        .refused("validation_failed")
        .naming(&["pipeline_mode"]);
}

#[test]
fn the_default_model_and_voice_are_settings() {
    let world = World::with_settings(&[
        ("SIDETONE_PROVIDERS", r#"{"groq": {"base_url": "https://api.groq.example/v1"}}"#),
        ("SIDETONE_DEFAULT_MODEL", "groq/llama"),
        ("SIDETONE_DEFAULT_VOICE", "groq/aria"),
    ]);
    let made = world.assistant();
    assert_eq!((&made["model"], &made["voice"]), (&json!("groq/llama"), &json!("groq/aria")));
}

#[test]
fn if_match_accepts_the_revision_with_or_without_quotes() {
    let world = World::new();
    let path = format!("/assistants/{}", world.assistant().id);
    assert_eq!(patch_if(&world, &path, "1", "first").ok()["revision"], 2);
    assert_eq!(patch_if(&world, &path, "\"2\"", "second").ok()["revision"], 3);
    assert_eq!(patch_if(&world, &path, " 3 ", "third").ok()["revision"], 4);
    assert_eq!(world.get(&path).ok()["name"], "third");
}

#[test]
fn a_stale_revision_is_rejected_with_both_revisions() {
    let world = World::new();
    let path = format!("/assistants/{}", world.assistant().id);
    world.patch(&path, json!({"name": "Newer"})).ok();
    for stale in ["1", "\"1\"", "3", "0", "9007199254740991"] {
        let reply = patch_if(&world, &path, stale, "Older").refused("revision_conflict");
        let expected: Value = serde_json::from_str(stale.trim_matches('"')).unwrap();
        assert_eq!(reply["error"]["details"], json!({"expected": expected, "current": 2}));
        delete_if(&world, &path, stale).refused("revision_conflict");
    }
    // The revision is checked even if the change would have no effect.
    patch_if(&world, &path, "1", "Newer").refused("revision_conflict");
    assert_eq!(world.get(&path).ok()["name"], "Newer");
    let tool =
        json!({"id": path.trim_start_matches("/assistants/"), "if_revision": 1, "data": {"name": "Older"}});
    let refused = world.tool("update_assistant", tool).refused("revision_conflict");
    assert_eq!(refused["error"]["details"], json!({"expected": 1, "current": 2}));
    delete_if(&world, &path, "2").empty();
    world.get(&path).refused("not_found");
}

#[test]
fn a_stale_revision_does_not_replace_a_list() {
    let world = World::new();
    let assistant = world.assistant().id;
    let lists = [
        ("tools", "set_assistant_tools", json!({"tool_ids": [world.a_tool().id]})),
        ("knowledge", "set_assistant_knowledge", json!({"knowledge_ids": [world.document(2).id]})),
    ];
    for (revision, (list, tool, body)) in (1..).zip(lists) {
        let path = format!("/assistants/{assistant}/{list}");
        let put = |revision: i64| conditional(&world, Method::PUT, &path, &revision.to_string(), Some(&body));
        put(revision - 1).refused("revision_conflict");
        let arguments = json!({"id": assistant, "if_revision": revision + 1, "data": body});
        world.tool(tool, arguments).refused("revision_conflict");
        assert_eq!(world.get(format!("/assistants/{assistant}")).ok()["revision"], revision);
        assert_eq!(put(revision).ok()["revision"], revision + 1);
        // The revision is checked even if the list would not change.
        put(revision).refused("revision_conflict");
    }
}

#[test]
fn an_invalid_if_match_is_a_400() {
    let world = World::new();
    let path = format!("/assistants/{}", world.assistant().id);
    for bad in [
        "",
        "*",
        "W/\"1\"",
        "\"1",
        "1\"",
        "\"\"",
        "1, 2",
        "\"1\", \"2\"",
        "one",
        "1.0",
        "+1",
        "01",
        "-1",
        "1e0",
        "0x1",
        "9007199254740992",
        "99999999999999999999",
        "\"1\"\"",
        "''",
        "\u{661}",
    ] {
        if bad.is_empty() && !world.is_literal() {
            continue;
        }
        patch_if(&world, &path, bad, "X").refused("invalid_if_match");
        delete_if(&world, &path, bad).refused("invalid_if_match");
    }
    assert_eq!(world.get(&path).ok()["revision"], 1);
}

#[test]
fn concurrent_patches_without_if_match_all_succeed() {
    const PATCHES: usize = 16;
    let world = World::new();
    let path = format!("/assistants/{}", world.assistant().id);
    let mut revisions: Vec<i64> = thread::scope(|scope| {
        let patch = |n: usize| world.patch(&path, json!({"first_message": format!("Hello {n}")})).ok();
        let all: Vec<_> = (0..PATCHES).map(|n| scope.spawn(move || patch(n))).collect();
        all.into_iter().map(|one| one.join().unwrap()["revision"].as_i64().unwrap()).collect()
    });
    revisions.sort_unstable();
    let expected: Vec<i64> = (2..2 + PATCHES as i64).collect();
    assert_eq!(revisions, expected, "each PATCH creates its own revision");
    assert_eq!(world.get(&path).ok()["revision"], json!(1 + PATCHES));
}

#[test]
fn of_concurrent_patches_with_the_same_if_match_one_succeeds() {
    const PATCHES: usize = 12;
    let world = World::new();
    let path = format!("/assistants/{}", world.assistant().id);
    let statuses: Vec<u16> = thread::scope(|scope| {
        let patch = |n: usize| patch_if(&world, &path, "1", &format!("Name {n}")).status;
        let all: Vec<_> = (0..PATCHES).map(|n| scope.spawn(move || patch(n))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), PATCHES - 1, "{statuses:?}");
    assert_eq!(world.get(&path).ok()["revision"], 2);
}

#[test]
fn tools_are_attached_in_the_given_order_without_duplicates() {
    let world = World::new();
    let path = format!("/assistants/{}", world.assistant().id);
    let [a, b, c] = [world.a_tool().id, world.a_tool().id, world.a_tool().id];
    let set = |ids: Value| world.put(format!("{path}/tools"), json!({"tool_ids": ids}));
    let reply = set(json!([c, a, c, b, a])).ok();
    assert_eq!(reply["tool_ids"], json!([c, a, b]));
    assert_eq!(reply["revision"], 2);
    assert_eq!(reply.header("etag"), Some("\"2\""));
    assert_eq!(set(json!([c, a, b])).ok()["revision"], 2, "the same list changes nothing");
    assert_eq!(set(json!([c, c, a, b])).ok()["revision"], 2, "the same list with duplicates changes nothing");
    assert_eq!(set(json!([a, b, c])).ok()["revision"], 3, "another order is a change");
    assert_eq!(world.get(&path).ok()["tool_ids"], json!([a, b, c]));
    assert_eq!(set(json!([b])).ok()["tool_ids"], json!([b]), "the whole list is replaced");
    assert_eq!(set(json!([])).ok()["tool_ids"], json!([]));
    assert_eq!(set(json!([])).ok()["revision"], 5);
    world.get(format!("/tools/{a}")).ok();
}

#[test]
fn an_assistant_has_at_most_64_tools() {
    let world = World::new();
    let path = format!("/assistants/{}/tools", world.assistant().id);
    let mut ids: Vec<String> = (0..64).map(|_| world.a_tool().id).collect();
    assert_eq!(world.put(&path, json!({"tool_ids": ids})).ok()["tool_ids"], json!(ids));
    ids.push(ids[0].clone());
    assert_eq!(world.put(&path, json!({"tool_ids": ids})).ok()["revision"], 2, "a duplicate id counts once");
    ids.push(world.a_tool().id);
    world.put(&path, json!({"tool_ids": ids})).refused("validation_failed").naming(&["tool_ids"]);
}

#[test]
fn only_the_workspaces_own_tools_can_be_attached() {
    let world = World::new();
    let path = format!("/assistants/{}/tools", world.assistant().id);
    let mine = world.a_tool().id;
    world.put(&path, json!({"tool_ids": [mine]})).ok();
    let theirs = world.other().a_tool().id;
    let ids = json!([mine, theirs, "tool_nope", ""]);
    let reply = world.put(&path, json!({"tool_ids": ids})).refused("validation_failed");
    let reply = reply.naming(&["tool_ids[1]", "tool_ids[2]", "tool_ids[3]"]);
    let problems = reply["error"]["details"]["fields"].as_array().unwrap();
    assert_eq!(
        problems[0]["message"], problems[1]["message"],
        "an id of another workspace gets the same error as an unknown id"
    );
    let unchanged = world.get(path.trim_end_matches("/tools")).ok();
    assert_eq!((&unchanged["tool_ids"], &unchanged["revision"]), (&json!([mine]), &json!(2)));
}

#[test]
fn thousands_of_unknown_ids_get_a_short_error() {
    let world = World::new();
    let id = world.assistant().id;
    let ids: Vec<String> = (0..20_000).map(|n| format!("tool_{n}")).collect();
    world.put(format!("/assistants/{id}/tools"), json!({"tool_ids": ids})).refused("validation_failed");
    world
        .put(format!("/assistants/{id}/knowledge"), json!({"knowledge_ids": ids}))
        .refused("validation_failed");
}

#[test]
fn knowledge_is_attached_in_the_given_order_without_duplicates() {
    let world = World::new();
    let path = format!("/assistants/{}", world.assistant().id);
    let [a, b] = [world.document(10).id, world.document(10).id];
    let set = |ids: Value| world.put(format!("{path}/knowledge"), json!({"knowledge_ids": ids}));
    let reply = set(json!([b, a, b])).ok();
    assert_eq!((&reply["knowledge_ids"], &reply["revision"]), (&json!([b, a]), &json!(2)));
    assert_eq!(set(json!([b, a])).ok()["revision"], 2);
    let theirs = world.other().document(10).id;
    set(json!([a, theirs])).refused("validation_failed").naming(&["knowledge_ids[1]"]);
    assert_eq!(set(json!([])).ok()["knowledge_ids"], json!([]));
    world.get(format!("/knowledge/{a}")).ok();
}

#[test]
fn an_assistant_has_at_most_128_documents() {
    let world = World::new();
    let path = format!("/assistants/{}/knowledge", world.assistant().id);
    let mut ids: Vec<String> = (0..128).map(|_| world.document(1).id).collect();
    assert_eq!(world.put(&path, json!({"knowledge_ids": ids})).ok()["knowledge_ids"], json!(ids));
    ids.push(world.document(1).id);
    world.put(&path, json!({"knowledge_ids": ids})).refused("validation_failed").naming(&["knowledge_ids"]);
}

#[test]
fn an_assistant_has_at_most_200_kib_of_knowledge() {
    const KIB: usize = 1024;
    let world = World::new();
    let path = format!("/assistants/{}/knowledge", world.assistant().id);
    let full: Vec<String> = (0..4).map(|_| world.document(50 * KIB).id).collect();
    world.put(&path, json!({"knowledge_ids": full})).ok();
    let one_byte = world.document(1).id;
    let over: Vec<&String> = full.iter().chain([&one_byte]).collect();
    world.put(&path, json!({"knowledge_ids": over})).refused("validation_failed").naming(&["knowledge_ids"]);

    // The limit also applies when an attached document grows.
    let room = [&full[..3], std::slice::from_ref(&one_byte)].concat();
    world.put(&path, json!({"knowledge_ids": room})).ok();
    let document = format!("/knowledge/{one_byte}");
    world.patch(&document, json!({"content": "x".repeat(50 * KIB)})).ok();
    let another = world.document(1).id;
    let over: Vec<&String> = room.iter().chain([&another]).collect();
    world.put(&path, json!({"knowledge_ids": over})).refused("validation_failed").naming(&["knowledge_ids"]);
    world.patch(&document, json!({"content": "x".repeat(50 * KIB - 1)})).ok();
    world.put(&path, json!({"knowledge_ids": over})).ok();
    world
        .patch(&document, json!({"content": "y".repeat(50 * KIB)}))
        .refused("validation_failed")
        .naming(&["content"]);
    world
        .patch(format!("/knowledge/{another}"), json!({"content": "yy"}))
        .refused("validation_failed")
        .naming(&["content"]);
    // A change that does not increase the size is accepted.
    world.patch(format!("/knowledge/{another}"), json!({"content": "y"})).ok();
}

#[test]
fn deleting_a_tool_or_document_detaches_it_and_increments_revisions() {
    let world = World::new();
    let [with, without] = [world.assistant(), world.assistant()];
    let path = format!("/assistants/{}", with.id);
    let [keep, tool, document] = [world.a_tool().id, world.a_tool().id, world.document(5).id];
    world.put(format!("{path}/tools"), json!({"tool_ids": [keep, tool]})).ok();
    world.put(format!("{path}/knowledge"), json!({"knowledge_ids": [document]})).ok();
    world.delete(format!("/tools/{tool}")).empty();
    let after = world.get(&path).ok();
    assert_eq!((&after["tool_ids"], &after["revision"]), (&json!([keep]), &json!(4)));
    world.delete(format!("/knowledge/{document}")).empty();
    let after = world.get(&path).ok();
    assert_eq!((&after["knowledge_ids"], &after["revision"]), (&json!([]), &json!(5)));
    assert_eq!(world.get(format!("/assistants/{}", without.id)).ok()["revision"], 1);
    world
        .put(format!("{path}/tools"), json!({"tool_ids": [keep, tool]}))
        .refused("validation_failed")
        .naming(&["tool_ids[1]"]);
}

#[test]
fn deleting_an_assistant_deletes_its_bindings_and_simulations() {
    let world = World::new();
    let assistant = world.assistant();
    let kept = world.binding();
    let number = world.phone_number();
    world.put(format!("/numbers/{number}"), json!({"assistant_id": assistant.id, "provider": "telnyx"})).ok();
    let tool = world.a_tool().id;
    world.put(format!("/assistants/{}/tools", assistant.id), json!({"tool_ids": [tool]})).ok();
    let simulation = world.simulation_of(&assistant.id);
    let other = world.simulation();
    let run = world.create(&format!("/simulations/{}/runs", simulation.id), json!({}));
    world.delete(format!("/assistants/{}", assistant.id)).empty();

    world.get(format!("/assistants/{}", assistant.id)).refused("not_found");
    world.delete(format!("/assistants/{}", assistant.id)).refused("not_found");
    let numbers: Vec<Value> = world.get("/numbers").ok().json.as_array().unwrap().clone();
    assert_eq!(numbers, [kept.json]);
    world.get(format!("/simulations/{}", simulation.id)).refused("not_found");
    assert_eq!(world.get("/simulations").ok().ids(), [other.id]);
    world.get(format!("/tools/{tool}")).ok();
    // Completed runs remain.
    let read = world.get(format!("/simulations/runs/{}", run.id)).ok();
    assert_eq!(read["assistant_id"], assistant.id.as_str());
    assert_eq!(read["simulation_id"], simulation.id.as_str());
    // The number is available to other workspaces.
    let other = world.other();
    let theirs = json!({"assistant_id": other.assistant().id, "provider": "plivo"});
    other.put(format!("/numbers/{number}"), theirs).ok();
}

#[test]
fn a_workspace_sees_only_its_own_assistants() {
    let world = World::new();
    let other = world.other();
    let mine = world.assistant();
    let path = format!("/assistants/{}", mine.id);
    assert_eq!(other.get("/assistants").ok().json, json!([]));
    let theirs = other.get(&path).refused("not_found");
    let unknown = other.get(format!("/assistants/{UNKNOWN_ID}")).refused("not_found");
    assert_eq!(theirs["error"]["message"], unknown["error"]["message"]);
    other.patch(&path, json!({"name": "Mine now"})).refused("not_found");
    other.put(format!("{path}/tools"), json!({"tool_ids": []})).refused("not_found");
    other.delete(&path).refused("not_found");
    assert_eq!(world.get(&path).ok().json, mine.json);
}

#[track_caller]
fn is_time(value: &Value) {
    let text = value.as_str().unwrap();
    let form: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(form, "0000-00-00T00:00:00.000Z", "RFC 3339, UTC, milliseconds");
}

fn patch_if(world: &World, path: &str, revision: &str, name: &str) -> Reply {
    let body = json!({"name": name});
    conditional(world, Method::PATCH, path, revision, Some(&body))
}

fn delete_if(world: &World, path: &str, revision: &str) -> Reply {
    conditional(world, Method::DELETE, path, revision, None)
}

fn conditional(world: &World, method: Method, path: &str, revision: &str, body: Option<&Value>) -> Reply {
    world.call_with(method, path, body, &[("if-match", revision)])
}

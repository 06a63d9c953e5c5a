//! API keys, rates of speech, and models.
use serde_json::{Value, json};
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::base::limits;
use sidetone_tests::World;

#[test]
fn a_key_is_shown_once_and_authenticates() {
    let world = World::new();
    let assistant = world.assistant();
    let made = world.post("/keys", json!({"name": "CI"})).created();
    let key = made["key"].as_str().unwrap();
    assert_eq!(key.len(), "sidetone_".len() + 43 + 6);
    assert!(ApiKey::parse(key).is_some(), "the checksum is valid");
    assert_eq!(made["hint"], format!("sidetone_…{}", &key[key.len() - 4..]));
    assert!(made["id"].as_str().unwrap().starts_with("key_"));
    let with_it = world.with_key(key);
    assert_eq!(with_it.get("/assistants").ok().ids(), [assistant.id]);
    let listed = with_it.get("/keys").ok();
    let newest = listed.json[0].clone();
    assert_eq!(
        newest,
        json!({"id": made["id"], "name": "CI", "hint": made["hint"], "created_at": made["created_at"],
               "last_used_at": newest["last_used_at"]})
    );
    assert!(newest["last_used_at"].is_string(), "by the request before: {newest}");
    assert!(!String::from_utf8_lossy(&listed.body).contains(key));
    with_it.post("/keys", json!({"name": "Created by a key"})).created();
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn the_last_use_of_a_key_is_noted_once_an_hour() {
    let world = World::with_manual_clock();
    let made = world.api_key();
    let with_it = world.with_key(made["key"].as_str().unwrap());
    let noted = || {
        let keys = world.get("/keys").ok();
        let key = keys.json.as_array().unwrap().iter().find(|key| key["id"] == made["id"]).cloned();
        key.unwrap()["last_used_at"].clone()
    };
    assert_eq!(noted(), Value::Null);
    with_it.get("/assistants/asst_01m7xxf83dcgw6qx190nchznx3").refused("not_found");
    let first = noted();
    assert!(first.is_string());
    let sandbox = world.sandbox().unwrap();
    sandbox.advance(limits::KEY_USED_MS - 60_000);
    with_it.get("/assistants").ok();
    assert_eq!(noted(), first);
    sandbox.advance(60_000);
    with_it.mcp(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": {"name": "list_assistants", "arguments": {}}}));
    assert_ne!(noted(), first);
}

#[test]
fn a_revoked_key_is_rejected() {
    let world = World::new();
    let made = world.api_key();
    let with_it = world.with_key(made["key"].as_str().unwrap());
    with_it.get("/assistants").ok();
    let path = format!("/keys/{}", made.id);
    world.other().delete(&path).refused("not_found");
    world.delete(&path).empty();
    let reply = with_it.get("/assistants").refused("unauthorized");
    assert!(reply.header("www-authenticate").unwrap().starts_with("Bearer"));
    with_it.mcp(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).refused("unauthorized");
    world.delete(&path).refused("not_found");
    assert!(!world.get("/keys").ok().ids().contains(&made.id));
}

#[test]
fn a_key_can_revoke_itself() {
    let world = World::new();
    let made = world.api_key();
    let with_it = world.with_key(made["key"].as_str().unwrap());
    with_it.delete(format!("/keys/{}", made.id)).empty();
    with_it.get("/keys").refused("unauthorized");
    world.get("/keys").ok();
}

#[test]
fn two_keys_of_one_workspace_see_the_same_resources() {
    let world = World::new();
    let again = world.with_key(world.api_key()["key"].as_str().unwrap());
    let made = again.assistant();
    assert_eq!(world.get(format!("/assistants/{}", made.id)).ok().json, made.json);
}

#[test]
fn rates_and_models_are_listed() {
    let world = World::new();
    assert_eq!(
        world.get("/stt/rates").ok().json,
        json!([{"transcriber": "builtin/tone", "provider": "builtin", "default": false, "microusd_per_minute": 0,
                "pipeline_modes": ["cascading", "realtime"]}])
    );
    assert_eq!(
        world.get("/tts/rates").ok().json,
        json!([("builtin/browser", &["cascading"][..]), ("builtin/tone", &["cascading", "realtime"])].map(
            |(voice, modes)| {
                json!({"voice": voice, "provider": "builtin", "microusd_per_1k_chars": 0, "languages": ["*"],
                       "pipeline_modes": modes})
            }
        ))
    );
    assert_eq!(
        world.get("/models").ok().json,
        json!([{"model": "builtin/rules", "provider": "builtin", "pipeline_modes": ["cascading", "realtime"], "default": true,
                "input_microusd_per_1m_tokens": 0, "output_microusd_per_1m_tokens": 0}])
    );
    let more = World::with_settings(&[
        ("SIDETONE_OPENAI_API_KEY", "sk-test"),
        ("SIDETONE_PROVIDERS", r#"{"local": {"base_url": "http://127.0.0.1:11434/v1"}}"#),
        ("SIDETONE_MODELS", r#"{"openai/a": {"input_microusd_per_1m_tokens": 150000}, "local/b": {}}"#),
        ("SIDETONE_DEFAULT_MODEL", "openai/a"),
    ]);
    let models = more.get("/models").ok().json;
    let models = models.as_array().unwrap();
    let names: Vec<&str> = models.iter().filter_map(|model| model["model"].as_str()).collect();
    assert_eq!(names, ["builtin/rules", "local/b", "local/*", "openai/a", "openai/*"]);
    assert_eq!(models[3]["pipeline_modes"], json!(["cascading", "realtime"]));
    assert_eq!(models[3]["input_microusd_per_1m_tokens"], 150_000);
    assert_eq!(models[3]["output_microusd_per_1m_tokens"], Value::Null);
    let defaults: Vec<bool> = models.iter().map(|model| model["default"] == true).collect();
    assert_eq!(defaults, [false, false, false, true, false]);
    let talking = World::with_settings(&[
        ("SIDETONE_OPENAI_API_KEY", "sk-test"),
        ("SIDETONE_DEEPGRAM_API_KEY", "key"),
        ("SIDETONE_VOICES", r#"{"openai/alloy": {"microusd_per_1k_chars": 15000}, "openai/echo": {}}"#),
    ]);
    let rates = talking.get("/tts/rates").ok().json;
    let rates: Vec<_> = rates
        .as_array()
        .unwrap()
        .iter()
        .map(|rate| (rate["voice"].as_str().unwrap(), rate["microusd_per_1k_chars"].as_u64()))
        .collect();
    assert_eq!(
        rates,
        [
            ("builtin/browser", Some(0)),
            ("builtin/tone", Some(0)),
            ("deepgram/*", None),
            ("openai/alloy", Some(15_000)),
            ("openai/echo", None),
            ("openai/*", None),
        ]
    );
}

#[test]
fn transcribers_are_listed_with_their_prices() {
    let providers = [
        ("SIDETONE_OPENAI_API_KEY", "sk-test"),
        ("SIDETONE_DEEPGRAM_API_KEY", "key"),
        // They only speak.
        ("SIDETONE_ELEVENLABS_API_KEY", "key"),
        (
            "SIDETONE_TRANSCRIBERS",
            r#"{"deepgram/nova-3": {"microusd_per_minute": 7700}, "openai/whisper-1": {}}"#,
        ),
    ];
    let listed = |default: &'static str| {
        let settings: Vec<_> =
            providers.into_iter().chain([("SIDETONE_DEFAULT_TRANSCRIBER", default)]).collect();
        let world = World::with_settings(&settings);
        let rates = world.get("/stt/rates").ok().json;
        let rates = rates.as_array().unwrap().clone();
        let row = |rate: Value| {
            (rate["transcriber"].clone(), rate["microusd_per_minute"].clone(), rate["default"].clone())
        };
        rates.into_iter().map(row).collect::<Vec<_>>()
    };
    let row = |name: &str, price: Option<u32>, default: bool| (json!(name), json!(price), json!(default));
    assert_eq!(
        listed("deepgram/nova-3"),
        [
            row("builtin/tone", Some(0), false),
            row("deepgram/nova-3", Some(7_700), true),
            row("deepgram/*", None, false),
            row("openai/whisper-1", None, false),
            row("openai/*", None, false),
        ]
    );
    // One without a price is listed as well if it is the default.
    let listed = listed("openai/gpt-4o-mini-transcribe");
    assert_eq!(listed[4], row("openai/gpt-4o-mini-transcribe", None, true));
    assert_eq!(listed.iter().filter(|(_, _, default)| *default == true).count(), 1);
}

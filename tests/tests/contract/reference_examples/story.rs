//! What happens in the examples: a dental practice sets its front desk up, tests it and goes on the telephone. Every operation
//! is called at least once; a new one needs a line.
use serde_json::{Value, json};

use super::{AWAY, Book, EVENTS_URL, TOOLS_URL};

const NUMBER: &str = "+14155550199";

pub(super) fn tell(book: &mut Book<'_>) {
    book.call(
        "update_workspace",
        &[],
        "",
        Some(json!({"name": "Blue Door Dental", "monthly_spend_limit_microusd": 50_000_000})),
    );
    book.call("get_workspace", &[], "", None);
    book.refused("/assistants", json!({"name": "", "instructons": "Be kind."}));
    let webhook = book.make("create_webhook", &[], json!({"url": EVENTS_URL, "events": ["*"]}));
    book.call("test_webhook", &[&webhook], "", None);
    book.wait();

    let (assistant, tool) = front_desk(book);
    let simulation = simulation(book, &assistant);
    let call = runs(book, &assistant, &simulation);
    calls(book, &assistant, &call);
    the_rest(book, &webhook, &assistant, &tool);
}

/// An assistant with a tool and knowledge.
fn front_desk(book: &mut Book<'_>) -> (String, String) {
    let assistant = book.make(
        "create_assistant",
        &[],
        json!({
            "name": "Front desk",
            "instructions": "You answer the telephone of Blue Door Dental. Be brief and kind.",
            "first_message": "Blue Door Dental, hello. This call is recorded. How can I help?",
            "model": "builtin/rules",
            "voice": "builtin/tone",
            "language": "en",
        }),
    );
    let tool = book.make(
        "create_tool",
        &[],
        json!({
            "name": "find_appointment",
            "url": format!("{TOOLS_URL}find"),
            "description": "Finds a free appointment on a day",
            "parameters": {"type": "object", "required": ["day"], "properties": {"day": {"type": "string", "format": "date"}}},
        }),
    );
    book.call("get_tool", &[&tool], "", None);
    book.call("list_tools", &[], "", None);
    book.call("test_tool", &[&tool], "", Some(json!({"arguments": {"day": "2026-01-05"}})));
    book.call("update_tool", &[&tool], "", Some(json!({"timeout_ms": 3_000})));
    let document = book.make(
        "create_knowledge_document",
        &[],
        json!({"name": "Opening hours", "content": "We open at nine on Saturday. We are closed on Sunday."}),
    );
    book.call("get_knowledge_document", &[&document], "", None);
    book.call("list_knowledge_documents", &[], "", None);
    let hours = "We open at nine on Saturday and at eight on other days. We are closed on Sunday.";
    book.call("update_knowledge_document", &[&document], "", Some(json!({"content": hours})));
    book.call("set_assistant_tools", &[&assistant], "", Some(json!({"tool_ids": [tool]})));
    book.call("set_assistant_knowledge", &[&assistant], "", Some(json!({"knowledge_ids": [document]})));
    book.call("get_assistant", &[&assistant], "", None);
    book.call("list_assistants", &[], "limit=20", None);
    let words = json!({"speech": {"filler": "One moment, please."}});
    book.call("update_assistant", &[&assistant], "", Some(words));
    book.call("list_assistant_revisions", &[&assistant], "limit=2", None);
    book.call("restore_assistant_revision", &[&assistant, "3"], "", None);
    let token = json!({"ttl_seconds": 300, "max_duration_seconds": 120});
    book.call("create_browser_test_token", &[&assistant], "", Some(token));
    (assistant, tool)
}

/// A caller who asks for an appointment.
fn simulation(book: &mut Book<'_>, assistant: &str) -> String {
    let persona = json!({"name": "Mira", "system_prompt": "A patient caller who speaks in short sentences."});
    let persona = book.make("create_simulation_persona", &[], persona);
    book.call("get_simulation_persona", &[&persona], "", None);
    book.call("list_simulation_personas", &[], "", None);
    let update = json!({"system_prompt": "A caller in a hurry who speaks in short sentences."});
    book.call("update_simulation_persona", &[&persona], "", Some(update));
    let scenario = book.make(
        "create_simulation_scenario",
        &[],
        json!({
            "name": "An appointment on a day",
            "instructions": "Ask: \"Do you have a free appointment on 2026-01-05?\" Then ask: \"When do you open on Saturday?\"",
            "evaluations": [
                {"kind": "tool_call", "includes": "find_appointment", "arguments": {"day": "2026-01-05"}},
                {"kind": "transcript", "role": "assistant", "includes": "nine"},
            ],
        }),
    );
    book.call("get_simulation_scenario", &[&scenario], "", None);
    book.call("list_simulation_scenarios", &[], "", None);
    book.call("update_simulation_scenario", &[&scenario], "", Some(json!({"conditions": {"noise_db": -40}})));
    let body = json!({
        "assistant_id": assistant, "persona_id": persona, "scenario_id": scenario, "name": "Mira wants an appointment",
    });
    let simulation = book.make("create_simulation", &[], body);
    book.call("get_simulation", &[&simulation], "", None);
    book.call("update_simulation", &[&simulation], "", Some(json!({"name": "An appointment for Mira"})));
    simulation
}

/// A run by text, one by voice, and one that fails. Returns the recorded call.
fn runs(book: &mut Book<'_>, assistant: &str, simulation: &str) -> String {
    let run = book.make("start_simulation_run", &[simulation], json!({"mode": "voice", "seed": 7}));
    book.wait();
    let read = book.call("get_simulation_run", &[&run], "", None);
    assert_eq!(read["passed"], true, "{read:#}");
    book.call("follow_simulation_run", &[&run], "", None);
    let batch = json!({"assistant_id": assistant, "mode": "chat", "seed": 7, "repeat": 2});
    let batch = book.call("start_simulation_batch", &[], "", Some(batch));
    book.wait();
    let batch_id = text(&batch["batch_id"]);
    book.call("get_simulation_batch", &[&batch_id], "", None);
    book.call("list_simulation_runs", &[], &format!("batch_id={batch_id}&limit=20"), None);
    book.call("list_simulations", &[], &format!("assistant_id={assistant}"), None);
    fail(book, assistant, simulation);
    book.call("get_snapshot", &[&text(&batch["runs"][0]["snapshot"])], "", None);
    let inline = json!({
        "assistant_id": assistant, "assistant": {"first_message": "Blue Door Dental, good day."}, "seed": 7, "repeat": 2,
        "persona": {"system_prompt": "A caller in a hurry."},
        "scenario": {
            "instructions": "Ask: \"When do you open on Saturday?\"",
            "evaluations": [{"kind": "transcript", "role": "assistant", "includes": "nine"}],
        },
    });
    let inline = book.call("start_inline_simulation", &[], "", Some(inline));
    book.wait();
    let inline = format!("batch_id={}", text(&inline["batch_id"]));
    book.call("delete_simulation_runs", &[], &inline, None);
    let done = text(&batch["runs"][0]["id"]);
    book.call("delete_simulation_run", &[&done], "", None);
    text(&read["call"]["id"])
}

/// A model that does not answer.
fn fail(book: &mut Book<'_>, assistant: &str, simulation: &str) {
    book.call("update_assistant", &[assistant], "", Some(json!({"model": AWAY})));
    book.call("start_simulation_run", &[simulation], "", Some(json!({"mode": "chat"})));
    book.wait();
    book.call("update_assistant", &[assistant], "", Some(json!({"model": "builtin/rules"})));
}

/// The call log, and a call on the telephone.
fn calls(book: &mut Book<'_>, assistant: &str, call: &str) {
    book.call("list_calls", &[], "search=appointment&limit=20", None);
    book.call("get_call_statistics", &[], "days=1", None);
    book.call("get_call", &[call], "", None);
    book.call("follow_call", &[call], "", None);
    book.call("get_waveform", &[call], "", None);
    book.call("download_recording", &[call], "", None);
    let binding = json!({"assistant_id": assistant, "provider": "twilio"});
    book.call("bind_number", &[NUMBER], "", Some(binding));
    book.call("get_number", &[NUMBER], "", None);
    book.call("list_numbers", &[], "", None);
    let order = json!({"assistant_id": assistant, "to": "+14155550123", "from": NUMBER});
    let placed = book.make("create_outbound_call", &[], order);
    book.call("hang_up_call", &[&placed], "", None);
    book.call("delete_calls", &[], "date_to=2025-12-31&dry_run=true", None);
    book.call("delete_recording", &[call], "", None);
    book.call("delete_call", &[call], "", None);
}

/// Models, keys, the audit log, and what is deleted in the end.
fn the_rest(book: &mut Book<'_>, webhook: &str, assistant: &str, tool: &str) {
    book.wait();
    for id in ["list_tts_rates", "list_stt_rates", "list_models", "list_webhooks"] {
        book.call(id, &[], "", None);
    }
    let sent = book.call("list_webhook_deliveries", &[webhook], "status=delivered&limit=20", None);
    let delivery = text(&sent["deliveries"][0]["id"]);
    book.call("redeliver_webhook_delivery", &[webhook, &delivery], "", None);
    book.wait();
    let events = json!({"events": ["call.ended", "call.analyzed"]});
    book.call("update_webhook", &[webhook], "", Some(events));
    book.call("rotate_webhook_secret", &[webhook], "", Some(json!({"overlap_ms": 3_600_000})));
    book.call("rotate_tool_secret", &[tool], "", Some(json!({})));
    let key = book.make("create_api_key", &[], json!({"name": "Nightly tests"}));
    book.call("list_api_keys", &[], "", None);
    book.call("revoke_api_key", &[&key], "", None);
    book.call("list_audit_entries", &[], "limit=20", None);
    book.call("list_events", &[], "type=call.ended&limit=2", None);

    let listed = |book: &mut Book<'_>, id: &str| text(&book.call(id, &[], "", None)[0]["id"]);
    let (simulation, scenario) =
        (listed(book, "list_simulations"), listed(book, "list_simulation_scenarios"));
    let (persona, document) =
        (listed(book, "list_simulation_personas"), listed(book, "list_knowledge_documents"));
    for (id, value) in [
        ("delete_simulation", &*simulation),
        ("delete_simulation_scenario", &scenario),
        ("delete_simulation_persona", &persona),
        ("unbind_number", NUMBER),
        ("delete_assistant", assistant),
        ("delete_tool", tool),
        ("delete_knowledge_document", &document),
        ("delete_webhook", webhook),
    ] {
        book.call(id, &[value], "", None);
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}")).to_owned()
}

//! What a client reads of the rows, whatever version wrote them.
use serde_json::Value;
use sidetone_tests::process::Client;

use super::rows::full;

/// The migration that something came with, the path that reads it, and what is in these places of the answer, as JSON.
type Read = (u32, &'static str, &'static [(&'static str, &'static str)]);

const READS: &[Read] = &[
    (1, "/workspace", &[("name", r#""Bakery""#)]),
    (4, "/workspace", &[("monthly_spend_limit_microusd", "5000000"), ("runs_at_once", "8")]),
    (7, "/workspace", &[("calls_at_once", "5")]),
    (15, "/workspace", &[("call_retention_days", "3650"), ("recording_retention_days", "3650")]),
    (1, "/keys", &[("0.id", r#""key_~01""#)]),
    (
        1,
        "/assistants/asst_~01",
        &[
            ("name", r#""Desk""#),
            ("first_message", r#""Blue Door, hello.""#),
            ("revision", "3"),
            ("tool_ids", r#"["tool_~01"]"#),
            ("knowledge_ids", r#"["doc_~01"]"#),
            ("record", "true"),
        ],
    ),
    (
        18,
        "/assistants/asst_~02",
        &[
            ("transcriber", r#""builtin/tone""#),
            ("keyterms", r#"["sourdough"]"#),
            ("speech.speed", "1.25"),
            ("record", "false"),
        ],
    ),
    (21, "/assistants/asst_~01/revisions", &[("0.name", r#""Desk""#), ("1.name", r#""Counter""#)]),
    (29, "/assistants/asst_~02", &[("keys", "true")]),
    (30, "/assistants/asst_~02", &[("transfers.0.number", r#""+14155550199""#)]),
    (31, "/assistants/asst_~02", &[("voicemail.message", r#""Call us back.""#)]),
    (35, "/assistants/asst_~02", &[("metadata", r#"{"team":"ovens"}"#)]),
    (1, "/tools", &[("tool_~01.name", r#""look_up""#)]),
    (35, "/tools", &[("tool_~01.metadata.team", r#""ovens""#)]),
    (1, "/knowledge/doc_~01", &[("content", r#""We open at nine.""#)]),
    (1, "/numbers", &[("0.number", r#""+14155550100""#), ("0.assistant_id", r#""asst_~01""#)]),
    (22, "/numbers", &[("0.last_callback_at", r#""2023-11-14T22:15:00.000Z""#)]),
    (
        1,
        "/webhooks",
        &[("hook_~01.url", r#""https://hooks.example/""#), ("hook_~01.events", r#"["call.ended"]"#)],
    ),
    (
        3,
        "/webhooks/hook_~01/deliveries",
        &[
            ("deliveries.dlv_~01.status", r#""delivered""#),
            ("deliveries.dlv_~02.last_status", "500"),
            ("deliveries.dlv_~03.status", r#""pending""#),
            ("deliveries.dlv_~03.attempts", "1"),
        ],
    ),
    (1, "/simulations/personas", &[("pers_~01.name", r#""Ada""#)]),
    (4, "/simulations/personas", &[("pers_~02.model", r#""builtin/rules""#)]),
    (
        1,
        "/simulations/scenarios",
        &[
            ("scen_~01.name", r#""Hours""#),
            ("scen_~01.evaluations.0.includes", r#""nine""#),
            ("scen_~01.judge_votes", "1"),
        ],
    ),
    (4, "/simulations/scenarios", &[("scen_~02.judge_model", r#""builtin/rules""#)]),
    (18, "/simulations/scenarios", &[("scen_~02.conditions.jitter_ms", "40")]),
    (34, "/simulations/scenarios", &[("scen_~02.judge_votes", "3")]),
    (35, "/simulations/scenarios", &[("scen_~02.variables", r#"{"name":"Cy"}"#)]),
    (36, "/simulations/scenarios", &[("scen_~02.tool_mocks.look_up.0.error", r#""closed""#)]),
    (1, "/simulations", &[("sim_~01.name", r#""Hours""#)]),
    (
        1,
        "/simulations/runs/run_~01",
        &[
            ("status", r#""completed""#),
            ("passed", "true"),
            ("seed", "7"),
            ("tools", r#""live""#),
            ("simulation_name", r#""Hours""#),
        ],
    ),
    (4, "/simulations/runs?batch_id=batch_~01", &[("pagination.total", "2")]),
    (
        4,
        "/simulations/runs/run_~02",
        &[
            ("passed", "false"),
            ("cost_microusd", "12"),
            ("evaluations.0.reason", r#""No line says it.""#),
            ("call.transcript.0.text", r#""Do you have sourdough?""#),
        ],
    ),
    (25, "/simulations/runs/run_~02", &[("failed_evaluation", r#""“nine”: No line says it.""#)]),
    (4, "/simulations/runs/run_~03", &[("status", r#""error""#), ("error.code", r#""model_failed""#)]),
    (
        35,
        "/simulations/runs/run_~03",
        &[("variables", r#"{"name":"Ben"}"#), ("metadata", r#"{"ticket":"9"}"#)],
    ),
    (36, "/simulations/runs/run_~03", &[("tools", r#""mock""#)]),
    (
        38,
        "/simulations/runs/run_~03",
        &[("snapshot", r#""7be874227d2fb1ce0c6a3825f14c08d6f07bb65c34e05a8832b247d6738e65c1""#)],
    ),
    (44, "/simulations/runs/run_~03", &[("mocks_unused", r#"["find_slot"]"#)]),
    (
        38,
        "/snapshots/7be874227d2fb1ce0c6a3825f14c08d6f07bb65c34e05a8832b247d6738e65c1",
        &[
            ("assistant.name", r#""Desk""#),
            ("simulation.persona", r#""Brief.""#),
            ("assistant_hash", r#""a1dc58ce6ea6d99104d0db4fc85849a3ea5b9cb8f7fe1fd49f08d5abdd6c6472""#),
        ],
    ),
    (
        2,
        "/calls/call_~01",
        &[
            ("status", r#""ended""#),
            ("outcome", r#""completed""#),
            ("transcript.0.text", r#""Do you have sourdough?""#),
        ],
    ),
    // A word that was said: an entry of the text index before 0017, which the sweep moves.
    (2, "/calls?search=sourdough", &[("calls.0.id", r#""call_~01""#)]),
    (2, "/calls?search=rye", &[("calls", "[]")]),
    (4, "/calls/call_~01", &[("simulation_run_id", r#""run_~02""#)]),
    (
        7,
        "/calls/call_~02",
        &[
            ("from", r#""+14155550123""#),
            ("costs.telephony_microusd", "8500"),
            ("analysis.summary", r#""They wanted a cake.""#),
        ],
    ),
    (7, "/calls?search=cake", &[("calls.0.id", r#""call_~02""#)]),
    (8, "/calls/call_~02", &[("usage.llm_uncounted_answers", "2")]),
    // From 0045 on, its transcript is a blob.
    (17, "/calls/call_~03", &[("transcript.0.text", r#""Two baguettes.""#)]),
    (17, "/calls?search=baguettes", &[("calls.0.id", r#""call_~03""#)]),
    (18, "/calls/call_~04", &[("recording.duration_ms", "1000"), ("turns.0.heard_first_ms", "540")]),
    (18, "/calls/call_~04/waveform", &[("missing_ms", "20"), ("channels.1.peaks.9", "0.0")]),
    (20, "/calls/call_~04", &[("waits_ms", "[140]")]),
    (35, "/calls/call_~04", &[("variables", r#"{"name":"Ada"}"#), ("metadata", r#"{"order":"17"}"#)]),
    (35, "/calls?metadata%5Border%5D=17", &[("calls.0.id", r#""call_~04""#)]),
    (19, "/audit", &[("aud_~01.operation", r#""update_assistant""#), ("aud_~01.subject_name", r#""Desk""#)]),
    (27, "/audit", &[("aud_~02.subject_name", r#""look_down""#)]),
    (37, "/events", &[("evt_~04.data.call.id", r#""call_~04""#), ("evt_~05.data.run.id", r#""run_~02""#)]),
];

/// How many calls there are from this migration on.
const CALLS: [(u32, u64); 4] = [(2, 1), (7, 2), (17, 3), (18, 4)];

/// Reads what was written up to this migration.
pub fn read(client: &mut Client, newest: u32) {
    for (since, path, places) in READS.iter().filter(|(since, ..)| *since <= newest) {
        let answer = client.expect(200, "GET", &full(path), None);
        for (place, expected) in *places {
            let expected: Value = serde_json::from_str(&full(expected)).unwrap();
            assert_eq!(at(&answer, &full(place)), &expected, "{path} since {since}: {place} in {answer}");
        }
    }
    assert_eq!(client.expect(200, "GET", "/keys", None)[1], Value::Null, "the other key is revoked");
    let calls = client.expect(200, "GET", "/calls", None);
    let expected = CALLS.iter().rev().find(|(since, _)| *since <= newest).map_or(0, |(_, calls)| *calls);
    assert_eq!(calls["pagination"]["total"], expected, "{calls}");
    assert_eq!(calls["calls"].as_array().map(|calls| calls.len() as u64), Some(expected), "{calls}");
    if newest >= 6 {
        client.expect(404, "GET", &full("/calls/call_~01/recording"), None);
    }
}

/// What is at a place: fields, and rows by their ids or places, with dots between them.
fn at<'a>(answer: &'a Value, place: &str) -> &'a Value {
    place.split('.').fold(answer, |value, name| match value.as_array() {
        Some(list) => list
            .iter()
            .find(|one| one["id"] == name)
            .or_else(|| list.get(name.parse::<usize>().ok()?))
            .unwrap_or_else(|| panic!("no {name} in {value}")),
        None => &value[name],
    })
}

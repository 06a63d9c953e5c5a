//! What pages show as API calls works: each exists, at its path, and its values are such as the tool takes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#[path = "common/pages.rs"]
mod shown;

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::{Map, Value, json};
use shown::{cases, page_at, render};
use sidetone_engine::base::tool_parameters::ToolParameters;
use sidetone_engine::dashboard::OWN_FORMS;
use sidetone_engine::interfaces::generated::Documents;
use sidetone_engine::operations::operation::Operation;
use sidetone_engine::operations::{self, OPERATIONS};

/// Pages whose forms do what no operation does, so that they show none or the nearest one.
const WITHOUT: &[&str] = &["/dashboard/join"];

/// A call as its command and, unless it is a download, as a call of a tool.
struct Shown {
    name: String,
    rest: Rest,
    mcp: Option<Value>,
}

/// What a command sends.
#[derive(Debug)]
struct Rest {
    method: String,
    path: String,
    query: Map<String, Value>,
    /// Of `If-Match`.
    revision: Option<String>,
    body: Option<Value>,
}

/// A text of HTML as somebody reads and copies it.
fn plain(html: &str) -> String {
    html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// The panel of a page.
fn panel(html: &str) -> Option<&str> {
    let (_, rest) = html.split_once("<details class=\"api\">")?;
    rest.split("</details>").next()
}

fn snippet(html: &str, label: &str) -> Option<String> {
    let (_, rest) = html.split_once(&format!("aria-label=\"{label}\"><code>"))?;
    Some(plain(rest.split("</code>").next()?))
}

fn calls(panel: &str) -> Vec<Shown> {
    let parts = panel.split("<h2><code>").skip(1);
    parts
        .map(|part| Shown {
            name: part.split("</code>").next().unwrap().to_owned(),
            rest: rest(&snippet(part, "REST").expect("a command")),
            mcp: snippet(part, "MCP").map(|text| serde_json::from_str(&text).expect("a tool's call is JSON")),
        })
        .collect()
}

/// Reads a command as a shell does.
fn rest(command: &str) -> Rest {
    let pattern = Regex::new(concat!(
        r"^curl (?:-X ([A-Z]+) )?'https://voice\.bluedoor\.example(/[^'?]*)(?:\?([^']*))?' \\\n",
        r#"  -H "Authorization: Bearer \$SIDETONE_KEY""#,
        r#"(?: \\\n  -H 'If-Match: "([0-9]+)"')?"#,
        r"(?s)(?: \\\n  -H 'Content-Type: application/json' \\\n  -d '(.*)')?$"
    ))
    .unwrap();
    let found = pattern.captures(command).unwrap_or_else(|| panic!("no command that sends it: {command}"));
    let text = |at: usize| found.get(at).map(|part| part.as_str());
    let query = form_urlencoded::parse(text(3).unwrap_or_default().as_bytes());
    let body = text(5).map(|body| {
        let sent = body.replace(r"'\''", "\u{0}");
        assert!(!sent.contains('\''), "a quote ends the body: {command}");
        serde_json::from_str(&sent.replace('\u{0}', "'")).expect("the body is JSON")
    });
    Rest {
        method: text(1).unwrap_or("GET").to_owned(),
        path: text(2).unwrap().to_owned(),
        query: query.map(|(name, value)| (name.into_owned(), value.into_owned().into())).collect(),
        revision: text(4).map(str::to_owned),
        body,
    }
}

/// The operation that a request reaches, and the values in its path.
fn reached(rest: &Rest) -> Option<(&'static Operation, Vec<(&'static str, String)>)> {
    let sent: Vec<&str> = rest.path.split('/').collect();
    let of = |operation: &'static Operation| {
        let known: Vec<&'static str> = operation.path.split('/').collect();
        let mut values = Vec::new();
        let fits = known.len() == sent.len()
            && known.iter().zip(&sent).all(|(known, sent)| {
                match known.strip_prefix('{').and_then(|known| known.strip_suffix('}')) {
                    Some(name) => {
                        values.push((name, (*sent).to_owned()));
                        !sent.is_empty() && !sent.contains('{')
                    }
                    None => known == sent,
                }
            });
        fits.then_some((operation, values))
    };
    // A path without a value goes before one with a value in its place.
    let fitting =
        OPERATIONS.iter().filter(|operation| operation.method.as_str() == rest.method).filter_map(of);
    fitting.min_by_key(|(_, values)| values.len())
}

fn tools() -> BTreeMap<String, Value> {
    let list: Value = serde_json::from_str(&Documents::derived().tools().unwrap()).unwrap();
    let tools = list["tools"].as_array().unwrap().iter();
    tools.map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool["inputSchema"].clone())).collect()
}

/// What ids of a kind begin with: an id stands for its kind in the examples, too.
const KINDS: &[(&str, &str)] = &[
    ("assistant_id", "asst"),
    ("persona_id", "pers"),
    ("scenario_id", "scen"),
    ("simulation_id", "sim"),
    ("batch_id", "batch"),
    ("tool_ids", "tool"),
    ("knowledge_ids", "doc"),
    ("delivery_id", "dlv"),
];

/// Each id in a value is of the kind that its name says.
fn check_ids(place: &str, value: &Value) {
    let Some(fields) = value.as_object() else { return };
    for (name, value) in fields {
        let is_id =
            |value: &Value, kind: &str| value.as_str().is_some_and(|id| id.starts_with(&format!("{kind}_")));
        if let Some((_, kind)) = KINDS.iter().find(|(known, _)| known == name) {
            let all = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
            assert!(all.iter().all(|one| is_id(one, kind)), "{place}: {name} is {value}, not {kind}_…");
        } else {
            assert!(!name.ends_with("_id") && !name.ends_with("_ids"), "{place}: what begins {name}?");
        }
        check_ids(place, value);
    }
}

#[test]
fn every_call_that_a_page_shows_exists_and_takes_its_values() {
    let tools = tools();
    let mut seen = BTreeSet::new();
    for (name, case) in &cases() {
        let page = page_at(case["page"].as_str().unwrap());
        let html = render(page, case);
        let Some(panel) = panel(&html) else {
            assert!(WITHOUT.contains(&page.path), "{name} has no panel");
            continue;
        };
        let calls = calls(panel);
        assert!(!calls.is_empty(), "{name}: the panel is empty");
        for Shown { name: called, rest, mcp } in calls {
            let place = format!("{name}: {called}");
            let (operation, values) = reached(&rest).unwrap_or_else(|| panic!("{place}: no route {rest:?}"));
            assert_eq!(operation.id, called, "{place}: {} {}", rest.method, rest.path);
            assert_eq!(mcp.is_some(), operation.is_tool(), "{place}");
            seen.insert(called.clone());
            let Some(mcp) = mcp else { continue };
            assert_eq!(mcp["name"], called);
            let schema = tools.get(&called).unwrap_or_else(|| panic!("{place} is no tool"));
            let taken = ToolParameters::parse(schema).unwrap_or_else(|error| panic!("{place}: {error:?}"));
            let arguments = &mcp["arguments"];
            if let Err(problems) = taken.check_arguments(arguments) {
                panic!("{place} is refused: {problems:?}: {arguments}");
            }
            check_ids(&place, arguments);
            // Both forms are the same call.
            assert_eq!(arguments.get("data"), rest.body.as_ref(), "{place}");
            let mut sent = rest.query.clone();
            sent.extend(rest.revision.clone().map(|revision| ("if_revision".to_owned(), revision.into())));
            for (name, value) in values {
                // What an earlier tool says of it is not said again.
                let described = schema["properties"][name]["description"].as_str().unwrap_or_default();
                let kind = described.split('`').nth(1).and_then(|kind| kind.strip_suffix('…'));
                assert!(
                    kind.is_none_or(|kind| value.starts_with(kind)),
                    "{place}: {value} is no {described}"
                );
                sent.insert(name.to_owned(), value.into());
            }
            let mut given = arguments.as_object().unwrap().clone();
            given.retain(|name, _| name != "data" && name != "confirm");
            for value in given.values_mut() {
                *value = value.as_str().map_or_else(|| value.to_string(), str::to_owned).into();
            }
            assert_eq!(Value::Object(given), Value::Object(sent), "{place}");
        }
    }
    // Whatever the service can do stands on a page: somebody who finds it there finds its call.
    let unseen: Vec<&str> =
        OPERATIONS.iter().map(|operation| operation.id).filter(|id| !seen.contains(*id)).collect();
    assert_eq!(unseen, [""; 0], "on no page");
}

/// What a page does by a form, its panel does by a call.
#[test]
fn every_form_of_a_page_stands_in_its_panel() {
    let mut missing = BTreeSet::new();
    for (name, case) in &cases() {
        let page = page_at(case["page"].as_str().unwrap());
        let html = render(page, case);
        let shown: BTreeSet<String> =
            panel(&html).map(calls).into_iter().flatten().map(|shown| shown.name).collect();
        for action in html.split("action=\"/dashboard/do/").skip(1) {
            let id = action.split('"').next().unwrap();
            if !OWN_FORMS.contains(&id) && !shown.contains(id) {
                missing.insert(format!("{}: {id}", page.path));
            }
        }
        // And what it shows, apart from what its forms offer to choose from.
        if let Some(first) = page.reads.first().map(|read| read.operation)
            && operations::by_id(first).is_some_and(|operation| operation.path_names().next().is_some())
            && !shown.contains(first)
        {
            missing.insert(format!("{}: {first} ({name})", page.path));
        }
    }
    assert!(missing.is_empty(), "no call shown of:\n{}", missing.into_iter().collect::<Vec<_>>().join("\n"));
}

/// The readers above find what is wrong.
#[test]
fn a_call_that_is_wrong_is_found() {
    let sent = |method: &str, path: &str| Rest {
        method: method.to_owned(),
        path: path.to_owned(),
        query: Map::new(),
        revision: None,
        body: None,
    };
    assert!(reached(&sent("GET", "/calls/call_1/nothing")).is_none());
    assert!(reached(&sent("PATCH", "/calls")).is_none());
    assert!(reached(&sent("GET", "/assistants/{id}")).is_none(), "a value was not filled in");
    let (operation, values) = reached(&sent("GET", "/assistants/asst_1")).unwrap();
    assert_eq!((operation.id, values), ("get_assistant", vec![("id", "asst_1".to_owned())]));
    let schema = tools().remove("create_simulation").unwrap();
    let taken = ToolParameters::parse(&schema).unwrap();
    let ids = json!({"assistant_id": "asst_…", "persona_id": "pers_…", "scenario_id": "scen_…"});
    assert!(taken.check_arguments(&json!({"data": ids})).is_ok());
    assert!(taken.check_arguments(&json!({"data": {"assistant_id": "asst_…"}})).is_err());
    assert!(taken.check_arguments(&json!({"data": ids, "more": 1})).is_err());
    check_ids("right", &ids);
    let wrong = json!({"persona_id": "persona_…"});
    assert!(std::panic::catch_unwind(|| check_ids("wrong", &wrong)).is_err());
    let body = r#"{"name":"Anna'\''s"}"#;
    let command = format!(
        "curl -X POST 'https://voice.bluedoor.example/keys?a=b+c' \\\n  -H \"Authorization: Bearer $SIDETONE_KEY\" \\\n  \
         -H 'If-Match: \"7\"' \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'"
    );
    let read = rest(&command);
    assert_eq!(read.revision.as_deref(), Some("7"));
    assert_eq!((read.body, &read.query["a"]), (Some(json!({"name": "Anna's"})), &json!("b c")));
}

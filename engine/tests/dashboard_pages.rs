//! The dashboard's pages: each renders with real answers, with empty ones and with nothing at all, and nothing that
//! somebody wrote leaves its element.
#![allow(clippy::unwrap_used, reason = "a test")]
#[path = "common/pages.rs"]
mod shown;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shown::{cases, page_at, render, schema};
use sidetone_engine::dashboard::frame::Page;
use sidetone_engine::dashboard::pages::{SignIn, sign_in};
use sidetone_engine::dashboard::{OWN_FORMS, SIGN_IN_FORMS, assets, pages};
use sidetone_engine::interfaces::generated::Documents;
use sidetone_engine::operations;

const HOSTILE: &str = "<script>\"'&";

/// Every text of a value replaced, and none of its numbers.
fn with_texts(value: &Value, text: &str) -> Value {
    match value {
        Value::String(_) => text.into(),
        Value::Array(items) => items.iter().map(|item| with_texts(item, text)).collect(),
        Value::Object(map) => {
            map.iter().map(|(name, value)| (name.clone(), with_texts(value, text))).collect()
        }
        other => other.clone(),
    }
}

#[test]
fn every_page_has_a_case_and_renders_whole() {
    let cases = cases();
    let seen: BTreeSet<&str> = cases.values().map(|case| case["page"].as_str().unwrap()).collect();
    for page in pages::PAGES {
        assert!(seen.contains(page.path), "no case for {}", page.path);
    }
    for (name, case) in &cases {
        let html = render(page_at(case["page"].as_str().unwrap()), case);
        assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>"), "{name}");
        assert_eq!(html.matches("<h1").count(), 1, "{name}");
        assert!(html.len() < 60_000, "{name} has {} bytes", html.len());
        for forbidden in [" style=\"", " onclick", "<style>", "javascript:"] {
            assert!(!html.contains(forbidden), "{name} has {forbidden}, which the policy forbids");
        }
        for form in html.split("<form").skip(1).filter(|form| form.contains("method=\"post\"")) {
            assert!(form.contains("name=\"_csrf\""), "{name}: a form without a token");
        }
    }
}

#[test]
fn every_page_tells_the_call_that_does_the_same_or_that_there_is_none() {
    for (name, case) in &cases() {
        let page = page_at(case["page"].as_str().unwrap());
        let html = render(page, case);
        let tells = html.contains("As API call") || html.contains("The API has no operation");
        // Somebody else's invitation can only be left alone.
        assert!(tells || html.contains("This invitation is for somebody else"), "{name}");
        if ["/dashboard/people", "/dashboard/sessions"].contains(&page.path) {
            assert!(html.contains("As API call") && html.contains("The API has no operation"), "{name}");
            assert!(html.contains("curl 'https://voice.bluedoor.example/"), "{name} shows the nearest one");
        }
    }
}

#[test]
fn a_page_of_nothing_renders_too() {
    for page in pages::PAGES {
        for nothing in [Value::Null, json!([]), json!({})] {
            let answers = vec![nothing; page.reads.len()];
            let html = render(page, &json!({"answers": answers}));
            assert!(html.contains("</html>"), "{}", page.path);
        }
        render(page, &json!({"answers": []}));
    }
}

#[test]
fn nothing_that_somebody_wrote_leaves_its_element() {
    for (name, case) in &cases() {
        let page = page_at(case["page"].as_str().unwrap());
        // All texts at once: then one by one, since some decide what is shown.
        let all = with_texts(&case["answers"], HOSTILE);
        check(name, page, &with(case, "answers", all));
        for (path, hostile) in one_by_one(&case["answers"]) {
            check(&format!("{name} {path}"), page, &with(case, "answers", hostile));
        }
        for part in ["problem", "base", "typed", "secret"] {
            if let Some(value) = case.get(part) {
                let hostile = match part {
                    "typed" => {
                        value.as_array().unwrap().iter().map(|pair| json!([pair[0], HOSTILE])).collect()
                    }
                    _ => with_texts(value, HOSTILE),
                };
                check(&format!("{name} {part}"), page, &with(case, part, hostile));
            }
        }
    }
}

fn with(case: &Value, name: &str, value: Value) -> Value {
    let mut case = case.clone();
    case[name] = value;
    case
}

/// The answers with one text each replaced: of each list only in its first two entries.
fn one_by_one(answers: &Value) -> Vec<(String, Value)> {
    let mut places = Vec::new();
    collect(answers, String::new(), &mut places);
    places
        .into_iter()
        .map(|place| {
            let mut hostile = answers.clone();
            *hostile.pointer_mut(&place).unwrap() = HOSTILE.into();
            (place, hostile)
        })
        .collect()
}

fn collect(value: &Value, path: String, places: &mut Vec<String>) {
    match value {
        Value::String(_) => places.push(path),
        Value::Array(items) => {
            let most = if path.is_empty() { items.len() } else { 2 };
            for (at, item) in items.iter().enumerate().take(most) {
                collect(item, format!("{path}/{at}"), places);
            }
        }
        Value::Object(map) => {
            for (name, value) in map {
                collect(value, format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), places);
            }
        }
        _ => {}
    }
}

/// The page with hostile texts has no element and no attribute that the page itself does not have.
fn check(name: &str, page: &Page, case: &Value) {
    let html = render(page, case);
    let scripts = html.matches("<script").count();
    let ours = html.matches("<script type=\"module\" src=\"/dashboard/assets/").count();
    assert_eq!(scripts, ours, "{name}: a script that is not ours");
    assert!(!html.contains(HOSTILE), "{name}: raw");
    assert!(!html.contains("<script>"), "{name}: raw");
    assert!(!html.contains("\"'&"), "{name}: a quote left its attribute");
}

#[test]
fn what_pages_name_exists() {
    // The dashboard's own reads, which are no operations.
    let own_reads = ["list_sessions", "list_workspaces", "list_people", "list_invitations", "get_invitation"];
    for page in pages::PAGES {
        for read in page.reads.iter().filter(|read| !own_reads.contains(&read.operation)) {
            let operation = operations::by_id(read.operation).unwrap_or_else(|| panic!("{}", read.operation));
            assert_eq!(operation.method, http::Method::GET, "{} reads", page.path);
            let query = Documents::derived().requests(operation).unwrap().query.unwrap_or_default();
            let fixed = read.fixed.iter().map(|(name, _)| *name);
            for name in read.query.iter().copied().chain(fixed) {
                let known = query["properties"].get(name).is_some()
                    || operation.path_names().any(|other| other == name);
                assert!(known, "{} passes {name} to {}", page.path, read.operation);
            }
        }
    }
    for (name, case) in &cases() {
        let html = render(page_at(case["page"].as_str().unwrap()), case);
        for action in posted(&html) {
            if action == "/dashboard/sign-out" {
                continue;
            }
            let id =
                action.strip_prefix("/dashboard/do/").unwrap_or_else(|| panic!("{name} sends to {action}"));
            assert!(OWN_FORMS.contains(&id) || operations::by_id(id).is_some(), "{name} sends to {id}");
        }
    }
}

/// Where the forms of a page are sent.
fn posted(html: &str) -> Vec<String> {
    let tags = html.split("<form").skip(1).map(|rest| rest.split('>').next().unwrap());
    tags.filter(|tag| tag.contains("method=\"post\""))
        .map(|tag| tag.split("action=\"").nth(1).unwrap().split('"').next().unwrap().to_owned())
        .collect()
}

/// The lists of forms are complete: what checks all forms by them checks these, too.
#[test]
fn the_forms_to_sign_in_are_all_known() {
    let (email, next, csrf, problem) = ("anna@bluedoor.example", "/dashboard", "csrf", Some("No."));
    let states = [
        SignIn::Email { email, logged: true, google: true, next, problem, csrf },
        SignIn::Code { email, logged: true, next, problem, csrf },
        SignIn::Link { token: "token", email, problem, csrf },
        SignIn::Link { token: "token", email: "", problem, csrf },
    ];
    let sent: BTreeSet<String> =
        states.iter().flat_map(|state| posted(&sign_in(state).into_string())).collect();
    let known: BTreeSet<String> =
        SIGN_IN_FORMS.iter().map(|rest| format!("/dashboard/sign-in{rest}")).collect();
    assert_eq!(sent, known);
}

/// Lists that have a row whenever somebody sees them: who asks, by the session that they ask with.
const NEVER_EMPTY: &[&str] = &["/dashboard/sessions"];

/// Somebody who has nothing yet reads what the page is for, and finds one button for the next step.
#[test]
fn a_list_without_rows_teaches_the_next_step() {
    let is_list = |page: &&Page| {
        let first = page.reads.first().is_some_and(|read| read.operation.starts_with("list_"));
        let is_form = ["/new", "/bind"].iter().any(|end| page.path.ends_with(end));
        first && !is_form && !page.path.contains('{') && !NEVER_EMPTY.contains(&page.path)
    };
    let lists: Vec<&Page> = pages::PAGES.iter().filter(is_list).collect();
    assert!(lists.len() >= 10, "{:?}", lists.iter().map(|page| page.path).collect::<Vec<_>>());
    for page in lists {
        let html = render(page, &json!({"answers": vec![Value::Null; page.reads.len()]}));
        let classes = html.split(" class=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        let main = classes.filter(|classes| classes.split(' ').any(|class| class == "primary")).count();
        assert_eq!(main, 1, "{}: main buttons", page.path);
        // Beside a form, a line says it; elsewhere the button stands below the sentence.
        let told = ["<div class=\"empty\"><p>", "<p class=\"help\">", "<p class=\"dim\">"];
        let said = told
            .iter()
            .filter_map(|start| html.split(start).nth(1)?.split("</p>").next())
            .max_by_key(|said| said.len());
        assert!(said.is_some_and(|said| said.len() > 40), "{} says nothing: {said:?}", page.path);
    }
}

/// What a page shows can be asked for again: a filter without a field would be lost with the next search.
#[test]
fn every_filter_of_calls_stands_in_the_form() {
    let mut case = cases().remove("calls").unwrap();
    let filters = [
        "search",
        "assistant_id",
        "model",
        "voice",
        "source",
        "outcome",
        "sentiment",
        "date_from",
        "date_to",
    ];
    let asked = |name: &&str| format!("{name}=of-{name}");
    let texts: Vec<String> = filters.iter().map(asked).collect();
    case["url"] = format!("/dashboard/calls?{}&sort=cost&order=asc&limit=7", texts.join("&")).into();
    let html = render(page_at("/dashboard/calls"), &case);
    let form = html.split("<form class=\"filters\"").nth(1).unwrap().split("</form>").next().unwrap();
    for name in filters.iter().chain(&["sort", "order", "limit"]) {
        assert!(form.contains(&format!("name=\"{name}\"")), "{name}");
    }
    for name in ["model", "voice", "search", "date_from"] {
        assert!(form.contains(&format!("value=\"of-{name}\"")), "{name} is not kept: {form}");
    }
    assert!(
        form.contains("<option value=\"groq/llama-3.3-70b-versatile\">"),
        "what the assistants have is offered"
    );
}

/// An evaluation that no row decides is told after the last row that it reads.
#[test]
fn what_was_never_said_is_shown_where_it_is_missing() {
    let mut case = cases().remove("run-failed").unwrap();
    let never = json!({"kind": "transcript", "role": "user", "includes": "tooth", "passed": false, "matched_index": null,
        "reason": "None of the 4 turns of the user contains the text."});
    case["answers"][0]["evaluations"].as_array_mut().unwrap().push(never);
    let html = render(page_at("/dashboard/simulations/runs/{id}"), &case);
    let missing =
        html.find("<li class=\"failing\" id=\"after-row-13\">").expect("after the caller's last line");
    assert!(html.find("id=\"row-13\"").unwrap() < missing && missing < html.find("id=\"row-14\"").unwrap());
    assert!(
        html[missing..].starts_with("<li class=\"failing\" id=\"after-row-13\"><b>Missing</b>"),
        "{html}"
    );
    assert!(html.contains("href=\"#after-row-13\""), "the table leads there");
    let decided = html.split("id=\"row-14\"").nth(1).unwrap().split("</li>").next().unwrap();
    assert!(
        decided.contains("Failed: ") && decided.contains("The assistant repeats name and time"),
        "{decided}"
    );
}

/// The server tells what a tool's schema asks for, and nothing of it looks like a field to fill in.
#[test]
fn a_page_of_a_tool_tells_what_the_assistant_fills_in() {
    let html = render(page_at("/dashboard/tools/{id}"), &cases()["tool"]);
    let preview = html.split("<div class=\"preview\"").nth(1).expect("a preview");
    let preview = preview.split("</dl>").next().unwrap();
    for part in [
        "<code>date</code>",
        "text, required – The day, such as 2026-11-30",
        "check-up or cleaning",
        "yes or no",
    ] {
        assert!(preview.contains(part), "{part}: {preview}");
    }
    assert!(!preview.contains("<input") && !preview.contains("<select"), "{preview}");
    assert!(!preview.starts_with(" hidden"), "{preview}");
}

/// “Started.” is told as long as it is news, and a page that is read without a script says how it goes on.
#[test]
fn what_has_ended_is_not_called_started() {
    let page = page_at("/dashboard/simulations/batches/{id}");
    let ended = render(page, &cases()["batch"]);
    assert!(!ended.contains("Started.") && !ended.contains("<noscript><p"), "{ended}");
    assert!(ended.contains("class=\"f-bad\""), "the bar shows what failed: {ended}");
    let mut case = cases().remove("batch-going").unwrap();
    case["url"] = format!("{}?done=start_simulation_batch", case["url"].as_str().unwrap()).into();
    case["notice"] = "Started.".into();
    let going = render(page, &case);
    assert!(going.contains("Started.") && going.contains("Without JavaScript"), "{going}");
}

/// A delivery that is tried again while somebody looks is followed; nobody waits for one that is hours away.
#[test]
fn a_page_follows_a_delivery_that_is_tried_again_soon() {
    let mut case = cases().remove("webhook").unwrap();
    for delivery in case["answers"][1]["deliveries"].as_array_mut().unwrap() {
        delivery["status"] = "delivered".into();
    }
    for (at, followed) in [("2026-11-24T01:21:00.000Z", true), ("2026-11-24T03:20:00.000Z", false)] {
        let delivery = &mut case["answers"][1]["deliveries"][0];
        delivery["status"] = "pending".into();
        delivery["next_attempt_at"] = at.into();
        let html = render(page_at("/dashboard/webhooks/{id}"), &case);
        assert_eq!(html.contains(" data-live"), followed, "{at}");
    }
}

/// Nobody waits in a simulation, and the figures say so.
#[test]
fn waits_of_simulated_callers_are_told_as_such() {
    let mut case = cases().remove("overview").unwrap();
    let some = render(page_at("/dashboard"), &case);
    assert!(some.contains("6 of 200 calls were simulated: nobody waited in them"), "{some}");
    for interval in case["answers"][5]["intervals"].as_array_mut().unwrap() {
        interval["by_source"] = json!({"simulation": interval["total"]});
    }
    let all = render(page_at("/dashboard"), &case);
    assert!(all.contains("Nobody called"), "{all}");
}

/// What came back unsaved is asked about before it is left.
#[test]
fn a_form_that_failed_holds_what_is_not_saved() {
    let page = page_at("/dashboard/assistants/{id}");
    let unsaved = |name: &str| -> Vec<bool> {
        let html = render(page, &cases()[name]);
        let forms = html.split("<form class=\"edit\"").skip(1);
        forms.map(|form| form.split('>').next().unwrap().contains("data-unsaved")).collect()
    };
    assert_eq!(unsaved("assistant-problem"), [true]);
    assert_eq!(unsaved("assistant"), [false]);
}

/// A name of `*` stands for any in a list, and is none: it is not suggested.
#[test]
fn the_form_of_an_assistant_names_defaults_and_providers_and_suggests_no_wildcard() {
    let case = &cases()["assistant-new"];
    let models = json!([{"model": "builtin/rules"}, {"model": "local/big"}, {"model": "local/*"}]);
    let case = with(case, "answers", json!([models, [], []]));
    let html = render(page_at("/dashboard/assistants/new"), &case);
    assert!(html.contains("<option value=\"local/big\">") && !html.contains("local/*"), "{html}");
    for told in [
        "Default: <code>builtin/rules</code>.",
        "Providers of this service: <code>builtin</code>",
        "SIDETONE_PROVIDERS",
    ] {
        assert!(html.contains(told), "{told}: {html}");
    }
    assert!(html.contains("speaks in test tones"), "the default voice: {html}");
    let settings = render(page_at("/dashboard/settings"), &cases()["settings"]);
    assert!(settings.contains("Default model") && settings.contains("SIDETONE_PROVIDERS"), "{settings}");
}

/// What is made from the page of an assistant is attached to it, and leads back.
#[test]
fn what_is_made_for_an_assistant_says_so() {
    let assistant = render(page_at("/dashboard/assistants/{id}"), &cases()["assistant"]);
    for (kind, name) in [("tools", "tool-new"), ("knowledge", "document-new")] {
        let link = format!("/dashboard/{kind}/new?assistant_id=asst_");
        assert!(assistant.contains(&link), "{link}");
        let case = with(&cases()[name], "url", format!("/dashboard/{kind}/new?assistant_id=asst_1").into());
        let html = render(page_at(&format!("/dashboard/{kind}/new")), &case);
        for part in [
            "name=\"_attach\" value=\"asst_1\"",
            "name=\"_then\" value=\"/dashboard/assistants/asst_1\"",
            "class=\"back\" href=\"/dashboard/assistants/asst_1\"",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}

/// A run has its transcript when it ends: until then there is no line of time.
#[test]
fn a_voice_run_under_way_has_no_line_of_time() {
    let mut case = cases().remove("run-failed").unwrap();
    let page = page_at("/dashboard/simulations/runs/{id}");
    assert!(render(page, &case).contains("class=\"trace\""));
    case["answers"][0]["status"] = "running".into();
    case["answers"][0]["call"]["transcript"] = json!([]);
    let html = render(page, &case);
    assert!(
        !html.contains("class=\"trace\"") && html.contains("The transcript comes when the run ends."),
        "{html}"
    );
}

#[test]
fn every_form_to_edit_has_its_script() {
    for (name, case) in &cases() {
        let html = render(page_at(case["page"].as_str().unwrap()), case);
        let (edits, script) = (html.contains("<form class=\"edit\""), html.contains("/form.js\""));
        assert_eq!(edits, script, "{name}");
    }
}

#[test]
fn fields_come_from_the_schema() {
    let case = json!({"answers": [[], []]});
    let html = render(page_at("/dashboard/assistants/new"), &case);
    let (_, schema) = schema("create_assistant");
    let most = schema["properties"]["name"]["maxLength"].as_u64().unwrap();
    assert!(html.contains(&format!("maxlength=\"{most}\"")), "{html}");
    let least = schema["properties"]["speech"]["properties"]["speed"]["minimum"].to_string();
    assert!(html.contains(&format!("min=\"{least}\"")), "{html}");
    let input = |html: &str, name: &str| {
        let at = html.find(&format!("name=\"{name}\"")).unwrap();
        html[at..].split('>').next().unwrap().to_owned()
    };
    assert!(input(&html, "instructions").contains("aria-required"), "{html}");
    assert!(!input(&html, "model").contains("aria-required"), "the server has a default");
    let saved = render(page_at("/dashboard/assistants/{id}"), &cases()["assistant"]);
    assert!(input(&saved, "model").contains("aria-required"), "a change cannot make it empty");
    assert!(!input(&saved, "language").contains("aria-required"), "{saved}");
}

#[test]
fn the_first_paint_is_small() {
    let bytes: usize = assets::ASSETS.iter().map(|(.., content)| content.len()).sum();
    assert!(bytes < 64_000, "{bytes} bytes of files");
    let css = assets::ASSETS.iter().find(|(name, ..)| *name == "app.css").unwrap().2;
    assert!(css.len() < 24_100, "{} bytes of style", css.len());
}

/// Pages get no more of the calls in a list than these fields.
#[test]
fn what_lists_show_of_calls_is_read() {
    for (name, case) in cases() {
        let page = page_at(case["page"].as_str().unwrap());
        let mut read = case.clone();
        for (at, _) in page.reads.iter().enumerate().filter(|(_, read)| read.operation == "list_calls") {
            for call in read["answers"][at]["calls"].as_array_mut().into_iter().flatten() {
                let fields = call.as_object_mut().unwrap();
                fields.retain(|field, _| pages::OF_CALL.iter().any(|(known, _)| known == field));
                for (field, inner) in pages::OF_CALL.iter().filter(|(_, inner)| !inner.is_empty()) {
                    let value = &mut fields[*field];
                    if let Some(part) = value.as_object_mut() {
                        part.retain(|name, _| inner.contains(&name.as_str()));
                    }
                    for line in value.as_array_mut().into_iter().flatten() {
                        line.as_object_mut().unwrap().retain(|name, _| inner.contains(&name.as_str()));
                    }
                }
            }
        }
        assert!(render(page, &read) == render(page, &case), "{name} shows more of a call than is read");
    }
}

/// A conversation's length is told in one way, on every page.
#[test]
fn lengths_of_conversations_have_one_format() {
    let mut list = cases().remove("calls").unwrap();
    let mut call = cases().remove("call").unwrap();
    for (ms, shown) in [(7_460, "0:07"), (65_000, "1:05")] {
        list["answers"][0]["calls"][1]["duration_ms"] = ms.into();
        list["answers"][0]["stats"]["average_duration_ms"] = ms.into();
        call["answers"][0]["duration_ms"] = ms.into();
        let html = render(page_at("/dashboard/calls"), &list);
        assert!(html.contains(&format!("<dt>Average length</dt><dd>{shown}<")), "{html}");
        assert!(html.contains(&format!("class=\"num fit wide\">{shown}</td>")), "{html}");
        let html = render(page_at("/dashboard/calls/{id}"), &call);
        assert!(html.contains(&format!("<dt>Length</dt><dd>{shown}</dd>")), "{html}");
    }
}

#[test]
fn two_hundred_calls_are_two_hundred_rows() {
    let mut case = cases().remove("calls").unwrap();
    let calls = case["answers"][0]["calls"].as_array_mut().unwrap();
    let all: Vec<Value> = calls.iter().cycle().take(200).cloned().collect();
    *calls = all;
    let html = render(page_at("/dashboard/calls"), &case);
    assert_eq!(html.matches("<a class=\"name\"").count(), 200);
    assert!(html.len() < 200 * 800, "{} bytes: more than 800 for a row", html.len());
}

/// A first visit: all that the browser needs to paint a page comes with it, and what comes after blocks nothing.
#[test]
fn a_page_paints_after_one_round_trip_and_60_kb() {
    const BYTES_MAX: usize = 60 * 1_024;
    for (name, case) in &cases() {
        let Some(page) = pages::PAGES.iter().find(|page| case["page"] == page.path) else { continue };
        let mut first = case.clone();
        first["has_style"] = json!(false);
        let html = render(page, &first);
        assert!(html.len() <= BYTES_MAX, "{name}: {} bytes", html.len());
        assert!(!html.contains("rel=\"stylesheet\""), "{name}: the stylesheet is in the page");
        for script in html.split("<script").skip(1) {
            assert!(script.starts_with(" type=\"module\""), "{name}: a script blocks: {script:.80}");
        }
    }
}

/// To look at them: writes each case as a page, with the files that it loads, to serve from there.
#[test]
#[ignore = "writes to the folder in SIDETONE_PAGES"]
#[allow(clippy::disallowed_methods, reason = "the folder is named by whoever looks")]
fn pages_to_look_at() {
    let folder =
        std::path::PathBuf::from(std::env::var("SIDETONE_PAGES").expect("SIDETONE_PAGES names a folder"));
    let beside = folder.join("dashboard/assets").join(assets::hash());
    std::fs::create_dir_all(&beside).unwrap();
    for (name, _, content) in assets::ASSETS {
        std::fs::write(beside.join(name), content).unwrap();
    }
    for (name, case) in &cases() {
        if let Some(page) = pages::PAGES.iter().find(|page| case["page"] == page.path) {
            std::fs::write(folder.join(format!("{name}.html")), render(page, case)).unwrap();
            // The longest name that a resource can have, and nowhere to break it.
            let long = with(case, "answers", with_names(&case["answers"], &"Zahnarzt".repeat(15)));
            std::fs::write(folder.join(format!("{name}-long.html")), render(page, &long)).unwrap();
        }
    }
}

/// Every name in a value replaced.
fn with_names(value: &Value, name: &str) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| with_names(item, name)).collect(),
        Value::Object(map) => {
            let named = |(field, value): (&String, &Value)| {
                let value = if field == "name" { name.into() } else { with_names(value, name) };
                (field.clone(), value)
            };
            map.iter().map(named).collect()
        }
        other => other.clone(),
    }
}

//! The dashboard: its pages and forms run the operations of the API in the name of a session.
use http::Method;
use serde_json::{Value, json};
use sidetone_tests::World;
use sidetone_tests::visitor::{Visitor, key_in, text};

/// What every page is sent with; the hash is the stylesheet's.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-…'; img-src 'self' data:; connect-src 'self'; \
    media-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// An address that no other test uses.
fn address(name: &str) -> String {
    format!("{name}-{}@practice.example", std::process::id())
}

#[test]
fn without_a_session_a_page_leads_to_the_sign_in_and_back() {
    let world = World::new();
    let mut visitor = Visitor::new(&world);
    let reply = visitor.get("/dashboard");
    assert_eq!((reply.status, reply.header("location")), (303, Some("/dashboard/sign-in")));
    let reply = visitor.get("/dashboard/keys?after=x");
    let to = "/dashboard/sign-in?next=%2Fdashboard%2Fkeys%3Fafter%3Dx";
    assert_eq!((reply.status, reply.header("location")), (303, Some(to)));
    let email = address("back");
    visitor.submit(to, "/dashboard/sign-in", &[("email", &email), ("next", "/dashboard/keys?after=x")]);
    let code = visitor.code_of(&email);
    let reply = visitor.submit("/dashboard/sign-in/code", "/dashboard/sign-in/code", &[("code", &code)]);
    assert_eq!((reply.status, reply.header("location")), (303, Some("/dashboard/keys?after=x")));
}

#[test]
fn every_page_carries_its_policies() {
    let world = World::new();
    let mut visitor = Visitor::new(&world);
    let sign_in = visitor.get("/dashboard/sign-in");
    visitor.sign_in(&address("policies"));
    for reply in [
        sign_in,
        visitor.get("/dashboard"),
        visitor.get("/dashboard/nowhere"),
        visitor.get("/dashboard/sign-in"),
    ] {
        let policy = reply.header("content-security-policy").unwrap();
        let (before, hash) = policy.split_once("sha256-").unwrap();
        let policy = format!("{before}sha256-…{}", &hash[hash.find('\'').unwrap()..]);
        assert_eq!(policy, POLICY, "{reply:?}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("x-frame-options"), Some("DENY"));
        assert_eq!(reply.header("referrer-policy"), Some("same-origin"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
    let missing = visitor.get("/dashboard/nowhere");
    assert!(missing.status == 404 && text(&missing).contains("no such page"), "{missing:?}");
    assert!(!text(&missing).contains("may have been deleted"), "{missing:?}");
    assert_eq!(visitor.get("/favicon.ico").status, 204);
}

/// The conversation beside an assistant's editor is in a frame; elsewhere nobody shows it in one.
#[test]
fn the_test_page_is_in_frames_of_our_own_only() {
    let reply = World::new().get("/voice-test");
    let policy = reply.header("content-security-policy").unwrap();
    assert!(policy.split(';').any(|part| part.trim() == "frame-ancestors 'self'"), "{policy}");
    assert!(policy.split(';').any(|part| part.trim() == "default-src 'none'"), "{policy}");
}

/// What a form returns to has the filters and the place in the list that the page had.
#[test]
fn a_form_returns_to_the_page_as_it_was_asked_for() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("query"));
    let back = |page: &str| {
        let at = page.find("action=\"/dashboard/do/create_api_key\"").expect("the form");
        let value = page[at..].split("name=\"_back\" value=\"").nth(1).expect("a field");
        value.split('"').next().unwrap().replace("&amp;", "&")
    };
    let asked = "/dashboard/keys?note=a%26b%3Dc+%3Cd%3E&page=2";
    let shown = back(&text(&visitor.get(&format!("{asked}&done=create_api_key"))));
    assert_eq!(shown, asked);
    let failed = visitor.act("create_api_key", &shown, &[("name", "")]);
    assert!(failed.status == 422 && back(&text(&failed)) == asked, "{failed:?}");
    let made = text(&visitor.act("create_api_key", &shown, &[("name", "CI")]));
    assert_eq!(back(&made), asked);
    let id = visitor.get("/dashboard/api/keys").json[0]["id"].as_str().unwrap().to_owned();
    let gone = visitor.act("revoke_api_key", &shown, &[("id", &id)]);
    assert_eq!(gone.header("location"), Some(&*format!("{asked}&done=revoke_api_key")));
    // A query that is no address to return to is left out, wherever it points.
    let long = back(&text(&visitor.get(&format!("/dashboard/keys?note={}", "x".repeat(3_000)))));
    assert_eq!(long, "/dashboard/keys");
    let elsewhere =
        back(&text(&visitor.get("/dashboard/keys?_back=//evil.example&next=https://evil.example")));
    assert!(elsewhere.starts_with("/dashboard/keys?") && !elsewhere.contains("//"), "{elsewhere}");
}

#[test]
fn a_key_made_in_the_dashboard_opens_the_api() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("keys"));
    let made = visitor.act("create_api_key", "/dashboard/keys", &[("name", "CI <b>")]);
    assert_eq!(made.status, 200, "{made:?}");
    let page = text(&made);
    assert!(page.contains("CI &lt;b&gt;") && !page.contains("<b>"), "{page}");
    let api = world.with_key(key_in(&page));
    let entry = api.get("/keys").ok().json[0].clone();
    assert_eq!(entry["name"], "CI <b>");
    assert!(!text(&visitor.get("/dashboard/keys")).contains(api.key()), "shown once");
    let id = entry["id"].as_str().unwrap();
    let gone = visitor.act("revoke_api_key", "/dashboard/keys", &[("id", id)]);
    assert_eq!((gone.status, gone.header("location")), (303, Some("/dashboard/keys?done=revoke_api_key")));
    assert!(text(&visitor.get("/dashboard/keys?done=revoke_api_key")).contains("Revoked."));
    api.get("/keys").refused("unauthorized");
}

#[test]
fn a_form_that_fails_returns_with_what_was_typed() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("typed"));
    let name = "x".repeat(1_000);
    let reply = visitor.act("create_api_key", "/dashboard/keys", &[("name", &name)]);
    assert_eq!(reply.status, 422, "{reply:?}");
    let page = text(&reply);
    assert!(page.contains("validation_failed") && page.contains(&name), "{page}");
    let missing = visitor.act("revoke_api_key", "/dashboard/keys", &[("id", "key_nobody")]);
    assert_eq!(missing.status, 404, "{missing:?}");
    let unknown = visitor.act("drop_everything", "/dashboard/keys", &[]);
    assert_eq!(unknown.status, 404, "{unknown:?}");
    let read = visitor.act("list_api_keys", "/dashboard/keys", &[]);
    assert_eq!(read.status, 404, "only what changes something has a form: {read:?}");
}

#[test]
fn a_form_leads_on_with_the_id_of_what_it_made() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("then"));
    let fields = [
        ("name", "Front desk"),
        ("instructions", "Be kind.\r\nBe short."),
        ("speech.filler", "One moment."),
        ("keyterms", "Miller\r\nBergmann\r\n"),
        ("record", "false"),
        ("transfers[].name", "Sales"),
        ("transfers[].number", "+44 20 7183 8750"),
        ("transfers[].when", ""),
        ("voicemail.action", "leave_message"),
        ("voicemail.message", "Please call us back."),
        ("_then", "/dashboard/assistants/{id}?tab=1"),
    ];
    let made = visitor.act("create_assistant", "/dashboard/keys", &fields);
    assert_eq!(made.status, 303, "{made:?}");
    let to = made.header("location").unwrap();
    let id = to.strip_prefix("/dashboard/assistants/").unwrap().split('?').next().unwrap().to_owned();
    assert_eq!(to, format!("/dashboard/assistants/{id}?tab=1&done=create_assistant"));
    let assistant = visitor.get(&format!("/dashboard/api/assistants/{id}"));
    assert_eq!(assistant.status, 200, "{assistant:?}");
    assert_eq!(assistant["instructions"], "Be kind.\nBe short.");
    assert_eq!(assistant["speech"]["filler"], "One moment.");
    assert_eq!(
        (&assistant["keyterms"], &assistant["record"]),
        (&json!(["Miller", "Bergmann"]), &json!(false))
    );
    assert_eq!(assistant["transfers"], json!([{"name": "Sales", "number": "+442071838750", "when": ""}]));
    assert_eq!(assistant["voicemail"], json!({"action": "leave_message", "message": "Please call us back."}));
    let page = text(&visitor.get(&format!("/dashboard/assistants/{id}")));
    assert!(page.contains(r#"<option value="leave_message" selected>"#), "{page}");
    let off = [
        ("id", id.as_str()),
        ("voicemail.action", ""),
        ("voicemail.message", "Please call us back."),
        ("_revision", "1"),
    ];
    assert_eq!(visitor.act("update_assistant", "/dashboard/keys", &off).status, 303);
    assert_eq!(visitor.get(&format!("/dashboard/api/assistants/{id}"))["voicemail"], json!(null));
    let back = [("id", id.as_str()), ("name", "Desk"), ("_revision", "2")];
    assert_eq!(visitor.act("update_assistant", "/dashboard/keys", &back).status, 303);
    let stale = visitor.act("update_assistant", "/dashboard/keys", &back);
    assert!(stale.status == 409 && text(&stale).contains("revision_conflict"), "{stale:?}");
}

#[test]
fn live_parts_call_the_api_in_the_name_of_the_session() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("live"));
    let csrf = visitor.csrf("/dashboard/keys");
    let body = json!({"name": "Desk", "instructions": "Be kind."}).to_string();
    let send = |visitor: &mut Visitor, headers: &[(&str, &str)]| {
        let headers = [&[("content-type", "application/json")], headers].concat();
        visitor.send(Method::POST, "/dashboard/api/assistants", &headers, body.clone().into())
    };
    assert_eq!(send(&mut visitor, &[]).sound().code(), "forbidden_origin");
    assert_eq!(send(&mut visitor, &[("x-csrf-token", "nonsense")]).sound().code(), "forbidden_origin");
    let foreign = [("x-csrf-token", csrf.as_str()), ("sec-fetch-site", "cross-site")];
    assert_eq!(send(&mut visitor, &foreign).sound().code(), "forbidden_origin");
    let own = [("x-csrf-token", csrf.as_str()), ("sec-fetch-site", "same-origin")];
    assert_eq!(send(&mut visitor, &own).status, 201);
    let listed = visitor.get("/dashboard/api/assistants?limit=1");
    assert_eq!(listed.json.as_array().map(Vec::len), Some(1), "{listed:?}");
    let foreign = visitor.send(
        Method::GET,
        "/dashboard/api/assistants",
        &[("sec-fetch-site", "cross-site")],
        "".into(),
    );
    assert_eq!(foreign.sound().code(), "forbidden_origin");
    let mut nobody = Visitor::new(&world);
    assert_eq!(nobody.get("/dashboard/api/assistants").sound().code(), "unauthorized");
    // A key is no session, and a session is no key.
    let key = format!("Bearer {}", world.key());
    let keyed = nobody.send(Method::GET, "/dashboard/api/assistants", &[("authorization", &key)], "".into());
    assert_eq!(keyed.sound().code(), "unauthorized");
    assert_eq!(visitor.get("/assistants").sound().code(), "unauthorized");
    let mcp = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    assert_eq!(visitor.send(Method::POST, "/mcp", &headers, mcp.into()).status, 401);
}

#[test]
fn each_person_has_a_workspace_of_their_own() {
    let world = World::new();
    let mut anna = Visitor::signed_in(&world, &address("anna"));
    let mut ben = Visitor::signed_in(&world, &address("ben"));
    let made =
        anna.act("create_assistant", "/dashboard/keys", &[("name", "Anna's"), ("instructions", "Be kind.")]);
    assert_eq!(made.status, 303, "{made:?}");
    let of = |visitor: &mut Visitor| visitor.get("/dashboard/api/assistants").json.as_array().map(Vec::len);
    assert_eq!((of(&mut anna), of(&mut ben)), (Some(1), Some(0)));
    assert_eq!(ben.get("/dashboard/api/workspace")["name"], address("ben").split_once('@').unwrap().0);
    assert_eq!(world.get("/assistants").ok().json, Value::Array(Vec::new()));
    // The same person finds the same workspace again, with another session.
    let mut again = Visitor::signed_in(&world, &address("anna"));
    assert_eq!(of(&mut again), Some(1));
    assert_ne!(again.cookies, anna.cookies);
}

#[test]
fn sessions_are_listed_and_revoked() {
    let world = World::new();
    let email = address("sessions");
    let mut desk = Visitor::signed_in(&world, &email);
    let mut phone = Visitor::signed_in(&world, &email);
    let page = text(&desk.get("/dashboard/sessions"));
    let ids: Vec<&str> = page.split("sess_").skip(1).map(|rest| &rest[..26]).collect();
    assert_eq!(ids.len(), 1, "one to sign out beside this one: {page}");
    assert!(page.contains("This one"), "{page}");
    let other = format!("sess_{}", ids[0]);
    let mut stranger = Visitor::signed_in(&world, &address("stranger"));
    assert_eq!(stranger.act("revoke_session", "/dashboard/sessions", &[("id", &other)]).status, 404);
    assert_eq!(desk.act("revoke_session", "/dashboard/sessions", &[("id", &other)]).status, 303);
    assert_eq!(phone.get("/dashboard").status, 303, "the other session has ended");
    assert_eq!(desk.get("/dashboard").status, 200);
    let before = desk.clone();
    let out = desk.submit("/dashboard", "/dashboard/sign-out", &[]);
    assert_eq!((out.status, out.header("location")), (303, Some("/dashboard/sign-in")));
    assert!(desk.cookies.keys().all(|name| !name.contains("session")), "{:?}", desk.cookies);
    assert_eq!(before.clone().get("/dashboard").status, 303, "the cookie is worth nothing any more");
}

/// Somebody who signed up, and has made no API key, talks to the assistant.
#[test]
fn a_workspace_without_keys_can_talk() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("talks"));
    let fields = [("name", "Desk"), ("instructions", "Be kind."), ("_then", "/dashboard/assistants/{id}?")];
    let made = visitor.act("create_assistant", "/dashboard/keys", &fields);
    let id = made.header("location").unwrap().split(['/', '?']).nth(3).unwrap().to_owned();
    let here = format!("/dashboard/assistants/{id}");
    let shown = visitor.act("create_browser_test_token", &here, &[("id", &id)]);
    let page = text(&shown);
    let in_frame = page.split("src=\"/voice-test?token=").nth(1).expect("the conversation, in a frame");
    let token = in_frame.split('"').next().unwrap();
    assert!(world.connect(&format!("/voice-test/socket?token={token}")).is_ok());
}

/// With more tools than a list's part has: every one can be reached and attached, and none is detached by a form that
/// does not show it.
#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "writes hundreds of rows")]
fn a_long_list_goes_on_and_loses_nothing() {
    let world = World::new();
    let mut visitor = Visitor::new(&world);
    visitor.sign_in(&address("long"));
    let filler = visitor.api(&world);
    let create = |n: usize| {
        let url = "https://booking.example.com/slots";
        let tool = json!({"name": format!("tool_{n}"), "url": url, "parameters": {"type": "object"}});
        filler.post("/tools", tool).created()["id"].as_str().unwrap().to_owned()
    };
    let oldest = create(0);
    (1..=1_000).for_each(|n| drop(create(n)));
    let first = text(&visitor.get("/dashboard/tools")).to_string();
    assert!(first.contains("tool_1000") && !first.contains("tool_0<"), "newest first");
    let mut page = first;
    let mut pages = 1;
    while let Some(at) = page.find("rel=\"next\" href=\"") {
        let rest = &page[at + "rel=\"next\" href=\"".len()..];
        let to = rest[..rest.find('"').unwrap()].replace("&amp;", "&");
        page = text(&visitor.get(&to)).to_string();
        pages += 1;
    }
    assert_eq!(pages, 6);
    assert!(page.contains("tool_0<") && page.contains("First page"));

    let assistant = filler.assistant().id;
    filler.put(format!("/assistants/{assistant}/tools"), json!({"tool_ids": [oldest]})).ok();
    let editor = text(&visitor.get(&format!("/dashboard/assistants/{assistant}"))).to_string();
    let mut inputs = editor.split("<input").map(|rest| rest.split('>').next().unwrap());
    let box_of_oldest = inputs.find(|input| input.contains(&oldest)).unwrap();
    assert!(box_of_oldest.contains("checked"), "{box_of_oldest}");
}

/// "Run them" leads to the page of the batch, which counts its runs until all have ended.
#[test]
fn a_batch_has_a_page_that_counts_its_runs() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("batch"));
    let api = visitor.api(&world);
    let assistant = api.assistant().id;
    let simulations: Vec<String> = (0..3).map(|_| api.simulation_of(&assistant).id).collect();
    let page = text(&visitor.get("/dashboard/simulations"));
    let form = page.split("action=\"/dashboard/do/start_simulation_batch\"").nth(1).expect("a form");
    let then = form.split("name=\"_then\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let fields = [("assistant_id", assistant.as_str()), ("mode", "chat"), ("_then", &then)];
    let started = visitor.act("start_simulation_batch", "/dashboard/simulations", &fields);
    let to = started.header("location").unwrap().to_owned();
    assert!(to.starts_with("/dashboard/simulations/batches/batch_"), "{to}");
    // A run outside of the batch is not counted.
    api.settle(
        api.post(format!("/simulations/{}/runs", simulations[0]), json!({})).created()["id"]
            .as_str()
            .unwrap(),
    );
    for run in api.get("/simulations/runs").ok()["runs"].as_array().unwrap() {
        api.settle(run["id"].as_str().unwrap());
    }
    let page = text(&visitor.get(&to));
    assert!(page.contains("Batch of 3 runs – ") && page.contains("3 of 3 done"), "{page}");
    assert!(page.contains("3 of 3 runs are done") && !page.contains("data-live"), "{page}");
    assert!(to.contains("done=start_simulation_batch") && !page.contains("Started."), "{page}");
    assert_eq!(page.matches("href=\"/dashboard/simulations/runs/run_").count(), 3, "{page}");
    let nobody = visitor.get("/dashboard/simulations/batches/batch_nobody");
    assert_eq!(nobody.status, 404, "{nobody:?}");
}

/// From a conversation that was spoken: lists leave its turns out, and the chart needs how long they took.
#[test]
fn the_overview_shows_over_time_how_long_callers_waited() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("waits"));
    let api = visitor.api(&world);
    let simulation = api.simulation();
    let run = api.post(format!("/simulations/{}/runs", simulation.id), json!({"mode": "voice"})).created();
    api.settle(run["id"].as_str().unwrap());
    let call = &api.get("/calls").ok()["calls"][0];
    let mut waits: Vec<i64> = call["waits_ms"].as_array().unwrap().iter().filter_map(Value::as_i64).collect();
    waits.sort_unstable();
    assert!(!waits.is_empty() && call["turns"].is_null(), "{call}");
    let page = text(&visitor.get("/dashboard"));
    let waited = page.split("<h2>How long callers waited</h2>").nth(1).expect("a section");
    let chart = waited.split("</section>").next().unwrap();
    assert!(chart.contains("<svg class=\"chart\""), "{chart}");
    // p50 and p95 of its hour, in the table beside the chart.
    let of = |percent: usize| waits[(waits.len() * percent).div_ceil(100) - 1];
    let shown = |ms: i64| match ms {
        ..1_000 => format!("{ms} ms"),
        _ => format!("{}.{:02} s", ms / 1_000, ms / 10 % 100),
    };
    let row = chart.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    assert_eq!(row.matches("<tr>").count(), 1, "{row}");
    for value in [of(50), of(95)] {
        assert!(row.contains(&format!("<td class=\"num\">{}</td>", shown(value))), "{value} ms: {row}");
    }
}

#[test]
fn a_form_that_is_sent_again_makes_nothing_twice() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("once"));
    let page = text(&visitor.get("/dashboard/keys"));
    assert!(page.contains("name=\"_once\""), "{page}");
    let mut make = |operation: &str, once: &str, fields: &[(&str, &str)]| {
        let fields = [&[("_once", once)], fields].concat();
        let reply = visitor.act(operation, "/dashboard/keys", &fields);
        assert_eq!(reply.status, 200, "{reply:?}");
        text(&reply)
    };
    let first = make("create_api_key", "1", &[("name", "Robot")]);
    assert!(first.contains("Created.") && first.contains("sidetone_"), "{first}");
    let again = make("create_api_key", "1", &[("name", "Robot")]);
    assert!(again.contains("nothing was made again") && !again.contains("Created."), "{again}");
    assert_eq!(again.matches("<strong>Robot</strong>").count(), 1, "{again}");
    // Another text in the same form, or the same one in another, is meant.
    assert!(make("create_api_key", "1", &[("name", "Robot 2")]).contains("Created."));
    let other = make("create_api_key", "2", &[("name", "Robot")]);
    assert_eq!(other.matches("<strong>Robot</strong>").count(), 2, "{other}");
    // What can be derived again is shown again.
    let tool = [
        ("name", "book_day"),
        ("description", "Books a day"),
        ("url", "https://tools.example/book"),
        ("parameters", "{\"type\": \"object\"}"),
    ];
    let secret = |page: &str| {
        let at = page.find("code class=\"secret\"").expect("a secret");
        page[at..].split('<').next().map(str::to_owned)
    };
    assert_eq!(secret(&make("create_tool", "3", &tool)), secret(&make("create_tool", "3", &tool)));
}

#[test]
fn a_form_says_what_is_no_json_and_what_was_not_chosen() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("json"));
    let tool = [
        ("name", "book"),
        ("description", "Books"),
        ("url", "https://tools.example/book"),
        ("parameters", "{\"type\":\"object\",}"),
    ];
    let page = text(&visitor.act("create_tool", "/dashboard/tools/new", &tool));
    assert!(page.contains("JSON") && page.contains("line 1") && !page.contains("not a string"), "{page}");
    let chosen = [("name", "Night"), ("assistant_id", ""), ("persona_id", ""), ("scenario_id", "")];
    let page = text(&visitor.act("create_simulation", "/dashboard/simulations/new", &chosen));
    assert!(!page.contains("is no assistant") && page.contains("required"), "{page}");
}

#[test]
fn a_problem_in_a_row_names_the_row() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("rows"));
    let rows = json!([
        {"kind": "transcript", "role": "assistant", "includes": "ten"},
        {"kind": "transcript", "role": "assistant", "includes": ""},
    ]);
    let scenario = [("name", "Hours"), ("instructions", "Ask."), ("evaluations", &rows.to_string())];
    let page =
        text(&visitor.act("create_simulation_scenario", "/dashboard/simulations/scenarios/new", &scenario));
    assert!(page.contains("Evaluations, row 2: includes"), "{page}");
    assert!(page.contains(">Row 2, includes: Must not be empty.<"), "{page}");
    // The field itself is marked, in that row alone.
    let marked = |row: &&str| row.contains("aria-invalid=\"true\"");
    let rows: Vec<_> = page.split("<div class=\"rowform\">").skip(1).take(2).collect();
    assert_eq!(rows.iter().map(marked).collect::<Vec<_>>(), [false, true], "{page}");
    assert!(page.contains("href=\"#f-evaluations\""), "{page}");
}

/// A problem deep in JSON says where, and what is cut short keeps its name.
#[test]
fn a_problem_in_json_names_its_path() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("deep"));
    let mut told = |parameters: &str| {
        let tool = [("name", "book"), ("url", "https://tools.example/book"), ("parameters", parameters)];
        text(&visitor.act("create_tool", "/dashboard/tools/new", &tool))
    };
    let page = told(r#"{"type": "object", "properties": {"date": {"type": "strin"}}}"#);
    let path = "<code>parameters.properties.date.type</code>";
    assert!(
        page.contains(&format!("<a href=\"#f-parameters\">Parameters, {path}</a>: must be one of")),
        "{page}"
    );
    assert!(page.contains(&format!("id=\"f-parameters-wrong\">{path}: Must be")), "{page}");
    let page = told("{");
    assert!(page.contains("</a>: it ends too early, at line 1"), "{page}");
}

#[test]
fn a_number_that_does_not_fit_is_told_at_its_field() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("numbers"));
    let desk = [("name", "Desk"), ("instructions", "Be kind.")];
    for (operation, at, field, typed, told) in [
        ("create_assistant", "/dashboard/assistants/new", "speech.speed", "99", "Must be at most 2."),
        (
            "create_assistant",
            "/dashboard/assistants/new",
            "speech.speed",
            "fast",
            "Must be a number, such as 1",
        ),
        ("update_workspace", "/dashboard/settings", "runs_at_once", "2.5", "Must be a whole number, such as"),
        (
            "update_workspace",
            "/dashboard/settings",
            "monthly_spend_limit_microusd",
            "much",
            "Must be an amount in US dollars",
        ),
    ] {
        let mut fields = vec![desk[0], (field, typed)];
        if operation == "create_assistant" {
            fields.push(desk[1]);
        }
        let page = text(&visitor.act(operation, at, &fields));
        let id = format!("id=\"f-{}-wrong\">{told}", field.replace('.', "-"));
        assert!(page.contains(&id), "{field}: {page}");
        assert!(page.contains("One field needs a change") && !page.contains("not a string"), "{page}");
    }
}

#[test]
fn the_address_of_a_form_leads_to_the_dashboard() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("address"));
    let response = visitor.get("/dashboard/do/create_tool");
    assert_eq!((response.status, response.header("location")), (303, Some("/dashboard")));
}

/// What is only queued is not called done, and its delivery is a click away.
#[test]
fn the_test_of_a_webhook_says_that_it_is_queued() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("queued"));
    let api = visitor.api(&world);
    let webhook = json!({"url": "https://dental.example.com/events", "events": ["call.ended"]});
    let id = api.post("/webhooks", webhook).created()["id"].as_str().unwrap().to_owned();
    let here = format!("/dashboard/webhooks/{id}");
    let page = text(&visitor.get(&here));
    let form = page.split("action=\"/dashboard/do/test_webhook\"").nth(1).expect("a form");
    let then = form.split("name=\"_then\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let sent = visitor.act("test_webhook", &here, &[("id", &id), ("_then", &then)]);
    let page = text(&visitor.get(sent.header("location").unwrap()));
    let notice = page.split("<p class=\"notice\"").nth(1).unwrap().split("</p>").next().unwrap();
    assert!(notice.contains("was queued") && !notice.contains("Done"), "{notice}");
    let delivery = notice.split("href=\"#").nth(1).expect("a link").split('"').next().unwrap();
    assert!(page.contains(&format!("<tr id=\"{delivery}\">")), "{delivery}: {page}");
}

/// No answer is told with what to check.
#[test]
fn the_test_of_a_tool_says_why_there_is_no_answer() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("unreached"));
    let api = visitor.api(&world);
    let tool = json!({"name": "book", "url": "https://nowhere.invalid/book", "timeout_ms": 30_000});
    let id = api.post("/tools", tool).created()["id"].as_str().unwrap().to_owned();
    let page = text(&visitor.act(
        "test_tool",
        &format!("/dashboard/tools/{id}"),
        &[("id", &id), ("arguments", "{}")],
    ));
    assert!(
        page.contains("The tool could not be reached.") && page.contains("Check the host name"),
        "{page}"
    );
}

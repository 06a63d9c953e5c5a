//! `apply` and `diff`.
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::json;

use crate::support::{Desk, files};

const ASSISTANT: &str = "assistants/front-desk.toml";

#[test]
fn a_folder_is_applied_once() {
    let desk = Desk::new();
    let plan = desk.run(&["diff", "folder"]).expect(1);
    assert!(plan.contains("+ assistants/front-desk.toml  is created"), "{plan}");
    assert_eq!(desk.client().expect(200, "GET", "/assistants", None), json!([]), "a diff changes nothing");
    let done = desk.run(&["apply", "folder"]).expect(0);
    assert!(done.contains("8 created, 0 changed, 0 deleted"), "{done}");
    let assistant = desk.only("/assistants");
    assert_eq!(assistant["tool_ids"], json!([desk.only("/tools")["id"]]));
    assert_eq!(assistant["knowledge_ids"], json!([desk.only("/knowledge")["id"]]));
    assert_eq!(assistant["speech"]["end_of_turn_min_ms"], 800);

    assert!(desk.run(&["diff", "folder"]).expect(0).contains("8 are the same"));
    let done = desk.run(&["apply", "folder"]).expect(0);
    assert!(done.contains("0 created, 0 changed"), "{done}");
    assert_eq!(desk.only("/assistants"), assistant);
    let lock = fs::read_to_string(desk.folder().join("sidetone.lock")).expect("a lock");
    let all = files(&desk.folder()).into_values().collect::<String>() + &lock;
    assert!(!all.contains("whsec_"), "no file has a secret");
}

#[test]
fn only_what_was_changed_is_written() {
    let desk = Desk::applied();
    let before = desk.only("/assistants");
    let scenarios = desk.client().expect(200, "GET", "/simulations/scenarios", None);
    desk.edit(ASSISTANT, "Be brief and kind.", "Be brief.");
    desk.edit("knowledge/opening-hours.toml", "costs 90", "costs 95");
    let shown = desk.run(&["diff", "folder"]).expect(1);
    assert!(shown.contains("- Be brief and kind.\n      + Be brief."), "{shown}");
    assert!(shown.contains("+ A check-up costs 95 dollars."), "{shown}");
    assert!(!shown.contains("You answer for Lakeside Dental.\n      +"), "{shown}");
    let done = desk.run(&["apply", "folder"]).expect(0);
    assert!(done.contains("0 created, 2 changed, 0 deleted"), "{done}");
    let after = desk.only("/assistants");
    assert_eq!(after["revision"].as_i64(), before["revision"].as_i64().map(|revision| revision + 1));
    assert_eq!(desk.client().expect(200, "GET", "/simulations/scenarios", None), scenarios);
    desk.run(&["diff", "folder"]).expect(0);

    // What is not stated any more has its default again, and what is attached goes.
    desk.edit(ASSISTANT, "first_message = \"Lakeside Dental, good morning.\"\n", "");
    desk.edit(ASSISTANT, "tools = [\"book_appointment\"]\n", "");
    desk.edit(ASSISTANT, "model = \"builtin/rules\"\n", "");
    let shown = desk.run(&["diff", "folder"]).expect(1);
    assert!(shown.contains("first_message: \"Lakeside Dental, good morning.\" → \"\""), "{shown}");
    assert!(shown.contains("tools: [\"book_appointment\"] → []"), "{shown}");
    assert!(!shown.contains("model"), "the server chooses it: {shown}");
    desk.run(&["apply", "folder"]).expect(0);
    let after = desk.only("/assistants");
    assert_eq!((&after["first_message"], &after["tool_ids"]), (&json!(""), &json!([])));
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn what_somebody_else_changed_is_not_written_over() {
    let desk = Desk::applied();
    let path = desk.path_of_only("/assistants");
    desk.client().expect(200, "PATCH", &path, Some(&json!({"first_message": "Moin."})));
    desk.edit(ASSISTANT, "Be brief and kind.", "Be brief.");
    desk.edit("personas/polite-caller.toml", "polite.", "rude.");
    let theirs = desk.only("/assistants");
    let said = desk.run(&["apply", "folder"]).expect(1);
    assert!(said.contains("! assistants/front-desk.toml  was changed by somebody else"), "{said}");
    assert!(
        said.contains(
            "first_message: \"Moin.\" → \"Lakeside Dental, good morning.\"  (changed there, not here)"
        ),
        "{said}"
    );
    assert_eq!(desk.only("/assistants"), theirs, "nothing of it was written");
    let persona = desk.only("/simulations/personas");
    assert!(
        persona["system_prompt"].as_str().is_some_and(|text| text.contains("rude")),
        "the rest was applied"
    );

    // A pull takes theirs and keeps ours.
    let said = desk.run(&["pull", "folder"]).expect(0);
    assert!(said.contains("1 written"), "{said}");
    let text = desk.text(ASSISTANT);
    assert!(text.contains("first_message = \"Moin.\"") && text.contains("Be brief.\n"), "{text}");
    assert!(text.contains("# 500 cut some off"), "comments stay: {text}");
    desk.run(&["apply", "folder"]).expect(0);
    let after = desk.only("/assistants");
    assert_eq!(after["first_message"], "Moin.");
    assert!(after["instructions"].as_str().is_some_and(|text| text.contains("Be brief.\n")));

    // The same field on both sides: one has to be chosen.
    desk.client().expect(200, "PATCH", &path, Some(&json!({"first_message": "Theirs."})));
    desk.edit(ASSISTANT, "Moin.", "Ours.");
    let before = desk.text(ASSISTANT);
    assert!(desk.run(&["pull", "folder"]).expect(1).contains("(changed there and here)"));
    assert_eq!(desk.text(ASSISTANT), before);
    desk.run(&["apply", "folder"]).expect(1);
    assert_eq!(desk.only("/assistants")["first_message"], "Theirs.");
    desk.run(&["apply", "folder", "--force"]).expect(0);
    assert_eq!(desk.only("/assistants")["first_message"], "Ours.");
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn what_somebody_else_deleted_is_not_created_again() {
    let desk = Desk::applied();
    let path = desk.path_of_only("/assistants");
    desk.client().expect(204, "DELETE", &path, None);
    let said = desk.run(&["apply", "folder"]).expect(1);
    assert!(said.contains("! assistants/front-desk.toml  was deleted by somebody else"), "{said}");
    assert_eq!(desk.client().expect(200, "GET", "/assistants", None), json!([]));
    desk.run(&["apply", "folder", "--force"]).expect(0);
    desk.only("/assistants");
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn an_apply_that_was_killed_is_repeated() {
    let desk = Desk::new();
    for number in 0..150 {
        let text = format!("name = \"Caller {number}\"\nsystem_prompt = \"You are number {number}.\"\n");
        desk.write(&format!("personas/caller-{number}.toml"), &text);
    }
    let mut command = desk.command(&["apply", "folder", "--yes"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    // Some personas are written, others are under way.
    let created = lines.filter(|line| line.starts_with("created personas/")).take(1).count();
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    assert_eq!(created, 1);
    desk.run(&["apply", "folder"]).expect(0);
    let personas = desk.client().expect(200, "GET", "/simulations/personas", None);
    assert_eq!(personas.as_array().map(Vec::len), Some(151), "none twice");
    desk.run(&["diff", "folder"]).expect(0);

    // Without the lock, everything is found by its name.
    fs::remove_file(desk.folder().join("sidetone.lock")).expect("it is there");
    let done = desk.run(&["apply", "folder"]).expect(0);
    assert!(done.contains("0 created, 0 changed"), "{done}");
}

#[test]
fn only_prune_deletes_and_only_what_was_seen() {
    let desk = Desk::applied();
    let other = json!({"name": "Other", "instructions": "Be kind."});
    desk.client().expect(201, "POST", "/assistants", Some(&other));
    desk.remove(&["simulations/booking.toml", "scenarios/booking.toml", "tools/book_appointment.toml"]);
    let said = desk.run(&["diff", "folder"]).expect(2);
    assert!(
        said.contains("assistants/front-desk.toml: tools: there is no tools/book_appointment.toml"),
        "{said}"
    );
    desk.edit(ASSISTANT, "tools = [\"book_appointment\"]\n", "");
    let said = desk.run(&["apply", "folder"]).expect(0);
    assert!(said.contains("- scenarios/booking.toml  has no file any more; --prune deletes it"), "{said}");
    assert!(said.contains("assistant \"Other\""), "{said}");
    desk.only("/tools");
    let said = desk.run(&["apply", "folder", "--prune"]).expect(0);
    assert!(said.contains("3 deleted"), "{said}");
    assert_eq!(desk.client().expect(200, "GET", "/tools", None), json!([]));
    desk.only("/simulations");
    let assistants = desk.client().expect(200, "GET", "/assistants", None);
    assert_eq!(assistants.as_array().map(Vec::len), Some(2), "what was never seen stays");

    // Nor what somebody else changed.
    let id = desk.only("/simulations/personas")["id"].as_str().expect("an id").to_owned();
    let path = format!("/simulations/personas/{id}");
    desk.client().expect(200, "PATCH", &path, Some(&json!({"system_prompt": "You are new."})));
    desk.remove(&["simulations/saturday.toml", "personas/polite-caller.toml"]);
    desk.run(&["apply", "folder", "--prune"]).expect(1);
    desk.client().expect(200, "GET", &path, None);
}

#[test]
fn a_deletion_that_nobody_asked_for_is_no_conflict() {
    let desk = Desk::applied();
    let path = desk.path_of_only("/simulations/personas");
    desk.client().expect(200, "PATCH", &path, Some(&json!({"system_prompt": "You are new."})));
    desk.remove(&["simulations/saturday.toml", "simulations/booking.toml", "personas/polite-caller.toml"]);
    let said = desk.run(&["apply", "folder"]).expect(0);
    let refused = "has no file, and somebody else changed it; `sidetone apply --prune --force` deletes it";
    assert!(said.contains(refused), "{said}");
    assert!(!said.contains("left alone") && said.contains("0 changed by somebody else"), "{said}");
    let said = desk.run(&["apply", "folder", "--prune"]).expect(1);
    assert!(said.contains("2 deleted, 1 changed by somebody else"), "{said}");
    desk.run(&["apply", "folder", "--prune", "--force"]).expect(0);
    assert_eq!(desk.client().expect(200, "GET", "/simulations/personas", None), json!([]));
}

#[test]
fn what_somebody_else_made_does_not_go_with_what_it_needs() {
    let desk = Desk::applied();
    let list = |path: &str| desk.client().expect(200, "GET", path, None);
    let theirs = desk.their_simulation("Theirs");
    desk.client().expect(201, "POST", "/simulations", Some(&theirs));
    desk.remove(&["simulations/booking.toml", "simulations/saturday.toml", "personas/polite-caller.toml"]);
    let said = desk.run(&["apply", "folder", "--prune"]).expect(1);
    assert!(said.contains("2 deleted") && said.contains("1 to delete is still used: left alone."), "{said}");
    let refused =
        "personas/polite-caller.toml  has no file, and it is used by simulation \"Theirs\"; `sidetone";
    assert!(said.contains(refused), "{said}");
    assert_eq!(desk.only("/simulations")["name"], "Theirs");
    desk.only("/simulations/personas");
    desk.run(&["apply", "folder", "--prune", "--force"]).expect(0);
    assert_eq!(list("/simulations/personas"), json!([]));
}

#[test]
fn what_could_not_be_replaced_is_not_deleted() {
    let desk = Desk::new();
    desk.run(&["apply", "folder"]).expect(0);
    let new = "assistants/reception.toml";
    fs::rename(desk.folder().join(ASSISTANT), desk.folder().join(new)).expect("it is there");
    desk.edit(new, "\"Front desk\"", "\"Reception\"");
    desk.edit(new, "\"builtin/rules\"", "\"nobody/knows\"");
    for file in ["simulations/saturday.toml", "simulations/booking.toml"] {
        desk.edit(file, "\"front-desk\"", "\"reception\"");
    }
    let said = desk.run(&["apply", "folder", "--prune"]).expect(2);
    assert!(said.contains("0 deleted") && said.contains("Nothing is deleted"), "{said}");
    assert_eq!(desk.only("/assistants")["name"], "Front desk");
    let simulations = desk.client().expect(200, "GET", "/simulations", None);
    assert_eq!(simulations.as_array().map(Vec::len), Some(2));
}

#[test]
fn an_assistant_with_a_number_is_not_deleted() {
    let desk = Desk::new();
    desk.run(&["apply", "folder"]).expect(0);
    let binding = json!({"assistant_id": desk.only("/assistants")["id"], "provider": "twilio"});
    desk.client().expect(200, "PUT", "/numbers/+14155550100", Some(&binding));
    desk.remove(&[ASSISTANT, "simulations/saturday.toml", "simulations/booking.toml"]);
    let said = desk.run(&["apply", "folder", "--prune"]).expect(1);
    let refused = format!("! {ASSISTANT}  has no file, and it is used by number +14155550100; `sidetone");
    assert!(said.contains(&refused), "{said}");
    assert_eq!(desk.only("/numbers")["assistant_id"], desk.only("/assistants")["id"]);
    let said = desk.run(&["apply", "folder", "--prune", "--force"]).expect(0);
    let deleted = "is deleted, with its simulations; after that, nobody answers +14155550100\n";
    assert!(said.contains(&format!("- {ASSISTANT}  {deleted}")), "{said}");
    assert_eq!(desk.client().expect(200, "GET", "/numbers", None), json!([]));
}

#[test]
fn of_many_that_use_it_three_are_named() {
    let desk = Desk::applied();
    let path = desk.path_of_only("/simulations/personas");
    desk.client().expect(200, "PATCH", &path, Some(&json!({"system_prompt": "You are new."})));
    let ours = desk.their_simulation("Theirs");
    for number in 0..5 {
        let mut theirs = ours.clone();
        theirs["name"] = format!("Theirs {number}").into();
        desk.client().expect(201, "POST", "/simulations", Some(&theirs));
    }
    desk.remove(&["simulations/booking.toml", "simulations/saturday.toml", "personas/polite-caller.toml"]);
    let said = desk.run(&["diff", "folder"]).expect(1);
    let line = said.lines().find(|line| line.starts_with("! personas/")).expect("a refusal");
    assert!(line.contains("somebody else changed it, and it is used by simulation \"Theirs "), "{line}");
    assert!(line.contains(" and 2 more; ") && line.matches("simulation \"").count() == 3, "{line}");
}

#[test]
fn a_simulation_without_a_name_stays_so_when_its_persona_is_renamed() {
    let desk = Desk::applied();
    desk.edit("personas/polite-caller.toml", "Polite caller", "Calm caller");
    desk.run(&["apply", "folder"]).expect(0);
    desk.run(&["diff", "folder"]).expect(0);
    let before = files(&desk.folder());
    desk.run(&["pull", "folder"]).expect(0);
    assert_eq!(files(&desk.folder()), before);
    fs::remove_file(desk.folder().join("sidetone.lock")).expect("it is there");
    let done = desk.run(&["apply", "folder"]).expect(0);
    assert!(done.contains("0 created, 0 changed"), "{done}");
    desk.edit("scenarios/saturday.toml", "name = \"Saturday\"", "name = \"Weekend\"");
    desk.run(&["apply", "folder"]).expect(0);
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn what_was_renamed_there_is_another_one_without_the_lock() {
    let desk = Desk::applied();
    let path = format!(
        "/simulations/personas/{}",
        desk.only("/simulations/personas")["id"].as_str().expect("an id")
    );
    desk.client().expect(200, "PATCH", &path, Some(&json!({"name": "Their caller"})));
    fs::remove_file(desk.folder().join("sidetone.lock")).expect("it is there");
    desk.run(&["apply", "folder"]).expect(0);
    let personas = desk.client().expect(200, "GET", "/simulations/personas", None);
    let rows = personas.as_array().expect("a list").iter();
    let mut names: Vec<&str> = rows.filter_map(|row| row["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["Polite caller", "Their caller"]);
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn two_of_one_name_are_an_error() {
    let desk = Desk::new();
    let other = json!({"name": "Front desk", "instructions": "Be kind."});
    desk.client().expect(201, "POST", "/assistants", Some(&other));
    desk.client().expect(201, "POST", "/assistants", Some(&other));
    let said = desk.run(&["apply", "folder"]).expect(2);
    assert!(said.contains("not clear which assistant is which"), "{said}");
    assert_eq!(desk.client().expect(200, "GET", "/tools", None), json!([]), "nothing was applied");
}

#[test]
fn a_renamed_file_is_the_same_resource() {
    let desk = Desk::applied();
    let tool = desk.only("/tools");
    let rename = |from: &str, to: &str| fs::rename(desk.folder().join(from), desk.folder().join(to));
    rename("tools/book_appointment.toml", "tools/book.toml").expect("it is there");
    desk.edit(ASSISTANT, "tools = [\"book_appointment\"]", "tools = [\"book\"]");
    let done = desk.run(&["apply", "folder", "--prune"]).expect(0);
    assert!(done.contains("0 created, 0 changed, 0 deleted"), "{done}");
    assert_eq!(desk.only("/tools"), tool);
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn a_wrong_folder_is_an_error_before_anything_is_sent() {
    let desk = Desk::new();
    desk.edit(ASSISTANT, "first_message", "first_mesage");
    desk.edit("simulations/saturday.toml", "\"saturday\"", "\"saturdy\"");
    desk.write("personas/broken.toml", "name = \n");
    let said = desk.run(&["apply", "folder"]).expect(2);
    assert!(said.contains("first_mesage is not a field; fields are: name, instructions"), "{said}");
    assert!(said.contains("there is no scenarios/saturdy.toml; is saturday meant?"), "{said}");
    assert!(said.contains("personas/broken.toml: TOML parse error at line 1"), "{said}");
    assert_eq!(desk.client().expect(200, "GET", "/tools", None), json!([]));
    let said = desk.run(&["apply", "nowhere"]).expect(2);
    assert!(said.contains("nowhere has no files"), "{said}");
}

#[test]
fn a_file_cannot_speak_to_the_terminal() {
    let desk = Desk::new();
    desk.write("personas/b.toml", "name = \u{1b}[2J");
    desk.write("personas/\u{1b}[2K.toml", "name = \n");
    let said = desk.run(&["apply", "folder"]).expect(2);
    assert!(said.contains("personas/b.toml: ") && said.contains("[2K.toml: "), "{said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

#[test]
fn what_the_service_refuses_is_said_with_its_file() {
    let desk = Desk::new();
    desk.edit(ASSISTANT, "model = \"builtin/rules\"", "model = \"nobody/knows\"");
    let said = desk.run(&["apply", "folder"]).expect(2);
    assert!(
        said.contains("assistants/front-desk.toml: model: ")
            && said.matches("is not configured").count() == 1,
        "{said}"
    );
    assert!(said.contains("simulations/saturday.toml: needs assistants/front-desk.toml"), "{said}");
    desk.edit(ASSISTANT, "model = \"nobody/knows\"", "model = \"builtin/rules\"");
    let done = desk.run(&["apply", "folder"]).expect(0);
    assert!(done.contains("3 created"), "the rest was there: {done}");
}

#[test]
fn a_key_is_needed_and_a_wrong_one_is_refused() {
    let desk = Desk::new();
    let mut command = desk.command(&["diff", "folder"]);
    let output = command.env_remove("SIDETONE_API_KEY").output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("SIDETONE_API_KEY"));
    let said = desk.run(&["diff", "folder", "--key", "sk_wrong"]).expect(2);
    assert!(!said.contains("sk_wrong"), "{said}");
}

/// A lock is not in git, so a new clone has none.
#[test]
fn what_a_pull_left_open_is_not_written_over() {
    let desk = Desk::applied();
    let path = desk.path_of_only("/assistants");
    fs::remove_file(desk.folder().join("sidetone.lock")).expect("it is there");
    desk.client().expect(200, "PATCH", &path, Some(&json!({"first_message": "Theirs."})));
    desk.run(&["pull", "folder"]).expect(1);
    desk.client().expect(200, "PATCH", &path, Some(&json!({"first_message": "Theirs again."})));
    desk.run(&["apply", "folder"]).expect(1);
    assert_eq!(desk.only("/assistants")["first_message"], "Theirs again.");
    desk.run(&["apply", "folder", "--force"]).expect(0);
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn a_new_file_takes_over_nothing_of_others() {
    let desk = Desk::applied();
    let theirs = json!({"name": "Night desk", "instructions": "Theirs."});
    let made = desk.client().expect(201, "POST", "/assistants", Some(&theirs));
    desk.write("assistants/night-desk.toml", "name = \"Night desk\"\ninstructions = \"Ours.\"\n");
    desk.run(&["apply", "folder"]).expect(1);
    let path = format!("/assistants/{}", made["id"].as_str().expect("an id"));
    assert_eq!(desk.client().expect(200, "GET", &path, None)["instructions"], "Theirs.");
}

#[test]
fn what_was_made_again_is_found_again() {
    let desk = Desk::applied();
    let extra = json!({"name": "Extra", "system_prompt": "Be brief."});
    desk.write("personas/extra.toml", "name = \"Extra\"\nsystem_prompt = \"Be brief.\"\n");
    desk.run(&["apply", "folder"]).expect(0);
    let all = |desk: &Desk| desk.client().expect(200, "GET", "/simulations/personas", None);
    let extras = |desk: &Desk| -> Vec<String> {
        let all = all(desk);
        let named = all.as_array().expect("a list").iter().filter(|one| one["name"] == "Extra");
        named.map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
    };
    let path = format!("/simulations/personas/{}", extras(&desk)[0]);
    desk.client().expect(204, "DELETE", &path, None);
    desk.client().expect(201, "POST", "/simulations/personas", Some(&extra));
    desk.run(&["apply", "folder"]).expect(0);
    assert_eq!(extras(&desk).len(), 1);
}

/// It died after it had made the first.
#[test]
fn twins_are_made_to_the_end() {
    let desk = Desk::applied();
    let first = json!({"name": "Twin", "system_prompt": "You are early."});
    desk.write("personas/twin.toml", "name = \"Twin\"\nsystem_prompt = \"You are early.\"\n");
    desk.write("personas/twin-2.toml", "name = \"Twin\"\nsystem_prompt = \"You are late.\"\n");
    desk.client().expect(201, "POST", "/simulations/personas", Some(&first));
    desk.run(&["apply", "folder"]).expect(0);
    let all = desk.client().expect(200, "GET", "/simulations/personas", None);
    let twins = all.as_array().expect("a list").iter().filter(|one| one["name"] == "Twin");
    assert_eq!(twins.count(), 2, "{all}");
}

#[test]
fn a_plan_says_which_workspace_it_is_for() {
    let (desk, other) = (Desk::applied(), Desk::new());
    let workspace = |desk: &Desk| desk.client().expect(200, "GET", "/workspace", None);
    let url = format!("http://{}", other.server().address());
    let heading = format!("Workspace {} at {url}\n", workspace(&other)["name"].as_str().expect("a name"));
    let id = |desk: &Desk| workspace(desk)["id"].as_str().expect("an id").to_owned();
    let warning = format!(
        "This folder was used with another workspace before: {}; this is {}\n",
        id(&desk),
        id(&other)
    );
    for (command, code) in [("diff", 1), ("apply", 0)] {
        let said = desk.run(&[command, "folder", "--url", &url]).expect(code);
        assert!(said.starts_with(&format!("{heading}{warning}")), "{said}");
    }
    // Now it is known, as the first one is.
    for address in [url, format!("http://{}", desk.server().address())] {
        let said = desk.run(&["diff", "folder", "--url", &format!("{address}/")]).expect(0);
        assert!(said.starts_with("Workspace ") && said.contains(&format!(" at {address}\n")), "{said}");
        assert!(!said.contains("another workspace"), "{said}");
    }
}

#[test]
fn a_url_that_is_empty_or_has_a_password_is_refused() {
    let desk = Desk::new();
    for command in ["pull", "diff", "apply"] {
        let said = desk.run(&[command, "folder", "--url", " "]).expect(2);
        assert!(said.contains("sidetone: --url is empty: give a URL such as http://"), "{said}");
        for url in ["http://user:hunter2@127.0.0.1:1", "user:hunter2@127.0.0.1"] {
            let said = desk.run(&[command, "folder", "--url", url]).expect(2);
            assert!(said.contains("sidetone: --url must not have a user name or password in it: "), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
    let mut command = desk.command(&["diff", "folder"]);
    let output = command.env("SIDETONE_URL", "http://user:hunter2@127.0.0.1:1").output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("SIDETONE_URL must not have") && !said.contains("hunter2"), "{said}");
}

/// Otherwise the next one would take what this one did for somebody else's.
#[test]
fn nothing_is_sent_where_the_lock_cannot_be_written() {
    let desk = Desk::new();
    let new = desk.folder().join("sidetone.lock.new");
    fs::create_dir(&new).expect("it is created");
    let said = desk.run(&["apply", "folder"]).expect(2);
    assert!(said.contains("sidetone.lock.new: ") && said.contains("nothing was changed"), "{said}");
    assert_eq!(desk.client().expect(200, "GET", "/tools", None), json!([]));
    fs::remove_dir(&new).expect("it is there");
    desk.run(&["apply", "folder"]).expect(0);
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn each_mistake_is_one_problem() {
    let desk = Desk::new();
    desk.write(ASSISTANT, "name = \n");
    let said = desk.run(&["diff", "folder"]).expect(2);
    assert!(said.contains("1 problem in folder:") && said.contains("TOML parse error"), "{said}");
    fs::remove_file(desk.folder().join(ASSISTANT)).expect("it is there");
    let said = desk.run(&["diff", "folder"]).expect(2);
    assert!(
        said.contains("simulations/saturday.toml: assistant: there is no assistants/front-desk.toml"),
        "{said}"
    );

    let desk = Desk::new();
    fs::rename(desk.folder().join("personas"), desk.other("elsewhere")).expect("it is there");
    desk.write("personas", "a list");
    let said = desk.run(&["diff", "folder"]).expect(2);
    assert!(said.contains("1 problem in folder:"), "{said}");
    assert!(said.contains("personas is a file, where a folder is needed"), "{said}");
}

#[test]
fn a_text_in_the_place_of_a_list_or_a_table_is_told_as_that() {
    let desk = Desk::new();
    desk.edit(
        ASSISTANT,
        "knowledge = [\"opening-hours\"]",
        "knowledge = \"opening-hours\"\nmetadata = \"desk\"",
    );
    desk.write("personas/pasted.toml", "name = \"A\"\nsystem_prompt = \"B\"\nmetadata = '{\"a\"'\n");
    let said = desk.run(&["diff", "folder"]).expect(2);
    for told in [
        "front-desk.toml: knowledge has to be a list of names of files in knowledge/\n",
        "front-desk.toml: metadata has to be a table: put what is in it below a line [metadata]\n",
        "pasted.toml: metadata is a text, so it has to be JSON, which it is not: ",
    ] {
        assert!(said.contains(told), "{said}");
    }
}

#[test]
fn a_name_that_the_service_takes_once_is_once_in_the_folder() {
    let desk = Desk::applied();
    for (kind, file) in [("tools", "book_appointment"), ("knowledge", "opening-hours")] {
        let (text, copy) = (desk.text(&format!("{kind}/{file}.toml")), format!("{kind}/zebra.toml"));
        desk.write(&copy, &text);
        let said = desk.run(&["diff", "folder"]).expect(2);
        let told = format!("{kind}/zebra.toml: name: {kind}/{file}.toml has the same; give each ");
        assert!(said.contains(&told), "{said}");
        fs::remove_file(desk.folder().join(copy)).expect("it is there");
        // As the service would.
        let name = &desk.only(&format!("/{kind}"))["name"];
        let body = match kind {
            "tools" => json!({"name": name, "url": "https://dental.example.com/b"}),
            _ => json!({"name": name, "content": "b"}),
        };
        desk.client().expect(409, "POST", &format!("/{kind}"), Some(&body));
    }
    desk.run(&["diff", "folder"]).expect(0);
}

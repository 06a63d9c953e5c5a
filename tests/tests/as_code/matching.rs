//! Which file is which resource, when files or resources were renamed.
use std::fs;

use serde_json::{Value, json};

use crate::support::{Desk, files};

const ASSISTANT: &str = "assistants/front-desk.toml";
const SIMULATIONS: [&str; 2] = ["simulations/saturday.toml", "simulations/booking.toml"];

fn forget(desk: &Desk) {
    fs::remove_file(desk.folder().join("sidetone.lock")).expect("it is there");
}

fn rename(desk: &Desk, from: &str, to: &str) {
    fs::rename(desk.folder().join(from), desk.folder().join(to)).expect("it is there");
}

/// Gives the assistant's file another name, and its place to a new one.
fn displace_the_assistant(desk: &Desk) {
    rename(desk, ASSISTANT, "assistants/old-front.toml");
    for file in SIMULATIONS {
        desk.edit(file, "\"front-desk\"", "\"old-front\"");
    }
    desk.write(ASSISTANT, "name = \"New desk\"\ninstructions = \"Be new.\"\nmodel = \"builtin/rules\"\n");
}

/// The path of the resource of this name.
fn path_of(desk: &Desk, list: &str, name: &str) -> String {
    let all = desk.client().expect(200, "GET", list, None);
    let mut rows = all.as_array().expect("a list").iter();
    let row = rows.find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name} in {all}"));
    format!("{list}/{}", row["id"].as_str().expect("an id"))
}

fn read(desk: &Desk, path: &str) -> Value {
    desk.client().expect(200, "GET", path, None)
}

fn change(desk: &Desk, path: &str, fields: &Value) {
    desk.client().expect(200, "PATCH", path, Some(fields));
}

#[test]
fn a_name_that_looks_like_the_default_is_found_without_the_lock() {
    let desk = Desk::new();
    let stated = "name = \"Polite caller × Saturday\"\nassistant = ";
    desk.edit("simulations/saturday.toml", "assistant = ", stated);
    desk.run(&["apply", "folder"]).expect(0);
    let before = files(&desk.folder());
    forget(&desk);
    let done = desk.run(&["apply", "folder"]).expect(0);
    assert!(done.contains("0 created, 0 changed"), "{done}");
    desk.run(&["pull", "folder"]).expect(0);
    assert_eq!(files(&desk.folder()), before, "what is stated stays");
    // What is not stated any more is as it was.
    desk.edit("simulations/saturday.toml", stated, "assistant = ");
    let done = desk.run(&["apply", "folder"]).expect(0);
    assert!(done.contains("0 created, 0 changed"), "{done}");

    // One that begins in the same way is a name of its own.
    let path = path_of(&desk, "/simulations", "Polite caller × Saturday");
    change(&desk, &path, &json!({"name": "Polite caller × by hand"}));
    desk.run(&["pull", "pulled"]).expect(0);
    let pulled = files(&desk.other("pulled"));
    assert!(pulled.values().any(|text| text.contains("name = \"Polite caller × by hand\"")), "{pulled:?}");
    desk.run(&["pull", "folder"]).expect(0);
    assert!(desk.text("simulations/saturday.toml").contains("× by hand"));
}

#[test]
fn a_simulation_without_a_name_is_found_though_all_that_it_joins_was_renamed() {
    let desk = Desk::applied();
    for (list, name, new) in [
        ("/simulations/personas", "Polite caller", "Calm caller"),
        ("/simulations/scenarios", "Saturday", "Weekend"),
    ] {
        change(&desk, &path_of(&desk, list, name), &json!({"name": new}));
    }
    desk.run(&["pull", "folder"]).expect(0);
    assert!(!desk.text("simulations/saturday.toml").contains("name"));
    desk.run(&["diff", "folder"]).expect(0);
    forget(&desk);
    let done = desk.run(&["apply", "folder"]).expect(0);
    assert!(done.contains("0 created, 0 changed"), "{done}");
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn a_file_that_is_renamed_with_the_name_in_it_is_the_same_resource() {
    let desk = Desk::applied();
    let tool = desk.only("/tools");
    rename(&desk, "tools/book_appointment.toml", "tools/book_visit.toml");
    desk.edit("tools/book_visit.toml", "\"book_appointment\"", "\"book_visit\"");
    desk.edit(ASSISTANT, "tools = [\"book_appointment\"]", "tools = [\"book_visit\"]");
    rename(&desk, "knowledge/opening-hours.toml", "knowledge/hours.toml");
    desk.edit("knowledge/hours.toml", "\"Opening hours\"", "\"Hours\"");
    desk.edit(ASSISTANT, "\"opening-hours\"", "\"hours\"");
    let done = desk.run(&["apply", "folder", "--prune"]).expect(0);
    assert!(done.contains("0 created, 2 changed, 0 deleted"), "{done}");
    let now = desk.only("/tools");
    assert_eq!((&now["id"], &now["name"]), (&tool["id"], &json!("book_visit")));
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn of_two_that_it_may_be_it_is_neither() {
    let desk = Desk::applied();
    for name in ["one", "two"] {
        let text = format!("name = \"{name}\"\nsystem_prompt = \"You are brief.\"\n");
        desk.write(&format!("personas/{name}.toml"), &text);
    }
    desk.run(&["apply", "folder"]).expect(0);
    fs::remove_file(desk.folder().join("personas/two.toml")).expect("it is there");
    rename(&desk, "personas/one.toml", "personas/three.toml");
    desk.edit("personas/three.toml", "\"one\"", "\"three\"");
    let done = desk.run(&["apply", "folder", "--prune"]).expect(0);
    assert!(done.contains("1 created, 0 changed, 2 deleted"), "{done}");
}

#[test]
fn a_file_in_the_place_of_another_one_is_not_that() {
    let desk = Desk::applied();
    let before = desk.only("/assistants");
    displace_the_assistant(&desk);
    let done = desk.run(&["apply", "folder", "--prune"]).expect(0);
    assert!(done.contains("1 created, 0 changed, 0 deleted"), "{done}");
    let path = format!("/assistants/{}", before["id"].as_str().expect("an id"));
    assert_eq!(read(&desk, &path), before);
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn what_was_seen_of_a_file_that_gave_its_place_away_stays_known() {
    let desk = Desk::applied();
    let before = desk.only("/assistants");
    displace_the_assistant(&desk);
    let path = format!("/assistants/{}", before["id"].as_str().expect("an id"));
    change(&desk, &path, &json!({"name": "Reception"}));
    let done = desk.run(&["apply", "folder"]).expect(1);
    assert!(done.contains("1 created, 0 changed") && done.contains("1 changed by somebody else"), "{done}");
    desk.run(&["pull", "folder"]).expect(0);
    assert!(desk.text("assistants/old-front.toml").contains("name = \"Reception\""));
    let done = desk.run(&["apply", "folder", "--prune"]).expect(0);
    assert!(done.contains("0 created, 0 changed, 0 deleted"), "{done}");
    assert_eq!(read(&desk, "/assistants").as_array().map(Vec::len), Some(2));
}

#[test]
fn a_simulation_that_somebody_made_is_not_taken_for_a_new_file() {
    let desk = Desk::applied();
    let all = read(&desk, "/simulations");
    let is_unnamed = |one: &&Value| one["name"].as_str().is_some_and(|name| name.contains('×'));
    let one = all.as_array().and_then(|all| all.iter().find(is_unnamed)).expect("a simulation");
    let made = json!({
        "name": "Rush × Monday", "assistant_id": one["assistant_id"], "persona_id": one["persona_id"],
        "scenario_id": one["scenario_id"],
    });
    desk.client().expect(201, "POST", "/simulations", Some(&made));
    desk.write("simulations/another.toml", &desk.text(SIMULATIONS[0]));
    let done = desk.run(&["apply", "folder"]).expect(0);
    assert!(done.contains("1 created, 0 changed"), "{done}");
}

#[test]
fn two_files_may_change_their_names_with_one_another() {
    let desk = Desk::applied();
    let text = |name: &str| format!("name = \"{name}\"\nsystem_prompt = \"You are {name}.\"\n");
    desk.write("personas/one.toml", &text("Ada"));
    desk.write("personas/two.toml", &text("Bob"));
    desk.run(&["apply", "folder"]).expect(0);
    let personas = read(&desk, "/simulations/personas");
    desk.write("personas/one.toml", &text("Bob"));
    desk.write("personas/two.toml", &text("Ada"));
    let ada = path_of(&desk, "/simulations/personas", "Ada");
    change(&desk, &ada, &json!({"system_prompt": "You are new."}));
    desk.run(&["pull", "folder"]).expect(0);
    assert!(desk.text("personas/two.toml").contains("You are new."));
    assert_eq!(desk.text("personas/one.toml"), text("Bob"));
    desk.run(&["diff", "folder"]).expect(0);
    let after = read(&desk, "/simulations/personas");
    assert_eq!(after.as_array().map(Vec::len), personas.as_array().map(Vec::len));
}

#[test]
fn a_renamed_file_in_a_list_that_is_edited_is_nobody_elses_change() {
    let desk = Desk::applied();
    rename(&desk, "tools/book_appointment.toml", "tools/book.toml");
    let cancel =
        "name = \"cancel\"\nurl = \"https://dental.example.com/cancel\"\ndescription = \"Cancels a visit\"\n";
    desk.write("tools/cancel.toml", cancel);
    desk.edit(ASSISTANT, "tools = [\"book_appointment\"]", "tools = [\"book\", \"cancel\"]");
    let done = desk.run(&["apply", "folder"]).expect(0);
    assert!(done.contains("1 created, 1 changed"), "{done}");
    desk.run(&["diff", "folder"]).expect(0);

    // Nor does a new name of a file change what named it.
    rename(&desk, "tools/book.toml", "tools/book-again.toml");
    for file in [SIMULATIONS[0], SIMULATIONS[1], ASSISTANT] {
        fs::remove_file(desk.folder().join(file)).expect("it is there");
    }
    let done = desk.run(&["apply", "folder", "--prune"]).expect(0);
    assert!(done.contains("0 changed, 3 deleted"), "{done}");
}

/// The name of a file that is another one now means that one.
#[test]
fn a_list_that_names_another_file_of_the_same_name_is_changed() {
    let desk = Desk::applied();
    rename(&desk, "tools/book_appointment.toml", "tools/book.toml");
    let new =
        "name = \"cancel\"\nurl = \"https://dental.example.com/cancel\"\ndescription = \"Cancels a visit\"\n";
    desk.write("tools/book_appointment.toml", new);
    let done = desk.run(&["apply", "folder"]).expect(0);
    assert!(done.contains("1 created, 1 changed"), "{done}");
    let cancel = path_of(&desk, "/tools", "cancel");
    let id = cancel.rsplit('/').next().expect("an id");
    assert_eq!(desk.only("/assistants")["tool_ids"], json!([id]));
}

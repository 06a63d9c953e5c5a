//! `pull`.
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::json;

use crate::support::{Desk, files};

/// Some other web server, with one answer to everything. Returns its URL.
fn web(status: u16, kind: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let answer = move |stream: TcpStream| {
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            // A command that has failed leaves connections on which it asks nothing.
            if stream.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let head = format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}", body.len());
        let _ = write!(stream.get_mut(), "{head}\r\nconnection: close\r\n\r\n{body}");
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(stream));
        }
    });
    url
}

#[test]
fn another_web_server_is_told_with_what_to_do() {
    let desk = Desk::alone();
    let answers = [
        (404, "text/html", "<html>"),
        (200, "text/html", "<html>"),
        (404, "application/json", "{\"detail\": \"Not Found\"}"),
        (200, "application/json", "{\"name\": \"Acme\"}"),
    ];
    for (status, kind, body) in answers {
        let url = web(status, kind, body);
        for command in ["pull", "diff", "apply"] {
            let said = desk.run(&[command, "folder", "--url", &url]).expect(2);
            let told = format!("{url}: does not answer like a Sidetone service (status {status}, {kind})");
            assert!(said.contains(&format!("{told}; check --url or SIDETONE_URL\n")), "{said}");
        }
    }
}

#[test]
fn a_file_is_no_folder() {
    let desk = Desk::alone();
    fs::write(desk.other("key"), "a key").expect("it is written");
    for command in ["pull", "diff", "apply", "test"] {
        let said = desk.run(&[command, "key"]).expect(2);
        assert!(said.contains("sidetone: key is a file; name a folder\n"), "{said}");
    }
}

#[test]
fn a_pull_after_an_apply_changes_nothing() {
    let desk = Desk::new();
    let before = files(&desk.folder());
    desk.run(&["apply", "folder"]).expect(0);
    assert_eq!(files(&desk.folder()), before);
    assert!(desk.run(&["pull", "folder"]).expect(0).contains("0 written"));
    assert_eq!(files(&desk.folder()), before);
    // Nor where the lock is not known.
    fs::remove_file(desk.folder().join("sidetone.lock")).expect("it is there");
    desk.run(&["pull", "folder"]).expect(0);
    assert_eq!(files(&desk.folder()), before);
}

#[test]
fn a_workspace_moves_to_another_one_as_a_folder() {
    let desk = Desk::applied();
    desk.run(&["pull", "pulled"]).expect(0);
    let pulled = files(&desk.other("pulled"));
    assert!(pulled.contains_key("simulations/front-desk-polite-caller-saturday.toml"), "{:?}", pulled.keys());
    assert!(
        pulled["assistants/front-desk.toml"]
            .contains("instructions = \"\"\"\nYou answer for Lakeside Dental.\n")
    );
    assert!(desk.run(&["pull", "pulled"]).expect(0).contains("0 written"));
    desk.run(&["diff", "pulled"]).expect(0);
    desk.run(&["test", "pulled"]).expect(0);

    let other = Desk::new();
    fs::rename(desk.other("pulled"), other.other("moved")).expect("it moves");
    other.run(&["apply", "moved"]).expect(0);
    other.run(&["pull", "moved"]).expect(0);
    assert_eq!(files(&other.other("moved")), pulled);
    let again = fs::read_to_string(other.other("moved").join("sidetone.lock")).expect("a lock");
    assert_eq!(again.lines().count(), 16, "both workspaces are in it");
}

#[test]
fn values_that_toml_does_not_have_come_and_go() {
    let desk = Desk::new();
    let mocks = json!({"book": [{"result": null}, {"result": {"a": [1, 2.5, "x\ny", null]}}]});
    let scenario =
        json!({"name": "Ärger & mehr: \"ja\"", "instructions": "a\\\n\"\"\"\nb\t\"", "tool_mocks": mocks});
    let id = desk.client().expect(201, "POST", "/simulations/scenarios", Some(&scenario))["id"].clone();
    for number in 0..2 {
        let assistant = json!({"name": "Twin", "instructions": format!("Number {number}"), "voicemail": {"action": "hang_up"}});
        desk.client().expect(201, "POST", "/assistants", Some(&assistant));
    }
    desk.run(&["pull", "pulled"]).expect(0);
    let pulled = files(&desk.other("pulled"));
    let names: Vec<&String> = pulled.keys().collect();
    assert_eq!(names, ["assistants/twin-2.toml", "assistants/twin.toml", "scenarios/ärger-mehr-ja.toml"]);
    desk.run(&["diff", "pulled"]).expect(0);

    let path = format!("/simulations/scenarios/{}", id.as_str().expect("an id"));
    let before = desk.client().expect(200, "GET", &path, None);
    let other = Desk::new();
    fs::rename(desk.other("pulled"), other.other("moved")).expect("it moves");
    other.run(&["apply", "moved"]).expect(0);
    let after = other.only("/simulations/scenarios");
    for field in ["name", "instructions", "tool_mocks"] {
        assert_eq!(after[field], before[field]);
    }
    other.run(&["pull", "moved"]).expect(0);
    assert_eq!(files(&other.other("moved")), pulled);
}

#[test]
fn a_conflict_in_one_field_keeps_no_other_from_being_taken() {
    let desk = Desk::applied();
    let path = desk.path_of_only("/assistants");
    let theirs = json!({"first_message": "Theirs.", "metadata": {"by": "them"}});
    desk.client().expect(200, "PATCH", &path, Some(&theirs));
    desk.edit("assistants/front-desk.toml", "Lakeside Dental, good morning.", "Ours.");
    let said = desk.run(&["pull", "folder"]).expect(1);
    assert!(said.contains("(changed there and here)") && !said.contains("metadata"), "{said}");
    desk.run(&["apply", "folder"]).expect(1);
    desk.run(&["apply", "folder", "--force"]).expect(0);
    let after = desk.only("/assistants");
    assert_eq!((&after["first_message"], &after["metadata"]), (&json!("Ours."), &theirs["metadata"]));
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn what_a_file_names_has_a_file_again() {
    let desk = Desk::applied();
    let deleted = ["simulations/booking.toml", "scenarios/booking.toml", "tools/book_appointment.toml"];
    for file in deleted {
        fs::remove_file(desk.folder().join(file)).expect("it is there");
    }
    desk.edit("assistants/front-desk.toml", "tools = [\"book_appointment\"]\n", "");
    desk.run(&["apply", "folder"]).expect(0);
    let said = desk.run(&["pull", "folder"]).expect(0);
    for file in deleted {
        assert!(said.contains(&format!("{file}  was deleted here")), "{said}");
        assert!(!desk.folder().join(file).exists(), "{file} stays deleted");
    }

    // Somebody else uses the scenario and the tool.
    let all = desk.client().expect(200, "GET", "/simulations", None);
    let mut rows = all.as_array().expect("a list").iter();
    let ours = rows.find(|row| row["name"] == "Somebody books").expect("it is there");
    let theirs = json!({
        "name": "Theirs",
        "assistant_id": ours["assistant_id"],
        "persona_id": ours["persona_id"],
        "scenario_id": ours["scenario_id"],
    });
    desk.client().expect(201, "POST", "/simulations", Some(&theirs));
    let tools = format!("/assistants/{}/tools", ours["assistant_id"].as_str().expect("an id"));
    let body = json!({"tool_ids": [desk.only("/tools")["id"]]});
    desk.client().expect(200, "PUT", &tools, Some(&body));
    let said = desk.run(&["pull", "folder"]).expect(0);
    assert!(desk.text("simulations/theirs.toml").contains("scenario = \"booking\""));
    assert!(desk.text("scenarios/booking.toml").contains("name = \"Booking\""));
    assert!(desk.text("assistants/front-desk.toml").contains("tools = [\"book_appointment\"]"));
    assert!(desk.text("tools/book_appointment.toml").contains("name = \"book_appointment\""));
    assert!(said.contains("simulations/booking.toml  was deleted here"), "{said}");
    assert!(!said.contains("scenarios/booking.toml  was deleted here"), "{said}");
    let said = desk.run(&["diff", "folder"]).expect(1);
    assert!(said.contains("0 to create, 0 to change"), "{said}");
}

#[test]
fn lines_may_end_as_on_windows() {
    let desk = Desk::new();
    for (file, text) in files(&desk.folder()) {
        desk.write(&file, &text.replace('\n', "\r\n"));
    }
    let before = files(&desk.folder());
    assert!(before["assistants/front-desk.toml"].contains("kind.\r\n"));
    desk.run(&["apply", "folder"]).expect(0);
    assert!(desk.run(&["pull", "folder"]).expect(0).contains("0 written"));
    assert_eq!(files(&desk.folder()), before);
    for list in ["/assistants", "/tools", "/simulations/personas"] {
        let text = desk.only(list).to_string();
        assert!(!text.contains("\\r"), "{text}");
    }
    // They stay so where a pull changes something.
    let path = desk.path_of_only("/assistants");
    desk.client().expect(200, "PATCH", &path, Some(&json!({"first_message": "Moin."})));
    desk.run(&["pull", "folder"]).expect(0);
    let file = "assistants/front-desk.toml";
    let expected = before[file].replace("Lakeside Dental, good morning.", "Moin.");
    assert_eq!(desk.text(file), expected);
}

#[test]
fn a_pasted_schema_stays_a_text() {
    let desk = Desk::new();
    let file = "tools/book_appointment.toml";
    let text = desk.text(file);
    let (rest, _) = text.split_once("[parameters]").expect("parameters");
    let schema = "{\"type\": \"object\",\n  \"properties\": {\"day\": {\"type\": \"string\"}}}";
    desk.write(file, &format!("{rest}parameters = '''\n{schema}\n''' # pasted\n"));
    desk.run(&["apply", "folder"]).expect(0);
    let theirs = json!({"type": "object", "properties": {"hour": {"type": "integer", "description": "At \\ \"full\" hours"}}});
    let path = desk.path_of_only("/tools");
    desk.client().expect(200, "PATCH", &path, Some(&json!({"parameters": theirs})));
    desk.run(&["pull", "folder"]).expect(0);
    let text = desk.text(file);
    assert!(text.starts_with(rest) && text.contains("# pasted"), "{text}");
    assert!(text.contains("  \"properties\": {\n    \"hour\": {\n      \"type\": \"integer\""), "{text}");
    desk.run(&["diff", "folder"]).expect(0);
    assert_eq!(desk.only("/tools")["parameters"], theirs);
}

#[cfg(unix)]
#[test]
fn a_file_that_is_a_link_is_not_read() {
    let desk = Desk::applied();
    let (file, other) = (desk.folder().join("assistants/front-desk.toml"), desk.other("credentials"));
    fs::write(&other, "a secret that is no TOML").expect("it is written");
    fs::remove_file(&file).expect("it is there");
    std::os::unix::fs::symlink(&other, &file).expect("a link");
    for command in ["pull", "diff", "apply", "test"] {
        let said = desk.run(&[command, "folder"]).expect(2);
        assert!(said.contains("assistants/front-desk.toml is a link; put the file itself there"), "{said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_a_link_is_not_written_to() {
    let desk = Desk::applied();
    let (folder, other) = (desk.folder().join("personas"), desk.other("elsewhere"));
    fs::rename(&folder, &other).expect("it is there");
    std::os::unix::fs::symlink(&other, &folder).expect("a link");
    let file = other.join("polite-caller.toml");
    let before = fs::read_to_string(&file).expect("the file");
    let persona = desk.path_of_only("/simulations/personas");
    desk.client().expect(200, "PATCH", &persona, Some(&json!({"system_prompt": "You are rude."})));
    let said = desk.run(&["pull", "folder", "--force", "--prune"]).expect(2);
    assert!(said.contains("personas/ is a link; put the folder itself there"), "{said}");
    assert_eq!(fs::read_to_string(&file).expect("the file"), before);
    assert_eq!(fs::read_dir(&other).expect("a folder").count(), 1);
}

#[test]
fn a_whole_number_is_the_same_as_one_with_a_point() {
    let desk = Desk::new();
    desk.edit("assistants/front-desk.toml", "[speech]\n", "[speech]\nspeed = 1\n");
    let before = files(&desk.folder());
    desk.run(&["apply", "folder"]).expect(0);
    desk.run(&["diff", "folder"]).expect(0);
    fs::remove_file(desk.folder().join("sidetone.lock")).expect("it is there");
    desk.run(&["diff", "folder"]).expect(0);
    desk.run(&["pull", "folder"]).expect(0);
    assert_eq!(files(&desk.folder()), before);
    desk.edit("assistants/front-desk.toml", "speed = 1\n", "speed = 2\n");
    let said = desk.run(&["diff", "folder"]).expect(1);
    assert!(said.contains("1 to change"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_link_is_not_written_through() {
    let desk = Desk::applied();
    let path = desk.path_of_only("/assistants");
    desk.client().expect(200, "PATCH", &path, Some(&json!({"first_message": "Moin."})));
    let other = desk.other("other.txt");
    fs::write(&other, "Mine.").expect("it is written");
    let link = desk.folder().join("assistants/front-desk.toml.new");
    std::os::unix::fs::symlink(&other, &link).expect("a link");
    desk.run(&["pull", "folder"]).expect(0);
    assert_eq!(fs::read_to_string(&other).expect("the file"), "Mine.");
    assert!(desk.text("assistants/front-desk.toml").contains("Moin."));
    assert!(fs::symlink_metadata(&link).is_err(), "nothing is left of it");
}

#[cfg(unix)]
#[test]
fn a_lock_file_writes_to_nothing_else() {
    let desk = Desk::new();
    desk.run(&["apply", "folder"]).expect(0);
    let (lock, other) = (desk.folder().join("sidetone.lock"), desk.other("other.txt"));
    let text = fs::read_to_string(&lock).expect("a lock");
    fs::write(&other, "a-token").expect("it is written");
    fs::remove_file(&lock).expect("it is there");
    std::os::unix::fs::symlink(&other, &lock).expect("a link");
    let said = desk.run(&["apply", "folder"]).expect(2);
    assert!(said.contains("is not a regular file"), "{said}");
    assert_eq!(fs::read_to_string(&other).expect("the file"), "a-token");

    // Nor does a name in it leave the folder.
    fs::remove_file(&lock).expect("it is there");
    let escaped = text.replace("\"file\":\"polite-caller\"", "\"file\":\"../../escaped\"");
    assert_ne!(escaped, text);
    fs::write(&lock, escaped).expect("it is written");
    fs::remove_file(desk.folder().join("personas/polite-caller.toml")).expect("it is there");
    desk.run(&["pull", "folder", "--force"]).expect(2);
    assert!(!desk.other("escaped.toml").exists());
}

#[cfg(unix)]
#[test]
fn a_file_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = Desk::new();
    desk.run(&["apply", "folder"]).expect(0);
    let path = format!("/assistants/{}", desk.only("/assistants")["id"].as_str().expect("an id"));
    desk.client().expect(200, "PATCH", &path, Some(&json!({"first_message": "Moin."})));
    let file = desk.folder().join("assistants/front-desk.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("it is ours");
    desk.run(&["pull", "folder"]).expect(0);
    assert!(desk.text("assistants/front-desk.toml").contains("Moin."));
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
}

#[test]
fn files_go_only_with_prune() {
    let desk = Desk::applied();
    let path = desk.path_of_only("/assistants");
    desk.client().expect(204, "DELETE", &path, None);
    let said = desk.run(&["pull", "folder"]).expect(0);
    assert!(
        said.contains("assistants/front-desk.toml  was deleted there; --prune deletes the file"),
        "{said}"
    );
    assert_eq!(files(&desk.folder()).len(), 8);
    desk.run(&["pull", "folder", "--prune"]).expect(0);
    assert_eq!(files(&desk.folder()).len(), 5, "its simulations went with it");
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn a_file_that_another_one_names_is_not_deleted() {
    let desk = Desk::applied();
    desk.client().expect(204, "DELETE", &desk.path_of_only("/simulations/personas"), None);
    let simulation =
        files(&desk.folder()).into_keys().find(|name| name.starts_with("simulations/")).expect("one");
    let text = desk.text(&simulation);
    desk.write(&simulation, &text.replace("name = \"", "name = \"Still "));
    let said = desk.run(&["pull", "folder", "--prune"]).expect(1);
    assert!(said.contains("another file names it"), "{said}");
    desk.run(&["test", "folder"]).expect(0);
}

#[test]
fn what_a_file_states_stays_stated() {
    const STATED: &str = "end_of_turn_max_ms = 3000 # agreed";
    let desk = Desk::applied();
    let path = "assistants/front-desk.toml";
    let text = desk.text(path);
    assert!(text.contains("[speech]\n"), "{text}");
    desk.write(path, &text.replacen("[speech]\n", &format!("[speech]\n{STATED}\n"), 1));
    desk.run(&["apply", "folder"]).expect(0);
    let speed = json!({"speech": {"speed": 1.5}});
    desk.client().expect(200, "PATCH", &desk.path_of_only("/assistants"), Some(&speed));
    desk.run(&["pull", "folder"]).expect(0);
    let text = desk.text(path);
    assert!(text.contains(STATED) && text.contains("speed = 1.5"), "{text}");
}

#[test]
fn a_file_of_what_was_deleted_there_and_changed_here_is_a_conflict() {
    let desk = Desk::applied();
    desk.write("personas/extra.toml", "name = \"Extra\"\nsystem_prompt = \"Be brief.\"\n");
    desk.run(&["apply", "folder"]).expect(0);
    let all = desk.client().expect(200, "GET", "/simulations/personas", None);
    let extra =
        all.as_array().expect("a list").iter().find(|one| one["name"] == "Extra").expect("it is there");
    let path = format!("/simulations/personas/{}", extra["id"].as_str().expect("an id"));
    desk.client().expect(204, "DELETE", &path, None);
    desk.edit("personas/extra.toml", "Be brief.", "Be long.");
    let told = "personas/extra.toml  was deleted there and changed here; --prune --force deletes it";
    let said = desk.run(&["pull", "folder"]).expect(1);
    assert!(said.contains(told) && said.contains("1 in conflict"), "{said}");
    desk.run(&["pull", "folder", "--prune"]).expect(1);
    assert!(desk.text("personas/extra.toml").contains("Be long."));
    desk.run(&["pull", "folder", "--prune", "--force"]).expect(0);
    assert!(!desk.folder().join("personas/extra.toml").exists());
}

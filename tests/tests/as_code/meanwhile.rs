//! What somebody else does between the plan and the write: a proxy lets it happen at a chosen request.
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::support::Desk;

const PERSONA: &str = "personas/polite-caller.toml";

type Action = Box<dyn FnOnce() + Send>;

/// Forwards to `server`; before the first request that begins with `start` is, `action` is done.
fn proxy(server: SocketAddr, start: &'static str, action: Action) -> String {
    proxy_that(server, start, action, true)
}

/// The same, and it says of that request that the server is busy, instead of forwarding it.
fn busy_proxy(server: SocketAddr, start: &'static str, action: Action) -> String {
    proxy_that(server, start, action, false)
}

fn proxy_that(server: SocketAddr, start: &'static str, action: Action, forwards: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let action = Arc::new(Mutex::new(Some(action)));
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(server).expect("the server listens");
            let (mut from_server, mut to_client) =
                (server.try_clone().expect("a socket"), client.try_clone().expect("a socket"));
            std::thread::spawn(move || drop(std::io::copy(&mut from_server, &mut to_client)));
            let action = action.clone();
            std::thread::spawn(move || forward(client, server, start, &action, forwards));
        }
    });
    format!("http://{address}")
}

fn forward(
    mut client: TcpStream,
    mut server: TcpStream,
    start: &str,
    action: &Mutex<Option<Action>>,
    forwards: bool,
) {
    let mut bytes = [0; 16_384];
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        if bytes[..count].starts_with(start.as_bytes())
            && let Some(action) = action.lock().expect("no panic").take()
        {
            action();
            if !forwards {
                let head = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 0\r\ncontent-length: 0\r\n";
                let _ = client.write_all(format!("{head}connection: close\r\n\r\n").as_bytes());
                let _ = (client.shutdown(Shutdown::Write), server.shutdown(Shutdown::Both));
                return;
            }
        }
        if server.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

/// Somebody else changes the resource when the request is under way: nothing of it is written.
fn is_noticed(
    list: &'static str,
    start: &'static str,
    file: &str,
    old: &str,
    new: &str,
    theirs: serde_json::Value,
) {
    let desk = Desk::applied();
    desk.edit(file, old, new);
    let path = format!("{list}/{}", desk.only(list)["id"].as_str().expect("an id"));
    let (mut client, change) = (desk.client(), theirs.clone());
    let url = proxy(
        desk.server().address(),
        start,
        Box::new(move || drop(client.expect(200, "PATCH", &path, Some(&change)))),
    );
    let said = desk.run(&["apply", "folder", "--url", &url]).expect(1);
    assert!(said.contains(&format!("{file} was changed by somebody else meanwhile")), "{said}");
    let now = desk.only(list);
    for (field, value) in theirs.as_object().expect("fields") {
        assert_eq!(now[field], *value, "theirs stays");
        assert!(said.contains(&format!("{field}: {value} → ")), "{said}");
    }
    assert!(!now.to_string().contains(new), "nothing of ours was written: {now}");
}

#[test]
fn an_assistant_that_changes_between_read_and_write_is_left_alone() {
    let theirs = json!({"first_message": "Moin."});
    is_noticed(
        "/assistants",
        "PATCH ",
        "assistants/front-desk.toml",
        "Be brief and kind.",
        "Be new.",
        theirs,
    );
}

#[test]
fn a_persona_that_changes_after_the_plan_is_left_alone() {
    let theirs = json!({"name": "Their caller"});
    let start = "GET /simulations/personas/";
    is_noticed("/simulations/personas", start, PERSONA, "polite.", "new.", theirs);
}

#[test]
fn what_is_made_after_the_plan_does_not_go_with_what_it_needs() {
    let desk = Desk::new();
    desk.run(&["apply", "folder"]).expect(0);
    desk.edit("assistants/front-desk.toml", "Be brief and kind.", "Be new.");
    desk.remove(&["simulations/booking.toml", "simulations/saturday.toml", PERSONA]);
    let mut client = desk.client();
    let theirs = desk.their_simulation("Theirs");
    let make = move || drop(client.expect(201, "POST", "/simulations", Some(&theirs)));
    let url = proxy(desk.server().address(), "PATCH ", Box::new(make));
    let said = desk.run(&["apply", "folder", "--prune", "--url", &url]).expect(1);
    assert!(
        said.contains(&format!("{PERSONA} is used by simulation \"Theirs\" meanwhile; it was not deleted")),
        "{said}"
    );
    assert!(said.contains("1 changed, 2 deleted"), "{said}");
    assert_eq!(desk.only("/simulations")["name"], "Theirs");
    desk.only("/simulations/personas");
}

#[test]
fn a_field_that_changes_beside_ours_is_somebody_elses_change() {
    let desk = Desk::applied();
    desk.edit(PERSONA, "polite.", "new.");
    let list = "/simulations/personas";
    let path = format!("{list}/{}", desk.only(list)["id"].as_str().expect("an id"));
    let mut client = desk.client();
    let change = json!({"metadata": {"by": "them"}});
    let url = proxy(
        desk.server().address(),
        "PATCH ",
        Box::new(move || drop(client.expect(200, "PATCH", &path, Some(&change)))),
    );
    desk.run(&["apply", "folder", "--url", &url]).expect(0);
    let said = desk.run(&["apply", "folder"]).expect(1);
    assert!(said.contains("metadata: ") && said.contains("(changed there, not here)"), "{said}");
    let now = desk.only(list);
    assert_eq!(now["metadata"], json!({"by": "them"}), "theirs stays");
    assert!(
        now["system_prompt"].as_str().is_some_and(|text| text.contains("new.")),
        "ours was written: {now}"
    );
    desk.run(&["pull", "folder"]).expect(0);
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn a_file_that_is_edited_during_a_pull_is_left_alone() {
    let desk = Desk::applied();
    let list = "/simulations/personas";
    let path = format!("{list}/{}", desk.only(list)["id"].as_str().expect("an id"));
    desk.client().expect(200, "PATCH", &path, Some(&json!({"name": "Their caller"})));
    let edited = desk.text(PERSONA).replace("polite.", "new.");
    let (file, text) = (desk.folder().join(PERSONA), edited.clone());
    let url = proxy(
        desk.server().address(),
        "GET ",
        Box::new(move || fs::write(file, text).expect("it is written")),
    );
    let said = desk.run(&["pull", "folder", "--url", &url]).expect(1);
    assert!(said.contains(&format!("{PERSONA}  was edited meanwhile")), "{said}");
    assert_eq!(desk.text(PERSONA), edited);
    desk.run(&["pull", "folder"]).expect(0);
    let text = desk.text(PERSONA);
    assert!(text.contains("Their caller") && text.contains("new."), "{text}");
}

#[test]
fn two_commands_in_a_folder_wait_for_one_another() {
    let desk = Desk::applied();
    desk.edit(PERSONA, "polite.", "new.");
    let (mut pull, mut diff) = (desk.command(&["pull", "folder"]), desk.command(&["diff", "folder"]));
    let said = Arc::new(Mutex::new(Vec::new()));
    let told = said.clone();
    let run = move || {
        for command in [&mut pull, &mut diff] {
            told.lock().expect("no panic").push(command.output().expect("it runs"));
        }
    };
    let url = proxy(desk.server().address(), "PATCH ", Box::new(run));
    desk.run(&["apply", "folder", "--url", &url]).expect(0);
    let said = said.lock().expect("no panic");
    let codes: Vec<Option<i32>> = said.iter().map(|output| output.status.code()).collect();
    assert_eq!(codes, [Some(2), Some(1)], "a diff writes nothing");
    let refused = String::from_utf8_lossy(&said[0].stderr).into_owned();
    assert!(refused.contains("another command works in folder; wait for it"), "{refused}");
    desk.run(&["pull", "folder"]).expect(0);
}

/// As if a first try had been written and its answer lost: the next one has an old revision.
#[test]
fn a_list_whose_answer_was_lost_is_ours() {
    let desk = Desk::new();
    let mut client = desk.client();
    let write = move || {
        let mut id_of = |list: &str| {
            let all = client.expect(200, "GET", list, None);
            all[0]["id"].as_str().expect("an id").to_owned()
        };
        let (assistant, tool) = (id_of("/assistants"), id_of("/tools"));
        let path = format!("/assistants/{assistant}/tools");
        client.expect(200, "PUT", &path, Some(&json!({"tool_ids": [tool]})));
    };
    let url = proxy(desk.server().address(), "PUT /assistants/", Box::new(write));
    let said = desk.run(&["apply", "folder", "--url", &url]).expect(0);
    assert!(said.contains("8 created, 0 changed"), "{said}");
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn an_assistant_that_changes_before_it_has_its_tools_is_there_for_its_simulations() {
    let desk = Desk::new();
    let mut client = desk.client();
    let write = move || {
        let all = client.expect(200, "GET", "/assistants", None);
        let path = format!("/assistants/{}", all[0]["id"].as_str().expect("an id"));
        client.expect(200, "PATCH", &path, Some(&json!({"first_message": "Moin."})));
    };
    let url = proxy(desk.server().address(), "PUT /assistants/", Box::new(write));
    let said = desk.run(&["apply", "folder", "--url", &url]).expect(1);
    assert!(said.contains("7 created") && said.contains("1 changed by somebody else, 0 failed"), "{said}");
    desk.run(&["apply", "folder"]).expect(1);
    assert_eq!(desk.only("/assistants")["first_message"], "Moin.");
}

#[test]
fn a_persona_that_changes_between_two_tries_is_left_alone() {
    let desk = Desk::applied();
    desk.edit(PERSONA, "polite.", "new.");
    let list = "/simulations/personas";
    let path = desk.path_of_only(list);
    let (mut client, theirs) = (desk.client(), json!({"system_prompt": "Theirs."}));
    let change = theirs.clone();
    let url = busy_proxy(
        desk.server().address(),
        "PATCH ",
        Box::new(move || drop(client.expect(200, "PATCH", &path, Some(&change)))),
    );
    let said = desk.run(&["apply", "folder", "--url", &url]).expect(1);
    assert!(said.contains(&format!("{PERSONA} was changed by somebody else meanwhile")), "{said}");
    assert!(
        said.contains("system_prompt: \"Theirs.\" → ") && said.contains("(changed there and here)"),
        "{said}"
    );
    assert!(said.contains(&format!("{url}: ")) && said.contains(" s for try 2 of 5"), "{said}");
    assert_eq!(desk.only(list)["system_prompt"], theirs["system_prompt"], "theirs stays");
}

#[test]
fn a_persona_whose_answer_was_lost_is_ours() {
    let desk = Desk::applied();
    desk.edit(PERSONA, "polite.", "new.");
    let list = "/simulations/personas";
    let path = desk.path_of_only(list);
    let prompt = desk.only(list)["system_prompt"].as_str().expect("a text").replace("polite.", "new.");
    let (mut client, change) = (desk.client(), json!({"system_prompt": prompt}));
    let url = busy_proxy(
        desk.server().address(),
        "PATCH ",
        Box::new(move || drop(client.expect(200, "PATCH", &path, Some(&change)))),
    );
    let said = desk.run(&["apply", "folder", "--url", &url]).expect(0);
    assert!(said.contains("1 changed, 0 deleted, 0 changed by somebody else"), "{said}");
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn what_is_not_answered_is_written_with_the_next_try() {
    let desk = Desk::applied();
    desk.edit(PERSONA, "polite.", "new.");
    let url = busy_proxy(desk.server().address(), "PATCH ", Box::new(|| ()));
    let said = desk.run(&["apply", "folder", "--url", &url]).expect(0);
    assert!(said.contains("1 changed") && said.contains("for try 2 of 5"), "{said}");
    desk.run(&["diff", "folder"]).expect(0);
}

#[test]
fn what_is_used_between_two_tries_is_not_deleted() {
    let desk = Desk::applied();
    let mut client = desk.client();
    desk.remove(&["simulations/booking.toml", "simulations/saturday.toml", PERSONA]);
    let theirs = desk.their_simulation("Theirs");
    let make = move || drop(client.expect(201, "POST", "/simulations", Some(&theirs)));
    let url = busy_proxy(desk.server().address(), "DELETE /simulations/personas/", Box::new(make));
    let said = desk.run(&["apply", "folder", "--prune", "--url", &url]).expect(1);
    assert!(said.contains(PERSONA) && said.contains("meanwhile; it was not deleted"), "{said}");
    assert!(said.contains("2 deleted, 1 changed by somebody else"), "{said}");
    assert_eq!(desk.only("/simulations")["name"], "Theirs");
    desk.only("/simulations/personas");
}

#[test]
fn what_changes_between_two_tries_is_not_deleted() {
    let desk = Desk::applied();
    desk.remove(&["simulations/booking.toml", "simulations/saturday.toml", PERSONA]);
    let path = desk.path_of_only("/simulations/personas");
    let mut client = desk.client();
    let change = move || {
        client.expect(200, "PATCH", &path, Some(&json!({"name": "Their caller"})));
    };
    let url = busy_proxy(desk.server().address(), "DELETE /simulations/personas/", Box::new(change));
    let said = desk.run(&["apply", "folder", "--prune", "--url", &url]).expect(1);
    let left = format!("{PERSONA} was changed by somebody else meanwhile; it was not deleted");
    assert!(said.contains(&left), "{said}");
    assert_eq!(desk.only("/simulations/personas")["name"], "Their caller");
}

/// The service deletes simulations with their persona.
#[test]
fn what_is_spared_keeps_what_it_uses() {
    let desk = Desk::applied();
    desk.remove(&["simulations/booking.toml", "simulations/saturday.toml", PERSONA]);
    let mut client = desk.client();
    let simulations = client.expect(200, "GET", "/simulations", None);
    let ids: Vec<String> = [0, 1].map(|n| simulations[n]["id"].as_str().expect("an id").to_owned()).to_vec();
    let changed = ids.clone();
    let change = move || {
        for (n, id) in changed.iter().enumerate() {
            let name = json!({"name": format!("Theirs {n}")});
            client.expect(200, "PATCH", &format!("/simulations/{id}"), Some(&name));
        }
    };
    let url = busy_proxy(desk.server().address(), "DELETE /simulations/", Box::new(change));
    let said = desk.run(&["apply", "folder", "--prune", "--url", &url]).expect(1);
    assert!(said.contains("0 deleted, 3 changed by somebody else"), "{said}");
    assert!(said.contains(&format!("{PERSONA} is used by simulation")), "{said}");
    let mut client = desk.client();
    for id in ids {
        client.expect(200, "GET", &format!("/simulations/{id}"), None);
    }
    desk.only("/simulations/personas");
}

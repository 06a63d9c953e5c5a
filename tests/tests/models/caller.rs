//! A simulated caller.
use sidetone_engine::conversation::Message;
use sidetone_engine::models::{CallerModel, CallerTurn};

use crate::support::{Service, wait};

#[test]
fn a_caller_speaks_its_lines_and_hangs_up() {
    let service = Service::new();
    let scenario = "Ask \"When do you open?\", then \"And on Sundays?\".";
    let caller =
        CallerModel::new(&service.services.config().catalog, "fake/caller", "In a hurry.", scenario).unwrap();
    let mut history = vec![Message::Assistant { text: "Shop, hello!".into() }];
    let mut said = Vec::new();
    loop {
        let turn = CallerTurn { persona: "In a hurry.", scenario, history: &history, seed: 7 };
        let reply = wait(caller.reply(service.services.ports(), &turn, i64::MAX.into())).unwrap().reply;
        said.push(reply.text.clone());
        if reply.hang_up {
            break;
        }
        history.push(Message::User { text: reply.text });
        history.push(Message::Assistant { text: "At ten.".into() });
    }
    assert_eq!(said, ["When do you open?", "And on Sundays?", "Thank you, goodbye."]);
    let body = service.asked().remove(1).body;
    let roles: Vec<&str> =
        body["messages"].as_array().unwrap().iter().filter_map(|message| message["role"].as_str()).collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "user"],
        "the caller's turns have the role `assistant`"
    );
    assert!(body["messages"][0]["content"].as_str().unwrap().contains("In a hurry."));
}

#[test]
fn a_caller_can_speak_first() {
    let service = Service::new();
    let caller =
        CallerModel::new(&service.services.config().catalog, "fake/caller", "", "\"Hello?\"").unwrap();
    let turn = CallerTurn { persona: "", scenario: "\"Hello?\"", history: &[], seed: 7 };
    assert_eq!(
        wait(caller.reply(service.services.ports(), &turn, i64::MAX.into())).unwrap().reply.text,
        "Hello?"
    );
}

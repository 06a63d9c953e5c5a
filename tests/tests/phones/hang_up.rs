//! Hanging up by REST and MCP.
use serde_json::json;
use sidetone_tests::fakes::carrier::{Command, EndKind};

use crate::support::{Desk, GREETING};

with_each_carrier!(by_rest, by_mcp, before_it_is_answered, twice, a_call_that_is_over_is_unchanged);

fn by_rest(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    let reply = desk.world.post(format!("/calls/{id}/hang-up"), json!({}));
    assert!((200..300).contains(&reply.status), "{reply:?}");
    person.was_hung_up();
    let call = desk.over(&id);
    desk.expect(
        &call,
        &json!({"outcome": "completed", "ended_reason": "hung_up_by_request", "fault": "none"}),
    );
}

fn by_mcp(provider: &'static str) {
    let desk = Desk::new(provider);
    let mut person = desk.is_called();
    person.answer();
    assert_eq!(person.hears(), GREETING);
    let id = desk.only_call()["id"].as_str().unwrap().to_owned();
    desk.world.tool("hang_up_call", json!({"id": id})).ok();
    person.was_hung_up();
    let call = desk.over(&id);
    desk.expect(
        &call,
        &json!({"outcome": "completed", "ended_reason": "hung_up_by_request", "fault": "none"}),
    );
}

fn before_it_is_answered(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.place();
    person.ring();
    desk.once(&id, "ringing");
    let reply = desk.world.post(format!("/calls/{id}/hang-up"), json!({}));
    assert!((200..300).contains(&reply.status), "{reply:?}");
    person.was_commanded_to_end();
    person.over(EndKind::Canceled);
    let call = desk.over(&id);
    desk.expect(&call, &json!({"status": "ended", "answered_at": null}));
    assert!(["canceled", "hung_up_by_request"].contains(&call["ended_reason"].as_str().unwrap()), "{call}");
}

fn twice(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    for _ in 0..2 {
        let reply = desk.world.post(format!("/calls/{id}/hang-up"), json!({}));
        assert!(reply.status < 500, "{reply:?}");
    }
    person.was_hung_up();
    desk.expect(&desk.over(&id), &json!({"ended_reason": "hung_up_by_request"}));
}

fn a_call_that_is_over_is_unchanged(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.place();
    person.busy();
    let before = desk.over(&id);
    let reply = desk.world.post(format!("/calls/{id}/hang-up"), json!({}));
    assert!(reply.status < 500, "{reply:?}");
    assert_eq!(desk.call(&id), before);
    let ends = desk.carrier.commands(person.id()).into_iter();
    assert_eq!(ends.filter(|command| matches!(command, Command::HangUp { .. })).count(), 0);
    desk.world.post("/calls/call_01jd0000000000000000000000/hang-up", json!({})).refused("not_found");
    let other = Desk::new(provider);
    other.world.post(format!("/calls/{id}/hang-up"), json!({})).refused("not_found");
}

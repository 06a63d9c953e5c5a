//! A slow tool is bridged by a line of the assistant's author.
use serde_json::json;
use sidetone_tests::fakes;
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};

use crate::support::{Desk, GREETING, lines, texts};

with_each_carrier!(a_slow_tool_is_bridged, an_interrupted_filler_leaves_the_tool_alone);

const FILLER: &str = "One moment, I am looking that up for you.";
/// It lasts so long that whoever interrupts it does so in time, on a busy machine, too.
const LONG_FILLER: &str = "One moment please while I am looking into the book of the house for you page by page because it \
                           is a very old book and its writing is rather small.";

/// A desk with this filler and a tool that answers when the receiver is told to.
fn desk(provider: &'static str, filler: &str) -> (Desk, Receiver) {
    let desk = Desk::with_model(provider, "fake/tools");
    let receiver = Receiver::start(ReceiverBehaviour::Hold);
    let tool = desk.world.create(
        "/tools",
        json!({"name": "find_order", "description": "Finds an order.", "url": receiver.url(),
               "timeout_ms": 30_000, "parameters": {"type": "object"}}),
    );
    let path = format!("/assistants/{}", desk.assistant.id);
    desk.world.patch(&path, json!({"speech": {"filler": filler}})).ok();
    desk.world.put(format!("{path}/tools"), json!({"tool_ids": [tool.id]})).ok();
    (desk, receiver)
}

fn a_slow_tool_is_bridged(provider: &'static str) {
    let (desk, receiver) = desk(provider, FILLER);
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("Where is my order?");
    assert_eq!(person.hears(), FILLER);
    receiver.set(ReceiverBehaviour::Status(200));
    assert_eq!(person.hears(), "It says: ok");
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(
        lines(&call),
        [
            ("assistant", GREETING),
            ("user", "Where is my order?"),
            ("tool_call", "find_order({})"),
            ("assistant", FILLER),
            ("tool_result", "ok"),
            ("assistant", "It says: ok"),
        ]
    );
    // The fake refuses messages in a wrong order; the model does not learn of the line.
    let asked = fakes::shared().asked("key-of-the-fake");
    let told = asked.iter().any(|asked| {
        asked.body["messages"][0]["content"].as_str().is_some_and(|prompt| prompt.starts_with("Be kind."))
            && asked.body.to_string().contains(FILLER)
    });
    assert!(!told, "{asked:?}");
}

fn an_interrupted_filler_leaves_the_tool_alone(provider: &'static str) {
    let (desk, receiver) = desk(provider, LONG_FILLER);
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("Where is my order?");
    person.hears_somebody();
    person.says("Hurry up.");
    receiver.set(ReceiverBehaviour::Status(200));
    assert_eq!(person.hears(), "It says: ok");
    person.hang_up();
    let call = desk.over(&id);
    let row = call["transcript"].as_array().unwrap().iter().find(|row| row["intended_text"] == LONG_FILLER);
    assert_eq!(row.unwrap_or_else(|| panic!("{call}"))["interrupted"], true, "{call}");
    assert!(texts(&call, "tool_result").iter().all(|text| *text == "ok"), "{call}");
    assert!(texts(&call, "user").contains(&"Hurry up."), "{call}");
}

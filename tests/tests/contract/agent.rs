//! An agent without a language model mends assistants over MCP alone: it is told what an assistant should do, finds by
//! simulation what it does not, changes what is responsible, and proves it with a hundred runs.
//!
//! It gets the assistant's id and the requirements, as a person would, and not what is wrong.
mod script;

use serde_json::{Value, json};
use sidetone_engine::ports::HttpReply;
use sidetone_tests::World;

use script::{Agent, Change, Need, Requirements};

/// Tool calls for one assistant, from the first look to the proof. A host that takes its time is asked more often, each time
/// after 25 s.
const CALLS_MAX: usize = 40;
/// In memory, where all runs are over when they are read.
const CALLS_MAX_IN_MEMORY: usize = 20;
/// Bytes that the agent sends and reads for one assistant; the list of a hundred runs that were started is the most of it.
const BYTES_MAX: usize = 170_000;

#[test]
fn a_missing_fact_is_found_and_written_down() {
    let world = World::new();
    let assistant = restaurant(&world, json!({}), HOURS, &[]);
    let wanted = Requirements {
        persona: "You are Anna Berg, a patient guest.",
        scenario: "Ask about parking. Ask when they open on Saturday.",
        facts: &["Guests park for free behind the house.", "On Saturday we open at ten."],
        needs: &[Need::Tells("behind the house"), Need::Tells("open at ten")],
    };
    mended(&world, &assistant, &wanted, &[Change::Fact]);
}

#[test]
fn a_wrong_price_is_corrected_where_it_stands() {
    let world = World::new();
    let text = "We open at nine on weekdays. A double room costs 90 dollars a night. Breakfast is included.";
    let assistant = restaurant(&world, json!({}), text, &[]);
    let wanted = Requirements {
        persona: "You are a careful traveller.",
        scenario: "Ask how much a double room costs.",
        facts: &["A double room costs 120 dollars a night."],
        needs: &[Need::Tells("120 dollars"), Need::NeverSays("90 dollars")],
    };
    let after = mended(&world, &assistant, &wanted, &[Change::Fact]);
    assert!(after.contains("120 dollars") && after.contains("Breakfast is included"), "{after}");
    assert!(!after.contains("90 dollars"), "{after}");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs tools that answer")]
fn a_tool_that_is_not_attached_is_attached() {
    let world = with_tools();
    booking_tool(&world, json!({"guests": {"type": "integer", "description": "How many people."}}));
    world.create(
        "/tools",
        json!({"name": "send_invoice", "url": "https://example.com/invoices",
        "description": "Sends an invoice."}),
    );
    let assistant = restaurant(&world, json!({}), HOURS, &[]);
    mended(&world, &assistant, &booking(), &[Change::Attached]);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs tools that answer")]
fn a_parameter_that_a_tool_lacks_is_added() {
    let world = with_tools();
    let tool = booking_tool(&world, json!({"day": {"type": "string", "description": "The day."}}));
    let assistant = restaurant(&world, json!({}), HOURS, std::slice::from_ref(&tool));
    mended(&world, &assistant, &booking(), &[Change::Parameters]);
    let parameters = world.get(format!("/tools/{tool}")).ok()["parameters"].clone();
    assert_eq!(parameters["properties"]["guests"]["type"], "integer", "{parameters}");
    assert_eq!(parameters["properties"]["day"]["type"], "string", "what was there stays: {parameters}");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs tools that answer")]
fn a_parameter_of_the_wrong_type_is_corrected() {
    let world = with_tools();
    let tool = booking_tool(&world, json!({"guests": {"type": "string", "description": "How many people."}}));
    let assistant = restaurant(&world, json!({}), HOURS, std::slice::from_ref(&tool));
    mended(&world, &assistant, &booking(), &[Change::Parameters]);
    let parameters = world.get(format!("/tools/{tool}")).ok()["parameters"].clone();
    assert_eq!(parameters["properties"]["guests"]["type"], "integer", "{parameters}");
}

#[test]
fn a_promise_that_nobody_may_make_is_taken_back() {
    let world = World::new();
    let greeting = "Welcome to Tony's. We guarantee the lowest price in town. How can I help you?";
    let fields = json!({"first_message": greeting});
    let assistant = restaurant(&world, fields, HOURS, &[]);
    let wanted = Requirements {
        persona: "You are Anna Berg.",
        scenario: "Ask when they open on Saturday.",
        facts: &["On Saturday we open at ten."],
        needs: &[Need::Tells("open at ten"), Need::NeverSays("guarantee")],
    };
    mended(&world, &assistant, &wanted, &[Change::Silenced]);
    let after = world.get(format!("/assistants/{assistant}")).ok()["first_message"].clone();
    assert_eq!(after, "Welcome to Tony's. How can I help you?");
}

#[test]
fn two_defects_are_mended_one_after_the_other() {
    let world = World::new();
    let fields = json!({"first_message": "Tony's, the cheapest in town. Hello!"});
    let text = "We open at nine on weekdays. On Saturday we open at eleven. We are closed on Sunday.";
    let assistant = restaurant(&world, fields, text, &[]);
    let wanted = Requirements {
        persona: "You are Anna Berg.",
        scenario: "Ask when they open on Saturday.",
        facts: &["On Saturday we open at ten."],
        needs: &[Need::Tells("open at ten"), Need::NeverSays("cheapest")],
    };
    let after = mended(&world, &assistant, &wanted, &[Change::Fact, Change::Silenced]);
    assert!(after.contains("closed on Sunday") && !after.contains("eleven"), "{after}");
}

/// What is as it should be is left alone.
#[test]
fn nothing_is_changed_that_works() {
    let world = World::new();
    let assistant = restaurant(&world, json!({}), HOURS, &[]);
    let wanted = Requirements {
        persona: "You are Anna Berg.",
        scenario: "Ask when they open on Saturday.",
        facts: &["On Saturday we open at ten."],
        needs: &[Need::Tells("open at ten"), Need::NeverSays("guarantee")],
    };
    mended(&world, &assistant, &wanted, &[]);
}

/// What nobody can mend with the facts at hand is reported, and not called mended.
#[test]
fn what_cannot_be_mended_is_not_proved() {
    let world = World::new();
    let assistant = restaurant(&world, json!({}), HOURS, &[]);
    let wanted = Requirements {
        persona: "You are Anna Berg.",
        scenario: "Ask about the wine list.",
        facts: &["On Saturday we open at ten."],
        needs: &[Need::Tells("Barolo")],
    };
    let mut agent = Agent::new(&world, CALLS_MAX);
    let report = agent.mend(&assistant, &wanted);
    assert_eq!((report.passed, report.changes.as_slice()), (0, &[][..]), "{report:?}");
}

const HOURS: &str = "We open at nine on weekdays. On Saturday we open at ten. We are closed on Sunday.";

/// Lets the agent mend an assistant, and returns the text of its documents. `changes` are the ones that are needed.
#[track_caller]
#[expect(clippy::print_stdout, reason = "what the agent needed is a result of its own")]
fn mended(world: &World, assistant: &str, wanted: &Requirements<'_>, changes: &[Change]) -> String {
    let mut agent = Agent::new(world, CALLS_MAX);
    let report = agent.mend(assistant, wanted);
    println!("{}: {} tool calls, {} bytes", report.changes.len(), report.calls, report.bytes);
    assert_eq!(report.changes, changes, "{report:?}");
    assert_eq!(report.failed_at_first, !changes.is_empty(), "it was found by simulation: {report:?}");
    assert_eq!((report.passed, report.total), (100, 100), "{report:?}");
    let calls_max = if world.sandbox().is_some() { CALLS_MAX_IN_MEMORY } else { CALLS_MAX };
    assert!(report.calls <= calls_max, "{report:?}");
    assert!(report.bytes <= BYTES_MAX, "{report:?}");
    let documents = world.get("/knowledge").ok().ids();
    let content = |id: &String| world.get(format!("/knowledge/{id}")).ok()["content"].to_string();
    documents.iter().map(content).collect()
}

/// An assistant with a document and tools.
fn restaurant(world: &World, fields: Value, text: &str, tools: &[String]) -> String {
    let document = world.create("/knowledge", json!({"name": "House", "content": text})).id;
    world.create("/knowledge", json!({"name": "Unrelated", "content": "The lighthouse was built in 1890."}));
    let mut body =
        json!({"name": "Tony's", "instructions": "Help guests.", "first_message": "Tony's, hello!"});
    if let (Some(body), Value::Object(fields)) = (body.as_object_mut(), fields) {
        body.extend(fields);
    }
    let id = world.create("/assistants", body).id;
    world.put(format!("/assistants/{id}/knowledge"), json!({"knowledge_ids": [document]})).ok();
    world.put(format!("/assistants/{id}/tools"), json!({"tool_ids": tools})).ok();
    id
}

fn booking() -> Requirements<'static> {
    Requirements {
        persona: "You are Anna Berg. Your phone number is 555 0100.",
        scenario: "Book a table for four on Friday.",
        facts: &["On Saturday we open at ten."],
        needs: &[Need::Calls("book_table", r#"{"guests": 4}"#)],
    }
}

fn booking_tool(world: &World, properties: Value) -> String {
    let parameters = json!({"type": "object", "properties": properties});
    let body = json!({"name": "book_table", "url": "https://example.com/tables", "description": "Books a table.",
        "parameters": parameters});
    world.create("/tools", body).id
}

/// Tools answer that they have done it.
fn with_tools() -> World {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().expect("the sandbox");
    sandbox.answer_http_with(|_| {
        Ok(HttpReply {
            status: 200,
            headers: Vec::new(),
            body: br#"{"confirmation": "BD-17"}"#.to_vec().into(),
        })
    });
    world
}

//! A new assistant from a template: what comes with it, once, and what was typed before.
use sidetone_tests::World;
use sidetone_tests::visitor::{Visitor, text};

const NEW: &str = "/dashboard/assistants/new?template=front-desk";
const DESK: [(&str, &str); 5] = [
    ("name", "Front desk"),
    ("instructions", "Answer from the documents."),
    ("_example", "front-desk"),
    ("_once", "1"),
    ("_then", "/dashboard/assistants/{id}"),
];

/// An address that no other test uses.
fn address(name: &str) -> String {
    format!("{name}-{}@templates.example", std::process::id())
}

fn id_in(location: Option<&str>) -> String {
    location.unwrap().split(['/', '?']).nth(3).unwrap().to_owned()
}

#[test]
fn the_front_desk_comes_with_a_document_once() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("desk"));
    let api = visitor.api(&world);
    let page = text(&visitor.get(NEW));
    assert!(page.contains("Add and attach the document") && page.contains("14 Mill Lane"), "{page}");
    let first = id_in(visitor.act("create_assistant", NEW, &DESK).header("location"));
    let again = id_in(visitor.act("create_assistant", NEW, &DESK).header("location"));
    assert_eq!(first, again, "a form that is sent twice makes nothing twice");
    let documents = api.get("/knowledge").ok().json;
    assert_eq!(documents.as_array().map(Vec::len), Some(1), "{documents}");
    let of = |id: &str| api.get(format!("/assistants/{id}")).ok()["knowledge_ids"].clone();
    assert_eq!(of(&first), serde_json::json!([documents[0]["id"]]));
    let mut client = api.start_conversation(&first);
    client.expect("call_started");
    client.say("When are you open?");
    let answer = client.hear();
    assert!(answer.contains("nine to five"), "{answer}");
    drop(client);

    // What became of the assistant since is left alone.
    api.put(format!("/assistants/{first}/knowledge"), serde_json::json!({"knowledge_ids": []})).ok();
    visitor.act("create_assistant", NEW, &DESK);
    assert_eq!(of(&first), serde_json::json!([]));
    // Another assistant shares the document; one without it has none.
    let mut other = DESK;
    (other[0].1, other[3].1) = ("Night desk", "2");
    let other = id_in(visitor.act("create_assistant", NEW, &other).header("location"));
    assert_eq!(of(&other), serde_json::json!([documents[0]["id"]]));
    let plain = [("name", "Plain"), ("instructions", "Be kind."), DESK[4]];
    let plain = id_in(visitor.act("create_assistant", NEW, &plain).header("location"));
    assert_eq!(of(&plain), serde_json::json!([]));
    assert_eq!(api.get("/knowledge").ok().json.as_array().map(Vec::len), Some(1));
}

#[test]
fn another_template_leaves_what_was_typed() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("typed"));
    let fields = [
        ("_began", "blank"),
        ("_choice", "front-desk"),
        ("name", "Reception of Dr. Bergmann"),
        ("first_message", ""),
    ];
    let reply = visitor.act("choose_template", "/dashboard/assistants/new", &fields);
    let page = text(&reply);
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(page.contains("value=\"Reception of Dr. Bergmann\""), "{page}");
    assert!(page.contains("You answer the telephone for Blue Door Dental"), "{page}");
    assert!(page.contains("Blue Door Dental, how can I help?"), "{page}");
    assert!(page.contains("name=\"_began\" value=\"front-desk\""), "{page}");
    assert!(page.contains(" data-unsaved"), "it is asked about before it is left: {page}");
    // The Enter key creates the assistant; it chooses no template.
    let form = page.split("<form class=\"edit\"").nth(1).unwrap();
    let first = form.split("<button").nth(1).unwrap().split('>').next().unwrap();
    assert!(!first.contains("formaction"), "{first}");
}

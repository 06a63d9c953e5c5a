//! Two people edit the same assistant in the dashboard: nothing that either of them changed is lost unasked.
use serde_json::json;
use sidetone_tests::World;
use sidetone_tests::visitor::{Visitor, text};

fn address(name: &str) -> String {
    format!("{name}-{}@conflicts.example", std::process::id())
}

/// Somebody with an assistant, its id and the path of its page.
fn editor(world: &World, name: &str) -> (Visitor, String, String) {
    let mut visitor = Visitor::signed_in(world, &address(name));
    let fields = [
        ("name", "Front desk"),
        ("instructions", "Be kind."),
        ("first_message", "Hello."),
        ("speech.filler", "One moment."),
        ("_then", "/dashboard/assistants/{id}?"),
    ];
    let made = visitor.act("create_assistant", "/dashboard/keys", &fields);
    let id = made.header("location").unwrap().split(['/', '?']).nth(3).unwrap().to_owned();
    let page = format!("/dashboard/assistants/{id}");
    (visitor, id, page)
}

/// The control of a field in a page: from its name to the end of its element.
fn control<'a>(page: &'a str, name: &str) -> &'a str {
    let at = page.find(&format!(" id=\"f-{name}\"")).unwrap_or_else(|| panic!("{name}: {page}"));
    let rest = &page[at..];
    &rest[..rest.find("</textarea>").unwrap_or(rest.len()).min(rest.find("<p ").unwrap_or(rest.len()))]
}

#[test]
fn only_what_both_changed_is_asked_for() {
    let world = World::new();
    let (mut visitor, id, page) = editor(&world, "merge");
    let theirs = [
        ("id", id.as_str()),
        ("_revision", "1"),
        ("name", "Reception"),
        ("instructions", "Be very kind."),
        ("first_message", "Hello."),
        ("speech.filler", "One moment."),
    ];
    assert_eq!(visitor.act("update_assistant", &page, &theirs).status, 303);
    let mine = [
        ("id", id.as_str()),
        ("_revision", "1"),
        ("name", "Front desk"),
        ("instructions", "Be brief."),
        ("first_message", "Good morning."),
        ("speech.filler", "One moment."),
    ];
    let stale = visitor.act("update_assistant", &page, &mine);
    assert_eq!(stale.status, 409, "{stale:?}");
    let shown = text(&stale);
    assert!(shown.contains("It was changed meanwhile") && !shown.contains("repeat the change"), "{shown}");
    let choices: Vec<&str> =
        shown.split("name=\"_use.").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(choices, ["instructions"; 3], "one field: no choice yet, and two versions");
    assert!(
        shown.contains("form=\"form-update_assistant\"") && shown.contains("id=\"form-update_assistant\"")
    );
    assert!(control(&shown, "name").contains("value=\"Reception\""), "what only they changed is taken over");
    assert!(control(&shown, "first_message").contains("Good morning."), "what only I changed stays");
    assert!(control(&shown, "instructions").contains("Be brief."), "{shown}");
    assert!(shown.contains("name=\"_revision\" value=\"2\""), "the next save is about what was just seen");

    // Without a choice, nothing is saved, and the same is asked again: of the same revisions.
    assert!(shown.contains("name=\"_met\" value=\"1\""), "{shown}");
    let open = [
        ("id", id.as_str()),
        ("_revision", "2"),
        ("_met", "1"),
        ("_use.instructions", ""),
        ("name", "Reception"),
        ("instructions", "Be brief."),
        ("first_message", "Good morning."),
        ("speech.filler", "One moment."),
    ];
    let again = visitor.act("update_assistant", &page, &open);
    assert_eq!(again.status, 409, "{again:?}");
    let again = text(&again);
    assert!(
        again.contains("name=\"_use.instructions\"") && again.contains("name=\"_met\" value=\"1\""),
        "{again}"
    );

    // What the page's form sends after the choice of theirs: my text stands in the field, and gives way.
    let chosen = [
        ("id", id.as_str()),
        ("_revision", "2"),
        ("_met", "1"),
        ("_use.instructions", ""),
        ("_use.instructions", "theirs"),
        ("name", "Reception"),
        ("instructions", "Be brief."),
        ("first_message", "Good morning."),
        ("speech.filler", "One moment."),
    ];
    assert_eq!(visitor.act("update_assistant", &page, &chosen).status, 303);
    let saved = visitor.get(&format!("/dashboard/api/assistants/{id}"));
    let found = json!([saved["name"], saved["instructions"], saved["first_message"], saved["revision"]]);
    assert_eq!(found, json!(["Reception", "Be very kind.", "Good morning.", 3]));
    let mine = [
        ("id", id.as_str()),
        ("_revision", "3"),
        ("_use.instructions", ""),
        ("_use.instructions", "mine"),
        ("instructions", "Be brief."),
    ];
    assert_eq!(visitor.act("update_assistant", &page, &mine).status, 303);
    assert_eq!(visitor.get(&format!("/dashboard/api/assistants/{id}"))["instructions"], "Be brief.");
}

/// A form that failed for another reason still belongs to the revision that was read: sent again, it meets the change.
#[test]
fn a_form_with_a_mistake_does_not_forget_what_it_was_read_from() {
    let world = World::new();
    let (mut visitor, id, page) = editor(&world, "mistake");
    let theirs = [("id", id.as_str()), ("_revision", "1"), ("first_message", "Welcome.")];
    assert_eq!(visitor.act("update_assistant", &page, &theirs).status, 303);
    let mistaken = [("id", id.as_str()), ("_revision", "1"), ("name", ""), ("first_message", "Hello.")];
    let reply = visitor.act("update_assistant", &page, &mistaken);
    assert_eq!(reply.status, 422, "{reply:?}");
    let shown = text(&reply);
    assert!(shown.contains("name=\"_revision\" value=\"1\""), "{shown}");
    assert!(control(&shown, "first_message").contains("Hello."), "{shown}");
}

#[test]
fn what_both_attached_stays_attached() {
    let world = World::new();
    let (mut visitor, id, page) = editor(&world, "attached");
    let mut tool = |name: &str| {
        let fields = [("name", name), ("url", "https://a.example/x"), ("parameters", r#"{"type":"object"}"#)];
        let made = visitor.act("create_tool", "/dashboard/tools/new", &fields);
        assert_eq!(made.status, 200, "{made:?}");
        let tools = visitor.get("/dashboard/api/tools");
        let one = tools.json.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap().clone();
        one["id"].as_str().unwrap().to_owned()
    };
    let (theirs, mine) = (tool("theirs"), tool("mine"));
    let save = |visitor: &mut Visitor, revision: &str, ids: &[&str]| {
        let mut fields = vec![("id", id.as_str()), ("_revision", revision), ("tool_ids", "")];
        fields.extend(ids.iter().map(|id| ("tool_ids", *id)));
        visitor.act("update_assistant", &page, &fields)
    };
    assert_eq!(save(&mut visitor, "1", &[&theirs]).status, 303);
    let stale = save(&mut visitor, "1", &[&mine]);
    assert_eq!(stale.status, 409, "{stale:?}");
    let shown = text(&stale);
    for id in [&theirs, &mine] {
        let ticked = shown.split("<input").find(|input| input.contains(&format!("value=\"{id}\""))).unwrap();
        assert!(ticked.contains(" checked"), "{ticked}");
    }
    assert!(!shown.contains("_use."), "nothing to choose: {shown}");
}

/// One form saves the fields and what is attached; what did not change makes no revision.
#[test]
fn one_save_saves_all_of_an_assistant() {
    let world = World::new();
    let (mut visitor, id, page) = editor(&world, "all");
    let api = visitor.api(&world);
    let (first, second) = (api.document(20).id, api.document(20).id);
    let mut save = |revision: &str, name: &str, documents: &[&str]| {
        let mut fields = vec![("id", id.as_str()), ("_revision", revision), ("name", name)];
        fields.extend([("tool_ids", ""), ("knowledge_ids", "")]);
        fields.extend(documents.iter().map(|document| ("knowledge_ids", *document)));
        let status = visitor.act("update_assistant", &page, &fields).status;
        let saved = visitor.get(&format!("/dashboard/api/assistants/{id}"));
        (status, json!([saved["name"], saved["revision"], saved["knowledge_ids"]]))
    };
    let both = [first.as_str(), second.as_str()];
    assert_eq!(save("1", "Reception", &both), (303, json!(["Reception", 3, both])));
    // The page lists them in another order: that changes nothing.
    assert_eq!(save("3", "Reception", &[both[1], both[0]]), (303, json!(["Reception", 3, both])));
    assert_eq!(save("3", "Night desk", &both), (303, json!(["Night desk", 4, both])));
    // A change of another's stops all of it.
    assert_eq!(save("3", "Day desk", &[both[0]]), (409, json!(["Night desk", 4, both])));
    // What fails after the fields were saved is told.
    assert_eq!(save("4", "Day desk", &["doc_none"]), (422, json!(["Day desk", 5, both])));
}

/// What is made from the page of an assistant is attached to it, once.
#[test]
fn what_is_made_for_an_assistant_is_attached() {
    let world = World::new();
    let (mut visitor, id, page) = editor(&world, "made");
    let kept = visitor.api(&world).document(20).id;
    assert_eq!(visitor.act("update_assistant", &page, &[("id", &id), ("knowledge_ids", &kept)]).status, 303);
    let form = "/dashboard/knowledge/new";
    let fields = [
        ("name", "Prices"),
        ("content", "A crown costs 600."),
        ("_attach", id.as_str()),
        ("_then", page.as_str()),
    ];
    let made = visitor.act("create_knowledge_document", form, &fields);
    assert_eq!(
        (made.status, made.header("location")),
        (303, Some(&*format!("{page}?done=create_knowledge_document")))
    );
    let tool = [
        ("name", "find"),
        ("url", "https://a.example/x"),
        ("parameters", r#"{"type":"object"}"#),
        ("_attach", &id),
        ("_then", &page),
    ];
    let shown = text(&visitor.act("create_tool", "/dashboard/tools/new", &tool));
    assert!(shown.contains("whsec_") && shown.contains("Talk to it"), "{shown}");
    let saved = visitor.get(&format!("/dashboard/api/assistants/{id}"));
    let counts = ["tool_ids", "knowledge_ids"].map(|list| saved[list].as_array().unwrap().len());
    assert_eq!((counts, &saved["knowledge_ids"][0]), ([1, 2], &json!(kept)));
    let gone = [("name", "Hours"), ("content", "Nine."), ("_attach", "asst_none"), ("_then", page.as_str())];
    let reply = visitor.act("create_knowledge_document", form, &gone);
    assert!(reply.status == 404 && text(&reply).contains("It is made, but not attached."), "{reply:?}");
}

/// A document has no revisions: who meets another's change keeps what they typed, sees what is saved, and decides.
#[test]
fn a_document_is_not_overwritten_unseen() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("document"));
    let api = visitor.api(&world);
    let document = api.document(20);
    let page = format!("/dashboard/knowledge/{}", document.id);
    let hidden = |page: &str, name: &str| {
        let at = page.find(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{name}: {page}"));
        page[at..].split('"').nth(3).unwrap().to_owned()
    };
    let read = hidden(&text(&visitor.get(&page)), "_read");
    let mut save = |content: &str, read: &str| {
        let fields =
            [("id", document.id.as_str()), ("_read", read), ("name", "Prices"), ("content", content)];
        visitor.act("update_knowledge_document", &page, &fields)
    };
    assert_eq!(save("A crown costs 600.", &read).status, 303);
    // Of a page that was read before that change. A second click on the same button changes nothing.
    let earlier = "2020-01-01T00:00:00.000Z";
    assert_eq!(save("A crown costs 600.", earlier).status, 303);
    let stale = save("A crown costs 700.", earlier);
    assert_eq!(stale.status, 409);
    let shown = text(&stale);
    for told in
        ["It was changed meanwhile", "Content as it is saved", "A crown costs 600.", ">\nA crown costs 700."]
    {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    assert_eq!(api.get(format!("/knowledge/{}", document.id)).ok()["content"], "A crown costs 600.");
    // Who has seen it may save.
    assert_eq!(save("A crown costs 700.", &hidden(&shown, "_read")).status, 303);
    assert_eq!(api.get(format!("/knowledge/{}", document.id)).ok()["content"], "A crown costs 700.");
}

//! Knowledge documents: unique names, sizes in bytes, lists without content.
use serde_json::json;
use sidetone_tests::World;

#[test]
fn a_new_document_has_its_size() {
    let world = World::new();
    let made = world.create("/knowledge", json!({"name": "Hours", "content": "Open 9–5."}));
    assert!(made.id.starts_with("doc_"));
    assert_eq!(
        made.json,
        json!({"id": made.id, "name": "Hours", "content": "Open 9–5.", "source": "text", "size_bytes": 11,
               "metadata": {}, "created_at": made["created_at"], "updated_at": made["created_at"]})
    );
    assert_eq!(world.get(format!("/knowledge/{}", made.id)).ok().json, made.json);
    let mut listed = made.json.clone();
    listed.as_object_mut().unwrap().remove("content");
    assert_eq!(world.get("/knowledge").ok().json, json!([listed]), "the list omits the content");
    let patched =
        world.patch(format!("/knowledge/{}", made.id), json!({"content": "Closed", "source": "fax"})).ok();
    assert_eq!(
        (&patched["size_bytes"], &patched["source"], &patched["name"]),
        (&json!(6), &json!("fax"), &json!("Hours"))
    );
}

#[test]
fn content_is_at_most_50_kib() {
    let world = World::new();
    let made = world.document(50 * 1024);
    assert_eq!(made["size_bytes"], 51_200);
    for over in ["x".repeat(51_201), "é".repeat(25_601), "😀".repeat(12_801)] {
        world
            .post("/knowledge", json!({"name": "Big", "content": over}))
            .refused("validation_failed")
            .naming(&["content"]);
        world
            .patch(format!("/knowledge/{}", made.id), json!({"content": over}))
            .refused("validation_failed")
            .naming(&["content"]);
    }
    for fits in ["é".repeat(25_600), "😀".repeat(12_800)] {
        assert_eq!(
            world.patch(format!("/knowledge/{}", made.id), json!({"content": fits})).ok()["size_bytes"],
            51_200
        );
    }
    world
        .post("/knowledge", json!({"name": "None", "content": ""}))
        .refused("validation_failed")
        .naming(&["content"]);
}

#[test]
fn names_are_unique_in_the_workspace() {
    let world = World::new();
    let body = json!({"name": "Prices", "content": "Free."});
    let first = world.create("/knowledge", body.clone());
    world.post("/knowledge", body.clone()).refused("name_taken").naming(&["name"]);
    let second = world.document(3);
    let path = format!("/knowledge/{}", second.id);
    world.patch(&path, json!({"name": "Prices"})).refused("name_taken").naming(&["name"]);
    world.other().post("/knowledge", body).created();
    world.delete(format!("/knowledge/{}", first.id)).empty();
    world.patch(&path, json!({"name": "Prices"})).ok();
}

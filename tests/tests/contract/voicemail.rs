//! The field `voicemail` of an assistant. What happens to machines is in `phones/machines.rs`.
use serde_json::{Value, json};
use sidetone_tests::World;

#[test]
fn it_is_off_until_it_is_set_and_whole() {
    let world = World::new();
    let assistant = json!({"name": "Caller", "instructions": "Be kind.", "voicemail": {"action": "hang_up"}});
    let path = format!("/assistants/{}", world.create("/assistants", assistant).id);
    let hangs_up = json!({"action": "hang_up", "message": ""});
    assert_eq!(world.get(&path).ok()["voicemail"], hangs_up);
    let leaves = json!({"action": "leave_message", "message": "Please call us back."});
    assert_eq!(world.patch(&path, json!({"voicemail": leaves})).ok()["voicemail"], leaves);
    // Another field does not touch it, and a new one replaces all of it.
    assert_eq!(world.patch(&path, json!({"keys": true})).ok()["voicemail"], leaves);
    assert_eq!(world.patch(&path, json!({"voicemail": {"action": "hang_up"}})).ok()["voicemail"], hangs_up);
    let off = world.patch(&path, json!({"voicemail": null})).ok();
    assert_eq!((&off["voicemail"], &off["revision"]), (&Value::Null, &json!(5)));
    let restored = world.post(format!("{path}/revisions/2/restore"), json!({})).ok();
    assert_eq!(restored["voicemail"], leaves);
}

#[test]
fn what_is_wrong_with_it_is_named() {
    let world = World::new();
    let path = format!("/assistants/{}", world.assistant().id);
    for (voicemail, field) in [
        (json!({"action": "leave_message"}), "voicemail.message"),
        (json!({"action": "leave_message", "message": " \n"}), "voicemail.message"),
        (json!({"action": "leave_message", "message": "x".repeat(2_001)}), "voicemail.message"),
        (json!({"action": "hang_up", "message": 7}), "voicemail.message"),
        (json!({"action": "hang_up", "message": null}), "voicemail.message"),
        (json!({"action": "answer"}), "voicemail.action"),
        (json!({"action": null}), "voicemail.action"),
        (json!({"message": "Please call us back."}), "voicemail.action"),
        (json!({"action": "hang_up", "beep": true}), "voicemail.beep"),
        (json!("hang_up"), "voicemail"),
        (json!(true), "voicemail"),
        (json!([]), "voicemail"),
    ] {
        let body = json!({"voicemail": voicemail});
        world.patch(&path, body.clone()).refused("validation_failed").naming(&[field]);
        let mut new = json!({"name": "Caller", "instructions": "Be kind."});
        new["voicemail"] = body["voicemail"].clone();
        world.post("/assistants", new).refused("validation_failed").naming(&[field]);
    }
    let longest = json!({"action": "leave_message", "message": "ä".repeat(2_000)});
    assert_eq!(world.patch(&path, json!({"voicemail": longest})).ok()["voicemail"], longest);
}

//! Who gets a place for a conversation, and the memory for it, when there is not enough for all.
use super::*;

/// Opens test conversations of a workspace until the service refuses one; that refusal, too.
fn open_all<'a>(sandbox: &'a Sandbox, key: &str) -> (Vec<SandboxSocket<'a>>, Box<Reply>) {
    let post = |path: &str, body: &Value| {
        let request = http::Request::post(path)
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json");
        sandbox.send(request.body(Bytes::from(body.to_string())).unwrap())
    };
    let assistant = post("/assistants", &json!({"name": "Greedy", "instructions": "Be greedy."}));
    let path = format!("/assistants/{}/test-token", assistant["id"].as_str().unwrap());
    let mut open = Vec::new();
    loop {
        let token = post(&path, &json!({}));
        let (_, path) = token["websocket_url"].as_str().unwrap().split_once(".example").unwrap();
        match sandbox.connect(path) {
            Ok(socket) => open.push(socket),
            Err(refused) => return (open, refused),
        }
    }
}

#[test]
fn a_workspace_that_opens_all_it_can_leaves_room_for_tests_and_calls_of_others() {
    let desk = Desk::with_settings(&[("SIDETONE_MEMORY_MB", "300")]);
    let greedy = desk.sandbox.create_workspace("greedy");
    let (greedy, refused) = open_all(&desk.sandbox, &greedy);
    assert_eq!((refused.status, &refused["error"]["code"]), (503, &json!("unavailable")), "{refused:?}");
    assert!(refused.headers.contains_key("retry-after"));
    assert!((700..900).contains(&greedy.len()), "most of 1,024: {}", greedy.len());

    let call = desk.place();
    desk.tell(&call, &CallEvent::Ringing);
    let phone = desk.socket(&call);
    let (others, _) = open_all(&desk.sandbox, desk.sandbox.key());
    assert!(others.len() >= 5, "{}", others.len());

    // What one workspace gives back, the other can have.
    drop((greedy, phone, others));
    desk.sandbox.kill_conversations();
    let (again, _) = open_all(&desk.sandbox, desk.sandbox.key());
    assert!(again.len() >= 700, "{}", again.len());
}

#[test]
fn a_call_for_which_there_is_no_memory_is_hung_up_as_the_platforms_fault() {
    let desk = Desk::with_settings(&[("SIDETONE_MEMORY_MB", "24")]);
    let mut open = Vec::new();
    let refused = loop {
        let data = json!({"data": {"call_control_id": format!("v3:call-{}", open.len())}});
        desk.sandbox.answer_http(200, &data.to_string());
        assert_eq!(desk.order().status, 201);
        let call = desk.placed();
        match desk.try_socket(&call) {
            Ok(socket) => open.push(socket),
            Err(reply) => {
                assert_eq!(reply.status, 503);
                break call;
            }
        }
    };
    assert!((30..80).contains(&open.len()), "{}", open.len());
    let calls = desk.sandbox.get("/calls?source=outbound");
    let ended = &calls.json["calls"][0];
    assert_eq!((&ended["ended_reason"], &ended["fault"]), (&json!("aborted"), &json!("platform")));
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    assert_eq!(desk.commands(), ["hangup"]);
    assert_eq!(desk.try_socket(&refused).err().unwrap().status, 409, "its socket is used");
}

//! Every message of a JSON-RPC batch stands alone: no pair of operations, whatever their order, disturbs each other.
use serde_json::{Value, json};
use sidetone_engine::operations::OPERATIONS;
use sidetone_engine::operations::operation::Operation;
use sidetone_tests::{Call, World};

/// The largest batch.
const MESSAGES_MAX: usize = 50;

#[test]
fn a_key_of_one_message_does_not_reach_the_next() {
    let world = World::new();
    let create = |id: i64, key: &str| {
        tool(
            id,
            "create_assistant",
            json!({"idempotency_key": key, "data": {"name": "A", "instructions": "B"}}),
        )
    };
    let ping = |id: i64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let invalid = |id: i64| tool(id, "create_tool", json!({"data": {}}));
    let list = |id: i64| tool(id, "list_assistants", json!({}));
    for key in ["new", "new"] {
        let replies = batch(&world, &[create(1, key), ping(2), invalid(3), list(4), ping(5)]);
        assert_eq!(replies[0]["result"]["isError"], false, "{replies:?}");
        assert_eq!(replies[1]["result"], json!({}), "{replies:?}");
        assert_eq!(replies[2]["result"]["structuredContent"]["error"]["code"], "validation_failed");
        assert_eq!(replies[3]["result"]["structuredContent"]["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(replies[4]["result"], json!({}), "{replies:?}");
    }
}

#[test]
fn a_batch_that_revokes_its_own_key_still_gets_its_replies() {
    let world = World::new();
    let made = world.create("/keys", json!({"name": "short-lived"}));
    let own = world.with_key(made["key"].as_str().expect("the key"));
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let replies = batch(&own, &[tool(1, "revoke_api_key", json!({"id": made.id})), ping.clone(), ping]);
    assert_eq!(replies[0]["result"]["isError"], false, "{replies:?}");
    for refused in &replies[1..] {
        assert_eq!(refused["error"]["code"], -32603, "{refused}");
        assert_eq!(refused["error"]["data"]["error"]["code"], "unauthorized", "{refused}");
    }
}

#[test]
#[cfg_attr(test_host = "worker", ignore = "takes thousands of requests; nothing in it depends on the host")]
fn every_pair_of_operations_works_in_one_batch() {
    let tools: Vec<&Operation> = OPERATIONS.iter().filter(|operation| operation.is_tool()).collect();
    // Of `a b a c a …` every two neighbours are a pair, in both orders.
    let sequence: Vec<&'static Operation> = tools
        .iter()
        .enumerate()
        .flat_map(|(n, first)| tools[n..].iter().flat_map(move |second| [*first, *second]))
        .collect();
    let mut start = 0;
    while start + 1 < sequence.len() {
        let end = (start + MESSAGES_MAX).min(sequence.len());
        works(&sequence[start..end]);
        // The last one is also the first of the next batch, so that no pair is lost between them.
        start = end - 1;
    }
}

/// Sends the operations in one batch, each with an Idempotency-Key of its own if it takes one.
fn works(operations: &[&'static Operation]) {
    let world = World::new();
    let messages: Vec<Value> = operations
        .iter()
        .enumerate()
        .map(|(n, operation)| {
            let mut arguments = Call::valid(&world, operation).arguments();
            if operation.takes_idempotency_key() {
                arguments.insert("idempotency_key".to_owned(), format!("message {n}").into());
            }
            tool(n as i64, operation.id, arguments.into())
        })
        .collect();
    let replies = batch(&world, &messages);
    for (n, (reply, operation)) in replies.iter().zip(operations).enumerate() {
        let before = n.checked_sub(1).map_or("nothing", |before| operations[before].id);
        assert_eq!(reply["id"], n, "{reply}");
        assert_eq!(reply["result"]["isError"], false, "{} after {before}: {reply}", operation.id);
        assert!(reply["result"]["_meta"].is_null(), "{} after {before} is a replay: {reply}", operation.id);
    }
}

fn tool(id: i64, name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

#[track_caller]
fn batch(world: &World, messages: &[Value]) -> Vec<Value> {
    let reply = world.mcp(messages.to_vec().into()).ok();
    let replies = reply.json.as_array().expect("a batch of replies").clone();
    assert_eq!(replies.len(), messages.len(), "{replies:?}");
    replies
}

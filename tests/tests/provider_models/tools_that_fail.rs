//! Tools that hang, flood, redirect or break: the model and the transcript get an error result.
use serde_json::json;
use sidetone_tests::receiver::ReceiverBehaviour;

use crate::support::{Fixture, rows};

#[test]
fn a_failing_tool_is_an_error_result_and_the_call_continues() {
    let inside = "http://127.0.0.1:1/inside".to_owned();
    for (behaviour, words) in [
        (ReceiverBehaviour::Status(500), "HTTP 500"),
        (ReceiverBehaviour::With(302, "location", inside), "HTTP 302"),
        (ReceiverBehaviour::Hang, "did not answer within 1000 ms"),
        (ReceiverBehaviour::Reset, "could not be reached"),
        (ReceiverBehaviour::Flood(200), "larger than"),
    ] {
        let fixture = Fixture::new("tools");
        fixture.tool.set(behaviour.clone());
        if behaviour == ReceiverBehaviour::Hang {
            let path = format!("/tools/{}", fixture.tool_made.id);
            fixture.world.patch(path, json!({"timeout_ms": 1_000})).ok();
        }
        let run = fixture.run(&["Where is it?"]);
        assert_eq!(run["status"], "completed", "{behaviour:?}: {run:#}");
        let result = rows(&run["call"]["transcript"], "tool_result")[0];
        assert_eq!(result["is_error"], true, "{behaviour:?}");
        assert!(result["text"].as_str().unwrap().contains(words), "{behaviour:?}: {result}");
        assert_eq!(fixture.tool.count(), 1, "{behaviour:?}: tool calls are not retried");
    }
}

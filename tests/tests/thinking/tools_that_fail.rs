//! Tools that hang, flood, redirect or break: an error result that the model and the transcript see.
use sidetone_tests::receiver::Manner;

use crate::support::{Bench, rows};

#[test]
fn a_tool_that_fails_is_told_and_the_call_goes_on() {
    let inside = "http://127.0.0.1:1/inside".to_owned();
    for (manner, words) in [
        (Manner::Status(500), "HTTP 500"),
        (Manner::With(302, "location", inside), "HTTP 302"),
        (Manner::Hang, "did not answer within 1000 ms"),
        (Manner::Reset, "could not be reached"),
        (Manner::Flood(200), "larger than"),
    ] {
        let bench = Bench::new("tools");
        bench.tool.set(manner.clone());
        let run = bench.run(&["Where is it?"]);
        assert_eq!(run["status"], "completed", "{manner:?}: {run:#}");
        let result = rows(&run["transcript"], "tool_result")[0];
        assert_eq!(result["is_error"], true, "{manner:?}");
        assert!(result["text"].as_str().unwrap().contains(words), "{manner:?}: {result}");
        assert_eq!(bench.tool.count(), 1, "{manner:?}: once, and never again by itself");
    }
}

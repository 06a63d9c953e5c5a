//! The logs of calls' inputs: what was stored while a call ran is enough to replay it.
use serde_json::{Value, json};
use sidetone_engine::base::ids::{CallId, Id as _};
use sidetone_engine::conversation::input_log::replay;
use sidetone_engine::live::call_inputs;

use crate::World;
use crate::direct_access::wait;

impl World {
    /// The stored inputs of a call.
    pub fn inputs_of(&self, call_id: &str) -> Vec<String> {
        let select = call_inputs::select(&self.workspace_id(), &CallId::from_stored(call_id));
        let rows = wait(self.direct_access().ports().database.read(vec![select])).expect("storage answers");
        call_inputs::read(&rows[0]).expect("a log")
    }

    /// Checks that the stored inputs of an ended call produce its transcript.
    #[track_caller]
    pub fn expect_replay(&self, call: &Value) {
        let inputs = self.inputs_of(call["id"].as_str().expect("an id"));
        let transcript = match inputs.is_empty() {
            // No audio was connected.
            true => json!([]),
            false => {
                json!(replay(inputs.iter().map(String::as_str)).expect("a log").transcript())
            }
        };
        assert_eq!(transcript, call["transcript"], "replayed from {inputs:#?}");
    }
}

//! Keys that the model presses.
use serde_json::Value;

use super::Conversation;
use crate::conversation::SEND_KEYS;

impl Conversation {
    /// What a tool call presses, if it is one of [`SEND_KEYS`].
    pub(super) fn keys_of(&self, name: &str, arguments: &Value) -> Option<String> {
        let keys = arguments.get("keys").filter(|_| self.setup.keys && name == SEND_KEYS)?;
        keys.as_str().map(str::to_owned)
    }

    /// Whether keys are pressed, or will be.
    pub(super) fn is_pressing(&self) -> bool {
        self.pending.iter().any(|call| call.presses.is_some())
    }

    /// So many characters of the keys were heard: all of them, unless the call is over.
    pub(super) fn keys_pressed(&mut self, id: &str, pressed: usize) {
        let call = self.pending.iter().find(|call| call.id == id);
        let Some(keys) = call.and_then(|call| call.presses.as_deref()) else { return };
        let heard: String = keys.chars().take(pressed).collect();
        let is_error = heard.len() < keys.len();
        let names: Vec<_> = heard.chars().filter(|key| *key != 'w').map(String::from).collect();
        let names = names.join(", ");
        let text = match (names.len(), is_error) {
            (0, _) => "No key was pressed: the call was over.".to_owned(),
            (_, true) => format!("The call was over when only these keys were pressed: {names}."),
            (1, false) => format!("The key {names} was pressed."),
            (_, false) => format!("The keys {names} were pressed."),
        };
        self.tool_result(id, text, is_error, false);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::conversation::keys::{SEND_KEYS, send_keys};
    use crate::conversation::transcript::TranscriptRole;
    use crate::conversation::{
        AssistantReply, Conversation, ConversationSetup, Input, Output, Party, ToolRequest, WaitingFor,
    };

    #[test]
    fn keys_are_a_tool_whose_result_is_what_was_pressed() {
        for (keys, pressed, told, is_error) in [
            ("2", 1, "The key 2 was pressed.", false),
            ("w1#", 3, "The keys 1, # were pressed.", false),
            ("12w3", 2, "The call was over when only these keys were pressed: 1, 2.", true),
            ("12", 0, "No key was pressed: the call was over.", true),
        ] {
            let mut call = asked(true, &[keys]);
            let press = Output::PressKeys { id: "c_t1".into(), keys: keys.into() };
            assert_eq!(call.poll(), Some(press.clone()));
            // A driver that loaded the state asks again.
            let mut loaded: Conversation = serde_json::from_value(json!(call)).unwrap();
            loaded.resume();
            assert_eq!(loaded.poll(), Some(press));
            assert_eq!(call.poll_timeout(), Some(60 * 60 * 1_000), "no filler is due");
            call.handle(2_000, pressed_keys("c_t1", pressed));
            let row = call.transcript().last().unwrap();
            assert_eq!((row.text.as_str(), row.is_error), (told, Some(is_error)));
            assert_eq!(call.waiting_for(), WaitingFor::Model);
            call.handle(2_100, pressed_keys("c_t1", 1));
            assert_eq!(call.transcript().len(), 3, "a result comes once");
        }
    }

    #[test]
    fn what_was_pressed_before_the_end_is_told_after_it() {
        let mut call = asked(true, &["12", "3"]);
        call.handle(2_000, Input::HangUp { by: Party::User });
        call.handle(2_000, pressed_keys("c_t1", 1));
        call.handle(2_000, pressed_keys("c_t2", 0));
        let results = call.transcript().iter().filter(|row| row.role == TranscriptRole::ToolResult);
        let texts: Vec<_> = results.map(|row| row.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "The call was over when only these keys were pressed: 1.",
                "No key was pressed: the call was over."
            ]
        );
        assert!(call.ended().is_some() && call.offset_ms() == 2_000);
    }

    #[test]
    fn wrong_keys_are_an_error_and_nothing_is_pressed() {
        for keys in ["", "w", "12 3", "a", "p1", "１", &"1".repeat(33)] {
            let mut call = asked(true, &[keys]);
            assert!(matches!(call.poll(), Some(Output::AskModel { .. })), "{keys}");
            assert_eq!(call.transcript()[2].is_error, Some(true), "{keys}");
        }
        assert!(matches!(asked(true, &[&"1".repeat(32)]).poll(), Some(Output::PressKeys { .. })));
    }

    #[test]
    fn an_attached_tool_of_that_name_is_an_ordinary_one() {
        assert!(matches!(asked(false, &["2"]).poll(), Some(Output::CallTool { .. })));
    }

    /// A conversation whose model has called the tool with each of these keys.
    fn asked(keys: bool, calls: &[&str]) -> Conversation {
        let setup = json!({
            "id": "c", "instructions": "", "first_message": "", "knowledge": [], "tools": [send_keys()], "seed": 1,
            "is_spoken": true, "filler": "One moment.", "keys": keys,
        });
        let setup: ConversationSetup = serde_json::from_value(setup).unwrap();
        let mut call = Conversation::new(setup);
        call.handle(0, Input::Start);
        call.handle(500, Input::UserText { text: "Press 2.".into(), duration_ms: 0, silence_ms: 0 });
        while call.poll().is_some() {}
        let request = |keys: &&str| ToolRequest { name: SEND_KEYS.into(), arguments: json!({"keys": keys}) };
        let calls = calls.iter().map(request).collect();
        let reply = AssistantReply::CallTools { text: String::new(), calls };
        call.handle(1_000, Input::AssistantReply { request: 1, reply });
        call
    }

    fn pressed_keys(id: &str, pressed: usize) -> Input {
        Input::KeysPressed { id: id.into(), pressed }
    }
}

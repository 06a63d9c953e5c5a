//! A line of the assistant's author that bridges a slow tool.
use super::{Conversation, State};
use crate::base::text::truncate;
use crate::conversation::{FILLER_AFTER_MS, TEXT_BYTES_MAX};

impl Conversation {
    /// When the filler is due, in ms from the start: the user has heard nothing for a while, because a tool runs. Only in
    /// a conversation by voice, where silence is taken for a broken line.
    pub(super) fn filler_at_ms(&self) -> Option<i64> {
        let is_awaited = !self.is_pressing() && !self.is_transferring();
        let is_silent = self.state == State::Calling && !self.is_being_spoken && is_awaited;
        let has_filler = self.setup.is_spoken && !self.setup.filler.trim().is_empty();
        (is_silent && has_filler && !self.has_filled)
            .then_some(self.waiting_since_ms.saturating_add(FILLER_AFTER_MS))
    }

    /// Says the filler, once per turn. The model did not write it and does not learn of it: between its tool call and the
    /// result it could not stand, and anywhere else the model would take it for its own and imitate it. So it counts
    /// towards no limit of the model's lines.
    pub(super) fn fill(&mut self) {
        self.has_filled = true;
        let text = truncate(self.setup.filler.clone(), TEXT_BYTES_MAX);
        self.utter(text, None);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::conversation::transcript::TranscriptRole::{Assistant, ToolCall, ToolResult, User};
    use crate::conversation::{
        AssistantReply, Conversation, ConversationLimits, ConversationSetup, Input, Message, Output,
        ToolRequest, ToolSpec, WaitingFor,
    };

    const FILLER: &str = "One moment, I am looking.";

    #[test]
    fn a_slow_tool_is_bridged_once_per_turn() {
        let mut call = waiting(true, "", 1_000);
        assert_eq!(call.poll_timeout(), Some(2_500));
        assert_eq!(said(&mut call, 2_499, Input::Tick), [""; 0]);
        assert_eq!(said(&mut call, 2_500, Input::Tick), [FILLER]);
        assert_eq!((call.turns(), call.waiting_for()), (1, WaitingFor::Tool), "a line of nobody's turn");
        said(&mut call, 4_000, Input::Spoken { until_ms: None });
        assert_eq!(said(&mut call, 20_000, Input::Tick), [""; 0]);
        // The second tool of the turn.
        call.handle(20_100, result("c_t1"));
        call.handle(20_200, tool(2, ""));
        assert_eq!(said(&mut call, 29_000, Input::Tick), [""; 0]);
        call.handle(29_100, result("c_t2"));
        call.handle(29_200, reply(3, "It was sent."));
        call.handle(31_000, Input::Spoken { until_ms: None });
        // The next turn.
        call.handle(32_000, user("And order 8?"));
        call.handle(32_100, tool(4, ""));
        said(&mut call, 32_100, Input::Tick);
        assert_eq!(said(&mut call, 33_600, Input::Tick), [FILLER]);
    }

    #[test]
    fn the_answer_follows_the_filler_and_the_model_knows_nothing_of_it() {
        let mut call = waiting(true, "", 1_000);
        call.handle(2_500, Input::Tick);
        call.handle(2_600, result("c_t1"));
        call.handle(2_700, reply(2, "It was sent."));
        call.handle(4_000, Input::Spoken { until_ms: None });
        let rows = call.transcript();
        let roles: Vec<_> = rows.iter().map(|row| row.role).collect();
        assert_eq!(roles, [User, ToolCall, Assistant, ToolResult, Assistant]);
        assert_eq!((rows[2].start_ms, rows[2].end_ms, rows[4].start_ms), (2_500, 4_000, 4_000));
        assert_eq!(call.speaking(), Some(4));
        assert!(!json!(call.history()).to_string().contains(FILLER), "{:?}", call.history());
        assert_eq!(call.history().last(), Some(&Message::Assistant { text: "It was sent.".into() }));
        // A cut of both lines changes the answer in the history, not another message.
        call.handle(4_100, Input::Interrupted { heard_permille: 500 });
        assert_eq!(call.history().last(), Some(&Message::Assistant { text: "It was…".into() }));
    }

    #[test]
    fn an_interrupted_filler_leaves_the_tool_alone() {
        let mut call = waiting(true, "", 1_000);
        call.handle(2_500, Input::Tick);
        call.handle(3_000, Input::Interrupted { heard_permille: 400 });
        assert_eq!(
            (call.transcript()[2].text.as_str(), call.transcript()[2].interrupted),
            ("One moment", true)
        );
        call.handle(3_200, user("Hurry up."));
        assert!(call.is_calling("c_t1"));
        assert_eq!(call.history().len(), 2, "{:?}", call.history());
        call.handle(9_000, result("c_t1"));
        assert_eq!(call.history().last(), Some(&Message::User { text: "Hurry up.".into() }));
    }

    #[test]
    fn the_wait_begins_when_nobody_is_heard() {
        let mut call = waiting(true, "Let me see.", 1_000);
        said(&mut call, 1_000, Input::Tick);
        assert_eq!(said(&mut call, 5_000, Input::Tick), [""; 0], "its own line is being spoken");
        call.handle(6_000, Input::Spoken { until_ms: None });
        assert_eq!(call.poll_timeout(), Some(7_500));
        call.handle(7_000, user("Order 7, please."));
        assert_eq!(call.poll_timeout(), Some(8_500));
        assert_eq!(said(&mut call, 8_500, Input::Tick), [FILLER]);
        // The result of one of two calls is not heard by anybody.
        let mut call = waiting(true, "", 1_000);
        call.handle(1_900, result("c_t1"));
        assert_eq!(call.waiting_for(), WaitingFor::Model);
        assert_eq!(said(&mut call, 9_000, Input::Tick), [""; 0], "the model is not a tool");
    }

    #[test]
    fn a_text_conversation_has_none() {
        let mut call = waiting(false, "", 1_000);
        assert_eq!(said(&mut call, 9_000, Input::Tick), [""; 0]);
        assert_eq!(call.poll_timeout(), Some(ConversationLimits::default().duration_ms_max));
    }

    /// A conversation that waits for a tool from `now_ms`, after this line of the assistant.
    fn waiting(is_spoken: bool, line: &str, now_ms: i64) -> Conversation {
        let spec = ToolSpec {
            name: "order".into(),
            description: String::new(),
            parameters: json!({"type": "object"}).into(),
        };
        let mut call = Conversation::new(ConversationSetup {
            id: "c".into(),
            instructions: String::new(),
            first_message: String::new(),
            knowledge: Vec::new().into(),
            tools: vec![spec].into(),
            has_transfers: false,
            seed: 1,
            limits: ConversationLimits::default(),
            is_spoken,
            apology: String::new(),
            still_there: String::new(),
            not_understood: String::new(),
            keys: false,
            opening_note: String::new(),
            voicemail: None,
            filler: FILLER.into(),
        });
        call.handle(0, Input::Start);
        call.handle(500, user("Order 7?"));
        call.handle(now_ms, tool(1, line));
        while call.poll().is_some() {}
        call
    }

    fn said(call: &mut Conversation, now_ms: i64, input: Input) -> Vec<String> {
        call.handle(now_ms, input);
        let outputs = std::iter::from_fn(|| call.poll());
        let texts = outputs.filter_map(|output| match output {
            Output::Say { text } => Some(text),
            _ => None,
        });
        texts.collect()
    }

    fn user(text: &str) -> Input {
        Input::UserText { text: text.into(), duration_ms: 0, silence_ms: 0 }
    }

    fn reply(request: u64, text: &str) -> Input {
        Input::AssistantReply { request, reply: AssistantReply::Say { text: text.into() } }
    }

    fn tool(request: u64, text: &str) -> Input {
        let calls = vec![ToolRequest { name: "order".into(), arguments: json!({}) }];
        Input::AssistantReply { request, reply: AssistantReply::CallTools { text: text.into(), calls } }
    }

    fn result(id: &str) -> Input {
        Input::ToolResult { id: id.into(), text: "sent".into(), is_error: false, mocked: false }
    }
}

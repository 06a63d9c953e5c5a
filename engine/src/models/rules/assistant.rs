mod results;

use std::borrow::Cow;

use super::arguments::fill;
use super::knowledge_search::KnowledgeIndex;
use super::phrases::{CLOSINGS, WELCOMES, greeting, help, pick, sorry};
use super::tools::ToolIndex;
use super::words::{unique_terms, words};
use crate::base::text::{casefold, truncate};
use crate::conversation::{AssistantReply, AssistantTurn, Knowledge, Message, ToolSpec};
use serde_json::Value;

/// Bytes of a user's line that the rules read.
const TEXT_BYTES_MAX: usize = 8_000;

/// The rule model as an assistant, with knowledge and tools indexed once per conversation.
///
/// It chooses a reply in this order:
///
/// 1. After a tool's result it says the result: JSON as "key: value", a failure as "I could not … because …".
/// 2. It calls a tool that the user's words name or describe, unless the knowledge matches more of the words. A tool is
///    called at most once per line of the user.
/// 3. It says the best-matching sentences of the knowledge, at most three.
/// 4. It answers a greeting, thanks or goodbye.
/// 5. Otherwise it says what it can help with: the documents' names and the tools' descriptions.
///
/// The seed selects the phrasing of 4 and 5.
#[derive(Debug, Clone, Default)]
pub struct RulesAssistant {
    knowledge: KnowledgeIndex,
    tools: ToolIndex,
    help: String,
}

impl RulesAssistant {
    /// Indexes the documents and tools of a conversation.
    #[must_use]
    pub fn new(knowledge: &[Knowledge], tools: &[ToolSpec]) -> Self {
        Self {
            knowledge: KnowledgeIndex::new(knowledge),
            tools: ToolIndex::new(tools),
            help: help(knowledge, tools),
        }
    }

    /// The assistant's next step. `turn` must have the knowledge and tools that were given to [`RulesAssistant::new`], and
    /// after these any tools of this call alone.
    #[must_use]
    pub fn reply(&self, turn: &AssistantTurn<'_>) -> AssistantReply {
        let results = results::since_last_call(turn.history);
        if !results.is_empty() {
            return say(results::spoken(&results));
        }
        let lines = turn.history.iter().filter(|row| matches!(row, Message::User { .. })).count();
        match turn.history.last() {
            Some(Message::User { text }) => self.answer(turn, text, lines),
            _ => say(greeting(&self.help, turn.seed, lines)),
        }
    }

    fn answer(&self, turn: &AssistantTurn<'_>, text: &str, lines: usize) -> AssistantReply {
        let text = truncate(text.to_owned(), TEXT_BYTES_MAX);
        let answer = self.knowledge.answer(&text);
        let known = answer.as_ref().map_or(0, |answer| answer.matched);
        let tool = self.tools_of(turn).best(&unique_terms(&text)).filter(|tool| tool.matched >= known);
        if let Some(tool) = tool.and_then(|tool| turn.tools.get(tool.index)) {
            return AssistantReply::call(&tool.name, Value::Object(fill(&tool.parameters.parse(), &text)));
        }
        if let Some(answer) = answer {
            return say(answer.text);
        }
        say(match small_talk(&text) {
            Some(SmallTalk::Goodbye) => pick(&CLOSINGS, turn.seed, lines).to_owned(),
            Some(SmallTalk::Thanks) => pick(&WELCOMES, turn.seed, lines).to_owned(),
            Some(SmallTalk::Greeting) => greeting(&self.help, turn.seed, lines),
            None => sorry(&self.help, turn.seed, lines),
        })
    }

    /// The index of all tools of the turn.
    fn tools_of(&self, turn: &AssistantTurn<'_>) -> Cow<'_, ToolIndex> {
        let more = turn.tools.get(self.tools.len()..).unwrap_or_default();
        let mut tools = Cow::Borrowed(&self.tools);
        for tool in more {
            tools.to_mut().add(tool);
        }
        tools
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SmallTalk {
    Goodbye,
    Thanks,
    Greeting,
}

fn small_talk(text: &str) -> Option<SmallTalk> {
    let said: Vec<String> = words(text).iter().map(|word| casefold(word.text)).collect();
    let has = |words: &[&str]| said.iter().any(|word| words.contains(&word.as_str()));
    if has(&["bye", "goodbye", "farewell"]) {
        Some(SmallTalk::Goodbye)
    } else if has(&["thanks", "thank"]) {
        Some(SmallTalk::Thanks)
    } else if has(&["hello", "hi", "hey", "greetings"]) {
        Some(SmallTalk::Greeting)
    } else {
        None
    }
}

const fn say(text: String) -> AssistantReply {
    AssistantReply::Say { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn assistant_reply(turn: &AssistantTurn<'_>) -> AssistantReply {
        RulesAssistant::new(turn.knowledge, turn.tools).reply(turn)
    }

    #[test]
    fn answers_from_the_knowledge() {
        assert_eq!(said("When do you open?"), "We open at nine.");
        assert_eq!(said("What's your refund policy?"), "Refunds: the policy is 30 days.");
    }

    #[test]
    fn calls_the_matching_tool() {
        assert_eq!(
            reply_to("I want a refund for order A-17"),
            AssistantReply::call("refund_order", json!({"order_id": "A-17"}))
        );
    }

    #[test]
    fn otherwise_it_offers_help() {
        let text = said("Tell me a joke about elephants");
        assert!(text.contains("Opening hours") && text.contains("Refunds an order"), "{text}");
        assert!(said("Hello!").starts_with("Hello"));
        assert!(said("Thanks a lot").contains("else"));
        assert!(said("ok bye").contains("oodbye"));
        assert_eq!(
            assistant_reply(&turn(&[], &[], &[user("Tell me a joke")], 0)),
            assistant_reply(&turn(&[], &[], &[user("Sing me a song")], 0))
        );
    }

    #[test]
    fn the_first_line_is_a_greeting() {
        let reply = assistant_reply(&turn(&[], &[], &[], 3));
        assert!(matches!(reply, AssistantReply::Say { text } if text.starts_with("Hello")));
    }

    #[test]
    fn a_result_is_said_without_another_call() {
        let mut history = vec![user("I want a refund for order A-17")];
        history.push(Message::ToolCall { id: "t".into(), name: "refund_order".into(), arguments: json!({}) });
        history.push(result(r#"{"status": "paid back", "days": 3}"#, false));
        assert_eq!(reply(&history), "Status: paid back, days: 3.");
        history.pop();
        history.push(result("the service was too slow", true));
        assert_eq!(reply(&history), "I could not refund order because the service was too slow.");
        history.push(user("When do you open?"));
        assert_eq!(reply(&history), "We open at nine.");
    }

    #[test]
    fn the_same_seed_gives_the_same_reply() {
        let history = [user("Tell me a joke")];
        let all: Vec<_> = (0..20).map(|seed| assistant_reply(&turn(&[], &[], &history, seed))).collect();
        let again: Vec<_> = (0..20).map(|seed| assistant_reply(&turn(&[], &[], &history, seed))).collect();
        assert_eq!(all, again);
        assert!(all.iter().any(|reply| *reply != all[0]));
    }

    #[test]
    fn huge_lines_are_answered() {
        said(&"when do you open? ".repeat(50_000));
        said(&"é".repeat(1_000_000));
    }

    proptest! {
        #[test]
        fn every_line_gets_a_reply(line in ".{0,100}") {
            match reply_to(&line) {
                AssistantReply::Say { text } => prop_assert!(!text.trim().is_empty()),
                AssistantReply::CallTools { calls, .. } => prop_assert!(calls[0].arguments.is_object()),
                AssistantReply::Goodbye { .. } => prop_assert!(false, "it never hangs up"),
            }
        }
    }

    fn said(line: &str) -> String {
        reply(&[user(line)])
    }

    fn reply(history: &[Message]) -> String {
        match assistant_reply(&turn(&knowledge(), &tools(), history, 1)) {
            AssistantReply::Say { text } => text,
            call => panic!("not said: {call:?}"),
        }
    }

    fn reply_to(line: &str) -> AssistantReply {
        assistant_reply(&turn(&knowledge(), &tools(), &[user(line)], 1))
    }

    fn turn<'a>(
        knowledge: &'a [Knowledge],
        tools: &'a [ToolSpec],
        history: &'a [Message],
        seed: u64,
    ) -> AssistantTurn<'a> {
        AssistantTurn { instructions: "Be kind.", knowledge, tools, history, seed }
    }

    fn knowledge() -> Vec<Knowledge> {
        vec![
            Knowledge { name: "Opening hours".into(), content: "We open at nine.".into() },
            Knowledge { name: "Returns".into(), content: "Refunds: the policy is 30 days.".into() },
        ]
    }

    fn tools() -> Vec<ToolSpec> {
        vec![ToolSpec {
            name: "refund_order".into(),
            description: "Refunds an order.".into(),
            parameters: json!({"type": "object", "required": ["order_id"],
                "properties": {"order_id": {"type": "string"}}})
            .into(),
        }]
    }

    fn user(text: &str) -> Message {
        Message::User { text: text.into() }
    }

    fn result(text: &str, is_error: bool) -> Message {
        Message::ToolResult { id: "t".into(), name: "refund_order".into(), text: text.into(), is_error }
    }
}

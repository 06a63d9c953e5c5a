//! What the server has of the conversation's history. What it lacks is created before it is asked: lines that were typed or
//! read out, tools' results, and everything in a session that was opened again. What it has and nobody has said or heard is
//! deleted.
use std::collections::VecDeque;

use super::wire;
use crate::conversation::Message;

/// Items that wait to be found in the history.
const ITEMS_MAX: usize = 64;

#[derive(Default)]
pub(super) struct OnServer {
    /// The messages of the history that the server has, and the text of the last one.
    synced: usize,
    last: String,
    /// The item of the last message; empty at the beginning.
    last_item: String,
    created: u64,
    /// Items of the person with their words.
    heard: VecDeque<(String, String)>,
    calls: VecDeque<Call>,
    /// Our ids of calls, and the server's.
    call_ids: VecDeque<(String, String)>,
}

/// A function call of the model.
pub(super) struct Call {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) item: String,
}

impl OnServer {
    /// The server has heard this item of the person.
    pub(super) fn heard(&mut self, item: String, words: String) {
        push(&mut self.heard, (item, words));
    }

    pub(super) fn called(&mut self, call: Call) {
        push(&mut self.calls, call);
    }

    /// Creates what the server lacks, and deletes what it has too much. `said` are the lines of its own responses since the
    /// last call, with their last items. What the person has said that the history lacks `is_wanted` while its words are not known.
    pub(super) fn sync(
        &mut self,
        history: &[Message],
        mut said: Vec<(&str, &str)>,
        is_wanted: bool,
        out: &mut Vec<String>,
    ) {
        // The last line of the person may have grown, or was another one, if it was only probably said.
        let is_other = self.synced > history.len()
            || self.synced > 0
                && matches!(&history[self.synced - 1], Message::User { text } if *text != self.last);
        let from = if is_other { self.synced.min(history.len()).saturating_sub(1) } else { self.synced };
        for (nth, message) in history[from..].iter().enumerate() {
            let before = if is_other && nth == 0 { std::mem::take(&mut self.last) } else { String::new() };
            self.create(message, &before, &mut said, out);
        }
        self.synced = history.len();
        if let Some(Message::User { text }) = history.last() {
            self.last.clone_from(text);
        }
        let unclaimed = if is_wanted { 0 } else { self.heard.len() };
        let heard = self.heard.drain(..unclaimed).map(|(item, _)| item);
        let called = self.calls.drain(..).map(|call| call.item);
        out.extend(heard.chain(called).map(|item| wire::delete(&item)));
    }

    /// Creates a message that the server lacks. It may be a line of the person that the server has as far as `before`.
    fn create(
        &mut self,
        message: &Message,
        before: &str,
        said: &mut Vec<(&str, &str)>,
        out: &mut Vec<String>,
    ) {
        let item = match message {
            Message::User { text } => {
                let waiting = self.heard.len();
                let last_item = &mut self.last_item;
                self.heard.retain(|(item, words)| {
                    let is_part = has_words(text, words);
                    if is_part {
                        last_item.clone_from(item);
                    }
                    !is_part
                });
                let has_grown = !before.is_empty() && text.starts_with(before);
                if waiting > self.heard.len() || has_grown {
                    return;
                }
                wire::line(true, text)
            }
            Message::Assistant { text } => {
                let heard = text.trim_end_matches('…').trim();
                if !heard.contains(char::is_alphanumeric) {
                    return;
                }
                if let Some(place) = said.iter().position(|(said, _)| said.trim().starts_with(heard)) {
                    said.remove(place).1.clone_into(&mut self.last_item);
                    return;
                }
                wire::line(false, text)
            }
            Message::ToolCall { id, name, arguments } => {
                let known = self.calls.iter().position(|call| call.name == *name);
                if let Some(call) = known.and_then(|place| self.calls.remove(place)) {
                    push(&mut self.call_ids, (id.clone(), call.id));
                    self.last_item = call.item;
                    return;
                }
                wire::call(short(id), name, arguments)
            }
            Message::ToolResult { id, text, .. } => {
                let known = self.call_ids.iter().find(|(ours, _)| ours == id);
                wire::result(known.map_or(short(id), |(_, theirs)| theirs), text)
            }
        };
        self.created += 1;
        let id = format!("sidetone_{}", self.created);
        let after = if self.last_item.is_empty() { "root" } else { &self.last_item };
        out.push(wire::create(&item, &id, after));
        self.last_item = id;
    }
}

/// Whether a text has these words, and not only their letters.
fn has_words(text: &str, words: &str) -> bool {
    // Chinese and Japanese have no spaces.
    let is_end = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() && c < '\u{2e80}');
    !words.is_empty()
        && text.match_indices(words).any(|(at, words)| {
            is_end(text[..at].chars().next_back()) && is_end(text[at + words.len()..].chars().next())
        })
}

/// `t1` of `call_…_t1`: the server takes no longer id than 32 characters.
fn short(id: &str) -> &str {
    id.rsplit('_').next().unwrap_or(id)
}

fn push<T>(waiting: &mut VecDeque<T>, one: T) {
    if waiting.len() >= ITEMS_MAX {
        waiting.pop_front();
    }
    waiting.push_back(one);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_the_server_has_is_found_and_the_rest_is_created_or_deleted() {
        let mut server = OnServer::default();
        server.heard("item_1".into(), "When do you".into());
        server.heard("item_2".into(), "open?".into());
        server.heard("item_3".into(), "mhm".into());
        let mut history =
            vec![assistant("Hello!"), user("When do you open?"), user("(pressed 1 on the telephone's keys)")];
        let sent = sync(&mut server, &history);
        assert_eq!(sent[0]["item"]["content"], json!([{"type": "output_text", "text": "Hello!"}]));
        assert_eq!(
            (&sent[0]["previous_item_id"], &sent[0]["item"]["id"]),
            (&json!("root"), &json!("sidetone_1"))
        );
        assert_eq!(
            (&sent[1]["item"]["role"], &sent[1]["previous_item_id"]),
            (&json!("user"), &json!("item_2"))
        );
        assert_eq!(sent[2], json!({"type": "conversation.item.delete", "item_id": "item_3"}));
        assert_eq!(sent.len(), 3);
        // The model answers, calls a tool, and is cut.
        server.called(Call { name: "hours".into(), id: "call_x".into(), item: "item_5".into() });
        server.called(Call { name: "other".into(), id: "call_y".into(), item: "item_6".into() });
        history.extend([
            assistant("One moment.…"),
            Message::ToolCall { id: "call_1_t1".into(), name: "hours".into(), arguments: json!({}) },
            Message::ToolResult {
                id: "call_1_t1".into(),
                name: "hours".into(),
                text: "9".into(),
                is_error: false,
            },
        ]);
        let sent = sync_said(&mut server, &history, vec![("One moment. I look.", "item_4")]);
        let result =
            json!({"type": "function_call_output", "call_id": "call_x", "output": "9", "id": "sidetone_3"});
        assert_eq!((&sent[0]["item"], &sent[0]["previous_item_id"]), (&result, &json!("item_5")));
        assert_eq!(sent[1], json!({"type": "conversation.item.delete", "item_id": "item_6"}));
        assert_eq!(sent.len(), 2);
        assert!(sync(&mut server, &history).is_empty());
        // A new session has nothing.
        let sent = sync(&mut OnServer::default(), &history);
        assert_eq!(sent.len(), history.len());
        assert_eq!((&sent[4]["item"]["call_id"], &sent[5]["item"]["call_id"]), (&json!("t1"), &json!("t1")));
    }

    #[test]
    fn words_are_no_letters_of_others() {
        let mut server = OnServer::default();
        server.heard("item_1".into(), "no".into());
        server.heard("item_2".into(), "I know.".into());
        let sent = sync(&mut server, &[user("I know.")]);
        assert_eq!(sent, [json!({"type": "conversation.item.delete", "item_id": "item_1"})]);
    }

    #[test]
    fn a_line_that_was_only_probably_said() {
        let mut server = OnServer::default();
        server.heard("item_1".into(), "I would like".into());
        assert!(sync(&mut server, &[user("I would like")]).is_empty());
        server.heard("item_2".into(), "a table.".into());
        assert!(sync(&mut server, &[user("I would like a table.")]).is_empty());
        // Nothing was heard of an answer.
        assert!(sync(&mut server, &[user("I would like a table."), assistant("…")]).is_empty());
        let keys = user("(pressed 1 on the telephone's keys)");
        let sent = sync(&mut server, &[user("I would like a table."), assistant("…"), keys]);
        assert_eq!(sent.len(), 1);
    }

    fn sync(server: &mut OnServer, history: &[Message]) -> Vec<Value> {
        sync_said(server, history, Vec::new())
    }

    fn sync_said(server: &mut OnServer, history: &[Message], said: Vec<(&str, &str)>) -> Vec<Value> {
        let mut out = Vec::new();
        server.sync(history, said, false, &mut out);
        out.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
    }

    fn user(text: &str) -> Message {
        Message::User { text: text.into() }
    }

    fn assistant(text: &str) -> Message {
        Message::Assistant { text: text.into() }
    }
}

//! The journal of a running conversation: its inputs, so that another process can replay them and continue. The
//! conversation is a pure function of its inputs. A tool call is written before its request is sent, and its result before
//! anything follows from it. So after an interruption, no call with a known result is repeated, and a call without a known
//! result is sent again with the same id.
use serde::{Deserialize, Serialize};

use super::Failure;
use crate::base::ids::{RunId, WorkspaceId};
use crate::live::call_journal::lists;
use crate::ports::statement::{Rows, Statement};
use crate::simulation::Input;
use crate::sql;
use crate::storage::calls::Analysis;
use crate::storage::cost::Cost;
use crate::storage::jobs::Job;

/// One input of a conversation, and its cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// The input.
    pub input: Input,
    /// The cost of the models that produced it.
    pub spent: Cost,
    /// The assistant's part of it, if both sides have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assistant: Option<Cost>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Entry {
    // The kind in rows of earlier versions.
    #[serde(rename = "told")]
    Input(JournalEntry),
    /// A tool is about to be called.
    Calling { id: String, name: String },
    /// The conversation has ended and was analyzed.
    Analysed { analysis: Analysis, spent: Cost },
}

/// The journal of one conversation.
pub struct Journal {
    workspace_id: WorkspaceId,
    run_id: RunId,
    saved: i64,
    unsaved: Vec<String>,
    analysed: Option<(Analysis, Cost)>,
}

impl Journal {
    /// Reads the journal of the conversation.
    pub fn select(job: &Job, run_id: &RunId) -> Statement {
        sql!(
            "SELECT entry FROM conversation_journal WHERE workspace_id = :workspace_id AND conversation_id = :conversation_id ORDER BY place",
            workspace_id = &job.workspace_id,
            conversation_id = run_id
        )
    }

    /// The journal to continue, and the inputs it contains.
    pub fn read(job: &Job, run_id: &RunId, rows: &Rows) -> Result<(Self, Vec<JournalEntry>), Failure> {
        let (mut inputs, mut analysed) = (Vec::new(), None);
        for row in rows.iter() {
            match row.json("entry")? {
                Entry::Input(one) => inputs.push(one),
                Entry::Calling { .. } => {}
                Entry::Analysed { analysis, spent } => analysed = Some((analysis, spent)),
            }
        }
        let saved = i64::try_from(rows.values.len()).unwrap_or(i64::MAX);
        let journal = Self {
            workspace_id: job.workspace_id.clone(),
            run_id: run_id.clone(),
            saved,
            unsaved: Vec::new(),
            analysed,
        };
        Ok((journal, inputs))
    }

    /// Adds an input.
    pub fn add_input(&mut self, entry: &JournalEntry) {
        self.add(&Entry::Input(entry.clone()));
    }

    /// Adds that a tool is about to be called.
    pub fn add_tool_call(&mut self, id: &str, name: &str) {
        self.add(&Entry::Calling { id: id.to_owned(), name: name.to_owned() });
    }

    /// Adds the analysis and its cost.
    pub fn add_analysis(&mut self, analysis: &Analysis, spent: Cost) {
        self.add(&Entry::Analysed { analysis: analysis.clone(), spent });
    }

    /// The analysis, if an earlier attempt has made it.
    pub fn analysed(&self) -> Option<(Analysis, Cost)> {
        self.analysed.clone()
    }

    /// Whether there are entries that are not stored.
    pub fn is_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// The statements that store new entries. Positions are unique: of two processes that assume to hold the lease, one
    /// fails.
    pub fn save(&mut self) -> Vec<Statement> {
        let unsaved = std::mem::take(&mut self.unsaved);
        lists(unsaved).into_iter().map(|list| self.insert(list)).collect()
    }

    /// Deletes the journal after the conversation.
    pub fn delete(&self) -> Statement {
        sql!(
            "DELETE FROM conversation_journal WHERE workspace_id = :workspace_id AND conversation_id = :conversation_id",
            workspace_id = &self.workspace_id,
            conversation_id = &self.run_id
        )
    }

    fn add(&mut self, entry: &Entry) {
        // Serialising our own types cannot fail.
        self.unsaved.push(serde_json::to_string(entry).unwrap_or_default());
    }

    fn insert(&mut self, list: Vec<String>) -> Statement {
        let first = self.saved;
        self.saved += i64::try_from(list.len()).unwrap_or(0);
        sql!(
            "INSERT INTO conversation_journal (workspace_id, conversation_id, place, entry)
             SELECT :workspace_id, :conversation_id, CAST(:first AS INTEGER) + key, value FROM json_each(:entries)",
            workspace_id = &self.workspace_id,
            conversation_id = &self.run_id,
            first = first,
            entries = serde_json::json!(list).to_string()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows survive an upgrade: a run that an earlier version started continues from that version's rows.
    #[test]
    fn rows_of_earlier_versions_are_read_and_written_unchanged() {
        let spent = r#""spent":{"input_tokens":3,"output_tokens":2,"uncounted_answers":0,"microusd":1}"#;
        for input in [
            r#"{"kind":"caller_reply","reply":{"text":"Hello","hang_up":false}}"#,
            r#"{"kind":"assistant_reply","reply":{"kind":"say","text":"Good morning"}}"#,
            r#"{"kind":"tool_result","id":"call_1","text":"free","is_error":false}"#,
            r#"{"kind":"ruling","ruling":{"passed":true,"matched_index":1,"reason":"It was said."}}"#,
            r#"{"kind":"cost_limit"}"#,
            r#"{"kind":"model_failed","reason":"It did not answer."}"#,
        ] {
            let row = format!(r#"{{"kind":"told","input":{input},{spent}}}"#);
            let entry: Entry = serde_json::from_str(&row).unwrap();
            assert_eq!(serde_json::to_string(&entry).unwrap(), row);
        }
        let row = r#"{"kind":"calling","id":"call_1","name":"find_slot"}"#;
        let entry: Entry = serde_json::from_str(row).unwrap();
        assert_eq!(serde_json::to_string(&entry).unwrap(), row);
    }
}

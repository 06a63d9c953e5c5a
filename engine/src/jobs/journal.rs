//! The journal of a simulated conversation: its inputs in their order, so that another process can replay them and go
//! on. A tool call stands in it before its request goes out, and its result before anything follows from it: an
//! interruption repeats no call whose result is known, and one whose result is not known goes out under its old id.
use serde::{Deserialize, Serialize};

use super::Failure;
use crate::live::journal::lists;
use crate::ports::statement::{Rows, Statement};
use crate::simulation::Input;
use crate::sql;
use crate::storage::calls::Analysis;
use crate::storage::cost::Cost;
use crate::storage::jobs::Job;

/// One thing a conversation was told, and what finding it out cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// What it was told.
    pub input: Input,
    /// What the models asked for it have cost.
    pub spent: Cost,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Entry {
    JournalEntry(JournalEntry),
    /// A tool is about to be called.
    Calling {
        id: String,
        name: String,
    },
    /// The conversation is over and was looked into.
    Analysed {
        analysis: Analysis,
        spent: Cost,
    },
}

/// The journal of one conversation.
pub struct Journal {
    workspace_id: String,
    conversation_id: String,
    saved: i64,
    unsaved: Vec<String>,
    analysed: Option<(Analysis, Cost)>,
}

impl Journal {
    /// Reads the journal of the conversation.
    pub fn select(job: &Job, conversation_id: &str) -> Statement {
        sql!(
            "SELECT entry FROM conversation_journal WHERE workspace_id = ?1 AND conversation_id = ?2 ORDER BY place",
            &job.workspace_id,
            conversation_id
        )
    }

    /// The journal to go on with, and what it says already.
    pub fn read(job: &Job, conversation_id: &str, rows: &Rows) -> Result<(Self, Vec<JournalEntry>), Failure> {
        let (mut told, mut analysed) = (Vec::new(), None);
        for row in rows.iter() {
            match row.json("entry")? {
                Entry::JournalEntry(one) => told.push(one),
                Entry::Calling { .. } => {}
                Entry::Analysed { analysis, spent } => analysed = Some((analysis, spent)),
            }
        }
        let saved = i64::try_from(rows.values.len()).unwrap_or(i64::MAX);
        let journal = Self {
            workspace_id: job.workspace_id.clone(),
            conversation_id: conversation_id.to_owned(),
            saved,
            unsaved: Vec::new(),
            analysed,
        };
        Ok((journal, told))
    }

    /// Takes down what the conversation is told.
    pub fn told(&mut self, told: &JournalEntry) {
        self.take_down(&Entry::JournalEntry(told.clone()));
    }

    /// Takes down that a tool is about to be called.
    pub fn calling(&mut self, id: &str, name: &str) {
        self.take_down(&Entry::Calling { id: id.to_owned(), name: name.to_owned() });
    }

    /// Takes down what the conversation was about, and what finding that out has cost.
    pub fn looked_into(&mut self, analysis: &Analysis, spent: Cost) {
        self.take_down(&Entry::Analysed { analysis: analysis.clone(), spent });
    }

    /// What the conversation was about, if that was found out before.
    pub fn analysed(&self) -> Option<(Analysis, Cost)> {
        self.analysed.clone()
    }

    /// Whether something is not on disk yet.
    pub fn is_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// What puts the rest on disk. Each place is taken once: of two that believe to hold the lease,
    /// one fails.
    pub fn save(&mut self) -> Vec<Statement> {
        let unsaved = std::mem::take(&mut self.unsaved);
        lists(unsaved).into_iter().map(|list| self.insert(list)).collect()
    }

    /// Forgets the journal: the conversation is over.
    pub fn forget(&self) -> Statement {
        sql!(
            "DELETE FROM conversation_journal WHERE workspace_id = ?1 AND conversation_id = ?2",
            &self.workspace_id,
            &self.conversation_id
        )
    }

    fn take_down(&mut self, entry: &Entry) {
        // A value of ours always serialises.
        self.unsaved.push(serde_json::to_string(entry).unwrap_or_default());
    }

    fn insert(&mut self, list: Vec<String>) -> Statement {
        let first = self.saved;
        self.saved += i64::try_from(list.len()).unwrap_or(0);
        sql!(
            "INSERT INTO conversation_journal (workspace_id, conversation_id, place, entry)
             SELECT ?1, ?2, CAST(?3 AS INTEGER) + key, value FROM json_each(?4)",
            &self.workspace_id,
            &self.conversation_id,
            first,
            serde_json::json!(list).to_string()
        )
    }
}

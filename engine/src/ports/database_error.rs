//! Why a batch of statements did not run.

/// Why a batch did not run. Its text is private: it never reaches a client.
#[derive(Debug, Clone, PartialEq)]
pub enum DatabaseError {
    /// A CHECK, UNIQUE, NOT NULL or foreign key refused a statement; SQLite's own sentence, such as
    /// `UNIQUE constraint failed: tools.workspace_id, tools.name`.
    Constraint(String),
    /// A row lacks a column or holds another type: the code and the schema disagree.
    Shape(String),
    /// The database did not answer, is full, or failed; whether the batch was committed is unknown.
    Unavailable(String),
}

impl DatabaseError {
    /// Whether a constraint whose sentence contains `what` refused the batch.
    pub fn is_constraint(&self, what: &str) -> bool {
        matches!(self, Self::Constraint(sentence) if sentence.contains(what))
    }
}

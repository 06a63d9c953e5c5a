/// Why a batch of statements failed. The text is private and never reaches a client.
#[derive(Debug, Clone, PartialEq)]
pub enum DatabaseError {
    /// A CHECK, UNIQUE, NOT NULL or foreign key constraint failed; SQLite's message, such as
    /// `UNIQUE constraint failed: tools.workspace_id, tools.name`.
    Constraint(String),
    /// A row lacks a column or has another type: code and schema disagree.
    Shape(String),
    /// A read was interrupted: it took longer than [`LONG_READ_MS`](crate::base::limits::LONG_READ_MS).
    TooLong,
    /// A read was not begun: too many that can be long wait already.
    TooManyWait,
    /// The database did not respond, is full, or failed; whether the batch was committed is unknown.
    Unavailable(String),
}

impl DatabaseError {
    /// Whether a constraint failed whose message contains `what`.
    pub fn is_constraint(&self, what: &str) -> bool {
        matches!(self, Self::Constraint(sentence) if sentence.contains(what))
    }
}

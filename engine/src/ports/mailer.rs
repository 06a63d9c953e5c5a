//! Outgoing mail, on hosts that can send it themselves.
use super::{BoxFuture, Port};

/// A mail in plain text to one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingMail {
    /// The address, without a name.
    pub to: String,
    /// One line.
    pub subject: String,
    /// Lines end with `\n`.
    pub text: String,
    /// Deadline of the whole exchange, from name resolution to the server's last word.
    pub deadline_ms: u64,
}

/// Sends mail.
///
/// 1. `Ok` means that the server took the mail over.
/// 2. The host knows the sender and the server from the settings, and takes care that no
///    field adds a header or a recipient.
/// 3. The error is one line for the log and contains no password.
pub trait Mailer: Port {
    /// Sends a mail once.
    fn send(&self, mail: OutgoingMail) -> BoxFuture<'_, Result<(), String>>;
}

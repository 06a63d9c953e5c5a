//! What every page of the dashboard knows of its request, and how a page is declared.
use serde_json::Value;

pub use crate::storage::accounts::Role;

/// What every page knows of its request.
pub struct Frame {
    /// The name of the workspace that is shown.
    pub workspace_name: String,
    /// Its id.
    pub workspace_id: String,
    /// The e-mail address of the person.
    pub person_email: String,
    /// What the person may do in the workspace.
    pub role: Role,
    /// Such as `/dashboard/calls`.
    pub path: String,
    /// The query of the page's address, decoded.
    pub query: Vec<(String, String)>,
    /// The value of `_csrf` in every form.
    pub csrf: String,
    /// The value of `_once` in forms that make something: sent again as it was, such a form does nothing twice.
    pub once: String,
    /// The time of the request.
    pub now_ms: i64,
    /// `https://host`, for snippets.
    pub origin: String,
    /// The API's error object of a form that failed.
    pub problem: Option<Value>,
    /// After a conflict, the resource as it was when the person read it; null where it is kept no more.
    pub base: Value,
    /// What was typed into it.
    pub typed: Vec<(String, String)>,
    /// The carriers with which the operator has an account.
    pub carriers: Vec<&'static str>,
    /// The providers of models and speech, and the defaults.
    pub provided: Provided,
    /// Whether the service can send mail. Without it, links are handed over, and codes stand in the server's log.
    pub has_mail: bool,
    /// Whether the browser has the stylesheet.
    pub has_style: bool,
    /// What was done, to say at the top of the page.
    pub notice: Option<String>,
    /// The answer of an operation which shows something once: a created key, the test of a tool.
    pub secret_once: Option<Value>,
    /// Where the lists continue that the page shows in parts: the address's parameter, see [`Read::after`], and its value.
    pub continues: Vec<(String, String)>,
    /// The schemas of the operations that the page names in [`Page::forms`]: of the body, or of a read's query.
    pub schemas: Vec<(&'static str, Value)>,
}

/// What the operator has configured for assistants.
pub struct Provided {
    /// The fields of an assistant that may be empty, and what the server puts there; empty where it has nothing.
    pub defaults: Vec<(&'static str, String)>,
    /// The providers of models.
    pub models: Vec<String>,
    /// The providers of speech, beside the built-in voices.
    pub speech: Vec<String>,
}

/// A page: where it is, what it reads, how it looks. Its reads run in order, as operations of the table, in the
/// workspace of the session.
pub struct Page {
    /// Such as `/dashboard/calls/{id}`.
    pub path: &'static str,
    /// The title of the browser's window.
    pub title: &'static str,
    /// What it shows.
    pub reads: &'static [Read],
    /// The operations whose schemas its forms are made from.
    pub forms: &'static [&'static str],
    /// How it looks, given what was read, in order.
    pub render: fn(&Frame, &[Value]) -> maud::Markup,
}

/// One operation that a page reads with. Its path values are taken from the page's address by their names.
pub struct Read {
    /// The operation's id, such as `get_call`.
    pub operation: &'static str,
    /// Which names of the page's query pass to it.
    pub query: &'static [&'static str],
    /// What is passed unless the page's address says otherwise; `{name}` stands for a path value of the page.
    pub fixed: &'static [(&'static str, &'static str)],
    /// The parameter of the page's address that says after which row the list goes on; empty for one that is shown as far
    /// as its first part goes.
    pub after: &'static str,
}

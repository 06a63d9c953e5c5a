//! A workspace's rows in a form that is equal in every database, read and written page by page.
//!
//! [`TABLES`] are the tables with rows of workspaces, in an order in which referenced rows come first. [`Window`] reads a
//! page of a table, [`Page`] is its form outside a database, and [`Page::insert`] checks a page that somebody else may have
//! written and writes it; [`Page::check`] checks rows that come from another host. [`Sum`] tells whether two databases have the same rows. [`Keys`] deletes rows.
//!
//! Numbers that mean something only in one database (a call's `seq`, the id of a group of calls) stay behind: the next
//! database assigns its own in the same order, and references by number are replaced by the unique columns of their row.
mod keys;
/// D1 refuses the pragma functions that tell of indexes and foreign keys (cloudflare/workerd#884), so this is compiled in.
#[rustfmt::skip]
mod known;
mod page;
mod rules;
mod special;
mod strangers;
mod sum;
mod tables;
mod window;
mod write;

pub use self::keys::Keys;
pub use self::known::{SCHEMA, TABLES};
pub use self::page::Page;
pub(crate) use self::page::{ROWS_MAX, at_most};
pub use self::rules::{EMPTY, Rule, is_followed, rule_of};
pub use self::special::AWAY;
pub use self::strangers::OWNED;
pub use self::sum::Sum;
pub use self::tables::{ByNumber, Column, Kind, Table};
pub use self::window::Window;
pub use self::write::{NAMES_A_STRANGER, ROW_BYTES_MAX, Wrong};

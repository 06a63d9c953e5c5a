//! A workspace's rows in a form that is equal in every database, read and written page by page.
//!
//! [`tables`] reads which tables have rows of workspaces, in an order in which referenced rows come first. [`Window`] reads
//! a page of a table, [`Page`] is its form outside a database, and [`Page::insert`] checks a page that somebody else may
//! have written and writes it. [`Sum`] tells whether two databases have the same rows.
//!
//! Numbers that mean something only in one database (a call's `seq`, the id of a group of calls) stay behind: the next
//! database assigns its own in the same order, and references by number are replaced by the unique columns of their row.
mod page;
mod strangers;
mod sum;
mod tables;
mod window;
mod write;

pub use self::page::Page;
pub use self::strangers::OWNED;
pub use self::sum::Sum;
pub use self::tables::{ByNumber, Column, Kind, Table, tables};
pub use self::window::Window;
pub use self::write::{NAMES_A_STRANGER, ROW_BYTES_MAX, Wrong};

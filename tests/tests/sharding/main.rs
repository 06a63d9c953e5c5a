//! More workspaces than fit in one D1 database (ARCHITECTURE.md, "More than one database"): several databases as shards, a
//! directory, and workspaces that move. `product`, `outages` and `turns` test requests and jobs that find their database, `between`
//! workspaces that move from one to another. All others are about moves to another host, or about pages, which both kinds of moves
//! have.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests are tests: they panic when something is wrong, and print measurements"
)]

mod arriving;
mod arriving_shards;
mod between;
mod closing;
mod cluster;
mod crafted_files;
mod crafted_limits;
mod described;
mod dying;
mod frozen;
mod furnished;
mod growth;
mod handing_over;
mod lost_writes;
mod once;
mod operators;
mod outages;
mod pages;
mod product;
mod rules;
mod same;
mod schema;
mod size;
mod turns;

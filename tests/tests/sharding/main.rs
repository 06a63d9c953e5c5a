//! A prototype of the plan for more workspaces than fit in one D1 database (ARCHITECTURE.md, "More than one database"):
//! several databases as shards, a directory, and workspaces that move while requests arrive. None of this is in the product.
//! The tests make sure that the product allows it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests are tests: they panic when something is wrong, and print measurements"
)]

mod cluster;
mod growth;
mod mover;
mod moving;
mod schema;
mod size;

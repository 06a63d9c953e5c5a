//! The plan for more workspaces than one D1 database holds (ARCHITECTURE.md, "More than one database"), tried
//! out: several databases as shards, a directory, and workspaces that move while requests arrive. None of this
//! is in the product; what the tests hold is that the product leaves the door open.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests are tests: they panic when something is wrong, and print what they measure"
)]

mod cluster;
mod growth;
mod mover;
mod moving;
mod schema;
mod size;

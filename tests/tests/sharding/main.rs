//! A prototype of the plan for more workspaces than fit in one D1 database (ARCHITECTURE.md, "More than one database"):
//! several databases as shards, a directory, and workspaces that move while requests arrive. Of moves, the product has the
//! pages in which the rows of a workspace move; the tests make sure that it allows the rest. `product`,
//! `outages` and `turns` test what is in the product: requests and jobs that find their database.
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
mod outages;
mod pages;
mod product;
mod schema;
mod size;
mod turns;

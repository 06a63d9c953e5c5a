//! The binary on one machine, as its operator has it: commands, their messages, stopping.
#![allow(missing_docs, clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test")]
mod command_line;
mod doctor;
mod messages;
mod moving;
mod said;
mod stopping;
mod tls;
mod upgrades;
mod versions;

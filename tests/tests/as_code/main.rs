//! Assistants as code: `sidetone pull`, `diff`, `apply` and `test` with a folder of files and the real binary.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]
mod applying;
mod large;
mod matching;
mod meanwhile;
mod pulling;
mod support;
mod testing;

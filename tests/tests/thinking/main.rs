//! Runs on models of a provider, with tools, knowledge, a judge and webhooks: what happened is what the
//! call log, the evaluations, the costs and the events say. On the host `SIDETONE_TEST_HOST` names; the
//! provider, the tools' endpoint and the receiver are small servers of the test.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, reason = "a test says so by failing, and which seed it was")]
mod batch;
mod models_that_fail;
mod receivers_that_hang;
mod seeded;
mod support;
mod taken_over;
mod tools_that_fail;

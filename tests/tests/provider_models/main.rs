//! Runs on a provider's models, with tools, knowledge, a judge and webhooks: call log, evaluations, costs and events match
//! what happened. On the host in `SIDETONE_TEST_HOST`; the
//! provider, the tools' endpoint and the receiver are small servers in the test.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, reason = "prints the seed of a failure")]
mod batch;
mod models_that_fail;
mod receivers_that_hang;
mod seeded;
mod spending;
mod support;
mod taken_over;
mod tools_that_fail;

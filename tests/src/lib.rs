//! Shared pieces of the test suites.
pub mod load;
pub mod process;

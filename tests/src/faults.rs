//! Planned faults: a seed decides in advance what fails and when. The same plan works on the Sandbox (database and hints)
//! and on workerd (`tests/worker/faulty.mjs`).
pub mod database;
pub mod endpoint;
pub mod harness;
pub mod plan;
pub mod until_stalled;

pub use database::FaultyDatabase;
pub use endpoint::Endpoint;
pub use harness::{Counts, FaultHarness};
pub use plan::{FaultPlan, HintFault, Moment, StorageFault};
pub use until_stalled::until_stalled;

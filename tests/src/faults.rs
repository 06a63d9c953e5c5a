//! Planned faults: a seed decides in advance what fails and when. The same plan applies to the Sandbox (its database and
//! hints) and to workerd (`tests/worker/faulty.mjs`).
pub mod database;
pub mod endpoint;
pub mod plan;
pub mod rig;

pub use database::FaultyDatabase;
pub use endpoint::Endpoint;
pub use plan::{FaultPlan, HintFault, Moment, StorageFault};
pub use rig::{Counts, Rig};

//! The limits of the service, each with its unit at the end of its name. A limit that one module alone knows stands there:
//! those of a conversation in `conversation/limits.rs`, of a tool's schema in `base/tool_parameters.rs`, of an evaluation in
//! `simulation/evaluation.rs`. `docs/settings-and-limits.md` has all that a user or an operator can reach;
//! `tests/limits/` compares it with these constants.
mod accounts;
mod following;
mod jobs;
mod live;
mod models;
mod moving;
mod recordings;
mod requests;
mod resources;
mod retention;
mod shards;
mod simulations;
mod speech;
mod telephone;
mod traces;
mod values;
mod webhooks;

pub use accounts::*;
pub use following::*;
pub use jobs::*;
pub use live::*;
pub use models::*;
pub use moving::*;
pub use recordings::*;
pub use requests::*;
pub use resources::*;
pub use retention::*;
pub use shards::*;
pub use simulations::*;
pub use speech::*;
pub use telephone::*;
pub use traces::*;
pub use values::*;
pub use webhooks::*;

//! Shared code of the test suites. A [`World`] is one service, in memory or behind a socket, with a workspace for the test. A
//! [`Reply`] checks the properties that all responses share.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "this crate is test support: a test that cannot continue must panic"
)]

pub mod blobs;
pub mod browser;
pub mod call;
pub mod carrier_samples;
pub mod choices;
pub mod compare;
pub mod counted;
pub mod direct_access;
pub mod dtmf;
pub mod edge;
pub mod example;
pub mod fakes;
pub mod faults;
pub mod follower;
pub mod host;
pub mod input_logs;
pub mod live_client;
pub mod load;
pub mod meanwhile;
pub mod native;
pub mod process;
pub mod receiver;
pub mod recordings;
pub mod reply;
pub mod until;
pub mod visitor;
pub mod wire;
pub mod world;

pub use browser::Browser;
pub use call::Call;
pub use choices::Choices;
pub use live_client::LiveClient;
pub use reply::{Reply, ToolReply};
pub use until::until;
pub use world::{Created, World};

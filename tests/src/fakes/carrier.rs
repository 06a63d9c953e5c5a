//! Fakes for telephone carriers: one server, and for each carrier a [`Wire`] that implements its protocol.
//!
//! A scenario starts a [`CarrierServer`], passes its settings to a service, sets the service's address, and then plays the
//! other end of each call with a [`Phone`]. The called number selects the fake's behaviour: see [`BEHAVIOURS`].
pub mod all;
mod forgery;
mod http;
mod line;
mod mulaw;
mod numbers;
mod phone;
#[cfg(test)]
mod plain;
pub mod plivo;
mod server;
mod speaker;
pub mod telnyx;
pub mod twilio;
pub mod vonage;
pub mod wire;

use sidetone::system::SystemClock;
use sidetone_engine::ports::Clock as _;

pub use all::{
    Carriers, PROVIDER_WITHOUT_PRICES, PROVIDERS, RATE_MICROUSD, default_account, is_default_carrier,
};
pub use forgery::Forgery;
pub use line::{Closed, OpenError, handshake};
pub use numbers::{BEHAVIOURS, behaviour};
pub use phone::{HungUp, Phone};
pub use server::{CarrierServer, Seen};
pub use speaker::Cleared;
pub use wire::{
    Answerer, ApiReply, ApiRequest, Behaviour, CallEvent, CallbackRequest, Command, Detection, EndKind,
    FromService, Instruction, MediaWire, PhoneCall, Public, Told, Wire, WireMessage,
};

/// The time of this machine, in seconds since 1970.
pub(crate) fn clock_s() -> i64 {
    SystemClock.now_ms().div_euclid(1_000)
}

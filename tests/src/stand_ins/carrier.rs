//! Stand-ins for telephone carriers: one server, and for each carrier a [`Wire`] that speaks as it does.
pub mod plivo;
pub mod telnyx;
pub mod twilio;
pub mod vonage;
pub mod wire;

pub use wire::{
    ApiReply, ApiRequest, Behaviour, CallEvent, CallbackRequest, Command, EndKind, FromService, Instruction,
    MediaMessage, MediaWire, PhoneCall, Public, Wire,
};

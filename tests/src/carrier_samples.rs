//! What the service says to carriers and what their stand-ins say to it, as data for the carriers' own libraries to
//! judge (`tests/clients/carrier_*.py`).
pub mod plivo;
//! What the engine and the stand-ins say in each carrier's language, for the carriers' own SDKs to judge.
pub mod twilio;
//! What the service and the carriers' stand-ins say to each other, for the carriers' own software to judge
//! (`tests/clients/carrier_*.py`).
pub mod telnyx;
//! What goes between the service and telephone carriers, for the carriers' own SDKs to look at (`clients/carrier_*`).
pub mod vonage;

//! What the service and the carriers' fakes say to each other, for the carriers' own software to judge
//! (`tests/clients/carrier_*.py`).
pub mod plivo;
pub mod telnyx;
pub mod twilio;
pub mod vonage;

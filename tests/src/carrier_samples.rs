//! Messages between the service and the fakes for carriers, validated with the carriers' own software
//! (`tests/clients/carrier_*.py`).
pub mod plivo;
pub mod telnyx;
pub mod twilio;
pub mod vonage;

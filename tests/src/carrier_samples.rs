//! What goes between the service and telephone carriers, for the carriers' own SDKs to look at (`clients/carrier_*`).
pub mod vonage;

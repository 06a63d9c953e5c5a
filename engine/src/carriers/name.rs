//! The names of the carriers.

crate::words! {
    /// A telephone carrier.
    #[allow(missing_docs, reason = "the names say it")]
    #[schemars(rename = "Provider")]
    json CarrierName {
        Twilio = "twilio",
        Telnyx = "telnyx",
        Plivo = "plivo",
        Vonage = "vonage",
    }
}

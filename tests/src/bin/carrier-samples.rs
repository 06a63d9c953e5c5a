//! Samples of each carrier's language, as one JSON object: what `tests/clients/carriers.sh` has the carriers' own
//! software look at.
#![allow(clippy::print_stdout, reason = "that is what it is for")]
use serde_json::json;
use sidetone_tests::carrier_samples::{plivo, telnyx, twilio, vonage};

fn main() {
    let samples = json!({
        "twilio": twilio::samples(),
        "telnyx": telnyx::samples(),
        "plivo": plivo::samples(),
        "vonage": vonage::samples(),
    });
    println!("{samples}");
}

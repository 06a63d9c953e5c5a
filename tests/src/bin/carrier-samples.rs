//! Prints samples of each carrier's messages as one JSON object. `tests/clients/carriers.sh` validates them with the carriers'
//! own software.
#![allow(clippy::print_stdout, reason = "printing is its purpose")]
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

//! A desk with a number at each of the four carriers, as the benchmarks of telephones use it.
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sidetone_tests::fakes::carrier::plivo::PlivoWire;
use sidetone_tests::fakes::carrier::telnyx::TelnyxWire;
use sidetone_tests::fakes::carrier::twilio::TwilioWire;
use sidetone_tests::fakes::carrier::{CarrierServer, Carriers, Phone, Wire};
use sidetone_tests::process::Client;

/// The secret that signs URLs for carriers.
const SECRET: &str = "a secret of the benchmark's, long enough for anybody";

/// Settings of a service with an account at each carrier.
pub fn settings() -> Vec<(&'static str, String)> {
    let mut settings = Carriers::shared().settings();
    settings.push(("SIDETONE_SECRET", SECRET.to_owned()));
    settings
}

/// An assistant with a number at each carrier, in a workspace that allows this number of concurrent calls: the assistant's
/// id, and the numbers in the order of [`wires`].
pub fn desk(client: &mut Client, calls_at_once: usize) -> (String, Vec<String>) {
    client.expect(200, "PATCH", "/workspace", Some(&json!({ "calls_at_once": calls_at_once })));
    let assistant = json!({"name": "Front desk", "instructions": "Be kind.", "voice": "builtin/tone"});
    let assistant = client.expect(201, "POST", "/assistants", Some(&assistant));
    let assistant_id = assistant["id"].as_str().expect("an id").to_owned();
    let bind = |(nth, (carrier, _)): (usize, &(&CarrierServer, Arc<dyn Wire>))| {
        let number = format!("+4420700000{nth}7");
        let body = json!({"assistant_id": assistant_id, "provider": carrier.provider()});
        client.expect(200, "PUT", &format!("/numbers/{number}"), Some(&body));
        number
    };
    let numbers = wires().iter().enumerate().map(bind).collect();
    (assistant_id, numbers)
}

/// Each carrier's fake and protocol.
pub fn wires() -> [(&'static CarrierServer, Arc<dyn Wire>); 4] {
    let carriers = Carriers::shared();
    [
        (carriers.get("twilio"), Arc::new(TwilioWire)),
        (carriers.get("telnyx"), Arc::new(TelnyxWire)),
        (carriers.get("plivo"), Arc::new(PlivoWire)),
        (carriers.get("vonage"), carriers.vonage.clone()),
    ]
}

/// A call that the assistant with this id places, from this number at the carrier of [`wires`] that follows from the call's own,
/// and that is answered.
#[allow(dead_code, reason = "for benchmarks whose assistants call")]
pub fn answered(client: &mut Client, call: usize, assistant_id: &str, from: &str) -> Phone {
    let (carrier, _) = &wires()[call % 4];
    let to = format!("+4477{call:06}7");
    let body = json!({"assistant_id": assistant_id, "to": to, "from": from});
    client.expect(201, "POST", "/calls/outbound", Some(&body));
    let mut phone = carrier.rings(&to);
    phone.ring();
    phone.answer();
    phone
}

/// The quantile `share` (0 to 1) of the times, in microseconds.
pub fn quantile_us(times: &[Duration], share: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    times.get((last as f64 * share) as usize).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
}

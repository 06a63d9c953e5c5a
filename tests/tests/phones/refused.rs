//! Orders that the carrier rejects, and orders with an unknown result.
use std::time::Instant;

use serde_json::json;

use crate::support::{Desk, a_number};

with_each_carrier!(
    a_rejected_order_ends_the_call,
    a_number_that_the_carrier_does_not_own_is_the_operators_fault,
    an_unknown_result_is_settled_by_a_callback,
    a_replayed_error_is_marked_as_replayed,
    a_late_answer_belongs_to_one_order,
    requests_are_checked_before_the_carrier_is_asked,
);

fn a_rejected_order_ends_the_call(provider: &'static str) {
    let desk = Desk::new(provider);
    for (ending, reasons) in [
        ("0400", &["unreachable", "carrier_refused"][..]),
        ("0401", &["carrier_refused"]),
        ("0429", &["carrier_refused"]),
    ] {
        let to = a_number(ending);
        let refusal = desk.order(&to).refused("carrier_rejected");
        let details = &refusal["error"]["details"];
        assert_eq!(details["provider"], provider, "{refusal:?}");
        for named in ["carrier_code", "carrier_message"] {
            assert!(details[named].as_str().is_some_and(|text| !text.is_empty()), "{named} of {refusal:?}");
        }
        assert_eq!(desk.orders(&to), 1, "one order: {ending}");
        let call = desk.calls().into_iter().find(|call| call["to"] == to).expect("a row");
        let call = desk.over(call["id"].as_str().unwrap());
        desk.expect(
            &call,
            &json!({"outcome": "failed", "from": desk.number, "provider": provider, "answered_at": null}),
        );
        assert!(reasons.contains(&call["ended_reason"].as_str().unwrap()), "{ending}: {call}");
        assert_ne!(call["fault"], "none", "{call}");
    }
}

fn a_number_that_the_carrier_does_not_own_is_the_operators_fault(provider: &'static str) {
    let desk = Desk::new(provider);
    let to = a_number("0403");
    desk.order(&to).refused("carrier_rejected");
    let call = desk.over(desk.only_call()["id"].as_str().unwrap());
    desk.expect(&call, &json!({"outcome": "failed", "ended_reason": "carrier_refused", "fault": "operator"}));
}

fn an_unknown_result_is_settled_by_a_callback(provider: &'static str) {
    let desk = Desk::new(provider);
    for ending in ["0500", "0201", "0444"] {
        let to = a_number(ending);
        desk.order(&to).refused("carrier_timeout");
        let call = desk.calls().into_iter().find(|call| call["to"] == to).expect("a row");
        desk.expect(&call, &json!({"status": "queued", "outcome": null, "ended_at": null}));
        let id = call["id"].as_str().unwrap();
        // The carrier had accepted the call.
        let mut phone = desk.carrier.rings(&to);
        phone.ring();
        let call = desk.once(id, "ringing");
        assert_eq!(call["carrier_call_id"], phone.id(), "{ending}: {call}");
        phone.no_answer();
        desk.expect(&desk.over(id), &json!({"outcome": "no_answer", "carrier_call_id": phone.id()}));
        assert_eq!(desk.orders(&to), 1, "one order: {ending}");
    }
}

fn a_replayed_error_is_marked_as_replayed(provider: &'static str) {
    let desk = Desk::new(provider);
    let to = a_number("0500");
    let order =
        || desk.world.post_once("/calls/outbound", "once", desk.order_body(&to)).refused("carrier_timeout");
    let (first, again) = (order(), order());
    assert_eq!(
        (first.header("idempotent-replayed"), again.header("idempotent-replayed")),
        (None, Some("true"))
    );
    assert_eq!(first["error"]["details"], again["error"]["details"]);
    let arguments = json!({"data": desk.order_body(&to), "confirm": true, "idempotency_key": "once"});
    let tool = desk.world.tool("create_outbound_call", arguments).refused("carrier_timeout");
    assert!(tool.replayed, "{tool:?}");
    assert_eq!(desk.orders(&to), 1);
    // A rejected order has no stored response to replay.
    let to = a_number("0400");
    let order =
        || desk.world.post_once("/calls/outbound", "no", desk.order_body(&to)).refused("carrier_rejected");
    assert_eq!((order().header("idempotent-replayed"), order().header("idempotent-replayed")), (None, None));
    assert_eq!(desk.orders(&to), 2);
}

/// The carrier accepts the call without responding until the service gives up. The call may still be
/// answered.
fn a_late_answer_belongs_to_one_order(provider: &'static str) {
    let desk = Desk::new(provider);
    let to = a_number("0408");
    let started = Instant::now();
    desk.order(&to).refused("carrier_timeout");
    assert!(started.elapsed().as_secs() < 40, "{:?}", started.elapsed());
    let id = desk.only_call()["id"].as_str().unwrap().to_owned();
    let mut phone = desk.carrier.rings(&to);
    phone.answer();
    desk.once(&id, "in_progress");
    phone.until_quiet(300);
    phone.hang_up();
    desk.expect(&desk.over(&id), &json!({"outcome": "completed", "ended_reason": "user_hung_up"}));
    assert_eq!(desk.orders(&to), 1);
}

fn requests_are_checked_before_the_carrier_is_asked(provider: &'static str) {
    let desk = Desk::new(provider);
    let seen = |to: &str| desk.orders(to);
    let to = a_number("7777");
    let with = |name: &str, value: serde_json::Value| {
        let mut body = desk.order_body(&to);
        body[name] = value;
        desk.world.post("/calls/outbound", body)
    };
    with("from", json!(a_number("0000"))).refused("validation_failed");
    with("to", json!("12")).refused("validation_failed");
    with("user_number", json!("me")).refused("validation_failed");
    with("assistant_id", json!("asst_01jd0000000000000000000000")).refused("validation_failed");
    // A number of another workspace counts as unknown.
    let other = Desk::new(provider);
    with("from", json!(other.number)).refused("validation_failed");
    desk.world
        .tool("create_outbound_call", json!({"data": desk.order_body(&to)}))
        .refused("confirmation_required");
    assert_eq!((seen(&to), desk.calls().len()), (0, 0));
}

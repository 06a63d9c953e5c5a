//! Repeated, late, out-of-order and forged callbacks: the state only moves forward.
use std::time::Duration;

use serde_json::json;
use sidetone_tests::fakes::carrier::{
    CallEvent, Carriers, EndKind, Forgery, PROVIDER_WITHOUT_PRICES, RATE_MICROUSD,
};

use crate::support::{Desk, GREETING, MOMENT_MS, a_number};

with_each_carrier!(
    repeated_callbacks_change_nothing,
    the_price_is_the_carriers_or_minutes_times_rate,
    the_end_arrives_first,
    the_end_arrives_before_the_media_socket_closes,
    a_callback_for_an_unknown_call_is_accepted_and_ignored,
    a_report_at_the_address_of_another_call_is_ignored,
    forged_callbacks_change_nothing,
    forged_announcements_are_not_answered,
);

fn repeated_callbacks_change_nothing(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.connected();
    for nth in 0..person.sent() {
        person.status_again(nth);
    }
    assert_eq!(desk.once(&id, "in_progress")["carrier_call_id"], person.id());
    assert_eq!(person.hears(), GREETING);
    person.hang_up();
    let call = desk.over(&id);
    for nth in 0..person.sent() {
        person.status_again(nth);
    }
    std::thread::sleep(Duration::from_millis(MOMENT_MS));
    assert_eq!(desk.over(&id), call, "all callbacks repeated after an hour");
}

fn the_price_is_the_carriers_or_minutes_times_rate(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.hang_up();
    desk.over(&id);
    if provider == "telnyx" {
        // The price arrives after the end, and twice.
        person.tell(&CallEvent::Priced { seconds: 5 });
        person.tell(&CallEvent::Priced { seconds: 5 });
    }
    let telephony = |call: &serde_json::Value| call["costs"]["telephony_microusd"].as_i64().unwrap();
    let call = desk.until(&id, "priced", |call| match provider {
        PROVIDER_WITHOUT_PRICES => telephony(call) == RATE_MICROUSD,
        // The price is in euro, and there is no configured rate.
        "vonage" => telephony(call) == 0,
        _ => telephony(call) > 0,
    });
    assert_eq!(call["costs"]["total_microusd"], telephony(&call), "the models are free: {call}");
    let workspace = desk.world.get("/workspace").ok().json;
    assert_eq!(workspace["spent_this_month_microusd"], telephony(&call), "{provider}");
}

fn the_end_arrives_first(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut phone) = desk.place();
    phone.hold();
    phone.ring();
    let before_the_end = phone.held();
    phone.no_answer();
    let last_first: Vec<usize> = (0..phone.held()).rev().collect();
    assert!(last_first.len() > before_the_end, "{provider} reports the end");
    phone.release_in(&last_first);
    let call = desk.over(&id);
    desk.expect(&call, &json!({"status": "ended", "outcome": "no_answer", "ended_reason": "no_answer"}));
}

fn the_end_arrives_before_the_media_socket_closes(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.tell(&CallEvent::Ended { how: EndKind::HungUp, seconds: 2 });
    desk.once(&id, "ended");
    // Audio after the end is ignored.
    person.says("Hello?");
    person.close_media();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "completed", "ended_reason": "user_hung_up", "fault": "none"}));
}

fn a_callback_for_an_unknown_call_is_accepted_and_ignored(provider: &'static str) {
    let desk = Desk::new(provider);
    let mut phone = desk.carrier.prepare_call(&a_number("1234"), &desk.number);
    for event in
        [CallEvent::Ringing, CallEvent::Answered, CallEvent::Ended { how: EndKind::HungUp, seconds: 3 }]
    {
        // Carriers repeat callbacks that are not accepted.
        if let Some(status) = phone.try_to_tell(&event) {
            let status = status.unwrap();
            assert!((200..300).contains(&status), "{provider}: {status} to {event:?}");
        }
    }
    assert!(desk.calls().is_empty());
}

fn a_report_at_the_address_of_another_call_is_ignored(provider: &'static str) {
    let desk = Desk::new(provider);
    let [(one, mut person), (other, neighbour)] = [desk.place(), desk.place()];
    person.report_for(&neighbour);
    let status = person.try_to_tell(&CallEvent::Ended { how: EndKind::Busy, seconds: 0 });
    let status = status.expect("every carrier tells the end").unwrap();
    assert!(
        (200..300).contains(&status),
        "{provider}: {status} {}",
        desk.world.log().lines().filter(|l| l.contains("ERROR")).collect::<String>()
    );
    for id in [one, other] {
        assert_ne!(desk.call(&id)["status"], "ended", "{provider}");
    }
}

/// Vonage leaves a signature out in rare cases, and sends again what is answered with a 5xx.
fn refused(provider: &str, how: Forgery) -> u16 {
    if provider == "vonage" && how == Forgery::Unsigned { 503 } else { 403 }
}

fn forged_callbacks_change_nothing(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    let before = desk.call(&id);
    for how in Forgery::ALL {
        let event = CallEvent::Ended { how: EndKind::HungUp, seconds: 1 };
        if let Some(status) = person.forge(how, &event) {
            assert_eq!(status, refused(provider, how), "{how:?}");
        }
    }
    std::thread::sleep(Duration::from_millis(MOMENT_MS));
    desk.expect(
        &desk.call(&id),
        &json!({"status": "in_progress", "ended_at": null, "costs": before["costs"]}),
    );
    person.says("When do you open on Saturday?");
    assert!(person.hears().contains("open at ten"), "the conversation continues");
    person.hang_up();
    desk.over(&id);
}

fn forged_announcements_are_not_answered(provider: &'static str) {
    let desk = Desk::new(provider);
    for how in Forgery::ALL {
        let mut phone = desk.carrier.prepare_call(&a_number("1234"), &desk.number);
        if let Some(status) = phone.forge(how, &CallEvent::Incoming) {
            assert_eq!(status, refused(provider, how), "{how:?}");
        }
        std::thread::sleep(Duration::from_millis(50));
        assert!(desk.carrier.commands(phone.id()).is_empty());
    }
    assert!(desk.calls().is_empty());
}

/// Telnyx reports its price after the end, and may correct it. The money was spent, whether or not the call was deleted
/// meanwhile.
#[test]
fn a_price_that_arrives_after_its_call_was_deleted_counts() {
    let desk = Desk::new("telnyx");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.hang_up();
    desk.over(&id);
    let spent = || desk.world.get("/workspace").ok()["spent_this_month_microusd"].as_i64().unwrap();
    let before = spent();
    assert_eq!(desk.world.delete(format!("/calls/{id}")).status, 204);
    person.tell(&CallEvent::Priced { seconds: 150 });
    let after = spent();
    assert!(after > before, "{before} {after}");
    person.tell(&CallEvent::Priced { seconds: 150 });
    assert_eq!(spent(), after, "it counts once");
    desk.world.get(format!("/calls/{id}")).refused("not_found");
}

/// A response stored under an Idempotency-Key is the call as it was: it goes with the call, the key stays.
#[test]
fn a_deleted_call_is_in_no_stored_response() {
    let desk = Desk::new("twilio");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.hang_up();
    let number = desk.over(&id)["from"].clone();
    let hang_up = || desk.world.post_once(format!("/calls/{id}/hang-up"), "once", json!({}));
    assert_eq!(hang_up().ok()["from"], number);
    assert_eq!(hang_up().ok()["from"], number, "the stored response");
    assert_eq!(desk.world.delete(format!("/calls/{id}")).status, 204);
    hang_up().refused("not_found");
    let stored = sidetone_engine::sql!(
        "SELECT 1 AS one FROM idempotency_keys WHERE instr(body, :number)",
        number = number.as_str().unwrap()
    );
    let engine = desk.world.direct_access();
    let found = sidetone_tests::direct_access::wait(engine.ports().database.read(vec![stored])).unwrap();
    assert!(found[0].is_empty());
}

/// Vonage reports two legs, the telephone's and the media socket's, with the same statuses. Only the first one is the call.
#[test]
fn events_of_vonages_second_leg_are_ignored() {
    let desk = Desk::new("vonage");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    let now_s = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    for status in ["started", "answered", "completed"] {
        let vonage = &Carriers::shared().vonage;
        let callback = vonage.socket_leg(person.call(), status, i64::try_from(now_s).unwrap());
        person.deliver(&callback.expect("the call is connected"));
    }
    std::thread::sleep(Duration::from_millis(MOMENT_MS));
    desk.expect(&desk.call(&id), &json!({"status": "in_progress", "carrier_call_id": person.id()}));
    person.hang_up();
    desk.over(&id);
}

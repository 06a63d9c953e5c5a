//! Vonage signs the body of a callback, and neither its URL nor its query: a token is good for the request that it came
//! with first, and for repetitions of that.
use sidetone_tests::fakes::carrier::{CallEvent, CallbackRequest, Carriers, Wire as _};

use crate::support::{Desk, GREETING, Person, a_number};

/// A token with another URL or body.
fn with(genuine: &CallbackRequest, method: &'static str, url: String, body: &[u8]) -> CallbackRequest {
    CallbackRequest { method, url, headers: genuine.headers.clone(), body: body.to_vec() }
}

#[track_caller]
fn assert_refused(person: &Person, replay: &CallbackRequest) {
    person.send(replay).refused("invalid_signature");
}

#[test]
fn a_carriers_retry_is_accepted_and_changes_nothing() {
    let desk = Desk::new("vonage");
    let mut person = desk.is_called();
    let announced = person.announced().body.clone();
    let retry = person.send(person.sent_callback(0));
    assert_eq!((retry.status, retry.body), (200, announced), "the same answer");
    person.tell(&CallEvent::Ringing);
    let before = desk.only_call();
    person.status_again(1);
    assert_eq!(desk.only_call(), before);
}

#[test]
fn the_token_of_an_announcement_is_good_for_no_other_request() {
    let desk = Desk::new("vonage");
    let person = desk.is_called();
    let genuine = person.sent_callback(0);
    assert_eq!(genuine.method, "GET");
    let before = desk.only_call();
    let another = "00000000-0000-4000-8000-000000000000";
    for url in [
        genuine.url.replace(person.id(), another),
        genuine.url.replace(&person.call().from[1..], &a_number("4321")[1..]),
        genuine.url.replace("/voice?", "/status?"),
        format!("{}&call=x", genuine.url),
    ] {
        assert_ne!(url, genuine.url);
        assert_refused(&person, &with(genuine, "GET", url, b""));
    }
    assert_refused(&person, &with(genuine, "POST", genuine.url.clone(), b""));
    assert_eq!(desk.only_call(), before);
    // None of that has used up the token for its own request.
    assert_eq!(person.send(genuine).status, 200);
}

#[test]
fn the_token_of_a_report_announces_no_call() {
    let desk = Desk::new("vonage");
    let (id, mut person) = desk.place();
    person.ring();
    desk.once(&id, "ringing");
    let report = person.sent_callback(0);
    assert_eq!(report.method, "POST");
    // A `GET` has no body for the token's hash.
    let announcement = format!(
        "https://sidetone.example/carriers/vonage/voice?from=447700900000&to={}&uuid=u&conversation_uuid=c",
        &desk.number[1..]
    );
    assert_refused(&person, &with(report, "GET", announcement, b""));
    let elsewhere = report.url.replace("/status", "/voice");
    assert_ne!(elsewhere, report.url);
    assert_refused(&person, &with(report, "POST", elsewhere, &report.body));
    assert_eq!(desk.only_call()["status"], "ringing");
    person.no_answer();
    desk.over(&id);
}

#[test]
fn the_token_of_a_media_socket_opens_no_other_and_reports_nothing() {
    let desk = Desk::new("vonage");
    let (id, mut person) = desk.place();
    person.pick_up();
    let (other_id, mut other) = desk.place();
    other.pick_up();
    let (url, other_url) = (person.media_url().to_owned(), other.media_url().to_owned());
    let headers = Carriers::shared().vonage.socket_headers(&url);
    person.open_socket_with(&headers);
    person.begin();
    assert_eq!(other.try_media_socket_with(&other_url, &headers), Err(403));
    assert_eq!(person.try_media_socket_with(&url, &headers), Err(409), "genuine, and used up");
    let announcement = person.sent_callback(0).url.replace("/status?", "/voice?");
    let report = CallbackRequest { method: "GET", url: announcement, headers, body: Vec::new() };
    assert_refused(&person, &report);
    assert_eq!(person.hears(), GREETING);
    person.hang_up();
    desk.over(&id);
    other.open_socket();
    other.begin();
    assert_eq!(other.hears(), GREETING);
    other.hang_up();
    desk.over(&other_id);
}

#[test]
fn of_simultaneous_requests_with_one_token_one_is_accepted() {
    let desk = Desk::new("vonage");
    let mut person = Person::new(desk.carrier.prepare_call(&a_number("1234"), &desk.number));
    person.hold();
    person.tell(&CallEvent::Incoming);
    let genuine = person.held_callback(0).clone();
    let requests: Vec<CallbackRequest> = (0..8)
        .map(|nth| {
            let another = format!("00000000-0000-4000-8000-00000000000{nth}");
            with(&genuine, "GET", genuine.url.replace(person.id(), &another), b"")
        })
        .collect();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let person = &person;
        let sent: Vec<_> = requests.iter().map(|one| scope.spawn(move || person.send(one).status)).collect();
        sent.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 403).count(), 7, "{statuses:?}");
    assert_eq!(desk.calls().len(), 1);
}

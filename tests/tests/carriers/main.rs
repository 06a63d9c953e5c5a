//! Each carrier's adapter and its fake, who were written apart from the same documents, talk to each other: every
//! request, callback and media message of a call, over real sockets. Between them stands a service of the test's own
//! that does as little as one can: it repeats what it hears.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
mod service;

use sidetone_engine::carriers::{CarrierEvent, CarrierName, Placed, Progress};
use sidetone_engine::conversation::EndedReason;
use sidetone_tests::fakes::carrier::{CallEvent, EndKind, Forgery};

use service::{Came, OURS, Service};

fn each(scenario: impl Fn(CarrierName)) {
    for provider in [CarrierName::Twilio, CarrierName::Telnyx, CarrierName::Plivo, CarrierName::Vonage] {
        scenario(provider);
    }
}

#[test]
fn a_placed_call() {
    each(|provider| {
        let service = Service::start(provider);
        let mut phone = service.accepted();
        phone.ring();
        phone.answer();
        service.talk(&mut phone);
        phone.hang_up();
        let progress = service.progress();
        assert_eq!(progress.first(), Some(&Progress::Ringing), "{progress:?}");
        let told = |came: &Came| came.events.iter().any(|event| matches!(event, CarrierEvent::Asked { .. }));
        let asked = told(&service.came.lock().unwrap());
        assert!(asked || progress.contains(&Progress::Answered), "{progress:?}");
        assert_eq!(service.ended(), EndedReason::UserHungUp);
        assert!(service.ids().iter().all(|id| id == phone.id()), "{:?} {}", service.ids(), phone.id());
    });
}

#[test]
fn a_call_that_comes_in() {
    each(|provider| {
        let service = Service::start(provider);
        let mut phone = service.server.call("+14155557777", OURS);
        phone.answer();
        service.talk(&mut phone);
        service.hang_up(&phone, true);
        assert!(phone.was_hung_up().by_command);
        // Which side it was not every carrier tells: the service knows that it asked.
        let ended = service.ended();
        assert!(
            matches!(
                ended,
                EndedReason::UserHungUp | EndedReason::AssistantEnded | EndedReason::HungUpByRequest
            ),
            "{ended:?}"
        );
        let announced = service.came.lock().unwrap().events.first().cloned();
        let Some(CarrierEvent::Incoming(call)) = announced else { panic!("{announced:?}") };
        assert_eq!((call.from.as_deref(), call.to.as_str()), (Some("+14155557777"), OURS));
        assert!(service.ids().iter().all(|id| id == phone.id()), "{:?} {}", service.ids(), phone.id());
    });
}

#[test]
fn a_call_that_is_refused() {
    each(|provider| {
        let service = Service::start(provider);
        service.came.lock().unwrap().refuses = true;
        assert!(service.server.call("+14155557777", OURS).was_refused(), "{provider:?}");
    });
}

#[test]
fn calls_that_end_before_they_begin() {
    each(|provider| {
        for (how, reasons) in [
            (EndKind::Busy, &[EndedReason::Busy][..]),
            (EndKind::NoAnswer, &[EndedReason::NoAnswer]),
            (EndKind::Declined, &[EndedReason::Declined, EndedReason::Busy]),
            (EndKind::Failed, &[EndedReason::Unreachable, EndedReason::CarrierFailed]),
            (EndKind::Canceled, &[EndedReason::Canceled]),
        ] {
            let service = Service::start(provider);
            let mut phone = service.accepted();
            phone.ring();
            phone.over(how);
            let ended = service.ended();
            assert!(reasons.contains(&ended), "{provider:?} {how:?}: {ended:?}");
        }
    });
}

#[test]
fn calls_are_called_off_while_they_ring() {
    each(|provider| {
        let service = Service::start(provider);
        let mut phone = service.accepted();
        phone.ring();
        service.hang_up(&phone, false);
        phone.was_commanded_to_end();
        phone.over(EndKind::Canceled);
        // Over is over: to ask again is no error.
        service.hang_up(&phone, false);
        assert_eq!(service.server.misspelled(), vec![]);
    });
}

#[test]
fn orders_that_are_not_taken() {
    each(|provider| {
        let service = Service::start(provider);
        for ending in ["0400", "0401", "0429"] {
            let placed = service.place(&format!("+44207000{ending}"));
            assert!(
                matches!(&placed, Placed::Rejected(no) if !no.code.is_empty() && !no.message.is_empty()),
                "{placed:?}"
            );
        }
        for ending in ["0500", "0201"] {
            let placed = service.place(&format!("+44207000{ending}"));
            assert!(matches!(placed, Placed::Unknown(_)), "{provider:?} {ending}: {placed:?}");
        }
        assert_eq!((service.server.seen().len(), service.server.misspelled()), (5, vec![]));
    });
}

#[test]
fn forgeries() {
    each(|provider| {
        let service = Service::start(provider);
        let mut phone = service.accepted();
        for how in Forgery::ALL {
            for event in [CallEvent::Ringing, CallEvent::Ended { how: EndKind::HungUp, seconds: 1 }] {
                assert!(phone.forge(how, &event).is_none_or(|status| status == 403), "{provider:?} {how:?}");
            }
            let mut incoming = service.server.prepare_call("+14155557777", OURS);
            let status = incoming.forge(how, &CallEvent::Incoming);
            assert!(status.is_none_or(|status| status == 403), "{provider:?} {how:?}: {status:?}");
        }
        assert!(service.ids().is_empty());
        phone.ring();
        assert_eq!(service.ids(), [phone.id()], "the genuine one is taken");
    });
}

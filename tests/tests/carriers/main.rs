//! Each carrier's adapter and its fake, which were written separately from the same documents, work together: every
//! request, callback and media message of a call, over real sockets. A minimal service in this test connects them; it
//! repeats the audio that it hears.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
mod service;

use sidetone_engine::carriers::{CarrierEvent, CarrierName, Placed, Progress};
use sidetone_engine::conversation::EndedReason;
use sidetone_tests::fakes::carrier::{CallEvent, EndKind, Forgery};

use service::{OURS, Observed, Service};

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
        service.converse(&mut phone);
        phone.hang_up();
        let progress = service.progress();
        assert_eq!(progress.first(), Some(&Progress::Ringing), "{progress:?}");
        let told = |observed: &Observed| {
            observed.events.iter().any(|event| matches!(event, CarrierEvent::Asked { .. }))
        };
        let asked = told(&service.observed.lock().unwrap());
        assert!(asked || progress.contains(&Progress::Answered), "{progress:?}");
        assert_eq!(service.ended(), EndedReason::UserHungUp);
        assert!(service.ids().iter().all(|id| id == phone.id()), "{:?} {}", service.ids(), phone.id());
    });
}

#[test]
fn an_incoming_call() {
    each(|provider| {
        let service = Service::start(provider);
        let mut phone = service.server.call("+14155557777", OURS);
        phone.answer();
        service.converse(&mut phone);
        service.hang_up(&phone, true);
        assert!(phone.was_hung_up().by_command);
        // Not every carrier reports which side hung up. The service knows that it sent the command.
        let ended = service.ended();
        assert!(
            matches!(
                ended,
                EndedReason::UserHungUp | EndedReason::AssistantEnded | EndedReason::HungUpByRequest
            ),
            "{ended:?}"
        );
        let announced = service.observed.lock().unwrap().events.first().cloned();
        let Some(CarrierEvent::Incoming(call)) = announced else { panic!("{announced:?}") };
        assert_eq!((call.from.as_deref(), call.to.as_str()), (Some("+14155557777"), OURS));
        assert!(service.ids().iter().all(|id| id == phone.id()), "{:?} {}", service.ids(), phone.id());
    });
}

#[test]
fn a_declined_call() {
    each(|provider| {
        let service = Service::start(provider);
        service.observed.lock().unwrap().refuses = true;
        assert!(service.server.call("+14155557777", OURS).was_refused(), "{provider:?}");
    });
}

#[test]
fn calls_that_end_before_the_answer() {
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
fn calls_are_canceled_while_ringing() {
    each(|provider| {
        let service = Service::start(provider);
        let mut phone = service.accepted();
        phone.ring();
        service.hang_up(&phone, false);
        phone.was_commanded_to_end();
        phone.over(EndKind::Canceled);
        // Hanging up again after the end is not an error.
        service.hang_up(&phone, false);
        assert_eq!(service.server.invalid_requests(), vec![]);
    });
}

#[test]
fn orders_that_the_carrier_does_not_accept() {
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
        assert_eq!((service.server.seen().len(), service.server.invalid_requests()), (5, vec![]));
    });
}

#[test]
fn forged_callbacks_are_rejected() {
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
        assert_eq!(service.ids(), [phone.id()], "the genuine callback is accepted");
    });
}

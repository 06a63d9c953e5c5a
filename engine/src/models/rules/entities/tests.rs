use super::*;
use EntityKind::*;
use proptest::prelude::*;

#[test]
fn complete_dates_become_iso() {
    assert_eq!(found("on 2027-03-12."), [(Date, "2027-03-12")]);
    assert_eq!(found("on 12 March 2027, please"), [(Date, "2027-03-12")]);
    assert_eq!(found("March 12th, 2027"), [(Date, "2027-03-12")]);
    assert_eq!(found("the 12th of Mar 2027"), [(Date, "2027-03-12")]);
    assert_eq!(found("2027-03-12T10:00:00Z"), [(Date, "2027-03-12T10:00:00Z")]);
}

#[test]
fn incomplete_dates_stay_as_written() {
    assert_eq!(found("on March 12"), [(Date, "March 12")]);
    assert_eq!(found("12/03/2027"), [(Date, "12/03/2027")]);
    assert_eq!(found("next Friday or tomorrow"), [(Date, "next Friday"), (Date, "tomorrow")]);
    assert_eq!(found("31 February 2027"), [(Date, "31 February"), (Number, "2027")]);
    assert_eq!(found("2027-13-45"), [(Code, "2027-13-45")]);
    assert_eq!(found("You may march on"), []);
}

#[test]
fn times_become_24_hours() {
    assert_eq!(
        found("at 7pm or 7:30 p.m. or 19:45 or 12 am"),
        [(Time, "19:00"), (Time, "19:30"), (Time, "19:45"), (Time, "00:00")]
    );
    assert_eq!(found("25:00"), []);
    assert_eq!(found("I am 7"), [(Number, "7")]);
}

#[test]
fn addresses_and_phones() {
    assert_eq!(found("mail Bob.O@Exämple.co.uk, or a@b"), [(Email, "Bob.O@Exämple.co.uk")]);
    assert_eq!(found("call +1 (415) 555-0123."), [(Phone, "+14155550123")]);
    assert_eq!(found("call (415) 555-0123 now"), [(Phone, "4155550123")]);
    assert_eq!(found("01 23 45 67 89"), [(Phone, "0123456789")]);
    assert_eq!(found("see https://a.example/x?y=1."), [(Url, "https://a.example/x?y=1")]);
    assert_eq!(found("order 1234567890"), [(Number, "1234567890")]);
}

#[test]
fn numbers_and_codes() {
    assert_eq!(
        found("$1,200.50 for 3, minus -5, 20% of #7"),
        [(Number, "1200.50"), (Number, "3"), (Number, "-5"), (Number, "20"), (Number, "7")]
    );
    assert_eq!(found("two of A-1234 and B12"), [(NumberWord, "2"), (Code, "A-1234"), (Code, "B12")]);
    assert_eq!(found("1,2,3 and 1.2.3"), [(Code, "1.2.3")]);
}

#[test]
fn quoted_words_are_taken_whole() {
    assert_eq!(found("note \"call 7 at noon\" and 8"), [(Quoted, "call 7 at noon"), (Number, "8")]);
}

#[test]
fn long_texts_take_linear_time() {
    assert!(entities(&"1 ".repeat(2_000)).len() > 100);
    entities(&"(".repeat(50_000));
    entities(&"1-".repeat(50_000));
}

proptest! {
    #[test]
    fn entities_are_within_the_text_and_in_order(text in r#"[a-zé0-9+@.,:"“” ()/#-]{0,60}"#) {
        let mut before = 0;
        for entity in entities(&text) {
            prop_assert!(entity.span.start >= before);
            prop_assert!(text.get(entity.span.clone()).is_some_and(|words| !words.is_empty()));
            before = entity.span.end;
        }
    }

    #[test]
    fn never_panics(text in ".{0,100}") {
        entities(&text);
    }
}

fn found(text: &str) -> Vec<(EntityKind, &'static str)> {
    entities(text).into_iter().map(|entity| (entity.kind, &*entity.value.leak())).collect()
}

use proptest::prelude::*;

use super::*;

fn spoken(source: &str) -> String {
    Speakable::new(source, "en").text().to_owned()
}

#[test]
fn plain_text_does_not_change() {
    for text in [
        "",
        "Hello there, how are you?",
        " a piece with spaces around it ",
        "3 < 5 and 3 * 4, AT&T, snake_case, 2*3, C#, a|b",
        "It costs 5-10; call +1 555 0100 at 9 a.m. (or not).",
        "Grüße aus Köln, 你好。",
        "array[0] or [so] (x)",
    ] {
        assert_eq!(spoken(text), text);
    }
}

#[test]
fn formatting_is_removed() {
    for (source, text) in [
        ("**bold**, *italic*, __bold__, _italic_, ***both***", "bold, italic, bold, italic, both"),
        ("A sentence **cut within. ", "A sentence cut within. "),
        ("~~wrong~~ `code` here", "wrong code here"),
        ("# Heading\nText", "Heading. Text"),
        ("- one\n- two,\n* three", "one. two, three"),
        ("1. one\n2. two", "1. one. 2. two"),
        ("> quoted\n> text", "quoted. text"),
        ("Before\n\n---\n\nAfter", "Before. After"),
        ("```rust\nlet x;\n```\nDone", "let x; Done"),
        ("See [our *page*](https://example.com/a_b) or ![a cat](cat.png).", "See our page or a cat."),
        ("| a | b |\n|---|---|\n| c | d |", "a , b . c , d ."),
        ("<speak>We <break time='5s'/> open &amp; close at <b>ten</b>.</speak>", "We open and close at ten."),
        ("a<b and b>c, 3 <4>, &amp", "a<b and b>c, 3 <4>, &amp"),
        ("We\u{0} open\u{7} at&nbsp;ten.", "We open at ten."),
        ("one\ntwo", "one two"),
        ("one  \t two", "one two"),
    ] {
        assert_eq!(spoken(source), text, "{source}");
    }
}

#[test]
fn emoji_are_removed() {
    assert_eq!(spoken("Hi 👋🏽 there ❤️!"), "Hi there !");
    assert_eq!(spoken("👍 Great"), "Great");
    assert_eq!(spoken("👨‍👩‍👧"), "");
}

#[test]
fn addresses_are_read_out() {
    for (source, text) in [
        ("Go to https://www.example.com/a-b/?q=1.", "Go to example dot com slash a dash b."),
        ("Go to example.com, please", "Go to example dot com, please"),
        ("<https://example.org>", "example dot org"),
        (
            "Write to jo.ann_1@mail.example.co.uk!",
            "Write to jo dot ann underscore 1 at mail dot example dot co dot uk!",
        ),
        ("**info@example.com**", "info at example dot com"),
        ("https://example.com/0123456789012345678901234567890123456789012345", "example dot com"),
        ("the end.so it is", "the end.so it is"),
        ("meet @ noon, me@home", "meet @ noon, me@home"),
    ] {
        assert_eq!(spoken(source), text, "{source}");
    }
}

#[test]
fn amounts_and_signs_are_read_out() {
    for (source, text) in [
        ("It is $29.", "It is 29 dollars."),
        (
            "$1, €5, £2.01, $0.99, $1,000.50",
            "1 dollar, 5 euros, 2 pounds and 1 penny, 99 cents, 1,000 dollars and 50 cents",
        ),
        ("$5.5 million, €3 Billion.", "5.5 million dollars, 3 billion euros."),
        ("$5.500 $5k $5-10 US$5 $", "5.500 dollars $5k $5-10 US$5 $"),
        ("5% & 10 %, #3 + 1 = 20°", "5 percent and 10 percent, number 3 plus 1 equals 20 degrees"),
    ] {
        assert_eq!(spoken(source), text, "{source}");
    }
}

#[test]
fn other_languages_keep_their_signs() {
    let source = "Das kostet **5 €**, 5% & mehr: https://example.com";
    assert_eq!(Speakable::new(source, "de").text(), "Das kostet 5 €, 5% & mehr: https://example.com");
    assert_eq!(Speakable::new("5% & more", "en-GB").text(), "5 percent and more");
}

#[test]
fn places_are_found_in_the_source() {
    let source = "See **our [page](https://example.com)** for $5 now";
    let speakable = Speakable::new(source, "en");
    assert_eq!(speakable.text(), "See our page for 5 dollars now");
    for (heard, expected) in [
        ("", ""),
        ("See", "See"),
        ("See ", "See "),
        ("See our", "See **our"),
        ("See our pa", "See **our [pa"),
        ("See our page", "See **our [page](https://example.com)**"),
        ("See our page for 5", "See **our [page](https://example.com)** for "),
        ("See our page for 5 dollars", "See **our [page](https://example.com)** for $5"),
        (speakable.text(), source),
    ] {
        assert!(speakable.text().starts_with(heard));
        assert_eq!(&source[..speakable.source_offset(heard.len())], expected, "{heard}");
    }
    assert_eq!(speakable.source_offset(9_999), source.len());
}

proptest! {
    #[test]
    fn places_are_in_order_and_between_characters(
        words in prop::collection::vec(
            prop::sample::select(&["**", "<b>", "&amp;", "\0", "[a](b)", "![x](y)", "](", "# ", "\n", "- ", " ", "é", "👍", "$5", "a@b.com", "https://c.io/d", "%", "|", "`", "<", "5", "word", "]", "[", "你"][..]),
            0..30,
        ),
        language in prop::sample::select(&["en", "de"][..]),
    ) {
        let source = words.concat();
        let speakable = Speakable::new(&source, language);
        let mut before = 0;
        for spoken in 0..=speakable.text().len() + 1 {
            let place = speakable.source_offset(spoken);
            prop_assert!(source.is_char_boundary(place) && place >= before && place <= source.len());
            before = place;
        }
        prop_assert_eq!(before, source.len());
    }

    #[test]
    fn words_do_not_change(words in prop::collection::vec("[a-zäß]{1,8}[,!?]?", 1..12), language in "[a-z]{2}") {
        let source = words.join(" ");
        let speakable = Speakable::new(&source, &language);
        prop_assert_eq!(speakable.text(), &source);
        for place in 0..=source.len() {
            prop_assert!(!source.is_char_boundary(place) || speakable.source_offset(place) == place);
        }
    }

    #[test]
    fn no_text_panics(source in "\\PC{0,60}", language in "[a-z]{0,3}") {
        let speakable = Speakable::new(&source, &language);
        prop_assert!(speakable.source_offset(source.len() / 2) <= source.len());
    }
}

use proptest::prelude::*;

use super::*;

fn parsed(pattern: &str) -> Pattern {
    Pattern::parse(pattern).unwrap_or_else(|problem| panic!("{pattern:?} {problem}"))
}

#[test]
fn reads_ecma_patterns() {
    let matches = [
        ("^a+$", "aaa"),
        (r"^\d{3}$", "123"),
        (r"^\/a\-b$", "/a-b"),
        (r"^\u0041$", "A"),
        (r"^\cJ$", "\n"),
        (r"^(?<year>\d+)$", "2024"),
        (r"^[\w.+-]{1,64}@[\w-]{1,63}\.[a-z]{2,}$", "a.b@example.com"),
        ("^.{0,500}$", "é"),
        (r"^\p{L}+$", "π"),
        ("", "anything"),
    ];
    for (pattern, text) in matches {
        assert!(parsed(pattern).is_match(text), "{pattern}");
    }
    assert!(!parsed(r"^\d$").is_match("٣"), "digits are ASCII in ECMA-262");
    assert!(!parsed("^a$").is_match("a\n"), "the end is the end");
}

#[test]
fn refuses_what_cannot_be_run_safely() {
    for pattern in [
        "(",
        "[a",
        "a{2,1}",
        "*",
        "(?=a)",
        "(?!a)b",
        "(?<!a)b",
        r"(a)\1",
        r"\k<a>",
        "(?<a",
        r"\u{110000}",
        "[",
    ] {
        assert!(Pattern::parse(pattern).is_err(), "{pattern}");
    }
    for pattern in ["(((a{100}){100}){100}){100}", r"\p{L}{10000}", "(a|b|c){100000}"] {
        assert!(Pattern::parse(pattern).err().unwrap().contains("too large"), "{pattern}");
    }
    let _ = Pattern::parse(&"(".repeat(30_000));
    let _ = Pattern::parse(&"a|".repeat(15_000));
}

#[test]
fn every_escape_is_the_character_it_names() {
    for (pattern, character) in [
        (r"\f", '\u{c}'),
        (r"\n", '\n'),
        (r"\r", '\r'),
        (r"\t", '\t'),
        (r"\v", '\u{b}'),
        (r"\0", '\0'),
        (r"\cz", '\u{1a}'),
        (r"\x41", 'A'),
        (r"\u00e9", 'é'),
        (r"\u{1F600}", '😀'),
        (r"\uD83D\uDE00", '😀'),
        (r"\/", '/'),
        (r"\-", '-'),
        (r"\<", '<'),
        (r"\_", '_'),
        (r"\§", '§'),
        (r"\ ", ' '),
        (r"\\", '\\'),
        (r"\]", ']'),
    ] {
        let text = character.to_string();
        assert!(parsed(&format!("^{pattern}$")).is_match(&text), "{pattern}");
        assert!(parsed(&format!("^[{pattern}]$")).is_match(&text), "[{pattern}]");
        assert!(!parsed(&format!("^[^{pattern}]$")).is_match(&text), "[^{pattern}]");
    }
    assert!(parsed(r"^[\b]$").is_match("\u{8}"));
}

#[test]
fn brackets_hold_characters_and_sets_and_nothing_else() {
    for (pattern, within, without) in [
        ("[a-c]", "abc", "d-"),
        ("[-a]", "-a", "b"),
        ("[a-]", "-a", "b"),
        ("[a-c-e]", "abc-e", "d"),
        ("[---]", "-", "a"),
        ("[a-z--b]", "az-b./", ",{"),
        ("[a&&b]", "a&b", "c"),
        ("[a~~b]", "a~b", "c"),
        ("[[:alpha:]", "[:alph", "bz"),
        (r"[\w-.]", "aZ_9-.", ",é"),
        (r"[a-\d]", "a-05", "b"),
        (r"[^\d\s]", "a-", "0 \u{feff}\u{2029}"),
        (r"[\D]", "a-", "0"),
        (r"[^\W]", "a_", "-é"),
        (r"[\P{L}]", "0-", "aé"),
        (r"[\pL\d]", "aé0", "-"),
        (r"[^\P{Lu}]", "AÉ", "aé-"),
        (r"\p{Script=Greek}", "π", "a"),
        (r"\p{General_Category=Decimal_Number}", "4৪", "a"),
        (r"\p{Emoji_Presentation}", "😀", "a"),
        (r"\P{ASCII}", "é", "a"),
        (r"\s", "\t\u{b} \u{a0}\u{3000}", "\u{85}a\u{200b}"),
        ("[]", "", "a]^-\n"),
        ("[^]", "a]^-\n", ""),
        ("[]a]", "", "]"),
        ("[.*+?(){}|$^]", ".*+?(){}|$^", "a"),
    ] {
        let whole = parsed(&format!("^{pattern}$"));
        assert!(within.chars().all(|character| whole.is_match(&character.to_string())), "{pattern} {within}");
        assert!(
            !without.chars().any(|character| whole.is_match(&character.to_string())),
            "{pattern} {without}"
        );
    }
}

#[test]
fn the_edge_of_a_word_is_that_of_ascii() {
    assert!(parsed(r"\bcaf\b").is_match("café") && !parsed(r"\bcafe\b").is_match("cafes"));
    assert!(parsed(r"a\Bb").is_match("ab") && !parsed(r"a\B").is_match("a"));
    assert!(!parsed(r"^\B\w").is_match("é"));
}

#[test]
fn what_other_languages_have_is_refused_or_the_same() {
    for pattern in [
        "(?i)a",
        "(?i:a)",
        "(?x) a",
        "(?#a)",
        "(?>a)",
        "(?'n'a)",
        "(?<>a)",
        "(?<a-b>a)",
        "(?<a>b)(?<a>c)",
        "(?=a)",
        "(?<=a)b",
        "{",
        "{2}",
        "a{,5}",
        "a{2",
        "a{x}",
        "a{2,,3}",
        "[z-a]",
        r"[\1]",
        r"[\B]",
        r"\a",
        r"\Z",
        r"\é",
        r"\01",
        r"\8",
        r"\c1",
        r"\x4",
        r"\uD83D",
        r"\uD83D\u0041",
        r"\uDE00",
        r"\u{}",
        r"\u{ffffffffff}",
        r"\p",
        r"\p{}",
        r"\p{Nonsense}",
        r"\p{Age=6.0}",
        r"\p{Age=V6_0}",
        r"\p{Grapheme_Cluster_Break=Extend}",
        r"\p{^L}",
        r"\",
        ")",
    ] {
        assert!(Pattern::parse(pattern).is_err(), "{pattern}");
    }
    assert!(parsed(r"^(?P<year>\d+)\z").is_match("2024") && parsed(r"\Aa").is_match("ab"));
    assert!(parsed("^]}$").is_match("]}"));
}

/// Text in which every character means something to a pattern somewhere.
fn pattern_like() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        r#"[\\^$.|?*+()\[\]{}=!<>:,&~#/_ \-]"#,
        r"[a-zA-Z0-9é😀]",
        Just(r"\u{".to_owned()),
        Just(r"\uD83D\uDE00".to_owned()),
        Just(r"\p{".to_owned()),
        Just("(?".to_owned()),
        Just("(?<a>".to_owned()),
    ];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

/// A pattern that means the same in both languages.
fn plain() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[a-dé.]",
        Just(r"\.".to_owned()),
        Just(r"\[".to_owned()),
        Just("[a-c]".to_owned()),
        Just("[^b.]".to_owned()),
        Just("^".to_owned()),
        Just("$".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|parts| parts.concat()),
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("(?:{left}|{right})")),
            (inner, "[*+?]|\\{[0-2](,|,3)?\\}").prop_map(|(inner, times)| format!("({inner}){times}")),
        ]
    })
}

proptest! {
    #[test]
    fn no_pattern_panics(pattern in pattern_like(), any in any::<String>()) {
        for pattern in [pattern, any] {
            if let Ok(parsed) = Pattern::parse(&pattern) {
                parsed.is_match(&pattern);
            }
        }
    }

    #[test]
    fn a_plain_pattern_keeps_its_meaning(pattern in plain(), text in "[a-dé.\\[\n]{0,6}") {
        let translated = translate::translate(&pattern).unwrap();
        let twice = translate::translate(&translated).unwrap();
        let [plain, once, twice] =
            [&pattern, &translated, &twice].map(|pattern| Regex::new(pattern).unwrap().is_match(&text));
        prop_assert_eq!((plain, plain), (once, twice), "{} {}", pattern, translated);
    }

    #[test]
    fn an_escaped_text_is_found_in_itself(text in any::<String>()) {
        let mut pattern = "^".to_owned();
        text.chars().for_each(|character| translate::push_literal(&mut pattern, character));
        pattern.push('$');
        prop_assert!(parsed(&pattern).is_match(&text));
        let longer = text + "x";
        prop_assert!(!parsed(&pattern).is_match(&longer));
    }
}

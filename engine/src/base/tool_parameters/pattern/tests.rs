#![allow(clippy::disallowed_methods)] // one test measures time

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

struct Parsed(Pattern);

impl Parsed {
    fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text, &mut 1_000_000).unwrap()
    }
}

fn parsed(pattern: &str) -> Parsed {
    Parsed(Pattern::parse(pattern).unwrap_or_else(|problem| panic!("{pattern:?} {problem}")))
}

#[test]
fn accepts_ecma_patterns() {
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
    assert!(!parsed("^a$").is_match("a\n"), "$ matches only at the very end");
}

#[test]
fn rejects_unsafe_patterns() {
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
    for pattern in [
        "(((a{100}){100}){100}){100}",
        r"\p{L}{20000}",
        "(a|b|c){100000}",
        "a{99999999999999999999}",
        "(?:a?){0,9000}",
        "a{16000}|b{16000}",
    ] {
        assert!(Pattern::parse(pattern).err().unwrap().contains("too large"), "{pattern}");
    }
    let _ = Pattern::parse(&"(".repeat(30_000));
    let _ = Pattern::parse(&"a|".repeat(15_000));
}

#[test]
fn escapes_match_their_character() {
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
fn character_classes() {
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
fn word_boundaries_are_ascii() {
    assert!(parsed(r"\bcaf\b").is_match("café") && !parsed(r"\bcafe\b").is_match("cafes"));
    assert!(parsed(r"a\Bb").is_match("ab") && !parsed(r"a\B").is_match("a"));
    assert!(!parsed(r"^\B\w").is_match("é"));
}

#[test]
fn syntax_of_other_languages_is_rejected_or_equivalent() {
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

#[test]
fn properties_have_long_and_short_names() {
    for (pattern, within, without) in [
        (r"\p{Letter}", "aé", "1"),
        (r"\p{uppercase_letter}", "A", "a"),
        (r"\p{gc=Sc}", "€", "E"),
        (r"\p{LC}", "aA", "ª"),
        (r"\p{sc=Grek}", "π", "a"),
        (r"\p{Cyrillic}", "ж", "π"),
        (r"\p{Alpha}", "aª", "1"),
        (r"\p{White_Space}", "\u{85} ", "\u{feff}"),
        (r"\p{ExtPict}", "😀", "a"),
        (r"\p{IDS}", "a", "1"),
        (r"\p{Any}", "a\u{10ffff}", ""),
        (r"\p{Assigned}", "a", "\u{378}"),
        (r"\P{Assigned}", "\u{378}", "a"),
        (r"\p{Cs}", "", "a"),
    ] {
        let one = parsed(&format!("^{pattern}$"));
        assert!(within.chars().all(|character| one.is_match(&character.to_string())), "{pattern}");
        assert!(!without.chars().any(|character| one.is_match(&character.to_string())), "{pattern}");
    }
    for name in ["Changes_When_Uppercased", "scx=Greek", "Script_Extensions=Greek", "gc=Greek", "sc=L"] {
        let problem = Pattern::parse(&format!("a\\p{{{name}}}")).err().unwrap();
        assert!(problem.contains(name) && problem.contains("ID_Start"), "{problem}");
    }
    let many = r"\p{L}".repeat(property::PROPERTIES_MAX);
    assert!(Pattern::parse(&many).is_ok());
    assert!(Pattern::parse(&(many + r"[\pN]")).err().unwrap().contains("too many"));
}

#[test]
fn a_search_stops_when_its_steps_run_out() {
    let hostile = "(?:a*)*(?:a*)*(?:a?){400}b";
    let text = "a".repeat(100_000);
    for pattern in [hostile, "(a|aa)+$", "(((a?){20}){20}){20}b"] {
        let pattern = Pattern::parse(pattern).unwrap();
        let mut steps = 1_000;
        assert_eq!((pattern.is_match(&text, &mut steps), steps), (None, 0));
    }
    let mut steps = 1_000_000;
    assert_eq!(Pattern::parse(hostile).unwrap().is_match(&text, &mut steps), None);
    // Ordinary patterns cost little: a hundred thousand characters take far fewer than a million steps.
    let mut steps = 1_000_000;
    let short = Pattern::parse(r"^[\w.+-]+@[\w-]+\.[a-z]{2,}$").unwrap();
    assert_eq!(short.is_match(&(text.clone() + "@example.com"), &mut steps), Some(true));
    assert!((900_000..1_000_000).contains(&steps), "{steps}");
    // An anchored pattern stops as soon as no state is active.
    let mut steps = 1_000_000;
    assert_eq!(Pattern::parse("(^b|^c)").unwrap().is_match(&text, &mut steps), Some(false));
    assert!(steps > 999_990, "{steps}");
}

#[test]
fn the_largest_patterns_compile_and_run_quickly() {
    let start = Instant::now();
    let bytes = 32 * 1024;
    for part in ["(", "a|", "(a|", r"\pL", "[^a]", "a**", "(?:a?){2}", "(((((", "(a|b)*|", "[^\\d]{9}"] {
        let pattern = part.repeat(bytes / part.len());
        if let Ok(pattern) = Pattern::parse(&pattern) {
            let _ = pattern.is_match(&"ab".repeat(bytes), &mut 1_000_000);
        }
    }
    for pattern in [
        "a{15000}".to_owned() + &"*?".repeat(8_000),
        format!("{}a{{9000}}{}", "(".repeat(9_000), "|b)?".repeat(3_600)),
    ] {
        let _ = Pattern::parse(&pattern);
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed()); // for slow machines and debug builds
}

/// Text of characters that have a meaning in patterns.
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

proptest! {
    #[test]
    fn no_pattern_panics(pattern in pattern_like(), any in any::<String>()) {
        for pattern in [pattern, any] {
            if let Ok(parsed) = Pattern::parse(&pattern) {
                let _ = parsed.is_match(&pattern, &mut 1_000_000);
            }
        }
    }

    #[test]
    fn an_escaped_text_matches_itself(text in any::<String>()) {
        let mut pattern = "^".to_owned();
        for character in text.chars() {
            if r"\.+*?()|[]{}^$".contains(character) {
                pattern.push('\\');
            }
            pattern.push(character);
        }
        pattern.push('$');
        prop_assert!(parsed(&pattern).is_match(&text));
        let longer = text + "x";
        prop_assert!(!parsed(&pattern).is_match(&longer));
    }
}

#[test]
fn a_pattern_is_compiled_when_a_text_meets_it_and_that_is_counted() {
    let source = "(a|b|c){1,1000}";
    let (accepted, later) = (Pattern::parse(source).unwrap(), Pattern::later(source));
    assert!(later.program.get().is_none());
    let steps = |pattern: &Pattern| {
        let mut left = 100_000;
        assert_eq!(pattern.is_match("-", &mut left), Some(false));
        100_000 - left
    };
    let (first, second) = (steps(&later), steps(&later));
    assert!(first > second && second == steps(&accepted), "{first}, then {second}");
    assert_eq!(Pattern::later(source).is_match("a", &mut 5), None, "no time is left after that");
    assert_eq!(Pattern::later("(").is_match("(", &mut 5), Some(false));
}

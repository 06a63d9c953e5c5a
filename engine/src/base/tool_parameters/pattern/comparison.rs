//! Compares the results with those of the `regex` crate.

use proptest::prelude::*;
use regex::Regex;

use crate::base::tool_parameters::pattern::set::Set;
use crate::base::tool_parameters::pattern::{Pattern, property};

/// A pattern in our syntax, and the equivalent one for the `regex` crate.
type Both = (String, String);

fn same(pattern: &str) -> Both {
    (pattern.to_owned(), pattern.to_owned())
}

fn both(ours: &str, theirs: &str) -> Both {
    (ours.to_owned(), theirs.to_owned())
}

const SPACE: &str = r"\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}";

/// Members of a character class.
fn members() -> impl Strategy<Value = Both> {
    let member = prop_oneof![
        "[abd0_é ]|a-d|b-b|0-9|\\u{e0}-π".prop_map(|text| same(&text)),
        r"\\[\\\]\[.\-^$*]".prop_map(|text| same(&text)),
        r"\\[pP]\{(L|Lu|Nd|Script=Greek|ASCII|Alphabetic)\}|\\pP".prop_map(|text| same(&text)),
        prop::sample::select(vec![
            both("[", r"\["),
            both("&&", r"\&\&"),
            both("~~", r"\~\~"),
            both(r"\d", "0-9"),
            both(r"\D", "[^0-9]"),
            both(r"\w", "A-Za-z0-9_"),
            both(r"\W", "[^A-Za-z0-9_]"),
            both(r"\s", SPACE),
            both(r"\S", &format!("[^{SPACE}]")),
            both(r"\w-.", r"A-Za-z0-9_\-."),
            both(r"\b", r"\x08"),
            both(r"\u0061", "a"),
        ]),
    ];
    prop::collection::vec(member, 1..4).prop_map(|parts| parts.into_iter().unzip())
}

fn patterns() -> impl Strategy<Value = Both> {
    let leaf = prop_oneof![
        2 => "[ab]".prop_map(|text| same(&text)),
        4 => "[abdé0_. -]".prop_map(|text| same(&text)),
        2 => prop::sample::select(vec![
            same("^"),
            same("$"),
            same(""),
            same(r"\A"),
            same(r"\z"),
            same(r"\."),
            same(r"\["),
            same(r"\p{L}"),
            same(r"\P{L}"),
            both(r"\b", r"(?-u:\b)"),
            both(r"\B", r"(?-u:\B)"),
            both(r"\d", "[0-9]"),
            both(r"\W", "[^A-Za-z0-9_]"),
            both(r"\s", &format!("[{SPACE}]")),
            both(r"\u{1F600}", "😀"),
            both(r"\uD83D\uDE00", "😀"),
            both("[]", r"[^\x00-\x{10FFFF}]"),
            both("[^]", r"[\x00-\x{10FFFF}]"),
        ]),
        2 => (any::<bool>(), members()).prop_map(|(negated, (ours, theirs))| {
            let open = if negated { "[^" } else { "[" };
            (format!("{open}{ours}]"), format!("{open}{theirs}]"))
        }),
    ];
    leaf.prop_recursive(6, 48, 4, |inner| {
        let group = prop::sample::select(vec!["(", "(?:"]);
        let times = r"[*+?]\??|[*+?]{2}|\{[0-3](,|,[3-5])?\}\??|\{1\}";
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5)
                .prop_map(|parts| parts.into_iter().unzip::<_, _, String, String>()),
            (group.clone(), prop::collection::vec(inner.clone(), 1..4)).prop_map(|(open, ways)| {
                let (ours, theirs): (Vec<_>, Vec<_>) = ways.into_iter().unzip();
                (format!("{open}{})", ours.join("|")), format!("{open}{})", theirs.join("|")))
            }),
            (group, inner.clone(), times).prop_map(|(open, (ours, theirs), times)| {
                (format!("{open}{ours}){times}"), format!("{open}{theirs}){times}"))
            }),
            (inner.clone(), inner).prop_map(|(left, right)| (
                format!("{}|{}", left.0, right.0),
                format!("{}|{}", left.1, right.1)
            )),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn agrees_with_the_regex_crate(
        pattern in patterns(),
        short in prop::collection::vec("[abé0 ]{0,5}", 8),
        texts in prop::collection::vec("[abdé0_.\\[\\-^ π\u{8}\n😀]{0,10}", 8),
    ) {
        // Unanchored and anchored: an unanchored match hides many errors.
        let whole = (format!("^(?:{})$", pattern.0), format!("^(?:{})$", pattern.1));
        for (ours, theirs) in [pattern, whole] {
            let our_pattern = Pattern::parse(&ours).unwrap();
            let their_pattern = Regex::new(&theirs).unwrap();
            for text in short.iter().chain(&texts) {
                prop_assert_eq!(
                    our_pattern.is_match(text, &mut 1_000_000),
                    // Not `is_match`, which takes `\B` within the bytes of one character for the end of its search.
                    Some(their_pattern.find(text).is_some()),
                    "{} for {:?}, there {}", ours, text, theirs
                );
            }
        }
    }

    #[test]
    fn a_set_contains_exactly_its_ranges(ranges in prop::collection::vec((0..0x10FFFF_u32, 0..300_u32), 0..20), probe in any::<char>()) {
        let ranges: Vec<_> = ranges.into_iter().map(|(first, length)| (first, (first + length).min(0x10FFFF))).collect();
        let set = Set::of(ranges.clone());
        prop_assert!(set.ranges().windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
        let edges = ranges.iter().flat_map(|(first, last)| [first.saturating_sub(1), *first, *last, last + 1]);
        for probe in edges.filter_map(char::from_u32).chain([probe, '\0', char::MAX]) {
            let expected = ranges.iter().any(|(first, last)| (*first..=*last).contains(&probe.into()));
            prop_assert_eq!(set.contains(probe), expected);
            prop_assert_eq!(set.negated().contains(probe), !expected);
        }
        prop_assert_eq!(set.negated().negated(), set);
    }
}

/// The Unicode versions of the tables may differ, so only characters assigned in both are compared.
#[test]
fn properties_agree_with_the_regex_crate() {
    let categories = [
        "L", "LC", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc",
        "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "Cc", "Cf",
        "Co",
    ];
    let scripts =
        ["Latin", "Greek", "Cyrillic", "Han", "Hiragana", "Arabic", "Thai", "Common", "Inherited", "Hebrew"];
    let scripts = scripts.map(|script| format!("Script={script}"));
    let mut names: Vec<_> = categories.into_iter().map(str::to_owned).chain(scripts).collect();
    // Unicode 17 removed hundreds of characters from this property.
    let binary = property::binary_names();
    names.extend(binary.split(", ").filter(|name| *name != "Extended_Pictographic").map(str::to_owned));
    let assigned = Regex::new(r"\p{Assigned}").unwrap();
    let characters: Vec<char> = ('\0'..=char::MAX)
        .filter(|character| assigned.is_match(character.encode_utf8(&mut [0; 4])))
        .collect();
    for name in names {
        let ours = property::named(&name).unwrap();
        let theirs = Regex::new(&format!("\\p{{{name}}}")).unwrap();
        let different: Vec<char> = characters
            .iter()
            .copied()
            .filter(|character| {
                ours.contains(*character) != theirs.is_match(character.encode_utf8(&mut [0; 4]))
            })
            .collect();
        // Few characters change their properties between versions.
        assert!(
            different.len() <= 16,
            "{name}: {} {:?}",
            different.len(),
            &different[..different.len().min(40)]
        );
    }
}

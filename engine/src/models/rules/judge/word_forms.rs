//! Forms of a word that its stem does not show: irregular ones, another spelling, contractions.
use super::reading::Text;
use crate::base::time::month_number;
use crate::models::rules::judge::vocabulary::is_one_of;
use crate::models::rules::words::stemmed;

/// The forms of irregular words, one word in each line.
const IRREGULAR: [&str; 92] = [
    "be am is are was were been being",
    "have has had having",
    "do does did done",
    "go goes went gone going",
    "say said",
    "make made",
    "take took taken",
    "come came",
    "see saw seen",
    "know knew known",
    "get got gotten",
    "give gave given",
    "find found",
    "think thought",
    "tell told",
    "become became",
    "show shown",
    "feel felt",
    "bring brought",
    "keep kept",
    "hold held",
    "write wrote written",
    "stand stood",
    "hear heard",
    "mean meant",
    "meet met",
    "run ran",
    "pay paid",
    "sit sat",
    "speak spoke spoken",
    "lie lay lain",
    "lead led",
    "grow grew grown",
    "lose lost",
    "fall fell fallen",
    "send sent",
    "build built",
    "understand understood",
    "draw drew drawn",
    "break broke broken",
    "spend spent",
    "rise rose risen",
    "drive drove driven",
    "buy bought",
    "wear wore worn",
    "choose chose chosen",
    "sell sold",
    "catch caught",
    "teach taught",
    "eat ate eaten",
    "fly flew flown",
    "forget forgot forgotten",
    "ring rang rung",
    "sleep slept",
    "drink drank drunk",
    "leave left",
    "lend lent",
    "win won",
    "steal stole stolen",
    "shake shook shaken",
    "throw threw thrown",
    "hide hid hidden",
    "ride rode ridden",
    "begin began begun",
    "swim swam swum",
    "sing sang sung",
    "bite bit bitten",
    "feed fed",
    "light lit",
    "good well better best",
    "bad badly ill worse worst",
    "far farther farthest further furthest",
    "much many more most",
    "little less least",
    "man men",
    "woman women",
    "child children",
    "person people",
    "foot feet",
    "tooth teeth",
    "can could cannot",
    "will would",
    "life lives",
    "grey gray",
    "mum mom",
    "tv television telly",
    "doctor dr",
    "street st",
    "mister mr",
    "phone telephone",
    "information info",
    "ok okay",
];

/// What may be another form of one word that is looked for.
pub(super) struct Forms<'a> {
    word: &'a str,
    irregular: Vec<&'static str>,
    spelling: String,
    is_number: bool,
}

impl<'a> Forms<'a> {
    pub(super) fn new(word: &'a str) -> Self {
        let groups = IRREGULAR.iter().filter(|group| group.split(' ').any(|form| form == word));
        let is_number = is_one_of(
            word,
            "first second once twice half quarter couple dozen hundred thousand million o'clock am pm morning afternoon evening",
        );
        Self {
            word,
            irregular: groups.flat_map(|group| group.split(' ')).collect(),
            spelling: spelling(word),
            is_number,
        }
    }

    /// Whether the word may stand there in another form.
    pub(super) fn may_be_at(&self, text: &Text, at: usize) -> bool {
        let Some(said) = text.word(at) else { return self.is_sign_at(text, at) };
        let first = |word: &str| word.bytes().next();
        self.irregular.contains(&said)
            || first(said) == first(self.word) && self.is_spelled_as(said)
            || contracts(self.word, said)
            || expands(self.word, text, at)
            || self.is_joined(text, at)
    }

    /// Whether a sign or a value says the word: "minus" in `-5`.
    fn is_sign_at(&self, text: &Text, at: usize) -> bool {
        let signs = match self.word {
            "minus" | "dash" | "hyphen" => "-",
            "plus" => "+",
            "and" => "&+",
            "degree" | "degrees" => "°",
            "slash" => "/",
            "dot" | "point" => ".",
            _ => "",
        };
        match (text.value(at), text.sign(at)) {
            (Some(_), _) => self.is_number || !signs.is_empty(),
            (None, Some(sign)) => signs.contains(sign) && !text.ends_sentence(at),
            _ => false,
        }
    }

    fn is_spelled_as(&self, said: &str) -> bool {
        const STEM_MIN: usize = 4;
        if is_contraction(said) || is_contraction(self.word) {
            return false;
        }
        // "Mon", "Jan"
        let is_short = said.len() == 3
            && self.word.starts_with(said)
            && (self.word.ends_with("day") || month_number(self.word).is_some());
        let stem = stemmed(said);
        is_short || spelling(said) == self.spelling || stem.len() >= STEM_MIN && self.word.starts_with(&stem)
    }

    /// "On-line" is "online".
    fn is_joined(&self, text: &Text, at: usize) -> bool {
        const PARTS_MAX: usize = 8;
        let mut rest = self.word;
        for place in at..at + PARTS_MAX {
            match (text.word(place), text.sign(place)) {
                (Some(word), _) if !word.is_empty() => match rest.strip_prefix(word) {
                    Some("") => return place > at,
                    Some(left) => rest = left,
                    None => return false,
                },
                (None, Some('-' | '.' | '\'')) if place > at => {}
                _ => return false,
            }
        }
        false
    }
}

/// The same for British and American spelling, as far as that needs no dictionary.
fn spelling(word: &str) -> String {
    let single = word.strip_suffix('s').unwrap_or(word);
    let turned = single.strip_suffix("re").filter(|rest| !rest.ends_with(['a', 'e', 'i', 'o', 'u']));
    let stem = match turned {
        Some(rest) => format!("{rest}er"),
        None => stemmed(word),
    };
    let plain = stem
        .replace("ae", "e")
        .replace("oe", "e")
        .replace("our", "or")
        .replace("ogu", "og")
        .replace("ck", "k");
    let mut out = String::with_capacity(plain.len());
    for char in plain.replace("qu", "k").chars() {
        let char = match char {
            'z' | 'c' => 's',
            'y' => 'i',
            // "Wives", "leaves".
            'v' => 'f',
            char => char,
        };
        if !out.ends_with(char) {
            out.push(char);
        }
    }
    out
}

/// Whether the words with an apostrophe are more than a possessive: `it's`, `don't`.
pub(super) fn is_contraction(word: &str) -> bool {
    const BASES: [&str; 18] = [
        "it",
        "he",
        "she",
        "that",
        "what",
        "who",
        "there",
        "here",
        "where",
        "how",
        "let",
        "when",
        "why",
        "this",
        "everything",
        "somebody",
        "everybody",
        "nobody",
    ];
    word.split_once('\'').is_some_and(|(base, ending)| match ending {
        "s" => BASES.contains(&base),
        "t" | "re" | "ll" | "ve" | "d" | "m" => true,
        _ => false,
    })
}

/// Whether `said` contracts the wanted word: "not" in "don't", "is" in "it's".
fn contracts(wanted: &str, said: &str) -> bool {
    let Some((base, ending)) = said.split_once('\'') else {
        return said == "cannot" && matches!(wanted, "can" | "not");
    };
    match ending {
        "t" => {
            wanted == "not" || base.strip_suffix('n') == Some(wanted) || wanted == "cannot" && base == "can"
        }
        _ if base == wanted => is_contraction(said),
        _ => endings(ending).contains(&wanted),
    }
}

fn endings(ending: &str) -> &'static [&'static str] {
    match ending {
        "s" => &["is", "has", "us"],
        "re" => &["are"],
        "ll" => &["will", "shall"],
        "ve" => &["have"],
        "d" => &["would", "had"],
        "m" => &["am"],
        _ => &[],
    }
}

/// Whether the words there are those that the wanted one contracts: "it is" for "it's".
fn expands(wanted: &str, text: &Text, at: usize) -> bool {
    let Some((base, ending)) = wanted.split_once('\'') else {
        return wanted == "cannot" && text.word(at) == Some("can") && text.word(at + 1) == Some("not")
            || wanted == "cannot" && text.word(at) == Some("can't");
    };
    let (said, next) = (text.word(at).unwrap_or_default(), text.word(at + 1).unwrap_or_default());
    match ending {
        "t" => {
            let verb = match base {
                "can" => "can",
                "won" => "will",
                "shan" => "shall",
                base => base.strip_suffix('n').unwrap_or(base),
            };
            said == verb && next == "not" || verb == "can" && said == "cannot"
        }
        _ => said == base && endings(ending).contains(&next),
    }
}

//! Finds quoted passages in a text.
use std::ops::Range;

/// Longest quoted passage; a mark without a partner within this distance is no quotation mark.
const QUOTED_BYTES_MAX: usize = 2_000;

/// The contents of the quoted passages, in order; none is blank.
///
/// `"…"`, `“…”`, `„…“`, `«…»` and `「…」` always quote. `'…'` and `‘…’` are also apostrophes, so they quote only when they
/// enclose several words and either follow `:` or `,` or enclose the end of a sentence.
///
/// Takes linear time, however many marks open and never close.
pub(super) fn quoted(text: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut closings = Closings::new(text);
    let mut from = 0;
    while let Some((open, char)) = next_opening(text, from) {
        let inside = open + char.len_utf8();
        match closings.after(open, inside, char) {
            Some((end, after)) => {
                if text.get(inside..end).is_some_and(|passage| !passage.trim().is_empty()) {
                    out.push(inside..end);
                }
                from = after;
            }
            None => from = inside,
        }
    }
    out
}

fn next_opening(text: &str, from: usize) -> Option<(usize, char)> {
    let rest = text.get(from..)?;
    let mut before = text.get(..from).and_then(|text| text.chars().next_back());
    for (place, char) in rest.char_indices() {
        // In `5" pipe` and `don't` the mark is no quotation mark: a straight mark opens only where a word may start.
        let straight = matches!(char, '"' | '\'' | '\u{2018}');
        let at_start = before.is_none_or(|before| !before.is_alphanumeric());
        if opens(char) && (!straight || at_start) {
            return Some((from + place, char));
        }
        before = Some(char);
    }
    None
}

const fn opens(char: char) -> bool {
    matches!(char, '"' | '“' | '„' | '«' | '「' | '\'' | '\u{2018}')
}

/// A character with its neighbours.
type Neighbours = (Option<char>, char, Option<char>);

/// Searches forward for the next matching character. Queries must not go back, so the text is read once in total.
struct ForwardSearch<'a> {
    text: &'a str,
    is: fn(Neighbours) -> bool,
    /// The last match; there is none between the last query and it.
    found: Option<usize>,
}

impl<'a> ForwardSearch<'a> {
    const fn new(text: &'a str, is: fn(Neighbours) -> bool) -> Self {
        Self { text, is, found: None }
    }

    /// The first match from `from` on, or the text's length.
    fn from(&mut self, from: usize) -> usize {
        if let Some(found) = self.found.filter(|found| *found >= from) {
            return found;
        }
        let mut before = self.text.get(..from).and_then(|text| text.chars().next_back());
        let mut chars = self.text.get(from..).unwrap_or_default().char_indices().peekable();
        let mut found = self.text.len();
        while let Some((place, char)) = chars.next() {
            if (self.is)((before, char, chars.peek().map(|(_, next)| *next))) {
                found = from + place;
                break;
            }
            before = Some(char);
        }
        self.found = Some(found);
        found
    }
}

/// Finds the closing mark of a passage.
struct Closings<'a> {
    text: &'a str,
    straight: ForwardSearch<'a>,
    curly: ForwardSearch<'a>,
    low: ForwardSearch<'a>,
    angle: ForwardSearch<'a>,
    corner: ForwardSearch<'a>,
    white_space: ForwardSearch<'a>,
    line_break: ForwardSearch<'a>,
    /// `'` and `’` that may close a quotation: all of them, and those at the end of a sentence.
    apostrophes: [ForwardSearch<'a>; 2],
    single_curly: [ForwardSearch<'a>; 2],
    introduction: Introduction,
}

impl<'a> Closings<'a> {
    const fn new(text: &'a str) -> Self {
        Self {
            text,
            straight: ForwardSearch::new(text, |(_, char, _)| char == '"'),
            curly: ForwardSearch::new(text, |(_, char, _)| char == '”'),
            low: ForwardSearch::new(text, |(_, char, _)| matches!(char, '“' | '”')),
            angle: ForwardSearch::new(text, |(_, char, _)| char == '»'),
            corner: ForwardSearch::new(text, |(_, char, _)| char == '」'),
            white_space: ForwardSearch::new(text, |(_, char, _)| char.is_whitespace()),
            line_break: ForwardSearch::new(text, |(_, char, _)| char == '\n'),
            apostrophes: [
                ForwardSearch::new(text, |place| place.1 == '\'' && ends_words(place)),
                ForwardSearch::new(text, |place| {
                    place.1 == '\'' && ends_words(place) && ends_sentence(place)
                }),
            ],
            single_curly: [
                ForwardSearch::new(text, |place| place.1 == '’' && ends_words(place)),
                ForwardSearch::new(text, |place| place.1 == '’' && ends_words(place) && ends_sentence(place)),
            ],
            introduction: Introduction::new(),
        }
    }

    /// The end of the passage that starts at `inside`, and where to continue.
    fn after(&mut self, open: usize, inside: usize, mark: char) -> Option<(usize, usize)> {
        let limit =
            self.text.ceil_char_boundary(inside.saturating_add(QUOTED_BYTES_MAX).min(self.text.len()));
        let end = match mark {
            '"' => self.straight.from(inside),
            '“' => self.curly.from(inside),
            '„' => self.low.from(inside),
            '«' => self.angle.from(inside),
            '「' => self.corner.from(inside),
            _ => self.clearly_quoted(open, inside, mark)?,
        };
        let closing = self.text.get(end..limit)?.chars().next()?;
        Some((end, end + closing.len_utf8()))
    }

    /// The end of a passage whose marks may be apostrophes: several words on one line.
    fn clearly_quoted(&mut self, open: usize, inside: usize, mark: char) -> Option<usize> {
        let introduced = self.introduction.before(self.text, open);
        let second_word = self.white_space.from(inside);
        if second_word == inside {
            return None;
        }
        let [any, sentence] = if mark == '\'' { &mut self.apostrophes } else { &mut self.single_curly };
        let end = if introduced { any } else { sentence }.from(second_word);
        (end < self.line_break.from(inside)).then_some(end)
    }
}

/// Whether the mark is at the end of a word.
fn ends_words((before, _, next): Neighbours) -> bool {
    before.is_some_and(|before| !before.is_whitespace()) && next.is_none_or(|next| !next.is_alphanumeric())
}

const fn ends_sentence((before, ..): Neighbours) -> bool {
    matches!(before, Some('.' | '?' | '!' | '…'))
}

/// Finds out whether `:` or `,` precedes a position. Queries must not go back.
struct Introduction {
    read: usize,
    /// The last character that is not white space.
    last: Option<char>,
    /// The value of `last` before the run of single marks that ends at `read`.
    before_run: Option<Option<char>>,
}

impl Introduction {
    const fn new() -> Self {
        Self { read: 0, last: None, before_run: None }
    }

    fn before(&mut self, text: &str, place: usize) -> bool {
        for char in text.get(self.read..place).unwrap_or_default().chars() {
            if matches!(char, '\'' | '\u{2018}') {
                self.before_run.get_or_insert(self.last);
            } else {
                self.before_run = None;
            }
            if !char.is_whitespace() {
                self.last = Some(char);
            }
        }
        self.read = place;
        matches!(self.before_run.unwrap_or(self.last), Some(':' | ',' | '：'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_pair_of_marks_quotes() {
        assert_eq!(
            passages(r#"Say "one" then “two”, „drei“, «quatre» and 「五」."#),
            ["one", "two", "drei", "quatre", "五"]
        );
    }

    #[test]
    fn single_marks_quote_only_when_unambiguous() {
        assert_eq!(passages("Say 'When do you open?' and wait"), ["When do you open?"]);
        assert_eq!(passages("Ask: 'your opening hours', then go"), ["your opening hours"]);
        assert_eq!(passages("Say: 'I don't know, sorry.' and go"), ["I don't know, sorry."]);
        assert_eq!(passages("the 'new' plan, don't ask the boys' toys or rock 'n' roll"), none());
        assert_eq!(passages("'tis the boys' day"), none());
    }

    #[test]
    fn marks_without_a_partner_quote_nothing() {
        assert_eq!(passages("a 5\" pipe and a 6\" pipe"), none());
        assert_eq!(passages("\"open"), none());
        assert_eq!(passages("\"\" \"  \" «»"), none());
        assert_eq!(passages("„"), none());
    }

    #[test]
    fn many_opening_marks_take_linear_time() {
        assert_eq!(passages(&"“".repeat(100_000)), none());
        assert_eq!(passages(&"'".repeat(100_000)), none());
        assert_eq!(passages(&"'a ".repeat(50_000)), none());
    }

    /// A simple quadratic implementation of [`Closings`] for single marks.
    fn plainly_closed(text: &str, inside: usize, open: char) -> Option<usize> {
        let mark = if open == '\'' { '\'' } else { '’' };
        let limit = text.ceil_char_boundary((inside + QUOTED_BYTES_MAX).min(text.len()));
        let marks = text[inside..limit].char_indices().filter(|(_, char)| *char == mark);
        marks.map(|(place, _)| inside + place).find(|end| {
            let before = text[..inside].trim_end_matches(['\'', '\u{2018}']).trim_end();
            let words = &text[inside..*end];
            let next = text[end + mark.len_utf8()..].chars().next();
            !words.starts_with(char::is_whitespace)
                && !words.ends_with(char::is_whitespace)
                && !words.contains('\n')
                && words.split_whitespace().nth(1).is_some()
                && next.is_none_or(|next| !next.is_alphanumeric())
                && (before.ends_with([':', ',', '：']) || words.ends_with(['.', '?', '!', '…']))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn agrees_with_the_simple_implementation(text in "['’‘:, .?ab\n]{0,30}") {
            let mut closings = Closings::new(&text);
            for (open, char) in text.char_indices().filter(|(_, char)| matches!(char, '\'' | '‘')) {
                let inside = open + char.len_utf8();
                let plain = plainly_closed(&text, inside, char);
                prop_assert_eq!(closings.after(open, inside, char).map(|(end, _)| end), plain);
            }
        }

        #[test]
        fn no_passage_is_blank(text in "[“”\"'«»„a é.\n]{0,60}") {
            for range in quoted(&text) {
                prop_assert!(!text[range].trim().is_empty());
            }
        }
    }

    fn passages(text: &str) -> Vec<&str> {
        quoted(text).into_iter().map(|range| &text[range]).collect()
    }

    fn none() -> Vec<&'static str> {
        Vec::new()
    }
}

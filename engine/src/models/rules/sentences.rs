//! Splits a text into sentences.

/// Longest sentence in bytes; a longer one is split between words.
pub(super) const SENTENCE_BYTES_MAX: usize = 600;

/// Abbreviations whose full stop does not end a sentence.
const SHORT_FORMS: [&str; 14] =
    ["dr", "e.g", "etc", "i.e", "jr", "mr", "mrs", "ms", "mt", "no", "nr", "prof", "st", "vs"];

/// The sentences of a text in order, without bullets and numbering. A line break ends a sentence unless the next line
/// continues in lower case. Every sentence has a letter or digit.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut last_space = None;
    for (place, char) in text.char_indices() {
        let end = place + char.len_utf8();
        let so_far = text.get(start..place).unwrap_or_default();
        let rest = text.get(end..).unwrap_or_default();
        let ends = match char {
            // Of `\r\n`, the `\n` decides.
            '\r' if rest.starts_with('\n') => false,
            '\n' | '\r' => !goes_on(rest),
            '.' => stop_ends(so_far, rest),
            '!' | '?' | '…' | '"' | '”' | '»' | '\'' | '’' | ')' => {
                // The cheap check first: only the last mark of a run looks back over it.
                rest.starts_with(char::is_whitespace) && {
                    let sentence = so_far.trim_end_matches(['"', '”', '»', '\'', '’', ')']);
                    let ended = matches!(char, '!' | '?' | '…') || sentence.ends_with(['.', '!', '?', '…']);
                    ended && !goes_on(rest)
                }
            }
            '。' | '！' | '？' => true,
            _ => false,
        };
        if ends {
            push(text, start, end, &mut out);
            start = end;
            last_space = None;
            continue;
        }
        if char.is_whitespace() {
            last_space = Some(place);
        }
        if end - start > SENTENCE_BYTES_MAX {
            let cut = last_space.take().filter(|place| *place > start).unwrap_or(end);
            push(text, start, cut, &mut out);
            start = cut;
        }
    }
    push(text, start, text.len(), &mut out);
    out
}

/// Whether the following text continues the sentence: it starts in lower case on the same line. It reads no further than the
/// next line break, so that many line breaks take linear time.
fn goes_on(rest: &str) -> bool {
    let next = rest.chars().find(|char| matches!(char, '\n' | '\r') || !char.is_whitespace());
    next.is_some_and(char::is_lowercase)
}

fn stop_ends(so_far: &str, rest: &str) -> bool {
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) || goes_on(rest) {
        return false;
    }
    let word = so_far.rsplit(char::is_whitespace).next().unwrap_or_default();
    let word = word.trim_start_matches(['(', '"', '“']);
    // Trimming the start only: trailing white space would be read again at every full stop.
    let last = rest.trim_start().is_empty();
    let numbering = word.bytes().all(|byte| byte.is_ascii_digit()) && so_far.trim() == word;
    let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    let short = word.len() <= 4 && SHORT_FORMS.contains(&word.to_ascii_lowercase().as_str());
    // "the answer is no." ends a sentence; "No. 5" does not.
    let number_follows = rest.trim_start().starts_with(|char: char| char.is_ascii_digit());
    let no = word.eq_ignore_ascii_case("no") || word.eq_ignore_ascii_case("nr");
    !(numbering || initial || short && (!no || number_follows)) || last
}

fn push<'a>(text: &'a str, start: usize, end: usize, out: &mut Vec<&'a str>) {
    let sentence = without_bullet(text.get(start..end).unwrap_or_default().trim());
    if sentence.contains(char::is_alphanumeric) {
        out.push(sentence);
    }
}

fn without_bullet(line: &str) -> &str {
    let rest = line.trim_start_matches(['-', '*', '•', '–', '—', '>']);
    if rest.len() < line.len() && rest.starts_with(char::is_whitespace) {
        return rest.trim_start();
    }
    let rest = line.trim_start_matches(|char: char| char.is_ascii_digit());
    let digits = line.len() - rest.len();
    match rest.strip_prefix(['.', ')']) {
        Some(rest) if (1..=3).contains(&digits) && rest.starts_with(char::is_whitespace) => rest.trim_start(),
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sentences_end_at_their_marks() {
        assert_eq!(
            sentences("We open at 9. Do you? Yes! Good"),
            ["We open at 9.", "Do you?", "Yes!", "Good"]
        );
        assert_eq!(sentences("9時に開きます。お待ちして！"), ["9時に開きます。", "お待ちして！"]);
        assert_eq!(sentences("He said \"Go.\" Then he left."), ["He said \"Go.\"", "Then he left."]);
    }

    #[test]
    fn abbreviations_and_numbers_do_not_end_sentences() {
        for whole in [
            "Open from 9 a.m. to 5 p.m. on weekdays.",
            "Dr. Smith sees you, e.g. Mondays.",
            "It costs 3.50 a day.",
            "Room No. 5 is free.",
            "Write to J. Smith.",
        ] {
            assert_eq!(sentences(whole), [whole]);
        }
        assert_eq!(sentences("The answer is no. Ask again."), ["The answer is no.", "Ask again."]);
    }

    #[test]
    fn lines_and_bullets_are_sentences_and_wrapped_lines_are_not() {
        assert_eq!(
            sentences("- Monday 9-5\n* Sunday closed\r\n1. Ask\n2) Wait\n\nthe end"),
            ["Monday 9-5", "Sunday closed", "Ask", "Wait", "the end"]
        );
        assert_eq!(sentences("We are open\non Sundays."), ["We are open\non Sundays."]);
        assert_eq!(sentences("We are open\r\non Sundays."), ["We are open\r\non Sundays."]);
        assert_eq!(sentences("We are\ropen\r\ron Sundays"), ["We are\ropen", "on Sundays"]);
        assert_eq!(sentences("We are open\r\n\r\non Sundays"), ["We are open", "on Sundays"]);
        assert_eq!(sentences(" \n--- ... \n"), Vec::<&str>::new());
    }

    #[test]
    fn long_text_is_split_between_words() {
        let text = "word ".repeat(1_000);
        let parts = sentences(&text);
        assert!(parts.iter().all(|part| part.len() <= SENTENCE_BYTES_MAX + 4));
        assert!(parts.iter().all(|part| part.starts_with("word") && part.ends_with("word")));
        assert_eq!(parts.iter().map(|part| part.split(' ').count()).sum::<usize>(), 1_000);
    }

    proptest! {
        #[test]
        fn no_letter_is_lost(text in "[a-zA-Zé.!? \n\"]{0,80}") {
            let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<String>();
            prop_assert_eq!(letters(&sentences(&text).concat()), letters(&text));
        }
    }
}

use super::phrases::{GOODBYES, pick};
use super::quotes::quoted;
use super::sentences::sentences;
use crate::base::text::collapse_whitespace;
use crate::conversation::Message;
use crate::models::{CallerReply, CallerTurn};

/// The rule model as a simulated caller; it parses its scenario once per run.
///
/// It speaks the quoted passages of a scenario (`"…"`, `“…”`, `„…“`, `«…»`, `「…」`, and `'…'` where it is clearly speech)
/// word for word, or, without quotes, the scenario's sentences. It says one line per turn, in order, then goodbye, and hangs
/// up. The persona and the assistant's words have no influence: the number of lines that the caller has said selects the
/// next one.
#[derive(Debug, Clone, Default)]
pub struct RulesCaller {
    lines: Vec<String>,
}

impl RulesCaller {
    /// Parses the scenario of a run.
    #[must_use]
    pub fn new(scenario: &str) -> Self {
        let passages = quoted(scenario);
        let lines = if passages.is_empty() {
            sentences(scenario).into_iter().map(collapse_whitespace).collect()
        } else {
            let passages = passages.into_iter().filter_map(|passage| scenario.get(passage));
            passages.map(|passage| passage.trim().to_owned()).collect()
        };
        Self { lines }
    }

    /// The caller's next line. `turn` must have the scenario that was given to [`RulesCaller::new`].
    #[must_use]
    pub fn reply(&self, turn: &CallerTurn<'_>) -> CallerReply {
        let said = turn.history.iter().filter(|row| matches!(row, Message::User { .. })).count();
        match self.lines.get(said) {
            Some(line) => CallerReply { text: line.clone(), hang_up: false },
            None => CallerReply { text: pick(&GOODBYES, turn.seed, said).to_owned(), hang_up: true },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn caller_reply(turn: &CallerTurn<'_>) -> CallerReply {
        RulesCaller::new(turn.scenario).reply(turn)
    }

    #[test]
    fn quoted_lines_are_spoken_verbatim_and_in_order() {
        let scenario = "You call a shop. Say \"When do  you open?\" Then “And on Sundays?” Be kind.";
        assert_eq!(lines(scenario), ["When do  you open?", "And on Sundays?"]);
    }

    #[test]
    fn without_quotes_each_sentence_is_a_line() {
        assert_eq!(
            lines("Ask for the hours.\n- Book a table\nDon't be rude!"),
            ["Ask for the hours.", "Book a table", "Don't be rude!"]
        );
    }

    #[test]
    fn a_caller_without_lines_says_goodbye() {
        assert_eq!(lines(" ... "), Vec::<String>::new());
        let reply = caller_reply(&turn("", &[], 0));
        assert!(reply.hang_up);
        assert!(reply.text.to_lowercase().contains("bye"));
    }

    #[test]
    fn the_seed_chooses_the_goodbye() {
        let texts: Vec<_> = (0..20).map(|seed| caller_reply(&turn("", &[], seed)).text).collect();
        assert!(texts.iter().any(|text| *text != texts[0]));
    }

    proptest! {
        #[test]
        fn every_line_has_text(scenario in ".{0,200}") {
            prop_assert!(lines(&scenario).iter().all(|line| !line.trim().is_empty()));
        }
    }

    fn lines(scenario: &str) -> Vec<String> {
        let mut history = Vec::new();
        loop {
            let reply = caller_reply(&turn(scenario, &history, 3));
            if reply.hang_up {
                return history
                    .into_iter()
                    .map(|row| match row {
                        Message::User { text } => text,
                        _ => panic!("not a line"),
                    })
                    .collect();
            }
            history.push(Message::User { text: reply.text });
        }
    }

    fn turn<'a>(scenario: &'a str, history: &'a [Message], seed: u64) -> CallerTurn<'a> {
        CallerTurn { persona: "A calm person.", scenario, history, seed }
    }
}

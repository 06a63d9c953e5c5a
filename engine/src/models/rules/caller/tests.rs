use super::*;
use proptest::prelude::*;

mod answers;
mod instructions;

#[test]
fn quoted_lines_are_spoken_verbatim_and_in_order() {
    let scenario = "You call a shop. Say \"When do  you open?\" Then “And on Sundays?” Be kind.";
    assert_eq!(lines("", scenario, 3), ["When do  you open?", "And on Sundays?"]);
}

#[test]
fn without_quotes_each_instruction_is_a_line() {
    let said = lines("", "Ask for the hours.\n- Book a table\nDon't be rude!", 3);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("hours") && said[0].ends_with('?'), "{said:?}");
    assert!(said[1].ends_with("to book a table, please."), "{said:?}");
}

#[test]
fn other_instructions_follow_the_quoted_lines() {
    let said = lines("", "Say \"Good morning.\" Ask for the price. Say \"Fine.\" Be kind.", 1);
    assert_eq!(said[..2], ["Good morning.", "Fine."]);
    assert_eq!(said.len(), 3, "{said:?}");
}

#[test]
fn a_caller_without_lines_says_goodbye() {
    assert_eq!(lines("", " ... ", 3), Vec::<String>::new());
    let reply = RulesCaller::new("", "").reply(&turn("", "", &[], 0));
    assert!(reply.hang_up);
    assert!(reply.text.to_lowercase().contains("bye"));
}

#[test]
fn the_seed_chooses_the_phrases() {
    for scenario in ["", "Ask for the opening hours.", "Book a table."] {
        let first = |seed| RulesCaller::new("", scenario).reply(&turn("", scenario, &[], seed)).text;
        assert!((0..20).any(|seed| first(seed) != first(0)), "{scenario}");
    }
}

#[test]
fn a_question_is_answered_twice_at_most() {
    let (persona, scenario) = ("Your name is Anna Berg.", "Book a table.");
    let said = conversation(persona, scenario, |_| "What is your name?".to_owned(), 5);
    assert_eq!(said.iter().filter(|line| line.contains("Anna Berg")).count(), 2, "{said:?}");
    assert_eq!(said.len(), 4, "{said:?}");
}

#[test]
fn a_caller_who_has_said_all_answers_before_the_goodbye() {
    let (persona, scenario) = ("Your name is Anna Berg.", "Say \"A table for two.\"");
    let asked = ["Under which name?", "What is your shoe size?", "Anything else?"];
    let said =
        conversation(persona, scenario, |at| asked.get(at.wrapping_sub(1)).unwrap_or(&"").to_string(), 5);
    assert_eq!(said.len(), 4, "{said:?}");
    assert_eq!(said[0], "A table for two.");
    assert!(said[1].contains("Anna Berg"), "{said:?}");
    assert!(said[2].contains("orry"), "{said:?}");
    assert!(said[3].starts_with("No,") && said[3].to_lowercase().contains("bye"), "{said:?}");
}

#[test]
fn an_instruction_beside_a_quotation_is_followed() {
    for (scenario, expected) in [
        (
            "Ask for the price, then say \"Fine, book it and order two.\"",
            &["Fine, book it and order two.", "price"][..],
        ),
        ("Say \"Good morning.\", then ask for the price.", &["Good morning.", "price"]),
        ("Say \"One.\" and \"Two.\" and ask whether they deliver.", &["One.", "Two.", "deliver"]),
        ("Greet with \"Hi there\" and book a table.", &["Hi there", "book a table"]),
        // Nothing else is to be said.
        ("Say \"Ask for the price, then book a table.\"", &["Ask for the price, then book a table."]),
        ("Your friend, Bob, said \"go there\" on Friday.", &["go there"]),
        ("Sag „Guten Tag“, dann nichts weiter mehr heute.", &["Guten Tag"]),
    ] {
        let said = lines("", scenario, 2);
        assert_eq!(said.len(), expected.len(), "{scenario}: {said:?}");
        for (line, part) in said.iter().zip(expected) {
            assert!(line.contains(part), "{scenario}: {said:?}");
        }
    }
    let secret = "Say \"Hello.\", but do not give your name.";
    let said = conversation("Your name is Anna Berg.", secret, |_| "What is your name?".to_owned(), 1);
    assert!(said.iter().all(|line| !line.contains("Anna")), "{said:?}");
}

#[test]
fn a_condition_that_was_answered_often_hides_no_other() {
    let scenario = "Book a table. If they offer Tuesday, decline. If asked for your size, say \"Size nine.\"";
    let said = conversation("", scenario, |_| "I can offer Tuesday. What is your size?".to_owned(), 1);
    let declined = said.iter().filter(|line| line.starts_with("No, thank")).count();
    assert_eq!((declined, said.iter().filter(|line| *line == "Size nine.").count()), (2, 2), "{said:?}");
    // What was accepted is not declined in the end.
    let scenario = "Book a table. If they offer Tuesday, accept, otherwise decline.";
    let said = conversation("", scenario, |_| "I can offer Tuesday.".to_owned(), 1);
    assert!(said.iter().all(|line| !line.starts_with("No, thank")), "{said:?}");
}

#[test]
fn quoted_lines_wait_for_no_question() {
    let scenario = "Say \"One.\" and \"Two.\"";
    let said = conversation("Your name is Anna.", scenario, |_| "What is your name?".to_owned(), 1);
    assert_eq!(said[..2], ["One.", "Two."]);
}

#[test]
fn other_languages_are_spoken_as_they_are() {
    for scenario in [
        "Reserva una mesa para cuatro personas.",
        "Fragen Sie nach den Öffnungszeiten.",
        "営業時間を聞いてください。",
    ] {
        assert_eq!(lines("Eine ruhige Person.", scenario, 1), [scenario]);
    }
}

proptest! {
    #[test]
    fn every_line_has_text_and_the_call_ends(
        persona in ".{0,100}", scenario in ".{0,200}", heard in ".{0,80}", seed: u64,
    ) {
        let said = conversation(&persona, &scenario, |_| heard.clone(), seed);
        prop_assert!(said.iter().all(|line| !line.trim().is_empty()));
    }

    #[test]
    fn instructions_of_any_words_end_as_well(
        persona in WORDS, scenario in WORDS, heard in WORDS, seed: u64,
    ) {
        let said = conversation(&persona, &scenario, |_| heard.clone(), seed);
        prop_assert!(said.iter().all(|line| !line.trim().is_empty() && line.len() <= LINE_BYTES_MAX));
        prop_assert_eq!(conversation(&persona, &scenario, |_| heard.clone(), seed), said);
    }
}

const WORDS: &str = "((Ask|Say|Tell|If|When|You|Your|Book|they|them|you|your|that|whether|for|to|name|number|is|are|not|\
                     accept|decline|offer|asked|and|then|then,|what|Anna|Berg|4|555 0100|\"|order|BD-17|7 pm|Friday|it)\
                     ( |, |\\. |\\? |: |\n)){0,40}";

/// What the caller says in a call with an assistant that says `heard` before each line. The last line is the goodbye.
fn conversation(persona: &str, scenario: &str, heard: impl Fn(usize) -> String, seed: u64) -> Vec<String> {
    let caller = RulesCaller::new(persona, scenario);
    let mut history = Vec::new();
    let mut said = Vec::new();
    loop {
        let text = heard(said.len());
        if !text.is_empty() {
            history.push(Message::Assistant { text });
        }
        let reply = caller.reply(&turn(persona, scenario, &history, seed));
        said.push(reply.text.clone());
        if reply.hang_up {
            return said;
        }
        history.push(Message::User { text: reply.text });
        assert!(said.len() < 300, "the call ends: {said:?}");
    }
}

/// The lines before the goodbye, where the assistant says nothing.
fn lines(persona: &str, scenario: &str, seed: u64) -> Vec<String> {
    let mut said = conversation(persona, scenario, |_| String::new(), seed);
    said.pop();
    said
}

fn turn<'a>(persona: &'a str, scenario: &'a str, history: &'a [Message], seed: u64) -> CallerTurn<'a> {
    CallerTurn { persona, scenario, history, seed }
}

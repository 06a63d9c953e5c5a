//! Adversarial texts: processing must take time linear in their length.
//!
//! Each text is so long that a quadratic algorithm takes minutes, while a linear one takes a fraction of the deadline even on
//! a slow machine and without optimisation.
#![expect(clippy::disallowed_methods, reason = "measures the duration of a test")]
use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::arguments::fill;
use super::entities::entities;
use super::knowledge_search::KnowledgeIndex;
use super::quotes::quoted;
use super::sentences::sentences;
use super::words::{identifier_words, unique_terms};
use super::{RulesAssistant, RulesCaller, RulesJudge};
use crate::base::text::{casefold, collapse_whitespace};
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::conversation::{AssistantTurn, Knowledge, Message, ToolSpec};
use crate::models::{CallerTurn, JudgeTurn};

/// For all shapes of one pattern together. What is quadratic takes minutes; other tests on the same cores make it eight times
/// as long.
const DEADLINE: Duration = Duration::from_secs(40);

const PATTERNS: [&str; 56] = [
    "\r",
    "\r\n",
    "\n",
    " ",
    "\t\r",
    "\u{b}",
    "\u{2028}",
    "\u{3000}",
    "'",
    "' ",
    "'a ",
    "'a b.",
    "a'",
    "\u{2018}",
    "\u{2018}a b ",
    "\u{2019}",
    "\u{201c}",
    "\"",
    "\" ",
    "„",
    "«",
    "「",
    ".",
    ". ",
    "a. ",
    "dr. ",
    "no. ",
    "1. ",
    "!",
    "! ",
    ".\" ",
    ")",
    "1",
    "1 ",
    "1,",
    "1.",
    "+",
    "+1 ",
    "(1",
    "1-",
    "@",
    "a@",
    "a@a.a ",
    "\u{301}",
    "a\u{301}",
    "\u{316}\u{301}",
    "# a\n",
    "\n#\n",
    "a:\n",
    "a:\n\n",
    "a\n\n",
    "a b:\nc\n",
    "店",
    "in ",
    "name ",
    "\u{1100}",
];

#[test]
fn every_parser_takes_linear_time() {
    for pattern in PATTERNS {
        let started = Instant::now();
        for text in shapes(pattern, 48 * 1024) {
            black_box(sentences(&text));
            black_box(quoted(&text));
            black_box(entities(&text));
            black_box(unique_terms(&text));
            black_box(identifier_words(&text));
            black_box(casefold(&text));
            black_box(collapse_whitespace(&text));
            let document = Knowledge { name: "Hours".into(), content: text };
            black_box(KnowledgeIndex::new(&[document]).answer("When do you open in a no. 1 shop?"));
        }
        let took = started.elapsed();
        assert!(took < DEADLINE, "{pattern:?} took {took:?}");
    }
}

/// A long agenda, and a call in which each line asks about its end.
#[test]
fn a_caller_with_a_long_agenda_answers_in_bounded_time() {
    let started = Instant::now();
    let scenario = format!("{}Say that zebra.", "Say that a b1. ".repeat(1_400));
    let caller = RulesCaller::new("You are in a hurry.", &scenario);
    let mut history = Vec::new();
    for turn in 0..120 {
        let asked = ["Zebra for you?", "Is it? Zebra for you?", "Which zebra? Is it? Which b1?"][turn % 3];
        history.push(Message::Assistant { text: asked.into() });
        let turn =
            CallerTurn { persona: "You are in a hurry.", scenario: &scenario, history: &history, seed: 7 };
        let reply = black_box(caller.reply(&turn));
        assert!(!reply.hang_up, "the agenda goes on");
        history.push(Message::User { text: reply.text });
    }
    assert!(started.elapsed() < DEADLINE, "{:?}", started.elapsed());
}

#[test]
fn headings_over_many_sections_are_bounded() {
    let started = Instant::now();
    let title: String = (0..5_000).map(|n| format!("w{n} ")).collect();
    let document =
        Knowledge { name: "x".into(), content: format!("# {title}\n{}", "a:\nb\n".repeat(10_000)) };
    black_box(KnowledgeIndex::new(&[document]).answer(&title));
    assert!(started.elapsed() < DEADLINE, "{:?}", started.elapsed());
}

#[test]
fn arguments_are_filled_in_bounded_time() {
    let started = Instant::now();
    for kind in ["integer", "string", "boolean"] {
        for pattern in ["1 ", "name ", "a1 ", "one ", "'a b.'", "a@b.cd ", "\"a\" ", "in Rome ", "“.” "] {
            let property = |n: usize| (format!("name_{n}"), json!({"type": kind, "description": "number"}));
            let properties: Map<String, Value> = (0..256).map(property).collect();
            let required: Vec<&String> = properties.keys().collect();
            fill(
                &json!({"type": "object", "required": required, "properties": properties}),
                &pattern.repeat(1_000),
            );
        }
    }
    let values: Vec<_> = (0..2_000).map(|n| format!("a {n}")).collect();
    let schema: Map<String, Value> = (0..256).map(|n| (n.to_string(), json!({"enum": values}))).collect();
    fill(&json!({"type": "object", "properties": schema}), &"a ".repeat(1_000));
    assert!(started.elapsed() < DEADLINE * 3, "{:?}", started.elapsed());
}

#[test]
fn many_turns_and_verdicts_read_each_text_once() {
    let started = Instant::now();
    let scenario = "\r".repeat(32_000);
    let caller = RulesCaller::new("", &scenario);
    let content = format!("a{}b", "\r".repeat(51_198));
    let knowledge = vec![Knowledge { name: "x".into(), content }; 4];
    let tools: [ToolSpec; 0] = [];
    let assistant = RulesAssistant::new(&knowledge, &tools);
    let history = [Message::User { text: "'".repeat(8_000) }];
    for _ in 0..30 {
        let turn = AssistantTurn {
            instructions: "",
            knowledge: &knowledge,
            tools: &tools,
            history: &history,
            seed: 0,
        };
        black_box(assistant.reply(&turn));
        let turn = CallerTurn { persona: "", scenario: &scenario, history: &history, seed: 0 };
        assert!(caller.reply(&turn).hang_up);
    }
    let rows: Vec<TranscriptRow> = (0..64).map(|n| said(n, format!("w{n} ").repeat(3_000))).collect();
    let turns: Vec<_> = rows.iter().collect();
    let mut judge = RulesJudge::new();
    for n in 0..64 {
        let criterion = format!("says \"w{n} {}\"", "v".repeat(n + 1));
        let turn = JudgeTurn { criterion: &criterion, only: None, turns: &turns, vote: 0 };
        assert_eq!(judge.judge(&turn).passed, Some(false));
    }
    assert!(started.elapsed() < DEADLINE * 3, "{:?}", started.elapsed());
}

/// A caller reads long instructions, and listens to a long line, in linear time.
#[test]
fn instructions_are_read_in_linear_time() {
    for pattern in [
        "a. ",
        "1 ",
        "you ",
        "order 1 ",
        "and ask ",
        "and then ",
        "phone 5 ",
        "say ",
        "You are A ",
        "If a, b. ",
        "Your a is b. ",
        "when asked \"a\" ",
        "“",
        "店",
    ] {
        let started = Instant::now();
        let text = pattern.repeat(16_000 / pattern.len());
        let caller = RulesCaller::new(&text, &text);
        let history: Vec<Message> = (0..20)
            .flat_map(|_| [Message::Assistant { text: text.clone() }, Message::User { text: "x".into() }])
            .collect();
        let turn = CallerTurn { persona: &text, scenario: &text, history: &history, seed: 0 };
        assert!(!caller.reply(&turn).text.is_empty());
        assert!(started.elapsed() < DEADLINE, "{pattern:?} took {:?}", started.elapsed());
    }
}

/// What is wanted begins everywhere in a text that is one sentence, and what the rules look at around a place is long.
#[test]
fn criteria_are_judged_in_bounded_time() {
    for pattern in [
        "a ",
        "1 ",
        "$1 ",
        "BD-17 ",
        "bd 17 ",
        "one ",
        "at ",
        "the ",
        "sorry ",
        "not ",
        "?",
        "a@b.cd ",
        "- ",
        "room 12 ",
        "5 pm ",
        "a, ",
        "what is your ",
        "555-",
        "B D ",
        "one thousand ",
        "ten to ",
        "half a ",
        "an hour ",
        "3/4-",
        ".5 -5 ",
        "1.000 ",
        "½",
        "o-r-",
        "next week ",
        "actually ",
        "however ",
        "20 dollars and ",
    ] {
        let started = Instant::now();
        let row = said(0, pattern.repeat(60_000 / pattern.len()));
        let mut judge = RulesJudge::new();
        for criterion in [
            format!("says \"{}x\"", "a ".repeat(60)),
            format!("says \"{}7\"", "1 ".repeat(60)),
            "gives the confirmation BD-17".to_owned(),
            "gives the room number 12".to_owned(),
            "gives a price".to_owned(),
            "gives the email address a@b.cd".to_owned(),
            "asks for the phone number".to_owned(),
            "says that the room costs 1 dollar".to_owned(),
            "never says sorry".to_owned(),
            "never says 14 days".to_owned(),
            "never says organize".to_owned(),
            "gives the time 9:50".to_owned(),
            "gives the date 3 April 2026".to_owned(),
            "confirms the order 7".to_owned(),
            "never says 5 pm".to_owned(),
            "says \"a\" before \"b\"".to_owned(),
        ] {
            black_box(judge.judge(&JudgeTurn { criterion: &criterion, only: None, turns: &[&row], vote: 0 }));
        }
        for criterion in [
            pattern.repeat(1_900 / pattern.len()),
            format!("says \"{}", pattern.repeat(1_900 / pattern.len())),
        ] {
            black_box(judge.judge(&JudgeTurn { criterion: &criterion, only: None, turns: &[&row], vote: 0 }));
        }
        assert!(started.elapsed() < DEADLINE * 2, "{pattern:?} took {:?}", started.elapsed());
    }
}

fn said(index: usize, text: String) -> TranscriptRow {
    TranscriptRow::new(index, TranscriptRole::Assistant, text, 0, 0)
}

/// The repeated pattern, alone and between other texts.
fn shapes(pattern: &str, bytes: usize) -> Vec<String> {
    let many = |bytes: usize| pattern.repeat(bytes / pattern.len());
    let half = many(bytes / 2);
    vec![
        many(bytes),
        format!("a{}b", many(bytes)),
        format!("a {half}{}", " ".repeat(bytes / 2)),
        format!("{half}{}b", "\r".repeat(bytes / 2)),
        format!("Say: {half}{}", "\n".repeat(bytes / 2)),
    ]
}

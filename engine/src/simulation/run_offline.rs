//! A complete simulation with `builtin/rules`.
use serde_json::Value;

use super::SimulationSetup;
use super::machine::{Input, Output, Simulation, SimulationFailure, SimulationPart, SimulationResult};
use crate::models::rules::{RulesAssistant, RulesCaller, RulesJudge};

/// Runs a simulation with the rule model in all three roles. `tools` answers the tool calls; the assistant receives an
/// `Err` as the failure.
///
/// # Errors
///
/// The rule model causes none; the type is that of every simulation.
pub fn run_offline(
    setup: SimulationSetup,
    tools: &mut dyn FnMut(&str, &Value) -> Result<String, String>,
) -> Result<SimulationResult, SimulationFailure> {
    let assistant = RulesAssistant::new(&setup.assistant.knowledge, &setup.assistant.tools);
    let caller = RulesCaller::new(&setup.persona, &setup.scenario);
    let mut judge = RulesJudge::new();
    let mut simulation = Simulation::new(setup);
    loop {
        // Every answer below leads to another output, so the end of the outputs is a fault of the
        // simulation; it is reported as one instead of waiting for ever.
        let output = simulation.poll();
        let input = match output {
            Some(Output::AskCaller) => Input::CallerReply { reply: caller.reply(&simulation.caller_turn()) },
            Some(Output::AskAssistant) => {
                Input::AssistantReply { reply: assistant.reply(&simulation.assistant_turn()) }
            }
            Some(Output::CallTool { id, name, arguments }) => match tools(&name, &arguments) {
                Ok(text) => Input::ToolResult { id, text, is_error: false, mocked: false, after_ms: 0 },
                Err(text) => Input::ToolResult { id, text, is_error: true, mocked: false, after_ms: 0 },
            },
            Some(Output::AskJudge) => match simulation.judge_question() {
                Some(question) => Input::Verdict { ruling: judge.judge(&question.turn()) },
                None => Input::ModelFailed { reason: "there was no question for the judge".into() },
            },
            Some(Output::Done { result }) => return Ok(result),
            Some(Output::Failed { failure }) => return Err(failure),
            None => {
                let reason = "the simulation stalled".to_owned();
                return Err(simulation.failure(SimulationPart::Assistant, reason));
            }
        };
        simulation.handle(input);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::Id;
    use crate::conversation::transcript::TranscriptRole;
    use crate::conversation::{EndedReason, Knowledge, ToolSpec};
    use crate::simulation::{SIMULATION_TURNS_MAX, SimulatedAssistant};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_complete_call_passes() {
        let result = run(setup()).unwrap();
        let texts: Vec<_> = result.transcript.iter().map(|row| row.text.as_str()).collect();
        assert_eq!(
            texts[..7],
            [
                "Shop, hello!",
                "When do you open on Saturday?",
                "We open at nine on Saturday.",
                "Where is order A-17?",
                r#"lookup_order({"order_id":"A-17"})"#,
                r#"{"status":"on its way"}"#,
                "Status: on its way.",
            ]
        );
        assert!(texts[7].to_lowercase().contains("bye"));
        assert_eq!(result.ended_reason, EndedReason::UserHungUp);
        assert_eq!(result.turns, 6);
        assert!(result.evaluations.iter().all(|one| one.passed == Some(true)), "{:?}", result.evaluations);
        assert_eq!(result.passed, Some(true));
    }

    #[test]
    fn rows_follow_one_another_in_virtual_time() {
        let result = run(setup()).unwrap();
        let rows = &result.transcript;
        assert_eq!((rows[0].start_ms, rows[0].end_ms), (0, 780));
        for pair in rows.windows(2) {
            assert_eq!(pair[1].start_ms, pair[0].end_ms);
        }
        assert_eq!(rows.last().unwrap().end_ms, result.duration_ms);
        let tool = rows.iter().find(|row| row.role == TranscriptRole::ToolCall).unwrap();
        assert_eq!(tool.tool_call_id.as_deref(), Some("run_1_t1"));
    }

    #[test]
    fn one_failed_evaluation_fails_the_run() {
        let mut setup = setup();
        setup.evaluations.push(evaluation("transcript", "assistant", "free coffee"));
        let result = run(setup).unwrap();
        assert_eq!(result.passed, Some(false));
        assert_eq!(result.evaluations.iter().filter(|one| one.passed != Some(true)).count(), 1);
    }

    #[test]
    fn the_call_continues_after_a_failed_tool() {
        let result = run_offline(setup(), &mut |_, _| Err("it answered 500".into())).unwrap();
        let texts: Vec<_> = result.transcript.iter().map(|row| row.text.as_str()).collect();
        assert!(texts.contains(&"I could not lookup order because it answered 500."), "{texts:?}");
        assert_eq!(result.ended_reason, EndedReason::UserHungUp);
    }

    #[test]
    fn a_run_without_evaluations_is_not_decided() {
        let mut setup = setup();
        setup.evaluations.clear();
        assert_eq!(run(setup.clone()).unwrap().passed, None);
        setup.limits.turns_max = 3;
        let result = run(setup).unwrap();
        assert_eq!(result.ended_reason, EndedReason::TurnLimit);
        assert_eq!(result.turns, 3);
        assert_eq!(result.passed, None);
    }

    #[test]
    fn two_silent_sides_end_at_once() {
        let mut setup = setup();
        setup.assistant = SimulatedAssistant::default();
        setup.scenario = String::new();
        setup.evaluations.clear();
        let result = run(setup).unwrap();
        assert_eq!(result.turns, 1);
    }

    #[test]
    fn an_endless_scenario_ends_at_the_limit() {
        let mut setup = setup();
        setup.scenario = "Tell me more about elephants. ".repeat(1_000);
        let result = run(setup).unwrap();
        assert_eq!(result.turns, SIMULATION_TURNS_MAX);
        assert_eq!(result.ended_reason, EndedReason::TurnLimit);
    }

    #[test]
    fn large_knowledge_is_supported() {
        let mut setup = setup();
        let content = "Nothing about much is written here at all. ".repeat(4_800);
        add_knowledge(&mut setup, Knowledge { name: "Filler".into(), content });
        assert_eq!(run(setup).unwrap().passed, Some(true));
    }

    /// Without a scenario's lines and rows read once it takes many times the deadline.
    #[test]
    fn large_replies_and_many_evaluations_are_supported() {
        let started = now();
        let mut setup = setup();
        setup.scenario = "Where is order A-17? ".repeat(1_500);
        setup.evaluations = (0..64)
            .map(|n| evaluation("judge", "any", &format!("The tool returns \"words {n} missing\".")))
            .collect();
        let mut calls = 0;
        let mut answer = |_: &str, _: &Value| {
            calls += 1;
            Ok(format!("{calls} {}", "some words é ".repeat(4_600)))
        };
        let result = run_offline(setup, &mut answer).unwrap();
        assert_eq!(result.passed, Some(false));
        let mut results = result.transcript.iter().filter(|row| row.role == TranscriptRole::ToolResult);
        assert!(results.clone().count() >= 10);
        assert!(results.all(|row| row.text.ends_with("bytes in all)")));
        let took = started.elapsed();
        assert!(took.as_secs() < 60, "{took:?}");
    }

    /// One run of the texts that were once the slowest to read.
    #[test]
    fn many_line_breaks_are_supported() {
        for break_or_mark in ["\r", "\n", "'", "'a ", "dr. "] {
            let mut setup = setup();
            let content = format!("a{}b", break_or_mark.repeat(51_198 / break_or_mark.len()));
            setup.assistant.knowledge = vec![Knowledge { name: "x".into(), content }; 4].into();
            setup.scenario = break_or_mark.repeat(32_000 / break_or_mark.len());
            let started = now();
            run(setup).unwrap();
            let took = started.elapsed();
            assert!(took.as_secs() < 20, "{break_or_mark:?} took {took:?}");
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the time a test itself takes")]
    fn now() -> std::time::Instant {
        std::time::Instant::now()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_same_setup_gives_the_same_bytes(
            scenario in ".{0,120}", first_message in ".{0,20}", content in ".{0,80}", seed: u64,
        ) {
            let mut setup = setup();
            add_knowledge(&mut setup, Knowledge { name: "More".into(), content });
            setup.assistant.first_message = first_message;
            setup.scenario = scenario;
            setup.seed = seed;
            let stored = serde_json::to_string(&setup).unwrap();
            let loaded: SimulationSetup = serde_json::from_str(&stored).unwrap();
            let once = serde_json::to_string(&run(setup).unwrap()).unwrap();
            prop_assert_eq!(serde_json::to_string(&run(loaded).unwrap()).unwrap(), once);
        }
    }

    fn run(setup: SimulationSetup) -> Result<SimulationResult, SimulationFailure> {
        run_offline(setup, &mut |name, arguments| match name {
            "lookup_order" if arguments["order_id"].is_string() => {
                Ok(json!({"status": "on its way"}).to_string())
            }
            other => Err(format!("{other} is not known")),
        })
    }

    fn add_knowledge(setup: &mut SimulationSetup, one: Knowledge) {
        let all = setup.assistant.knowledge.iter().cloned().chain([one]);
        setup.assistant.knowledge = all.collect();
    }

    fn setup() -> SimulationSetup {
        SimulationSetup {
            run_id: Id::from_stored("run_1"),
            assistant: SimulatedAssistant {
                instructions: "Help the shop's customers.".into(),
                first_message: "Shop, hello!".into(),
                knowledge: vec![Knowledge {
                    name: "Hours".into(),
                    content: "We open at nine on Saturday. We are closed on Sunday.".into(),
                }]
                .into(),
                tools: vec![ToolSpec {
                    name: "lookup_order".into(),
                    description: "Finds an order.".into(),
                    parameters: json!({"type": "object", "required": ["order_id"],
                        "properties": {"order_id": {"type": "string"}}})
                    .into(),
                }]
                .into(),
                has_transfers: false,
            },
            persona: "A patient customer.".into(),
            scenario: "Ask \"When do you open on Saturday?\", then \"Where is order A-17?\".".into(),
            evaluations: vec![
                evaluation("transcript", "assistant", "open at NINE"),
                evaluation("transcript_excludes", "any", "refund"),
                evaluation("tool_call", "any", "lookup_order"),
                evaluation("judge", "assistant", "The assistant says \"on its way\" and never says sorry."),
            ],
            judge_votes: 1,
            seed: 42,
            limits: SimulationSetup::default_limits(),
            voice: None,
        }
    }

    fn evaluation(kind: &str, role: &str, includes: &str) -> crate::simulation::evaluation::Evaluation {
        serde_json::from_value(json!({"kind": kind, "role": role, "includes": includes})).unwrap()
    }
}

//! The simulation's behaviour, step by step, and its properties.
use super::*;
use crate::base::ids::{Id, RunId};
use crate::conversation::ConversationLimits;
use crate::simulation::SimulatedAssistant;
use proptest::prelude::*;
use serde_json::json;

#[test]
fn one_thing_at_a_time_is_asked_for() {
    let mut run = Simulation::new(setup("Hello!", &["judge", "transcript"]));
    assert_eq!(drained(&mut run), [Output::AskCaller]);
    run.handle(caller("Order 7?", false));
    assert_eq!(drained(&mut run), [Output::AskAssistant]);
    run.handle(call("order"));
    let called = drained(&mut run);
    assert!(matches!(&called[..], [Output::CallTool { id, .. }] if id == "run_t1"), "{called:?}");
    run.handle(result("run_t1"));
    assert_eq!(drained(&mut run), [Output::AskAssistant]);
    run.handle(assistant("Sent."));
    assert_eq!(drained(&mut run), [Output::AskCaller]);
    run.handle(caller("Bye.", true));
    assert_eq!(drained(&mut run), [Output::AskJudge]);
    assert_eq!(run.judge_question().unwrap().turns.len(), 6);
    run.handle(ruling(true));
    let Some(Output::Done { result }) = run.poll() else { panic!("not done") };
    assert_eq!(result.passed, Some(false), "the transcript does not have the text");
    assert_eq!(result.evaluations.len(), 2);
    assert_eq!((result.evaluations[0].passed, result.evaluations[1].passed), (Some(true), Some(false)));
    assert_eq!(result.turns, 4);
    assert_eq!(run.poll(), None);
}

#[test]
fn a_failed_model_breaks_the_run_and_is_named() {
    let failed = || Input::ModelFailed { reason: "timeout".into() };
    let mut run = Simulation::new(setup("", &[]));
    run.handle(failed());
    assert_eq!(failure(&mut run), (SimulationPart::Caller, EndedReason::ModelFailed));

    let mut run = Simulation::new(setup("", &[]));
    run.handle(caller("Hi", false));
    run.handle(failed());
    assert_eq!(failure(&mut run), (SimulationPart::Assistant, EndedReason::ModelFailed));

    let mut run = Simulation::new(setup("", &["judge"]));
    run.handle(caller("Hi", true));
    run.handle(failed());
    assert_eq!(failure(&mut run), (SimulationPart::Judge, EndedReason::UserHungUp));
    run.handle(ruling(true));
    assert_eq!(run.poll(), None);
}

#[test]
fn a_caller_who_stays_silent_ends_it() {
    let mut run = Simulation::new(setup("", &[]));
    for _ in 0..3 {
        assert_eq!(drained(&mut run), [Output::AskCaller]);
        run.handle(caller(" ", false));
    }
    let Some(Output::Done { result }) = run.poll() else { panic!("not done") };
    assert_eq!(result.ended_reason, EndedReason::Silence);
    assert!(result.passed.is_none() && result.transcript.is_empty());
}

#[test]
fn a_caller_may_hang_up_without_a_word() {
    let mut run = Simulation::new(setup("Hello!", &[]));
    drained(&mut run);
    run.handle(caller("", true));
    let Some(Output::Done { result }) = run.poll() else { panic!("not done") };
    assert_eq!(result.ended_reason, EndedReason::UserHungUp);
    assert_eq!(result.turns, 1);
}

#[test]
fn a_goodbye_that_is_the_last_line_allowed_hangs_up() {
    let mut setup = setup("Hello!", &[]);
    setup.limits.turns_max = 2;
    for (hang_up, reason) in [(true, EndedReason::UserHungUp), (false, EndedReason::TurnLimit)] {
        let mut run = Simulation::new(setup.clone());
        drained(&mut run);
        run.handle(caller("Bye.", hang_up));
        let Some(Output::Done { result }) = run.poll() else { panic!("not done") };
        assert_eq!((result.ended_reason, result.turns), (reason, 2));
        assert_eq!(result.passed, None);
        assert_eq!(result.transcript.len(), 2);
    }
}

#[test]
fn answers_to_what_was_not_asked_change_nothing() {
    let mut run = Simulation::new(setup("Hello!", &["judge"]));
    drained(&mut run);
    let before = run.clone();
    run.handle(assistant("What?"));
    run.handle(ruling(true));
    run.handle(result("run_t1"));
    assert_eq!(run, before);
    run.handle(caller("Order 7?", false));
    run.handle(call("order"));
    drained(&mut run);
    let before = run.clone();
    run.handle(result("run_t2"));
    assert_eq!(run, before);
}

#[test]
fn a_judge_is_not_asked_about_nothing() {
    let mut run = Simulation::new(setup("", &["judge"]));
    drained(&mut run);
    run.handle(caller("", true));
    let Some(Output::Done { result }) = run.poll() else { panic!("not done") };
    assert_eq!(result.passed, None);
    assert_eq!(result.evaluations[0].reason, "There is no turn to rule on.");
}

#[test]
fn a_judge_rules_as_often_as_the_scenario_wants() {
    let mut run = Simulation::new(SimulationSetup { judge_votes: 3, ..setup("Hello!", &["judge", "judge"]) });
    drained(&mut run);
    run.handle(caller("Bye.", true));
    for vote in [0, 1, 2, 0, 1, 2] {
        assert_eq!(drained(&mut run), [Output::AskJudge]);
        assert_eq!(run.judge_question().unwrap().turn().vote, vote);
        run.handle(ruling(vote > 0));
    }
    let Some(Output::Done { result }) = run.poll() else { panic!("not done") };
    assert_eq!(result.passed, Some(true));
    let votes = result.evaluations[0].votes.unwrap();
    assert_eq!((votes.passed, votes.failed, votes.undecided), (2, 1, 0));
}

#[test]
fn the_setup_may_leave_its_limits_out() {
    let mut stored = serde_json::to_value(setup("", &[])).unwrap();
    stored.as_object_mut().unwrap().remove("limits");
    let loaded: SimulationSetup = serde_json::from_value(stored).unwrap();
    assert_eq!(loaded.limits, SimulationSetup::default_limits());
}

proptest! {
    /// A state that is stored and loaded at every step behaves identically and has at most one open request.
    #[test]
    fn restarts_change_nothing(
        inputs in prop::collection::vec(input(), 0..30),
        first in prop_oneof![Just(""), Just("Hello!")],
    ) {
        let mut run = Simulation::new(setup(first, &["judge", "tool_call", "judge"]));
        let mut twin = run.clone();
        let mut inputs = inputs.into_iter().cycle();
        let mut over = false;
        for _ in 0..200 {
            let outputs = drained(&mut run);
            prop_assert!(outputs.len() <= 1, "{outputs:?}");
            prop_assert_eq!(&drained(&mut twin), &outputs);
            match outputs.first() {
                Some(Output::Done { .. } | Output::Failed { .. }) => {
                    prop_assert!(!over);
                    over = true;
                }
                Some(_) => prop_assert!(!over),
                None => {}
            }
            let Some(input) = inputs.next() else { return Ok(()) };
            run.handle(input.clone());
            twin = serde_json::from_str(&serde_json::to_string(&twin).unwrap()).unwrap();
            if !over {
                twin.resume();
                prop_assert!(drained(&mut twin).len() == 1);
            }
            twin.handle(input);
            if over {
                prop_assert_eq!(drained(&mut run), []);
                prop_assert_eq!(drained(&mut twin), []);
                break;
            }
        }
    }

    /// A driver that answers every request reaches the end.
    #[test]
    fn every_simulation_ends(texts in prop::collection::vec("[ ab]{0,2}", 1..20)) {
        let mut run = Simulation::new(setup("", &["judge"]));
        let mut texts = texts.into_iter().cycle();
        for step in 0..1_000 {
            let text = texts.next().unwrap_or_default();
            match run.poll() {
                Some(Output::AskCaller) => run.handle(caller(&text, false)),
                Some(Output::AskAssistant) if step % 3 == 0 => run.handle(call(&text)),
                Some(Output::AskAssistant) if step % 2 == 0 => run.handle(call("order")),
                Some(Output::AskAssistant) => run.handle(assistant(&text)),
                Some(Output::CallTool { id, .. }) => run.handle(result(&id)),
                Some(Output::AskJudge) => run.handle(ruling(true)),
                Some(Output::Done { result }) => {
                    prop_assert!(result.turns <= 10);
                    return Ok(());
                }
                other => return Err(TestCaseError::fail(format!("{other:?}"))),
            }
        }
        prop_assert!(run.conversation().ended().is_some() && run.poll().is_none(), "it goes on");
    }
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        4 => (".{0,3}", prop::bool::weighted(0.1)).prop_map(|(text, end)| caller(&text, end)),
        4 => ".{0,3}".prop_map(|text| assistant(&text)),
        2 => prop_oneof![Just("order"), Just("nope")].prop_map(call),
        4 => (1..12_u32).prop_map(|n| result(&format!("run_t{n}"))),
        2 => any::<bool>().prop_map(ruling),
        1 => Just(Input::ModelFailed { reason: "timeout".into() }),
    ]
}

fn failure(run: &mut Simulation) -> (SimulationPart, EndedReason) {
    match drained(run).pop() {
        Some(Output::Failed { failure }) => {
            assert_eq!(failure.reason, "timeout");
            (failure.part, failure.ended_reason)
        }
        other => panic!("not failed: {other:?}"),
    }
}

fn drained(run: &mut Simulation) -> Vec<Output> {
    std::iter::from_fn(|| run.poll()).collect()
}

fn setup(first_message: &str, kinds: &[&str]) -> SimulationSetup {
    let evaluations =
        kinds.iter().map(|kind| serde_json::from_value(json!({"kind": kind, "includes": "x"})).unwrap());
    SimulationSetup {
        run_id: RunId::from_stored("run"),
        assistant: SimulatedAssistant {
            first_message: first_message.into(),
            tools: vec![conversation::ToolSpec {
                name: "order".into(),
                description: String::new(),
                parameters: json!({"type": "object"}).into(),
            }]
            .into(),
            ..SimulatedAssistant::default()
        },
        persona: "Anybody.".into(),
        scenario: "Order.".into(),
        evaluations: evaluations.collect(),
        judge_votes: 1,
        seed: 1,
        limits: ConversationLimits { turns_max: 10, ..SimulationSetup::default_limits() },
        voice: None,
    }
}

fn caller(text: &str, hang_up: bool) -> Input {
    Input::CallerReply { reply: CallerReply { text: text.into(), hang_up } }
}

fn assistant(text: &str) -> Input {
    Input::AssistantReply { reply: AssistantReply::Say { text: text.into() } }
}

fn call(name: &str) -> Input {
    let reply = AssistantReply::call(name, json!({}));
    Input::AssistantReply { reply }
}

fn result(id: &str) -> Input {
    Input::ToolResult { id: id.into(), text: "done".into(), is_error: false, mocked: false, after_ms: 0 }
}

fn ruling(passed: bool) -> Input {
    Input::Verdict { ruling: Verdict { passed: Some(passed), matched_index: None, reason: "So.".into() } }
}

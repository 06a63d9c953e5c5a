use serde_json::json;

use super::*;
use crate::base::ids::Id;
use crate::conversation::transcript::TranscriptRole;
use crate::conversation::{EndedReason, Knowledge};
use crate::models::rules::{RulesAssistant, RulesCaller, RulesJudge};
use crate::simulation::{Input, Output, SimulatedAssistant, Simulation, SimulationResult, SimulationSetup};
use crate::speech::recorder::Segment;
use crate::speech::tone::{ToneDecoder, ToneHeard};

#[test]
fn a_voice_run_says_what_a_chat_says() {
    let (spoken, _) = run(Conditions::default());
    let texts: Vec<&str> = spoken.transcript.iter().map(|row| row.text.as_str()).collect();
    assert_eq!(texts[..3], ["Shop, hello!", "When do you open on Saturday?", "We open at nine on Saturday."]);
    assert_eq!(spoken.ended_reason, EndedReason::UserHungUp);
    assert_eq!(spoken.passed, Some(true));
}

#[test]
fn the_recording_has_every_line_at_its_time() {
    let (result, voice) = run(Conditions::default());
    let frames = recorded(&voice, result.duration_ms);
    assert_eq!(RATE.ms_of(frames.len()), result.duration_ms);
    for (channel, role) in [(0, TranscriptRole::User), (1, TranscriptRole::Assistant)] {
        let rows: Vec<_> = result.transcript.iter().filter(|row| row.role == role).collect();
        assert!(!rows.is_empty());
        for row in rows {
            let place = |ms: i64| usize::try_from(ms * 8).unwrap();
            let slice = &frames[place(row.start_ms)..place(row.end_ms)];
            let mut audio: Vec<i16> = slice.iter().map(|frame| frame[channel]).collect();
            audio.extend([0; 800]);
            let heard = ToneDecoder::new(RATE).hear(&audio);
            let said =
                heard.iter().any(|one| matches!(one, ToneHeard::Said { text, .. } if *text == row.text));
            assert!(said, "{row:?}: {heard:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_whatever_the_segments() {
    let rough =
        Conditions { packet_loss: 2, jitter_ms: 61, noise_db: Some(-30), talk_over: 50, slow_talker: true };
    let (once, voice) = run(rough);
    let (again, other) = run(rough);
    assert_eq!(once, again);
    let whole = recorded(&voice, once.duration_ms);
    assert_eq!(whole, recorded(&other, once.duration_ms));
    let pieces: Vec<Segment> = voice.soundtrack(once.duration_ms, 1_000).collect();
    assert_eq!(pieces.into_iter().flat_map(|one| one.frames).collect::<Vec<_>>(), whole);
}

#[test]
fn a_caller_who_talks_over_every_line_interrupts() {
    let (result, _) = run(Conditions { talk_over: 100, ..Conditions::default() });
    let cut = result.transcript.iter().find(|row| row.interrupted).expect("an interrupted row");
    assert_eq!(cut.role, TranscriptRole::Assistant);
    let whole = cut.intended_text.as_deref().unwrap_or_default();
    assert!(whole.starts_with(&cut.text) && whole.len() > cut.text.len(), "{cut:?}");
    assert!(result.transcript.iter().any(|row| row.text == "When do you open on Saturday?"));
}

#[test]
fn a_dead_line_ends_the_conversation() {
    for conditions in [
        Conditions { packet_loss: 100, ..Conditions::default() },
        Conditions { noise_db: Some(0), ..Conditions::default() },
        Conditions { jitter_ms: 1_000, ..Conditions::default() },
    ] {
        let (result, _) = run(conditions);
        let understood = result.transcript.iter().filter(|row| row.role == TranscriptRole::User).count();
        assert_eq!(understood, 0, "{:?}", result.transcript);
        assert_eq!(result.passed, Some(false));
        assert_ne!(result.ended_reason, EndedReason::Aborted);
    }
}

#[test]
fn a_slow_talker_takes_longer_and_is_understood() {
    let (quick, _) = run(Conditions::default());
    let (slow, _) = run(Conditions { slow_talker: true, ..Conditions::default() });
    let texts =
        |result: &SimulationResult| result.transcript.iter().map(|row| row.text.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&quick), texts(&slow));
    assert!(slow.duration_ms > quick.duration_ms);
}

#[test]
fn turns_have_their_times_in_order() {
    let (_, voice) = run(Conditions::default());
    assert!(!voice.turns().is_empty());
    for turn in voice.turns() {
        assert!(turn.end_of_speech_ms <= turn.transcript_ms, "{turn:?}");
    }
    let first = voice.turns()[0];
    assert!(first.transcript_ms <= first.model_first_ms && first.model_first_ms <= first.heard_first_ms);
}

fn recorded(voice: &VoiceLine, duration_ms: i64) -> Vec<[i16; 2]> {
    voice.soundtrack(duration_ms, 5_000).flat_map(|segment| segment.frames).collect()
}

fn run(conditions: Conditions) -> (SimulationResult, VoiceLine) {
    let evaluations = json!([{"kind": "transcript", "role": "assistant", "includes": "open at nine"}]);
    let setup = SimulationSetup {
        run_id: Id::from_stored("run_1"),
        assistant: SimulatedAssistant {
            first_message: "Shop, hello!".into(),
            knowledge: vec![Knowledge {
                name: "Hours".into(),
                content: "We open at nine on Saturday. We are closed on Sunday.".into(),
            }]
            .into(),
            ..SimulatedAssistant::default()
        },
        persona: "A patient customer.".into(),
        scenario: "Ask \"When do you open on Saturday?\".".into(),
        evaluations: serde_json::from_value(evaluations).unwrap(),
        judge_votes: 1,
        seed: 42,
        limits: SimulationSetup::default_limits(),
        voice: Some(VoiceSetup { conditions, is_interruptible: true }),
    };
    let assistant = RulesAssistant::new(&setup.assistant.knowledge, &setup.assistant.tools);
    let caller = RulesCaller::new(&setup.persona, &setup.scenario);
    let mut judge = RulesJudge::new();
    let mut simulation = Simulation::new(setup);
    loop {
        let input = match simulation.poll().expect("an output") {
            Output::AskCaller => Input::CallerReply { reply: caller.reply(&simulation.caller_turn()) },
            Output::AskAssistant => {
                Input::AssistantReply { reply: assistant.reply(&simulation.assistant_turn()) }
            }
            Output::AskJudge => {
                Input::Verdict { ruling: judge.judge(&simulation.judge_question().unwrap().turn()) }
            }
            Output::Done { result } => return (result, simulation.voice().unwrap().clone()),
            other => panic!("unexpected: {other:?}"),
        };
        simulation.handle(input);
    }
}

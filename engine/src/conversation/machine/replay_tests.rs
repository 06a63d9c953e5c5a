//! A conversation is a function of its inputs and their times: replaying them produces the same bytes.
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::base::limits::CALL_INPUTS_BYTES_MAX;
use crate::conversation::ToolRequest;
use crate::conversation::input_log::{self, InputLog};
use crate::conversation::{ConversationLimits, Greeting, ToolSpec, Voicemail, VoicemailAction};

const SILENCE_MS: i64 = 20_000;
const DURATION_MS: i64 = 300_000;

#[test]
fn a_text_conversation_replays() {
    let mut call = Recorded::new(false);
    call.at(1_000, Input::Start);
    assert_eq!(call.conversation.poll_timeout(), Some(21_000));
    call.at(9_000, user("Order 7?"));
    assert_eq!(
        call.conversation.poll_timeout(),
        Some(301_000),
        "silence is not measured while the model thinks"
    );
    call.at(9_500, tool_calls(1));
    call.at(11_000, tool_result("c_t1"));
    call.at(12_000, reply(2, "It was sent."));
    call.at(15_000, user("Thanks"));
    call.at(16_000, reply(3, "Bye."));
    call.at(17_000, Input::HangUp { by: Party::User });
    assert_eq!(call.conversation.poll_timeout(), None);
    call.replays();
}

#[test]
fn a_telephone_call_with_interruptions_replays() {
    let mut call = Recorded::new(true);
    call.at(0, Input::Start);
    let timeout = call.conversation.poll_timeout();
    assert_eq!(timeout, Some(DURATION_MS), "silence is not measured while the assistant speaks");
    call.at(800, Input::Interrupted { heard_permille: 500 });
    assert_eq!(call.conversation.poll_timeout(), Some(800 + SILENCE_MS));
    call.at(2_000, user("Are you open?"));
    call.at(2_400, reply(1, "Yes, until nine in the evening."));
    call.at(3_000, Input::Interrupted { heard_permille: 300 });
    call.at(4_000, Input::Keys { keys: "12#".into(), duration_ms: 700, silence_ms: 0 });
    call.at(4_500, reply(2, "Thank you."));
    call.at(5_500, Input::Spoken { until_ms: None });
    call.at(6_000, Input::Noise);
    assert_eq!(call.conversation.poll_timeout(), Some(6_000 + SILENCE_MS));
    call.at(7_000, Input::Stop { reason: EndedReason::MediaLost });
    let rows: Vec<_> = call.conversation.transcript().iter().map(|row| row.text.as_str()).collect();
    assert_eq!(rows, ["Hello, this", "Are you open?", "Yes,", "12#", "Thank you."]);
    call.replays();
}

#[test]
fn silence_is_detected_by_time_alone() {
    for is_spoken in [false, true] {
        let mut call = Recorded::new(is_spoken);
        call.at(5_000, Input::Start);
        call.at(5_700, Input::Spoken { until_ms: None });
        call.at(15_000, Input::Tick);
        for silences in 1..=3 {
            assert_eq!(call.conversation.poll_timeout(), Some(5_700 + silences * SILENCE_MS));
            call.wait();
        }
        assert_eq!(call.conversation.ended(), Some(EndedReason::Silence));
        call.replays();
    }
}

#[test]
fn the_time_limit_applies_while_the_model_thinks() {
    let mut call = Recorded::new(true);
    call.at(5_000, Input::Start);
    call.at(6_000, user("Hi"));
    call.wait();
    assert_eq!(call.conversation.ended(), Some(EndedReason::DurationLimit));
    assert_eq!(call.conversation.offset_ms(), DURATION_MS);
    call.replays();
}

#[test]
fn silence_is_not_detected_without_a_silence_limit() {
    let mut setup = setup(false);
    setup.limits.silence_ms = None;
    let mut conversation = Conversation::new(setup);
    assert_eq!(conversation.poll_timeout(), None);
    conversation.handle(0, Input::Start);
    assert_eq!(conversation.poll_timeout(), Some(DURATION_MS));
    conversation.handle(DURATION_MS - 1, Input::Tick);
    assert_eq!(conversation.ended(), None);
}

#[test]
fn a_log_has_no_time_that_passed_without_consequence_and_a_bound() {
    let mut call = Recorded::new(false);
    call.at(1_000, Input::Start);
    for at_ms in 0..1_000 {
        call.at(2_000 + at_ms, Input::Tick);
    }
    assert_eq!(call.log.pending().1.len(), 2);
    call.replays_from_its_log();
    call.log.stored();
    assert_eq!(call.log.pending(), (2, &[][..]));
    let mut bytes = 0;
    for at_ms in 0..60 {
        call.at(4_000 + at_ms, Input::Note { text: "n".repeat(100_000) });
        bytes = call.log.pending().1.iter().map(String::len).sum::<usize>();
    }
    let within = CALL_INPUTS_BYTES_MAX - 110_000..CALL_INPUTS_BYTES_MAX;
    assert!(within.contains(&bytes), "{bytes}");
    assert_eq!(call.log.pending().1.last().map(String::as_str), Some(input_log::FULL));
}

proptest! {
    #[test]
    fn any_conversation_replays(is_spoken: bool, steps in prop::collection::vec(step(), 0..80)) {
        let mut call = Recorded::new(is_spoken);
        call.at(1_000, Input::Start);
        for step in steps {
            call.step(step);
        }
        call.replays();
    }
}

/// A possible next event, with the time until then.
#[derive(Debug, Clone)]
enum Step {
    Input(i64, Input),
    Text(i64, String),
    Reply(i64, AssistantReply),
    ModelFails(i64),
    ToolAnswers(i64),
    /// No event until the timeout.
    Timeout,
}

fn step() -> impl Strategy<Value = Step> {
    let delay = || prop_oneof![8 => 0..4_000_i64, 1 => -1_000..40_000_i64];
    let input = prop_oneof![
        6 => ".{1,8}".prop_map(|text| user(&text)),
        2 => (0..1_200_u32).prop_map(|heard_permille| Input::Interrupted { heard_permille }),
        1 => (0..1_200_u32).prop_map(|heard_permille| Input::BrokeOff { heard_permille }),
        2 => (0..12_usize, 0..16_usize).prop_map(|(row, chars)| Input::Heard { row, chars }),
        1 => ("[0-9#*]{1,3}", 0_i64..3_000, 0_i64..3_000)
            .prop_map(|(keys, duration_ms, silence_ms)| Input::Keys { keys, duration_ms, silence_ms }),
        4 => Just(Input::Spoken { until_ms: None }),
        2 => Just(Input::Noise),
        1 => Just(Input::NotUnderstood),
        1 => (0..20_000_i64).prop_map(|at_ms| Input::LineBegan { at_ms }),
        1 => Just(Input::Note { text: "A voice failed.".into() }),
        1 => prop_oneof![Just(None), Just(Some(Greeting::Ended)), Just(Some(Greeting::None))]
            .prop_map(|greeting| Input::MachineAnswered { greeting }),
        1 => prop_oneof![
            Just(Input::HangUp { by: Party::User }),
            Just(Input::Stop { reason: EndedReason::MediaLost }),
            Just(Input::CostLimit),
        ],
        1 => Just(Input::VoiceBegan),
        1 => Just(Input::VoiceEnded),
        1 => Just(Input::Paused),
        1 => Just(Input::Resumed),
        2 => Just(Input::Tick),
    ];
    let reply = prop_oneof![
        6 => ".{0,12}".prop_map(|text| AssistantReply::Say { text }),
        3 => (1..4_usize).prop_map(|count| AssistantReply::CallTools {
            text: "One moment.".into(),
            calls: vec![ToolRequest { name: "order".into(), arguments: json!({}) }; count],
        }),
    ];
    prop_oneof![
        6 => (delay(), input).prop_map(|(delay, input)| Step::Input(delay, input)),
        4 => (delay(), "[a-z ]{0,9}[.] ").prop_map(|(delay, text)| Step::Text(delay, text)),
        6 => (delay(), reply).prop_map(|(delay, reply)| Step::Reply(delay, reply)),
        4 => delay().prop_map(Step::ToolAnswers),
        2 => Just(Step::Timeout),
        1 => delay().prop_map(Step::ModelFails),
    ]
}

/// A conversation that records its inputs with their times, and its outputs.
struct Recorded {
    conversation: Conversation,
    log: InputLog,
    now_ms: i64,
    calls: VecDeque<String>,
    inputs: Vec<(i64, Input)>,
    outputs: Vec<Output>,
}

impl Recorded {
    fn new(is_spoken: bool) -> Self {
        Self {
            conversation: Conversation::new(setup(is_spoken)),
            log: InputLog::new(&setup(is_spoken)),
            now_ms: 0,
            calls: VecDeque::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }

    fn at(&mut self, now_ms: i64, input: Input) {
        self.now_ms = now_ms;
        self.inputs.push((now_ms, input.clone()));
        self.log.handle(&mut self.conversation, now_ms, input);
        while let Some(output) = self.conversation.poll() {
            if let Output::CallTool { id, .. } = &output {
                self.calls.push_back(id.clone());
            }
            self.outputs.push(output);
        }
    }

    fn step(&mut self, step: Step) {
        let request = self.conversation.request();
        match step {
            Step::Input(delay_ms, input) => self.at(self.now_ms + delay_ms, input),
            Step::Text(delay_ms, text) => {
                self.at(self.now_ms + delay_ms, Input::AssistantText { request, text });
            }
            Step::Reply(delay_ms, reply) => {
                self.at(self.now_ms + delay_ms, Input::AssistantReply { request, reply });
            }
            Step::ModelFails(delay_ms) => {
                let reason = "timeout".into();
                self.at(self.now_ms + delay_ms, Input::ModelFailed { request, reason });
            }
            Step::ToolAnswers(delay_ms) => {
                if let Some(id) = self.calls.pop_front() {
                    self.at(self.now_ms + delay_ms, tool_result(&id));
                }
            }
            Step::Timeout => self.wait(),
        }
    }

    /// Waits until the timeout. The next timeout is later.
    fn wait(&mut self) {
        let Some(until_ms) = self.conversation.poll_timeout() else { return };
        self.at(until_ms, Input::Tick);
        assert!(self.conversation.poll_timeout().is_none_or(|next_ms| next_ms > until_ms));
    }

    /// Replays the inputs from their serialised form in a new conversation.
    fn replays(&self) {
        let stored = serde_json::to_string(&self.inputs).unwrap();
        let inputs: Vec<(i64, Input)> = serde_json::from_str(&stored).unwrap();
        let mut conversation = Conversation::new(self.conversation.setup.clone());
        let mut outputs = Vec::new();
        for (now_ms, input) in inputs {
            conversation.handle(now_ms, input);
            outputs.extend(std::iter::from_fn(|| conversation.poll()));
        }
        assert_eq!(json!(outputs).to_string(), json!(self.outputs).to_string());
        assert_eq!(json!(conversation).to_string(), json!(self.conversation).to_string());
        assert_eq!(conversation.poll_timeout(), self.conversation.poll_timeout());
        self.replays_from_its_log();
    }

    /// The log leaves out time that passed without consequence, and nothing else.
    fn replays_from_its_log(&self) {
        let conversation = input_log::replay(self.log.pending().1.iter().map(String::as_str)).unwrap();
        assert_eq!(json!(conversation.transcript()), json!(self.conversation.transcript()));
        assert_eq!(json!(conversation.history()), json!(self.conversation.history()));
        assert_eq!(conversation.ended(), self.conversation.ended());
        assert_eq!(conversation.poll_timeout(), self.conversation.poll_timeout());
        if conversation.ended().is_some() {
            assert_eq!(conversation.offset_ms(), self.conversation.offset_ms());
        }
    }
}

fn setup(is_spoken: bool) -> ConversationSetup {
    let limits = ConversationLimits {
        silence_ms: Some(SILENCE_MS),
        duration_ms_max: DURATION_MS,
        ..ConversationLimits::default()
    };
    ConversationSetup {
        id: "c".into(),
        instructions: "Be kind.".into(),
        first_message: "Hello, this is the shop.".into(),
        knowledge: Vec::new().into(),
        tools: vec![ToolSpec {
            name: "order".into(),
            description: String::new(),
            parameters: json!({"type": "object"}).into(),
        }]
        .into(),
        has_transfers: false,
        seed: 1,
        limits,
        is_spoken,
        apology: String::new(),
        still_there: String::new(),
        not_understood: String::new(),
        keys: false,
        opening_note: String::new(),
        voicemail: Some(Voicemail { action: VoicemailAction::LeaveMessage, message: "Call us back.".into() }),
        filler: "One moment, I am looking.".into(),
    }
}

fn user(text: &str) -> Input {
    Input::UserText { text: text.into(), duration_ms: 700, silence_ms: 0 }
}

fn reply(request: u64, text: &str) -> Input {
    Input::AssistantReply { request, reply: AssistantReply::Say { text: text.into() } }
}

fn tool_calls(request: u64) -> Input {
    Input::AssistantReply { request, reply: AssistantReply::call("order", json!({"id": 7})) }
}

fn tool_result(id: &str) -> Input {
    Input::ToolResult { id: id.into(), text: "sent".into(), is_error: false, mocked: false }
}

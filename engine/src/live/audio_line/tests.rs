//! Tests of the telephone's state machine, without a socket or a clock.
use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::base::limits::{PHONE_AHEAD_MS, PHONE_MARK_LATE_MS, PHONE_MARK_MS};
use crate::conversation::{
    AssistantReply, Conversation, ConversationLimits, ConversationSetup, Input, Output,
};
use crate::speech::audio::FRAME_MS;
use crate::speech::tone::ToneEncoder;
use crate::speech::voice::TurnTaking;

const LOST: PeerEvent = PeerEvent::Stop { reason: EndedReason::MediaLost, fault: CallFault::Carrier };

const RATE: Rate = Rate::Khz8;

fn tone() -> Voice {
    Voice::tone(RATE, TurnTaking::default(), false)
}

#[test]
fn a_line_is_spoken_once_its_marks_return() {
    let mut peer = started();
    peer.handle(0, LineInput::Say("Hello, this is the shop.".into()));
    let sent = outputs(&mut peer, 0);
    let frames = sent.iter().filter(|output| matches!(output, LineOutput::Audio(_))).count();
    let marks: Vec<_> = sent.iter().filter_map(mark).collect();
    let audio_ms = i64::try_from(frames).unwrap() * FRAME_MS;
    assert_eq!(marks.len(), usize::try_from(audio_ms / PHONE_MARK_MS).unwrap() + 1);
    assert_eq!(sent.last().and_then(mark), marks.last().copied());
    for mark in &marks {
        assert!(peer.is_speaking());
        peer.handle(audio_ms, played(*mark));
    }
    assert_eq!(
        events(&mut peer),
        [PeerEvent::LineBegan { at_ms: 0 }, PeerEvent::Spoken { until_ms: Some(audio_ms) }]
    );
    assert!(!peer.is_speaking());
    assert_eq!(peer.poll_timeout(), None);
}

/// Frames of silence and of sound, in a row.
fn sounds(sent: &[LineOutput]) -> Vec<bool> {
    let sounds = sent.iter().filter_map(|output| match output {
        LineOutput::Audio(frame) => Some(frame.iter().any(|sample| *sample != 0)),
        _ => None,
    });
    sounds.collect()
}

#[test]
fn keys_are_pressed_after_the_line_and_nobody_cuts_them() {
    let mut peer = started();
    peer.handle(0, LineInput::Say("One moment.".into()));
    let line = outputs(&mut peer, 0);
    peer.handle(0, LineInput::Press("c_t1".into(), "12".into()));
    peer.handle(0, LineInput::Press("c_t2".into(), "#".into()));
    assert_eq!(outputs(&mut peer, 0), [], "they wait for the end of the line");
    let line_ms = i64::try_from(sounds(&line).len()).unwrap() * FRAME_MS;
    line.iter().filter_map(mark).for_each(|mark| peer.handle(line_ms, played(mark)));
    let pressed = outputs(&mut peer, line_ms);
    assert_eq!(sounds(&pressed), [[true; 5], [false; 5], [true; 5], [false; 5]].concat());
    assert!(matches!(events(&mut peer)[..], [PeerEvent::LineBegan { .. }, PeerEvent::Spoken { .. }]));
    // A key of the person, and a line that is cut before it is heard.
    peer.handle(line_ms + 50, LineInput::Say("Hello?".into()));
    peer.handle(line_ms + 100, LineInput::Media(MediaEvent::Dtmf('5')));
    assert_eq!(outputs(&mut peer, line_ms + 100), [], "nothing is discarded, and nothing is said meanwhile");
    assert_eq!(events(&mut peer), [PeerEvent::Interrupted { heard_permille: 0 }]);
    let over_ms = line_ms + 400;
    pressed.iter().filter_map(mark).for_each(|mark| peer.handle(over_ms, played(mark)));
    assert_eq!(events(&mut peer), [PeerEvent::KeysPressed { id: "c_t1".into(), pressed: 2 }]);
    assert_eq!(sounds(&outputs(&mut peer, over_ms)), [[true; 5], [false; 5]].concat());
    // The person hangs up in the middle of the tone.
    peer.handle(over_ms + 60, LineInput::Gone);
    let last = [(); 3].map(|()| peer.poll_event());
    let cut = PeerEvent::KeysPressed { id: "c_t2".into(), pressed: 0 };
    assert_eq!(last, [keys("5", 0, 360), cut, PeerEvent::Gone].map(Some));
}

#[test]
fn what_is_said_while_keys_are_pressed_follows_them() {
    let mut peer = started();
    peer.handle(0, LineInput::Press("c_t1".into(), "1w2".into()));
    peer.handle(0, LineInput::Say("Hello?".into()));
    let keys = outputs(&mut peer, 0);
    assert_eq!(sounds(&keys).len(), 45, "nothing but the keys");
    keys.iter().filter_map(mark).for_each(|mark| peer.handle(900, played(mark)));
    assert!(sounds(&outputs(&mut peer, 900)).len() > 10, "the line");
    assert_eq!(events(&mut peer), [PeerEvent::KeysPressed { id: "c_t1".into(), pressed: 3 }]);
}

#[test]
fn what_was_heard_counts_the_lines_whose_end_was_not_told_yet() {
    let mut peer = started();
    for line in ["Hello, this is the shop.", "How can I help you today?"] {
        peer.handle(0, LineInput::Say(line.into()));
    }
    let until_ms = ToneEncoder::duration_ms("Hello, this is the shop.") + 400;
    let (mut audio_ms, mut marks) = (0, Vec::new());
    for now_ms in (0..=until_ms).step_by(20) {
        for output in outputs(&mut peer, now_ms) {
            audio_ms += if matches!(output, LineOutput::Audio(_)) { FRAME_MS } else { 0 };
            marks.extend(mark(&output).map(|mark| (audio_ms, mark)));
        }
        for (_, mark) in marks.extract_if(.., |(at_ms, _)| *at_ms <= now_ms) {
            peer.handle(now_ms, played(mark));
        }
    }
    let [1_000, second] = peer.heard_permille(until_ms)[..] else { panic!("two lines") };
    assert!((1..1_000).contains(&second), "{second}");
    assert!(events(&mut peer).iter().any(|event| matches!(event, PeerEvent::Spoken { .. })));
    assert_eq!(peer.heard_permille(until_ms).len(), 1, "the end of the first was told");
}

#[test]
fn audio_is_sent_ahead_up_to_the_limit() {
    let mut peer = started();
    peer.handle(0, LineInput::Say("x".repeat(1_000)));
    let sent_ms = |sent: Vec<LineOutput>| {
        let frames = sent.iter().filter(|output| matches!(output, LineOutput::Audio(_))).count();
        i64::try_from(frames).unwrap() * FRAME_MS
    };
    assert_eq!(sent_ms(outputs(&mut peer, 0)), PHONE_AHEAD_MS);
    let next_ms = peer.poll_timeout().unwrap();
    assert_eq!(next_ms, PHONE_MARK_MS / 2);
    assert_eq!(sent_ms(outputs(&mut peer, next_ms)), PHONE_MARK_MS / 2);
}

#[test]
fn missing_marks_time_out() {
    let mut peer = started();
    peer.handle(0, LineInput::Say("Hello.".into()));
    outputs(&mut peer, 0);
    let late_ms = peer.poll_timeout().unwrap();
    assert_eq!(late_ms, PHONE_AHEAD_MS + PHONE_MARK_LATE_MS);
    peer.handle(100, LineInput::Tick);
    assert_eq!(events(&mut peer), [PeerEvent::LineBegan { at_ms: 0 }]);
    peer.handle(late_ms - 1, LineInput::Tick);
    assert_eq!(events(&mut peer), []);
    peer.handle(late_ms, LineInput::Tick);
    assert_eq!(events(&mut peer), [PeerEvent::Spoken { until_ms: Some(360) }]);
}

fn keys(keys: &str, duration_ms: i64, silence_ms: i64) -> PeerEvent {
    PeerEvent::Keys { keys: keys.to_owned(), duration_ms, silence_ms }
}

#[test]
fn keys_interrupt_the_assistant_and_are_one_line() {
    let mut peer = started();
    peer.handle(0, LineInput::Say("Hello.".into()));
    outputs(&mut peer, 0);
    peer.handle(0, LineInput::Media(MediaEvent::Dtmf('1')));
    assert_eq!(outputs(&mut peer, 0), [LineOutput::Clear]);
    assert_eq!(events(&mut peer), [PeerEvent::Interrupted { heard_permille: 0 }]);
    peer.handle(900, LineInput::Media(MediaEvent::Dtmf('2')));
    assert_eq!(peer.poll_timeout(), Some(900 + PHONE_KEYS_MS));
    peer.handle(900 + PHONE_KEYS_MS, LineInput::Tick);
    assert_eq!(events(&mut peer), [keys("12", 900, PHONE_KEYS_MS)]);
    peer.handle(9_000, LineInput::Media(MediaEvent::Dtmf('#')));
    peer.handle(9_000, LineInput::Tick);
    assert_eq!(events(&mut peer), [keys("#", 0, 0)]);
}

#[test]
fn audio_faster_than_real_time_ends_the_call() {
    let mut peer = started();
    let seconds = |count: usize| LineInput::Media(MediaEvent::Audio(vec![0; count * 8_000]));
    peer.handle(0, seconds(10));
    assert_eq!(peer.ended(), None);
    peer.handle(1_000, seconds(2));
    assert_eq!(peer.poll_event(), Some(LOST));
    assert_eq!(peer.poll_event(), Some(LOST));
    // Audio before the start of the stream does too.
    let mut peer = AudioLine::new(RATE, tone());
    peer.handle(0, seconds(1));
    assert_eq!(peer.ended(), Some(&LOST));
}

#[test]
fn a_line_that_always_sends_is_lost_when_nothing_arrives() {
    let silence = || LineInput::Media(MediaEvent::Audio(vec![0; 160]));
    let mut peer = AudioLine::new(RATE, tone()).steady();
    peer.handle(0, LineInput::Quiet);
    peer.handle(PHONE_DEAD_MS, LineInput::Quiet);
    assert_eq!(peer.ended(), None, "it has not begun");
    peer.handle(PHONE_DEAD_MS, LineInput::Media(MediaEvent::Started { carrier_call_id: None }));
    assert_eq!(peer.poll_timeout(), Some(2 * PHONE_DEAD_MS));
    // The service was busy, and what arrived meanwhile was not read yet.
    peer.handle(2 * PHONE_DEAD_MS, LineInput::Tick);
    peer.handle(2 * PHONE_DEAD_MS, silence());
    peer.handle(2 * PHONE_DEAD_MS, LineInput::Quiet);
    peer.handle(3 * PHONE_DEAD_MS - 1, LineInput::Quiet);
    assert_eq!(peer.ended(), None);
    peer.handle(3 * PHONE_DEAD_MS, LineInput::Quiet);
    assert_eq!(peer.ended(), Some(&LOST));
}

#[test]
fn too_many_unreadable_messages_end_the_call() {
    let mut peer = started();
    for _ in 1..PHONE_WRONG_MESSAGES_MAX {
        peer.handle(0, LineInput::Unreadable);
    }
    assert_eq!(peer.poll_event(), None);
    peer.handle(0, LineInput::Media(MediaEvent::Complaint("no".into())));
    assert_eq!(peer.poll_event(), Some(LOST));
}

#[test]
fn every_end_is_reported_with_its_reason() {
    for (input, event) in [
        (LineInput::Media(MediaEvent::Stopped), PeerEvent::Gone),
        (LineInput::Gone, PeerEvent::Gone),
        (LineInput::Stopping, STOPPING),
        (LineInput::TooLarge, LOST),
    ] {
        let mut peer = started();
        peer.handle(0, input);
        peer.handle(0, LineInput::Media(MediaEvent::Dtmf('#')));
        peer.handle(0, LineInput::Tick);
        assert_eq!(peer.poll_event(), Some(event));
    }
}

#[test]
fn keys_that_were_pressed_before_the_end_are_reported() {
    let mut peer = started();
    peer.handle(0, LineInput::Media(MediaEvent::Dtmf('5')));
    peer.handle(1_000, LineInput::Media(MediaEvent::Stopped));
    assert_eq!(peer.poll_event(), Some(keys("5", 0, 1_000)));
    assert_eq!(peer.poll_event(), Some(PeerEvent::Gone));
}

/// Replays a whole call from its audio, keys, marks, model answers and time.
#[test]
fn a_call_replays_from_its_inputs() {
    let mut world = World::default();
    world.plan(0, Cause::Phone(LineInput::Media(MediaEvent::Started { carrier_call_id: None })));
    world.plan(20, Cause::Conversation(Input::Start));
    world.plan_speech(900, "Wait");
    world.plan_speech(20_000, "Are you open?");
    for (at_ms, key) in [(40_000, '4'), (40_500, '2')] {
        world.plan(at_ms, Cause::Phone(LineInput::Media(MediaEvent::Dtmf(key))));
    }
    world.run();
    let call = &world.call;
    assert_eq!(call.conversation.ended(), Some(EndedReason::Silence));
    let rows = call.conversation.transcript();
    let texts: Vec<_> = rows.iter().map(|row| row.text.as_str()).collect();
    assert_eq!(texts[1..], ["Wait", "Answer 1.", "Are you open?", "Answer 2.", "42", "Answer 3."]);
    assert!(rows[0].interrupted && !rows[2].interrupted, "{rows:?}");

    let mut again = Call::default();
    for (now_ms, cause) in world.causes.clone() {
        again.apply(now_ms, cause);
    }
    assert_eq!(json!(again.outputs).to_string(), json!(call.outputs).to_string());
    assert_eq!(json!(again.conversation).to_string(), json!(call.conversation).to_string());
    assert!(again.sent == call.sent, "the replay sends the same audio");
}

fn started() -> AudioLine {
    let mut peer = AudioLine::new(RATE, tone());
    peer.handle(0, LineInput::Media(MediaEvent::Started { carrier_call_id: None }));
    peer
}

fn outputs(peer: &mut AudioLine, now_ms: i64) -> Vec<LineOutput> {
    std::iter::from_fn(|| peer.poll_output(now_ms)).collect()
}

fn events(peer: &mut AudioLine) -> Vec<PeerEvent> {
    std::iter::from_fn(|| peer.poll_event()).collect()
}

fn mark(output: &LineOutput) -> Option<u64> {
    match output {
        LineOutput::Mark(mark) => Some(*mark),
        _ => None,
    }
}

fn played(mark: u64) -> LineInput {
    LineInput::Media(MediaEvent::Played(mark.to_string()))
}

/// The external inputs of a call: everything a replay needs.
#[derive(Debug, Clone)]
enum Cause {
    Phone(LineInput),
    Conversation(Input),
    Tick,
}

/// Both state machines of a call, and their outputs.
struct Call {
    peer: AudioLine,
    conversation: Conversation,
    outputs: Vec<Output>,
    sent: Vec<LineOutput>,
}

impl Default for Call {
    fn default() -> Self {
        let limits = ConversationLimits { silence_ms: Some(20_000), ..ConversationLimits::default() };
        let setup = ConversationSetup {
            id: "c".into(),
            instructions: String::new(),
            first_message: "Hello, this is the shop. How may I help you today?".into(),
            knowledge: Vec::new().into(),
            tools: Vec::new().into(),
            has_transfers: false,
            seed: 1,
            limits,
            is_spoken: true,
            apology: String::new(),
            still_there: String::new(),
            not_understood: String::new(),
            keys: false,
            opening_note: String::new(),
            voicemail: None,
            filler: String::new(),
        };
        Self {
            peer: AudioLine::new(RATE, tone()),
            conversation: Conversation::new(setup),
            outputs: Vec::new(),
            sent: Vec::new(),
        }
    }
}

impl Call {
    fn apply(&mut self, now_ms: i64, cause: Cause) {
        match cause {
            Cause::Phone(input) => self.peer.handle(now_ms, input),
            Cause::Conversation(input) => self.conversation.handle(now_ms, input),
            Cause::Tick => {
                self.peer.handle(now_ms, LineInput::Tick);
                self.conversation.handle(now_ms, Input::Tick);
            }
        }
        loop {
            while let Some(output) = self.conversation.poll() {
                if let Output::Say { text } = &output {
                    self.peer.handle(now_ms, LineInput::Say(text.clone()));
                }
                self.outputs.push(output);
            }
            self.sent.extend(outputs(&mut self.peer, now_ms));
            let Some(event) = self.peer.poll_event() else { return };
            self.conversation.handle(now_ms, event.into_input());
        }
    }
}

/// A simulated caller, carrier and model; the carrier plays in real time.
#[derive(Default)]
struct World {
    call: Call,
    causes: Vec<(i64, Cause)>,
    planned: BTreeMap<(i64, usize), Cause>,
    plans: usize,
    /// When the carrier will have played everything it received.
    played_by_ms: i64,
}

impl World {
    fn plan(&mut self, at_ms: i64, cause: Cause) {
        self.plans += 1;
        self.planned.insert((at_ms, self.plans), cause);
    }

    fn plan_speech(&mut self, from_ms: i64, text: &str) {
        let mut audio = ToneEncoder::speak(text, RATE);
        // The silence after a line ends it.
        audio.extend([0; 16_000]);
        for (at_ms, frame) in (from_ms..).step_by(20).zip(audio.chunks(RATE.frame_samples())) {
            self.plan(at_ms, Cause::Phone(LineInput::Media(MediaEvent::Audio(frame.to_vec()))));
        }
    }

    fn run(&mut self) {
        while self.call.conversation.ended().is_none() {
            let timeouts = [self.call.peer.poll_timeout(), self.call.conversation.poll_timeout()];
            let timeout_ms = timeouts.into_iter().flatten().min().unwrap_or(i64::MAX);
            let is_planned =
                self.planned.first_key_value().is_some_and(|((at_ms, _), _)| *at_ms <= timeout_ms);
            match self.planned.pop_first() {
                Some(((at_ms, _), cause)) if is_planned => self.apply(at_ms, cause),
                Some((key, cause)) => {
                    self.planned.insert(key, cause);
                    self.apply(timeout_ms, Cause::Tick);
                }
                None => self.apply(timeout_ms, Cause::Tick),
            }
        }
    }

    fn apply(&mut self, now_ms: i64, cause: Cause) {
        let (outputs, sent) = (self.call.outputs.len(), self.call.sent.len());
        self.causes.push((now_ms, cause.clone()));
        self.call.apply(now_ms, cause);
        for output in self.call.outputs.split_off(outputs) {
            if let Output::AskModel { request } = &output {
                let (request, text) = (*request, format!("Answer {request}."));
                let reply = AssistantReply::Say { text };
                self.plan(now_ms + 300, Cause::Conversation(Input::AssistantReply { request, reply }));
            }
            self.call.outputs.push(output);
        }
        for output in self.call.sent.split_off(sent) {
            match &output {
                LineOutput::Audio(_) => self.played_by_ms = self.played_by_ms.max(now_ms) + FRAME_MS,
                LineOutput::Mark(mark) => self.plan(self.played_by_ms, Cause::Phone(played(*mark))),
                LineOutput::Clear => {
                    let is_mark = |cause: &Cause| {
                        matches!(cause, Cause::Phone(LineInput::Media(MediaEvent::Played(_))))
                    };
                    self.planned.retain(|_, cause| !is_mark(cause));
                    self.played_by_ms = now_ms;
                }
            }
            self.call.sent.push(output);
        }
    }
}

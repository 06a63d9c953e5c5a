use super::super::callers_phone::RATE;
use super::*;
use crate::speech::audio::Rate;

const GREETING: &str = "Hello, this is the front desk of the house by the lake.";

/// A caller with a driver whose model and voice answer at once: each character is one frame of a loud tone.
struct Call {
    caller: LiveCaller,
    now_ms: i64,
    asked: usize,
    /// The loudest sample of each frame that was sent.
    sent: Vec<i16>,
    notes: Vec<String>,
    marks: Vec<u64>,
    gave_up: bool,
    /// Frames that were lost.
    lost: usize,
    reply: CallerReply,
}

impl Call {
    fn new(conditions: Conditions, reply: &str, hang_up: bool) -> Self {
        Self {
            caller: LiveCaller::new(0, 7, conditions),
            now_ms: 0,
            asked: 0,
            sent: Vec::new(),
            notes: Vec::new(),
            marks: Vec::new(),
            gave_up: false,
            lost: 0,
            reply: CallerReply { text: reply.to_owned(), hang_up },
        }
    }

    fn run(&mut self, until_ms: i64) {
        while self.now_ms < until_ms {
            self.drain();
            self.now_ms = self.caller.poll_timeout().max(self.now_ms + 1);
            self.caller.tick(self.now_ms);
        }
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.caller.poll() {
            match output {
                CallerOutput::Ask => {
                    self.asked += 1;
                    self.caller.replied(self.now_ms, self.reply.clone());
                }
                CallerOutput::Speak(piece, text) => {
                    let samples = vec![10_000; text.chars().count() * RATE.frame_samples()];
                    self.caller.add_audio(piece, &samples);
                    self.caller.audio_ended(piece);
                }
                CallerOutput::Audio(samples) => {
                    let frames = samples.chunks_exact(Rate::Khz8.frame_samples());
                    self.sent.extend(frames.map(|frame| *frame.iter().max().unwrap()));
                }
                CallerOutput::Lost(samples) => {
                    let frames = samples / Rate::Khz8.frame_samples();
                    self.lost += frames;
                    self.sent.extend(std::iter::repeat_n(0, frames));
                }
                CallerOutput::Played(mark) => self.marks.push(mark),
                CallerOutput::NotUnderstood(text) => self.notes.push(text),
                CallerOutput::GiveUp => self.gave_up = true,
            }
        }
    }

    /// The assistant says its greeting in this time.
    fn greets(&mut self, ms: i64) {
        let row = TranscriptRow::new(0, TranscriptRole::Assistant, GREETING.to_owned(), 0, 0);
        self.caller.row(self.now_ms, &row);
        for _ in 0..ms / FRAME_MS {
            self.caller.hear(self.now_ms, &PlayerOutput::Audio(SILENCE.to_vec()));
        }
        self.caller.hear(self.now_ms, &PlayerOutput::Mark(1));
        self.caller.turn_state(self.now_ms, TurnState { is_callers: true, is_assistant_speaking: true });
    }

    fn is_free(&mut self) {
        self.caller.turn_state(self.now_ms, TurnState { is_callers: true, is_assistant_speaking: false });
    }

    fn understands(&mut self, index: usize, text: &str) {
        let row = TranscriptRow::new(index, TranscriptRole::User, text.to_owned(), 0, 0);
        self.caller.row(self.now_ms, &row);
    }

    /// When the caller's voice began, in ms.
    fn spoke_at_ms(&self) -> Option<i64> {
        self.sent.iter().position(|loud| *loud > 1_000).map(|frame| frame as i64 * FRAME_MS)
    }

    fn spoke_ms(&self) -> i64 {
        self.sent.iter().filter(|loud| **loud > 1_000).count() as i64 * FRAME_MS
    }
}

#[test]
fn a_caller_answers_after_the_line_and_hangs_up_when_understood() {
    let mut call = Call::new(Conditions::default(), "Goodbye!", true);
    call.greets(2_000);
    call.run(1_000);
    assert_eq!((call.asked, call.spoke_at_ms(), call.marks.as_slice()), (1, None, [].as_slice()));
    call.run(2_000);
    assert_eq!(call.marks, [1], "played when its audio was over");
    call.is_free();
    call.run(3_500);
    let spoke_at_ms = call.spoke_at_ms().expect("an answer");
    assert!((2_280..=2_340).contains(&spoke_at_ms), "{spoke_at_ms}");
    assert_eq!(call.spoke_ms(), 8 * FRAME_MS);
    assert!(!call.caller.has_hung_up());
    call.understands(1, "Goodbye!");
    assert!(call.caller.has_hung_up());
    assert_eq!(call.sent.len() as i64, call.now_ms / FRAME_MS, "a telephone sends all the time");
}

#[test]
fn a_rude_caller_talks_over_the_line() {
    let mut call = Call::new(Conditions { talk_over: 100, ..Conditions::default() }, "Stop!", false);
    call.greets(8_000);
    call.run(8_000);
    let spoke_at_ms = call.spoke_at_ms().expect("talks over it");
    let line_ms = spoken_ms(GREETING);
    assert!((line_ms / 5..line_ms).contains(&spoke_at_ms), "{spoke_at_ms} of {line_ms}");
}

#[test]
fn a_slow_talker_pauses() {
    let mut call =
        Call::new(Conditions { slow_talker: true, ..Conditions::default() }, "a b c d e f g", false);
    call.is_free();
    call.run(2_000);
    assert_eq!(call.spoke_ms(), 12 * FRAME_MS, "two pieces");
    let pause = call.sent.iter().skip_while(|loud| **loud == 0).take(7 + 20).filter(|loud| **loud == 0);
    assert_eq!(pause.count() as i64 * FRAME_MS, PAUSE_MS);
}

#[test]
fn a_caller_who_is_not_understood_repeats_and_gives_up() {
    let mut call = Call::new(Conditions { packet_loss: 100, ..Conditions::default() }, "Hello?", false);
    call.is_free();
    call.run(60_000);
    assert!(call.notes.len() >= 3 && call.notes.iter().all(|text| text == "Hello?"), "{:?}", call.notes);
    assert!(call.gave_up && call.spoke_at_ms().is_none());
    assert_eq!(call.lost, call.sent.len(), "the line knows that nothing arrived");
}

#[test]
fn the_line_knows_what_it_lost() {
    let mut call = Call::new(Conditions { packet_loss: 20, ..Conditions::default() }, "Hello?", false);
    call.run(20_000);
    let share = call.lost * 100 / call.sent.len();
    assert!((15..25).contains(&share), "{share} %");
    let mut well = Call::new(Conditions::default(), "Hello?", false);
    well.run(20_000);
    assert_eq!((well.lost, well.sent.len()), (0, call.sent.len()));
}

#[test]
fn silence_is_an_answer_until_something_is_said() {
    let mut call = Call::new(Conditions::default(), " ", false);
    call.is_free();
    call.run(5_000);
    assert_eq!((call.asked, call.spoke_ms()), (1, 0));
    call.greets(100);
    call.run(6_000);
    assert_eq!(call.asked, 2);
}

#[test]
fn a_stalled_driver_sends_no_flood() {
    let mut call = Call::new(Conditions::default(), "Hello", false);
    call.caller.tick(60_000);
    call.drain();
    assert_eq!(call.sent.len() as i64, FRAMES_AT_ONCE_MAX);
    call.caller.tick(60_020);
    call.drain();
    assert_eq!(call.sent.len() as i64, FRAMES_AT_ONCE_MAX + 1);
}

use super::*;
use crate::ports::Party;
use crate::speech::settings::SpeechApi;
use crate::speech::synthesizers::{self, SynthesizerSettings};
use crate::speech::tone::ToneEncoder;

#[test]
fn a_tone_line_is_heard_to_its_end_or_cut_where_it_was_interrupted() {
    let mut voice = Voice::tone(Rate::Khz8, TurnTaking::default(), false);
    voice.say(0, "Hello, this is the shop.");
    let mut mark = None;
    while let Some(output) = voice.poll_output(0) {
        if let PlayerOutput::Mark(number) = output {
            mark = Some(number);
        }
    }
    let whole_ms = ToneEncoder::duration_ms("Hello, this is the shop.");
    assert_eq!(voice.heard_permille(whole_ms / 2 / 20 * 20), [500]);
    voice.played(whole_ms, mark.unwrap());
    assert_eq!(voice.poll_event(), Some(VoiceEvent::LineBegan { at_ms: 0 }));
    assert_eq!(voice.poll_event(), Some(VoiceEvent::Spoken { until_ms: Some(whole_ms) }));
    voice.say(whole_ms, "And another one.");
    while voice.poll_output(whole_ms).is_some() {}
    voice.key_pressed(whole_ms + 200);
    assert_eq!(voice.poll_event(), Some(VoiceEvent::LineBegan { at_ms: whole_ms }));
    assert!(matches!(voice.poll_event(), Some(VoiceEvent::Cut(heard)) if heard[0] > 0 && heard[0] < 1_000));
    assert_eq!(voice.poll_output(whole_ms + 200), Some(PlayerOutput::Clear));
    assert!(!voice.is_speaking());
}

#[test]
fn a_line_is_spoken_when_it_is_complete_and_dropped_when_it_was_cut() {
    let mut voice = Voice::tone(Rate::Khz8, TurnTaking::default(), false);
    voice.say_part(0, "Hello, this ");
    assert_eq!(voice.poll_output(0), None, "a message of the tone code is whole");
    voice.say(100, "is the shop.");
    let frames = std::iter::from_fn(|| voice.poll_output(100));
    let frames = frames.filter(|output| matches!(output, PlayerOutput::Audio(_))).count() as i64;
    let whole_ms = ToneEncoder::duration_ms("Hello, this is the shop.");
    assert!((0..20).contains(&(frames * 20 - whole_ms)));
    voice.key_pressed(5_000);
    voice.say_part(6_000, "One moment, ");
    voice.key_pressed(6_500);
    assert!(voice.is_open_line_cut());
    voice.say_part(6_600, "please. ");
    voice.say(6_700, "Thank you.");
    assert!(!voice.is_open_line_cut() && !voice.is_speaking());
    while voice.poll_event().is_some() {}
    voice.say(7_000, "Another line.");
    assert!(matches!(voice.poll_output(7_000), Some(PlayerOutput::Clear | PlayerOutput::Audio(_))));
}

#[test]
fn each_turn_has_the_times_of_its_steps() {
    let mut voice = Voice::tone(Rate::Khz8, TurnTaking::default(), false);
    voice.say(0, "Hello.");
    while voice.poll_output(0).is_some() {}
    for (nth, asked) in ["Are you open?", "And on Sunday?"].into_iter().enumerate() {
        let began_ms = 5_000 * (1 + nth as i64);
        let (mut now_ms, mut said_ms) = (began_ms, None);
        for frame in ToneEncoder::speak(asked, Rate::Khz8).chunks(Rate::Khz8.frame_samples()) {
            now_ms += 20;
            voice.hear(now_ms, frame);
            said_ms = said_ms.or((voice.turns().len() > nth).then_some(now_ms));
        }
        voice.model_answered(now_ms + 100);
        voice.say(now_ms + 110, "Yes, we are.");
        while voice.poll_output(now_ms + 110).is_some() {}
        voice.hear(now_ms + 125, &[0; 120]);
        voice.hear(now_ms + 145, &[0; 160]);
        let turn = voice.turns()[nth];
        assert!(said_ms.is_some());
        assert_eq!(
            (turn.end_of_speech_ms, turn.transcript_ms),
            (said_ms, said_ms),
            "tones end where they are understood"
        );
        assert_eq!(
            (turn.model_first_ms, turn.speech_first_ms, turn.heard_first_ms),
            (Some(now_ms + 100), Some(now_ms + 110), Some(now_ms + 110)),
            "heard from the first frame on: {turn:?}"
        );
    }
    assert_eq!(voice.turns().len(), 2, "the greeting is no turn's");
}

/// A line of a speech server's voice.
fn spoken() -> Voice {
    let settings = SynthesizerSettings {
        party: Party::speech("test"),
        base_url: "http://127.0.0.1:1/v1".to_owned(),
        api_key: None,
        model: None,
        voice: "alloy".to_owned(),
        language: None,
        speed: None,
    };
    let mouth = Mouth::Speech(synthesizers::new(SpeechApi::OpenAi, settings));
    let ear = Ear::Tone(Box::new(ToneDecoder::new(Rate::Khz8)));
    Voice::new(Rate::Khz8, ear, mouth, TurnTaking::default(), false)
}

/// The server answers the next request with this status.
fn answer(voice: &mut Voice, now_ms: i64, status: u16) -> ExchangeId {
    let Some((service, Transmit::Request { id, .. })) = voice.poll_transmit() else { panic!("no request") };
    let headers = vec![("content-type".to_owned(), "audio/pcm".to_owned())];
    voice.arrived(now_ms, service, id, Arrival::Head { status, headers });
    match status {
        200 => voice.arrived(now_ms, service, id, Arrival::Body(vec![0; 4_800].into())),
        _ => voice.arrived(now_ms, service, id, Arrival::End),
    }
    id
}

fn events(voice: &mut Voice) -> Vec<VoiceEvent> {
    std::iter::from_fn(|| voice.poll_event()).collect()
}

#[test]
fn a_line_whose_voice_fails_before_a_sound_is_tried_once_more() {
    for is_complete in [true, false] {
        let mut voice = spoken();
        voice.say_part(0, "How can I help? ");
        if is_complete {
            voice.say(0, "");
        }
        // The protocol itself repeats a request at once.
        answer(&mut voice, 0, 500);
        answer(&mut voice, 0, 500);
        let told = events(&mut voice);
        assert!(matches!(&told[..], [VoiceEvent::Failed(failure)] if failure.is_temporary), "{told:?}");
        assert!(voice.is_speaking() && voice.poll_transmit().is_none(), "after a pause");
        assert_eq!(voice.poll_timeout(), Some(1_000));
        voice.tick(1_000);
        answer(&mut voice, 1_000, 500);
        answer(&mut voice, 1_000, 500);
        let told = events(&mut voice);
        assert!(
            matches!(told[..], [VoiceEvent::Failed(_), VoiceEvent::BrokeOff { heard_permille: 0 }]),
            "{told:?}"
        );
        assert!(!voice.is_speaking());
        // The second line without a sound is the last.
        if !is_complete {
            voice.say(2_000, "");
        }
        voice.say(2_000, "Hello?");
        answer(&mut voice, 2_000, 500);
        answer(&mut voice, 2_000, 500);
        let told = events(&mut voice);
        assert!(matches!(&told[..], [VoiceEvent::Failed(failure), ..] if !failure.is_temporary), "{told:?}");
    }
    let mut voice = spoken();
    voice.say_part(0, "How can ");
    answer(&mut voice, 0, 503);
    answer(&mut voice, 0, 503);
    // The rest of its text comes meanwhile, and another line.
    voice.say(100, "I help?");
    voice.say(100, "One moment.");
    events(&mut voice);
    voice.tick(1_000);
    answer(&mut voice, 1_000, 200);
    assert!(matches!(voice.poll_output(1_000), Some(PlayerOutput::Audio(_))));
    assert!(events(&mut voice).iter().all(|event| !matches!(event, VoiceEvent::Failed(_))));
}

#[test]
fn a_line_that_waits_for_its_audio_is_paused_where_its_sound_ended() {
    let mut voice = spoken();
    voice.say_part(0, "One moment. ");
    let id = answer(&mut voice, 0, 200);
    let service = SpeechService::Synthesizer;
    let mut mark = None;
    while let Some(output) = voice.poll_output(0) {
        mark = if let PlayerOutput::Mark(number) = output { Some(number) } else { mark };
    }
    assert_eq!(events(&mut voice), []);
    voice.played(100, mark.unwrap());
    assert_eq!(events(&mut voice), [VoiceEvent::LineBegan { at_ms: 0 }, VoiceEvent::Paused]);
    voice.tick(1_500);
    voice.arrived(1_600, service, id, Arrival::Body(vec![0; 4_800].into()));
    assert_eq!(events(&mut voice), [VoiceEvent::Resumed]);

    // All of it was heard, and its end is told much later.
    let mut voice = spoken();
    voice.say(0, "One moment.");
    let id = answer(&mut voice, 0, 200);
    voice.arrived(0, service, id, Arrival::Body(vec![1; 100].into()));
    let outputs: Vec<_> = std::iter::from_fn(|| voice.poll_output(0)).collect();
    let Some(PlayerOutput::Mark(mark)) = outputs.last() else { panic!("{outputs:?}") };
    voice.played(100, *mark);
    voice.arrived(4_000, service, id, Arrival::End);
    assert_eq!(voice.poll_output(4_000), None);
    assert_eq!(events(&mut voice).pop(), Some(VoiceEvent::Spoken { until_ms: Some(80) }));
}

#[test]
fn a_line_without_words_is_over_after_those_before_it_and_fails_no_call() {
    let mut voice = spoken();
    for line in ["👍", "…"] {
        voice.say(0, line);
        assert_eq!(
            (voice.poll_event(), voice.poll_event()),
            (Some(VoiceEvent::Spoken { until_ms: None }), None),
            "{line}"
        );
        assert!(!voice.is_speaking() && voice.poll_transmit().is_none());
    }
    voice.say(0, "One moment, please.");
    voice.say(0, "🙂");
    assert_eq!(voice.poll_event(), None, "the line before it is not over");
    let Some((service, Transmit::Request { id, .. })) = voice.poll_transmit() else { panic!("no request") };
    let headers = vec![("content-type".to_owned(), "audio/pcm".to_owned())];
    voice.arrived(10, service, id, Arrival::Head { status: 200, headers });
    voice.arrived(20, service, id, Arrival::Body(vec![0; 4_800].into()));
    voice.arrived(30, service, id, Arrival::End);
    let mut marks = Vec::new();
    for now_ms in [30, 500, 1_000] {
        while let Some(output) = voice.poll_output(now_ms) {
            marks.extend(match output {
                PlayerOutput::Mark(mark) => Some(mark),
                _ => None,
            });
        }
    }
    voice.played(1_000, *marks.last().unwrap());
    let spoken =
        std::iter::from_fn(|| voice.poll_event()).filter(|event| matches!(event, VoiceEvent::Spoken { .. }));
    assert_eq!(spoken.count(), 2);
    assert!(!voice.is_speaking());
}

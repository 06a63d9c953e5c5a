use super::*;

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
    assert_eq!(voice.poll_event(), Some(VoiceEvent::Spoken));
    voice.say(whole_ms, "And another one.");
    while voice.poll_output(whole_ms).is_some() {}
    voice.key_pressed(whole_ms + 200);
    assert!(matches!(voice.poll_event(), Some(VoiceEvent::Cut(heard)) if heard[0] > 0 && heard[0] < 1_000));
    assert_eq!(voice.poll_output(whole_ms + 200), Some(PlayerOutput::Clear));
    assert!(!voice.is_speaking());
}

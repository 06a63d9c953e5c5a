//! Recorded people and the detector of speech: 551 prompts of a person and ten files of silence, through a telephone's codec.
//!
//! `RECORDINGS=$(.ci/recordings) cargo test -p sidetone-tests --test recorded_people -- --ignored --nocapture`
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::print_stdout, reason = "a test")]
use std::path::{Path, PathBuf};

use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::g711;
use sidetone_engine::speech::voice_activity::{VoiceActivity, VoiceEvent};
use sidetone_tests::recordings;

/// Tones and a troop of monkeys: no test of speech or of silence.
const OTHER_SOUNDS: [&str; 7] = [
    "ascending-2tone",
    "beep",
    "beeperr",
    "confbridge-join",
    "confbridge-leave",
    "descending-2tone",
    "tt-monkeys",
];

struct Prompt {
    name: String,
    samples: Vec<i16>,
}

#[test]
#[ignore = "needs the recordings that .ci/recordings fetches"]
fn a_persons_prompts_are_speech_and_silence_is_not() {
    let folder = recordings::prompts();
    let (mut missed, mut late, mut spoken, mut silent, mut begins_ms) =
        (Vec::new(), Vec::new(), 0, 0, Vec::new());
    for prompt in prompts(&folder, &folder) {
        if OTHER_SOUNDS.contains(&prompt.name.as_str()) {
            continue;
        }
        let began = began(&prompt.samples);
        if prompt.name.starts_with("silence/") {
            silent += 1;
            assert_eq!(began, None, "{}", prompt.name);
            continue;
        }
        spoken += 1;
        match began {
            None => missed.push(prompt.name),
            // What comes before the detector's beginning is kept, half a second of it.
            Some(at) if at > recordings::above(&prompt.samples, 25).0 + 4_000 => late.push(prompt.name),
            Some(at) => begins_ms.push((at as i64 - recordings::audible(&prompt.samples).0 as i64) / 8),
        }
    }
    begins_ms.sort_unstable();
    let percentile = |p: usize| begins_ms[begins_ms.len() * p / 100];
    println!("speech begins {} ms before to {} ms after its sound (p5, p95)", -percentile(5), percentile(95));
    println!("{spoken} prompts, missed: {missed:?}, late: {late:?}; {silent} silences");
    assert_eq!((spoken, silent), (551, 10));
    assert!(begins_ms.last().is_some_and(|ms| *ms <= 50), "{begins_ms:?}");
    assert_eq!((missed, late), (Vec::<String>::new(), Vec::<String>::new()));
}

/// The first sample of speech, if any is found. The line is open for half a second before, and a second after.
fn began(samples: &[i16]) -> Option<usize> {
    let heard = g711::decode(&g711::encode(&[&[0; 4_000][..], samples, &[0; 8_000]].concat()));
    let mut voice = VoiceActivity::new(Rate::Khz8);
    heard.chunks(160).flat_map(|frame| voice.hear(frame)).find_map(|event| match event {
        VoiceEvent::SpeechBegan { at } => Some(usize::try_from(at).unwrap().saturating_sub(4_000)),
        VoiceEvent::SpeechEnded { .. } => None,
    })
}

/// All WAV files below a folder, named from `root`, without their extension.
fn prompts(root: &Path, folder: &Path) -> Vec<Prompt> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
        .into_iter()
        .flat_map(|path| {
            if path.is_dir() {
                return prompts(root, &path);
            }
            let name = path.strip_prefix(root).unwrap().with_extension("").to_string_lossy().into_owned();
            vec![Prompt { name, samples: recordings::samples(&path) }]
        })
        .collect()
}

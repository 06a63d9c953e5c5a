use proptest::prelude::*;

use super::super::testing::{pcm, samples};
use super::*;

/// Reads a body in pieces.
fn read(content_type: &str, body: &[u8], piece: usize) -> Result<Vec<i16>, String> {
    let mut container = Container::new(Some(content_type))?;
    let mut out = Vec::new();
    for bytes in body.chunks(piece) {
        out.extend(container.read(bytes)?);
    }
    out.extend(container.finish()?);
    Ok(out)
}

fn wav(hz: u32, channels: u16, bits: u16, size: u32, samples: &[i16]) -> Vec<u8> {
    let mut out = b"RIFF\xFF\xFF\xFF\xFFWAVE".to_vec();
    out.extend(b"LIST\x05\0\0\0abcde\0fmt \x10\0\0\0\x01\0");
    out.extend(channels.to_le_bytes());
    out.extend(hz.to_le_bytes());
    out.extend((hz * u32::from(channels * bits / 8)).to_le_bytes());
    out.extend((channels * bits / 8).to_le_bytes());
    out.extend(bits.to_le_bytes());
    out.extend(b"data");
    out.extend(size.to_le_bytes());
    out.extend(pcm(samples));
    out
}

fn mp3() -> Vec<u8> {
    // 64 kbit/s at 24 kHz: frames of 192 bytes.
    let frame = [[0xFF, 0xF3, 0x84, 0xC4].as_slice(), &[0; 188]].concat();
    [frame.as_slice(), &frame, &frame].concat()
}

#[test]
fn samples_in_pieces_of_any_size() {
    let expected = samples(100);
    for piece in 1..40 {
        assert_eq!(read("audio/pcm", &pcm(&expected), piece).unwrap(), expected, "{piece}");
    }
    // The half of a sample at the end is left out, and few bytes are enough.
    assert_eq!(read("", &[1, 0, 2], 1).unwrap(), [1]);
    assert_eq!(read("audio/mpeg", &pcm(&expected), 7).unwrap(), expected, "some servers call everything MP3");
    assert_eq!(read("audio/pcm", &[], 1).unwrap(), [0; 0]);
}

#[test]
fn wav_is_read_by_its_head() {
    let expected = samples(1_000);
    for size in [2_000, 0, u32::MAX] {
        for piece in [1, 7, 5_000] {
            assert_eq!(read("audio/wav", &wav(24_000, 1, 16, size, &expected), piece).unwrap(), expected);
        }
    }
    let mut with_tail = wav(24_000, 1, 16, 2_000, &expected);
    with_tail.extend(b"LIST\x04\0\0\0tail");
    assert_eq!(read("audio/pcm", &with_tail, 64).unwrap(), expected);
    for (hz, count) in [(8_000, 3_000), (16_000, 1_500), (22_050, 1_088), (48_000, 500)] {
        let converted = read("audio/wav", &wav(hz, 1, 16, 2_000, &expected), 100).unwrap();
        assert!(converted.len().abs_diff(count) <= 1, "{hz}: {}", converted.len());
    }
}

#[test]
fn what_cannot_be_played_is_named() {
    for (content_type, body, named) in [
        ("text/html; charset=utf-8", b"".to_vec(), "text/html"),
        ("application/json", b"{}".to_vec(), "application/json"),
        ("audio/flac", b"".to_vec(), "audio/flac"),
        ("audio/pcm", b"<!DOCTYPE html><html>".to_vec(), "text"),
        ("", b"{\"error\":\"no voice\"}".to_vec(), "text"),
        ("audio/pcm", b"ID3\x04\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec(), "MP3"),
        ("audio/pcm", mp3(), "MP3"),
        ("audio/mpeg", mp3()[..40].to_vec(), "MP3"),
        ("audio/pcm", b"OggS\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec(), "Ogg"),
        ("audio/pcm;rate=300000", b"".to_vec(), "300000"),
        ("audio/wav", wav(3_000, 1, 16, 0, &[1]), "3000"),
        ("audio/wav", wav(24_000, 2, 16, 0, &[1]), "2 channels"),
        ("audio/wav", wav(24_000, 1, 24, 0, &[1]), "24 bits"),
        ("audio/wav", b"RIFF\0\0\0\0WAVEdata\0\0\0\0".to_vec(), "without a format"),
        ("audio/wav", b"RIFF\0\0\0\0WAVEfmt ".to_vec(), "without samples"),
    ] {
        let error = read(content_type, &body, 9).unwrap_err();
        assert!(error.contains(named), "{content_type}: {error}");
    }
    // Loud samples that look like the head of a frame are samples.
    let loud: Vec<u8> = [0xFF, 0xF3, 0x84, 0xC4, 1].repeat(100);
    assert_eq!(read("audio/pcm", &loud, 50).unwrap().len(), 250);
}

#[test]
fn the_rate_of_the_content_type_counts() {
    assert_eq!(read("audio/L16; rate=16000", &pcm(&samples(200)), 50).unwrap().len(), 300);
}

proptest! {
    #[test]
    fn any_body_is_read_without_more_audio_than_it_can_hold(
        start in prop_oneof![Just(wav(16_000, 1, 16, 0, &[])), Just(b"RIFF0000WAVE".to_vec()), Just(mp3()), Just(vec![])],
        body: Vec<u8>, piece in 1usize..50,
    ) {
        let whole = [start, body].concat();
        if let Ok(samples) = read("audio/pcm", &whole, piece) {
            prop_assert!(samples.len() <= whole.len() * 2 + 40);
        }
    }
}

//! The body of a request for a transcript: `multipart/form-data` (RFC 7578) with a WAV file.
//!
//! The form is written here, because the crates for it either are asynchronous or take the boundary from the platform's
//! randomness, which the engine does not have. A fixed boundary does as well: it is extended until no part contains it.
use std::io::Cursor;

use bytes::Bytes;
use hound::{SampleFormat, WavSpec, WavWriter};

use crate::speech::audio::Rate;

/// A form with a file.
pub(super) struct Form {
    /// The value of the header `content-type`.
    pub(super) content_type: String,
    pub(super) body: Bytes,
}

/// A form with these fields and a WAV file, the last part. Names and values come from settings; line breaks in a value are
/// not possible to misread, because the boundary is in none of them.
pub(super) fn form(fields: &[(&str, &str)], wav: &[u8]) -> Form {
    let mut boundary = "sidetone-form".to_owned();
    let contains = |part: &[u8], boundary: &str| {
        part.windows(boundary.len()).any(|window| window == boundary.as_bytes())
    };
    while contains(wav, &boundary) || fields.iter().any(|(_, value)| contains(value.as_bytes(), &boundary)) {
        boundary.push('x');
    }
    let mut body = Vec::with_capacity(wav.len() + 1024);
    for (name, value) in fields {
        let part =
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"speech.wav\"\r\nContent-Type: audio/wav\r\n\r\n"
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(wav);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    Form { content_type: format!("multipart/form-data; boundary={boundary}"), body: body.into() }
}

/// A WAV file with one channel of 16-bit samples.
pub(super) fn wav(samples: &[i16], rate: Rate) -> Result<Vec<u8>, hound::Error> {
    let spec = WavSpec {
        channels: 1,
        sample_rate: rate.hz(),
        bits_per_sample: 16,
        sample_format: SampleFormat::Int,
    };
    let mut file = Cursor::new(Vec::with_capacity(64 + 2 * samples.len()));
    let mut writer = WavWriter::new(&mut file, spec)?;
    for sample in samples {
        writer.write_sample(*sample)?;
    }
    writer.finalize()?;
    Ok(file.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_written_as_the_rfc_says() {
        let Form { content_type, body } = form(&[("model", "m"), ("prompt", "a\r\nb")], b"RIFF");
        assert_eq!(content_type, "multipart/form-data; boundary=sidetone-form");
        let expected = "--sidetone-form\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n\
            --sidetone-form\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\na\r\nb\r\n\
            --sidetone-form\r\nContent-Disposition: form-data; name=\"file\"; filename=\"speech.wav\"\r\n\
            Content-Type: audio/wav\r\n\r\nRIFF\r\n--sidetone-form--\r\n";
        assert_eq!(body, expected.as_bytes());
    }

    #[test]
    fn no_part_contains_the_boundary() {
        let Form { content_type, .. } = form(&[("prompt", "--sidetone-formx")], b"sidetone-form");
        assert_eq!(content_type, "multipart/form-data; boundary=sidetone-formxx");
    }

    #[test]
    fn a_wav_file_is_read_back() {
        let file = wav(&[1, -2, 3], Rate::Khz16).unwrap();
        let mut reader = hound::WavReader::new(Cursor::new(file)).unwrap();
        assert_eq!((reader.spec().channels, reader.spec().sample_rate), (1, 16_000));
        let samples: Vec<i16> = reader.samples::<i16>().map(Result::unwrap).collect();
        assert_eq!(samples, [1, -2, 3]);
    }
}

//! Mu-law (ITU-T G.711): the encoding of the telephone network, one byte per sample at 8 kHz.
use audio_codec_algorithms::{decode_ulaw, encode_ulaw};

/// The mu-law byte of silence.
pub const SILENCE: u8 = 0xff;

/// Converts mu-law to linear samples.
#[must_use]
pub fn decode(bytes: &[u8]) -> Vec<i16> {
    bytes.iter().map(|byte| decode_ulaw(*byte)).collect()
}

/// Converts linear samples to mu-law.
#[must_use]
pub fn encode(samples: &[i16]) -> Vec<u8> {
    samples.iter().map(|sample| encode_ulaw(*sample)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values on which all common codecs agree: they differ for negative samples on a decision boundary.
    #[test]
    fn matches_other_codecs() {
        let coded = [
            (0, 0xff),
            (100, 0xf2),
            (1000, 0xce),
            (-1000, 0x4e),
            (8031, 0xa0),
            (16000, 0x90),
            (-16000, 0x10),
            (32767, 0x80),
        ];
        for (sample, byte) in coded {
            assert_eq!(encode(&[sample]), [byte], "{sample}");
        }
        let decoded = [
            (0x00, -32124),
            (0x0f, -16764),
            (0x3f, -1980),
            (0x7e, -8),
            (0x7f, 0),
            (0x80, 32124),
            (0xfe, 8),
            (0xff, 0),
        ];
        for (byte, sample) in decoded {
            assert_eq!(decode(&[byte]), [sample], "{byte:02x}");
        }
        assert_eq!(decode(&[SILENCE]), [0]);
    }

    #[test]
    fn encoding_reverses_decoding() {
        for byte in 0..=u8::MAX {
            let expected = if byte == 0x7f { SILENCE } else { byte };
            assert_eq!(encode(&decode(&[byte])), [expected]);
        }
    }
}

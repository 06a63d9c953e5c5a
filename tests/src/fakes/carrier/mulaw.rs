//! Mu-law (ITU-T G.711), implemented from the recommendation independently of the engine.

/// Encodes a sample.
pub fn encode(sample: i16) -> u8 {
    let sign = if sample < 0 { 0x80 } else { 0 };
    let magnitude = u32::from(sample.unsigned_abs()).min(32_635) + 132;
    let segment = 24 - magnitude.leading_zeros(); // 132..=32767 has 8 to 15 bits
    let step = (magnitude >> (segment + 3)) & 0x0f;
    !u8::try_from(sign | (segment << 4) | step).expect("eight bits")
}

/// Decodes a byte.
pub fn decode(byte: u8) -> i16 {
    let byte = !byte;
    let magnitude = ((i32::from(byte & 0x0f) << 3) + 132) << ((byte >> 4) & 7);
    let sample = magnitude - 132;
    i16::try_from(if byte & 0x80 == 0 { sample } else { -sample }).expect("sixteen bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recommendation_and_the_engine_agree() {
        for (sample, byte) in
            [(0, 0xff), (100, 0xf2), (-100, 0x72), (1000, 0xce), (-16000, 0x10), (32767, 0x80)]
        {
            assert_eq!(encode(sample), byte, "{sample}");
        }
        for byte in 0..=u8::MAX {
            assert_eq!(decode(byte), sidetone_engine::speech::g711::decode(&[byte])[0], "{byte:02x}");
            assert_eq!(encode(decode(byte)), if byte == 0x7f { 0xff } else { byte });
        }
    }
}

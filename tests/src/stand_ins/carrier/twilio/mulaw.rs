//! Mu-law (ITU-T G.711) once more, so that what the engine codes is not decoded by itself.

/// Added before the logarithm is taken.
const BIAS: i32 = 0x84;

/// The loudest that there is a code for, before that.
const CLIP: i32 = 32_635;

/// One sample's code.
pub fn encode(sample: i16) -> u8 {
    let negative = sample < 0;
    let biased = i32::from(sample).abs().min(CLIP) + BIAS;
    // The highest bit is the eighth at least, for the bias, and the fifteenth at most.
    let exponent = 24 - biased.leading_zeros();
    let code = (u8::from(negative) << 7) | (exponent as u8) << 4 | (biased >> (exponent + 3) & 0x0f) as u8;
    !code
}

/// One code's sample.
pub fn decode(code: u8) -> i16 {
    let code = !code;
    let level = ((i32::from(code & 0x0f) << 3) + BIAS) << ((code >> 4) & 0x07);
    let sample = if code & 0x80 == 0 { level - BIAS } else { BIAS - level };
    sample as i16
}

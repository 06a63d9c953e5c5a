//! Exact comparison of JSON numbers by value, for any mix of integers and fractions.

use std::cmp::Ordering;

use serde_json::Number;

pub(super) fn compare(a: &Number, b: &Number) -> Ordering {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        // A number that is no 128-bit integer is either a fraction (f64 then orders both numbers correctly) or larger than
        // every 128-bit integer.
        _ => float(a).total_cmp(&float(b)),
    }
}

/// Whether there is no fractional part: `1.0` is an integer in JSON Schema.
pub(super) fn is_integer(number: &Number) -> bool {
    !number.is_f64() || float(number).fract() == 0.0
}

/// Whether `number` is an integral multiple of `divisor`. Both are read as the decimals they are written as: `0.3` is a
/// multiple of `0.1`.
pub(super) fn is_multiple(number: &Number, divisor: &Number) -> bool {
    let (Some(number), Some(divisor)) = (Decimal::of(number), Decimal::of(divisor)) else {
        return false;
    };
    if number.digits == 0 || divisor.digits == 0 {
        return number.digits == 0;
    }
    let shift = number.exponent - divisor.exponent;
    if let Ok(shift) = u32::try_from(shift) {
        // Eighteen zeros at a time: a remainder has 20 digits at most, and 128 bits hold 38.
        let steps = (0..shift).step_by(18).map(|done| 10_u128.pow((shift - done).min(18)));
        return steps
            .fold(number.digits % divisor.digits, |remainder, zeros| remainder * zeros % divisor.digits)
            == 0;
    }
    let scale = u32::try_from(-shift).ok().and_then(|shift| 10_u128.checked_pow(shift));
    let divisor = scale.and_then(|scale| divisor.digits.checked_mul(scale));
    divisor.is_some_and(|divisor| number.digits % divisor == 0)
}

/// The number as an integer, if 128 bits hold it.
pub(super) fn integer(number: &Number) -> Option<i128> {
    if let Some(value) = number.as_i128() {
        return Some(value);
    }
    let value = float(number);
    let fits = value.fract() == 0.0 && value.abs() < 2_f64.powi(126);
    fits.then_some(value as i128)
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

/// `digits × 10^exponent`, without sign; at most 20 digits, the most in serde_json's numbers.
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    fn of(number: &Number) -> Option<Self> {
        let text = number.to_string();
        let text = text.strip_prefix('-').unwrap_or(&text);
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let fraction = fraction.trim_end_matches('0');
        let exponent = exponent.parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()?;
        Some(Self { digits: format!("{whole}{fraction}").parse().ok()?, exponent })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn number(value: Value) -> Number {
        value.as_number().unwrap().clone()
    }

    #[test]
    fn compares_by_value() {
        let ascending = [
            json!(-1e300),
            json!(i64::MIN),
            json!(-2),
            json!(-1.5),
            json!(0),
            json!(5e-324),
            json!(0.1),
            json!(1),
            json!(1.5),
            json!(2),
            json!(9_007_199_254_740_992_u64),
            json!(9_007_199_254_740_993_u64),
            json!(u64::MAX),
            json!(18_446_744_073_709_551_616.0),
            json!(1e300),
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(compare(&number(a.clone()), &number(b.clone())), i.cmp(&j), "{a} {b}");
            }
        }
        assert_eq!(compare(&number(json!(1)), &number(json!(1.0))), Ordering::Equal);
        assert_eq!(compare(&number(json!(0)), &number(json!(-0.0))), Ordering::Equal);
    }

    #[test]
    fn multiples_are_decimal() {
        let multiples = [
            (json!(0), json!(3)),
            (json!(9), json!(3)),
            (json!(-9), json!(3)),
            (json!(0.3), json!(0.1)),
            (json!(19.99), json!(0.01)),
            (json!(1e308), json!(0.5)),
            (json!(4.5), json!(1.5)),
            (json!(0.0075), json!(0.0001)),
            (json!(12391239123_u64), json!(1e-8)),
            (json!(1e300), json!(1e-300)),
            (json!(u64::MAX), json!(5)),
        ];
        for (a, b) in multiples {
            assert!(is_multiple(&number(a.clone()), &number(b.clone())), "{a} {b}");
        }
        let others = [
            (json!(7), json!(3)),
            (json!(0.35), json!(0.1)),
            (json!(0.00751), json!(0.0001)),
            (json!(1e-300), json!(1)),
            (json!(1), json!(1e300)),
            (json!(u64::MAX), json!(2)),
            (json!(1.7976931348623157e308), json!(0.123456789)),
        ];
        for (a, b) in others {
            assert!(!is_multiple(&number(a.clone()), &number(b.clone())), "{a} {b}");
        }
    }
}

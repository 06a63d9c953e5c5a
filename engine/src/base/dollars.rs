//! Amounts in dollars, as people type them and carriers write them, where the API counts millionths.

/// How the names of amounts end in the API.
pub const SUFFIX: &str = "_microusd";

const MICRO: i64 = 1_000_000;
/// Digits of a millionth after the point.
const PLACES: usize = 6;

/// `12500000` → `12.5`.
pub fn shown(microusd: i64) -> String {
    let (whole, rest) = (microusd / MICRO, (microusd % MICRO).abs());
    let sign = if microusd < 0 && whole == 0 { "-" } else { "" };
    let text = format!("{sign}{whole}.{rest:06}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `12.5` → `12500000`; `None` for what is no such amount, or finer than a millionth.
pub fn read(text: &str) -> Option<i64> {
    parse(text).filter(|(_, finer)| finer.is_empty()).map(|(microusd, _)| microusd)
}

/// `0.01000` → `10000`; what is finer than a millionth rounds up. For a price that a carrier writes.
pub fn read_up(text: &str) -> Option<i64> {
    const BYTES_MAX: usize = 24;
    let (microusd, finer) = parse(text).filter(|_| !text.starts_with('.') && text.len() <= BYTES_MAX)?;
    microusd.checked_add(i64::from(finer.bytes().any(|byte| byte != b'0')))
}

/// The millionths, and the digits that are finer.
fn parse(text: &str) -> Option<(i64, &str)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let (fraction, finer) = fraction.split_at(fraction.len().min(PLACES));
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: i64 = format!("{fraction:0<PLACES$}").parse().ok()?;
    Some((whole.checked_mul(MICRO)?.checked_add(fraction)?, finer))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{read, shown};

    #[test]
    fn amounts_are_read_to_the_millionth() {
        for (text, microusd) in [
            ("0", Some(0)),
            ("12.5", Some(12_500_000)),
            (".000001", Some(1)),
            ("7.", Some(7_000_000)),
            ("", None),
            (".", None),
            ("-1", None),
            ("1e3", None),
            ("1,5", None),
            ("0.0000001", None),
            ("99999999999999999999", None),
            ("9223372036855", None),
        ] {
            assert_eq!(read(text), microusd, "{text}");
        }
        assert_eq!(
            (shown(12_500_000), shown(0), shown(100_000_000)),
            ("12.5".into(), "0".into(), "100".into())
        );
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_as_the_same(microusd in 0..=i64::MAX) {
            prop_assert_eq!(read(&shown(microusd)), Some(microusd));
        }
    }
}

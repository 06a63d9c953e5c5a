//! Texts of the page.
use maud::{Markup, html};
use serde_json::Value;

/// The fragment of a part's heading.
pub(super) fn anchor(name: &str) -> String {
    name.to_ascii_lowercase().replace(' ', "-")
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Text with `inline code` as elements. A backtick without a partner stays as it is.
pub(super) fn prose(text: &str) -> Markup {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`')
        && let Some((code, after)) = after.split_once('`')
    {
        parts.push((before, code));
        rest = after;
    }
    html! { @for (before, code) in parts { (before) code { (code) } } (rest) }
}

/// A number with commas between its thousands.
pub(super) fn count(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or_default().to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration in its largest whole unit.
pub(super) fn duration(ms: impl TryInto<u64>) -> String {
    let ms = ms.try_into().unwrap_or_default();
    for (unit_ms, unit) in [(86_400_000, "days"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")] {
        // A day is told in hours.
        if ms.is_multiple_of(unit_ms) && ms / unit_ms > u64::from(unit == "days") {
            return format!("{} {unit}", ms / unit_ms);
        }
    }
    format!("{ms} ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_code_is_an_element_and_everything_is_escaped() {
        for (text, html) in [
            ("plain <b>", "plain &lt;b&gt;"),
            ("`a` and `b`", "<code>a</code> and <code>b</code>"),
            ("`3` or `\"3\"`.", "<code>3</code> or <code>&quot;3&quot;</code>."),
            ("`<script>` & `x", "<code>&lt;script&gt;</code> &amp; `x"),
            ("``", "<code></code>"),
            ("`", "`"),
        ] {
            assert_eq!(prose(text).into_string(), html, "{text}");
        }
    }

    #[test]
    fn numbers_and_durations_are_readable() {
        assert_eq!([count(0_u64), count(999_u64), count(50_000_u64)], ["0", "999", "50,000"]);
        let ms = [500_u64, 5_000, 300_000, 86_400_000, 30 * 86_400_000];
        assert_eq!(ms.map(duration), ["500 ms", "5 s", "5 min", "24 h", "30 days"]);
    }
}

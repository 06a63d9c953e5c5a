//! How commands word what hosts say.
use serde_json::Value;

use super::file::Totals;

/// `18,233`
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 file`, `1,204 files`
pub(super) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `4.1 GB`
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1_000 {
        return counted(bytes, "byte");
    }
    let mut amount = bytes as f64 / 1_000.0;
    let mut unit = UNITS[0];
    for larger in UNITS.into_iter().skip(1) {
        // 999.95 would be shown as 1000.0.
        if amount < 999.95 {
            break;
        }
        (amount, unit) = (amount / 1_000.0, larger);
    }
    format!("{amount:.1} {unit}")
}

/// How far a file is.
pub(super) fn progress(totals: &Totals) -> String {
    let mut text = counted(totals.rows(), "row");
    if totals.tally.blobs > 0 {
        text.push_str(&format!(", {} ({})", counted(totals.tally.blobs, "file"), size(totals.blob_bytes)));
    }
    text
}

/// What a file has.
pub(super) fn contents(totals: &Totals) -> String {
    format!(
        "{}, {} (sealed), {} ({})",
        counted(totals.rows(), "row"),
        counted(totals.tally.secrets, "signing secret"),
        counted(totals.tally.blobs, "file"),
        size(totals.blob_bytes)
    )
}

/// What a workspace that closes waits for: `2 conversations, 1 line (until 16:40 UTC)`.
pub(super) fn waiting(waits: &Value) -> String {
    let waits = || waits.as_array().into_iter().flatten();
    // What goes on has to be settled, too: that is said when it has ended.
    let going_on = waits().find(|one| one["what"] == "conversations").map_or(0, count_of);
    let left = |one: &Value| match one["what"] == "calls_to_settle" {
        true => count_of(one).saturating_sub(going_on),
        false => count_of(one),
    };
    let all: Vec<String> = waits()
        .filter(|one| one["what"] != "calls_to_settle" || left(one) > 0)
        .map(|one| wait(left(one), one))
        .collect();
    all.join(", ")
}

fn count_of(one: &Value) -> u64 {
    one["count"].as_u64().unwrap_or_default()
}

fn wait(number: u64, one: &Value) -> String {
    let what = match one["what"].as_str().unwrap_or_default() {
        "conversations" => counted(number, "conversation"),
        "runs" => counted(number, "simulation run"),
        "calls_to_settle" => format!("{} to settle", counted(number, "call")),
        "jobs" => counted(number, "job"),
        "lines" => counted(number, "line"),
        "late_prices" => format!("prices that carriers send after {}", counted(number, "call")),
        other => format!("{} {}", count(number), other.replace('_', " ")),
    };
    match one["until"].as_str().and_then(|until| until.get(11..16)) {
        Some(until) => format!("{what} (until {until} UTC)"),
        None => what,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sidetone_engine::storage::moves::What;

    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        let counts = [0, 7, 999, 1_000, 18_233, 1_234_567].map(count);
        assert_eq!(counts, ["0", "7", "999", "1,000", "18,233", "1,234,567"]);
        assert_eq!([1, 2_000].map(|some| counted(some, "file")), ["1 file", "2,000 files"]);
        let sizes = [1, 999, 1_000, 999_949, 999_950, 4_100_000_000, 12_345_000_000_000].map(size);
        assert_eq!(sizes, ["1 byte", "999 bytes", "1.0 kB", "999.9 kB", "1.0 MB", "4.1 GB", "12.3 TB"]);
    }

    #[test]
    fn what_is_waited_for_is_named_also_if_it_is_new() {
        let waits = json!([
            {"what": "conversations", "count": 2},
            {"what": "lines", "count": 1, "until": "2026-11-28T16:40:12.000Z"},
            {"what": "calls_to_settle", "count": 3, "until": null},
            {"what": "holograms_shown", "count": 3},
        ]);
        assert_eq!(
            waiting(&waits),
            "2 conversations, 1 line (until 16:40 UTC), 1 call to settle, 3 holograms shown"
        );
        assert_eq!(waiting(&Value::Null), "");
        let one = json!([{"what": "conversations", "count": 1}, {"what": "calls_to_settle", "count": 1}]);
        assert_eq!(waiting(&one), "1 conversation");
        assert_eq!(waiting(&json!([one[1]])), "1 call to settle");
        for what in What::ALL {
            let word = what.as_str();
            assert_ne!(
                waiting(&json!([{"what": word, "count": 1}])),
                format!("1 {}", word.replace('_', " "))
            );
        }
    }
}

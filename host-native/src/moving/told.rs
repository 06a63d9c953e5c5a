//! How commands word what hosts say.
use serde_json::Value;

use super::file::Totals;
use crate::text::{count, counted, size};

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

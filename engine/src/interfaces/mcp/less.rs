//! Less than REST answers where nothing else is asked for: a model reads every byte of a result, and pays for it.
use serde_json::{Map, Value, json};

use crate::base::limits::{MCP_LARGE_RESULT_BYTES, MCP_PAGE_ROWS_DEFAULT};

const LIMIT: &str = "limit";
const VIEW: &str = "view";
const SUMMARY: &str = "summary";

/// Fills in what a list with pages was not asked for: few rows, without what was said. What was asked for stays.
pub(super) fn fill_in(schema: Option<&Value>, query: &mut Map<String, Value>) {
    if takes(schema, "page") && !query.contains_key(LIMIT) {
        query.insert(LIMIT.to_owned(), MCP_PAGE_ROWS_DEFAULT.into());
    }
    if takes(schema, VIEW) && !query.contains_key(VIEW) {
        query.insert(VIEW.to_owned(), SUMMARY.into());
    }
}

/// How a large result could be smaller: only what was not asked for already. `None` where nothing can be left out.
pub(super) fn ways(schema: Option<&Value>, query: &Map<String, Value>) -> Option<String> {
    let text = |name: &str| {
        query.get(name).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    let mut ways = Vec::new();
    let is_full = takes(schema, VIEW) && text(VIEW).as_deref() != Some(SUMMARY);
    if is_full {
        ways.push(format!("`{VIEW}: {SUMMARY}`"));
    }
    match text(LIMIT).as_deref() {
        Some("1") => {}
        Some(limit) => ways.push(format!("a `{LIMIT}` below {limit}")),
        None if takes(schema, LIMIT) => ways.push(format!("a smaller `{LIMIT}`")),
        None => {}
    }
    let unread = match is_full {
        true => "; a transcript that is null did not fit, so read that call by its id",
        false => "",
    };
    (!ways.is_empty()).then(|| format!("{}{unread}", ways.join(" or ")))
}

/// What a model is told beside a large result.
pub(super) fn advice(bytes: usize, ways: Option<&str>, goes_on: bool) -> Option<String> {
    let ways = ways.filter(|_| bytes > MCP_LARGE_RESULT_BYTES)?;
    let kilobytes = bytes / 1024;
    let rest = match goes_on {
        true => " There are more rows: for those, call again with `next` as `after`.",
        false => "",
    };
    Some(json!({"note": format!("This result has {kilobytes} KiB. For less, use {ways}.{rest}")}).to_string())
}

fn takes(schema: Option<&Value>, name: &str) -> bool {
    schema.is_some_and(|schema| schema["properties"].get(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_page_is_small_unless_it_is_asked_to_be_large() {
        let calls = json!({"properties": {"page": {}, "limit": {}, "view": {}}});
        let filled = |schema: &Value, asked: Value| {
            let mut query = query(asked);
            fill_in(Some(schema), &mut query);
            Value::Object(query)
        };
        assert_eq!(filled(&calls, json!({})), json!({"limit": MCP_PAGE_ROWS_DEFAULT, "view": "summary"}));
        let asked = json!({"limit": "500", "view": "full"});
        assert_eq!(filled(&calls, asked.clone()), asked);
        assert_eq!(filled(&json!({"properties": {"limit": {}, "after": {}}}), json!({})), json!({}));
    }

    #[test]
    fn advice_says_only_what_was_not_asked_for() {
        let calls = json!({"properties": {"page": {}, "limit": {}, "view": {}}});
        let ways = |asked: Value| ways(Some(&calls), &query(asked));
        assert_eq!(ways(json!({"limit": 20, "view": "summary"})).as_deref(), Some("a `limit` below 20"));
        assert_eq!(ways(json!({"limit": "1", "view": "summary"})), None);
        let full = ways(json!({"limit": 1, "view": "full"})).unwrap();
        assert!(full.starts_with("`view: summary`; a transcript"), "{full}");
        assert_eq!(advice(MCP_LARGE_RESULT_BYTES, Some("x"), false), None);
        assert_eq!(advice(MCP_LARGE_RESULT_BYTES + 1, None, false), None);
    }
}

//! Rows from another host: what is somebody's own work passes, what would harm others does not.
use serde_json::json;
use sidetone::sandbox::block_on;
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_engine::ports::Database as _;
use sidetone_engine::ports::statement::Value;
use sidetone_engine::sql;
use sidetone_engine::storage::workspace_rows::{
    Column, EMPTY, Kind, Page, Rule, TABLES, Table, Window, rule_of,
};
use sidetone_tests::example::STARTED_AT_MS;

use crate::cluster::Cluster;
use crate::furnished::furnished;

const ALL: Window = Window { rows: 1_000, looked_at: 10_000, bytes: 10_000_000 };
const HOUR_MS: i64 = 3_600_000;

/// The pages of a workspace with everything in it, in which nothing is under way any more.
fn at_rest() -> Vec<(&'static Table, Page)> {
    let cluster = Cluster::new(1);
    let (tenant, id) = furnished(&cluster, 0);
    let sandbox = tenant.sandbox().unwrap();
    for _ in 0..30 {
        sandbox.advance(HOUR_MS);
        cluster.run_jobs();
    }
    // `furnished` has written these by itself, so nothing ends them.
    for table in ["conversation_journal", "spending_reservations"] {
        let left = sql!(format!("DELETE FROM {table} WHERE workspace_id = :workspace"), workspace = &id);
        block_on(cluster.shards.at(0).write(vec![left])).unwrap();
    }
    tenant.run();
    let id = WorkspaceId::from_stored(id);
    let page = |table| block_on(ALL.read(cluster.shards.at(0), table, &id, &[])).unwrap();
    TABLES.iter().map(|table| (table, page(table))).collect()
}

#[test]
fn a_workspace_in_which_nothing_is_under_way_passes() {
    let pages = at_rest();
    for (table, page) in &pages {
        let is_waiting = table.name == "jobs";
        assert_eq!(page.rows.is_empty(), EMPTY.contains(&table.name) && !is_waiting, "{}", table.name);
        if !is_waiting {
            assert_eq!(page.check(table, STARTED_AT_MS), Ok(()), "{}", table.name);
        }
    }
}

/// What the engine reads as JSON has to be JSON: whatever holds nothing else here.
#[test]
fn every_column_with_json_has_the_rule() {
    let mut found = 0;
    for (table, page) in at_rest() {
        for (at, column) in table.carried().enumerate().filter(|(_, column)| column.kind == Kind::Text) {
            let texts: Vec<&String> = page
                .rows
                .iter()
                .filter_map(|row| match &row[at] {
                    Value::Text(text) => Some(text),
                    _ => None,
                })
                .collect();
            let is_json = |text: &&String| {
                text.starts_with(['{', '[']) && serde_json::from_str::<serde_json::Value>(text).is_ok()
            };
            let is_reference = table.by_number.iter().any(|one| one.column == column.name);
            if !texts.is_empty() && texts.iter().all(is_json) && !is_reference {
                let rule = rule_of(table.name, column);
                let is_for_json = matches!(
                    rule,
                    Some(Rule::Json | Rule::JsonUpTo(_) | Rule::TextsUpTo(_) | Rule::WordLists)
                );
                assert!(is_for_json, "{}.{}: {rule:?}", table.name, column.name);
                found += 1;
            }
        }
    }
    assert!(found > 30, "{found}");
}

/// Each of these, in the database, would stop or mislead what works for all workspaces.
#[test]
fn rows_that_would_harm_others_are_refused() {
    let pages = at_rest();
    let with = |name: &str, changes: &[(&str, Value)]| {
        let (table, page) = pages.iter().find(|(table, _)| table.name == name).unwrap();
        let mut page = Page { rows: page.rows[..1].to_vec(), ..page.clone() };
        for (column, value) in changes {
            let at = table.carried().position(|one: &Column| one.name == *column).unwrap();
            page.rows[0][at] = value.clone();
        }
        page.check(table, STARTED_AT_MS).err().and_then(|wrong| wrong.column)
    };
    let (text, number) = (|text: &str| Value::Text(text.to_owned()), Value::Number);
    for (table, changes, column) in [
        // The sweep reads the call out of the body.
        ("events", vec![("call_id", Value::Null), ("body", text("no JSON"))], "body"),
        ("events", vec![("call_id", Value::Null)], "call_id"),
        // It removes the blobs of recordings, and as many of them as there are segments.
        ("recordings", vec![("call_id", text("../../other"))], "call_id"),
        ("recordings", vec![("segments", number(9_007_199_254_740_992.0))], "segments"),
        ("recordings", vec![("state", text("ready")), ("segments", Value::Null)], "segments"),
        ("recordings", vec![("state", text("writing"))], "state"),
        ("recordings", vec![("state", text("ready")), ("due_at", number(0.0))], "due_at"),
        ("recordings", vec![("rate_hz", number(4_294_967_295.0))], "rate_hz"),
        // It adds up what deliveries have.
        ("deliveries", vec![("body_bytes", number(9_007_199_254_740_992.0))], "body_bytes"),
        // What is due first has the next turn.
        ("deliveries", vec![("due_at", number(-1.0))], "due_at"),
        ("deliveries", vec![("due_at", number(9e15))], "due_at"),
        ("jobs_away", vec![("due_at", number(-1.0))], "due_at"),
        ("jobs_away", vec![("due_at", number(9e15))], "due_at"),
        ("workspaces", vec![("archived_until", number(-1.0))], "archived_until"),
        // A run that waits for it holds up the next move.
        ("tools", vec![("timeout_ms", number(9e15))], "timeout_ms"),
        // Whoever starts a run reads all that its assistant has, before its size is known.
        ("assistant_documents", vec![("position", number(128.0))], "position"),
        ("assistant_tools", vec![("position", number(64.0))], "position"),
        ("assistant_revisions", vec![("tool_ids", text(&json!(vec!["x"; 65]).to_string()))], "tool_ids"),
        ("documents", vec![("size_bytes", number(0.0))], "size_bytes"),
        ("documents", vec![("content", text(&"x".repeat(60_000)))], "content"),
        ("documents", vec![("metadata", text(&json!({"a": "x".repeat(40_000)}).to_string()))], "metadata"),
        ("api_keys", vec![("name", text(&"x".repeat(5_000)))], "name"),
        // What is kept has no limit then.
        ("workspaces", vec![("snapshot_bytes", number(-1.0))], "snapshot_bytes"),
        // It asks the operator's model so often.
        ("scenarios", vec![("judge_votes", number(1e15))], "judge_votes"),
        // The text index would have words of another workspace.
        ("call_words", vec![("heads", text("a,k3m9qz7a.b"))], "heads"),
        ("call_words", vec![("said", text(r#"["a\nk3m9qz7a.b"]"#))], "said"),
        // It subtracts what deleted calls have from the sums of all.
        ("calls", vec![("duration_ms", number(9_007_199_254_740_992.0))], "duration_ms"),
        ("calls", vec![("cost_microusd", number(-9_007_199_254_740_992.0))], "cost_microusd"),
        ("call_rollups", vec![("duration_ms", number(-9_007_199_254_740_992.0))], "duration_ms"),
        // The operator's terminal shows it.
        ("workspaces", vec![("name", text("Acme\nnext: sidetone"))], "name"),
        // It computes until when a workspace keeps its calls.
        (
            "workspaces",
            vec![("call_retention_days", number(-9_007_199_254_740_992.0))],
            "call_retention_days",
        ),
        // Somebody else's call at the carrier that all share.
        ("calls", vec![("status", text("in_progress"))], "status"),
        ("calls", vec![("ended_at", Value::Null)], "ended_at"),
        ("phone_calls", vec![("is_over", number(0.0))], "is_over"),
        ("phone_calls", vec![("line_until", number(9e12))], "line_until"),
        ("runs", vec![("status", text("running"))], "status"),
        ("jobs_away", vec![("kind", text("hang_up"))], "kind"),
        ("jobs_away", vec![("kind", text("nonsense"))], "kind"),
        // Secrets of the host.
        ("workspaces", vec![("secret_salt", text("chosen"))], "secret_salt"),
        ("tools", vec![("carried_secrets", text(&json!({"version": 1}).to_string()))], "carried_secrets"),
    ] {
        assert_eq!(with(table, &changes), Some(column), "{table}: {changes:?}");
    }
    for name in EMPTY {
        let table = Table::named(name).unwrap();
        let row = table.carried().map(|_| Value::Null).collect();
        let page = Page { table: (*name).to_owned(), rows: vec![row], next: None };
        assert!(page.check(table, STARTED_AT_MS).is_err(), "{name}");
    }
}

/// Secrets that are sealed with the server secret, and the salt, are of one host.
#[test]
fn what_is_of_a_host_stays_there() {
    let cluster = Cluster::new(1);
    let (_, id) = furnished(&cluster, 0);
    let database = cluster.shards.at(0);
    let secrets =
        [("workspaces", "secret_salt"), ("tools", "carried_secrets"), ("webhooks", "carried_secrets")];
    let id = WorkspaceId::from_stored(id);
    for (name, column) in secrets {
        let table = Table::named(name).unwrap();
        let of_one = sql!(
            format!("UPDATE {name} SET {column} = 'of this host' WHERE {} = :workspace", table.owner),
            workspace = &id
        );
        block_on(database.write(vec![of_one])).unwrap();
        let page = block_on(ALL.read(database, table, &id, &[])).unwrap();
        let told = page.clone().for_another_host(table).to_line();
        assert!(page.to_line().contains("of this host"), "within one host it moves: {}", page.to_line());
        assert!(!told.contains("of this host"), "{told}");
        // A workspace that arrives has its salt already.
        let arrived = Page::from_line(&told).unwrap();
        if name == "workspaces" {
            block_on(database.write(arrived.insert(table, &id).unwrap())).unwrap();
            let kept = block_on(ALL.read(database, table, &id, &[])).unwrap();
            assert_eq!(kept.rows, page.rows);
        }
    }
}

//! Pages that somebody else has written: a page changes nothing of another workspace, and reading one does not become
//! slower with the rows of others.
use std::collections::BTreeMap;
use std::sync::Mutex;

use bytes::Bytes;
use serde_json::json;
use sidetone::sandbox::block_on;
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_engine::ports::statement::{Rows, Statement, Value, long_read_of};
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError};
use sidetone_engine::sql;
use sidetone_engine::storage::workspace_rows::{
    AWAY, Keys, Kind, NAMES_A_STRANGER, Page, ROW_BYTES_MAX, TABLES, Table, Window, is_followed,
};

use crate::cluster::Cluster;
use crate::furnished::{everything, furnished};
use crate::schema::{ask, texts};

const ONE: Window = Window { rows: 1, looked_at: 1_000, bytes: 1_000_000 };
const ALL: Window = Window { rows: 1_000, looked_at: 1_000, bytes: 10_000_000 };

/// A workspace on one shard, another on a second one, and pages of the first.
struct Crafted {
    cluster: Cluster,
    id: WorkspaceId,
    /// What belongs to the other one, by table.
    others: Vec<(String, String)>,
    neighbour: sidetone_tests::World,
    pages: Vec<(&'static Table, Page)>,
}

impl Crafted {
    /// Everything of the other workspace.
    fn read_beside(&self) -> BTreeMap<String, Bytes> {
        self.cluster.shards.pick(1);
        everything(&self.neighbour)
    }

    fn new() -> Self {
        let cluster = Cluster::new(2);
        let (_, id) = furnished(&cluster, 0);
        let (neighbour, other) = furnished(&cluster, 1);
        let others = ["webhooks", "tools", "calls", "assistants"]
            .map(|table| {
                let question: &'static str = match table {
                    "webhooks" => "SELECT id AS text FROM webhooks WHERE workspace_id = ?1 LIMIT 1",
                    "tools" => "SELECT id AS text FROM tools WHERE workspace_id = ?1 LIMIT 1",
                    "calls" => "SELECT id AS text FROM calls WHERE workspace_id = ?1 LIMIT 1",
                    _ => "SELECT id AS text FROM assistants WHERE workspace_id = ?1 LIMIT 1",
                };
                let found = texts(&ask(cluster.shards.at(1), question, &[&other]));
                (table.to_owned(), found[0].clone())
            })
            .into_iter()
            .chain([("workspaces".to_owned(), other)])
            .collect();
        let id = WorkspaceId::from_stored(id);
        let pages = TABLES
            .iter()
            .map(|table| {
                let page = block_on(ALL.read(cluster.shards.at(0), table, &id, &[])).unwrap();
                assert!(!page.rows.is_empty(), "{}", table.name);
                let page = Page { rows: page.rows[..1].to_vec(), next: None, ..page };
                (table, page)
            })
            .collect();
        Self { cluster, id, others, neighbour, pages }
    }

    /// Writes the page at the second shard; the sentence of the refusal.
    fn refusal(&self, table: &'static Table, page: &Page) -> String {
        // As it arrives over a network.
        let page = Page::from_line(&page.to_line()).unwrap();
        match page.insert(table, &self.id) {
            Err(wrong) => format!("{wrong:?}"),
            Ok(batch) => match block_on(self.cluster.shards.at(1).write(batch)) {
                Err(DatabaseError::Constraint(sentence)) => sentence,
                other => panic!("{}: {other:?}", table.name),
            },
        }
    }

    fn other(&self, table: &str) -> &str {
        &self.others.iter().find(|(name, _)| name == table).unwrap().1
    }

    fn rows_of(&self, shard: usize, table: &'static Table) -> usize {
        let id = &self.id;
        block_on(ALL.read(self.cluster.shards.at(shard), table, id, &[])).unwrap().rows.len()
    }
}

#[test]
fn no_column_that_is_followed_can_name_what_belongs_to_another_workspace() {
    let crafted = Crafted::new();
    let before = crafted.read_beside();
    let mut tried = 0;
    for (table, page) in &crafted.pages {
        let followed = table
            .carried()
            .enumerate()
            .filter(|(_, column)| column.kind == Kind::Text && is_followed(table, column));
        for (at, column) in followed {
            for (_, stranger) in &crafted.others {
                let escaped = format!(r#"{{"id": "{}"}}"#, stranger.replace('_', "\\u005f"));
                for text in [stranger.clone(), format!("x {stranger} y"), escaped] {
                    let mut page = page.clone();
                    page.rows[0][at] = Value::Text(text);
                    let refusal = crafted.refusal(table, &page);
                    let is_owner = column.name == table.owner && refusal.contains("is not the workspace");
                    assert!(
                        refusal.contains(NAMES_A_STRANGER) || is_owner,
                        "{}.{} names {stranger}: {refusal}",
                        table.name,
                        column.name
                    );
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 1_000, "{tried}");
    // A reference by number names its row by the columns that are equal everywhere.
    let (call, workspace) = (crafted.other("calls"), crafted.other("workspaces"));
    for (table, page) in &crafted.pages {
        for one in table.by_number {
            let at = table.carried().position(|column| column.name == one.column).unwrap();
            let mut page = page.clone();
            let Value::Text(own) = &page.rows[0][at] else { panic!("{}", table.name) };
            let stranger = match one.table {
                "calls" => json!([call]).to_string(),
                _ => own.replace(crafted.id.as_str(), workspace),
            };
            assert_ne!(*own, stranger);
            page.rows[0][at] = Value::Text(stranger);
            let refusal = crafted.refusal(table, &page);
            let is_known = refusal.contains(NAMES_A_STRANGER) || refusal.contains("another workspace");
            assert!(is_known, "{}.{}: {refusal}", table.name, one.column);
        }
    }
    for (table, _) in &crafted.pages {
        assert_eq!(crafted.rows_of(1, table), 0, "{}: nothing is written", table.name);
    }
    assert_eq!(crafted.read_beside(), before, "the other workspace is unchanged");
    println!("{tried} crafted rows refused");
}

#[test]
fn a_value_that_its_column_does_not_hold_is_refused() {
    let crafted = Crafted::new();
    for (table, page) in &crafted.pages {
        for (at, column) in table.carried().enumerate() {
            let is_reference = table.by_number.iter().any(|one| one.column == column.name);
            let mut wrong = match (is_reference, column.kind) {
                (true, _) => {
                    vec![Value::Number(1.0), Value::Text("[]".to_owned()), Value::Text("1".to_owned())]
                }
                (false, Kind::Text) => vec![Value::Number(1.0)],
                (false, Kind::Integer) => {
                    vec![Value::Text("1".to_owned()), Value::Number(9.1e15), Value::Number(-9.1e15)]
                }
            };
            wrong.extend((is_reference || column.is_required).then_some(Value::Null));
            wrong.extend((at == 0).then(|| Value::Text("x".repeat(ROW_BYTES_MAX + 1))));
            for value in wrong {
                let mut page = page.clone();
                page.rows[0][at] = value;
                let arrived = Page::from_line(&page.to_line()).unwrap();
                let refused = arrived.insert(table, &crafted.id).unwrap_err();
                assert_eq!(refused.row, 1);
                let is_large = refused.what == "is larger than a row can be";
                assert!(
                    is_large || refused.column == Some(column.name),
                    "{}.{}: {refused:?}",
                    table.name,
                    column.name
                );
            }
        }
        let (mut short, mut long, mut other) = (page.clone(), page.clone(), page.clone());
        short.rows[0].pop();
        long.rows[0].push(Value::Null);
        other.table = "accounts".to_owned();
        for page in [short, long, other] {
            page.insert(table, &crafted.id).unwrap_err();
        }
    }
}

#[test]
fn what_is_no_page_is_not_read() {
    for line in [
        "",
        "{}",
        "[]",
        r#"{"table": "calls"}"#,
        r#"{"table": "calls", "rows": [1]}"#,
        r#"{"table": "calls", "rows": [[1.5]]}"#,
        r#"{"table": "calls", "rows": [[true]]}"#,
        r#"{"table": "calls", "rows": [[["secret"]]]}"#,
        r#"{"table": "calls", "rows": [[1]], "next": ["secret"]}"#,
        r#"{"table": "calls", "rows": [["secret"#,
    ] {
        let error = Page::from_line(line).unwrap_err();
        assert!(!error.contains("secret"), "{error}");
    }
}

/// A row whose call is not there gets no other call's number.
#[test]
fn a_row_without_the_row_that_it_belongs_to_is_refused() {
    let crafted = Crafted::new();
    let (workspaces, own) = crafted.pages.iter().find(|(table, _)| table.name == "workspaces").unwrap();
    block_on(crafted.cluster.shards.at(1).write(own.insert(workspaces, &crafted.id).unwrap())).unwrap();
    let mut tried = 0;
    for (table, page) in crafted.pages.iter().filter(|(table, _)| !table.by_number.is_empty()) {
        let refusal = crafted.refusal(table, page);
        assert!(refusal.contains("FOREIGN KEY"), "{}: {refusal}", table.name);
        assert_eq!(crafted.rows_of(1, table), 0, "{}", table.name);
        tried += 1;
    }
    assert_eq!(tried, 5);
}

#[test]
fn nothing_that_exists_is_replaced() {
    let crafted = Crafted::new();
    let write = |name: &str| {
        let (table, page) = crafted.pages.iter().find(|(table, _)| table.name == name).unwrap();
        block_on(crafted.cluster.shards.at(1).write(page.insert(table, &crafted.id).unwrap()))
    };
    write("workspaces").unwrap();
    write("personas").unwrap();
    let again = write("personas").unwrap_err();
    assert!(again.is_constraint("UNIQUE constraint failed: personas.id"), "{again:?}");
    // The row of the workspace itself is there before its first page.
    write("workspaces").unwrap();
    // A telephone number has one place. The row is the workspace's own in everything else.
    let (table, page) = crafted.pages.iter().find(|(table, _)| table.name == "numbers").unwrap();
    let taken = texts(&ask(crafted.cluster.shards.at(1), "SELECT number AS text FROM numbers LIMIT 1", &[]));
    let mut page = page.clone();
    let at = table.carried().position(|column| column.name == "number").unwrap();
    page.rows[0][at] = Value::Text(taken[0].clone());
    let (assistants, assistant) = crafted.pages.iter().find(|(table, _)| table.name == "assistants").unwrap();
    let mut assistant = assistant.clone();
    let named = table.carried().position(|column| column.name == "assistant_id").unwrap();
    assistant.rows[0][0] = page.rows[0][named].clone();
    block_on(crafted.cluster.shards.at(1).write(assistant.insert(assistants, &crafted.id).unwrap())).unwrap();
    let refusal = crafted.refusal(table, &page);
    assert!(refusal.contains("numbers.number"), "{refusal}");
}

#[test]
fn pages_of_any_size_together_are_the_same_rows() {
    let cluster = Cluster::new(1);
    let (_, id) = furnished(&cluster, 0);
    furnished(&cluster, 0);
    let id = WorkspaceId::from_stored(id);
    let database = cluster.shards.at(0);
    for table in TABLES {
        let whole = block_on(ALL.read(database, table, &id, &[])).unwrap();
        assert_eq!(whole.next, None, "{}", table.name);
        let all_keys = block_on(ALL.keys(database, table, &id, &[])).unwrap();
        assert_eq!((all_keys.keys.len(), &all_keys.next), (whole.rows.len(), &None), "{}", table.name);
        for window in [
            ONE,
            Window { looked_at: 1, ..ALL },
            Window { bytes: 1, ..ALL },
            Window { looked_at: 3, bytes: 300, rows: 2 },
        ] {
            let (mut rows, mut after) = (Vec::new(), Vec::new());
            loop {
                let page = block_on(window.read(database, table, &id, &after)).unwrap();
                let most = usize::try_from(window.rows.min(window.looked_at)).unwrap();
                assert!(page.rows.len() <= most, "{}", table.name);
                assert!(window.bytes > 1 || page.rows.len() <= 1, "{}", table.name);
                rows.extend(page.rows);
                match page.next {
                    Some(next) => after = next,
                    None => break,
                }
            }
            assert!(rows == whole.rows, "{} by {window:?}", table.name);
            let (mut keys, mut after) = (Vec::new(), Vec::new());
            loop {
                let some = block_on(window.keys(database, table, &id, &after)).unwrap();
                assert!(some.keys.len() <= usize::try_from(window.rows.min(window.looked_at)).unwrap());
                keys.extend(some.keys);
                match some.next {
                    Some(next) => after = next,
                    None => break,
                }
            }
            assert!(keys == all_keys.keys, "keys of {} by {window:?}", table.name);
        }
    }
}

/// Notes what is asked.
struct Noted<'a>(&'a dyn Database, Mutex<Vec<Statement>>);

impl Database for Noted<'_> {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        self.1.lock().unwrap().extend(batch.iter().cloned());
        self.0.read(batch)
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        self.0.write(batch)
    }
}

#[test]
fn a_page_looks_at_a_limited_number_of_rows_in_the_order_of_an_index() {
    let cluster = Cluster::new(1);
    let (_, id) = furnished(&cluster, 0);
    let id = WorkspaceId::from_stored(id);
    let database = cluster.shards.at(0);
    for table in TABLES {
        let noted = Noted(database, Mutex::default());
        let first = block_on(ONE.read(&noted, table, &id, &[])).unwrap();
        let after = first.next.unwrap_or_else(|| vec![Value::Text(String::new()); table.key.len()]);
        block_on(ONE.read(&noted, table, &id, &after)).unwrap();
        let of_rows = noted.1.lock().unwrap().len();
        let keys = block_on(ONE.keys(&noted, table, &id, &after)).unwrap();
        for (n, statement) in noted.1.into_inner().unwrap().into_iter().enumerate() {
            let steps = plan(database, &statement);
            let is_wrong = |step: &String| {
                step.starts_with("SCAN t ")
                    || step == "SCAN t"
                    || step.starts_with("SCAN sized")
                    || step.starts_with("SCAN looked_at") && table.is_sorted_by_owner
                    // Of the rows of a page, which are few, they may be sorted.
                    || (n % 3 > 0 || n >= of_rows) && step.contains("TEMP B-TREE")
            };
            assert!(!steps.iter().any(is_wrong), "{}: {} {steps:#?}", table.name, statement.sql);
        }
        // What is deleted is found by its key.
        let deletes = Keys { keys: vec![after], ..keys }.delete(&id);
        let steps = plan(database, deletes.last().unwrap());
        let search = format!("SEARCH {} USING ", table.name);
        let by_key = |step: &String| step.starts_with(&search) && step.contains('>');
        assert!(steps.iter().any(by_key), "{}: {steps:#?}", table.name);
    }
}

/// The steps in which SQLite runs a statement.
fn plan(database: &dyn Database, statement: &Statement) -> Vec<String> {
    let sql = format!("EXPLAIN QUERY PLAN {}", statement.sql).into();
    let plan =
        block_on(database.read(vec![Statement { sql, params: statement.params.clone() }])).unwrap().remove(0);
    plan.iter().map(|step| step.text("detail").unwrap()).collect()
}

/// A host reads beside its requests what begins with `WITH`, and interrupts it.
#[test]
fn a_page_is_read_as_whatever_can_take_long() {
    let cluster = Cluster::new(1);
    let (_, id) = cluster.workspace(0);
    let id = WorkspaceId::from_stored(id);
    for table in TABLES {
        let noted = Noted(cluster.shards.at(0), Mutex::default());
        block_on(ONE.read(&noted, table, &id, &[])).unwrap();
        assert_eq!(long_read_of(&noted.1.lock().unwrap()), Some(id.as_str()), "{}", table.name);
        noted.1.lock().unwrap().clear();
        block_on(ONE.keys(&noted, table, &id, &[])).unwrap();
        assert_eq!(long_read_of(&noted.1.lock().unwrap()), Some(id.as_str()), "{}", table.name);
    }
}

/// Keys of a workspace that is not complete open nothing; a revoked key stays revoked.
#[test]
fn keys_arrive_closed() {
    let crafted = Crafted::new();
    let (workspaces, row) = crafted.pages.iter().find(|(table, _)| table.name == "workspaces").unwrap();
    let (table, page) = crafted.pages.iter().find(|(table, _)| table.name == "api_keys").unwrap();
    let at = table.carried().position(|column| column.name == "revoked_at").unwrap();
    let (source, target) = (crafted.cluster.shards.at(0), crafted.cluster.shards.at(1));
    block_on(target.write(row.insert(workspaces, &crafted.id).unwrap())).unwrap();
    for (read, written) in [(Value::Null, AWAY), (Value::Number(5.0), 5)] {
        let mut page = page.clone();
        page.rows[0][at] = read.clone();
        block_on(target.write(page.insert(table, &crafted.id).unwrap())).unwrap();
        let stored = ask(target, "SELECT revoked_at FROM api_keys WHERE workspace_id = ?1", &[&crafted.id]);
        assert_eq!(stored.first().unwrap().integer("revoked_at").unwrap(), written);
        let back = block_on(ALL.read(target, table, &crafted.id, &[])).unwrap();
        assert_eq!(back.rows, page.rows, "what is compared is what was carried");
        let keys = block_on(ALL.keys(target, table, &crafted.id, &[])).unwrap();
        block_on(target.write(keys.delete(&crafted.id))).unwrap();
    }
    let frozen = sql!("UPDATE api_keys SET revoked_at = :away WHERE revoked_at IS NULL", away = AWAY);
    block_on(source.write(vec![frozen])).unwrap();
    let page = block_on(ALL.read(source, table, &crafted.id, &[])).unwrap();
    assert!(page.rows.iter().any(|row| row[at] == Value::Null), "{:?}", page.rows);
}

//! A minimal server with the same responses: axum over rusqlite with the same pragmas, without any checks.
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, mpsc};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path as InPath, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rusqlite::{Connection, OpenFlags, Row, params};
use serde::{Deserialize, Serialize};
use sidetone_engine::base::time;
use tokio::sync::oneshot;

const COLUMNS: &str = "id, name, instructions, first_message, model, voice, pipeline_mode, revision, created_at, updated_at,
    (SELECT json_group_array(tool_id) FROM (SELECT tool_id FROM assistant_tools WHERE assistant_id = assistants.id ORDER BY position)),
    (SELECT json_group_array(document_id) FROM (SELECT document_id FROM assistant_documents WHERE assistant_id = assistants.id ORDER BY position))";

struct Bare {
    path: PathBuf,
    workspace_id: String,
    one: String,
    all: String,
    readers: Mutex<Vec<Connection>>,
    writer: mpsc::Sender<(Assistant, oneshot::Sender<Assistant>)>,
}

#[derive(Deserialize)]
struct Draft {
    name: String,
    instructions: String,
    first_message: String,
}

#[derive(Serialize)]
struct Assistant {
    id: String,
    name: String,
    instructions: String,
    first_message: String,
    model: String,
    voice: String,
    pipeline_mode: String,
    tool_ids: Vec<String>,
    knowledge_ids: Vec<String>,
    revision: i64,
    created_at: String,
    updated_at: String,
}

/// Serves `database` until it is killed.
pub fn serve(database: &Path) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        println!("listening on {}", listener.local_addr().expect("an address"));
        let app = Router::new()
            .route("/assistants/{id}", get(one))
            .route("/assistants", get(all).post(create))
            .with_state(Arc::new(Bare::open(database)))
            .into_make_service_with_connect_info::<SocketAddr>();
        axum::serve(listener, app).await.expect("the server runs");
    });
    ExitCode::SUCCESS
}

impl Bare {
    fn open(path: &Path) -> Self {
        let connection = Connection::open(path).expect("the database opens");
        prepare(&connection);
        connection.pragma_update(None, "journal_mode", "WAL").expect("a pragma");
        connection.pragma_update(None, "synchronous", "FULL").expect("a pragma");
        let workspace_id: String = connection
            .query_row("SELECT workspace_id FROM assistants LIMIT 1", [], |row| row.get(0))
            .expect("the database has an assistant");
        let (writer, waiting) = mpsc::channel();
        let owner = workspace_id.clone();
        std::thread::spawn(move || write_each(&connection, &owner, &waiting));
        Self {
            path: path.to_owned(),
            workspace_id,
            one: format!("SELECT {COLUMNS} FROM assistants WHERE workspace_id = ?1 AND id = ?2"),
            all: format!(
                "SELECT {COLUMNS} FROM assistants WHERE workspace_id = ?1 ORDER BY id DESC LIMIT 50"
            ),
            readers: Mutex::default(),
            writer,
        }
    }

    fn read<T>(&self, work: impl FnOnce(&Connection) -> T) -> T {
        let idle = self.readers.lock().expect("no reader panics").pop();
        let connection = idle.unwrap_or_else(|| {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(&self.path, flags).expect("the database opens");
            prepare(&connection);
            connection
        });
        let answer = work(&connection);
        self.readers.lock().expect("no reader panics").push(connection);
        answer
    }
}

fn prepare(connection: &Connection) {
    connection.pragma_update(None, "foreign_keys", "ON").expect("a pragma");
}

/// Each create is a transaction: one fsync per request.
fn write_each(
    connection: &Connection,
    workspace_id: &str,
    waiting: &mpsc::Receiver<(Assistant, oneshot::Sender<Assistant>)>,
) {
    let mut insert = connection
        .prepare(
            "INSERT INTO assistants (workspace_id, id, name, instructions, first_message, model, voice, pipeline_mode, revision, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1, ?9, ?9)",
        )
        .expect("the statement is valid");
    while let Ok((row, answer)) = waiting.recv() {
        insert
            .execute(params![
                workspace_id,
                row.id,
                row.name,
                row.instructions,
                row.first_message,
                row.model,
                row.voice,
                row.pipeline_mode,
                1_750_000_000_000_i64
            ])
            .expect("the row is inserted");
        let _ = answer.send(row);
    }
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<Assistant> {
    let list = |at: usize| -> rusqlite::Result<Vec<String>> {
        Ok(serde_json::from_str(row.get_ref(at)?.as_str()?).expect("a list of ids"))
    };
    Ok(Assistant {
        id: row.get(0)?,
        name: row.get(1)?,
        instructions: row.get(2)?,
        first_message: row.get(3)?,
        model: row.get(4)?,
        voice: row.get(5)?,
        pipeline_mode: row.get(6)?,
        tool_ids: list(10)?,
        knowledge_ids: list(11)?,
        revision: row.get(7)?,
        created_at: time::format(row.get(8)?),
        updated_at: time::format(row.get(9)?),
    })
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).expect("the answer serialises");
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

async fn one(State(bare): State<Arc<Bare>>, InPath(id): InPath<String>) -> Response {
    let assistant = bare.read(|connection| {
        let mut select = connection.prepare_cached(&bare.one).expect("the statement is valid");
        select.query_row(params![bare.workspace_id, id], read_row).expect("the row exists")
    });
    json(StatusCode::OK, &assistant)
}

async fn all(State(bare): State<Arc<Bare>>) -> Response {
    let assistants: Vec<Assistant> = bare.read(|connection| {
        let mut select = connection.prepare_cached(&bare.all).expect("the statement is valid");
        let rows = select.query_map(params![bare.workspace_id], read_row).expect("the query runs");
        rows.collect::<Result<_, _>>().expect("the rows are valid")
    });
    json(StatusCode::OK, &assistants)
}

async fn create(State(bare): State<Arc<Bare>>, body: Bytes) -> Response {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let Draft { name, instructions, first_message } = serde_json::from_slice(&body).expect("a draft");
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let assistant = Assistant {
        id: format!("asst_00000000000000{count:012}"),
        name,
        instructions,
        first_message,
        model: "builtin/rules".to_owned(),
        voice: "builtin/tone".to_owned(),
        pipeline_mode: "cascading".to_owned(),
        tool_ids: Vec::new(),
        knowledge_ids: Vec::new(),
        revision: 1,
        created_at: time::format(1_750_000_000_000),
        updated_at: time::format(1_750_000_000_000),
    };
    let (answer, answered) = oneshot::channel();
    bare.writer.send((assistant, answer)).expect("the writer runs");
    json(StatusCode::CREATED, &answered.await.expect("the writer answers"))
}

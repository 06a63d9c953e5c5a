//! The engine's storage functions over the storage of a service in another process, for effects that no request has.
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::Method;
use serde_json::{Map, Value as Json, json};
use sidetone::blobs::Files;
use sidetone::data::DataFolder;
use sidetone::database::Sqlite;
use sidetone::http_client::HttpClient;
use sidetone::keys::RingKeys;
use sidetone::open_files::Outgoing;
use sidetone::system::{SystemClock, SystemRandom};
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::base::ids::WorkspaceId;
use sidetone_engine::config::Config;
use sidetone_engine::ports::statement::{Rows, Statement, Value};
use sidetone_engine::ports::{
    BlobError, BlobKey, Blobs, BoxFuture, ByteRange, Database, DatabaseError, Homes, NoWebSockets, Ports,
    Queue, Wake,
};
use sidetone_engine::services::Services;
use sidetone_engine::sql;

use crate::host::shards;
use crate::reply::Reply;
use crate::wire;
use crate::world::BASE_URL;

/// The storage of a binary, by its data folder.
pub fn in_folder(data: &Path) -> Services {
    let folder = DataFolder::open(data).expect("the data folder");
    let database = Sqlite::open(&folder.database(), 0).expect("the database opens");
    services(Arc::new(database), Arc::new(Files::new(data, 0)))
}

/// The storage of a Worker behind `direct_access.mjs`: of several databases, that of the workspace which has this key.
pub fn at_edge(address: SocketAddr, key: &str) -> Services {
    let bindings = |database: String| Arc::new(Bindings { address, database });
    let hash = ApiKey::parse(key).map(|key| key.sha256_hex()).unwrap_or_default();
    let has_key = |bindings: &Arc<Bindings>| {
        let find = sql!("SELECT 1 AS found FROM api_keys WHERE hash = :hash", hash = &hash);
        bindings.batch(vec![find]).is_ok_and(|answers| answers.iter().any(|rows| !rows.is_empty()))
    };
    let home = (2..=shards()).map(|n| bindings(format!("DB_{n}"))).find(has_key);
    let home = home.unwrap_or_else(|| bindings("DB".to_owned()));
    services(home.clone(), home)
}

/// Runs a future that needs sockets or disks to completion.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(future)
}

/// Drops the triggers that lock a workspace, but for those of the tables in `but`.
pub async fn disarm(services: &Services, workspace_id: &WorkspaceId, but: &[&str]) {
    let find = sql!(
        "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'trigger' AND instr(name, :ulid) > 0",
        ulid = &workspace_id[3..]
    );
    let [found] = services.read([find]).await.expect("the triggers");
    let drops: Vec<Statement> = found
        .iter()
        .filter(|row| !but.contains(&row.str("tbl_name").expect("a table")))
        .map(|row| sql!(format!("DROP TRIGGER {}", row.str("name").expect("a name"))))
        .collect();
    services.ports().database.write(drops).await.expect("they are dropped");
}

fn services(database: Arc<dyn Database>, blobs: Arc<dyn Blobs>) -> Services {
    // Nothing here sends a request, and each client reads all certificates of the machine.
    static HTTP: OnceLock<Arc<HttpClient>> = OnceLock::new();
    let http =
        HTTP.get_or_init(|| Arc::new(HttpClient::new(Outgoing::default()).expect("a client can be made")));
    let config =
        Config::from_settings(|_| None, BASE_URL, "direct access signs nothing").expect("a configuration");
    let ports = Ports {
        database,
        blobs,
        shards: None,
        clock: Arc::new(SystemClock),
        random: Arc::new(SystemRandom),
        queue: Arc::new(NoQueue),
        http: http.clone(),
        web_sockets: Arc::new(NoWebSockets),
        keys: Arc::new(RingKeys),
        live: Arc::new(Homes::new(Arc::new(SystemClock))),
        mailer: None,
        metrics: None,
        traces: None,
    };
    Services::new(config, ports)
}

/// Sends no hints: the service finds due jobs by itself.
struct NoQueue;

impl Queue for NoQueue {
    fn wake(&self, _: &Wake) {}
}

/// D1 and R2 through the Worker's test entry.
struct Bindings {
    address: SocketAddr,
    database: String,
}

impl Bindings {
    fn ask(&self, method: Method, path: &str, body: Bytes) -> Reply {
        let request = http::Request::builder().method(method).uri(path).body(body).expect("a request");
        wire::send(self.address, &request).expect("the Worker answers")
    }

    fn batch(&self, batch: Vec<Statement>) -> Result<Vec<Rows>, DatabaseError> {
        let value = |value: Value| match value {
            Value::Null => Json::Null,
            Value::Number(number) => json!(number),
            Value::Text(text) | Value::Asker(text) => text.into(),
        };
        let batch: Vec<Json> = batch
            .into_iter()
            .map(|one| json!([one.sql, one.params.into_iter().map(value).collect::<Vec<_>>()]))
            .collect();
        let reply = self.ask(
            Method::POST,
            &format!("/__sql?database={}", self.database),
            json!(batch).to_string().into(),
        );
        if let Some(error) = reply["error"].as_str() {
            return Err(match error.contains("constraint failed") || error.contains("SQLITE_CONSTRAINT") {
                true => DatabaseError::Constraint(error.to_owned()),
                false => DatabaseError::Unavailable(error.to_owned()),
            });
        }
        let results =
            reply["results"].as_array().unwrap_or_else(|| panic!("no result for each statement: {reply:?}"));
        Ok(results.iter().map(|rows| to_rows(rows.as_array().expect("rows"))).collect())
    }
}

fn to_rows(rows: &[Json]) -> Rows {
    let each = |row: &Json| row.as_object().expect("a row").clone();
    let all: Vec<Map<String, Json>> = rows.iter().map(each).collect();
    let columns = all.first().map(|row| row.keys().cloned().collect()).unwrap_or_default();
    let value = |value: Json| match value {
        Json::Number(number) => Value::Number(number.as_f64().expect("a number")),
        Json::String(text) => Value::Text(text),
        _ => Value::Null,
    };
    let values = all.into_iter().map(|row| row.into_iter().map(|(_, cell)| value(cell)).collect()).collect();
    Rows { columns, values }
}

impl Database for Bindings {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(async move { self.batch(batch) })
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(async move { self.batch(batch) })
    }
}

impl Bindings {
    fn blob(
        &self,
        method: Method,
        key: &BlobKey,
        query: &str,
        body: Bytes,
    ) -> Result<Option<Reply>, BlobError> {
        let reply = self.ask(method, &format!("/__blobs/{}{query}", key.as_str()), body);
        match reply.status {
            200 | 204 => Ok(Some(reply)),
            404 => Ok(None),
            _ => Err(BlobError(format!("{reply:?}"))),
        }
    }
}

impl Blobs for Bindings {
    fn put(&self, key: &BlobKey, bytes: Bytes) -> BoxFuture<'_, Result<(), BlobError>> {
        let done = self.blob(Method::PUT, key, "", bytes).map(drop);
        Box::pin(async move { done })
    }

    fn size(&self, key: &BlobKey) -> BoxFuture<'_, Result<Option<u64>, BlobError>> {
        let found = self.blob(Method::GET, key, "", Bytes::new());
        Box::pin(async move { Ok(found?.and_then(|reply| reply["size"].as_u64())) })
    }

    fn get(&self, key: &BlobKey, range: ByteRange) -> BoxFuture<'_, Result<Option<Bytes>, BlobError>> {
        let query = format!("?first={}&bytes={}", range.first, range.bytes);
        let found = self.blob(Method::GET, key, &query, Bytes::new());
        Box::pin(async move { Ok(found?.map(|reply| reply.body)) })
    }

    fn delete(&self, key: &BlobKey) -> BoxFuture<'_, Result<(), BlobError>> {
        let done = self.blob(Method::DELETE, key, "", Bytes::new()).map(drop);
        Box::pin(async move { done })
    }
}

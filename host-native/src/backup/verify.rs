//! Checks a data folder that no service uses: the database, the secret, and the recordings and archived transcripts that it names.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use sidetone_engine::storage::migrations::MIGRATIONS;
use sidetone_engine::storage::moves::State;
use sidetone_engine::storage::{backups, secret_fingerprint};

use super::{DATABASE, Failure, RECORDINGS, SECRET, TRANSCRIPTS};

/// What a data folder has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Workspaces.
    pub workspaces: u64,
    /// Calls.
    pub calls: u64,
    /// Recordings that can be read.
    pub recordings: u64,
    /// How many segments each recording has, by `<workspace>/<call>.<recording>`; `None`: the database does not say.
    pub segments: Option<BTreeMap<String, u64>>,
    /// The files of archived transcripts, below the folder.
    pub transcripts: BTreeSet<PathBuf>,
    /// Calls whose recordings or archived transcripts should be there and are not.
    pub missing: Vec<String>,
}

/// Checks the folder. `secret` is the value of SIDETONE_SECRET, which replaces the file.
pub fn verify(folder: &Path, secret: Option<&str>) -> Result<Verified, Failure> {
    verify_by(folder, secret, "PRAGMA integrity_check")
}

/// The same without a comparison of each index with its table.
pub fn verify_quickly(folder: &Path, secret: Option<&str>) -> Result<Verified, Failure> {
    verify_by(folder, secret, "PRAGMA quick_check")
}

fn verify_by(folder: &Path, secret: Option<&str>, check: &str) -> Result<Verified, Failure> {
    let path = folder.join(DATABASE);
    let broken = |what: String| {
        format!("the database {} is damaged ({what}); restore a backup that is sound", path.display())
    };
    let database = open(&path).map_err(|error| broken(error.to_string()))?;
    let texts = |sql: &str| -> rusqlite::Result<Vec<String>> {
        database.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
    };
    let lines = texts(check).map_err(|error| broken(error.to_string()))?;
    if lines != ["ok"] {
        return Err(broken(lines.first().cloned().unwrap_or_default()).into());
    }
    if let Some(table) = texts("SELECT \"table\" FROM pragma_foreign_key_check LIMIT 1")?.first() {
        return Err(broken(format!("{table} has rows of something that does not exist")).into());
    }
    for name in texts(backups::STEPS)? {
        if MIGRATIONS.iter().all(|migration| migration.name != name) {
            return Err(format!(
                "the database was written by a newer Sidetone (it has step {name}); use that version, or restore a backup"
            )
            .into());
        }
    }
    check_secret(folder, secret, &texts(backups::SECRET).unwrap_or_default())?;
    let count = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs);
    let ready = texts(backups::RECORDINGS)?;
    let first = |name: &String| folder.join(RECORDINGS).join(format!("{name}.0.pcm")).is_file();
    let mut missing: Vec<String> =
        ready.iter().filter(|name| !first(name)).filter_map(|name| call_of(name)).collect();
    let mut transcripts = BTreeSet::new();
    for name in archived(&texts)? {
        let file = Path::new(TRANSCRIPTS).join(format!("{name}.json"));
        if !folder.join(&file).is_file() {
            missing.extend(call_of(&format!("{name}.json")));
        }
        transcripts.insert(file);
    }
    Ok(Verified {
        workspaces: count(backups::WORKSPACES)?,
        calls: count(backups::CALLS)?,
        recordings: ready.len() as u64,
        segments: texts(backups::SEGMENTS).ok().map(|rows| {
            let pair = |row: &String| {
                row.rsplit_once(' ').and_then(|(name, count)| Some((name.to_owned(), count.parse().ok()?)))
            };
            rows.iter().filter_map(pair).collect()
        }),
        transcripts,
        missing,
    })
}

/// A move of a workspace that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnderWay {
    /// The workspace.
    pub workspace_id: String,
    /// Its name.
    pub name: String,
    /// `exp_…` or `imp_…`
    pub id: String,
    /// How far it is; `None`: a later version has more states.
    pub state: Option<State>,
    /// Of an import the export, of an export the import that it was handed over to.
    pub other_id: Option<String>,
}

/// The moves that are under way in the database of this folder.
pub fn moves(folder: &Path) -> Result<Vec<UnderWay>, Failure> {
    let database = open(&folder.join(DATABASE))?;
    if !database.prepare(backups::HAS_MOVES)?.exists([])? {
        return Ok(Vec::new());
    }
    let mut select = database.prepare(backups::MOVES)?;
    let rows = select.query_map([], |row| {
        let state: String = row.get(3)?;
        let (workspace_id, name, id, other_id) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(4)?);
        Ok(UnderWay { workspace_id, name, id, state: State::parse(&state), other_id })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Opens a database to read it.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
}

impl Verified {
    /// Whether a row counts this file below `recordings/`.
    pub(super) fn has_segment(&self, name: &Path) -> bool {
        let (Some(segments), Some(text)) = (&self.segments, name.to_str()) else { return true };
        // A file of an earlier form is left alone.
        let Some((recording, n)) = text.strip_suffix(".pcm").and_then(|rest| rest.rsplit_once('.')) else {
            return true;
        };
        n.parse().is_ok_and(|n: u64| segments.get(recording).is_some_and(|count| n < *count))
    }
}

/// What a database names: recordings and archived transcripts, as [`name_of`] names their files.
pub(super) fn named(database: &Path) -> Result<BTreeSet<PathBuf>, Failure> {
    let database = open(database)?;
    let texts = |sql: &str| -> rusqlite::Result<Vec<String>> {
        database.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
    };
    let recordings = texts(backups::RECORDINGS)?.into_iter().map(|name| Path::new(RECORDINGS).join(name));
    let transcripts = archived(&texts)?.into_iter().map(|name| Path::new(TRANSCRIPTS).join(name));
    Ok(recordings.chain(transcripts).collect())
}

/// The path of a blob without `.json` or `.<n>.pcm`.
pub(super) fn name_of(file: &Path) -> PathBuf {
    let text = file.to_string_lossy();
    let segment = || text.strip_suffix(".pcm")?.rsplit_once('.').map(|(name, _)| name);
    PathBuf::from(text.strip_suffix(".json").or_else(segment).unwrap_or(&text))
}

/// `<workspace>/<call>` of each archived transcript.
fn archived(texts: &dyn Fn(&str) -> rusqlite::Result<Vec<String>>) -> rusqlite::Result<Vec<String>> {
    match texts(backups::HAS_ARCHIVES)?.is_empty() {
        true => Ok(Vec::new()),
        false => texts(backups::ARCHIVES),
    }
}

fn call_of(name: &str) -> Option<String> {
    Some(name.split_once('/')?.1.split_once('.')?.0.to_owned())
}

/// The secret must be the one that the database was used with.
fn check_secret(folder: &Path, setting: Option<&str>, known: &[String]) -> Result<(), Failure> {
    let Some(known) = known.first() else { return Ok(()) };
    let file = std::fs::read_to_string(folder.join(SECRET)).ok().map(|text| text.trim().to_owned());
    let Some(secret) = setting.map(str::to_owned).or(file) else {
        return Err(
            "there is no server secret beside the database; set SIDETONE_SECRET to the one that it was used with. If it is \
             lost for good, copy the files of the backup into an empty folder yourself, and run `sidetone secrets accept` there"
                .into(),
        );
    };
    match secret_fingerprint(&secret) == *known {
        true => Ok(()),
        false => Err("the server secret is not the one that the database was used with; set SIDETONE_SECRET to that one".into()),
    }
}

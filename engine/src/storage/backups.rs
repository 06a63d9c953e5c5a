//! What must be beside a database file for it to be whole: queries for a host that reads a file which nobody serves. They read
//! databases of earlier versions, too, and have no parameters.

/// A row where there is a list of migrations; a database of something else has none.
pub const HAS_MIGRATIONS: &str = "SELECT name FROM pragma_table_info('migrations') WHERE name = 'name'";

/// The migrations that were applied.
pub const MIGRATIONS: &str = "SELECT name FROM migrations";

/// The fingerprint of the secret that the data belongs to; no row if there is none yet.
pub const SECRET: &str = "SELECT value FROM service_facts WHERE name = 'secret'";

/// How many workspaces there are.
pub const WORKSPACES: &str = "SELECT count(*) FROM workspaces";

/// How many calls there are.
pub const CALLS: &str = "SELECT count(*) FROM calls";

/// A row where there are recordings; an earlier version's database has none.
pub const HAS_RECORDINGS: &str =
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = 'recordings'";

/// The ids of the workspaces.
pub const WORKSPACE_IDS: &str = "SELECT id FROM workspaces";

/// `<workspace>/<call>.<recording>` of each recording that can be read and has more than a head.
pub const RECORDINGS: &str = "SELECT workspace_id || '/' || call_id || '.' || id FROM recordings WHERE state = 'ready' AND size_bytes > 44";

/// How many of them are in workspaces that a move keeps locked, which the service leaves alone.
pub const LOCKED_RECORDINGS: &str =
    "SELECT count(*) FROM recordings WHERE state = 'ready' AND size_bytes > 44
    AND workspace_id IN (SELECT workspace_id FROM moves WHERE lock = 2)";

/// A row where segments are counted; an earlier version's database has none.
pub const HAS_SEGMENTS: &str = "SELECT name FROM pragma_table_info('recordings') WHERE name = 'segments'";

/// `<workspace>/<call>.<recording> <segments>` of each recording that may have segments: the row of one that was deleted outlives
/// them.
pub const SEGMENTS: &str =
    "SELECT workspace_id || '/' || call_id || '.' || id || ' ' || COALESCE(segments, 0) FROM recordings
    WHERE state <> 'deleted' OR due_at IS NOT NULL";

/// `<workspace>/<call>.<recording>` of each recording that was deleted or given up and whose files the service has not noted as
/// removed: it removes them in its next sweeps.
pub const DUE_RECORDINGS: &str = "SELECT workspace_id || '/' || call_id || '.' || id FROM recordings
    WHERE state IN ('deleted', 'abandoned') AND due_at IS NOT NULL";

/// A row where transcripts can be archived; an earlier version's database has none.
pub const HAS_ARCHIVES: &str =
    "SELECT name FROM pragma_table_info('call_transcripts') WHERE name = 'archive_bytes'";

/// `<workspace>/<call>` of each archived transcript.
pub const ARCHIVES: &str =
    "SELECT c.workspace_id || '/' || c.id FROM call_transcripts AS t JOIN calls AS c ON c.seq = t.seq
    WHERE t.archive_bytes > 0";

/// The same, with a space and how many bytes its file has.
pub const ARCHIVE_BYTES: &str =
    "SELECT c.workspace_id || '/' || c.id || ' ' || CAST(t.archive_bytes AS INTEGER)
    FROM call_transcripts AS t JOIN calls AS c ON c.seq = t.seq WHERE t.archive_bytes > 0";

/// `<workspace>/<call>` of each transcript that may have a file: it is archived, is about to be, or is to be removed.
pub const TRANSCRIPT_FILES: &str =
    "SELECT c.workspace_id || '/' || c.id FROM call_transcripts AS t JOIN calls AS c ON c.seq = t.seq
    WHERE t.archive_bytes IS NOT NULL
    UNION ALL SELECT workspace_id || '/' || call_id FROM archives_to_remove";

/// `<workspace>/<call>` of each archived transcript whose call was deleted and whose file the service has still to remove.
pub const DUE_ARCHIVES: &str = "SELECT workspace_id || '/' || call_id FROM archives_to_remove
    EXCEPT SELECT c.workspace_id || '/' || c.id FROM call_transcripts AS t JOIN calls AS c ON c.seq = t.seq
    WHERE t.archive_bytes IS NOT NULL";

/// A row where workspaces can move between hosts; an earlier version's database has none.
pub const HAS_MOVES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = 'moves'";

/// Workspace, its name, id of the move, state, and id of the export or import at the other host, of each move that is under way; those
/// that began first before others.
pub const MOVES: &str = "SELECT m.workspace_id, w.name, m.id, m.state, m.other_id FROM moves AS m JOIN workspaces AS w ON w.id = m.workspace_id
    WHERE m.lock > 0 AND m.state <> 'gone' ORDER BY m.began_at, m.workspace_id";

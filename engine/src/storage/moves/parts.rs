//! The parts of an export, one after the other: rows, signing secrets, blobs. Its rows do not change any more, so each part is
//! read when it is asked for, and asked for again it begins with the same. Where it ends depends also on how many rows of
//! others are passed: a file that is made again may be cut elsewhere.
use super::blobs;
use super::carried;
use super::cursor::{Cursor, from_json, to_json};
use super::part::Part;
use crate::base::ids::WorkspaceId;
use crate::base::limits::{
    MOVE_LOOKED_AT_MAX, MOVE_LOOKS_MAX, MOVE_PART_ROWS_MAX, MOVE_PART_WORDS_MAX, MOVE_ROWS_BYTES,
};
use crate::ports::statement::Value;
use crate::services::Services;
use crate::storage::fault::Fault;
use crate::storage::moves::{Move, Refusal, State, Step};
use crate::storage::workspace_rows::{EMPTY, Page, SCHEMA, TABLES, Table, Window};

/// The table whose rows are written with an entry of the text index each.
pub(super) const WORDS: &str = "call_words";

/// The part that follows the place where the last one ended, which it says itself; the first one without a place.
pub async fn next_part(services: &Services, workspace_id: &WorkspaceId, after: Option<&str>) -> Step<Part> {
    let found = match Move::of(services, workspace_id).await? {
        // The file may have to be made again for the import that the workspace was handed over to.
        Some(found) if matches!(found.state, State::Frozen | State::Released) => found,
        Some(found) if found.is_nothing() => return Ok(Err(Refusal::NothingHere)),
        Some(found) if matches!(found.state, State::Erasing | State::Gone) => return Ok(Err(Refusal::Moved)),
        _ => return Ok(Err(Refusal::NotFrozen)),
    };
    if found.schema != SCHEMA {
        return Ok(Err(Refusal::SchemaChanged));
    }
    let cursor = match after {
        None => beginning(),
        Some(text) => Cursor::parse(text),
    };
    let part = match cursor {
        Some(Cursor::Rows { table, after }) => rows(services, workspace_id, &table, &after).await?,
        Some(Cursor::Secrets { after }) => Some(carried::part(services, &found, &after).await?),
        Some(Cursor::Recordings { after, segments }) => {
            blobs::of_recordings(services, workspace_id, &after, segments).await?
        }
        Some(Cursor::Transcripts { after }) => blobs::of_transcripts(services, workspace_id, &after).await?,
        None => None,
    };
    Ok(part.ok_or(Refusal::NoSuchPlace))
}

/// The tables with rows to carry. The others are empty where nothing is under way.
fn tables() -> impl Iterator<Item = &'static Table> {
    TABLES.iter().filter(|table| !EMPTY.contains(&table.name))
}

fn beginning_of(table: &'static Table) -> Cursor {
    Cursor::Rows { table: table.name.to_owned(), after: Vec::new() }
}

/// Where the rows begin.
pub(super) fn beginning() -> Option<Cursor> {
    tables().next().map(beginning_of)
}

/// Rows of this table, and of the next ones if they are few; `None` if there is no such place.
async fn rows(
    services: &Services,
    workspace_id: &WorkspaceId,
    table: &str,
    after: &[serde_json::Value],
) -> Result<Option<Part>, Fault> {
    let pages = pages(services, workspace_id, table, after, To::AnotherHost).await?;
    Ok(pages.map(|(pages, next)| Part::of_pages(&pages, Some(next.to_text()))))
}

/// Where rows go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    AnotherHost,
    AnotherDatabase,
}

impl To {
    /// The page as it goes there, and as it is compared.
    pub(super) fn page(self, page: Page, table: &'static Table) -> Page {
        match self {
            Self::AnotherHost => page.for_another_host(table),
            Self::AnotherDatabase => page,
        }
    }
}

/// The pages of such a part, and where the next ones begin.
pub(super) async fn pages(
    services: &Services,
    workspace_id: &WorkspaceId,
    table: &str,
    after: &[serde_json::Value],
    to: To,
) -> Result<Option<(Vec<Page>, Cursor)>, Fault> {
    let mut left = tables().skip_while(|known| known.name != table);
    let Some(mut table) = left.next() else { return Ok(None) };
    let Some(mut after) = from_json(after, table.key.len()) else { return Ok(None) };
    let mut room = Room::whole();
    let mut pages = Vec::new();
    let mut looks = 0;
    let next = loop {
        if looks == MOVE_LOOKS_MAX || room.is_used_for(table) {
            break Cursor::Rows { table: table.name.to_owned(), after: to_json(&after) };
        }
        looks += 1;
        let database = &*services.ports().database;
        let page = room.window(table).read(database, table, workspace_id, &after).await?;
        let page = to.page(page, table);
        room.take(&page);
        after = page.next.clone().unwrap_or_default();
        let is_last = page.next.is_none();
        if !page.rows.is_empty() {
            pages.push(page);
        }
        if is_last {
            match left.next() {
                Some(following) => table = following,
                None => break Cursor::Secrets { after: String::new() },
            }
        }
    };
    Ok(Some((pages, next)))
}

/// What a part has room for.
struct Room {
    rows: i64,
    /// Of these, words of calls.
    words: i64,
    bytes: i64,
}

impl Room {
    const fn whole() -> Self {
        Self { rows: MOVE_PART_ROWS_MAX, words: MOVE_PART_WORDS_MAX, bytes: MOVE_ROWS_BYTES }
    }

    fn rows_of(&self, table: &Table) -> i64 {
        if table.name == WORDS { self.rows.min(self.words) } else { self.rows }
    }

    fn is_used_for(&self, table: &Table) -> bool {
        self.rows_of(table) <= 0 || self.bytes <= 0
    }

    fn window(&self, table: &Table) -> Window {
        Window { rows: self.rows_of(table), looked_at: MOVE_LOOKED_AT_MAX, bytes: self.bytes }
    }

    fn take(&mut self, page: &Page) {
        let bytes: usize = page.rows.iter().flatten().map(bytes_of).sum();
        let rows = i64::try_from(page.rows.len()).unwrap_or(i64::MAX);
        self.rows -= rows;
        if page.table == WORDS {
            self.words -= rows;
        }
        self.bytes = self.bytes.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

fn bytes_of(value: &Value) -> usize {
    match value {
        Value::Text(text) | Value::Asker(text) => text.len(),
        Value::Null | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many looks find them: whoever receives the part counts, too.
    #[test]
    fn words_of_calls_have_a_part_of_the_room() {
        let [words, others] = [WORDS, "calls"].map(|name| Table::named(name).unwrap());
        let mut room = Room::whole();
        let page = |table: &Table, rows: i64| {
            let rows = (0..rows).map(|_| vec![Value::Null]).collect();
            Page { table: table.name.to_owned(), rows, next: None }
        };
        room.take(&page(words, 60));
        assert_eq!((room.window(words).rows, room.window(others).rows), (40, 140));
        room.take(&page(words, 40));
        assert_eq!((room.is_used_for(words), room.is_used_for(others)), (true, false));
        room.take(&page(others, 100));
        assert!(room.is_used_for(others));
        let mut room = Room::whole();
        room.take(&page(others, 170));
        assert_eq!(room.window(words).rows, 30);
    }
}

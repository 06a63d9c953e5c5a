//! The filter of the call list and of the statistics, as SQL.
use crate::base::ids::AssistantId;
use crate::base::values::MetadataFilter;
use crate::conversation::{Outcome, Sentiment};
use crate::ports::statement::{Statement, Value};
use crate::storage::calls::rollup::{self, Grain, Piece};
use crate::storage::calls::{Source, search};

/// The filter; `None` in a field matches every call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// Filter by assistant.
    pub assistant_id: Option<AssistantId>,
    /// Filter by source.
    pub source: Option<Source>,
    /// Filter by model.
    pub model: Option<String>,
    /// Filter by voice.
    pub voice: Option<String>,
    /// Filter by outcome.
    pub outcome: Option<Outcome>,
    /// Filter by sentiment.
    pub sentiment: Option<Sentiment>,
    /// Only calls that started at this time or later, in ms since 1970.
    pub from_ms: Option<i64>,
    /// Only calls that started before this time.
    pub to_ms: Option<i64>,
    /// Only calls that match this text index query.
    pub search: Option<String>,
    /// Only calls with these entries in their metadata.
    pub metadata: MetadataFilter,
}

impl CallFilter {
    /// Whether the filter restricts the groups of calls.
    pub(super) fn has_groups(&self) -> bool {
        self.group_columns().iter().any(|(_, value)| value.is_some())
    }

    /// A SELECT of the ids of the matching groups.
    pub(super) fn groups(&self, binds: &mut Binds) -> String {
        self.groups_where("assistant_id <> ''", binds)
    }

    /// A SELECT of the ids of the groups whose sums cover the matching calls: wide groups if they are sufficient.
    pub(super) fn summed(&self, binds: &mut Binds) -> String {
        let finer = self.assistant_id.is_some() || self.model.is_some() || self.voice.is_some();
        self.groups_where(if finer { "assistant_id <> ''" } else { "assistant_id = ''" }, binds)
    }

    fn groups_where(&self, condition: &str, binds: &mut Binds) -> String {
        let mut sql = format!("SELECT id FROM call_groups WHERE workspace_id = :ws AND {condition}");
        for (column, value) in self.group_columns() {
            if let Some(value) = value {
                sql.push_str(&format!(" AND {column} = {}", binds.add(value)));
            }
        }
        sql
    }

    fn group_columns(&self) -> [(&'static str, Option<&str>); 6] {
        [
            ("assistant_id", self.assistant_id.as_deref()),
            ("source", self.source.map(Source::as_str)),
            ("model", self.model.as_deref()),
            ("voice", self.voice.as_deref()),
            ("outcome", self.outcome.map(Outcome::as_str)),
            ("sentiment", self.sentiment.map(Sentiment::as_str)),
        ]
    }

    /// ` AND …` on the start of a call.
    pub(super) fn started(&self, column: &str, binds: &mut Binds) -> String {
        let mut sql = String::new();
        if let Some(from_ms) = self.from_ms {
            sql.push_str(&format!(" AND {column} >= {}", binds.add(from_ms)));
        }
        if let Some(to_ms) = self.to_ms {
            sql.push_str(&format!(" AND {column} < {}", binds.add(to_ms)));
        }
        sql
    }

    /// Whether calls are looked up by what they contain: [`CallFilter::found`] has them.
    pub(super) fn is_looked_up(&self) -> bool {
        self.search.is_some() || !self.metadata.is_empty()
    }

    /// A SELECT of the `seq` of the calls that contain what is searched and have the metadata.
    pub(super) fn found(&self, binds: &mut Binds) -> Option<String> {
        let Some(searched) = self.searched(binds) else { return self.tagged(binds) };
        if self.metadata.is_empty() {
            return Some(searched);
        }
        // The index of texts is read once, and each of its calls is looked up in that of metadata. The `+` keeps SQLite from
        // doing it the other way round: it would search the texts once for each call with the metadata.
        Some(format!(
            "SELECT seq FROM ({searched}) AS found WHERE true{}",
            self.has_tags("+found.seq", 0, binds)
        ))
    }

    fn tagged(&self, binds: &mut Binds) -> Option<String> {
        // The calls with one entry come from the index, one after the other; the others are looked up for each. Nothing is sorted.
        let (name, value) = self.metadata.iter().next()?;
        let first = format!(
            "SELECT tag.seq AS seq FROM call_metadata AS tag
             WHERE tag.workspace_id = :ws AND tag.name = {} AND tag.value = {}",
            binds.add(name.as_str()),
            binds.add(value.as_str())
        );
        Some(first + &self.has_tags("tag.seq", 1, binds))
    }

    /// ` AND …`: the call `seq` has the entries, without the first ones.
    fn has_tags(&self, seq: &str, without: usize, binds: &mut Binds) -> String {
        let has = |(name, value): (&String, &String)| {
            format!(
                " AND EXISTS (SELECT 1 FROM call_metadata AS other WHERE other.workspace_id = :ws AND other.name = {}
                   AND other.value = {} AND other.seq = {seq})",
                binds.add(name.as_str()),
                binds.add(value.as_str())
            )
        };
        self.metadata.iter().skip(without).map(has).collect()
    }

    fn searched(&self, binds: &mut Binds) -> Option<String> {
        let text = self.search.as_deref()?;
        Some(match search::words(text) {
            Some(words) => {
                let words = binds.add(words);
                search::found(&words)
            }
            None => "SELECT NULL AS seq WHERE false".to_owned(),
        })
    }
}

/// `SELECT group_id, starts_at, ends_at, calls, duration_ms, cost_microusd` over the pieces, with one row for each sum
/// or call. `summed` names a table of the groups whose sums are read, `picked` a table of the groups whose calls are
/// read; without it, the calls of all groups are read. Two SELECTs read any number of pieces, because D1 joins five at
/// most.
pub(super) fn sums(pieces: &[Piece], summed: &str, picked: Option<&str>, binds: &mut Binds) -> String {
    let (mut spans, mut cut) = (Vec::new(), Vec::new());
    for piece in pieces {
        match piece.grain {
            Grain::All => spans.push((rollup::ALL_MS, piece)),
            Grain::Span(ms) => spans.push((ms, piece)),
            Grain::Calls => cut.push((0, piece)),
        }
    }
    let mut selects = vec![format!(
        "SELECT group_id, starts_at, starts_at + piece.span_ms AS ends_at, calls, duration_ms, cost_microusd
         FROM {} AS piece CROSS JOIN {summed} CROSS JOIN call_rollups AS sums
         WHERE workspace_id = :ws AND sums.group_id = {summed}.id AND sums.span_ms = piece.span_ms
         AND starts_at >= piece.from_ms AND starts_at < piece.to_ms",
        table(&spans, binds)
    )];
    if !cut.is_empty() {
        let picked =
            picked.map_or(String::new(), |picked| format!(" AND group_id IN (SELECT id FROM {picked})"));
        selects.push(format!(
            "SELECT group_id, piece.from_ms, piece.to_ms, 1, COALESCE(duration_ms, 0), cost_microusd
             FROM {} AS piece CROSS JOIN calls INDEXED BY calls_by_started_at
             WHERE workspace_id = :ws AND started_at >= piece.from_ms AND started_at < piece.to_ms{picked}",
            table(&cut, binds)
        ));
    }
    selects.join(" UNION ALL ")
}

/// The pieces as a materialized table: parsing the JSON again for every group would cost more than the sums.
fn table(pieces: &[(i64, &Piece)], binds: &mut Binds) -> String {
    let rows = pieces.iter().map(|(span_ms, piece)| serde_json::json!([span_ms, piece.from_ms, piece.to_ms]));
    let rows = binds.add(serde_json::Value::from_iter(rows).to_string());
    format!(
        "(WITH pieces AS MATERIALIZED (SELECT json_extract(value, '$[0]') AS span_ms, json_extract(value, '$[1]') AS from_ms,
           json_extract(value, '$[2]') AS to_ms FROM json_each({rows})) SELECT * FROM pieces)"
    )
}

/// The values of a statement whose number of parameters depends on the filter.
#[derive(Debug, Default)]
pub(super) struct Binds(Vec<Value>);

impl Binds {
    /// Binds a value and returns its parameter for the SQL text.
    pub fn add(&mut self, value: impl Into<Value>) -> String {
        self.0.push(value.into());
        format!("?{}", self.0.len())
    }

    /// The statement with these values.
    pub fn statement(self, sql: String) -> Statement {
        Statement { sql: sql.into(), params: self.0 }
    }
}

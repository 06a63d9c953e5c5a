//! Which calls are asked for.
use super::rollup::{Grain, Piece};
use super::{Outcome, Sentiment, Source, rollup, search};
use crate::statement::{Statement, Value};

/// Which calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// Only calls of this assistant.
    pub assistant_id: Option<String>,
    /// Only calls that come from there.
    pub source: Option<Source>,
    /// Only calls that this model answered.
    pub model: Option<String>,
    /// Only calls answered with this voice.
    pub voice: Option<String>,
    /// Only calls that came to this.
    pub outcome: Option<Outcome>,
    /// Only calls that were analysed to this.
    pub sentiment: Option<Sentiment>,
    /// Only calls that started at this time or later, in ms since 1970.
    pub from_ms: Option<i64>,
    /// Only calls that started before this time.
    pub to_ms: Option<i64>,
    /// Only calls in which these words are found, by the text index's rules.
    pub search: Option<String>,
}

impl CallFilter {
    /// Whether the group of a call matters.
    pub(super) fn has_groups(&self) -> bool {
        self.group_columns().iter().any(|(_, value)| value.is_some())
    }

    /// The groups whose calls pass, as a SELECT of their ids.
    pub(super) fn groups(&self, binds: &mut Binds) -> String {
        let mut sql = "SELECT id FROM call_groups WHERE workspace_id = :ws".to_owned();
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

    /// ` AND …` on the rowid of the text index.
    pub(super) fn found(&self, binds: &mut Binds) -> Option<String> {
        let text = self.search.as_deref()?;
        Some(match search::words(text) {
            Some(words) => {
                let words = binds.add(words);
                format!("call_search MATCH {}", search::expression(&words))
            }
            None => "false".to_owned(),
        })
    }
}

/// `SELECT group_id, starts_at, ends_at, calls, duration_ms, cost_microusd` over the pieces: a sum, or a
/// call, a row. However many pieces there are, two SELECTs read them: D1 joins five at most.
pub(super) fn sums(pieces: &[Piece], binds: &mut Binds) -> String {
    let (mut spans, mut cut) = (Vec::new(), Vec::new());
    for piece in pieces {
        match piece.grain {
            Grain::All => spans.push((rollup::ALL_MS, piece)),
            Grain::Span(ms) => spans.push((ms, piece)),
            Grain::Calls => cut.push(serde_json::json!([piece.from_ms, piece.to_ms])),
        }
    }
    let mut selects = Vec::new();
    if let [(span_ms, piece)] = spans[..]
        && piece.grain == Grain::All
    {
        selects.push(format!(
            "SELECT group_id, starts_at, starts_at AS ends_at, calls, duration_ms, cost_microusd FROM call_rollups
             WHERE workspace_id = :ws AND span_ms = {span_ms}"
        ));
    } else {
        let spans = spans.iter().map(|(ms, piece)| serde_json::json!([ms, piece.from_ms, piece.to_ms]));
        let spans = binds.add(serde_json::Value::from_iter(spans).to_string());
        selects.push(format!(
            "SELECT group_id, starts_at, starts_at + span_ms AS ends_at, calls, duration_ms, cost_microusd
             FROM json_each({spans}) AS piece CROSS JOIN call_rollups
             WHERE workspace_id = :ws AND span_ms = json_extract(piece.value, '$[0]')
             AND starts_at >= json_extract(piece.value, '$[1]') AND starts_at < json_extract(piece.value, '$[2]')"
        ));
    }
    if !cut.is_empty() {
        let cut = binds.add(serde_json::Value::from(cut).to_string());
        selects.push(format!(
            "SELECT group_id, json_extract(piece.value, '$[0]'), json_extract(piece.value, '$[1]'), 1,
             COALESCE(duration_ms, 0), cost_microusd
             FROM json_each({cut}) AS piece CROSS JOIN calls INDEXED BY calls_by_started_at
             WHERE workspace_id = :ws AND started_at >= json_extract(piece.value, '$[0]')
             AND started_at < json_extract(piece.value, '$[1]')"
        ));
    }
    selects.join(" UNION ALL ")
}

/// The values of a statement that is put together piece by piece.
#[derive(Debug, Default)]
pub(super) struct Binds(Vec<Value>);

impl Binds {
    /// Binds a value; returns its place, such as `?3`.
    pub fn add(&mut self, value: impl Into<Value>) -> String {
        self.0.push(value.into());
        format!("?{}", self.0.len())
    }

    /// The statement with these values.
    pub fn statement(self, sql: String) -> Statement {
        Statement { sql: sql.into(), params: self.0 }
    }
}

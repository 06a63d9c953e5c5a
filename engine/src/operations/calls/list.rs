//! `GET /calls`: calls in pages, with statistics over all of them.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::{Code, Error, FieldProblem};
use crate::base::ids::AssistantId;
use crate::base::limits::{PAGE_MAX, PAGE_ROWS_MAX, SEARCH_CHARS_MAX};
use crate::base::page::{Page, Pagination};
use crate::base::time;
use crate::conversation::{Outcome, Sentiment};
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::storage::calls::filter::CallFilter;
use crate::storage::calls::list::{self, Order, Sort};
use crate::storage::calls::stats::{self, CallStats};
use crate::storage::calls::waits::{self, Waits};
use crate::storage::calls::{Call, Source};
use crate::storage::fault::Fault;

/// `GET /calls`
pub const OPERATION: Operation = Operation::get("list_calls", "/calls", run!(run))
    .docs("List calls", "Lists calls in pages, latest first by default, with statistics over all calls that match the filters. A \
        filter that no call matches gives an empty list.")
    .query::<Query>()
    .returns::<CallList>()
    .errors(&[Code::InvalidParameter]);

/// Filters, order and page.
#[derive(Deserialize, JsonSchema)]
pub struct Query {
    /// Find calls whose transcript, summary, numbers or ids contain all of these words; only the first 32 count. Case and
    /// accents do not matter; the last word may be incomplete.
    #[schemars(length(max = SEARCH_CHARS_MAX))]
    search: Option<String>,
    /// Filter by assistant.
    assistant_id: Option<AssistantId>,
    /// Filter by source.
    source: Option<Source>,
    /// Filter by model.
    model: Option<String>,
    /// Filter by voice.
    voice: Option<String>,
    /// Filter by outcome.
    outcome: Option<Outcome>,
    /// Filter by sentiment.
    sentiment: Option<Sentiment>,
    /// Only calls that started at this time or later: a day (`2026-01-31`, UTC) or a time (`2026-01-31T09:00:00Z`).
    date_from: Option<String>,
    /// Only calls that started at this time or earlier: a day, including all of it, or a time.
    date_to: Option<String>,
    /// Column to sort by; default `started_at`.
    sort: Option<SortColumn>,
    /// Sort direction; default `desc`.
    order: Option<Direction>,
    /// Page number, from 1.
    #[schemars(range(min = 1, max = PAGE_MAX))]
    page: Option<i64>,
    /// Calls per page; default 200.
    #[schemars(range(min = 1, max = PAGE_ROWS_MAX))]
    limit: Option<i64>,
}

/// A column that calls can be sorted by.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SortColumn {
    StartedAt,
    EndedAt,
    DurationMs,
    Cost,
}

/// A sort direction.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Direction {
    Asc,
    Desc,
}

/// A page of calls.
#[derive(Serialize, JsonSchema)]
pub struct CallList {
    /// The calls.
    calls: Vec<Call>,
    /// Statistics over all calls that match the filters.
    stats: CallStats,
    /// The position of this page in the list.
    pagination: Pagination,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let query: Query = input.query()?;
    let page = Page::new(query.page, query.limit);
    let sort = match query.sort {
        None | Some(SortColumn::StartedAt) => Sort::StartedAt,
        Some(SortColumn::EndedAt) => Sort::EndedAt,
        Some(SortColumn::DurationMs) => Sort::DurationMs,
        Some(SortColumn::Cost) => Sort::Cost,
    };
    let order = match query.order {
        None | Some(Direction::Desc) => Order::Descending,
        Some(Direction::Asc) => Order::Ascending,
    };
    let filter = filter(query)?;
    let reads = [stats::select(&filter), waits::select(&filter), list::select(&filter, sort, order, page)];
    let [counted, waited, listed] = context.read_each(reads).await?;
    let stats = CallStats::read(&counted, Waits::read(&waited)?)?;
    let base_url = &context.services.config().base_url;
    let calls = listed.iter().map(|row| Call::read(row, base_url)).collect::<Result<_, _>>()?;
    let pagination = Pagination::new(page, stats.total);
    Ok(Output::ok(&CallList { calls, stats, pagination })?.with_page_after(pagination))
}

fn filter(query: Query) -> Result<CallFilter, Error> {
    let mut problems = Vec::new();
    let mut date = |name: &str, text: Option<String>, read: fn(&str) -> Option<i64>| {
        let ms = read(text.as_deref()?);
        if ms.is_none() {
            let message = "must be a day such as 2026-01-31 or a time such as 2026-01-31T09:00:00Z";
            problems.push(FieldProblem::new(name, message));
        }
        ms
    };
    let from_ms = date("date_from", query.date_from, time::from);
    let to_ms = date("date_to", query.date_to, time::until);
    if !problems.is_empty() {
        return Err(Error::fields(Code::InvalidParameter, &problems));
    }
    Ok(CallFilter {
        assistant_id: query.assistant_id,
        source: query.source,
        model: query.model,
        voice: query.voice,
        outcome: query.outcome,
        sentiment: query.sentiment,
        from_ms,
        to_ms,
        search: query.search,
    })
}

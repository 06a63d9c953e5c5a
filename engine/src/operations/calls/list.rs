//! `GET /calls`: calls in pages, with statistics over all of them.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::{Code, Error};
use crate::base::ids::AssistantId;
use crate::base::limits::{PAGE_MAX, PAGE_ROWS_MAX, SEARCH_CHARS_MAX};
use crate::base::page::{Page, Pagination};
use crate::base::values::MetadataFilter;
use crate::conversation::{Outcome, Sentiment};
use crate::operations::context::Context;
use crate::operations::date_range::DateRange;
use crate::operations::operation::{Input, Operation, Output};
use crate::storage::calls::filter::CallFilter;
use crate::storage::calls::list::{self, Order, Sort, Texts};
use crate::storage::calls::stats::{self, CallStats};
use crate::storage::calls::waits::{self, Waits};
use crate::storage::calls::{Call, Source};
use crate::storage::fault::Fault;

/// `GET /calls`
pub const OPERATION: Operation = Operation::get("list_calls", "/calls", run!(run))
    .docs("List calls", "Lists calls in pages, latest first, with statistics over all that match. Prefer `view=summary`, without what was \
        said; read single calls with get_call. A filter that no call matches gives an empty list.")
    .query::<Query>()
    .returns::<CallList>()
    .errors(&[Code::InvalidParameter]);

/// Which calls.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Filters {
    /// Find calls whose transcript, summary, numbers or ids contain all of these words. Only the first 32 count. Case and
    /// accents do not matter; the last word may be incomplete.
    #[schemars(length(min = 1, max = SEARCH_CHARS_MAX))]
    search: Option<String>,
    /// Filter by assistant.
    assistant_id: Option<AssistantId>,
    /// Filter by source.
    source: Option<Source>,
    /// Filter by model.
    #[schemars(length(min = 1))]
    model: Option<String>,
    /// Filter by voice.
    #[schemars(length(min = 1))]
    voice: Option<String>,
    /// Filter by outcome.
    outcome: Option<Outcome>,
    /// Filter by sentiment.
    sentiment: Option<Sentiment>,
    /// Only calls that started at this time or later: a day (`2026-01-31`, UTC) or a time (`2026-01-31T09:00:00Z`).
    date_from: Option<String>,
    /// Only calls that started at this time or earlier, or on this day.
    date_to: Option<String>,
    /// Only calls whose metadata has all of these entries, at most 5: `metadata.<name>=<value>` for each.
    #[serde(default)]
    metadata: MetadataFilter,
}

/// Filters, order and page.
#[derive(Deserialize, JsonSchema)]
struct Query {
    #[serde(flatten)]
    filters: Filters,
    /// How much of each call: `full`, the default, or `summary`, without what was said.
    view: Option<View>,
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

/// How much of each call a list has.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum View {
    /// All of it.
    #[default]
    Full,
    /// `transcript` and `analysis` are null. `outcome`, `sentiment`, `waits_ms` and costs stay.
    Summary,
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
    let texts = match query.view.unwrap_or_default() {
        View::Full => Texts::Read,
        View::Summary => Texts::LeftOut,
    };
    let filter = filter(query.filters)?;
    let listed = list::select(&filter, sort, order, page, texts);
    let reads = [stats::select(&filter), waits::select(&filter), listed];
    let [counted, waited, mut listed] = context.read_each(reads).await?;
    if texts == Texts::Read {
        context.unarchive_list(&mut listed).await?;
    }
    let stats = CallStats::read(&counted, Waits::read(&waited)?)?;
    let base_url = &context.services.config().base_url;
    let calls = listed.iter().map(|row| Call::read(row, base_url)).collect::<Result<_, _>>()?;
    let pagination = Pagination::new(page, stats.total);
    Ok(Output::ok(&CallList { calls, stats, pagination })?.with_page_after(pagination))
}

pub(super) fn filter(query: Filters) -> Result<CallFilter, Error> {
    let DateRange { from_ms, until_ms } =
        DateRange::read(query.date_from.as_deref(), query.date_to.as_deref())?;
    Ok(CallFilter {
        assistant_id: query.assistant_id,
        source: query.source,
        model: query.model,
        voice: query.voice,
        outcome: query.outcome,
        sentiment: query.sentiment,
        from_ms,
        to_ms: until_ms,
        search: query.search,
        metadata: query.metadata,
    })
}

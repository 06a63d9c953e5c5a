//! Pagination of lists.
use schemars::JsonSchema;
use serde::Serialize;

use crate::base::limits::PAGE_ROWS_DEFAULT;

/// The requested page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Page number, from 1.
    pub page: i64,
    /// Rows per page.
    pub limit: i64,
}

impl Page {
    /// Defaults to the first page with [`PAGE_ROWS_DEFAULT`] rows.
    pub fn new(page: Option<i64>, limit: Option<i64>) -> Self {
        Self { page: page.unwrap_or(1), limit: limit.unwrap_or(PAGE_ROWS_DEFAULT) }
    }

    /// Number of rows before this page.
    pub fn offset(self) -> i64 {
        (self.page - 1) * self.limit
    }
}

/// The pagination of a list response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pagination {
    /// Number of this page, from 1.
    page: i64,
    /// Rows per page.
    limit: i64,
    /// Total number of rows.
    total: i64,
    /// Total number of pages.
    total_pages: i64,
}

impl Pagination {
    /// The pagination for `page` when the list has `total` rows.
    pub fn new(page: Page, total: i64) -> Self {
        let total_pages = (total + page.limit - 1) / page.limit;
        Self { page: page.page, limit: page.limit, total, total_pages }
    }

    /// The number of the page after this one; `None` on the last.
    pub fn next(&self) -> Option<i64> {
        (self.page < self.total_pages).then_some(self.page + 1)
    }
}

//! Lists that come in pages.
use schemars::JsonSchema;
use serde::Serialize;

use crate::base::limits::PAGE_ROWS_DEFAULT;

/// Where a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// From 1.
    pub page: i64,
    /// Rows a page.
    pub limit: i64,
}

impl Page {
    /// The first page of the default size where nothing is said.
    pub fn new(page: Option<i64>, limit: Option<i64>) -> Self {
        Self { page: page.unwrap_or(1), limit: limit.unwrap_or(PAGE_ROWS_DEFAULT) }
    }

    /// Rows before it.
    pub fn offset(self) -> i64 {
        (self.page - 1) * self.limit
    }
}

/// What a list says of its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pagination {
    /// This page, from 1.
    page: i64,
    /// Rows a page.
    limit: i64,
    /// Rows in all.
    total: i64,
    /// Pages in all.
    total_pages: i64,
}

impl Pagination {
    /// For `page` of `total` rows.
    pub fn new(page: Page, total: i64) -> Self {
        let total_pages = (total + page.limit - 1) / page.limit;
        Self { page: page.page, limit: page.limit, total, total_pages }
    }
}

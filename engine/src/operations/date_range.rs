//! The filters `date_from` and `date_to`: days in UTC, both included, or times.
use crate::base::error::{Code, Error, FieldProblem};
use crate::base::time;

/// A range of times in ms since 1970: from the first on, before the second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DateRange {
    /// The first time that is in it.
    pub(crate) from_ms: Option<i64>,
    /// The first time that is no longer in it.
    pub(crate) until_ms: Option<i64>,
}

impl DateRange {
    /// Reads the values of `date_from` and `date_to`; names those that are neither a day nor a time, and
    /// refuses a range that ends before it begins.
    pub(crate) fn read(date_from: Option<&str>, date_to: Option<&str>) -> Result<Self, Error> {
        let mut problems = Vec::new();
        let mut date = |name: &str, text: Option<&str>, read: fn(&str) -> Option<i64>| {
            let ms = read(text?);
            if ms.is_none() {
                let message = "must be a day such as 2026-01-31 or a time such as 2026-01-31T09:00:00Z";
                problems.push(FieldProblem::new(name, message));
            }
            ms
        };
        let from_ms = date("date_from", date_from, time::from);
        let until_ms = date("date_to", date_to, time::until);
        if !problems.is_empty() {
            return Err(Error::fields(Code::InvalidParameter, &problems));
        }
        if from_ms.zip(until_ms).is_some_and(|(from, until)| from >= until) {
            return Err(Error::field("date_from", "must not be after `date_to`"));
        }
        Ok(Self { from_ms, until_ms })
    }
}

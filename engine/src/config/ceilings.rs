//! What a workspace can have at most.
use super::values::whole_number;
use crate::base::limits::{CALLS_AT_ONCE_MAX, INTEGER_MAX, RUNS_AT_ONCE_MAX};
use crate::base::setting::SettingError;

/// The operator's limits for each workspace, above those that the workspace sets itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceilings {
    /// Costs of a month, in millionths of a US dollar; `None` for no limit.
    pub monthly_spend_limit_microusd: Option<i64>,
    /// Concurrent simulation runs.
    pub runs_at_once: i64,
    /// Concurrent telephone calls.
    pub calls_at_once: i64,
}

impl Ceilings {
    pub(super) fn from_settings(get: impl Fn(&str) -> Option<String>) -> Result<Self, SettingError> {
        let number = |name, least, most| whole_number(name, get(name), least, most);
        let (runs, calls) = (RUNS_AT_ONCE_MAX.cast_signed(), CALLS_AT_ONCE_MAX.cast_signed());
        Ok(Self {
            monthly_spend_limit_microusd: number("SIDETONE_MONTHLY_SPEND_LIMIT_MICROUSD", 0, INTEGER_MAX)?,
            runs_at_once: number("SIDETONE_RUNS_AT_ONCE", 1, runs)?.unwrap_or(runs),
            calls_at_once: number("SIDETONE_CALLS_AT_ONCE", 1, calls)?.unwrap_or(calls),
        })
    }
}

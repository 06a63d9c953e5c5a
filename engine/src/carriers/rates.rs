//! Prices per minute of carriers that do not report costs, from the operator's settings.
use std::collections::BTreeMap;

use super::report::Billed;
use crate::base::limits::INTEGER_MAX;
use crate::base::setting::SettingError;
use crate::carriers::CarrierName;

/// The name of the setting.
pub const SETTING: &str = "SIDETONE_CARRIER_RATES";

/// Millionths of a US dollar per minute, by carrier.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rates(BTreeMap<String, i64>);

impl Rates {
    /// Parses `{"twilio": 14000, …}`.
    pub fn read(text: Option<String>) -> Result<Self, SettingError> {
        let Some(text) = text else { return Ok(Self::default()) };
        let wrong = || SettingError {
            name: SETTING,
            message: format!(
                "must be such as {{\"twilio\": 14000}}: millionths of a US dollar per minute, from 0 to {INTEGER_MAX}, by carrier \
                 (twilio, telnyx, plivo, vonage)"
            ),
        };
        let rates: BTreeMap<String, i64> = serde_json::from_str(&text).map_err(|_| wrong())?;
        let fits = |(name, rate): (&String, &i64)| {
            CarrierName::parse(name).is_some() && (0..=INTEGER_MAX).contains(rate)
        };
        if rates.iter().all(fits) { Ok(Self(rates)) } else { Err(wrong()) }
    }

    /// Whether the carrier has a rate.
    pub fn has(&self, provider: &str) -> bool {
        self.0.contains_key(provider)
    }

    /// The rate of a carrier in millionths of a US dollar per minute; 0 when there is none.
    pub fn microusd_per_minute(&self, provider: CarrierName) -> i64 {
        self.0.get(provider.as_str()).copied().unwrap_or(0)
    }

    /// The cost of a call of `ours_ms` by our clock: the carrier's reported cost, or else its reported duration (or ours, when
    /// it reports none) at the operator's rate, rounded up to whole minutes. `None` when neither cost nor rate is known.
    pub fn cost_microusd(&self, provider: CarrierName, billed: Option<Billed>, ours_ms: i64) -> Option<i64> {
        const MINUTE_MS: i64 = 60_000;
        if let Some(told) = billed.and_then(|billed| billed.cost_microusd) {
            return Some(told);
        }
        let rate = *self.0.get(provider.as_str())?;
        let ms = billed.and_then(|billed| billed.duration_ms).unwrap_or(ours_ms).max(0);
        Some(rate.saturating_mul(ms / MINUTE_MS + i64::from(ms % MINUTE_MS > 0)).min(INTEGER_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates() -> Rates {
        Rates::read(Some(r#"{"twilio": 14000, "vonage": 0}"#.to_owned())).unwrap()
    }

    #[test]
    fn reported_cost_precedes_reported_duration_and_our_duration() {
        let billed = |duration_ms, cost_microusd| Some(Billed { duration_ms, cost_microusd });
        let cost = |billed, ours_ms| rates().cost_microusd(CarrierName::Twilio, billed, ours_ms);
        assert_eq!(cost(billed(Some(120_000), Some(9_000)), 1), Some(9_000));
        assert_eq!(cost(billed(Some(120_000), None), 1), Some(28_000));
        assert_eq!(cost(None, 60_001), Some(28_000));
        assert_eq!(cost(billed(None, None), 60_000), Some(14_000));
        assert_eq!((cost(None, 0), cost(None, -5)), (Some(0), Some(0)));
        assert_eq!(cost(None, i64::MAX), Some(INTEGER_MAX));
        assert_eq!(rates().cost_microusd(CarrierName::Vonage, None, 60_000), Some(0));
        assert_eq!(rates().cost_microusd(CarrierName::Plivo, None, 60_000), None);
    }

    #[test]
    fn invalid_rates_are_rejected() {
        assert_eq!(Rates::read(None), Ok(Rates::default()));
        for wrong in
            ["", "14000", r#"{"nobody": 1}"#, r#"{"twilio": -1}"#, r#"{"twilio": 1.5}"#, r#"{"twilio": "1"}"#]
        {
            assert_eq!(Rates::read(Some(wrong.to_owned())).unwrap_err().name, SETTING, "{wrong}");
        }
    }
}

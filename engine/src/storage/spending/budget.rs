//! How much of a month's money a conversation gets. Pure arithmetic.
use serde_json::json;

use crate::base::dollars;
use crate::base::error::{Code, Error};
use crate::base::limits::{PHONE_CALL_SECONDS_MAX, PHONE_CALL_SECONDS_MIN, PHONE_TRANSFER_MARGIN_MS};
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Rows};
use crate::storage::spending::Reservation;

const MINUTE_SECONDS: i64 = 60;

/// The limit of a month and what is gone of it, in millionths of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budget {
    /// The limit that applies; `None` for no limit.
    pub limit: Option<i64>,
    /// What was spent this month.
    pub spent: i64,
    /// What calls under way may still spend.
    pub reserved: i64,
}

/// What a conversation gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// It may start, and reserves nothing: there is no limit, or it is free.
    Free,
    /// It may start, and reserves this much, at least 1; it may not spend more.
    Reserve(i64),
    /// Calls under way have reserved everything that is left. They will return what they do not spend.
    AllReserved,
    /// The limit is reached.
    Spent,
}

impl Grant {
    /// How much is reserved; `None` where nothing is.
    pub const fn reserved(self) -> Option<i64> {
        match self {
            Self::Reserve(microusd) => Some(microusd),
            Self::Free | Self::AllReserved | Self::Spent => None,
        }
    }
}

/// What a telephone call gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhoneGrant {
    /// What it reserves; `None` for nothing.
    pub reservation: Option<Reservation>,
    /// How long it may last.
    pub max_seconds: i64,
}

/// What the line of a call gets that is handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineGrant {
    /// How long both may talk.
    pub minutes: i64,
    /// What the line reserves; `None` for nothing.
    pub microusd: Option<i64>,
    /// What the call has reserved from now on; `None` for nothing.
    pub call: Option<Reservation>,
}

impl LineGrant {
    /// What both reserve together.
    pub fn whole(&self) -> i64 {
        self.microusd.unwrap_or(0).saturating_add(self.call.map_or(0, |call| call.microusd))
    }
}

impl Budget {
    /// The row of [`select`](super::select). Without a row there is no workspace, and no limit.
    pub fn read(rows: Option<&Rows>) -> Result<Self, DatabaseError> {
        let read = |row: Row<'_>| {
            Ok(Self {
                limit: row.optional_integer("spend_limit")?,
                spent: row.integer("spent")?,
                reserved: row.integer("reserved")?,
            })
        };
        rows.and_then(Rows::first).map_or(Ok(Self::default()), read)
    }

    /// What nobody has spent or reserved; `None` without a limit.
    pub fn left(&self) -> Option<i64> {
        self.limit.map(|limit| limit.saturating_sub(self.spent).saturating_sub(self.reserved).max(0))
    }

    fn is_spent(&self) -> bool {
        self.limit.is_some_and(|limit| self.spent >= limit)
    }

    /// What a conversation gets that may cost `wanted`; 0 for one without prices.
    pub fn grant(&self, wanted: i64) -> Grant {
        match self.left() {
            _ if self.is_spent() => Grant::Spent,
            None => Grant::Free,
            Some(_) if wanted <= 0 => Grant::Free,
            Some(0) => Grant::AllReserved,
            Some(left) => Grant::Reserve(wanted.min(left)),
        }
    }

    /// What a telephone call gets whose models may cost `models`, with a carrier that costs `per_minute`. If the whole
    /// does not fit, both parts shrink alike, to whole minutes. A call too short for a conversation is not begun.
    pub fn grant_call(&self, models: i64, per_minute: i64) -> Result<PhoneGrant, Error> {
        let (models, per_minute) = (models.max(0), per_minute.max(0));
        let minutes = PHONE_CALL_SECONDS_MAX / MINUTE_SECONDS;
        let carrier = per_minute.saturating_mul(minutes);
        let wanted = carrier.saturating_add(models);
        let granted = match self.grant(wanted) {
            Grant::Free => {
                return Ok(PhoneGrant { reservation: None, max_seconds: PHONE_CALL_SECONDS_MAX });
            }
            Grant::AllReserved | Grant::Spent => return Err(self.refusal()),
            Grant::Reserve(granted) => granted,
        };
        if granted == wanted {
            let reservation = Some(Reservation { microusd: wanted, models_microusd: models });
            return Ok(PhoneGrant { reservation, max_seconds: PHONE_CALL_SECONDS_MAX });
        }
        let minutes = if per_minute == 0 {
            minutes
        } else {
            let part = i128::from(granted) * i128::from(carrier) / i128::from(wanted);
            let fits = i64::try_from(part / i128::from(per_minute)).unwrap_or(minutes);
            fits.clamp(PHONE_CALL_SECONDS_MIN / MINUTE_SECONDS, minutes)
        };
        let rest = granted.saturating_sub(per_minute.saturating_mul(minutes));
        if rest < i64::from(models > 0) {
            return Err(self.refusal());
        }
        let models = models.min(rest);
        let microusd = per_minute * minutes + models;
        let reservation = Some(Reservation { microusd, models_microusd: models });
        Ok(PhoneGrant { reservation, max_seconds: minutes * MINUTE_SECONDS })
    }

    /// What a line gets that is handed over for `wanted` minutes, with a carrier that costs `per_minute`: of a call that has
    /// lasted for `minutes` and has reserved `before`, which `self` does not count. Both ends cost, and ours while the other
    /// rings. If not all of it fits, it is for fewer minutes. `None`: too few are left.
    pub fn grant_line(
        &self,
        before: Option<Reservation>,
        minutes: i64,
        per_minute: i64,
        wanted: i64,
    ) -> Option<LineGrant> {
        const RINGING: i64 = PHONE_TRANSFER_MARGIN_MS / 60_000;
        if self.is_spent() {
            return None;
        }
        let Some(left) = self.left().filter(|_| per_minute > 0) else {
            return Some(LineGrant { minutes: wanted, microusd: None, call: before });
        };
        let spent = |before: Reservation| per_minute.saturating_mul(minutes) + before.models_microusd;
        let rest = left.saturating_sub(before.map_or(0, spent));
        let minutes = wanted.min((rest / per_minute - RINGING) / 2);
        if minutes < wanted.min(PHONE_CALL_SECONDS_MIN / MINUTE_SECONDS) {
            return None;
        }
        let microusd = per_minute.saturating_mul(2 * minutes + RINGING);
        // If the carrier refuses, the call goes on with what it had.
        let call = before
            .map(|one| Reservation { microusd: spent(one).max(one.microusd.min(left) - microusd), ..one });
        Some(LineGrant { minutes, microusd: Some(microusd), call })
    }

    /// The reservation of a call whose models may now cost `wanted`; `self` does not count what it has reserved. A call
    /// under way is not refused: with nothing left, its models may cost nothing.
    pub fn with_models(&self, before: Option<Reservation>, wanted: i64) -> Option<Reservation> {
        let carrier = before.map_or(0, |before| before.microusd - before.models_microusd);
        let models_microusd = wanted.min(self.left()?.saturating_sub(carrier)).max(0);
        Some(Reservation { microusd: carrier.saturating_add(models_microusd), models_microusd })
    }

    /// The same as an error, when nothing can start: for operations that cost money.
    pub fn check(&self, spends: bool) -> Result<(), Error> {
        if spends && self.is_spent() { Err(self.refusal()) } else { Ok(()) }
    }

    /// The reservation for models that may cost `wanted`, or the error when none is possible.
    pub fn reserve(&self, wanted: i64) -> Result<Option<Reservation>, Error> {
        match self.grant(wanted) {
            Grant::Free => Ok(None),
            Grant::Reserve(microusd) => Ok(Some(Reservation::for_models(microusd))),
            Grant::AllReserved | Grant::Spent => Err(self.refusal()),
        }
    }

    /// Why nothing can start.
    pub fn refusal(&self) -> Error {
        let Self { limit, spent, reserved } = *self;
        let limit = limit.unwrap_or_default();
        let mut message = format!(
            "This workspace has spent ${} of its monthly limit of ${}",
            dollars::shown(spent),
            dollars::shown(limit)
        );
        if !self.is_spent() {
            message += &format!(
                ", and conversations in progress have reserved ${}. What they do not use becomes free when they end: try \
                 again then",
                dollars::shown(reserved)
            );
        }
        message += ". Raise monthly_spend_limit_microusd (PATCH /workspace), up to the operator's limit, or wait for the next month (UTC).";
        let details =
            json!({"limit_microusd": limit, "spent_microusd": spent, "reserved_microusd": reserved});
        Error::new(Code::SpendLimitReached, message).with_details(details)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::limits::INTEGER_MAX;

    fn budget(limit: i64, spent: i64, reserved: i64) -> Budget {
        Budget { limit: Some(limit), spent, reserved }
    }

    #[test]
    fn a_conversation_gets_its_own_cap_or_what_is_left() {
        assert_eq!(Budget::default().grant(INTEGER_MAX), Grant::Free);
        assert_eq!(budget(1_000, 0, 0).grant(300), Grant::Reserve(300));
        assert_eq!(budget(1_000, 200, 300).grant(INTEGER_MAX), Grant::Reserve(500));
        assert_eq!(budget(1_000, 200, 800).grant(1), Grant::AllReserved);
        assert_eq!(budget(1_000, 200, 800).grant(0), Grant::Free);
        assert_eq!(budget(1_000, 1_000, 0).grant(0), Grant::Spent);
        assert_eq!(budget(0, 0, 0).grant(1), Grant::Spent);
    }

    #[test]
    fn a_call_shrinks_to_whole_minutes() {
        let grant = |left, models, per_minute| budget(left, 0, 0).grant_call(models, per_minute).ok();
        let got = |microusd, models_microusd, minutes: i64| {
            let reservation = Some(Reservation { microusd, models_microusd });
            Some(PhoneGrant { reservation, max_seconds: minutes * 60 })
        };
        assert_eq!(grant(2_000_000, 1_000_000, 10_000), got(1_600_000, 1_000_000, 60));
        // Half of it: half of the minutes, half of the models.
        assert_eq!(grant(800_000, 1_000_000, 10_000), got(800_000, 500_000, 30));
        assert_eq!(grant(30_001, 1_000_000, 10_000), got(30_001, 1, 3));
        assert_eq!(grant(30_000, 1_000_000, 10_000), None);
        assert_eq!(grant(30_000, 0, 10_000), got(30_000, 0, 3));
        assert_eq!(grant(5, 1_000_000, 0), got(5, 5, 60));
        assert_eq!(Budget::default().grant_call(5, 5).unwrap().reservation, None);
    }

    #[test]
    fn a_line_that_is_handed_over_reserves_both_ends() {
        let before = |microusd, models_microusd| Some(Reservation { microusd, models_microusd });
        let grant = |left, reserved, wanted| budget(left, 0, 0).grant_line(reserved, 10, 100, wanted);
        let got = |minutes, microusd, call| Some(LineGrant { minutes, microusd: Some(microusd), call });
        // Ten minutes and 500 for models are gone; 242 minutes follow.
        assert_eq!(grant(25_700, before(6_500, 500), 120), got(120, 24_200, before(1_500, 500)));
        assert_eq!(grant(25_699, before(6_500, 500), 120), got(119, 24_000, before(1_500, 500)));
        // The call keeps what it had if that is more.
        assert_eq!(grant(99_999, before(6_500, 500), 5), got(5, 1_200, before(5_300, 500)));
        assert_eq!(grant(2_300, before(2_300, 500), 120), got(3, 800, before(1_500, 500)));
        assert_eq!(grant(2_299, before(2_300, 500), 120), None);
        // The order of the call ends it sooner.
        assert_eq!(grant(1_900, before(1_900, 500), 1), got(1, 400, before(1_500, 500)));
        assert_eq!(grant(800, None, 120), got(3, 800, None));
        let free = |budget: Budget, rate| budget.grant_line(before(7, 7), 10, rate, 120);
        let whole = Some(LineGrant { minutes: 120, microusd: None, call: before(7, 7) });
        assert_eq!(free(Budget::default(), 100), whole);
        assert_eq!(free(budget(7, 0, 0), 0), whole);
        assert_eq!(free(budget(7, 7, 0), 0), None);
    }

    /// What may happen to a workspace's money.
    #[derive(Debug, Clone)]
    enum Step {
        /// A conversation that may cost this starts.
        Start(i64),
        /// A telephone call: models, price of a minute.
        Call(i64, i64),
        /// The line of the nth conversation is handed over: minutes so far, price of a minute.
        HandOver(usize, i64, i64),
        /// The nth conversation under way ends after it spent these thousandths of its reservation, and one answer more.
        End(usize, i64, i64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..=INTEGER_MAX).prop_map(Step::Start),
            (0_i64..2_000).prop_map(Step::Start),
            (0_i64..2_000, 0_i64..50).prop_map(|(models, rate)| Step::Call(models, rate)),
            (any::<usize>(), 0_i64..60, 0_i64..50)
                .prop_map(|(n, minutes, rate)| Step::HandOver(n, minutes, rate)),
            (any::<usize>(), 0_i64..=1_000, 0_i64..100).prop_map(|(n, part, over)| Step::End(n, part, over)),
        ]
    }

    proptest! {
        /// Whatever starts and ends in whatever order: spent and reserved together pass the limit by at most one answer
        /// of each conversation, nobody gets more than it wants, and what ended holds nothing.
        #[test]
        fn a_limit_is_passed_by_answers_only(
            limit in 0_i64..100_000,
            steps in prop::collection::vec(step(), 0..200),
        ) {
            let mut budget = budget(limit, 0, 0);
            let (mut under_way, mut answers): (Vec<i64>, i64) = (Vec::new(), 0);
            for step in steps {
                match step {
                    Step::Start(wanted) => if let Grant::Reserve(got) = budget.grant(wanted) {
                        prop_assert!(1 <= got && got <= wanted);
                        under_way.push(got);
                    },
                    Step::Call(models, rate) => if let Ok(got) = budget.grant_call(models, rate)
                        && let Some(Reservation { microusd, models_microusd }) = got.reservation {
                        prop_assert!(models_microusd <= models && (models == 0 || models_microusd > 0));
                        prop_assert_eq!(microusd, models_microusd + rate * got.max_seconds / 60);
                        prop_assert!((PHONE_CALL_SECONDS_MIN..=PHONE_CALL_SECONDS_MAX).contains(&got.max_seconds));
                        under_way.push(microusd);
                    },
                    Step::HandOver(n, minutes, rate) => if !under_way.is_empty() {
                        let reserved = under_way.swap_remove(n % under_way.len());
                        let beside = Budget { reserved: under_way.iter().sum(), ..budget };
                        let before = Some(Reservation::for_models(reserved));
                        match beside.grant_line(before, minutes, rate, 120) {
                            Some(grant) => under_way.extend([grant.call.map(|call| call.microusd), grant.microusd].into_iter().flatten()),
                            None => under_way.push(reserved),
                        }
                    },
                    Step::End(n, part, over) => if !under_way.is_empty() {
                        let reserved = under_way.swap_remove(n % under_way.len());
                        budget.spent += reserved * part / 1_000 + over;
                        answers += over;
                    },
                }
                budget.reserved = under_way.iter().sum();
                prop_assert!(budget.spent + budget.reserved <= limit + answers, "{:?}", budget);
            }
        }
    }
}

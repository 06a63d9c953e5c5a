//! Plans of faults.
use serde::Serialize;

use crate::Choices;

/// Database batches in a seeded plan: more than the scenario needs without faults.
const STORAGE_CALLS: usize = 160;
/// Hints in a seeded plan.
const HINTS: usize = 16;
/// Job runner steps in a seeded plan.
const STEPS: usize = 48;

/// A list each for the database, hints and job runners. The n-th entry applies to the n-th call since the start of the plan;
/// calls beyond the end of a list succeed. Where requests and consumers are concurrent, as in workerd, the order of calls
/// is not deterministic.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FaultPlan {
    /// Batches, reads and writes alike.
    pub storage: Vec<StorageFault>,
    /// Messages to the queue.
    pub hints: Vec<HintFault>,
    /// Written batches that name a lease: the steps of a job runner (claim, extend, finish, release). The runner is killed, like an
    /// evicted isolate.
    pub kills: Vec<Option<Moment>>,
}

/// What happens to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StorageFault {
    /// It succeeds.
    None,
    /// It does not reach the database.
    Before,
    /// Some statements run, then one fails.
    Half,
    /// It is committed, but the response is lost.
    After,
}

/// What happens to a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HintFault {
    /// It is delivered.
    None,
    /// It is lost.
    Lose,
    /// The queue rejects it with an error.
    Refuse,
    /// It is delivered twice.
    Double,
    /// It is delivered late.
    Late,
}

/// When a job runner is killed, relative to the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Before the commit.
    Before,
    /// After the commit, before the response.
    After,
}

impl FaultPlan {
    /// The plan of a seed. The seed also determines the density of faults.
    pub fn from_seed(seed: u64) -> Self {
        use {HintFault as Hint, StorageFault as Storage};
        let mut choices = Choices(seed);
        let calls_a_fault = 2 + choices.below(8);
        let steps_a_kill = 3 + choices.below(8);
        let mut hit = |calls: u64| (choices.below(calls) == 0).then(|| Choices(choices.below(u64::MAX)));
        let storage = (0..STORAGE_CALLS).map(|_| {
            let met = hit(calls_a_fault);
            met.map_or(Storage::None, |mut c| c.one_of(&[Storage::Before, Storage::Half, Storage::After]))
        });
        let storage = storage.collect();
        let all = [Hint::Lose, Hint::Refuse, Hint::Double, Hint::Late];
        let hints = (0..HINTS).map(|_| hit(2).map_or(Hint::None, |mut c| c.one_of(&all))).collect();
        let kills = (0..STEPS)
            .map(|_| hit(steps_a_kill).map(|mut c| c.one_of(&[Moment::Before, Moment::After])))
            .collect();
        Self { storage, hints, kills }
    }

    /// The n-th database batch fails, counted from 1.
    pub fn storage(nth: usize, fault: StorageFault) -> Self {
        let mut storage = vec![StorageFault::None; nth.saturating_sub(1)];
        storage.push(fault);
        Self { storage, ..Self::default() }
    }

    /// These faults for the first hints.
    pub fn hints(hints: &[HintFault]) -> Self {
        Self { hints: hints.to_vec(), ..Self::default() }
    }

    /// A job runner is killed at its n-th step, counted from 1.
    pub fn kill(nth: usize, moment: Moment) -> Self {
        let mut kills = vec![None; nth.saturating_sub(1)];
        kills.push(Some(moment));
        Self { kills, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_plan() {
        assert_eq!(FaultPlan::from_seed(1), FaultPlan::from_seed(1));
        assert_ne!(FaultPlan::from_seed(1), FaultPlan::from_seed(2));
    }

    #[test]
    fn seeds_produce_every_kind_of_fault() {
        let plans: Vec<_> = (0..4).map(FaultPlan::from_seed).collect();
        for fault in [StorageFault::Before, StorageFault::Half, StorageFault::After] {
            assert!(plans.iter().any(|plan| plan.storage.contains(&fault)), "{fault:?}");
        }
        for fault in [HintFault::Lose, HintFault::Refuse, HintFault::Double, HintFault::Late] {
            assert!(plans.iter().any(|plan| plan.hints.contains(&fault)), "{fault:?}");
        }
        for moment in [Moment::Before, Moment::After] {
            assert!(plans.iter().any(|plan| plan.kills.contains(&Some(moment))), "{moment:?}");
        }
    }

    #[test]
    fn the_json_matches_the_worker() {
        let plan = FaultPlan {
            storage: vec![StorageFault::None, StorageFault::Half],
            hints: vec![HintFault::Lose],
            kills: vec![None, Some(Moment::After)],
        };
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(json, r#"{"storage":["none","half"],"hints":["lose"],"kills":[null,"after"]}"#);
    }
}

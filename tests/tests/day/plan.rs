//! Who does what when: drawn from the seed before the day begins.
use std::collections::BTreeMap;

use sidetone_tests::Choices;
use sidetone_tests::fakes::carrier::PhoneCall;

use crate::time::START_MS;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
/// The end of the day.
pub const END_MS: i64 = START_MS + 24 * HOUR_MS;
/// When the greedy and the hostile do their worst, all at once. The last time is shortly before the end.
const STORMS_MS: [i64; 2] = [START_MS + 9 * HOUR_MS, END_MS - 10 * MINUTE_MS];
/// How long honest work goes on beside it.
const STORM_LASTS_MS: u64 = 100_000;

/// What a workspace is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Character {
    /// Does nothing.
    Idle,
    /// Does a little of everything, and everything it does must succeed.
    Honest,
    /// Wants a lot at once.
    Greedy,
    /// Wants to hold what it gets, and as much of it as it can.
    Hostile,
}

/// How many workspaces there are of each character.
pub const CHARACTERS: [(Character, usize); 4] =
    [(Character::Idle, 28), (Character::Honest, 40), (Character::Greedy, 16), (Character::Hostile, 16)];

/// What a workspace does.
#[derive(Debug, Clone)]
pub enum Act {
    /// Looks at its workspace.
    Look,
    /// Starts a run.
    Run,
    /// Talks to its assistant for a while.
    Talk,
    /// Places a telephone call.
    Call,
    /// The called telephone is busy.
    IsBusy(Box<PhoneCall>),
    /// Sends its webhooks a test event.
    Test,
    /// Changes its assistant.
    Edit,
    /// Starts this many runs.
    ManyRuns(usize),
    /// Opens this many conversations and says nothing.
    ManyTalks(usize),
    /// Lists and searches everything.
    Lists,
    /// Starts this many runs whose tool does not answer.
    HangingRuns(usize),
    /// Starts this many runs that may cost as much as a run can.
    DearRuns(usize),
    /// Sends bodies of the largest size, and larger ones.
    LargeBodies,
    /// Makes an assistant as large as a run can store, and starts this many runs of it.
    HugeRuns(usize),
    /// Starts runs whose tool does not answer, one at a time: more than the rest of the day has room for.
    Overfill(usize),
}

/// What is to happen, in order.
#[derive(Default)]
pub struct Plan {
    acts: BTreeMap<(i64, u64), (usize, Act)>,
    next: u64,
}

impl Plan {
    /// The plan of a day for workspaces of these characters.
    pub fn draw(choices: &mut Choices, characters: &[Character]) -> Self {
        let mut plan = Self::default();
        for (workspace, character) in characters.iter().enumerate() {
            let mut add = |at_ms, act| plan.add(at_ms, workspace, act);
            let mut some_time = || START_MS + MINUTE_MS + below(choices, 23 * HOUR_MS.unsigned_abs());
            match character {
                Character::Idle => add(some_time(), Act::Look),
                Character::Honest => {
                    (0..3).for_each(|_| add(some_time(), Act::Edit));
                    add(some_time(), Act::Run);
                    for storm_ms in STORMS_MS {
                        let mut meanwhile = || storm_ms + 1_000 + below(choices, STORM_LASTS_MS);
                        for act in [Act::Run, Act::Run, Act::Talk, Act::Test, Act::Edit, Act::Look] {
                            add(meanwhile(), act);
                        }
                    }
                    add(STORMS_MS[0] + below(choices, STORM_LASTS_MS), Act::Call);
                }
                Character::Greedy => {
                    for storm_ms in STORMS_MS {
                        add(storm_ms + below(choices, 2_000), Act::ManyRuns(8));
                        add(storm_ms + below(choices, 2_000), Act::ManyTalks(12));
                        add(storm_ms + below(choices, STORM_LASTS_MS), Act::Lists);
                    }
                }
                Character::Hostile => {
                    for storm_ms in STORMS_MS {
                        add(storm_ms + below(choices, 500), Act::HangingRuns(8));
                        add(storm_ms + below(choices, 2_000), Act::DearRuns(2));
                        (0..2).for_each(|_| add(storm_ms + below(choices, 5_000), Act::Test));
                        add(storm_ms + below(choices, STORM_LASTS_MS), Act::LargeBodies);
                    }
                }
            }
        }
        let hostile = |nth| {
            let mut all = (0..characters.len()).filter(|at| characters[*at] == Character::Hostile);
            all.nth(nth).unwrap_or_default()
        };
        plan.add(STORMS_MS[0], hostile(0), Act::HugeRuns(4));
        plan.add(STORMS_MS[1] + 5_000, hostile(1), Act::Overfill(30));
        plan
    }

    /// Adds to what is to happen.
    pub fn add(&mut self, at_ms: i64, workspace: usize, act: Act) {
        self.next += 1;
        self.acts.insert((at_ms, self.next), (workspace, act));
    }

    /// What happens next, and when.
    pub fn next(&mut self) -> Option<(i64, usize, Act)> {
        self.acts.pop_first().map(|((at_ms, _), (workspace, act))| (at_ms, workspace, act))
    }
}

fn below(choices: &mut Choices, limit: u64) -> i64 {
    i64::try_from(choices.below(limit)).unwrap_or_default()
}

/// The characters of all workspaces, in an order from the seed.
pub fn characters(choices: &mut Choices) -> Vec<Character> {
    let mut left: Vec<Character> =
        CHARACTERS.iter().flat_map(|(character, count)| std::iter::repeat_n(*character, *count)).collect();
    let mut drawn = Vec::new();
    while !left.is_empty() {
        let at = choices.below(left.len() as u64);
        drawn.push(left.swap_remove(usize::try_from(at).unwrap_or_default()));
    }
    drawn
}

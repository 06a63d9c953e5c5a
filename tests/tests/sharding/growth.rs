//! The growth of a set of databases under a skewed, seeded workload, with the plan's two rules for placing and moving.

const GB: u64 = 1_000_000_000;
/// Above this size, a shard moves workspaces away.
const HIGH_BYTES: u64 = 7 * GB;
/// A shard moves workspaces away down to this size, and accepts others up to this size.
const LOW_BYTES: u64 = 5 * GB;
/// Workspaces move to a shard below this size, or to a new one.
const ROOMY_BYTES: u64 = 2 * GB;
/// D1's limit.
const FULL_BYTES: u64 = 10 * GB;
const DAYS: u32 = 365;
/// New workspaces per day.
const ARRIVALS: u32 = 20;
/// The size of a conversation of some forty lines; `size.rs` measures 2,161 bytes for four.
const CONVERSATION_BYTES: u64 = 6_000;

#[derive(Debug, Clone, PartialEq)]
struct Workspace {
    shard: usize,
    bytes: u64,
    daily_bytes: u64,
}

#[derive(Debug, Default, PartialEq)]
struct Fleet {
    workspaces: Vec<Workspace>,
    shards: usize,
    moves: usize,
    moved_bytes: u64,
}

#[test]
fn a_skewed_year_stays_within_every_database() {
    let fleet = year(7, true);
    assert_eq!(fleet, year(7, false), "the simulation is deterministic");
    assert!(fleet.moves < fleet.workspaces.len() / 4, "{} moves", fleet.moves);
    for shard in 0..fleet.shards {
        let held = fleet.held(shard);
        let alone =
            fleet.workspaces.iter().filter(|one| one.shard == shard && one.bytes > GB / 100).count() == 1;
        assert!(held <= HIGH_BYTES || alone, "shard {shard} holds {held} bytes of several workspaces");
    }
}

fn year(seed: u64, loud: bool) -> Fleet {
    let mut random = Random(seed);
    let mut fleet = Fleet { shards: 1, ..Fleet::default() };
    for day in 1..=DAYS {
        for _ in 0..ARRIVALS {
            // Pareto: most workspaces have a handful of conversations per day, one in a thousand has thousands.
            let conversations = (5.0 * random.unit().powf(-1.0 / 1.1)).min(20_000.0) as u64;
            let shard = fleet.emptiest();
            fleet.workspaces.push(Workspace {
                shard,
                bytes: 0,
                daily_bytes: conversations * CONVERSATION_BYTES,
            });
        }
        for one in &mut fleet.workspaces {
            one.bytes += one.daily_bytes;
        }
        fleet.level();
        if loud && day % 73 == 0 {
            fleet.print(day);
        }
    }
    fleet
}

impl Fleet {
    fn held(&self, shard: usize) -> u64 {
        self.workspaces.iter().filter(|one| one.shard == shard).map(|one| one.bytes).sum()
    }

    fn emptiest(&self) -> usize {
        let mut held = vec![0; self.shards];
        self.workspaces.iter().for_each(|one| held[one.shard] += one.bytes);
        (0..self.shards).min_by_key(|shard| held[*shard]).unwrap()
    }

    /// Daily: a shard above the limit moves its largest workspaces to the emptiest shard or, if that one
    /// has no room, to a new one.
    fn level(&mut self) {
        for shard in 0..self.shards {
            if self.held(shard) <= HIGH_BYTES {
                continue;
            }
            let mut target = self.emptiest();
            if self.held(target) > ROOMY_BYTES {
                target = self.shards;
                self.shards += 1;
            }
            let mut order: Vec<usize> =
                (0..self.workspaces.len()).filter(|at| self.workspaces[*at].shard == shard).collect();
            order.sort_by_key(|at| std::cmp::Reverse(self.workspaces[*at].bytes));
            let (mut left, mut given) = (self.held(shard), self.held(target));
            // A workspace above the limit stays; the others move away.
            for at in order {
                let bytes = self.workspaces[at].bytes;
                if left > LOW_BYTES && given + bytes <= LOW_BYTES && bytes > 0 {
                    self.workspaces[at].shard = target;
                    (left, given) = (left - bytes, given + bytes);
                    self.moves += 1;
                    self.moved_bytes += bytes;
                }
            }
        }
    }

    fn print(&self, day: u32) {
        let held: Vec<u64> = (0..self.shards).map(|shard| self.held(shard)).collect();
        let total: u64 = held.iter().sum();
        let gb = |bytes: u64| bytes as f64 / GB as f64;
        println!(
            "day {day}: {} workspaces, {:.1} GB on {} databases; the fullest {:.1} GB, the mean {:.1}; the largest workspace \
             {:.1} GB; {} moves of {:.1} GB so far; {} workspaces too large for any",
            self.workspaces.len(),
            gb(total),
            self.shards,
            gb(*held.iter().max().unwrap()),
            gb(total / self.shards as u64),
            gb(self.workspaces.iter().map(|one| one.bytes).max().unwrap()),
            self.moves,
            gb(self.moved_bytes),
            self.workspaces.iter().filter(|one| one.bytes > FULL_BYTES).count()
        );
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    /// A number in (0, 1].
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (((z ^ (z >> 31)) >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}

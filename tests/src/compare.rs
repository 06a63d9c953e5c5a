//! Two loads side by side, in short turns, so that the noise of the machine falls on both.
use crate::load::{self, Load, Measured};

/// Turns each side gets in one comparison.
const TURNS: usize = 15;

/// What two loads came to.
pub struct Comparison {
    /// One side.
    pub ours: Side,
    /// The other.
    pub other: Side,
    /// Our rate by the other's, the median over pairs of neighbouring turns.
    pub ratio: f64,
}

/// One side of a comparison: the median turn, and what all turns cost.
pub struct Side {
    /// Answers per second.
    pub rate: f64,
    /// Microseconds that half of the answers kept to.
    pub p50_us: u32,
    /// Microseconds that all but a hundredth of the answers kept to.
    pub p99_us: u32,
    /// Microseconds of processor time that the server took for one answer.
    pub cpu_us: f64,
}

/// Both loads in turns, A B B A; the first turn of each only warms up.
pub fn compare(ours: &Load, our_pid: u32, other: &Load, other_pid: u32) -> Comparison {
    let measure = |load: &Load, pid: u32| {
        let before = cpu_s(pid);
        let measured = load::run(load);
        (measured, cpu_s(pid) - before)
    };
    let _ = (measure(ours, our_pid), measure(other, other_pid));
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        if turn % 2 == 0 {
            one.push(measure(ours, our_pid));
            two.push(measure(other, other_pid));
        } else {
            two.push(measure(other, other_pid));
            one.push(measure(ours, our_pid));
        }
    }
    let mut ratios: Vec<f64> = one.iter().zip(&two).map(|(one, two)| one.0.rate() / two.0.rate()).collect();
    ratios.sort_by(f64::total_cmp);
    Comparison { ours: Side::of(one), other: Side::of(two), ratio: ratios[TURNS / 2] }
}

impl Comparison {
    /// What stands behind the ratio.
    pub fn print(&self) {
        for (name, side) in [("ours", &self.ours), ("bare", &self.other)] {
            println!(
                "  {name}: p50 {} us, p99 {} us, server CPU {:.1} us/req",
                side.p50_us, side.p99_us, side.cpu_us
            );
        }
    }
}

impl Side {
    fn of(mut turns: Vec<(Measured, f64)>) -> Self {
        let answers: usize = turns.iter().map(|(measured, _)| measured.answers).sum();
        let cpu_s: f64 = turns.iter().map(|(_, cpu_s)| cpu_s).sum();
        turns.sort_by(|(one, _), (other, _)| one.rate().total_cmp(&other.rate()));
        let middle = &turns[turns.len() / 2].0;
        Self {
            rate: middle.rate(),
            p50_us: middle.latency_us(0.5),
            p99_us: middle.latency_us(0.99),
            cpu_us: cpu_s * 1e6 / answers.max(1) as f64,
        }
    }
}

/// Processor time a process has used (Linux; elsewhere nothing is known).
pub fn cpu_s(pid: u32) -> f64 {
    const TICKS_PER_S: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS_PER_S
}

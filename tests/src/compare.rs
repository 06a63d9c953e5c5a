//! Runs two loads in short alternating turns, so that noise on the machine affects both equally.
use crate::load::{self, Load, Measured};

/// Turns of each side in one comparison.
const TURNS: usize = 15;

/// The result of a comparison.
pub struct Comparison {
    /// Our side.
    pub ours: Side,
    /// The other side.
    pub other: Side,
    /// Our rate divided by the other's, the median over pairs of neighbouring turns.
    pub ratio: f64,
}

/// The result of one side: the median turn, and the cost of all turns.
pub struct Side {
    /// Responses per second.
    pub rate: f64,
    /// Median latency in microseconds.
    pub p50_us: u32,
    /// 99th percentile of the latency in microseconds.
    pub p99_us: u32,
    /// The server's CPU time per response, in microseconds.
    pub cpu_us: f64,
}

/// Runs both loads in the order A B B A; the first turn of each is a warm-up.
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
    /// Prints the details behind the ratio.
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

/// CPU time used by a process (Linux only).
pub fn cpu_s(pid: u32) -> f64 {
    const TICKS_PER_S: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS_PER_S
}

/// Memory of a process that is not swapped out, in KB (Linux only).
pub fn memory_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches("kB").trim().parse().unwrap_or(0)
}

//! What the line does to the caller's audio, and how the caller speaks, decided by the run's seed.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::limits;
use crate::speech::audio::FRAME_MS;
use crate::speech::g711;

/// The receiver waits this long for a delayed packet; then the packet counts as lost.
const JITTER_BUFFER_MS: u64 = 60;

/// The conditions of a voice run; without effect on a chat. All fields are optional.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "LineConditions")]
pub struct Conditions {
    /// How many of the caller's packets of 20 ms are lost, in percent.
    #[schemars(range(min = 0, max = 100))]
    pub packet_loss: i64,
    /// The longest delay of a packet, in milliseconds. Packets that are more than 60 ms late are lost.
    #[schemars(range(min = 0, max = limits::JITTER_MS_MAX))]
    pub jitter_ms: i64,
    /// The level of the noise around the caller, in dB of full scale; null for none.
    #[schemars(range(min = limits::NOISE_DB_MIN, max = 0))]
    pub noise_db: Option<i64>,
    /// How many of the assistant's lines the caller talks over, in percent.
    #[schemars(range(min = 0, max = 100))]
    pub talk_over: i64,
    /// Whether the caller pauses after every few words.
    pub slow_talker: bool,
}

/// What a number is drawn for: each has numbers of its own.
#[derive(Clone, Copy)]
enum Draw {
    Loss,
    Delay,
    Noise,
    TalkOver,
    TalkOverAt,
}

/// The conditions of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SeededConditions {
    pub(super) seed: u64,
    pub(super) conditions: Conditions,
}

impl SeededConditions {
    /// A frame of the caller's as it arrives. It depends on nothing but the time, so that a frame is the same whenever it
    /// is computed.
    pub(super) fn carried(&self, at_ms: i64, frame: &[i16]) -> Vec<i16> {
        if self.loses(at_ms) {
            return vec![0; frame.len()];
        }
        let number = packet(at_ms);
        let Some(level) = self.conditions.noise_db.map(amplitude) else {
            return telephone(frame);
        };
        let noisy: Vec<i16> = (0_u64..)
            .zip(frame)
            .map(|(place, sample)| {
                let drawn = self.draw(Draw::Noise, number << 16 | place) % 65_536;
                let noise = (drawn as i64 - 32_768) * level / 32_768;
                let sum = (i64::from(*sample) + noise).clamp(i64::from(i16::MIN), i64::from(i16::MAX));
                i16::try_from(sum).unwrap_or(0)
            })
            .collect();
        telephone(&noisy)
    }

    /// Whether the packet of this time does not arrive, or too late.
    pub(super) fn loses(&self, at_ms: i64) -> bool {
        self.is_lost(packet(at_ms))
    }

    /// Whether there is something to hear where nobody speaks.
    pub(super) const fn has_noise(&self) -> bool {
        self.conditions.noise_db.is_some()
    }

    /// When the caller begins to talk over the assistant's line of this number, in thousandths of the line; `None` if the
    /// caller lets it end.
    pub(super) fn talks_over(&self, line: u64) -> Option<i64> {
        let talks = self.percent(Draw::TalkOver, line) < self.conditions.talk_over;
        talks.then(|| 200 + (self.draw(Draw::TalkOverAt, line) % 500) as i64)
    }

    fn is_lost(&self, number: u64) -> bool {
        let delay_ms = self.draw(Draw::Delay, number) % (self.conditions.jitter_ms.unsigned_abs() + 1);
        delay_ms > JITTER_BUFFER_MS || self.percent(Draw::Loss, number) < self.conditions.packet_loss
    }

    fn percent(&self, what: Draw, number: u64) -> i64 {
        (self.draw(what, number) % 100) as i64
    }

    fn draw(&self, what: Draw, number: u64) -> u64 {
        mixed(mixed(mixed(self.seed) ^ what as u64) ^ number)
    }
}

/// The number of the packet of a time.
const fn packet(at_ms: i64) -> u64 {
    (at_ms / FRAME_MS).unsigned_abs()
}

/// Audio as a telephone line carries it.
pub(super) fn telephone(samples: &[i16]) -> Vec<i16> {
    g711::decode(&g711::encode(samples))
}

/// The amplitude of a level in dB of full scale, in integers: the same on every host.
fn amplitude(db: i64) -> i64 {
    // 10^(-1/20) for each dB.
    (db..0).fold(32_767_000_000, |level: i64, _| level * 891_251 / 1_000_000) / 1_000_000
}

/// SplitMix64: one number from another.
const fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_lose_everything_or_nothing() {
        let frame = [1_000; 160];
        let line = |conditions| SeededConditions { seed: 7, conditions };
        let clear = line(Conditions::default());
        let dead = line(Conditions { packet_loss: 100, ..Conditions::default() });
        for at_ms in (0..20_000).step_by(20) {
            assert_eq!(clear.carried(at_ms, &frame), telephone(&frame));
            assert_eq!(dead.carried(at_ms, &frame), [0; 160]);
        }
        assert_eq!(clear.talks_over(1), None);
        let rude = line(Conditions { talk_over: 100, ..Conditions::default() });
        assert!((0..100).all(|n| rude.talks_over(n).is_some_and(|at| (200..700).contains(&at))));
    }

    #[test]
    fn a_share_is_lost() {
        let conditions = Conditions { packet_loss: 20, jitter_ms: 60, ..Conditions::default() };
        let line = SeededConditions { seed: 7, conditions };
        let lost = (0..10_000).filter(|number| line.is_lost(*number)).count();
        assert!((1_900..2_100).contains(&lost), "{lost}");
    }

    #[test]
    fn a_level_is_an_amplitude() {
        assert_eq!(amplitude(0), 32_767);
        assert!((3_270..3_280).contains(&amplitude(-20)), "{}", amplitude(-20));
        assert!((30..35).contains(&amplitude(-60)), "{}", amplitude(-60));
    }
}

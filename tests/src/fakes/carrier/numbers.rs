//! Behaviours selected by the called number, and the formats of call ids.
use std::hash::{BuildHasher, Hasher, RandomState};

use super::wire::Behaviour;

/// Behaviours by the last digits of the called number; orders to other numbers are accepted.
pub const BEHAVIOURS: &[(&str, Behaviour)] = &[
    ("0202", Behaviour::Late),
    ("0400", Behaviour::BadNumber),
    ("0401", Behaviour::Unauthorized),
    ("0403", Behaviour::NotOurs),
    ("0429", Behaviour::TooMany),
    ("0500", Behaviour::Broken),
    ("0201", Behaviour::NoId),
    ("0408", Behaviour::Hang),
    ("0444", Behaviour::Cut),
];

/// The behaviour for a called number.
pub fn behaviour(number: &str) -> Behaviour {
    let ends = |(ending, _): &&(&str, Behaviour)| number.ends_with(ending);
    BEHAVIOURS.iter().find(ends).map_or(Behaviour::Take, |(_, behaviour)| *behaviour)
}

impl Behaviour {
    /// Whether the call may exist and ring although the response did not confirm it.
    pub fn has_the_call(self) -> bool {
        !matches!(self, Self::BadNumber | Self::NotOurs | Self::Unauthorized | Self::TooMany)
    }
}

/// New ids for a call in the carrier's format: `(carrier_call_id, other_id)`.
///
/// Plivo's request and call have the same id, as in every published sample.
pub(super) fn ids(provider: &str) -> (String, String) {
    let (a, b) = (hex(), hex());
    match provider {
        "twilio" => (format!("CA{a}"), format!("MZ{b}")),
        "telnyx" => (format!("v3:{a}{}", &hex()[..10]), uuid(&b)),
        "plivo" => (uuid(&a), uuid(&a)),
        "vonage" => (uuid(&a), format!("CON-{}", uuid(&b))),
        _ => (a, b),
    }
}

/// 32 unique hexadecimal digits.
fn hex() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

/// Formats digits as a UUID of version 4 (RFC 9562).
fn uuid(hex: &str) -> String {
    format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_called_number_selects_the_behaviour() {
        assert_eq!(behaviour("+14155550400"), Behaviour::BadNumber);
        assert_eq!(behaviour("+14155550444"), Behaviour::Cut);
        assert_eq!(behaviour("+14155554000"), Behaviour::Take);
    }

    #[test]
    fn ids_have_the_carriers_format() {
        let (sid, _) = ids("twilio");
        assert_eq!((&sid[..2], sid.len()), ("CA", 34));
        let (uuid, conversation) = ids("vonage");
        let dashes: Vec<usize> = uuid.match_indices('-').map(|(at, _)| at).collect();
        assert_eq!((uuid.len(), dashes), (36, vec![8, 13, 18, 23]));
        assert_eq!(conversation.len(), 40);
        assert_ne!(ids("telnyx"), ids("telnyx"));
    }
}

//! Quantities in units, which are the same in others: two weeks and 14 days, an hour and 60 minutes.
use super::criterion::Want;
use super::reading::Text;
use super::values::Value;
use crate::models::rules::judge::vocabulary::is_one_of;

/// A unit: what it measures and how many of the smallest one it has. `rough`: it has more or less.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    dimension: u8,
    size: u64,
    rough: bool,
}

/// So many thousandths of a unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantity {
    amount: u64,
    unit: Unit,
}

const ONE: u64 = 1_000;

/// Names without the `s` of the plural; time in seconds, mass in milligrams, length and volume in thousandths, data in kilobytes.
const UNITS: [(&str, u8, u64, bool); 34] = [
    ("second sec s", 0, 1, false),
    ("minute min", 0, 60, false),
    ("hour hr h", 0, 3_600, false),
    ("day night", 0, 86_400, false),
    ("week wk", 0, 604_800, false),
    ("fortnight", 0, 1_209_600, false),
    ("month", 0, 2_629_800, true),
    ("year yr", 0, 31_557_600, true),
    ("decade", 0, 315_576_000, true),
    ("mg milligram", 1, 1, false),
    ("g gram gramme", 1, 1_000, false),
    ("kg kilo kilogram", 1, 1_000_000, false),
    ("t ton tonne", 1, 1_000_000_000, true),
    ("lb", 1, 453_600, true),
    ("oz ounce", 1, 28_350, true),
    ("stone", 1, 6_350_000, true),
    ("mm millimetre millimeter", 2, 1, false),
    ("cm centimetre centimeter", 2, 10, false),
    ("m metre meter", 2, 1_000, false),
    ("km kilometre kilometer", 2, 1_000_000, false),
    ("mile", 2, 1_609_000, true),
    ("yard", 2, 914, true),
    ("foot feet ft", 2, 305, true),
    ("inch inche", 2, 25, true),
    ("ml millilitre milliliter", 3, 1, false),
    ("cl centilitre centiliter", 3, 10, false),
    ("dl decilitre deciliter", 3, 100, false),
    ("l litre liter", 3, 1_000, false),
    ("pint", 3, 520, true),
    ("gallon", 3, 4_100, true),
    ("kb kilobyte", 4, 1, true),
    ("mb megabyte", 4, 1_000, true),
    ("gb gig gigabyte", 4, 1_000_000, true),
    ("tb terabyte", 4, 1_000_000_000, true),
];

fn unit(word: &str) -> Option<Unit> {
    let word = word.strip_suffix("'s").unwrap_or(word);
    let single = word.strip_suffix('s').filter(|single| !single.is_empty()).unwrap_or(word);
    let row = UNITS.iter().find(|(names, ..)| is_one_of(single, names))?;
    Some(Unit { dimension: row.1, size: row.2, rough: row.3 })
}

/// How much is wanted of which unit, if the number at this place counts one: "14 days", "14 working days".
pub(super) fn wanted(wants: &[Want], at: usize) -> Option<Quantity> {
    let amount = amount(wants.get(at)?.value()?)?;
    let unit = [1, 2].iter().find_map(|ahead| unit(wants.get(at + ahead)?.word()?))?;
    Some(Quantity { amount, unit })
}

/// In thousandths; of small numbers only.
fn amount(value: &Value) -> Option<u64> {
    let Value::Number(number) = value else { return None };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let thousandths = format!("{fraction:0<3}");
    let amount: u64 = format!("{whole}{}", thousandths.get(..3)?).parse().ok()?;
    (amount < ONE * ONE * ONE).then_some(amount)
}

impl Quantity {
    /// Whether the unit that stands there may be this quantity, in another unit or in words for its number.
    pub(super) fn may_be(self, text: &Text, at: usize) -> bool {
        if let Some(Value::Code(code)) = text.value(at) {
            return self.is_glued(code);
        }
        let Some(said) = text.word(at).and_then(unit).filter(|said| said.dimension == self.unit.dimension)
        else {
            return false;
        };
        let before = |back: usize| at.checked_sub(back);
        let number = [1, 2].iter().find_map(|back| amount(text.value(before(*back)?)?));
        let word = |back: usize| before(back).and_then(|place| text.word(place)).unwrap_or_default();
        let wanted = u128::from(self.amount) * u128::from(self.unit.size);
        // In thousandths of what is wanted.
        let share = if said.size != self.unit.size && (self.unit.rough || said.rough) { 120 } else { 1 };
        let is = |amount: u64| {
            let amount = u128::from(amount) * u128::from(said.size);
            amount.abs_diff(wanted) * u128::from(ONE) <= wanted * share
        };
        if let Some(amount) = number {
            return is(amount) || self.more(text, at, said).is_some_and(|more| is(amount + more));
        }
        let near = || (1..=4).map(word);
        if near().any(|word| is_one_of(word, "few several some many multiple")) {
            return true;
        }
        let shares: &[u64] = if near().any(|word| word == "half") {
            &[500]
        } else if near().any(|word| matches!(word, "quarter" | "quarters")) {
            &[250, 750]
        } else if near().any(|word| matches!(word, "couple" | "pair" | "both")) {
            &[2_000]
        } else if is_one_of(word(1), "a an per another each every single whole full") {
            &[ONE]
        } else {
            return false;
        };
        shares
            .iter()
            .any(|amount| is(*amount) || self.more(text, at, said).is_some_and(|more| is(amount + more)))
    }

    /// `120s`
    fn is_glued(self, code: &str) -> bool {
        let name = code.trim_start_matches(|char: char| char.is_ascii_digit());
        let number = Value::Number(code.strip_suffix(name).unwrap_or_default().to_owned());
        unit(name).filter(|said| said.dimension == self.unit.dimension).zip(amount(&number)).is_some_and(
            |(said, amount)| {
                u128::from(amount) * u128::from(said.size)
                    == u128::from(self.amount) * u128::from(self.unit.size)
            },
        )
    }

    /// What follows the unit: "and a half", "and 30 minutes", in this unit.
    fn more(self, text: &Text, at: usize, said: Unit) -> Option<u64> {
        let next = at + 1 + usize::from(matches!(text.word(at + 1), Some("and")));
        if let Some(rest) = text.value(next).and_then(amount) {
            // "An hour thirty"
            let smaller =
                text.word(next + 1).and_then(unit).filter(|unit| unit.dimension == self.unit.dimension);
            return (rest * smaller.map_or(60, |unit| unit.size)).checked_div(said.size);
        }
        match (text.word(next), text.word(next + 1)) {
            (Some("a"), Some("half")) | (Some("half"), _) => Some(500),
            (Some("a"), Some("quarter")) => Some(250),
            (Some("three"), Some("quarters")) => Some(750),
            _ => None,
        }
    }
}

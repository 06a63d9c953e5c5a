//! The English names of the months.

/// As they are written in dates, such as those of HTTP.
pub const MONTHS_SHORT: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const NAMES: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The number of a month, 1 to 12, by its name in small letters: whole, its first three letters, or `sept`.
pub fn month_number(word: &str) -> Option<u32> {
    let is = |name: &&str| **name == *word || (word.len() == 3 || word == "sept") && name.starts_with(word);
    (1..).zip(NAMES).find(|(_, name)| is(name)).map(|(number, _)| number)
}

/// The name of a month, 1 to 12, in small letters; empty for another number.
pub fn month_name(month: u32) -> &'static str {
    (month as usize).checked_sub(1).and_then(|at| NAMES.get(at)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_has_its_number_by_each_of_its_names() {
        for (number, (short, name)) in (1..).zip(MONTHS_SHORT.iter().zip(NAMES)) {
            assert_eq!((month_number(name), month_name(number)), (Some(number), name));
            assert_eq!(month_number(&short.to_lowercase()), Some(number));
        }
        assert_eq!(month_number("sept"), Some(9));
        for other in ["", "j", "janu", "mars", "sunday", "augu"] {
            assert_eq!(month_number(other), None, "{other}");
        }
    }
}

//! Amounts of money in English words.

/// The signs of currencies, with the names of one and several, and of their hundredths.
const CURRENCIES: [(char, [&str; 4]); 4] = [
    ('$', ["dollar", "dollars", "cent", "cents"]),
    ('€', ["euro", "euros", "cent", "cents"]),
    ('£', ["pound", "pounds", "penny", "pence"]),
    ('¥', ["yen", "yen", "", ""]),
];
const LARGE: [&str; 4] = ["thousand", "million", "billion", "trillion"];

/// The amount that a text begins with in words, and its length. Anything unusual is left to the voice.
pub(super) fn spoken(text: &str) -> Option<(String, usize)> {
    let sign = text.chars().next()?;
    let (_, [one, several, hundredth, hundredths]) = CURRENCIES.iter().find(|(known, _)| *known == sign)?;
    let number = text[sign.len_utf8()..]
        .split(|character: char| !character.is_ascii_digit() && !".,".contains(character))
        .next()?;
    let number = number.trim_end_matches(['.', ',']);
    let length = sign.len_utf8() + number.len();
    let after = &text[length..];
    // "$5k" and "$5-10" mean something else than their beginning.
    if !number.starts_with(|digit: char| digit.is_ascii_digit())
        || after.starts_with(|next: char| next.is_alphanumeric() || "-–/".contains(next))
    {
        return None;
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains(['.', ',']) {
        return None;
    }
    let large = LARGE.iter().find(|word| {
        let next = after.strip_prefix(' ').unwrap_or_default();
        next.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word))
            && !next[word.len()..].starts_with(char::is_alphanumeric)
    });
    if let Some(word) = large {
        return Some((format!("{number} {word} {several}"), length + 1 + word.len()));
    }
    let unit = if whole == "1" { one } else { several };
    let words = match fraction {
        "" | "00" => format!("{whole} {unit}"),
        _ if fraction.len() == 2 && !hundredth.is_empty() => {
            let count = fraction.trim_start_matches('0');
            let cents = if count == "1" { hundredth } else { hundredths };
            if whole == "0" {
                format!("{count} {cents}")
            } else {
                format!("{whole} {unit} and {count} {cents}")
            }
        }
        _ => format!("{number} {several}"),
    };
    Some((words, length))
}

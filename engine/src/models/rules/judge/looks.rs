//! Words that look like another one, or are spelled.
use super::reading::Text;
use crate::base::look_alikes::without_accents;

/// Whether what begins there looks like the word: with other accents, with hyphens in it, or letter by letter. `bare`: the word
/// without accents.
pub(super) fn looks_like(text: &Text, at: usize, word: &str, bare: &str) -> bool {
    let Some(first) = text.word(at) else { return false };
    if !(first.is_ascii() && word.is_ascii()) && first != word && without_accents(first) == bare {
        return true;
    }
    let mut rest = bare;
    let mut place = at;
    // At most as many parts as the word has letters, each of which takes some.
    while let Some(part) = text.word(place) {
        let Some(left) = rest.strip_prefix(part).filter(|_| !part.is_empty()) else { return false };
        if left.is_empty() {
            return place > at;
        }
        rest = left;
        let is_hyphen = text.sign(place + 1) == Some('-');
        place += 1 + usize::from(is_hyphen);
        let is_letter = || part.len() == 1 && text.word(place).is_some_and(|next| next.len() == 1);
        if !is_hyphen && !is_letter() {
            return false;
        }
    }
    false
}

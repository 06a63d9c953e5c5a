//! How people ask for something in English.
use crate::models::rules::judge::vocabulary::is_one_of;
use std::ops::Range;

use super::reading::Text;
use crate::models::rules::words::is_negation;

/// Whether a request may end there: what is asked for is complete.
pub(super) fn ends_request(text: &Text, at: usize) -> bool {
    let word = text.word(at).unwrap_or_default();
    let follows = is_one_of(word, "please again first now and so sir madam too here then on")
        || word == "for" && text.word(at + 1).is_some_and(|next| is_one_of(next, "the this your our my"));
    follows || text.sign(at).is_some_and(|sign| sign != '-') || at >= text.items.len()
}

/// Whether the sentence goes on with what was named before: "… is 17", "…: 17".
pub(super) fn tells(text: &Text, at: usize) -> bool {
    matches!(text.word(at), Some("is" | "are" | "was" | "were" | "will" | "has"))
        || text.sign(at) == Some(':')
        || text.value(at).is_some()
}

/// The words by which somebody asks for what comes after them, up to this place.
pub(super) fn request_before(text: &Text, at: usize) -> Option<()> {
    const REQUESTS: [&[&str]; 22] = [
        &["what", "is"],
        &["what's"],
        &["what", "was"],
        &["what", "are"],
        &["i", "have"],
        &["we", "have"],
        &["i", "get"],
        &["i", "take"],
        &["give", "me"],
        &["give", "us"],
        &["tell", "me"],
        &["tell", "us"],
        &["i", "need"],
        &["i'll", "need"],
        &["we", "need"],
        &["i", "want"],
        &["i'd", "like"],
        &["i", "would", "like"],
        &["spell"],
        &["provide"],
        &["confirm"],
        &["repeat"],
    ];
    let mut end = at;
    while end > 0
        && at - end < 4
        && text.word(end - 1).is_some_and(|word| is_one_of(word, "a an the your my full please"))
    {
        end -= 1;
    }
    let ends = |request: &&&[&str]| {
        let from = end.checked_sub(request.len());
        from.is_some_and(|from| {
            request.iter().enumerate().all(|(step, word)| text.word(from + step) == Some(word))
        })
    };
    let request = REQUESTS.iter().find(ends)?;
    // "I have" asks only after "can" or "may".
    let modal = end.checked_sub(request.len() + 1).and_then(|place| text.word(place)).unwrap_or_default();
    let is_verb = matches!(request, [_, "have" | "get" | "take"]);
    let is_imperative =
        matches!(request, ["spell" | "provide" | "confirm" | "repeat"] | ["give" | "tell", _]);
    let may = is_one_of(modal, "can may could might");
    let to_other = matches!(modal, "" | "you" | "please" | "and" | "to" | "now" | "just" | "then");
    (!is_verb && !is_imperative || is_verb && may || is_imperative && to_other).then_some(())
}

/// "What is my name?" asks nobody for theirs.
pub(super) fn is_own_name(text: &Text, at: usize) -> bool {
    text.word(at) == Some("name") && at.checked_sub(1).is_some_and(|before| text.word(before) == Some("my"))
}

/// Whether these words, up to what is asked for, are those of somebody who asks: no others' words, and nobody who refuses to.
pub(super) fn is_opening(text: &Text, before: Range<usize>) -> bool {
    const PARTS_MAX: usize = 24;
    before.len() <= PARTS_MAX && before.filter_map(|place| text.word(place)).all(|word| {
        is_one_of(
            word,
            "a an and all also are can can't confirm could first for full fine get give good great have hello help hi i i'd i'll              is just kindly last like may me might morning afternoon evening my need next no now of ok okay once our perfect please              problem provide repeat right sir madam so spell sure take tell thank thanks the then to too us want was we we'll well              welcome what what's will would yes you your",
        )
    })
}

/// "Who is calling?"
pub(super) fn asks_who(text: &Text, sentence: Range<usize>) -> bool {
    const PHRASES: [&[&str]; 5] = [
        &["who", "am", "i", "speaking"],
        &["who", "is", "calling"],
        &["who's", "calling"],
        &["whom", "am", "i", "speaking"],
        &["who", "is", "speaking"],
    ];
    PHRASES.iter().any(|phrase| has_phrase(text, sentence.clone(), phrase))
}

fn has_phrase(text: &Text, sentence: Range<usize>, phrase: &[&str]) -> bool {
    sentence
        .into_iter()
        .any(|at| phrase.iter().enumerate().all(|(step, word)| text.word(at + step) == Some(word)))
}

/// Whether a request is meant: no negation, no condition, nobody else's.
pub(super) fn is_plain_request(text: &Text, sentence: Range<usize>) -> bool {
    let not = |word: &str| is_negation(word) || is_one_of(word, "if unless when said told asked already");
    !sentence.into_iter().any(|at| text.word(at).is_some_and(not))
}

/// Whether a sentence may ask for something.
pub(super) fn may_request(text: &Text, sentence: Range<usize>) -> bool {
    let says = |is: &dyn Fn(&str) -> bool| sentence.clone().any(|at| text.word(at).is_some_and(is));
    let asks = |word: &str| {
        is_one_of(
            word,
            "please need want like tell give spell read provide share enter type confirm repeat could would what what's who which where how let require required missing ask know send have verify",
        )
    };
    let states = says(&|word| is_one_of(word, "is are was will has it's"));
    text.sign(sentence.end) == Some('?') || says(&asks) || says(&|word| word == "your") && !states
}

/// Whether a sentence is a question that asks for nothing in particular.
pub(super) fn is_harmless(text: &Text, sentence: Range<usize>) -> bool {
    const PHRASES: [&[&str]; 8] = [
        &["how", "can", "i", "help"],
        &["how", "may", "i", "help"],
        &["what", "can", "i", "do", "for", "you"],
        &["anything", "else"],
        &["are", "you", "there"],
        &["still", "there"],
        &["how", "are", "you"],
        &["have", "a"],
    ];
    let has_your = sentence.clone().any(|at| text.word(at) == Some("your"));
    !has_your && PHRASES.iter().any(|phrase| has_phrase(text, sentence.clone(), phrase))
}

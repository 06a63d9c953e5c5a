//! The text that parts of documents are put into. What was put before is not put again, only named: the documents repeat each
//! other, and a compressor sees no repetition that is further away than 32 KB.
use std::collections::HashMap;

/// Shortest repetition that is named. A place has about as many bytes as a shorter one once it is compressed.
const REPEATED_BYTES_MIN: usize = 200;
/// A repetition is found by so many of its bytes, of which every [`STEP`]th beginning is known.
const WINDOW: usize = 96;
const STEP: usize = 16;
const _: () = assert!(WINDOW + STEP <= REPEATED_BYTES_MIN);

/// The text so far.
#[derive(Default)]
pub(super) struct Parts {
    text: String,
    /// Where its windows are.
    windows: HashMap<[u8; WINDOW], usize>,
    /// Where the next window begins that is not known yet.
    unknown: usize,
}

/// Bytes of a part that are in the text already.
struct Repetition {
    /// Where they begin and end in the part.
    begin: usize,
    end: usize,
    /// Where they begin in the text.
    place: usize,
}

impl Parts {
    /// The text.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Puts a part as a whole, unless the text has it; returns its place, `START+BYTES`.
    pub(super) fn put(&mut self, part: &str) -> String {
        let place = self.text.find(part).unwrap_or_else(|| {
            let end = self.text.len();
            self.text.push_str(part);
            self.know();
            end
        });
        format!("{place}+{}", part.len())
    }

    /// Puts what is new in a part; returns the places that make up the whole of it, in their order.
    pub(super) fn put_new(&mut self, part: &str) -> Vec<String> {
        let mut places = Vec::new();
        let (mut at, mut new) = (0, 0);
        while let Some(window) = part.as_bytes()[at..].first_chunk::<WINDOW>() {
            let found = self.windows.get(window).map(|place| self.around(part, new, at, *place));
            let Some(repetition) = found.filter(|found| found.end - found.begin >= REPEATED_BYTES_MIN) else {
                at += 1;
                continue;
            };
            places.extend(self.append(&part[new..repetition.begin]));
            places.push(format!("{}+{}", repetition.place, repetition.end - repetition.begin));
            (at, new) = (repetition.end, repetition.end);
        }
        places.extend(self.append(&part[new..]));
        places
    }

    /// The repetition around `at`, which is at `place` in the text. It begins at `new` or later.
    fn around(&self, part: &str, new: usize, at: usize, place: usize) -> Repetition {
        let same = |(one, other): &(&u8, &u8)| one == other;
        let (before, after) = (&part.as_bytes()[new..at], &part.as_bytes()[at..]);
        let (text_before, text_after) = self.text.as_bytes().split_at(place);
        let back = before.iter().rev().zip(text_before.iter().rev()).take_while(same).count();
        let on = after.iter().zip(text_after).take_while(same).count();
        // A place is of whole characters.
        let begin = part.ceil_char_boundary(at - back);
        let end = part.floor_char_boundary(at + on);
        Repetition { begin, end, place: place + begin - at }
    }

    fn append(&mut self, new: &str) -> Option<String> {
        let place = format!("{}+{}", self.text.len(), new.len());
        self.text.push_str(new);
        self.know();
        (!new.is_empty()).then_some(place)
    }

    /// Notes the windows of what was added.
    fn know(&mut self) {
        while let Some(window) =
            self.text.as_bytes().get(self.unknown..).and_then(<[u8]>::first_chunk::<WINDOW>)
        {
            self.windows.entry(*window).or_insert(self.unknown);
            self.unknown += STEP;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str, places: &[String]) -> String {
        let place = |place: &String| {
            let (start, bytes) = place.split_once('+').unwrap();
            let start: usize = start.parse().unwrap();
            &text[start..start + bytes.parse::<usize>().unwrap()]
        };
        places.iter().map(place).collect()
    }

    #[test]
    fn what_repeats_is_put_once() {
        let long: String = (0..400).map(|n| format!("{n} é ")).collect();
        let mut parts = Parts::default();
        let first = parts.put_new(&long);
        let size = parts.as_str().len();
        let second = parts.put_new(&format!("before {long} after"));
        assert_eq!(parts.as_str().len(), size + "before  after".len());
        assert_eq!(parts.put(&long), first[0]);
        assert_eq!(read(parts.as_str(), &second), format!("before {long} after"));
    }

    proptest! {
        #[test]
        fn parts_are_read_as_they_were(picked in prop::collection::vec((0..4_usize, 0..900_usize, 0..900_usize), 1..12)) {
            let source: Vec<String> =
                (0..4).map(|seed| (0..300).map(|n| ["é", "ab", "{", "0"][(n * n + n * seed) % 4]).collect()).collect();
            let mut parts = Parts::default();
            for (from, begin, bytes) in picked {
                let text = &source[from];
                let begin = text.floor_char_boundary(begin);
                let part = &text[begin..text.floor_char_boundary(begin + bytes).max(begin)];
                let places = parts.put_new(part);
                prop_assert_eq!(read(parts.as_str(), &places), part);
            }
        }
    }
}

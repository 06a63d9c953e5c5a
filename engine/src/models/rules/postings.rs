//! Where terms occur, in little memory: one sorted list of the terms, and one list of their places.

/// Terms, and the places of each, in order.
#[derive(Debug, Clone)]
pub(super) struct Postings<P> {
    /// Each term, and where its places end; they begin where those of the term before end.
    terms: Vec<(Box<str>, u32)>,
    places: Vec<P>,
}

impl<P> Default for Postings<P> {
    fn default() -> Self {
        Self { terms: Vec::new(), places: Vec::new() }
    }
}

impl<P: Ord> Postings<P> {
    /// From each occurrence of each term.
    pub(super) fn new(mut found: Vec<(Box<str>, P)>) -> Self {
        found.sort_unstable();
        let mut terms: Vec<(Box<str>, u32)> = Vec::new();
        let mut places = Vec::with_capacity(found.len());
        for (term, place) in found {
            places.push(place);
            let end = u32::try_from(places.len()).unwrap_or(u32::MAX);
            match terms.last_mut() {
                Some((last, last_end)) if *last == term => *last_end = end,
                _ => terms.push((term, end)),
            }
        }
        terms.shrink_to_fit();
        Self { terms, places }
    }

    /// The places of a term.
    pub(super) fn of(&self, term: &str) -> &[P] {
        let Ok(at) = self.terms.binary_search_by(|(one, _)| (**one).cmp(term)) else { return &[] };
        let end = |at: usize| self.terms.get(at).map_or(0, |(_, end)| *end as usize);
        let start = at.checked_sub(1).map_or(0, end);
        self.places.get(start..end(at)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_term_has_its_places_in_order() {
        let found = [("b", 2), ("a", 1), ("c", 9), ("b", 1), ("a", 0)];
        let postings = Postings::new(found.map(|(term, place)| (term.into(), place)).to_vec());
        assert_eq!(
            (postings.of("a"), postings.of("b"), postings.of("c")),
            (&[0, 1][..], &[1, 2][..], &[9][..])
        );
        assert_eq!((postings.of("aa"), postings.of("d")), (&[][..], &[][..]));
        assert!(Postings::<u32>::new(Vec::new()).of("a").is_empty());
    }
}

//! Which place of a spoken text comes from which place of its source.

/// Pieces of the spoken text in their order, without gaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SourceMap {
    pieces: Vec<Piece>,
    spoken_len: usize,
    source_len: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    /// Where it begins in the spoken text.
    spoken: usize,
    /// The place in the source that counts as heard when this piece begins.
    begin: usize,
    /// Where its text begins in the source.
    source: usize,
    /// Where it ends in the source.
    source_end: usize,
    is_copy: bool,
}

impl SourceMap {
    /// The next piece is the same in both texts.
    pub(super) fn copied(&mut self, spoken: usize, source: usize, length: usize, after_space: bool) {
        match self.pieces.last_mut() {
            Some(last) if last.is_copy && last.source_end == source => last.source_end += length,
            _ => self.add(spoken, source, length, after_space, true),
        }
    }

    /// The next piece says in other words what `length` bytes of the source are.
    pub(super) fn said(&mut self, spoken: usize, source: usize, length: usize, after_space: bool) {
        self.add(spoken, source, length, after_space, false);
    }

    /// Both texts end.
    pub(super) const fn end(&mut self, spoken_len: usize, source_len: usize) {
        self.spoken_len = spoken_len;
        self.source_len = source_len;
    }

    pub(super) fn source_offset(&self, spoken: usize) -> usize {
        if spoken >= self.spoken_len {
            return self.source_len;
        }
        if spoken == 0 {
            return 0;
        }
        let next = self.pieces.partition_point(|piece| piece.spoken <= spoken);
        let Some(piece) = next.checked_sub(1).and_then(|place| self.pieces.get(place)) else { return 0 };
        if piece.is_copy && spoken > piece.spoken {
            piece.source + (spoken - piece.spoken)
        } else {
            piece.begin
        }
    }

    /// What was removed in front of the piece belongs to the text before it if it followed that closely (the end of an
    /// emphasis), otherwise to the piece.
    fn add(&mut self, spoken: usize, source: usize, length: usize, after_space: bool, is_copy: bool) {
        let before = self.pieces.last().map_or(0, |last| last.source_end);
        let begin = if after_space { before } else { source };
        self.pieces.push(Piece { spoken, begin, source, source_end: source + length, is_copy });
    }
}

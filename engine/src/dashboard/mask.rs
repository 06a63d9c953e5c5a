//! The proof in forms, hidden by other random bytes on each page. Responses are compressed: whoever has a browser load pages
//! with texts of theirs, and sees how long the answers are, could otherwise guess a proof that stays the same (BREACH).
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

use crate::ports::Random;

const BYTES: usize = 32;

/// What only this service can make.
pub(super) type Proof = [u8; BYTES];

/// The proof with a mask of its own: the mask, and both combined.
pub(super) fn masked(proof: &Proof, random: &dyn Random) -> String {
    let mut bytes = [0; 2 * BYTES];
    let (mask, hidden) = bytes.split_at_mut(BYTES);
    random.fill(mask);
    for ((hidden, mask), proof) in hidden.iter_mut().zip(mask.iter()).zip(proof) {
        *hidden = mask ^ proof;
    }
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Whether a text is this proof, under any mask. The comparison takes the same time for every proof.
pub(super) fn is_of(text: &str, proof: &Proof) -> bool {
    let Ok(bytes) = URL_SAFE_NO_PAD.decode(text) else { return false };
    if bytes.len() != 2 * BYTES {
        return false;
    }
    let (mask, hidden) = bytes.split_at(BYTES);
    let shown: Vec<u8> = mask.iter().zip(hidden).map(|(mask, hidden)| mask ^ hidden).collect();
    shown.ct_eq(proof).into()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::*;

    /// Each fill is other bytes.
    struct Counting(AtomicU8);

    impl Random for Counting {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill_with(|| self.0.fetch_add(7, Ordering::Relaxed));
        }
    }

    #[test]
    fn a_masked_proof_is_known_and_never_the_same() {
        let random = Counting(AtomicU8::new(3));
        let proof: Proof = std::array::from_fn(|at| at as u8);
        let pages: Vec<String> = (0..4).map(|_| masked(&proof, &random)).collect();
        for (at, page) in pages.iter().enumerate() {
            assert!(is_of(page, &proof));
            assert!(!pages[..at].contains(page));
            let mut other = proof;
            other[31] ^= 1;
            assert!(!is_of(page, &other));
            assert!(!is_of(&page[1..], &proof) && !is_of(&format!("{page}AA"), &proof));
        }
        for bad in ["", "nonsense", &"A".repeat(86), &URL_SAFE_NO_PAD.encode(proof)] {
            assert!(!is_of(bad, &proof), "{bad}");
        }
    }
}

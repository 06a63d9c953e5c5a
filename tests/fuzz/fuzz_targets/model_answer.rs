//! `CompletionReader` gives the same completion, or the same error, however the bytes are divided. The first byte selects the
//! size of the pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidetone_engine::base::limits::{MODEL_CALLS_MAX, MODEL_TEXT_BYTES_MAX};
use sidetone_engine::models::openai::completion::{Completion, CompletionError, CompletionReader, Progress};

fuzz_target!(|bytes: &[u8]| {
    let Some((size, body)) = bytes.split_first() else {
        return;
    };
    let whole = read([body].into_iter());
    assert_eq!(read(body.chunks(usize::from(*size).max(1))), whole);
    assert_eq!(read(body.chunks(1)), whole);
    if let Ok(answer) = whole {
        assert!(answer.text.len() <= MODEL_TEXT_BYTES_MAX);
        assert!(answer.calls.len() <= MODEL_CALLS_MAX);
        assert!(answer.calls.iter().all(|call| !call.name.is_empty()));
    }
});

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Result<Completion, CompletionError> {
    let mut reader = CompletionReader::default();
    for piece in pieces {
        if reader.push(piece)? == Progress::Complete {
            break;
        }
    }
    reader.finish()
}

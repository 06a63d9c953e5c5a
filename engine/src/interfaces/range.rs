//! `Range`, `If-Range` and `If-None-Match` (RFC 9110, 13.1.2, 13.1.5 and 14.2): which bytes of a representation a GET asks
//! for.
use http::{HeaderMap, Method, header};

use crate::ports::blobs::ByteRange;

/// The part of a representation to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// All of it: 200.
    Whole,
    /// One part of it: 206.
    Part(ByteRange),
    /// Not satisfiable: 416.
    Nothing,
    /// The client has it already: 304.
    Unchanged,
}

/// Reads the headers. Everything except a single range of bytes is ignored, as the standard allows: another unit,
/// several ranges (which could exceed the blob in total), a malformed range, a range of a HEAD request. A range of
/// another version than `etag`, the whole field value with its quotes, is ignored too.
pub fn wanted(method: &Method, headers: &HeaderMap, size: u64, etag: &str) -> Wanted {
    if has_already(headers, etag) {
        return Wanted::Unchanged;
    }
    let Some(range) = headers.get(header::RANGE).filter(|_| *method == Method::GET) else {
        return Wanted::Whole;
    };
    // A date never matches, because there is no Last-Modified. A weak validator never matches, by the strong
    // comparison.
    if headers.get(header::IF_RANGE).is_some_and(|state| state.as_bytes() != etag.as_bytes()) {
        return Wanted::Whole;
    }
    range.to_str().ok().and_then(single).map_or(Wanted::Whole, |asked| asked.of(size))
}

/// Whether the client names this version in `If-None-Match`, by the weak comparison, or any version with `*`.
pub(super) fn has_already(headers: &HeaderMap, etag: &str) -> bool {
    headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        // A comma within another service's tag splits it in two, neither of which can be one of ours.
        value.split(',').map(str::trim).any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == etag)
    })
}

/// One `ranges-specifier` of bytes, before the size of the blob is known.
#[derive(Debug, Clone, Copy)]
enum Asked {
    /// `first-last` or `first-`.
    From { first: u64, last: Option<u64> },
    /// `-bytes`: the end.
    Suffix { bytes: u64 },
}

impl Asked {
    fn of(self, size: u64) -> Wanted {
        let first = match self {
            Self::From { first, .. } => first,
            Self::Suffix { bytes: 0 } => return Wanted::Nothing,
            Self::Suffix { bytes } => size.saturating_sub(bytes),
        };
        if first >= size {
            return Wanted::Nothing;
        }
        let last = match self {
            Self::From { last: Some(last), .. } => last.min(size - 1),
            _ => size - 1,
        };
        Wanted::Part(ByteRange { first, bytes: last - first + 1 })
    }
}

fn single(text: &str) -> Option<Asked> {
    let (unit, set) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    // Lists may have empty members (RFC 9110, 5.6.1).
    let mut members = set.split(',').map(str::trim).filter(|member| !member.is_empty());
    let (Some(range), None) = (members.next(), members.next()) else { return None };
    let (first, last) = range.split_once('-')?;
    match (first, last) {
        ("", bytes) => Some(Asked::Suffix { bytes: position(bytes)? }),
        (first, "") => Some(Asked::From { first: position(first)?, last: None }),
        (first, last) => {
            let (first, last) = (position(first)?, position(last)?);
            (first <= last).then_some(Asked::From { first, last: Some(last) })
        }
    }
}

/// Parses digits; a number out of range becomes the largest one.
fn position(digits: &str) -> Option<u64> {
    let are_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    are_digits.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const SIZE: u64 = 1_000;

    fn part(first: u64, bytes: u64) -> Wanted {
        Wanted::Part(ByteRange { first, bytes })
    }

    fn asked(method: Method, range: &str, if_range: Option<&str>) -> Wanted {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, range.parse().unwrap());
        if let Some(state) = if_range {
            headers.insert(header::IF_RANGE, state.parse().unwrap());
        }
        wanted(&method, &headers, SIZE, "\"abc\"")
    }

    #[test]
    fn ranges() {
        let (whole, nothing) = (Wanted::Whole, Wanted::Nothing);
        for (range, expected) in [
            ("bytes=0-0", part(0, 1)),
            ("bytes=0-499", part(0, 500)),
            ("bytes=500-", part(500, 500)),
            ("bytes=999-", part(999, 1)),
            ("bytes=-1", part(999, 1)),
            ("bytes=-1000", part(0, 1_000)),
            ("bytes=-5000", part(0, 1_000)),
            ("bytes=900-5000", part(900, 100)),
            ("bytes=0-99999999999999999999999", part(0, 1_000)),
            ("bytes=-99999999999999999999999", part(0, 1_000)),
            ("Bytes=0-1", part(0, 2)),
            ("bytes= 0-1 ", part(0, 2)),
            ("bytes=,0-1,", part(0, 2)),
            ("bytes=1000-", nothing),
            ("bytes=1000-2000", nothing),
            ("bytes=99999999999999999999999-", nothing),
            ("bytes=-0", nothing),
            ("bytes=5-2", whole),
            ("bytes=0-1,5-6", whole),
            ("bytes=0-1, bytes=5-6", whole),
            ("bytes=", whole),
            ("bytes=,", whole),
            ("bytes=-", whole),
            ("bytes", whole),
            ("bytes 0-1", whole),
            ("bytes=a-b", whole),
            ("bytes=+1-2", whole),
            ("bytes=--1", whole),
            ("bytes=0x1-2", whole),
            ("bytes=1 - 2", whole),
            ("lines=0-1", whole),
            ("", whole),
        ] {
            assert_eq!(asked(Method::GET, range, None), expected, "{range:?}");
        }
        assert_eq!(asked(Method::HEAD, "bytes=0-1", None), whole);
        assert_eq!(wanted(&Method::GET, &HeaderMap::new(), SIZE, "\"abc\""), whole);
    }

    #[test]
    fn a_version_that_the_client_has_is_not_sent_again() {
        let asked = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, value.parse().unwrap());
            headers.insert(header::RANGE, HeaderValue::from_static("bytes=0-1"));
            wanted(&Method::GET, &headers, SIZE, "\"abc\"")
        };
        for same in ["\"abc\"", "W/\"abc\"", "*", "\"a\", \"abc\""] {
            assert_eq!(asked(same), Wanted::Unchanged, "{same}");
        }
        for other in ["\"abd\"", "abc", "", "\"a,b\""] {
            assert_eq!(asked(other), part(0, 2), "{other}");
        }
    }

    #[test]
    fn no_range_of_an_empty_blob_is_satisfiable() {
        assert_eq!(single("bytes=0-").unwrap().of(0), Wanted::Nothing);
        assert_eq!(single("bytes=-1").unwrap().of(0), Wanted::Nothing);
    }

    #[test]
    fn a_range_of_another_version_is_ignored() {
        assert_eq!(asked(Method::GET, "bytes=0-1", Some("\"abc\"")), part(0, 2));
        for other in ["\"abd\"", "W/\"abc\"", "abc", "", "Wed, 21 Oct 2026 07:28:00 GMT", "\"abc\", \"abd\""]
        {
            assert_eq!(asked(Method::GET, "bytes=0-1", Some(other)), Wanted::Whole, "{other}");
        }
    }
}

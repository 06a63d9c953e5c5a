//! Pages, their styles and scripts are compressed: a page of 200 calls has 150 KB, more than a browser gets in a round trip
//! or two. Nothing else is: JSON has an ETag of its bytes, and audio does not shrink. A page with a weak ETag is the same for
//! everybody, and is compressed once.
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, Response, header};
use sidetone_engine::engine::BodyMemory;

/// What is shorter fits into a packet anyway.
const BYTES_MIN: usize = 1_400;
/// The media types that are compressed.
const TEXTS: &[&str] = &["text/html", "text/css", "text/javascript", "image/svg+xml"];

/// Whether whoever asks takes gzip. Another site's page is answered without it: it could have a browser load pages with
/// its own text in their address, and learn from their sizes what else is in them.
pub fn is_taken(headers: &HeaderMap) -> bool {
    let listed = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let takes = |entry: &str| {
        let (name, weight) = entry.split_once(';').unwrap_or((entry, ""));
        let never =
            weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok()) == Some(0.0);
        name.trim().eq_ignore_ascii_case("gzip") && !never
    };
    let from = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    listed.flat_map(|value| value.split(',')).any(takes)
        && matches!(from, None | Some(b"same-origin" | b"none"))
}

/// The response, compressed if it is a text of that kind.
pub fn compressed(response: Response<Bytes>) -> Response<Bytes> {
    let headers = response.headers();
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_text = TEXTS.iter().any(|text| kind.split(';').next() == Some(*text));
    let etag = headers.get(header::ETAG);
    let is_exact = etag.is_some_and(|etag| !etag.as_bytes().starts_with(b"W/"));
    let is_whole = [header::CONTENT_ENCODING, header::CONTENT_RANGE, header::CONTENT_LENGTH]
        .iter()
        .all(|name| !headers.contains_key(name));
    if response.body().len() < BYTES_MIN || !is_text || !is_whole || is_exact {
        return response;
    }
    let etag = etag.cloned();
    let (mut head, body) = response.into_parts();
    let memory = head.extensions.remove::<BodyMemory>();
    let small = match etag {
        Some(etag) => kept(&etag, &body),
        // Level 1: it takes less than a millisecond for a large page, and higher levels save little.
        None => gzip(&body, Compression::fast()),
    };
    let Some(small) = small else { return Response::from_parts(head, body) };
    head.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    // The smaller body holds the memory of the larger one.
    Response::from_parts(head, memory.map_or(small.clone(), |memory| memory.hold(small)))
}

/// The documents of the process, compressed; the engine has one page of this kind.
static KEPT: Mutex<Vec<(HeaderValue, Bytes)>> = Mutex::new(Vec::new());
/// How many are kept: a process that runs several services has several.
const KEPT_MAX: usize = 8;

/// A document with this ETag, compressed once.
fn kept(etag: &HeaderValue, body: &Bytes) -> Option<Bytes> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, small)) = kept.iter().find(|(known, _)| known == etag) {
        return Some(small.clone());
    }
    let small = gzip(body, Compression::best())?;
    if kept.len() >= KEPT_MAX {
        kept.remove(0);
    }
    kept.push((etag.clone(), small.clone()));
    Some(small)
}

/// Writing to memory does not fail.
fn gzip(body: &Bytes, level: Compression) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), level);
    encoder.write_all(body).and_then(|()| encoder.finish()).ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn response(kind: &str, body: &str) -> Response<Bytes> {
        Response::builder().header("content-type", kind).body(Bytes::from(body.to_owned())).unwrap()
    }

    #[test]
    fn pages_are_compressed_and_nothing_else() {
        let page = "<p>Front desk</p>".repeat(1_000);
        let small = compressed(response("text/html; charset=utf-8", &page));
        assert_eq!(small.headers()["content-encoding"], "gzip");
        assert_eq!(small.headers()["vary"], "accept-encoding");
        assert!(small.body().len() < page.len() / 10);
        let mut read = String::new();
        flate2::read::GzDecoder::new(&small.body()[..]).read_to_string(&mut read).unwrap();
        assert_eq!(read, page);
        for whole in [
            response("application/json", &page),
            response("text/event-stream", &page),
            response("audio/wav", &page),
            response("text/html", "<p>short</p>"),
        ] {
            assert_eq!(compressed(whole.clone()).body(), whole.body(), "{whole:?}");
        }
    }

    #[test]
    fn a_document_for_everybody_is_compressed_once() {
        let page = "<p>Operations</p>".repeat(1_000);
        let tagged = |etag: &str| {
            let mut response = response("text/html", &page);
            response.headers_mut().insert("etag", etag.parse().unwrap());
            compressed(response)
        };
        let (first, second) = (tagged("W/\"docs\""), tagged("W/\"docs\""));
        assert_eq!(first.headers()["content-encoding"], "gzip");
        assert_eq!(first.body().as_ptr(), second.body().as_ptr(), "the same bytes");
        assert_ne!(tagged("W/\"other\"").body().as_ptr(), first.body().as_ptr());
        assert!(tagged("\"exact\"").headers().get("content-encoding").is_none());
    }

    #[test]
    fn whoever_takes_gzip_is_sent_it_unless_another_site_asks() {
        let asks = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)));
            is_taken(&pairs.collect())
        };
        assert!(asks(&[("accept-encoding", "br, GZIP;q=0.8")]));
        assert!(asks(&[("accept-encoding", "gzip"), ("sec-fetch-site", "same-origin")]));
        for headers in [
            &[][..],
            &[("accept-encoding", "br")],
            &[("accept-encoding", "gzip;q=0")],
            &[("accept-encoding", "gzip"), ("sec-fetch-site", "cross-site")],
            &[("accept-encoding", "gzip"), ("sec-fetch-site", "same-site")],
        ] {
            assert!(!asks(headers), "{headers:?}");
        }
    }
}

//! The files that pages load. Their address changes with them, so browsers keep them for ever.
use bytes::Bytes;
use http::{HeaderValue, Response, header};

use super::assets;
use crate::base::error::{Code, Error};

/// The address below which they are.
pub(super) const PATH: &str = "/dashboard/assets/";

/// The file at `{hash}/{name}`.
pub(super) fn answer(path: &str) -> Result<Response<Bytes>, Error> {
    let (hash, name) = path.split_once('/').unwrap_or_default();
    let Some((_, kind, content)) = assets::ASSETS.iter().find(|(known, ..)| *known == name) else {
        return Err(Error::new(Code::NotFound, "There is no such file."));
    };
    // A page of another version asks for its own files while a new version starts: it gets ours, for now.
    let keep = match hash == assets::hash() {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let mut response = Response::new(Bytes::from_static(content));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
    Ok(response)
}

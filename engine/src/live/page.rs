//! `/voice-test`: a page for talking to an assistant, aloud or by text. The assistant speaks with its own voice, over the
//! socket, or, where it has none, with the browser's. The page is static: its script reads the token from the address,
//! asks as it loads whether the link is still good, and uses it up only when a button is pressed.
use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderValue, Response, header};

use super::socket_origin;
use crate::base::hash::policy_source;
use crate::base::script::script;
use crate::config::Config;

/// The colours and typefaces of every page, and what is of this one.
const STYLE: &str = concat!(include_str!("../base/theme.css"), include_str!("page/page.css"));
/// One script: the browser's voice and ear, the assistant's voice, the line of time, and the page that uses them.
const SCRIPT: &str = script!("page/speech.js", "page/line.js", "page/trace.js", "page/page.js");
/// What runs on the browser's audio thread, which loads it from an address of its own.
const WORKLETS: &str = script!("page/worklets.js");
const BODY: &str = include_str!("page/page.html");

static PAGE: LazyLock<String> =
    LazyLock::new(|| BODY.replace("/*style*/", STYLE).replace("/*script*/", SCRIPT));

/// The page. It loads nothing from elsewhere and runs only its own scripts.
pub fn response(config: &Config) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(PAGE.as_bytes()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The URL contains the token.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("x-robots-tag", HeaderValue::from_static("noindex"));
    if let Ok(policy) = HeaderValue::from_str(&policy(&config.base_url)) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// The script of the audio thread.
pub fn worklets() -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(WORKLETS.as_bytes()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/javascript; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-robots-tag", HeaderValue::from_static("noindex"));
    response
}

/// `'self'` is for [`worklets`]; the service has no other script. The dashboard shows the page in a frame; nobody else can.
/// Not every browser includes the page's own WebSocket in `'self'`, so its URL is listed as well.
fn policy(base_url: &str) -> String {
    let own = socket_origin(base_url);
    let own = own.split_once("://").map_or("", |(scheme, rest)| {
        let host = rest.split('/').next().unwrap_or_default();
        &own[..scheme.len() + "://".len() + host.len()]
    });
    format!(
        "default-src 'none'; script-src '{}' 'self'; style-src '{}'; connect-src 'self' {own}; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'self'",
        policy_source(SCRIPT),
        policy_source(STYLE)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_covers_exactly_the_pages_contents() {
        let policy = policy("https://voice.example.com/api");
        assert!(policy.contains("connect-src 'self' wss://voice.example.com;"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(PAGE.contains(&format!("<script>{SCRIPT}</script>")));
        assert!(PAGE.contains(&format!("<style>{STYLE}</style>")));
        for elsewhere in ["http://", "https://", "src=", "href=", "onclick", "innerHTML"] {
            assert!(!PAGE.contains(elsewhere), "{elsewhere}");
        }
    }
}

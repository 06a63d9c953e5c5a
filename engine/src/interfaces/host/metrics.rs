//! Who may read the page with the metrics.
use std::net::IpAddr;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use ipnet::IpNet;

use crate::base::error::{Code, Error};
use crate::base::hash::sha256_hex;
use crate::base::ids::RequestId;
use crate::interfaces::api::Api;
use crate::ports::{Incoming, MetricsForm};
use crate::storage::fault::Fault;

/// What a proxy adds to a request that it passes on.
const OF_PROXIES: [&str; 6] =
    ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "forwarded", "via"];

/// The page; `None` where there is none, or none for whoever asks.
pub(super) async fn respond(
    api: &Api,
    incoming: &Incoming,
    now_ms: i64,
    request_id: &RequestId,
) -> Option<Response<Bytes>> {
    let services = api.services();
    let metrics = services.ports().metrics.as_ref()?;
    let (config, headers) = (services.config(), incoming.request.headers());
    match &config.metrics_hash {
        Some(hash) if has_token(headers, hash) => {}
        Some(_) => {
            let message = "Send the token of SIDETONE_METRICS_TOKEN: `Authorization: Bearer …`.";
            return Some(api.refuse(
                Error::new(Code::Unauthorized, message).into(),
                incoming,
                now_ms,
                request_id,
            ));
        }
        None if is_from_here(headers, incoming.peer, &config.trusted_proxies) => {}
        None => return None,
    }
    let form = form(headers);
    let page = metrics.page(form, Box::pin(services.readings())).await;
    Some(match page {
        Ok(text) => {
            let mut response = Response::new(Bytes::from(text));
            response.headers_mut().insert(header::CONTENT_TYPE, content_type(form));
            response
        }
        Err(error) => Fault::from(error).into_response(request_id),
    })
}

fn has_token(headers: &HeaderMap, hash: &str) -> bool {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = given.and_then(|value| value.split_once(' '));
    token.is_some_and(|(scheme, token)| {
        scheme.eq_ignore_ascii_case("bearer") && sha256_hex(token.trim().as_bytes()) == hash
    })
}

/// Whether a program on this machine asks, and no proxy for somebody else.
fn is_from_here(headers: &HeaderMap, peer: Option<IpAddr>, proxies: &[IpNet]) -> bool {
    let peer = peer.map(|peer| peer.to_canonical());
    peer.is_some_and(|peer| peer.is_loopback() && !proxies.iter().any(|network| network.contains(&peer)))
        && !OF_PROXIES.iter().any(|name| headers.contains_key(*name))
}

fn form(headers: &HeaderMap) -> MetricsForm {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match accepted.contains("text/plain") && !accepted.contains("application/openmetrics-text") {
        true => MetricsForm::Prometheus,
        false => MetricsForm::OpenMetrics,
    }
}

fn content_type(form: MetricsForm) -> HeaderValue {
    HeaderValue::from_static(match form {
        MetricsForm::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        MetricsForm::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(http::HeaderName::from_static(name), HeaderValue::from_static(value))])
    }

    #[test]
    fn what_a_proxy_passes_on_is_not_from_here() {
        let (here, other) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([203, 0, 113, 9]));
        let mapped: IpAddr = "::ffff:127.0.0.1".parse().unwrap();
        let plain = HeaderMap::new();
        assert!(is_from_here(&plain, Some(here), &[]) && is_from_here(&plain, Some(mapped), &[]));
        assert!(!is_from_here(&plain, Some(other), &[]) && !is_from_here(&plain, None, &[]));
        assert!(!is_from_here(&plain, Some(here), &[here.into()]), "the operator says that this is a proxy");
        for name in OF_PROXIES {
            assert!(!is_from_here(&headers(name, "127.0.0.1"), Some(here), &[]), "{name}");
        }
    }

    #[test]
    fn a_token_is_compared_as_a_whole() {
        let hash = sha256_hex(b"0123456789abcdef");
        assert!(has_token(&headers("authorization", "Bearer 0123456789abcdef"), &hash));
        for wrong in ["Bearer 0123456789abcde", "Basic 0123456789abcdef", "0123456789abcdef", "Bearer "] {
            assert!(!has_token(&headers("authorization", wrong), &hash), "{wrong}");
        }
        assert!(!has_token(&HeaderMap::new(), &hash));
    }

    #[test]
    fn whoever_asks_for_plain_text_alone_gets_it() {
        let of = |accept: &'static str| form(&headers("accept", accept));
        assert_eq!(of("text/plain"), MetricsForm::Prometheus);
        assert_eq!(
            of("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"),
            MetricsForm::OpenMetrics
        );
        assert_eq!(
            (of("*/*"), form(&HeaderMap::new())),
            (MetricsForm::OpenMetrics, MetricsForm::OpenMetrics)
        );
    }
}

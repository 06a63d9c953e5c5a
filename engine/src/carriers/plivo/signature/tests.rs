use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::*;

const TOKEN: &str = "Y2Q2ZDgxZmY5YWRiOTI5YmQ1Njg0MTAxZWIyOTc4";
const NONCE_OF_VECTORS: &str = "31627761595286130198";
const URL: &str = "https://plivobin.non-prod.plivops.com/api/v1/validate_signature03.xml";
const CALL: &str = "3e82ae9d-2c78-4d85-b1a4-6eae7dbafb36";

fn parameters() -> Vec<(&'static str, &'static str)> {
    vec![
        ("Direction", "outbound"),
        ("From", "19792014278"),
        ("ALegUUID", CALL),
        ("CallStatus", "in-progress"),
        ("BillRate", "0.002"),
        ("ParentAuthID", "MANWVLYTK4ZWU1YTY4QA"),
        ("To", "sip:PlivoSignature382029104058171078704104@phone-qa.voice.plivodev.com"),
        ("ALegRequestUUID", CALL),
        ("CallUUID", CALL),
        ("RequestUUID", CALL),
        ("SIP-H-To", "<sip:PlivoSignature382029104058171078704104@52.9.11.55;transport=udp>;tag=1"),
        ("SessionStart", "2020-04-08 11:34:33.238707"),
        ("Event", "StartApp"),
    ]
}

fn encoded(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

struct Request {
    method: &'static str,
    url: String,
    headers: HeaderMap,
    body: String,
}

impl Request {
    fn new(method: &'static str, url: &str, body: &str) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/x-www-form-urlencoded"));
        Self { method, url: url.to_owned(), headers, body: body.to_owned() }
    }

    fn signed(mut self, name: &'static str, value: &str, nonce: &str) -> Self {
        self.headers.insert(name, HeaderValue::from_str(value).unwrap());
        self.headers.insert(NONCE, HeaderValue::from_str(nonce).unwrap());
        self
    }

    fn callback(&self) -> Callback<'_> {
        Callback {
            method: self.method,
            url: &self.url,
            headers: &self.headers,
            body: self.body.as_bytes(),
            now_ms: 0,
        }
    }

    fn check(&self, token: &str) -> Check {
        check(token, &self.callback())
    }
}

fn sign(text: &str, nonce: &str) -> String {
    STANDARD.encode(hmac_sha256(TOKEN.as_bytes(), format!("{text}.{nonce}").as_bytes()))
}

/// The vectors of plivo-go and plivo-ruby, as requests.
fn vectors() -> Vec<(Request, &'static str)> {
    let form = encoded(&parameters());
    vec![
        (
            Request::new("POST", &format!("{URL}/?a=b&c=d"), &form),
            "k7Pusd4OxCIjR5IfA9iedDNu/h/gbdYqdzG/MiYtd1c=",
        ),
        (
            Request::new("GET", &format!("{URL}/?a=b&c=d&{form}"), ""),
            "UBq8jAtd32wR8EK9VgxbBn4n5rpI/l1H9iN4WfSEHFQ=",
        ),
        (Request::new("POST", URL, &form), "iAjE5QqI37mbkYe4w3jTMudqEzbDufdqi7sYwTu64e0="),
        (Request::new("GET", &format!("{URL}?{form}"), ""), "i/MQsaQSAd6fiKhOh2qeeeLHZ9faldADSb3/7+Akfbc="),
    ]
}

#[test]
fn the_published_vectors_hold() {
    for (request, signature) in vectors() {
        let text = signed_text(&request.callback(), &request.url);
        assert_eq!(sign(&text, NONCE_OF_VECTORS), signature);
    }
    for (request, signature) in vectors() {
        let url = request.url.clone();
        let request = request.signed(HEADERS[0], signature, NONCE_OF_VECTORS);
        assert_eq!(request.check(TOKEN), Check::Genuine, "{url}");
        assert_eq!(request.check("another token"), Check::Forged(Forged::Wrong), "{url}");
    }
}

#[test]
fn either_header_may_list_several_signatures() {
    let good = "iAjE5QqI37mbkYe4w3jTMudqEzbDufdqi7sYwTu64e0=";
    let other = "k7Pusd4OxCIjR5IfA9iedDNu/h/gbdYqdzG/MiYtd1c=";
    let request = || Request::new("POST", URL, &encoded(&parameters()));
    for name in HEADERS {
        for value in [format!("{other},{good}"), format!("{good}, {other}"), format!(" ,{good}")] {
            assert_eq!(
                request().signed(name, &value, NONCE_OF_VECTORS).check(TOKEN),
                Check::Genuine,
                "{value}"
            );
        }
        assert_eq!(
            request().signed(name, other, NONCE_OF_VECTORS).check(TOKEN),
            Check::Forged(Forged::Wrong)
        );
    }
    // A subaccount's signature next to the main account's.
    let both =
        request().signed(HEADERS[0], other, NONCE_OF_VECTORS).signed(HEADERS[1], good, NONCE_OF_VECTORS);
    assert_eq!(both.check(TOKEN), Check::Genuine);
    let many = format!("{}{good}", format!("{other},").repeat(SIGNATURES_MAX));
    assert_eq!(
        request().signed(HEADERS[0], &many, NONCE_OF_VECTORS).check(TOKEN),
        Check::Forged(Forged::Wrong)
    );
}

#[test]
fn modified_requests_are_rejected() {
    let (request, signature) = vectors().remove(0);
    let changed = |method, url: &str, body: &str, nonce: &str| {
        Request::new(method, url, body).signed(HEADERS[0], signature, nonce).check(TOKEN)
    };
    let (url, form) = (request.url.as_str(), request.body.as_str());
    assert_eq!(changed("POST", url, form, NONCE_OF_VECTORS), Check::Genuine);
    let wrong = Check::Forged(Forged::Wrong);
    assert_eq!(changed("POST", url, form, "31627761595286130199"), wrong);
    assert_eq!(changed("POST", &url.replace("a=b", "a=x"), form, NONCE_OF_VECTORS), wrong);
    assert_eq!(changed("POST", &url.replace("https", "http"), form, NONCE_OF_VECTORS), wrong);
    assert_eq!(changed("POST", &url.replace("qa", "qb").replace("03", "04"), form, NONCE_OF_VECTORS), wrong);
    assert_eq!(changed("POST", url, &form.replace("outbound", "inbound"), NONCE_OF_VECTORS), wrong);
    assert_eq!(changed("POST", url, &format!("{form}&Machine=true"), NONCE_OF_VECTORS), wrong);
    assert_eq!(changed("POST", url, "", NONCE_OF_VECTORS), wrong);
    assert_eq!(changed("GET", url, form, NONCE_OF_VECTORS), wrong);
}

#[test]
fn missing_and_malformed_signatures_are_distinguished() {
    let form = encoded(&parameters());
    let request = || Request::new("POST", URL, &form);
    let good = "iAjE5QqI37mbkYe4w3jTMudqEzbDufdqi7sYwTu64e0=";
    assert_eq!(request().check(TOKEN), Check::Forged(Forged::Missing));
    assert_eq!(request().signed(HEADERS[0], good, "").check(TOKEN), Check::Forged(Forged::Missing));
    assert_eq!(
        request().signed(HEADERS[0], " , ", NONCE_OF_VECTORS).check(TOKEN),
        Check::Forged(Forged::Missing)
    );
    let mut no_nonce = request().signed(HEADERS[0], good, NONCE_OF_VECTORS);
    no_nonce.headers.remove(NONCE);
    assert_eq!(no_nonce.check(TOKEN), Check::Forged(Forged::Missing));
    for text in ["hello", "AAAA", "iAjE5QqI37mbkYe4w3jTMudqEzbDufdqi7sYwTu64e0"] {
        let found = request().signed(HEADERS[0], text, NONCE_OF_VECTORS).check(TOKEN);
        assert_eq!(found, Check::Forged(Forged::Malformed), "{text}");
    }
    let long = "1".repeat(NONCE_BYTES_MAX + 1);
    assert_eq!(request().signed(HEADERS[0], good, &long).check(TOKEN), Check::Forged(Forged::Malformed));
}

#[test]
fn repeated_names_are_sorted_by_value() {
    let request = Request::new("POST", "https://h/p?b=2&a=%20x&b=1#ct=2000", "k=z&k=y&A=1&empty=");
    assert_eq!(signed_text(&request.callback(), &request.url), "https://h/p?a= x&b=1&b=2.A1emptykykz");
    let request = Request::new("POST", "https://h/p#rc=1", "");
    assert_eq!(signed_text(&request.callback(), &request.url), "https://h/p");
}

#[test]
fn a_stream_is_signed_with_its_http_url() {
    let url = "wss://voice.example.com/m/token";
    let with = |signed: &str, url: &str| {
        let request = Request::new("GET", url, "").signed(HEADERS[0], &sign(signed, "7"), "7");
        check_media(TOKEN, &request.callback())
    };
    assert_eq!(with("http://voice.example.com/m/token", url), Check::Genuine);
    assert_eq!(with(url, url), Check::Genuine);
    let local = "ws://127.0.0.1:8080/m/token";
    assert_eq!(with("http://127.0.0.1:8080/m/token", local), Check::Genuine);
    let wrong = Check::Forged(Forged::Wrong);
    assert_eq!(with("http://voice.example.com/m/tokem", url), wrong);
    assert_eq!(with("http://evil.example.com/m/token", url), wrong);
    assert_eq!(with("http://voice.example.com/m/token", &format!("{url}?more=1")), wrong);
    // A stream's signature is not valid for a callback.
    let request = Request::new("GET", "https://voice.example.com/m/token", "");
    let request = request.signed(HEADERS[0], &sign("http://voice.example.com/m/token", "7"), "7");
    assert_eq!(request.check(TOKEN), wrong);
}

proptest! {
    #[test]
    fn arbitrary_signatures_are_rejected(
        body in proptest::collection::vec(any::<u8>(), 0..200),
        query in "\\PC{0,40}",
        header in "[ -~]{0,80}",
        nonce in "[ -~]{0,30}",
    ) {
        let mut request = Request::new("POST", &format!("https://h/p?{query}"), "");
        request = request.signed(HEADERS[0], &header, &nonce);
        let callback = Callback { body: &body, ..request.callback() };
        prop_assert!(matches!(check(TOKEN, &callback), Check::Forged(_)));
        prop_assert!(matches!(check_media(TOKEN, &callback), Check::Forged(_)));
    }

    #[test]
    fn the_order_of_a_form_does_not_matter(pairs in proptest::collection::vec(("[A-Za-z]{1,5}", "\\PC{0,8}"), 0..8)) {
        let there: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let back: Vec<(&str, &str)> = there.iter().rev().copied().collect();
        let there = Request::new("POST", URL, &encoded(&there));
        let back = Request::new("POST", URL, &encoded(&back));
        prop_assert_eq!(signed_text(&there.callback(), URL), signed_text(&back.callback(), URL));
    }
}

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;

/// From Twilio's page and the tests of its SDKs.
const TOKEN: &str = "12345";
const URL: &str = "https://mycompany.com/myapp.php?foo=1&bar=2";
const SIGNATURE: &str = "RSOYDt4T1cUTdK1PDd93/VVr8B8=";
const FORM: &str =
    "CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212";

struct Request<'a> {
    method: &'a str,
    url: &'a str,
    content_type: &'a str,
    signature: Option<&'a str>,
    body: &'a str,
}

const GENUINE: Request<'_> = Request {
    method: "POST",
    url: URL,
    content_type: "application/x-www-form-urlencoded; charset=UTF-8",
    signature: Some(SIGNATURE),
    body: FORM,
};

impl Request<'_> {
    fn with<T>(&self, judge: impl Fn(&Callback<'_>) -> T) -> T {
        let mut headers = HeaderMap::new();
        let mut insert = |name, value: &str| {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        };
        insert("content-type", self.content_type);
        if let Some(signature) = self.signature {
            insert("x-twilio-signature", signature);
        }
        let body = self.body.as_bytes();
        judge(&Callback { method: self.method, url: self.url, headers: &headers, body, now_ms: 0 })
    }

    fn check(&self) -> Check {
        self.with(|callback| check(&Secret::new(TOKEN), callback))
    }

    fn check_media(&self) -> Check {
        self.with(|callback| check_media(&Secret::new(TOKEN), callback))
    }
}

fn sign(url: &str) -> String {
    STANDARD.encode(hmac_sha1(TOKEN.as_bytes(), url.as_bytes()))
}

#[test]
fn accepts_published_signatures() {
    let with_port = "https://mycompany.com:443/myapp.php?foo=1&bar=2";
    for (url, signature) in [
        (URL, SIGNATURE),
        // Signed with a port, whether the URL has one or not, and vice versa.
        (URL, "kvajT1Ptam85bY51eRf/AJRuM3w="),
        (with_port, "kvajT1Ptam85bY51eRf/AJRuM3w="),
        (with_port, SIGNATURE),
        ("https://mycompany.com:8443/myapp.php?foo=1&bar=2", SIGNATURE),
        ("http://mycompany.com:1234/myapp.php?foo=1&bar=2", "Zmvh+3yNM1Phv2jhDCwEM3q5ebU="),
        ("http://mycompany.com/myapp.php?foo=1&bar=2", "0ZXoZLH/DfblKGATFgpif+LLRf4="),
        ("https://user:pass@mycompany.com/myapp.php?foo=1&bar=2", "CukzLTc1tT5dXEDIHm/tKBanW10="),
        ("https://mycompany.com/myapp.php?foo=1&bar=2&Body=It's+amazing", "TfZzewPq8wqrGlMfyAud8+/IvJ0="),
    ] {
        let request = Request { url, signature: Some(signature), ..GENUINE };
        assert_eq!(request.check(), Check::Genuine, "{url} {signature}");
    }
    for (body, signature) in [
        (
            "MessagingBinding.Address=%2B1325xxxxxxx&MessagingBinding.Address=%2B1415xxxxxxx",
            "83O6e2vORAoJHUNzJjDWN1jz+BA=",
        ),
        ("Sid=CA123&SidAccount=AC123&Digits=5678&Digits=1234&Digits=1234", "IK+Dwps556ElfBT0I3Rgjkr1wJU="),
    ] {
        let request = Request { body, signature: Some(signature), ..GENUINE };
        assert_eq!(request.check(), Check::Genuine, "{body}");
    }
}

#[test]
fn accepts_other_encodings_of_the_query() {
    let given = "https://mycompany.com/a?name=O%27Hara+%28home%29";
    for signed in [
        given.to_owned(),
        "https://mycompany.com:443/a?name=O'Hara%20(home)".to_owned(),
        "https://mycompany.com/a?name=O'Hara%20(home)".to_owned(),
    ] {
        let signature = sign(&signed);
        let request = Request { url: given, body: "", signature: Some(&signature), ..GENUINE };
        assert_eq!(request.check(), Check::Genuine, "{signed}");
    }
}

#[test]
fn json_is_signed_with_its_hash() {
    let json = Request {
        url: "https://mycompany.com/myapp.php?foo=1&bar=2\
              &bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620",
        content_type: "application/json",
        signature: Some("a9nBmqA0ju/hNViExpshrM61xv4="),
        body: r#"{"property": "value", "boolean": true}"#,
        ..GENUINE
    };
    assert_eq!(json.check(), Check::Genuine);
    let empty = Request {
        url: "https://mycompany.com/myapp.php?foo=1&bar=2\
              &bodySHA256=44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        signature: Some("Ldidvp12m26NI7eqEvxnEpkd9Hc="),
        body: "{}",
        ..json
    };
    assert_eq!(empty.check(), Check::Genuine);
    for body in ["", "{}", r#"{"property": "value", "boolean": false}"#] {
        assert_eq!(Request { body, ..json }.check(), Check::Forged(Forged::Wrong), "{body}");
    }
    assert_eq!(Request { signature: None, body: "", ..json }.check(), Check::Forged(Forged::Missing));
    // An unsigned body with a valid signature of the URL alone.
    let url = "https://mycompany.com/myapp.php";
    let signature = sign(url);
    let unsigned = Request { url, signature: Some(&signature), ..json };
    assert_eq!(unsigned.check(), Check::Forged(Forged::Wrong));
    assert_eq!(Request { body: "", ..unsigned }.check(), Check::Genuine);
    assert_eq!(Request { method: "GET", ..unsigned }.check(), Check::Genuine);
}

#[test]
fn rejects_modified_requests() {
    let wrong = Check::Forged(Forged::Wrong);
    assert_eq!(GENUINE.check(), Check::Genuine);
    for url in [
        "https://mycompany.com/myapp.php?foo=1&bar=3",
        "https://mycompany.com/myapp.php?bar=2&foo=1",
        "https://mycompany.com/myapp.php",
        "https://mycompany.com/Myapp.php?foo=1&bar=2",
        "http://mycompany.com/myapp.php?foo=1&bar=2",
        "https://mycompany.org/myapp.php?foo=1&bar=2",
        "",
        "://",
    ] {
        assert_eq!(Request { url, ..GENUINE }.check(), wrong, "{url}");
    }
    for body in [
        "",
        &FORM.replace("1234567890", "1234567891"),
        &format!("{FORM}&CallStatus=completed"),
        &FORM.replace("&Digits=1234", ""),
    ] {
        assert_eq!(Request { body, ..GENUINE }.check(), wrong, "{body}");
    }
    assert_eq!(Request { content_type: "application/json", ..GENUINE }.check(), wrong);
    assert_eq!(Request { method: "GET", ..GENUINE }.check(), wrong);
    let other_token = GENUINE.with(|callback| check(&Secret::new("12346"), callback));
    assert_eq!(other_token, wrong);
    for (signature, forged) in [
        (None, Forged::Missing),
        (Some(""), Forged::Malformed),
        (Some("RSOYDt4T1cUTdK1PDd93/VVr8B8"), Forged::Malformed),
        (Some("RSOYDt4T1cUTdK1PDd93/VVr8A=="), Forged::Malformed),
        (Some("not base64 at all, is it....."), Forged::Malformed),
        (Some("rSOYDt4T1cUTdK1PDd93/VVr8B8="), Forged::Wrong),
    ] {
        assert_eq!(Request { signature, ..GENUINE }.check(), Check::Forged(forged), "{signature:?}");
    }
}

#[test]
fn an_empty_token_signs_nothing() {
    let signature = STANDARD.encode(hmac_sha1(b"", b"https://mycompany.com/"));
    let request = Request { url: "https://mycompany.com/", signature: Some(&signature), body: "", ..GENUINE };
    let judged = request.with(|callback| check(&Secret::new(""), callback));
    assert_eq!(judged, Check::Forged(Forged::Wrong));
}

#[test]
fn a_media_socket_is_signed_with_its_url() {
    let given = "wss://voice.example.com/media/token";
    let signed = |url: &str| {
        let signature = sign(url);
        Request { method: "GET", url: given, signature: Some(&signature), body: "", ..GENUINE }.check_media()
    };
    for url in [
        given,
        "wss://voice.example.com/media/token/",
        "wss://voice.example.com:443/media/token",
        "wss://voice.example.com:443/media/token/",
    ] {
        assert_eq!(signed(url), Check::Genuine, "{url}");
    }
    for url in [
        "wss://voice.example.com/media/other",
        "wss://voice.example.com/media",
        "https://voice.example.com/media/token",
        "ws://voice.example.com/media/token",
        "",
    ] {
        assert_eq!(signed(url), Check::Forged(Forged::Wrong), "{url}");
    }
    let unsigned = Request { method: "GET", url: given, signature: None, body: "", ..GENUINE };
    assert_eq!(unsigned.check_media(), Check::Forged(Forged::Missing));
}

proptest! {
    #[test]
    fn arbitrary_signatures_are_rejected(
        method in "GET|POST|PUT", url in "(https?://|wss://)?.{0,40}", body in ".{0,40}",
        content_type in "application/(json|x-www-form-urlencoded)|", signature in "[ -~]{0,40}",
    ) {
        let request = Request {
            method: &method, url: &url, content_type: &content_type, signature: Some(&signature), body: &body,
        };
        prop_assert!(matches!(request.check(), Check::Forged(_)));
        prop_assert!(matches!(request.check_media(), Check::Forged(_)));
    }

    #[test]
    fn accepts_signed_requests_and_rejects_changed_ones(
        pairs in prop::collection::vec(("[A-Za-z]{1,8}", ".{0,12}"), 1..8), at in 0_usize..1_000,
    ) {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(&pairs).finish();
        let sorted: BTreeSet<_> = pairs.iter().collect();
        let signed: String = sorted.iter().fold(URL.to_owned(), |all, (name, value)| all + name + value);
        let signature = sign(&signed);
        let request = Request { body: &body, signature: Some(&signature), ..GENUINE };
        prop_assert_eq!(request.check(), Check::Genuine);
        let mut url = URL.to_owned().into_bytes();
        let at = "https://mycompany.com/".len() + at % (URL.len() - "https://mycompany.com/".len());
        url[at] ^= 1;
        let url = String::from_utf8(url).unwrap();
        prop_assert_eq!(Request { url: &url, ..request }.check(), Check::Forged(Forged::Wrong));
    }
}

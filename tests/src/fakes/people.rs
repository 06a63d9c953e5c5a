//! Fakes for what the dashboard asks about people: an OpenID provider (OpenID Connect Core and Discovery, RFC 7636), and a
//! JSON mail API in Resend's form.
//!
//! The provider has no page: a test plays the browser and makes a code itself with [`code`], which says what the token is to
//! contain. The token endpoint checks the client, the redirect URI and the verifier as a strict provider does.
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use ring::digest;
use ring::rand::SystemRandom;
use ring::signature::{self, RsaKeyPair};
use serde_json::{Value, json};

use super::carrier::vonage::token::PRIVATE_KEY;

/// Our registration at the provider.
pub const CLIENT_ID: &str = "sidetone-tests";
/// The secret of it, with characters that have to be encoded.
pub const CLIENT_SECRET: &str = "a secret:with/more";
/// The key of the mail API.
pub const MAIL_KEY: &str = "re_test";
/// The sender.
pub const MAIL_FROM: &str = "Sidetone <voice@example.com>";
/// A mail to this address is refused.
pub const REFUSED: &str = "nobody@refused.example";

/// The running fakes. They live as long as the process.
pub struct People {
    /// The address they listen on.
    pub address: SocketAddr,
    state: Arc<Everything>,
}

struct Everything {
    issuer: String,
    mails: Mutex<Vec<Value>>,
}

impl People {
    /// Starts them on a free port, on their own thread.
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("a socket can be told not to block");
        let address = listener.local_addr().expect("it is bound");
        let state = Arc::new(Everything { issuer: format!("http://{address}"), mails: Mutex::default() });
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(document))
            .route("/jwks", get(keys))
            .route("/token", post(token))
            .route("/emails", post(mail))
            .with_state(state.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("it is a socket");
                axum::serve(listener, router).await.expect("it serves");
            });
        });
        Self { address, state }
    }

    /// The provider's URL.
    pub fn issuer(&self) -> &str {
        &self.state.issuer
    }

    /// The mails to an address, oldest first.
    pub fn mails_to(&self, address: &str) -> Vec<Value> {
        let mails = self.state.mails.lock().unwrap_or_else(PoisonError::into_inner);
        mails.iter().filter(|mail| mail["to"] == json!([address])).cloned().collect()
    }

    /// The settings of a service that asks them.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("SIDETONE_GOOGLE_ISSUER", self.issuer().to_owned()),
            ("SIDETONE_GOOGLE_CLIENT_ID", CLIENT_ID.to_owned()),
            ("SIDETONE_GOOGLE_CLIENT_SECRET", CLIENT_SECRET.to_owned()),
            ("SIDETONE_MAIL_URL", format!("{}/emails", self.issuer())),
            ("SIDETONE_MAIL_API_KEY", MAIL_KEY.to_owned()),
            ("SIDETONE_MAIL_FROM", MAIL_FROM.to_owned()),
        ]
    }
}

/// A code that stands for an authorization: `claims` of the token, the challenge, the algorithm (`RS256`, `none`, `HS256`),
/// and whether the signature is broken.
pub fn code(challenge: &str, claims: &Value, algorithm: &str, is_broken: bool) -> String {
    let code = json!({"challenge": challenge, "claims": claims, "algorithm": algorithm, "broken": is_broken});
    URL_SAFE_NO_PAD.encode(code.to_string())
}

/// How a forged token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Forgery {
    /// With our key of the provider, rightly.
    Right,
    /// Not at all.
    Empty,
    /// HMAC-SHA256 with the public key, which everybody knows, as DER.
    MacOfDer,
    /// The same with its modulus, as the provider's document has it.
    MacOfModulus,
}

/// A code as [`code`], of a token whose header says what a test wants.
pub fn forged(challenge: &str, claims: &Value, header: &Value, forgery: Forgery) -> String {
    let code = json!({"challenge": challenge, "claims": claims, "header": header, "forgery": forgery});
    URL_SAFE_NO_PAD.encode(code.to_string())
}

fn forged_signature(message: &str, forgery: &Value) -> Vec<u8> {
    let pair = key_pair();
    let mac = |secret: &[u8]| {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
        ring::hmac::sign(&key, message.as_bytes()).as_ref().to_vec()
    };
    let is = |one: Forgery| *forgery == json!(one);
    if is(Forgery::MacOfDer) {
        mac(pair.public().as_ref())
    } else if is(Forgery::MacOfModulus) {
        let ring::rsa::PublicKeyComponents { n, .. } =
            ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public());
        mac(URL_SAFE_NO_PAD.encode(n).as_bytes())
    } else if is(Forgery::Empty) {
        Vec::new()
    } else {
        rs256(&pair, message)
    }
}

fn rs256(pair: &RsaKeyPair, message: &str) -> Vec<u8> {
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(&signature::RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature)
        .expect("RS256 signs anything");
    signature
}

async fn document(State(state): State<Arc<Everything>>) -> String {
    let at = |path: &str| format!("{}{path}", state.issuer);
    json!({
        "issuer": state.issuer,
        "authorization_endpoint": at("/authorize?tenant=one"),
        "token_endpoint": at("/token"),
        "jwks_uri": at("/jwks"),
        "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    })
    .to_string()
}

async fn keys() -> String {
    let ring::rsa::PublicKeyComponents { n, e } =
        ring::rsa::PublicKeyComponents::<Vec<u8>>::from(key_pair().public());
    let (n, e) = (URL_SAFE_NO_PAD.encode(n), URL_SAFE_NO_PAD.encode(e));
    json!({"keys": [
        {"kty": "EC", "kid": "curve", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": "RSA", "kid": "tests", "use": "sig", "alg": "RS256", "n": n, "e": e},
    ]})
    .to_string()
}

async fn token(headers: HeaderMap, body: Bytes) -> (StatusCode, String) {
    match redeem(&headers, &body) {
        Ok(id_token) => {
            let tokens = json!({"access_token": "at", "token_type": "Bearer", "expires_in": 300, "id_token": id_token});
            (StatusCode::OK, tokens.to_string())
        }
        Err(why) => {
            (StatusCode::BAD_REQUEST, json!({"error": "invalid_grant", "error_description": why}).to_string())
        }
    }
}

fn redeem(headers: &HeaderMap, body: &[u8]) -> Result<String, &'static str> {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let basic = STANDARD.encode(format!("{}:{}", encoded(CLIENT_ID), encoded(CLIENT_SECRET)));
    if headers.get("authorization").is_none_or(|value| value != &format!("Basic {basic}")) {
        return Err("the client is not who it says");
    }
    let form: std::collections::BTreeMap<_, _> = form_urlencoded::parse(body).into_owned().collect();
    let value = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let redirect = format!("{}/dashboard/sign-in/google/callback", crate::world::BASE_URL);
    if value("grant_type") != "authorization_code" || value("redirect_uri") != redirect {
        return Err("another grant or redirect URI");
    }
    let code = URL_SAFE_NO_PAD.decode(value("code")).map_err(|_| "no code")?;
    let code: Value = serde_json::from_slice(&code).map_err(|_| "no code")?;
    let hash = digest::digest(&digest::SHA256, value("code_verifier").as_bytes());
    if code["challenge"] != URL_SAFE_NO_PAD.encode(hash) || value("code_verifier").len() < 43 {
        return Err("the verifier is not the challenge's");
    }
    let algorithm = code["algorithm"].as_str().unwrap_or_default();
    let header = match code.get("header") {
        Some(header) => header.to_string(),
        None => json!({"alg": algorithm, "typ": "JWT", "kid": "tests"}).to_string(),
    };
    let message =
        format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(code["claims"].to_string()));
    let mut signature = match (algorithm, code.get("forgery")) {
        (_, Some(forgery)) => forged_signature(&message, forgery),
        ("none", None) => Vec::new(),
        ("HS256", None) => vec![7; 32],
        _ => rs256(&key_pair(), &message),
    };
    if code["broken"] == true {
        signature[0] ^= 1;
    }
    Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

fn key_pair() -> RsaKeyPair {
    let body: String = PRIVATE_KEY.lines().filter(|line| !line.starts_with('-')).collect();
    let der = STANDARD.decode(body).expect("the fixture is base64");
    RsaKeyPair::from_pkcs8(&der).expect("the fixture is a key")
}

async fn mail(State(state): State<Arc<Everything>>, headers: HeaderMap, body: Bytes) -> (StatusCode, String) {
    if headers.get("authorization").is_none_or(|value| value != &format!("Bearer {MAIL_KEY}")) {
        return (StatusCode::UNAUTHORIZED, json!({"message": "API key is invalid"}).to_string());
    }
    let Ok(mail) = serde_json::from_slice::<Value>(&body) else {
        return (StatusCode::UNPROCESSABLE_ENTITY, json!({"message": "no JSON"}).to_string());
    };
    if mail["to"] == json!([REFUSED]) {
        return (
            StatusCode::UNPROCESSABLE_ENTITY,
            json!({"message": "the address is suppressed"}).to_string(),
        );
    }
    state.mails.lock().unwrap_or_else(PoisonError::into_inner).push(mail);
    (StatusCode::OK, json!({"id": "mail_1"}).to_string())
}

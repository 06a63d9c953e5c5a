//! Vonage's tokens: it signs with the signature secret (HS256), and verifies with an application's key (RS256).
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{self, KeyPair as _, RsaKeyPair, UnparsedPublicKey};
use ring::{digest, hmac};
use serde_json::{Value, json};

/// A key that exists only for these tests.
pub const PRIVATE_KEY: &str = include_str!("test_private_key.pem");

/// A token for a body, as in the `Authorization` header of Vonage's callbacks.
pub fn signed(secret: &str, claims: &Value) -> String {
    let message = format!("{}.{}", part(&json!({"alg": "HS256", "typ": "JWT"})), part(claims));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag))
}

/// SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    digest::digest(&digest::SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The claims of an application's token; the error describes what is wrong with it.
pub fn verified(authorization: Option<&str>) -> Result<Value, String> {
    let token = authorization.and_then(|value| value.strip_prefix("Bearer ")).ok_or("no bearer token")?;
    let [header, claims, signature] = token.split('.').collect::<Vec<_>>()[..] else {
        return Err("not three parts".to_owned());
    };
    if unpart(header)? != json!({"alg": "RS256", "typ": "JWT"}) {
        return Err("another header than RS256's".to_owned());
    }
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|error| error.to_string())?;
    let message = &token[..header.len() + 1 + claims.len()];
    UnparsedPublicKey::new(&signature::RSA_PKCS1_2048_8192_SHA256, key_pair().public_key().as_ref())
        .verify(message.as_bytes(), &signature)
        .map_err(|_| "the signature is another key's".to_owned())?;
    unpart(claims)
}

/// A token as a host signs it, with the application's key in PKCS#8.
pub fn signed_rs256(claims: &Value, pkcs8: &[u8]) -> String {
    let key = RsaKeyPair::from_pkcs8(pkcs8).expect("a key that signs");
    let message = format!("{}.{}", part(&json!({"alg": "RS256", "typ": "JWT"})), part(claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&signature::RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature)
        .expect("RS256 signs anything");
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn key_pair() -> RsaKeyPair {
    let body: String = PRIVATE_KEY.lines().filter(|line| !line.starts_with('-')).collect();
    let der = STANDARD.decode(body).expect("the fixture is base64");
    RsaKeyPair::from_pkcs8(&der).expect("the fixture is a key")
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn unpart(part: &str) -> Result<Value, String> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

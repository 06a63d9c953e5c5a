//! Checks an id token (OpenID Connect Core, 3.1.3.7): RS256 and nothing else, by a key of the provider, for us, now, and
//! for the sign-in that was begun here.
use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::dashboard::visit::is_same;
use crate::services::Services;

/// How far the provider's clock may differ from ours.
const SKEW_MS: i64 = 60_000;
/// Characters of an issuer's name for a person (OpenID Connect Core, 2).
const SUBJECT_CHARS_MAX: usize = 255;
/// Lengths of a provider's key: shorter ones are broken, longer ones cost time.
const KEY_BITS: RangeInclusive<usize> = 2_048..=8_192;
/// Google says both.
const GOOGLE: [&str; 2] = ["https://accounts.google.com", "accounts.google.com"];

/// A public key of the provider (RFC 7517).
#[derive(Deserialize)]
pub(super) struct Key {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    used_for: Option<String>,
    n: String,
    e: String,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that whoever checks the token must understand (RFC 7515, 4.1.11).
    crit: Option<Value>,
}

/// What a token says about the person.
#[derive(Deserialize)]
pub(super) struct Claims {
    pub sub: String,
    pub email: Option<String>,
    /// Only the boolean counts: a text may say anything.
    #[serde(default, deserialize_with = "is_true")]
    pub email_verified: bool,
    /// Google: the domain whose organisation manages the account.
    pub hd: Option<String>,
}

impl Claims {
    /// Whether the domain of the address still vouches for the person. Google calls an address verified as long as the account
    /// exists; only `hd` says that the domain manages it.
    pub(super) fn vouches_for_domain(&self, issuer: &str, email: &str) -> bool {
        !GOOGLE.contains(&issuer) || email.ends_with("@gmail.com") || self.hd.is_some()
    }
}

#[derive(Deserialize)]
struct Terms {
    iss: String,
    aud: Value,
    azp: Option<String>,
    exp: f64,
    iat: f64,
    nonce: Option<String>,
}

/// What a token must be for.
pub(super) struct Expected<'a> {
    pub issuer: &'a str,
    pub client_id: &'a str,
    pub nonce: &'a str,
    pub now_ms: i64,
}

/// Whether a token was signed with a key that is not among these. Nothing of it is checked: another set of keys is worth
/// a look.
pub(super) fn names_unknown_key(token: &str, keys: &[Key]) -> bool {
    let header = token.split('.').next().and_then(|header| URL_SAFE_NO_PAD.decode(header).ok());
    let header: Option<Header> = header.and_then(|header| serde_json::from_slice(&header).ok());
    header.is_some_and(|header| header.alg == "RS256" && find(keys, header.kid.as_deref()).is_none())
}

/// The claims of a valid token; else why it is none, for the log.
pub(super) async fn verify(
    services: &Services,
    token: &str,
    keys: &[Key],
    expected: &Expected<'_>,
) -> Result<Claims, &'static str> {
    let (signed, signature) = token.rsplit_once('.').ok_or("the id token has no signature")?;
    let (header, payload) = signed.split_once('.').ok_or("the id token has no payload")?;
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| "the id token is not base64url");
    let (header, payload, signature) = (decoded(header)?, decoded(payload)?, decoded(signature)?);
    let header: Header =
        serde_json::from_slice(&header).map_err(|_| "the id token's header is unreadable")?;
    if header.alg != "RS256" {
        return Err("the id token is not signed with RS256");
    }
    if header.crit.is_some() {
        return Err("the id token needs an extension");
    }
    let key = find(keys, header.kid.as_deref()).ok_or("the id token's key is unknown")?;
    let (n, e) = (decoded(&key.n)?, decoded(&key.e)?);
    if !KEY_BITS.contains(&length_bits(&n)) {
        return Err("the id token's key is too short or too long");
    }
    if !services.ports().keys.verify_rs256(&n, &e, Bytes::from(signed.to_owned()), &signature).await {
        return Err("the id token's signature is wrong");
    }
    let terms: Terms = serde_json::from_slice(&payload).map_err(|_| "the id token lacks a claim")?;
    check(&terms, expected)?;
    let claims: Claims = serde_json::from_slice(&payload).map_err(|_| "the id token names nobody")?;
    if claims.sub.is_empty() || claims.sub.chars().count() > SUBJECT_CHARS_MAX {
        return Err("the id token names nobody");
    }
    Ok(claims)
}

/// The length of a big-endian number.
fn length_bits(number: &[u8]) -> usize {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let first = number.get(zeros).map_or(0, |byte| byte.leading_zeros());
    (number.len() - zeros) * 8 - first as usize
}

fn find<'a>(keys: &'a [Key], kid: Option<&str>) -> Option<&'a Key> {
    let mut usable = keys
        .iter()
        .filter(|key| key.kty == "RSA" && key.used_for.as_deref().is_none_or(|used| used == "sig"));
    match kid {
        Some(kid) => usable.find(|key| key.kid.as_deref() == Some(kid)),
        None => usable.next().filter(|_| usable.next().is_none()),
    }
}

fn check(terms: &Terms, expected: &Expected<'_>) -> Result<(), &'static str> {
    let is_google = GOOGLE.contains(&expected.issuer) && GOOGLE.contains(&terms.iss.as_str());
    if terms.iss != expected.issuer && !is_google {
        return Err("the id token is of another issuer");
    }
    let client = Value::from(expected.client_id);
    let is_for_us = match &terms.aud {
        Value::Array(all) => all.contains(&client) && (all.len() == 1 || terms.azp.is_some()),
        one => *one == client,
    };
    if !is_for_us || terms.azp.as_ref().is_some_and(|azp| azp != expected.client_id) {
        return Err("the id token is for another client");
    }
    // Seconds since 1970, possibly with a fraction.
    let (exp_ms, iat_ms) = ((terms.exp * 1000.0) as i64, (terms.iat * 1000.0) as i64);
    if exp_ms <= expected.now_ms - SKEW_MS {
        return Err("the id token has expired");
    }
    if iat_ms > expected.now_ms + SKEW_MS {
        return Err("the id token is of the future");
    }
    if !terms.nonce.as_deref().is_some_and(|nonce| is_same(nonce, expected.nonce)) {
        return Err("the id token is of another sign-in");
    }
    Ok(())
}

fn is_true<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Value::deserialize(deserializer)? == Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const EXPECTED: Expected<'static> =
        Expected { issuer: "https://id.example", client_id: "us", nonce: "n", now_ms: 1_000_000_000 };

    fn verdict(change: Value) -> Result<(), &'static str> {
        let mut terms =
            json!({"iss": "https://id.example", "aud": "us", "exp": 1_000_300, "iat": 999_999, "nonce": "n"});
        for (name, value) in change.as_object().unwrap() {
            terms[name] = value.clone();
        }
        check(&serde_json::from_value(terms).unwrap(), &EXPECTED)
    }

    /// Google calls an address verified that its owner has lost: the domain may be somebody else's by now.
    #[test]
    fn only_who_manages_a_domain_vouches_for_it() {
        let google = "https://accounts.google.com";
        let claims = |hd: Value| -> Claims {
            serde_json::from_value(
                json!({"sub": "s", "email": "a@b.example", "email_verified": true, "hd": hd}),
            )
            .unwrap()
        };
        assert!(claims(json!("b.example")).vouches_for_domain(google, "a@b.example"));
        assert!(!claims(Value::Null).vouches_for_domain(google, "a@b.example"));
        assert!(!claims(Value::Null).vouches_for_domain("accounts.google.com", "a@b.example"));
        assert!(!claims(Value::Null).vouches_for_domain(google, "a@gmail.com.example"));
        assert!(claims(Value::Null).vouches_for_domain(google, "a@gmail.com"));
        assert!(claims(Value::Null).vouches_for_domain("https://id.example", "a@b.example"));
    }

    #[test]
    fn a_token_is_for_us_now_and_for_this_sign_in() {
        assert_eq!(verdict(json!({})), Ok(()));
        assert_eq!(verdict(json!({"aud": ["us"]})), Ok(()));
        assert_eq!(verdict(json!({"aud": ["us", "them"], "azp": "us"})), Ok(()));
        for change in [
            json!({"iss": "https://evil.example"}),
            json!({"aud": "them"}),
            json!({"aud": ["us", "them"]}),
            json!({"aud": ["us", "them"], "azp": "them"}),
            json!({"azp": "them"}),
            json!({"exp": 999_900}),
            json!({"iat": 1_000_100}),
            json!({"nonce": "other"}),
            json!({"nonce": null}),
        ] {
            assert!(verdict(change.clone()).is_err(), "{change}");
        }
    }

    #[test]
    fn a_key_is_found_by_its_id_or_is_the_only_one() {
        let key = |kid: &str, kind: &str| Key {
            kty: kind.to_owned(),
            kid: Some(kid.to_owned()),
            used_for: None,
            n: String::new(),
            e: String::new(),
        };
        let (one, two) = ([key("a", "RSA"), key("x", "EC")], [key("a", "RSA"), key("b", "RSA")]);
        assert!(find(&one, Some("a")).is_some() && find(&one, None).is_some());
        assert!(
            find(&one, Some("x")).is_none() && find(&two, None).is_none() && find(&two, Some("c")).is_none()
        );
    }
}

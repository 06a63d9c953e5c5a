//! Signed callbacks: a JSON Web Token in `Authorization: Bearer …`, signed with the account's signature secret.
//!
//! Sources: Vonage's guide "Webhooks", section "Decoding signed webhooks"; the official SDKs (`vonage_jwt` for Python,
//! `@vonage/jwt` for JavaScript, and the Ruby SDK, whose test contains the published token). HS256 is RFC 7518, 3.2; the
//! format of a token is RFC 7515, 7.1.
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use subtle::ConstantTimeEq as _;

use crate::base::hash::hmac_sha256;
use crate::base::hash::sha256_hex;
use crate::base::limits::CARRIER_SIGNATURE_AGE_MS_MAX;
use crate::carriers::callback::{Check, Forged};

/// Vonage's tokens have some 500 bytes.
const TOKEN_BYTES_MAX: usize = 4 * 1024;

/// Vonage's ids of tokens are UUIDs; this leaves room.
const TOKEN_ID_BYTES_MAX: usize = 100;

/// The account whose tokens are accepted. It has no `Debug`, which would show the secret.
#[derive(Clone, Copy)]
pub struct Account<'a> {
    /// The signature secret of the account's callbacks.
    pub secret: &'a str,
    /// The account's API key.
    pub api_key: &'a str,
    /// Our application in that account.
    pub application_id: &'a str,
}

/// Checks that an `Authorization` header is from Vonage, for this account, current, and valid for this body.
///
/// 1. The algorithm must be HS256, whatever the token's header says.
/// 2. The body's hash must match if there is a body. For a `GET`, Vonage hashes its own JSON form of the query, whose spelling
///    is undocumented, so that hash is not compared.
/// 3. The URL is in no claim, so the token is good for one request ([`Check::GenuineToken`]).
pub fn check(account: &Account<'_>, authorization: Option<&str>, body: &[u8], now_ms: i64) -> Check {
    match verify(account, authorization, body, now_ms) {
        Ok(genuine) => genuine,
        Err(why) => Check::Forged(why),
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
}

#[derive(Deserialize)]
struct Claims {
    iat: i64,
    jti: String,
    exp: Option<i64>,
    iss: Option<String>,
    api_key: Option<String>,
    application_id: Option<String>,
    payload_hash: Option<String>,
}

fn verify(
    account: &Account<'_>,
    authorization: Option<&str>,
    body: &[u8],
    now_ms: i64,
) -> Result<Check, Forged> {
    let token = bearer(authorization.ok_or(Forged::Missing)?).ok_or(Forged::Malformed)?;
    let (signed, signature) = token.rsplit_once('.').ok_or(Forged::Malformed)?;
    let (header, claims) = signed.split_once('.').ok_or(Forged::Malformed)?;
    let header: Header = json(header)?;
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| Forged::Malformed)?;
    let ours = hmac_sha256(account.secret.as_bytes(), signed.as_bytes());
    if header.alg != "HS256" || !bool::from(ours.as_slice().ct_eq(&signature)) {
        return Err(Forged::Wrong);
    }
    let claims: Claims = json(claims)?;
    let is_ours = claims.iss.as_deref() == Some("Vonage")
        && claims.api_key.as_deref() == Some(account.api_key)
        && claims.application_id.as_deref().is_none_or(|id| id == account.application_id);
    if !is_ours {
        return Err(Forged::Wrong);
    }
    if claims.jti.is_empty() || claims.jti.len() > TOKEN_ID_BYTES_MAX {
        return Err(Forged::Malformed);
    }
    let issued_at_ms = claims.iat.saturating_mul(1_000);
    let age_ms = now_ms.saturating_sub(issued_at_ms);
    let is_over = claims.exp.is_some_and(|exp| exp.saturating_mul(1_000) <= now_ms);
    if age_ms.saturating_abs() > CARRIER_SIGNATURE_AGE_MS_MAX || is_over {
        return Err(Forged::Stale);
    }
    let fits = body.is_empty()
        || claims.payload_hash.is_some_and(|hash| hash.eq_ignore_ascii_case(&sha256_hex(body)));
    let expires_at_ms = issued_at_ms.saturating_add(CARRIER_SIGNATURE_AGE_MS_MAX + 1);
    fits.then_some(Check::GenuineToken { id: claims.jti, expires_at_ms }).ok_or(Forged::Wrong)
}

/// The token of `Bearer …` (RFC 6750, 2.1; the scheme is case-insensitive).
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && token.len() <= TOKEN_BYTES_MAX).then(|| token.trim())
}

fn json<T: for<'de> Deserialize<'de>>(part: &str) -> Result<T, Forged> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| Forged::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| Forged::Malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    // Published: vonage-ruby-sdk, test/vonage/jwt_test.rb (the secret, the wrong one and the token). The body for its
    // `payload_hash` is not published.
    const SECRET: &str = "ZYtdTtGV3BCFN7tWmOWr1md66XsquMggr4W2cTtXtcPgfnI0Xw";
    const WRONG_SECRET: &str = "ZYtdTtGV3BCFN7tWmOWr1md66XsquMggr4W2cTtXtcPgf55555";
    const TOKEN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpYXQiOjE1ODc0OTQ5NjIsImp0aSI6ImM1YmE4ZjI0LTFhMTQtNGMxMC1iZmRmLTNmYmU4Y2U1MTFiNSIsImlzcyI6IlZvbmFnZSIsInBheWxvYWRfaGFzaCI6ImQ2YzBlNzRiNTg1N2RmMjBlM2I3ZTUxYjMwYzBjMmE0MGVjNzNhNzc4NzliNmYwNzRkZGM3YTIzMTdkZDAzMWIiLCJhcGlfa2V5IjoiYTFiMmMzZCIsImFwcGxpY2F0aW9uX2lkIjoiYWFhYWFhYWEtYmJiYi1jY2NjLWRkZGQtMDEyMzQ1Njc4OWFiIn0.JQRKi1d0SQitmjPINfTWMpt3XZkGsLbD7EjCdXoNSbk";
    const IAT_MS: i64 = 1_587_494_962_000;
    const JTI: &str = "c5ba8f24-1a14-4c10-bfdf-3fbe8ce511b5";

    const ACCOUNT: Account<'_> = Account {
        secret: SECRET,
        api_key: "a1b2c3d",
        application_id: "aaaaaaaa-bbbb-cccc-dddd-0123456789ab",
    };

    fn token(header: &Value, claims: &Value, secret: &str) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = URL_SAFE_NO_PAD.encode(hmac_sha256(secret.as_bytes(), signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    fn claims(body: &[u8]) -> Value {
        json!({"iat": IAT_MS / 1_000, "jti": JTI, "iss": "Vonage",
               "payload_hash": sha256_hex(body), "api_key": ACCOUNT.api_key,
               "application_id": ACCOUNT.application_id})
    }

    /// What every genuine token of these tests gives.
    fn genuine() -> Check {
        let expires_at_ms = IAT_MS + CARRIER_SIGNATURE_AGE_MS_MAX + 1;
        Check::GenuineToken { id: JTI.to_owned(), expires_at_ms }
    }

    fn header() -> Value {
        json!({"alg": "HS256", "typ": "JWT"})
    }

    fn checked(token: &str, body: &[u8], now_ms: i64) -> Check {
        check(&ACCOUNT, Some(&format!("Bearer {token}")), body, now_ms)
    }

    #[test]
    fn accepts_the_published_token() {
        assert_eq!(checked(TOKEN, b"", IAT_MS), genuine());
        let mut published = claims(b"");
        published["payload_hash"] = json!("d6c0e74b5857df20e3b7e51b30c0c2a40ec73a77879b6f074ddc7a2317dd031b");
        assert_eq!(token(&header(), &published, SECRET), TOKEN);
        let wrong = Account { secret: WRONG_SECRET, ..ACCOUNT };
        let check = check(&wrong, Some(&format!("Bearer {TOKEN}")), b"", IAT_MS);
        assert_eq!(check, Check::Forged(Forged::Wrong));
        // The hash is that of another body.
        assert_eq!(checked(TOKEN, b"{}", IAT_MS), Check::Forged(Forged::Wrong));
    }

    #[test]
    fn a_token_covers_its_body() {
        let body = br#"{"status":"ringing","uuid":"u"}"#;
        let whole = token(&header(), &claims(body), SECRET);
        assert_eq!(checked(&whole, body, IAT_MS), genuine());
        assert_eq!(
            checked(&whole, br#"{"status":"answered","uuid":"u"}"#, IAT_MS),
            Check::Forged(Forged::Wrong)
        );
        let mut bare = claims(body);
        bare.as_object_mut().unwrap().shift_remove("payload_hash");
        let bare = token(&header(), &bare, SECRET);
        assert_eq!(checked(&bare, body, IAT_MS), Check::Forged(Forged::Wrong));
        assert_eq!(checked(&bare, b"", IAT_MS), genuine());
    }

    #[test]
    fn a_token_is_valid_for_five_minutes() {
        let limit = CARRIER_SIGNATURE_AGE_MS_MAX;
        for (now_ms, expected) in [
            (IAT_MS + limit, genuine()),
            (IAT_MS - limit, genuine()),
            (IAT_MS + limit + 1, Check::Forged(Forged::Stale)),
            (IAT_MS - limit - 1, Check::Forged(Forged::Stale)),
            (0, Check::Forged(Forged::Stale)),
            (i64::MIN, Check::Forged(Forged::Stale)),
        ] {
            assert_eq!(checked(TOKEN, b"", now_ms), expected, "{now_ms}");
        }
        let mut short = claims(b"");
        short["exp"] = json!(IAT_MS / 1_000 + 10);
        let short = token(&header(), &short, SECRET);
        assert_eq!(checked(&short, b"", IAT_MS + 9_999), genuine());
        assert_eq!(checked(&short, b"", IAT_MS + 10_000), Check::Forged(Forged::Stale));
    }

    #[test]
    fn other_accounts_issuers_and_algorithms_are_rejected() {
        let with = |name: &str, value: Value| {
            let mut claims = claims(b"");
            claims[name] = value;
            checked(&token(&header(), &claims, SECRET), b"", IAT_MS)
        };
        assert_eq!(with("extra", json!(1)), genuine());
        assert_eq!(with("application_id", Value::Null), genuine());
        for (name, value) in [
            ("iss", json!("vonage")),
            ("iss", Value::Null),
            ("api_key", json!("a1b2c3e")),
            ("api_key", Value::Null),
            ("application_id", json!("bbbbbbbb-bbbb-cccc-dddd-0123456789ab")),
        ] {
            assert_eq!(with(name, value.clone()), Check::Forged(Forged::Wrong), "{name} {value}");
        }
        let long = "a".repeat(TOKEN_ID_BYTES_MAX + 1);
        for (name, value) in [
            ("iat", json!("soon")),
            ("iat", Value::Null),
            ("api_key", json!(7)),
            ("jti", Value::Null),
            ("jti", json!("")),
            ("jti", json!(long)),
        ] {
            assert_eq!(with(name, value.clone()), Check::Forged(Forged::Malformed), "{name} {value}");
        }
        for alg in ["none", "HS512", "RS256", "hs256", ""] {
            let token = token(&json!({"alg": alg}), &claims(b""), SECRET);
            assert_eq!(checked(&token, b"", IAT_MS), Check::Forged(Forged::Wrong), "{alg}");
        }
        let mut nameless = claims(b"");
        nameless.as_object_mut().unwrap().shift_remove("jti");
        let nameless = token(&header(), &nameless, SECRET);
        assert_eq!(checked(&nameless, b"", IAT_MS), Check::Forged(Forged::Malformed));
        let (signed, _) = TOKEN.rsplit_once('.').unwrap();
        assert_eq!(checked(&format!("{signed}."), b"", IAT_MS), Check::Forged(Forged::Wrong));
    }

    #[test]
    fn missing_and_malformed_tokens_are_distinguished() {
        assert_eq!(check(&ACCOUNT, None, b"", IAT_MS), Check::Forged(Forged::Missing));
        assert_eq!(check(&ACCOUNT, Some(&format!("bearer  {TOKEN}")), b"", IAT_MS), genuine());
        let long = "a".repeat(TOKEN_BYTES_MAX + 1);
        for wrong in ["", "Bearer", "Bearer ", "Bearer a.b", "Bearer a.b.c", "Basic YTpi", TOKEN, &long] {
            let check = check(&ACCOUNT, Some(wrong), b"", IAT_MS);
            assert_eq!(check, Check::Forged(Forged::Malformed), "{wrong}");
        }
        assert_eq!(checked(&long, b"", IAT_MS), Check::Forged(Forged::Malformed));
    }

    proptest! {
        #[test]
        fn arbitrary_headers_are_rejected(text in ".{0,80}", now_ms in any::<i64>()) {
            let check = check(&ACCOUNT, Some(&format!("Bearer {text}")), text.as_bytes(), now_ms);
            prop_assert!(matches!(check, Check::Forged(_)));
        }

        #[test]
        fn changed_tokens_are_rejected(place in 0..TOKEN.len(), byte in "[A-Za-z0-9_.-]") {
            let mut changed = TOKEN.to_owned();
            changed.replace_range(place..=place, &byte);
            prop_assume!(changed != TOKEN);
            prop_assert!(matches!(checked(&changed, b"", IAT_MS), Check::Forged(_)));
        }
    }
}

//! Requests to an OpenID provider: what it says about itself, tokens for a code, its keys, the person.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::id_token::{Claims, Key};
use crate::base::limits::{OPENID_DEADLINE_MS, OPENID_KEPT_MS, OPENID_REPLY_BYTES_MAX};
use crate::config::OpenIdSettings;
use crate::ports::{Egress, HttpRequest, Party, PartyKind};
use crate::services::Services;

/// Why nobody was signed in; the text is for the log.
pub(super) enum Failure {
    /// What arrived is not acceptable.
    Theirs(String),
    /// The provider could not be asked.
    Ours(String),
}

/// What a provider says about itself.
#[derive(Deserialize)]
pub(super) struct Provider {
    issuer: String,
    pub authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Whether its answers always say which provider they are of (RFC 9207).
    #[serde(default, rename = "authorization_response_iss_parameter_supported")]
    pub says_issuer: bool,
}

/// What a code is exchanged for.
#[derive(Deserialize)]
pub(super) struct Tokens {
    pub id_token: String,
    access_token: Option<String>,
}

#[derive(Deserialize)]
struct KeySet {
    /// Keys of kinds that we do not know are left out.
    keys: Vec<serde_json::Value>,
}

impl Provider {
    /// Reads the provider's own document, which is kept for a while. It must be of the provider that was configured.
    pub async fn discover(services: &Services, settings: &OpenIdSettings) -> Result<Self, Failure> {
        let url = format!("{}/.well-known/openid-configuration", settings.issuer.trim_end_matches('/'));
        let now_ms = services.ports().clock.now_ms();
        if let Some(body) = services.fetched().get(&url, now_ms, OPENID_KEPT_MS) {
            return Self::read(&url, &body, settings);
        }
        let body = fetch(services, request("GET", url.clone())).await?;
        let provider = Self::read(&url, &body, settings)?;
        services.fetched().keep(&url, now_ms, body);
        Ok(provider)
    }

    fn read(url: &str, body: &Bytes, settings: &OpenIdSettings) -> Result<Self, Failure> {
        let provider: Self = parse(url, body)?;
        if provider.issuer != settings.issuer {
            return Err(Failure::Ours(format!(
                "its document is of {}, not {}",
                provider.issuer, settings.issuer
            )));
        }
        let scheme = if settings.issuer.starts_with("https://") { "https://" } else { "http" };
        let urls = [&provider.authorization_endpoint, &provider.token_endpoint, &provider.jwks_uri];
        if urls.into_iter().chain(&provider.userinfo_endpoint).any(|url| !url.starts_with(scheme)) {
            return Err(Failure::Ours("an endpoint of it has no TLS".to_owned()));
        }
        Ok(provider)
    }

    /// Exchanges a code.
    pub async fn redeem(
        &self,
        services: &Services,
        settings: &OpenIdSettings,
        code: &str,
        verifier: &str,
        redirect_uri: &str,
    ) -> Result<Tokens, Failure> {
        ask(services, self.exchange(settings, code, verifier, redirect_uri)).await
    }

    fn exchange(
        &self,
        settings: &OpenIdSettings,
        code: &str,
        verifier: &str,
        redirect_uri: &str,
    ) -> HttpRequest {
        let mut request = request("POST", self.token_endpoint.clone());
        request.headers.push(("content-type", "application/x-www-form-urlencoded".to_owned()));
        // Without a list, it is the header (OpenID Connect Discovery, 3).
        let takes_header = self.token_endpoint_auth_methods_supported.as_ref();
        let takes_header = takes_header.is_none_or(|all| all.iter().any(|one| one == "client_secret_basic"));
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("code_verifier", verifier);
        match &settings.client_secret {
            Some(secret) if takes_header => {
                // Both are form-encoded first (RFC 6749, 2.3.1).
                let encoded =
                    |text: &str| -> String { form_urlencoded::byte_serialize(text.as_bytes()).collect() };
                let pair = format!("{}:{}", encoded(&settings.client_id), encoded(secret.reveal()));
                request.headers.push(("authorization", format!("Basic {}", STANDARD.encode(pair))));
            }
            Some(secret) => {
                form.append_pair("client_id", &settings.client_id)
                    .append_pair("client_secret", secret.reveal());
            }
            None => {
                form.append_pair("client_id", &settings.client_id);
            }
        }
        request.body = Bytes::from(form.finish());
        request
    }

    /// The keys that it signs with, fetched within `age_ms`.
    pub async fn keys(&self, services: &Services, age_ms: i64) -> Result<Vec<Key>, Failure> {
        let (url, now_ms) = (&self.jwks_uri, services.ports().clock.now_ms());
        let set: KeySet = match services.fetched().get(url, now_ms, age_ms) {
            Some(body) => parse(url, &body)?,
            None => {
                let body = fetch(services, request("GET", url.clone())).await?;
                let set = parse(url, &body)?;
                services.fetched().keep(url, now_ms, body);
                set
            }
        };
        Ok(set.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok()).collect())
    }

    /// Who the person is, for providers that do not say so in the id token.
    pub async fn person(
        &self,
        services: &Services,
        tokens: &Tokens,
        subject: &str,
    ) -> Result<Claims, Failure> {
        let (Some(url), Some(token)) = (&self.userinfo_endpoint, &tokens.access_token) else {
            return Err(Failure::Theirs("the provider names no e-mail address".to_owned()));
        };
        let mut request = request("GET", url.clone());
        request.headers.push(("authorization", format!("Bearer {token}")));
        let claims: Claims = ask(services, request).await?;
        if claims.sub != subject {
            return Err(Failure::Theirs("the provider tells about another person".to_owned()));
        }
        Ok(claims)
    }
}

fn request(method: &'static str, url: String) -> HttpRequest {
    HttpRequest {
        method,
        url,
        headers: vec![("accept", "application/json".to_owned())],
        body: Bytes::new(),
        deadline_ms: OPENID_DEADLINE_MS,
        response_bytes_max: OPENID_REPLY_BYTES_MAX,
        egress: Egress::Operator,
        party: Party::of_operator(PartyKind::SignIn, "google"),
        expected: &[],
    }
}

async fn ask<T: DeserializeOwned>(services: &Services, request: HttpRequest) -> Result<T, Failure> {
    let url = request.url.clone();
    parse(&url, &fetch(services, request).await?)
}

async fn fetch(services: &Services, request: HttpRequest) -> Result<Bytes, Failure> {
    let url = request.url.clone();
    let reply = services.ports().http.send(request).await;
    let reply = reply.map_err(|error| Failure::Ours(format!("{url}: {error:?}")))?;
    if reply.status >= 500 {
        return Err(Failure::Ours(format!("{url} answered {}", reply.status)));
    }
    // The body of a refusal names the code or the client: it is not kept.
    if !(200..300).contains(&reply.status) {
        return Err(Failure::Theirs(format!("{url} answered {}", reply.status)));
    }
    Ok(reply.body)
}

fn parse<T: DeserializeOwned>(url: &str, body: &Bytes) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|error| Failure::Ours(format!("{url}: {error}")))
}

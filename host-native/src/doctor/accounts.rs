//! Accounts with carriers, providers and mail servers: each is asked something harmless that needs the credentials.
use sidetone_engine::base::setting::Secret;
use sidetone_engine::carriers::CarrierName;
use sidetone_engine::config::MailRoute;
use sidetone_engine::ports::{HttpError, HttpReply};
use sidetone_engine::speech::settings::{SpeechApi, key_setting};
use sidetone_engine::speech::synthesizers::CARTESIA_VERSION;

use super::reach::{Asker, why};
use super::{Finding, Look};
use crate::smtp::SmtpMailer;

/// The looks at all accounts that are set.
pub fn looks<'a>(asker: &'a Asker<'a>) -> Vec<Look<'a>> {
    let config = asker.config;
    let mut looks: Vec<Look<'a>> = Vec::new();
    for name in CarrierName::ALL.iter().filter(|name| config.carriers.get(**name).is_some()) {
        looks.push((name.as_str(), Box::pin(carrier(asker, *name))));
    }
    let models = &config.catalog.providers;
    for (name, provider) in models {
        if let Some(endpoint) = &provider.endpoint {
            looks.push((
                name,
                Box::pin(provider_of(
                    asker,
                    name,
                    SpeechApi::OpenAi,
                    &endpoint.base_url,
                    endpoint.api_key.as_ref(),
                )),
            ));
        }
    }
    for (name, speech) in config.speech.providers.iter().filter(|(name, _)| !models.contains_key(*name)) {
        looks.push((
            name,
            Box::pin(provider_of(asker, name, speech.api, &speech.base_url, speech.api_key.as_ref())),
        ));
    }
    if config.mail.is_some() {
        looks.push(("mail", Box::pin(mail(asker))));
    }
    if let Some(google) = &config.google {
        looks.push(("sign-in", Box::pin(open_id(asker, &google.issuer))));
    }
    looks
}

async fn carrier(asker: &Asker<'_>, name: CarrierName) -> Vec<Finding> {
    let answer = asker.engine.ask_carrier(name).await;
    if let Ok(reply) = &answer {
        asker.note(reply);
    }
    let settings = format!("SIDETONE_{}_…", name.as_str().to_uppercase());
    vec![judged(name.as_str(), &settings, answer)]
}

/// The cheapest request that needs the key: a list.
async fn provider_of(
    asker: &Asker<'_>,
    name: &str,
    api: SpeechApi,
    base_url: &str,
    key: Option<&Secret>,
) -> Vec<Finding> {
    let (path, header, scheme) = match api {
        SpeechApi::OpenAi => ("/models", "authorization", "Bearer "),
        SpeechApi::Deepgram => ("/v1/projects", "authorization", "Token "),
        SpeechApi::ElevenLabs => ("/v1/models", "xi-api-key", ""),
        SpeechApi::Cartesia => ("/voices?limit=1", "authorization", "Bearer "),
    };
    let mut headers: Vec<(&'static str, String)> = vec![("accept", "application/json".to_owned())];
    headers.extend(key.map(|key| (header, format!("{scheme}{}", key.reveal()))));
    if api == SpeechApi::Cartesia {
        headers.push(("cartesia-version", CARTESIA_VERSION.to_owned()));
    }
    let answer = asker.get(format!("{base_url}{path}"), headers).await;
    vec![match answer {
        // A key that may do nothing but speak is a good one.
        Ok(HttpReply { status: 401, body, .. }) if api == SpeechApi::ElevenLabs && is_restricted(&body) => {
            Finding::good(name, "the key is accepted, for some things only")
        }
        Ok(HttpReply { status: 403, .. }) if api == SpeechApi::Deepgram => {
            Finding::good(name, "the key is accepted, for some things only")
        }
        // Servers of one's own often list nothing.
        Ok(HttpReply { status: 404 | 405, .. }) if api == SpeechApi::OpenAi => {
            Finding::good(name, "the server answers; it lists no models, so the key could not be tried")
        }
        answer => judged(name, key_setting(name).unwrap_or("SIDETONE_PROVIDERS"), answer),
    }]
}

fn is_restricted(body: &[u8]) -> bool {
    String::from_utf8_lossy(body).contains("missing_permissions")
}

/// What an answer says of the credentials in these settings.
fn judged(name: &str, settings: &str, answer: Result<HttpReply, HttpError>) -> Finding {
    match answer {
        Ok(HttpReply { status: 200..=299, .. }) => Finding::good(name, "the credentials are accepted"),
        Ok(HttpReply { status: status @ (401 | 403), .. }) => Finding::problem(
            name,
            format!(
                "it does not accept the credentials (status {status}); check {settings}, and that the account is active"
            ),
        ),
        Ok(HttpReply { status: 429, .. }) => Finding::warning(
            name,
            "it has too many requests of this account at the moment (status 429); look again later",
        ),
        Ok(HttpReply { status: 500.., .. }) => {
            Finding::warning(name, "it answers, but has a problem of its own at the moment; look again later")
        }
        Ok(HttpReply { status, .. }) => Finding::problem(
            name,
            format!("it answers with status {status}; check {settings}, its address included"),
        ),
        Err(error) => Finding::problem(
            name,
            format!("it cannot be reached: {}. Check the network, the firewall and {settings}", why(&error)),
        ),
    }
}

async fn mail(asker: &Asker<'_>) -> Vec<Finding> {
    const CHECK: &str = "mail";
    let Some(settings) = &asker.config.mail else { return Vec::new() };
    let finding = match &settings.route {
        MailRoute::Smtp(_) => match SmtpMailer::from_settings(Some(settings)) {
            Ok(Some(mailer)) => match mailer.greet().await {
                Ok(()) => Finding::good(CHECK, "the SMTP server lets us in"),
                Err(error) => Finding::problem(CHECK, format!("{error}; check SIDETONE_SMTP_URL")),
            },
            Ok(None) => return Vec::new(),
            Err(error) => Finding::problem(CHECK, error.to_string()),
        },
        MailRoute::Api { url, api_key } => {
            let key = api_key.as_ref().map(|key| ("authorization", format!("Bearer {}", key.reveal())));
            match asker.get(url.clone(), key.into_iter().collect()).await {
                Ok(HttpReply { status: status @ (401 | 403), .. }) => Finding::problem(
                    CHECK,
                    format!(
                        "the mail API does not accept the key (status {status}); check SIDETONE_MAIL_API_KEY"
                    ),
                ),
                Ok(_) => Finding::good(CHECK, "the mail API answers"),
                Err(error) => Finding::problem(
                    CHECK,
                    format!("the mail API cannot be reached: {}; check SIDETONE_MAIL_URL", why(&error)),
                ),
            }
        }
    };
    vec![finding]
}

async fn open_id(asker: &Asker<'_>, issuer: &str) -> Vec<Finding> {
    const CHECK: &str = "sign-in";
    let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    vec![match asker.get(url, Vec::new()).await {
        Ok(HttpReply { status: 200, .. }) => Finding::good(CHECK, "the OpenID provider answers"),
        Ok(HttpReply { status, .. }) => Finding::problem(
            CHECK,
            format!("the OpenID provider's document has status {status}; check SIDETONE_GOOGLE_ISSUER"),
        ),
        Err(error) => Finding::problem(
            CHECK,
            format!(
                "the OpenID provider cannot be reached: {}; people sign in by e-mail alone meanwhile",
                why(&error)
            ),
        ),
    }]
}

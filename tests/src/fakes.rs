//! Fakes for external servers, over real sockets.
pub mod carrier;
pub mod openai;

use std::sync::OnceLock;

use serde_json::json;
use sidetone::http_client::HttpClient;
use sidetone_engine::ports::{Http, HttpError, HttpReply, HttpRequest};

use openai::OpenAi;

/// The model server of this process.
pub fn shared() -> &'static OpenAi {
    static SHARED: OnceLock<OpenAi> = OnceLock::new();
    SHARED.get_or_init(OpenAi::start)
}

/// Settings of a service with the fake as the provider `fake`, rates for each of its models, and permission for tools and
/// webhooks on this machine.
pub fn settings() -> Vec<(&'static str, String)> {
    let providers = json!({"fake": {"base_url": shared().base_url(), "api_key": "key-of-the-fake"}});
    let rates =
        json!({"input_microusd_per_1m_tokens": 2_000_000, "output_microusd_per_1m_tokens": 8_000_000});
    let names = openai::behaviour::MODELS.iter().map(|(name, _)| format!("fake/{name}"));
    let models: serde_json::Map<_, _> = names.map(|name| (name, rates.clone())).collect();
    vec![
        ("SIDETONE_PROVIDERS", providers.to_string()),
        ("SIDETONE_MODELS", json!(models).to_string()),
        (
            "SIDETONE_VOICES",
            json!({"fake/alto": {"microusd_per_1k_chars": 15_000}, "fake/page": {"fallback": ["fake/alto"]}})
                .to_string(),
        ),
        ("SIDETONE_TRANSCRIBERS", json!({"fake/scribe": {"microusd_per_minute": 6_000}}).to_string()),
        ("SIDETONE_ALLOW_PRIVATE_TARGETS", "1".to_owned()),
    ]
}

/// Sends a Sandbox's request over a real socket, with a shorter deadline than the binary.
pub fn exchange(request: &HttpRequest) -> Result<HttpReply, HttpError> {
    const DEADLINE_MS: u64 = 1_000;
    let mut request = request.clone();
    request.deadline_ms = request.deadline_ms.min(DEADLINE_MS);
    let carried = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let client = HttpClient::new().expect("a client can be made");
        runtime.expect("a runtime can be made").block_on(client.send(request))
    });
    carried.join().expect("the client does not panic")
}

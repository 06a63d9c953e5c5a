//! Fakes for external servers, over real sockets.
pub mod carrier;
pub mod openai;
pub mod people;
pub mod speech;

use std::sync::{LazyLock, OnceLock};

use serde_json::json;
use sidetone::http_client::HttpClient;
use sidetone::open_files::Outgoing;
use sidetone_engine::ports::{Http, HttpError, HttpReply, HttpRequest};
use tokio::runtime::Runtime;

use openai::OpenAi;
use people::People;
use speech::SpeechServer;

/// The key of the provider `fake`.
pub const KEY: &str = "key-of-the-fake";

/// The model server of this process.
pub fn shared() -> &'static OpenAi {
    static SHARED: OnceLock<OpenAi> = OnceLock::new();
    SHARED.get_or_init(OpenAi::start)
}

/// The server of this process for speech providers with protocols of their own.
pub fn shared_speech() -> &'static SpeechServer {
    static SHARED: OnceLock<SpeechServer> = OnceLock::new();
    SHARED.get_or_init(SpeechServer::start)
}

/// The OpenID provider and the mail API of this process.
pub fn shared_people() -> &'static People {
    static SHARED: OnceLock<People> = OnceLock::new();
    SHARED.get_or_init(People::start)
}

/// Settings of a service with the fake as the provider `fake`, rates for each of its models, and permission for tools and
/// webhooks on this machine.
pub fn settings() -> Vec<(&'static str, String)> {
    let speech = shared_speech().base_url();
    let providers = json!({
        "fake": {"base_url": shared().base_url(), "api_key": KEY},
        "live": {"base_url": format!("{speech}/v1"), "api_key": speech::KEY, "realtime_url": format!("{speech}/v1")},
        "shut": {"base_url": format!("{speech}/v1"), "api_key": "wrong-key", "realtime_url": format!("{speech}/v1")},
        "barred": {"base_url": shared().base_url(), "api_key": openai::WRONG_KEY},
    });
    let rates =
        json!({"input_microusd_per_1m_tokens": 2_000_000, "output_microusd_per_1m_tokens": 8_000_000});
    let names = openai::behaviour::MODELS.iter().map(|(name, _)| format!("fake/{name}"));
    let mut models: serde_json::Map<_, _> = names.map(|name| (name, rates.clone())).collect();
    models.insert(
        "live/talks".to_owned(),
        json!({"input_microusd_per_1m_tokens": 4_000_000, "output_microusd_per_1m_tokens": 16_000_000,
               "cached_input_microusd_per_1m_tokens": 400_000, "audio_input_microusd_per_1m_tokens": 32_000_000,
               "audio_output_microusd_per_1m_tokens": 64_000_000, "text_model": "fake/echo"}),
    );
    let faulty = speech::FAULTS.iter().flat_map(|(fault, _)| {
        ["deepgram/aura-2-", "elevenlabs/", "cartesia/"].map(|voice| format!("{voice}{fault}"))
    });
    let mut voices: serde_json::Map<_, _> = faulty
        .chain(["fake/page", "fake/hangs", "fake/breaks", "barred/alto"].map(str::to_owned))
        .chain(
            ["deepgram/aura-2-", "elevenlabs/", "cartesia/", "fake/"]
                .map(|voice| format!("{voice}{}", speech::STOPS)),
        )
        .map(|voice| (voice, json!({"microusd_per_1k_chars": 40_000, "fallback": ["fake/alto"]})))
        .collect();
    voices.insert("fake/alto".to_owned(), json!({"microusd_per_1k_chars": 15_000}));
    let mut settings = shared_people().settings();
    settings.extend([
        ("SIDETONE_PROVIDERS", providers.to_string()),
        ("SIDETONE_MODELS", json!(models).to_string()),
        ("SIDETONE_VOICES", json!(voices).to_string()),
        ("SIDETONE_TRANSCRIBERS", json!({"fake/scribe": {"microusd_per_minute": 6_000}}).to_string()),
        ("SIDETONE_DEEPGRAM_API_KEY", speech::KEY.to_owned()),
        ("SIDETONE_DEEPGRAM_BASE_URL", speech.clone()),
        ("SIDETONE_ELEVENLABS_API_KEY", speech::KEY.to_owned()),
        ("SIDETONE_ELEVENLABS_BASE_URL", speech.clone()),
        ("SIDETONE_CARTESIA_API_KEY", speech::KEY.to_owned()),
        ("SIDETONE_CARTESIA_BASE_URL", speech),
        ("SIDETONE_ALLOW_PRIVATE_TARGETS", "1".to_owned()),
    ]);
    settings
}

/// Sends a Sandbox's request over a real socket, with a shorter deadline than the binary.
pub fn exchange(request: &HttpRequest) -> Result<HttpReply, HttpError> {
    const DEADLINE_MS: u64 = 5_000;
    // One for all: each client reads all certificates of the machine.
    static CLIENT: LazyLock<(Runtime, HttpClient)> = LazyLock::new(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let client = HttpClient::new(Outgoing::default()).expect("a client can be made");
        (runtime.expect("a runtime can be made"), client)
    });
    let mut request = request.clone();
    request.deadline_ms = request.deadline_ms.min(DEADLINE_MS);
    let carried = std::thread::spawn(|| CLIENT.0.block_on(CLIENT.1.send(request)));
    carried.join().expect("the client does not panic")
}

//! An engine over the binary's HTTP client, a fake server, and a clock that only pauses advance.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Value, json};
use sidetone::http_client::HttpClient;
use sidetone::keys::RingKeys;
use sidetone::open_files::Outgoing;
use sidetone::sandbox::{MemoryBlobs, memory};
use sidetone::system::SystemRandom;
use sidetone_engine::config::Config;
use sidetone_engine::conversation::{AssistantReply, AssistantTurn, Knowledge, Message, ToolSpec};
use sidetone_engine::models::{Answered, AssistantModel, ModelFailure};
use sidetone_engine::ports::{
    BoxFuture, Clock, Homes, Http, HttpError, HttpReply, HttpRequest, HttpStream, NoWebSockets, Ports, Queue,
    Wake,
};
use sidetone_engine::services::Services;
use sidetone_tests::fakes::openai::{Asked, OpenAi};

/// Long enough for a server on this machine, and short enough for tests of timeouts.
const DEADLINE_MS: u64 = 1_000;

/// A service with the fake server as the provider `fake`, and its own key there.
pub struct Service {
    pub services: Services,
    pub key: String,
    pauses: Arc<PauseClock>,
    /// The cost limit of one answer.
    pub most_microusd: i64,
}

pub fn fake() -> &'static OpenAi {
    static SHARED: OnceLock<OpenAi> = OnceLock::new();
    SHARED.get_or_init(OpenAi::start)
}

impl Service {
    pub fn new() -> Self {
        Self::with_models("{}")
    }

    /// With this value of `SIDETONE_MODELS`.
    pub fn with_models(models: &str) -> Self {
        static KEYS: AtomicU32 = AtomicU32::new(0);
        Self::with_key(&format!("key-{}", KEYS.fetch_add(1, Ordering::Relaxed)), models)
    }

    pub fn with_key(key: &str, models: &str) -> Self {
        let nowhere = "http://127.0.0.1:9/v1";
        let providers = json!({"fake": {"base_url": fake().base_url(), "api_key": key},
            "nowhere": {"base_url": nowhere}});
        let settings = BTreeMap::from([
            ("SIDETONE_PROVIDERS", providers.to_string()),
            ("SIDETONE_MODELS", models.to_owned()),
        ]);
        let lookup = |name: &str| settings.get(name).cloned();
        let config = Config::from_settings(lookup, "http://sandbox.example", "a secret of some length");
        let pauses = Arc::<PauseClock>::default();
        let ports = Ports {
            database: Arc::new(memory()),
            blobs: Arc::new(MemoryBlobs::default()),
            shards: None,
            clock: pauses.clone(),
            random: Arc::new(SystemRandom),
            queue: Arc::new(NoQueue),
            http: Arc::new(ShortDeadlineClient(HttpClient::new(Outgoing::default()).unwrap())),
            web_sockets: Arc::new(NoWebSockets),
            keys: Arc::new(RingKeys),
            live: Arc::new(Homes::new(pauses.clone())),
            mailer: None,
            metrics: None,
            traces: None,
        };
        Self {
            services: Services::new(config.unwrap(), ports),
            key: key.to_owned(),
            pauses,
            most_microusd: i64::MAX,
        }
    }

    /// The requests to the fake.
    pub fn asked(&self) -> Vec<Asked> {
        fake().asked(&self.key)
    }

    /// All pauses so far, in milliseconds.
    pub fn pauses(&self) -> Vec<u64> {
        self.pauses.pauses.lock().unwrap().clone()
    }

    /// The reply of an assistant with this model to a history.
    pub fn reply(&self, model: &str, history: &[Message]) -> Result<Answered<AssistantReply>, ModelFailure> {
        self.reply_knowing(model, &[], history)
    }

    pub fn reply_knowing(
        &self,
        model: &str,
        knowledge: &[Knowledge],
        history: &[Message],
    ) -> Result<Answered<AssistantReply>, ModelFailure> {
        let tools = tools();
        let turn = AssistantTurn { instructions: "Be kind.", knowledge, tools: &tools, history, seed: 7 };
        wait(async {
            let model = AssistantModel::new(&self.services.config().catalog, model, knowledge, &tools)?;
            spawnable(model.reply(self.services.ports(), &turn, self.most_microusd.into(), None)).await
        })
    }

    /// The text of the reply to `words`.
    #[track_caller]
    pub fn said(&self, model: &str, words: &str) -> String {
        match self.reply(model, &[user(words)]).unwrap().reply {
            AssistantReply::Say { text } => text,
            other => panic!("the reply has no text: {other:?}"),
        }
    }
}

pub fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, parameters: Value| ToolSpec {
        name: name.to_owned(),
        description: "A tool.".to_owned(),
        parameters: parameters.into(),
    };
    vec![
        tool("lookup", json!({"type": "object", "properties": {"order": {"type": "string"}}})),
        tool("ping", json!({"type": "object"})),
    ]
}

pub fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

pub fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(future)
}

/// In the binary, jobs run on several threads, so their futures must be `Send`.
fn spawnable<T>(future: impl Future<Output = T> + Send) -> impl Future<Output = T> + Send {
    future
}

/// The binary's client with a shorter deadline than the engine's.
struct ShortDeadlineClient(HttpClient);

impl Http for ShortDeadlineClient {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpReply, HttpError>> {
        self.0.send(request)
    }

    fn open(&self, mut request: HttpRequest) -> BoxFuture<'_, Result<HttpStream, HttpError>> {
        request.deadline_ms = request.deadline_ms.min(DEADLINE_MS);
        self.0.open(request)
    }
}

/// A clock that only pauses advance.
#[derive(Default)]
struct PauseClock {
    now_ms: AtomicI64,
    pauses: Mutex<Vec<u64>>,
}

impl Clock for PauseClock {
    fn now_ms(&self) -> i64 {
        1_767_225_600_000 + self.now_ms.load(Ordering::SeqCst)
    }

    fn sleep(&self, ms: u64) -> BoxFuture<'_, ()> {
        self.now_ms.fetch_add(i64::try_from(ms).unwrap(), Ordering::SeqCst);
        self.pauses.lock().unwrap().push(ms);
        Box::pin(async {})
    }
}

struct NoQueue;

impl Queue for NoQueue {
    fn wake(&self, _: &Wake) {}
}

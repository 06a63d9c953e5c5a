//! An engine over the box's own HTTP client, a fake, and a clock that is never waited for.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Value, json};
use sidetone::http_client::HttpClient;
use sidetone::keys::RingKeys;
use sidetone::sandbox::{MemoryBlobs, memory};
use sidetone::system::SystemRandom;
use sidetone_engine::config::Config;
use sidetone_engine::conversation::{AssistantReply, AssistantTurn, Knowledge, Message, ToolSpec};
use sidetone_engine::models::{Answered, AssistantModel, ModelFailure};
use sidetone_engine::ports::{
    BoxFuture, Clock, Http, HttpError, HttpReply, HttpRequest, HttpStream, Ports, Queue, Wake,
};
use sidetone_engine::services::Services;
use sidetone_tests::fakes::openai::{Asked, OpenAi};

/// A deadline long enough for a server on this machine, and short enough to wait for.
const DEADLINE_MS: u64 = 1_000;

/// A service whose provider `fake` is the fake, asked with a key of its own.
pub struct Service {
    pub services: Services,
    pub key: String,
    pauses: Arc<Clockwork>,
    /// What one answer may cost.
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

    /// With this SIDETONE_MODELS.
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
        let pauses = Arc::<Clockwork>::default();
        let ports = Ports {
            database: Arc::new(memory()),
            blobs: Arc::new(MemoryBlobs::default()),
            clock: pauses.clone(),
            random: Arc::new(SystemRandom),
            queue: Arc::new(NoQueue),
            http: Arc::new(Hurried(HttpClient::new().unwrap())),
            keys: Arc::new(RingKeys),
        };
        Self {
            services: Services::new(config.unwrap(), ports),
            key: key.to_owned(),
            pauses,
            most_microusd: i64::MAX,
        }
    }

    /// What the fake was asked.
    pub fn asked(&self) -> Vec<Asked> {
        fake().asked(&self.key)
    }

    /// The pauses so far, in ms.
    pub fn pauses(&self) -> Vec<u64> {
        self.pauses.pauses.lock().unwrap().clone()
    }

    /// One reply of an assistant with this model to this history.
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
            spawnable(model.reply(self.services.ports(), &turn, self.most_microusd)).await
        })
    }

    /// The words it says.
    #[track_caller]
    pub fn said(&self, model: &str, words: &str) -> String {
        match self.reply(model, &[user(words)]).unwrap().reply {
            AssistantReply::Say { text } => text,
            other => panic!("nothing is said: {other:?}"),
        }
    }
}

pub fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, parameters: Value| ToolSpec {
        name: name.to_owned(),
        description: "A tool.".to_owned(),
        parameters,
    };
    vec![
        tool("lookup", json!({"type": "object", "properties": {"order": {"type": "string"}}})),
        tool("ping", json!({"type": "object"})),
    ]
}

pub fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

/// Runs it to its end.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(future)
}

/// On a box, jobs run on threads: what they wait for has to be able to move between them.
fn spawnable<T>(future: impl Future<Output = T> + Send) -> impl Future<Output = T> + Send {
    future
}

/// The box's client with less patience than the engine.
struct Hurried(HttpClient);

impl Http for Hurried {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpReply, HttpError>> {
        self.0.send(request)
    }

    fn open(&self, mut request: HttpRequest) -> BoxFuture<'_, Result<HttpStream, HttpError>> {
        request.deadline_ms = request.deadline_ms.min(DEADLINE_MS);
        self.0.open(request)
    }
}

/// Time that only pauses move.
#[derive(Default)]
struct Clockwork {
    now_ms: AtomicI64,
    pauses: Mutex<Vec<u64>>,
}

impl Clock for Clockwork {
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

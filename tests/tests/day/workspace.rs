//! One workspace: what it has, and how it does what it does.
use std::net::Ipv4Addr;

use http::Method;
use serde_json::{Value, json};
use sidetone::sandbox::Reply;
use sidetone_engine::base::limits::{
    BODY_BYTES_MAX, DOCUMENT_BYTES_MAX, INTEGER_MAX, PAGE_ROWS_MAX, TOOL_TIMEOUT_MS_MAX,
};
use sidetone_tests::fakes::carrier::telnyx::TelnyxWire;
use sidetone_tests::fakes::carrier::{CallEvent, EndKind, PhoneCall, Public, Wire};

use crate::guest::Guest;
use crate::outside::{HANGING_RECEIVER, HANGING_TOOL, receiver_of};
use crate::plan::{Act, Character, Plan};
use crate::service::{BASE_URL, Service, request};

/// How long a telephone rings before the carrier says that it is busy.
const RINGS_MS: i64 = 20_000;
/// Webhooks of a hostile workspace.
const HANGING_WEBHOOKS: usize = 12;
/// The answers with which the service may turn down those who ask for too much.
const REFUSALS: [u16; 6] = [402, 409, 413, 422, 429, 503];

/// A workspace.
pub struct Workspace {
    pub character: Character,
    /// Its ceiling for a month, in millionths of a US dollar.
    pub ceiling: Option<i64>,
    number: usize,
    key: String,
    address: Ipv4Addr,
    assistant: String,
    simulation: String,
    /// A simulation whose tool does not answer.
    hanging: String,
    webhooks: Vec<String>,
    /// How often it was turned down.
    pub refused: usize,
    /// The most that it has spent and reserved together.
    pub most_microusd: i64,
}

impl Workspace {
    /// A workspace with what its character needs.
    pub fn create(service: &Service, number: usize, character: Character, ceiling: Option<i64>) -> Self {
        let [high, low] = u16::try_from(number).unwrap().to_be_bytes();
        let mut workspace = Self {
            character,
            ceiling,
            number,
            key: service.create_workspace(&format!("{character:?} {number}")),
            address: Ipv4Addr::new(10, 1, high, low),
            assistant: String::new(),
            simulation: String::new(),
            hanging: String::new(),
            webhooks: Vec::new(),
            refused: 0,
            most_microusd: 0,
        };
        workspace.prepare(service);
        workspace
    }

    fn prepare(&mut self, service: &Service) {
        if self.ceiling.is_some() {
            let limit = json!({"monthly_spend_limit_microusd": self.ceiling});
            assert_eq!(self.ask(service, Method::PATCH, "/workspace", Some(&limit)).status, 200);
        }
        if self.character == Character::Idle {
            return;
        }
        // A third of the honest pay nothing.
        let is_free = self.character == Character::Honest && self.number.is_multiple_of(3);
        let model = if is_free { "builtin/rules" } else { "paid/model" };
        self.assistant = self.assistant(service, model);
        self.simulation =
            self.simulation(service, &self.assistant, "Say \"One\", then \"Two\", then \"Three\".");
        match self.character {
            Character::Hostile => {
                let assistant = self.assistant(service, "builtin/rules");
                let tool = self.tool(service, "order_status", 0);
                let tools = json!({"tool_ids": [tool]});
                let path = format!("/assistants/{assistant}/tools");
                assert_eq!(self.ask(service, Method::PUT, &path, Some(&tools)).status, 200);
                self.hanging =
                    self.simulation(service, &assistant, "Ask \"What is the status of my order?\"");
                for _ in 0..HANGING_WEBHOOKS {
                    self.webhooks.push(self.webhook(service, HANGING_RECEIVER, "webhook.test"));
                }
            }
            Character::Greedy => {
                let webhook = self.webhook(service, &receiver_of(self.number), "simulation.run.completed");
                self.webhooks.push(webhook);
            }
            Character::Honest => self.webhooks.push(self.webhook(service, &receiver_of(self.number), "*")),
            Character::Idle => {}
        }
        if self.character == Character::Honest {
            let binding = json!({"assistant_id": self.assistant, "provider": "telnyx"});
            let path = format!("/numbers/{}", self.telephone());
            assert_eq!(self.ask(service, Method::PUT, &path, Some(&binding)).status, 200);
        }
    }

    /// Does it. What an honest workspace does succeeds; the others may be turned down.
    pub fn act(&mut self, service: &mut Service, plan: &mut Plan, act: &Act) {
        match act {
            Act::Look => {
                let looked = self.get(service, "/workspace");
                assert!(looked["spent_this_month_microusd"].is_i64(), "{looked}");
            }
            Act::Run => self.run(service, &self.simulation.clone(), &json!({"seed": 7})),
            Act::Talk => {
                let guest = Guest::talking(&service.time, &["Hello.", "When do you open?"], 3_000);
                self.talk(service, guest);
            }
            Act::Call => self.call(service, plan),
            Act::IsBusy(call) => Self::is_busy(service, call),
            Act::Test => {
                for webhook in self.webhooks.clone() {
                    self.try_post(service, &format!("/webhooks/{webhook}/test"), &json!({}));
                }
            }
            Act::Edit => self.edit(service),
            Act::ManyRuns(count) => {
                for seed in 0..*count {
                    self.run(service, &self.simulation.clone(), &json!({"seed": seed}));
                }
            }
            Act::ManyTalks(count) => {
                for _ in 0..*count {
                    let guest = Guest::silent(&service.time);
                    self.talk(service, guest);
                }
            }
            Act::Lists => self.lists(service),
            Act::HangingRuns(count) => {
                for _ in 0..*count {
                    self.run(service, &self.hanging.clone(), &json!({"max_cost_microusd": INTEGER_MAX}));
                }
            }
            Act::DearRuns(count) => {
                for _ in 0..*count {
                    self.run(service, &self.simulation.clone(), &json!({"max_cost_microusd": INTEGER_MAX}));
                }
            }
            Act::LargeBodies => self.large_bodies(service),
            Act::HugeRuns(count) => self.huge_runs(service, *count),
            Act::Overfill(count) => {
                let one = json!({"runs_at_once": 1});
                assert_eq!(self.ask(service, Method::PATCH, "/workspace", Some(&one)).status, 200);
                for _ in 0..*count {
                    self.run(service, &self.hanging.clone(), &json!({}));
                }
            }
        }
        if self.ceiling.is_some() {
            self.count_money(service);
        }
    }

    /// Notes what it has spent and reserved.
    pub fn count_money(&mut self, service: &Service) {
        let money = self.get(service, "/workspace");
        let of = |name: &str| money[name].as_i64().unwrap();
        let both = of("spent_this_month_microusd") + of("reserved_microusd");
        self.most_microusd = self.most_microusd.max(both);
    }

    /// Everything in a list.
    pub fn list(&self, service: &Service, path: &str, name: &str) -> Vec<Value> {
        let (mut all, mut next) = (Vec::new(), Some(format!("{path}?limit={PAGE_ROWS_MAX}")));
        while let Some(path) = next.take() {
            let list = self.ask(service, Method::GET, &path, None);
            assert_eq!(list.status, 200, "{path}: {}", list.json);
            // Most lists are arrays; those of calls and runs are objects.
            let page = list.json.as_array().or(list[name].as_array());
            all.extend(page.unwrap().iter().cloned());
            let link = list.headers.get("link").map(|link| link.to_str().unwrap());
            next = link.map(|link| link.split(['<', '>']).nth(1).unwrap().replace(BASE_URL, ""));
        }
        all
    }

    /// `GET path`, which succeeds.
    #[track_caller]
    pub fn get(&self, service: &Service, path: &str) -> Value {
        let reply = self.ask(service, Method::GET, path, None);
        assert_eq!(reply.status, 200, "{:?} {path}: {}", self.character, reply.json);
        reply.json
    }

    fn ask(&self, service: &Service, method: Method, path: &str, body: Option<&Value>) -> Reply {
        service.send(self.address, request(method, path, &self.key, body))
    }

    /// Creates something; its id.
    #[track_caller]
    fn create_one(&self, service: &Service, path: &str, body: &Value) -> String {
        let reply = self.ask(service, Method::POST, path, Some(body));
        assert_eq!(reply.status, 201, "{path}: {}", reply.json);
        reply["id"].as_str().unwrap().to_owned()
    }

    /// Posts something that only those who ask for too much are refused.
    fn try_post(&mut self, service: &Service, path: &str, body: &Value) -> Reply {
        let reply = self.ask(service, Method::POST, path, Some(body));
        if !(200..300).contains(&reply.status) {
            self.is_refused(reply.status, &reply.json);
        }
        reply
    }

    fn is_refused(&mut self, status: u16, why: &Value) {
        assert_ne!(self.character, Character::Honest, "an honest workspace is refused: {why}");
        assert!(REFUSALS.contains(&status), "{status}: {why}");
        self.refused += 1;
    }

    fn assistant(&self, service: &Service, model: &str) -> String {
        let body =
            json!({"name": "Desk", "instructions": "Be brief.", "first_message": "Hello!", "model": model});
        self.create_one(service, "/assistants", &body)
    }

    /// A simulation whose caller and judge are free.
    fn simulation(&self, service: &Service, assistant: &str, instructions: &str) -> String {
        let persona = json!({"name": "Ada", "system_prompt": "Be kind.", "model": "builtin/rules"});
        let persona = self.create_one(service, "/simulations/personas", &persona);
        let scenario =
            json!({"name": "Questions", "instructions": instructions, "judge_model": "builtin/rules"});
        let scenario = self.create_one(service, "/simulations/scenarios", &scenario);
        let body = json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario});
        self.create_one(service, "/simulations", &body)
    }

    /// A tool that does not answer, with this many bytes of parameters.
    fn tool(&self, service: &Service, name: &str, bytes: usize) -> String {
        let parameters = json!({"type": "object", "properties": {}, "description": "x".repeat(bytes)});
        let body = json!({"name": name, "url": HANGING_TOOL, "timeout_ms": TOOL_TIMEOUT_MS_MAX,
            "description": "Looks up the status of an order", "parameters": parameters});
        self.create_one(service, "/tools", &body)
    }

    fn webhook(&self, service: &Service, url: &str, events: &str) -> String {
        self.create_one(service, "/webhooks", &json!({"url": url, "events": [events]}))
    }

    fn telephone(&self) -> String {
        format!("+1415555{:04}", self.number)
    }

    fn run(&mut self, service: &Service, simulation: &str, body: &Value) {
        self.try_post(service, &format!("/simulations/{simulation}/runs"), body);
    }

    fn talk(&mut self, service: &mut Service, guest: Guest) {
        let path = format!("/assistants/{}/test-token", self.assistant);
        let token = self.try_post(service, &path, &json!({"max_duration_seconds": 120}));
        let Some(url) = token["websocket_url"].as_str() else { return };
        let (_, path) = url.split_once(".example").unwrap();
        if let Err(refusal) = service.connect(self.address, path, guest) {
            self.is_refused(refusal.status, &refusal.json);
        }
    }

    fn call(&mut self, service: &Service, plan: &mut Plan) {
        let body = json!({"assistant_id": self.assistant, "to": "+14155557777", "from": self.telephone()});
        self.create_one(service, "/calls/outbound", &body);
        let (order, carrier_call_id) = service.outside.last_order().unwrap();
        let call = PhoneCall {
            carrier_call_id,
            other_id: "0ccc7b54-4df3-4bca-a65a-3da1ecc777f0".to_owned(),
            from: self.telephone(),
            to: "+14155557777".to_owned(),
            outbound: true,
            status_url: order["webhook_url"].as_str().unwrap().to_owned(),
            voice_url: format!("{BASE_URL}/carriers/telnyx/voice"),
            format: order["stream_url"].as_str().unwrap().to_owned(),
            detection: None,
        };
        plan.add(service.now_ms() + RINGS_MS, self.number, Act::IsBusy(Box::new(call)));
    }

    fn is_busy(service: &Service, call: &PhoneCall) {
        let public = Public { base_url: BASE_URL.to_owned() };
        let event = CallEvent::Ended { how: EndKind::Busy, seconds: 0 };
        let callback = TelnyxWire.callback(&public, call, &event, 0, service.now_ms() / 1_000).unwrap();
        let path = callback.url.strip_prefix(BASE_URL).unwrap();
        let mut request = http::Request::builder().method(callback.method).uri(path);
        for (name, value) in &callback.headers {
            request = request.header(*name, value);
        }
        let reply = service.send(Ipv4Addr::LOCALHOST, request.body(callback.body.into()).unwrap());
        assert_eq!(reply.status, 200, "{}", reply.json);
    }

    /// Changes the assistant as it was read.
    fn edit(&self, service: &Service) {
        let path = format!("/assistants/{}", self.assistant);
        let revision = self.get(service, &path)["revision"].as_i64().unwrap();
        let body = json!({"instructions": format!("Be brief. This is edit {revision}.")});
        let mut edit = request(Method::PATCH, &path, &self.key, Some(&body));
        edit.headers_mut().insert("if-match", format!("\"{revision}\"").parse().unwrap());
        let edited = service.send(self.address, edit);
        assert_eq!(
            (edited.status, edited["revision"].as_i64()),
            (200, Some(revision + 1)),
            "{}",
            edited.json
        );
    }

    fn lists(&self, service: &Service) {
        self.list(service, "/simulations/runs", "runs");
        self.list(service, "/calls", "calls");
        self.get(service, "/calls?search=answer&limit=100");
        self.list(service, &format!("/webhooks/{}/deliveries", self.webhooks[0]), "deliveries");
    }

    fn large_bodies(&mut self, service: &Service) {
        for bytes in [BODY_BYTES_MAX - 40, BODY_BYTES_MAX + 1] {
            let body = json!({"name": "Large", "content": "x".repeat(bytes)});
            self.try_post(service, "/knowledge", &body);
        }
    }

    /// An assistant of more than a megabyte.
    fn huge_runs(&mut self, service: &Service, count: usize) {
        const TOOLS: usize = 40;
        const TOOL_BYTES: usize = 30 * 1024;
        let assistant = self.assistant(service, "builtin/rules");
        let tools: Vec<String> =
            (0..TOOLS).map(|nth| self.tool(service, &format!("tool_{nth}"), TOOL_BYTES)).collect();
        let documents: Vec<String> = (0..4)
            .map(|nth| {
                let body = json!({"name": format!("Document {nth}"), "content": "x ".repeat(DOCUMENT_BYTES_MAX / 2)});
                self.create_one(service, "/knowledge", &body)
            })
            .collect();
        let attached =
            [("tools", json!({"tool_ids": tools})), ("knowledge", json!({"knowledge_ids": documents}))];
        for (what, ids) in attached {
            let path = format!("/assistants/{assistant}/{what}");
            assert_eq!(self.ask(service, Method::PUT, &path, Some(&ids)).status, 200);
        }
        let simulation = self.simulation(service, &assistant, "Say \"One\".");
        (0..count).for_each(|_| self.run(service, &simulation, &json!({})));
    }
}

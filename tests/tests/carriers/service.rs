//! A minimal service: an adapter between sockets.
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderName, HeaderValue};
use ring::signature::{ED25519, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::json;
use sidetone_engine::base::phone::E164;
use sidetone_engine::carriers::{
    Authorization, Callback, Carrier, CarrierEvent, CarrierName, Carriers as Adapters, Check, Connect,
    Ending, MediaEvent, MediaMessage, Order, Outgoing, Placed, Progress, Refusal, Reply,
};
use sidetone_engine::conversation::EndedReason;
use sidetone_engine::ports::HttpReply;
use sidetone_tests::fakes::carrier::all::BASE_URL;
use sidetone_tests::fakes::carrier::{CarrierServer, Carriers, Phone};
use sidetone_tests::wire;
use tungstenite::Message;
use tungstenite::handshake::server::{Request, Response};

/// A number of the service.
pub const OURS: &str = "+14155550100";
const COMMAND_ID: &str = "0b6c6d5e-6c0e-4a58-9d0a-0f6b8a2f3c11";
const SAID: &[i16] = &[8_031; 480];

/// A minimal service.
#[derive(Clone)]
pub struct Service {
    pub provider: CarrierName,
    pub carrier: Arc<dyn Carrier>,
    pub server: CarrierServer,
    pub observed: Arc<Mutex<Observed>>,
}

#[derive(Default)]
pub struct Observed {
    pub events: Vec<CarrierEvent>,
    pub lines: Vec<MediaEvent>,
    pub problems: Vec<String>,
    pub refuses: bool,
    pub region_url: Option<String>,
}

impl Service {
    pub fn start(provider: CarrierName) -> Self {
        let carriers = Carriers::start();
        let settings: BTreeMap<&str, String> = carriers.settings().into_iter().collect();
        let adapters = Adapters::from_settings(|name| settings.get(name).cloned()).unwrap();
        let carrier = adapters.get(provider).expect("the carrier is configured").clone();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        carriers.serve(listener.local_addr().unwrap());
        let server = carriers.get(provider.as_str()).clone();
        let service = Self { provider, carrier, server, observed: Arc::default() };
        let ours = service.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let ours = ours.clone();
                std::thread::spawn(move || ours.serve(stream));
            }
        });
        service
    }

    fn url(&self, what: &str) -> String {
        format!("{BASE_URL}/carriers/{}/{what}", self.provider.as_str())
    }

    fn media_url(&self) -> String {
        self.url("media/good").replace("https:", "wss:")
    }

    pub fn place(&self, to: &str) -> Placed {
        let (from, to) = (E164::parse(OURS).unwrap(), E164::parse(to).unwrap());
        let (media_url, status_url, answer_url) =
            (self.media_url(), self.url("status/t"), self.url("voice/t"));
        let order = Order {
            from: &from,
            to: &to,
            media_url: &media_url,
            status_url: &status_url,
            answer_url: &answer_url,
            command_id: COMMAND_ID,
            ring_seconds: 30,
            voicemail: None,
            max_seconds: 600,
            now_ms: now_ms(),
        };
        self.carrier.placed(&send(&self.carrier.place(&order)))
    }

    pub fn accepted(&self) -> Phone {
        let placed = self.place("+442070007777");
        let phone = self.server.rings("+442070007777");
        let carrier_call_id = phone.id().to_owned();
        assert_eq!(placed, Placed::Accepted { carrier_call_id });
        assert_eq!((phone.call().from.as_str(), self.server.invalid_requests()), (OURS, vec![]));
        phone
    }

    pub fn hang_up(&self, phone: &Phone, answered: bool) {
        let region_url = self.observed.lock().unwrap().region_url.clone();
        let ending = Ending {
            carrier_call_id: phone.id(),
            answered,
            region_url: region_url.as_deref(),
            command_id: COMMAND_ID,
            now_ms: now_ms(),
        };
        self.carrier.hung_up(&send(&self.carrier.hang_up(&ending))).unwrap();
    }

    fn serve(&self, stream: TcpStream) {
        let mut head = vec![0; 16 * 1_024];
        let mut length = 0;
        while !head[..length].windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            length = stream.peek(&mut head).unwrap();
        }
        if String::from_utf8_lossy(&head[..length]).to_ascii_lowercase().contains("upgrade: websocket") {
            return self.media(stream);
        }
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let mut words = line.split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let mut headers = HeaderMap::new();
        loop {
            line.clear();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value.trim()).unwrap(),
            );
        }
        let length =
            headers.get("content-length").and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let url = format!("{BASE_URL}{path}");
        let callback =
            Callback { method: &method, url: &url, headers: &headers, body: &body, now_ms: now_ms() };
        let (status, content_type, body) = match is_genuine(&self.carrier.check(&callback)) {
            true => self.callback(&callback),
            false => (403, "text/plain", String::new()),
        };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let _ = reader.get_mut().write_all(answer.as_bytes());
    }

    fn callback(&self, callback: &Callback<'_>) -> (u16, &'static str, String) {
        let events = self.carrier.read(callback).unwrap_or_else(|problem| {
            self.observed.lock().unwrap().problems.push(problem);
            Vec::new()
        });
        let mut reply = self.carrier.acknowledge();
        for event in &events {
            match event {
                CarrierEvent::Incoming(call) if self.observed.lock().unwrap().refuses => {
                    reply = self.carrier.refuse(call, Refusal::Unbound);
                }
                CarrierEvent::Incoming(call) => {
                    self.observed.lock().unwrap().region_url.clone_from(&call.region_url);
                    reply = self.connect(&call.carrier_call_id, &call.to);
                }
                CarrierEvent::Asked { carrier_call_id } => reply = self.connect(carrier_call_id, OURS),
                CarrierEvent::Report(_) => {}
            }
        }
        self.observed.lock().unwrap().events.extend(events);
        match reply {
            Reply::Document { content_type, body } => (200, content_type, body),
            Reply::Command(command) => {
                let reply = send(&command);
                assert!((200..300).contains(&reply.status), "{reply:?}");
                (200, "text/plain", String::new())
            }
        }
    }

    fn connect(&self, carrier_call_id: &str, our_number: &str) -> Reply {
        self.carrier.answer(&Connect {
            carrier_call_id,
            our_number,
            media_url: &self.media_url(),
            status_url: &self.url("status/t"),
            command_id: COMMAND_ID,
            now_ms: now_ms(),
            max_seconds: 600,
        })
    }

    /// Repeats the audio that it hears. Key `1` adds a mark, key `2` discards unplayed audio.
    #[allow(clippy::result_large_err, reason = "the library's own type")]
    fn media(&self, stream: TcpStream) {
        let mut genuine = false;
        let mut socket = tungstenite::accept_hdr(stream, |request: &Request, response: Response| {
            let url = format!("{BASE_URL}{}", request.uri()).replace("https:", "wss:");
            let callback = Callback {
                method: "GET",
                url: &url,
                headers: request.headers(),
                body: b"",
                now_ms: now_ms(),
            };
            let check = self.carrier.check_media(&callback);
            genuine = check == Check::Unsigned || is_genuine(&check);
            Ok(response)
        })
        .unwrap();
        if !genuine {
            self.observed.lock().unwrap().problems.push("the media socket is not genuine".to_owned());
        }
        let mut line = self.carrier.media_codec();
        let said = |message: MediaMessage| match message {
            MediaMessage::Text(text) => Message::text(text),
            MediaMessage::Binary(bytes) => Message::binary(bytes),
        };
        while let Ok(message) = socket.read() {
            let message = match message {
                Message::Text(text) => MediaMessage::Text(text.as_str().to_owned()),
                Message::Binary(bytes) => MediaMessage::Binary(bytes),
                _ => continue,
            };
            let events = line.read(message.clone()).unwrap_or_else(|problem| {
                self.observed.lock().unwrap().problems.push(format!("{problem:?}: {message:?}"));
                Vec::new()
            });
            for event in &events {
                match event {
                    MediaEvent::Audio(samples) if samples.iter().any(|sample| sample.abs() > 100) => {
                        assert_eq!(samples.len(), line.format().rate.frame_samples());
                        let message = line.audio(samples);
                        socket.send(said(message)).unwrap();
                    }
                    MediaEvent::Dtmf('1') => socket.send(said(line.mark("one"))).unwrap(),
                    MediaEvent::Dtmf('2') => socket.send(said(line.clear())).unwrap(),
                    _ => {}
                }
            }
            let silence = |event: &MediaEvent| matches!(event, MediaEvent::Audio(_));
            self.observed.lock().unwrap().lines.extend(events.into_iter().filter(|event| !silence(event)));
        }
    }

    #[track_caller]
    pub fn until(&self, what: &str, wanted: impl Fn(&Observed) -> bool) {
        let started = Instant::now();
        while !wanted(&self.observed.lock().unwrap()) {
            let observed = self.observed.lock().unwrap();
            let late = started.elapsed() > Duration::from_secs(60);
            assert!(!late, "{what}: {:?} {:?} {:?}", observed.events, observed.lines, observed.problems);
            drop(observed);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn progress(&self) -> Vec<Progress> {
        let observed = self.observed.lock().unwrap();
        assert!(observed.problems.is_empty(), "{:?}", observed.problems);
        let reports = observed.events.iter().filter_map(|event| match event {
            CarrierEvent::Report(report) => report.progress.clone(),
            _ => None,
        });
        reports.collect()
    }

    /// Why the call ended, according to the first report of an end.
    pub fn ended(&self) -> EndedReason {
        let ends = self.progress().into_iter().find_map(|progress| match progress {
            Progress::Ended(end) => Some(end.reason),
            _ => None,
        });
        ends.unwrap_or_else(|| panic!("no report of an end: {:?}", self.observed.lock().unwrap().events))
    }

    pub fn ids(&self) -> Vec<String> {
        let observed = self.observed.lock().unwrap();
        let id = |event: &CarrierEvent| match event {
            CarrierEvent::Incoming(call) => call.carrier_call_id.clone(),
            CarrierEvent::Asked { carrier_call_id } => carrier_call_id.clone(),
            CarrierEvent::Report(report) => report.carrier_call_id.clone(),
        };
        observed.events.iter().map(id).collect()
    }

    /// Holds a conversation: speaks, listens, presses keys.
    pub fn converse(&self, phone: &mut Phone) {
        let said: Vec<i16> = SAID.iter().copied().cycle().take(phone.rate_hz() as usize / 5).collect();
        phone.say_at_once(&said);
        let heard = phone.hear_until("the echo", |heard| (heard.len() >= said.len()).then(|| heard.to_vec()));
        // Mu-law encodes 8,031 exactly, or within one step.
        assert!(heard.iter().all(|sample| (sample - 8_031).abs() < 256), "{heard:?}");
        phone.key('1');
        self.until("the mark", |observed| observed.lines.contains(&MediaEvent::Played("one".to_owned())));
        for key in ['0', '*', '#'] {
            phone.key(key);
            self.until("the key", |observed| observed.lines.contains(&MediaEvent::Dtmf(key)));
        }
        let long: Vec<i16> = SAID.iter().copied().cycle().take(phone.rate_hz() as usize).collect();
        phone.say_at_once(&long);
        phone.hear_until("the beginning", |again| (again.len() > heard.len()).then_some(()));
        phone.key('2');
        let cleared = loop {
            if let Some(cleared) = phone.cleared().first() {
                break cleared.clone();
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        assert!(cleared.dropped_samples > 0 && cleared.heard_samples < heard.len() + long.len());
        assert!(
            self.observed
                .lock()
                .unwrap()
                .lines
                .iter()
                .any(|event| matches!(event, MediaEvent::Started { .. }))
        );
        assert_eq!(phone.problems(), Vec::<String>::new());
    }
}

fn is_genuine(check: &Check) -> bool {
    match check {
        Check::Genuine | Check::GenuineToken { .. } => true,
        Check::Ed25519 { public_key, message, signature } => {
            UnparsedPublicKey::new(&ED25519, public_key).verify(message, signature).is_ok()
        }
        Check::Unsigned | Check::Forged(_) => false,
    }
}

fn send(outgoing: &Outgoing) -> HttpReply {
    let (scheme, rest) = outgoing.url.split_once("://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    assert_eq!(scheme, "http");
    let address: SocketAddr = host.parse().unwrap();
    let mut request = http::Request::builder().method(outgoing.method).uri(format!("/{path}"));
    request = request.header("authorization", authorization(&outgoing.authorization));
    if let Some(content_type) = outgoing.content_type {
        request = request.header("content-type", content_type);
    }
    let request = request.body(outgoing.body.clone()).unwrap();
    let reply = wire::send(address, &request).unwrap();
    let text =
        |(name, value): (&HeaderName, &HeaderValue)| (name.to_string(), value.to_str().unwrap().to_owned());
    HttpReply { status: reply.status, headers: reply.headers.iter().map(text).collect(), body: reply.body }
}

fn authorization(authorization: &Authorization) -> String {
    match authorization {
        Authorization::Basic { user, password } => {
            format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.reveal())))
        }
        Authorization::Bearer(key) => format!("Bearer {}", key.reveal()),
        Authorization::Jwt { claims, key } => {
            let head = json!({"alg": "RS256", "typ": "JWT"}).to_string();
            let signed =
                format!("{}.{}", URL_SAFE_NO_PAD.encode(head), URL_SAFE_NO_PAD.encode(claims.to_string()));
            let key = RsaKeyPair::from_pkcs8(key.pkcs8()).unwrap();
            let mut signature = vec![0; key.public().modulus_len()];
            let random = ring::rand::SystemRandom::new();
            key.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature).unwrap();
            format!("Bearer {signed}.{}", URL_SAFE_NO_PAD.encode(signature))
        }
    }
}

fn now_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

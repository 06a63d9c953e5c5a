//! The processes under load: the service, and another framework's worker.
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use serde_json::{Value, json};
use sidetone_tests::fakes::carrier::twilio::TwilioWire;
use sidetone_tests::fakes::carrier::{
    Carriers, EndKind, OpenError, Phone, PhoneCall, Wire, WireMessage, handshake,
};
use sidetone_tests::process::{Client, Folder, Server, bootstrap_key};

use crate::desk;
use crate::speech_stand_in::{StandIn, term};
use crate::workerd::Workerd;

/// A process that answers calls.
pub trait Worker: Send + Sync {
    fn pid(&self) -> u32;
    /// A call that is answered; `None` if it is declined.
    fn answer(&self, call: usize) -> Option<Answered>;
    /// What else is to be told.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The carrier's end of a call.
pub struct Answered {
    pub socket: TcpStream,
    /// What the carrier sends first.
    pub opening: Vec<String>,
    phone: Option<Phone>,
}

impl Answered {
    /// Tells the service that the call is over.
    pub fn over(mut self) {
        if let Some(phone) = &mut self.phone {
            phone.over(EndKind::HungUp);
        }
    }
}

/// Whose voice the assistants have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voices {
    /// Those of the stand-in.
    Provider,
    /// `builtin/tone`, with `builtin/rules`.
    Tone,
}

/// The release binary, with an assistant and a number for each call.
pub struct Sidetone {
    server: Server,
    key: String,
    _folder: Folder,
}

impl Sidetone {
    pub fn start(stand_in: &StandIn, voices: Voices, calls: usize, more: &[(&'static str, &str)]) -> Self {
        let (folder, key) = (Folder::new(), bootstrap_key(5));
        let mut settings = stand_in.settings();
        settings.push(("SIDETONE_BOOTSTRAP_KEYS", key.clone()));
        settings.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let server = Server::start(&folder.path().join("data"), &settings);
        furnish(server.address(), server.connect(&key), voices, calls);
        Self { server, key, _folder: folder }
    }
}

/// Creates the assistants and numbers, and lets the carriers call there.
fn furnish(address: SocketAddr, mut client: Client, voices: Voices, calls: usize) {
    Carriers::shared().serve(address);
    desk::desk(&mut client, calls);
    for call in 0..calls {
        let made = client.expect(201, "POST", "/assistants", Some(&assistant(call, voices)));
        let binding = json!({"assistant_id": made["id"], "provider": "twilio"});
        client.expect(200, "PUT", &format!("/numbers/{}", number(call)), Some(&binding));
    }
}

fn assistant(call: usize, voices: Voices) -> Value {
    let mut assistant = json!({"name": "Front desk", "instructions": "Be kind.", "first_message": "Hello.",
        "record": false, "speech": {"think_early": false, "end_of_turn_min_ms": 100}});
    let own = match voices {
        Voices::Provider => {
            json!({"model": "local/echo", "voice": "local/alto", "transcriber": "local/scribe",
            "keyterms": [term(call)]})
        }
        Voices::Tone => json!({"model": "builtin/rules", "voice": "builtin/tone"}),
    };
    let fields = own.as_object().expect("an object").clone();
    assistant.as_object_mut().expect("an object").extend(fields);
    assistant
}

fn number(call: usize) -> String {
    format!("+44207{call:06}7")
}

impl Worker for Sidetone {
    fn pid(&self) -> u32 {
        self.server.pid()
    }

    fn answer(&self, call: usize) -> Option<Answered> {
        by_phone(call)
    }

    fn remarks(&self) -> Vec<String> {
        let mut client = self.server.connect(&self.key);
        let answer = client.expect(200, "GET", "/calls?outcome=busy&limit=1", None);
        let why = answer["calls"][0]["transcript"][0]["text"].as_str();
        let complaints = |line: &&str| line.contains(" ERROR ");
        let log = self.server.log();
        why.map(|why| format!("the last declined call: {why}"))
            .into_iter()
            .chain(log.lines().filter(complaints).take(5).map(str::to_owned))
            .collect()
    }
}

/// A call of somebody to the number of an assistant.
fn by_phone(call: usize) -> Option<Answered> {
    let carrier = Carriers::shared().get("twilio");
    let mut phone = carrier.call(&format!("+4477{call:06}7"), &number(call));
    if !phone.is_wanted() {
        return None;
    }
    phone.pick_up();
    // The service may decline it here, too.
    let (socket, opening) = match phone.bare_socket() {
        Ok(open) => open,
        Err(OpenError::Refused(..)) => return None,
        Err(OpenError::Broken(error)) => panic!("call {call}: {error}"),
    };
    Some(Answered { socket, opening: opening.into_iter().map(text).collect(), phone: Some(phone) })
}

/// The Worker in workerd, with an assistant and a number for each call.
pub struct Edge(Workerd);

impl Edge {
    pub fn start(stand_in: &StandIn, voices: Voices, calls: usize) -> Self {
        let key = bootstrap_key(5);
        let mut settings = stand_in.settings();
        settings.push(("SIDETONE_BOOTSTRAP_KEYS", key.clone()));
        settings.push(("SIDETONE_LATE_PERCENT", "100".to_owned()));
        let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let workerd = Workerd::start(&settings);
        furnish(workerd.ours, Client::new(workerd.ours, &key), voices, calls);
        Self(workerd)
    }
}

impl Worker for Edge {
    fn pid(&self) -> u32 {
        self.0.pid
    }

    fn answer(&self, call: usize) -> Option<Answered> {
        by_phone(call)
    }
}

/// Another framework's worker, which speaks Twilio's protocol at `/media`.
pub struct Other {
    server: Server,
    _folder: Folder,
}

impl Other {
    /// Starts a program that prints where it listens; its argument is where the providers are.
    pub fn start(command: &mut Command, stand_in: &StandIn) -> Self {
        let folder = Folder::new();
        let log = folder.path().join("log");
        let file = std::fs::File::create(&log).expect("a log file");
        Self { server: Server::spawn(command.arg(stand_in.base_url()).stderr(file), log), _folder: folder }
    }
}

impl Worker for Other {
    fn pid(&self) -> u32 {
        self.server.pid()
    }

    fn answer(&self, call: usize) -> Option<Answered> {
        let socket = match handshake(self.server.address(), "/media", &[]) {
            Ok(socket) => socket,
            Err(OpenError::Refused(..)) => return None,
            Err(OpenError::Broken(error)) => panic!("call {call}: {error}"),
        };
        let call = PhoneCall {
            carrier_call_id: format!("CA{call:032}"),
            other_id: format!("MZ{call:032}"),
            from: String::new(),
            to: String::new(),
            outbound: false,
            status_url: String::new(),
            voice_url: String::new(),
            format: String::new(),
            detection: None,
        };
        let opening = TwilioWire.media(&call).opening().into_iter().map(text).collect();
        let socket = socket.get_ref().try_clone().expect("a socket has copies");
        Some(Answered { socket, opening, phone: None })
    }

    fn remarks(&self) -> Vec<String> {
        self.server.log().lines().filter(|line| line.contains("ERROR")).take(5).map(str::to_owned).collect()
    }
}

fn text(message: WireMessage) -> String {
    match message {
        WireMessage::Text(text) => text,
        WireMessage::Binary(_) => unreachable!("Twilio's messages are text"),
    }
}

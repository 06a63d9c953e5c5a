//! Tests of the fake server, with a fictional carrier and a scripted service.
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::{Value, json};
use tungstenite::Message;
use tungstenite::protocol::CloseFrame;

use super::*;

struct Plain;

impl Wire for Plain {
    fn provider(&self) -> &'static str {
        "plain"
    }

    fn settings(&self, api_url: &str) -> Vec<(&'static str, String)> {
        vec![("SIDETONE_PLAIN_BASE_URL", api_url.to_owned())]
    }

    fn read(&self, request: &ApiRequest) -> Result<Command, ApiReply> {
        let refusal = || ApiReply::json(404, &json!({"error": "no such thing"}));
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        let words: Vec<&str> = request.path.split('/').skip(1).collect();
        let connect = || Instruction::Connect { media_url: text("media_url"), status_url: None };
        match words[..] {
            ["orders"] => Ok(Command::Place {
                from: text("from"),
                to: text("to"),
                status_url: text("status_url"),
                instruction: body["media_url"].is_string().then(connect),
                answer_url: body["answer_url"].as_str().map(str::to_owned),
                detection: None,
            }),
            ["calls", id, "answer"] => {
                Ok(Command::Answer { carrier_call_id: id.to_owned(), instruction: connect() })
            }
            ["calls", id, "refuse"] => Ok(Command::Refuse { carrier_call_id: id.to_owned() }),
            ["calls", id, "end"] => Ok(Command::HangUp { carrier_call_id: id.to_owned() }),
            _ => Err(refusal()),
        }
    }

    fn placed(&self, call: &PhoneCall) -> ApiReply {
        ApiReply::json(201, &json!({"id": call.carrier_call_id}))
    }

    fn refused(&self, behaviour: Behaviour) -> Option<ApiReply> {
        match behaviour {
            Behaviour::Take | Behaviour::Late | Behaviour::Hang | Behaviour::Cut => None,
            Behaviour::Unauthorized => Some(ApiReply::empty(401)),
            _ => Some(ApiReply::empty(500)),
        }
    }

    fn done(&self, _: &Command) -> ApiReply {
        ApiReply::empty(204)
    }

    fn gone(&self) -> ApiReply {
        ApiReply::empty(404)
    }

    fn callback(
        &self,
        _: &Public,
        call: &PhoneCall,
        event: &CallEvent,
        nth: u32,
        now_s: i64,
    ) -> Option<CallbackRequest> {
        let url = match event {
            CallEvent::Incoming | CallEvent::Asked => call.voice_url.clone(),
            CallEvent::Priced { .. } | CallEvent::Transferring { .. } => return None,
            _ => call.status_url.clone(),
        };
        let event = format!("{event:?}");
        let body = json!({"id": call.carrier_call_id, "event": event, "nth": nth}).to_string();
        let headers =
            vec![("x-signature", format!("{now_s}")), ("content-type", "application/json".to_owned())];
        Some(CallbackRequest { method: "POST", url, headers, body: body.into_bytes() })
    }

    fn instruction(&self, status: u16, _: &str, body: &[u8]) -> Result<Instruction, String> {
        let body: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        match body["do"].as_str() {
            Some("wait") => Ok(Instruction::Wait),
            Some("end") => Ok(Instruction::HangUp),
            Some(url) => Ok(Instruction::Connect { media_url: url.to_owned(), status_url: None }),
            None => Err(format!("a {status} without an instruction")),
        }
    }

    fn socket_headers(&self, url: &str) -> Vec<(&'static str, String)> {
        vec![("x-signature", url.to_owned())]
    }

    fn media(&self, _: &PhoneCall) -> Box<dyn MediaWire> {
        Box::new(PlainMedia)
    }
}

struct PlainMedia;

fn text(value: &Value) -> WireMessage {
    WireMessage::Text(value.to_string())
}

impl MediaWire for PlainMedia {
    fn rate_hz(&self) -> u32 {
        8_000
    }

    fn opening(&mut self) -> Vec<WireMessage> {
        vec![text(&json!({"begin": true}))]
    }

    fn audio(&mut self, samples: &[i16]) -> WireMessage {
        assert_eq!(samples.len() % 160, 0, "frames of 20 ms");
        WireMessage::Binary(samples.iter().flat_map(|sample| sample.to_le_bytes()).collect())
    }

    fn key(&mut self, key: char) -> WireMessage {
        text(&json!({"key": key}))
    }

    fn played(&mut self, name: &str) -> WireMessage {
        text(&json!({"played": name}))
    }

    fn cleared(&mut self, marks: &[String]) -> Vec<WireMessage> {
        vec![text(&json!({"cleared": marks}))]
    }

    fn closing(&mut self) -> Vec<WireMessage> {
        vec![text(&json!({"end": true}))]
    }

    fn read(&mut self, message: &WireMessage) -> Result<FromService, String> {
        match message {
            WireMessage::Binary(bytes) => {
                let samples = bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]]));
                Ok(FromService::Audio(samples.collect()))
            }
            WireMessage::Text(text) if text == "clear" => Ok(FromService::Clear),
            WireMessage::Text(text) => match text.strip_prefix("mark ") {
                Some(name) => Ok(FromService::Mark(name.to_owned())),
                None => Err("neither mark nor clear".to_owned()),
            },
        }
    }
}

/// A service that echoes audio. Keys: `1` requests a mark, `2` a clear, `3` sends an invalid message, `9` closes.
#[derive(Clone)]
struct Service {
    address: SocketAddr,
    /// Callbacks, and text messages of the media socket.
    came: Arc<Mutex<Vec<String>>>,
    answer: Arc<Mutex<String>>,
}

const BASE_URL: &str = "http://service.example";

impl Service {
    fn start() -> (Self, CarrierServer) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (came, answer) = (Arc::default(), Arc::new(Mutex::new(String::new())));
        let service = Self { address: listener.local_addr().unwrap(), came, answer };
        let ours = service.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let ours = ours.clone();
                std::thread::spawn(move || ours.serve(stream));
            }
        });
        let server = CarrierServer::start(Plain);
        server.serve(service.address, BASE_URL);
        (service, server)
    }

    fn serve(&self, stream: TcpStream) {
        let mut head = [0; 4_096];
        let mut read = 0;
        while !head[..read].windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            read = stream.peek(&mut head).unwrap();
        }
        let head = String::from_utf8_lossy(&head[..read]).to_ascii_lowercase();
        if head.contains("upgrade: websocket") {
            match head.starts_with("get /media/good") {
                true => self.media(stream),
                false => drop({ &stream }.write_all(b"HTTP/1.1 403 X\r\ncontent-length: 0\r\n\r\n")),
            }
            return;
        }
        let mut reader = BufReader::new(stream);
        let request = http::read(&mut reader).unwrap().unwrap();
        let signed = request.header("x-signature").is_some();
        if signed {
            self.came.lock().unwrap().push(String::from_utf8(request.body.clone()).unwrap());
        }
        let answer = ApiReply {
            status: if signed { 200 } else { 403 },
            content_type: "application/json",
            body: self.answer.lock().unwrap().clone(),
        };
        let _ = http::write(reader.get_mut(), &answer);
    }

    fn media(&self, stream: TcpStream) {
        let mut socket = tungstenite::accept(stream).unwrap();
        while let Ok(message) = socket.read() {
            let Message::Text(text) = message else {
                if message.is_binary()
                    && message.len() == 320
                    && message.clone().into_data().iter().any(|b| *b != 0)
                {
                    socket.send(message).unwrap();
                }
                continue;
            };
            let said: Value = serde_json::from_str(&text).unwrap();
            self.came.lock().unwrap().push(text.as_str().to_owned());
            let _ = match said["key"].as_str() {
                Some("1") => socket.send(Message::text("mark one")),
                Some("2") => socket.send(Message::text("clear")),
                Some("3") => socket.send(Message::text("nonsense")),
                Some("9") => socket.close(Some(CloseFrame { code: 4_000.into(), reason: "".into() })),
                _ => Ok(()),
            };
        }
    }

    fn order(&self, server: &CarrierServer, path: &str, body: &Value) -> std::io::Result<crate::Reply> {
        let request = ::http::Request::post(path).body(Bytes::from(body.to_string())).unwrap();
        crate::wire::send(server.address(), &request)
    }

    fn place(&self, server: &CarrierServer, to: &str) -> std::io::Result<crate::Reply> {
        let (status_url, media_url) =
            (format!("{BASE_URL}/status/t"), format!("{}/media/good", "ws://service.example"));
        self.order(
            server,
            "/orders",
            &json!({"from": "+1", "to": to, "status_url": status_url, "media_url": media_url}),
        )
    }

    fn came(&self) -> Vec<String> {
        self.came.lock().unwrap().clone()
    }

    fn waits_for(&self, what: &str) {
        let started = std::time::Instant::now();
        while !self.came().iter().any(|text| text.contains(what)) {
            assert!(started.elapsed().as_secs() < 60, "{what}: {:?}", self.came());
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    fn events(&self) -> Vec<String> {
        let event =
            |text: &String| Some(serde_json::from_str::<Value>(text).ok()?["event"].as_str()?.to_owned());
        self.came().iter().filter_map(event).collect()
    }
}

#[test]
fn a_placed_call_from_ringing_to_hang_up() {
    let (service, server) = Service::start();
    let placed = service.place(&server, "+100").unwrap();
    let mut phone = server.rings("+100");
    assert_eq!(placed["id"], phone.id());
    phone.ring();
    phone.answer();
    let said: Vec<i16> = (1..=400).collect();
    phone.say(&said);
    let heard = phone.hear_until("the echo", |heard| (heard.len() >= 480).then(|| heard.to_vec()));
    assert_eq!(heard[..400], said);
    phone.key('1');
    service.waits_for(r#"{"played":"one"}"#);
    phone.hang_up();
    service.waits_for(r#"{"end":true}"#);
    let events = service.events();
    assert_eq!(events[..2], ["Ringing", "Answered"]);
    assert!(events[2].starts_with("Ended { how: HungUp, seconds: "), "{events:?}");
    assert_eq!(server.orders("+100").len(), 1);
    assert_eq!(
        service.order(&server, &format!("/calls/{}/end", phone.id()), &json!({})).unwrap().status,
        404
    );
}

#[test]
fn cleared_audio_is_never_played() {
    let (service, server) = Service::start();
    service.place(&server, "+100").unwrap();
    let mut phone = server.rings("+100").at_pace(0.5);
    phone.answer();
    phone.say_at_once(&[7; 16_000]);
    phone.key('1');
    phone.hear_until("the beginning", |heard| (!heard.is_empty()).then_some(()));
    phone.key('2');
    service.waits_for(r#"{"cleared":["one"]}"#);
    let cleared = phone.cleared();
    assert_eq!((cleared.len(), cleared[0].heard_samples + cleared[0].dropped_samples), (1, 16_000));
    assert!(phone.heard_for(100).is_empty());
    assert_eq!(phone.heard().len(), cleared[0].heard_samples);
    phone.key('3');
    service.waits_for(r#""3""#);
    assert!(phone.heard_for(50).is_empty());
    assert_eq!(phone.problems().len(), 1, "the invalid message is reported");
}

#[test]
fn the_service_hangs_up_by_closing_or_by_command() {
    let (service, server) = Service::start();
    service.place(&server, "+101").unwrap();
    let mut phone = server.rings("+101");
    phone.answer();
    phone.key('9');
    let closed = Some(Closed::ByService(Some(4_000)));
    assert_eq!(phone.was_hung_up(), HungUp { by_command: false, closed });

    service.place(&server, "+102").unwrap();
    let mut phone = server.rings("+102");
    phone.answer();
    let path = format!("/calls/{}/end", phone.id());
    assert_eq!(service.order(&server, &path, &json!({})).unwrap().status, 204);
    assert!(phone.was_hung_up().by_command);
    assert_eq!(server.commands(phone.id()).len(), 1);
    assert!(service.events().iter().filter(|event| event.contains("HungUpByService")).count() == 2);
}

#[test]
fn the_called_number_selects_the_behaviour_of_an_order() {
    let (service, server) = Service::start();
    assert_eq!(service.place(&server, "+1550401").unwrap().status, 401);
    assert_eq!(service.place(&server, "+1550500").unwrap().status, 500);
    service.place(&server, "+1550444").unwrap_err();
    let ours = (service.clone(), server.clone());
    std::thread::spawn(move || ours.0.place(&ours.1, "+1550408"));
    // The service does not know whether the carrier accepted the call; it may still ring.
    for number in ["+1550408", "+1550500", "+1550444"] {
        server.rings(number).busy();
    }
    assert_eq!(service.events(), vec!["Ended { how: Busy, seconds: 0 }"; 3]);
    let elsewhere = service.order(&server, "/elsewhere", &json!({})).unwrap();
    assert_eq!((elsewhere.status, server.invalid_requests().len(), server.seen().len()), (404, 1, 5));
}

#[test]
fn an_incoming_call_is_answered_or_declined_by_response_or_command() {
    let (service, server) = Service::start();
    *service.answer.lock().unwrap() = json!({"do": "ws://service.example/media/good"}).to_string();
    let mut phone = server.call("+200", "+201");
    assert_eq!(service.events(), ["Incoming"]);
    assert!(!phone.was_refused());
    phone.answer();
    service.waits_for("begin");
    phone.drop_connection();

    *service.answer.lock().unwrap() = json!({"do": "end"}).to_string();
    assert!(server.call("+200", "+201").was_refused());

    *service.answer.lock().unwrap() = json!({"do": "wait"}).to_string();
    let mut phone = server.call("+200", "+201");
    let path = format!("/calls/{}/answer", phone.id());
    service.order(&server, &path, &json!({"media_url": "ws://service.example/media/bad"})).unwrap();
    phone.pick_up();
    assert_eq!(phone.try_media_socket(phone.media_url()), Err(403));
}

#[test]
fn a_socket_without_first_messages_gets_no_last_messages() {
    let (service, server) = Service::start();
    service.place(&server, "+104").unwrap();
    let mut phone = server.rings("+104");
    phone.open_socket();
    phone.raw_media(WireMessage::Text(json!({"last": true}).to_string()));
    phone.no_answer();
    service.waits_for("NoAnswer");
    service.waits_for("last");
    assert!(!service.came().iter().any(|text| text.contains("end")), "{:?}", service.came());
}

#[test]
fn callbacks_can_be_held_repeated_and_forged() {
    let (service, server) = Service::start();
    service.place(&server, "+103").unwrap();
    let mut phone = server.rings("+103");
    phone.hold();
    phone.ring();
    phone.pick_up();
    phone.over(EndKind::HungUp);
    assert_eq!((phone.held(), service.events().len()), (3, 0));
    phone.release_in(&[2, 0]);
    phone.status_again(0);
    let events = service.events();
    assert!(events[0].starts_with("Ended") && events[1] == "Ringing" && events[2] == events[0], "{events:?}");
    let mut forge = |how| phone.forge(how, &CallEvent::Ringing);
    assert_eq!(forge(Forgery::Unsigned), Some(403));
    assert_eq!(
        forge(Forgery::WrongSignature),
        Some(200),
        "this service only checks that there is a signature"
    );
    assert_eq!(forge(Forgery::OldTimestamp), None);
}

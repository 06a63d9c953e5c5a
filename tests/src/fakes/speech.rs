//! A fake for the speech providers with protocols of their own, over real WebSockets: Deepgram (recognition, Flux and Aura),
//! ElevenLabs, Cartesia, and OpenAI's transcription sessions. Voices make a voice-like sound that lasts as long as its
//! text would; recognition understands what the test has announced.
mod aura;
mod cartesia;
pub mod conversation;
mod elevenlabs;
mod flux;
mod listen;
mod realtime;

use std::collections::{BTreeMap, VecDeque};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::g711;
use sidetone_engine::speech::speech_like::speech_like;
use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::protocol::CloseFrame;
use tungstenite::{Message, WebSocket};

/// The only accepted key.
pub const KEY: &str = "key-of-the-fake";
/// How long a spoken character lasts.
pub const CHAR_MS: i64 = 60;
/// Audio in a message of a voice.
const PIECE_MS: i64 = 100;
/// A louder sample is no silence.
const LOUD: u16 = 500;
/// Sound that has words.
const WORDS_MS: i64 = 200;

/// What a server with this end of its voice's or model's name does. It refuses with the status 401, Cartesia's in its answer to
/// the first text: the name is not known before.
pub const FAULTS: [(&str, &str); 4] = [
    ("refuses", "accepts no key"),
    ("hangs", "never answers"),
    ("breaks", "ends the connection at the first message"),
    ("babbles", "answers with a page of a web site"),
];

/// The end of the name of one that breaks in the middle: a voice ends the connection halfway through each text, a transcriber
/// once in each call, when somebody speaks.
pub const STOPS: &str = "stops";
/// The end of the name of a voice that makes its audio more slowly than it plays.
pub const SLOW: &str = "slow";

type Socket = WebSocket<TcpStream>;
/// Why a connection is over: it broke, or the other end broke its rules.
type Over = Box<dyn std::error::Error>;

/// A running fake. It lives as long as the process.
pub struct SpeechServer {
    address: SocketAddr,
    said: Arc<Said>,
}

/// What is said on the telephone, by the key term of the transcription.
#[derive(Default)]
struct Said(Mutex<BTreeMap<String, Speaker>>);

/// Somebody on the telephone.
#[derive(Default)]
struct Speaker {
    texts: VecDeque<String>,
    /// How much sound each utterance had that was understood, in ms.
    heard_ms: Vec<i64>,
    has_stopped: bool,
    connections: usize,
    realtime: RealtimeLog,
}

/// What a client of a realtime session did.
#[derive(Debug, Clone, Default)]
pub struct RealtimeLog {
    /// Where it truncated audio, in ms.
    pub truncated_ms: Vec<i64>,
    /// Items that it created.
    pub created: Vec<Value>,
    /// How many items it deleted.
    pub deleted: usize,
    /// How many responses it cancelled.
    pub cancelled: usize,
    /// Why something was refused.
    pub refused: Vec<String>,
    /// How it described the last session.
    pub session: Value,
}

impl Said {
    fn of<T>(&self, term: &str, look: impl FnOnce(&mut Speaker) -> T) -> T {
        look(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(term.to_owned()).or_default())
    }

    /// The next utterance with this term; without words if none was announced.
    fn next(&self, term: &str) -> String {
        self.of(term, |speaker| speaker.texts.pop_front()).unwrap_or_default()
    }

    fn connections_of(&self, term: &str) -> usize {
        self.of(term, |speaker| speaker.connections)
    }

    fn described(&self, term: &str, session: &Value) {
        self.of(term, |speaker| speaker.realtime.session = session.clone());
    }

    fn truncated(&self, term: &str, ms: i64) {
        self.of(term, |speaker| speaker.realtime.truncated_ms.push(ms));
    }

    fn created(&self, term: &str, item: &Value) {
        self.of(term, |speaker| speaker.realtime.created.push(item.clone()));
    }

    fn deleted(&self, term: &str) {
        self.of(term, |speaker| speaker.realtime.deleted += 1);
    }

    fn cancelled(&self, term: &str) {
        self.of(term, |speaker| speaker.realtime.cancelled += 1);
    }

    fn refused(&self, term: &str, why: &str) {
        self.of(term, |speaker| speaker.realtime.refused.push(why.to_owned()));
    }

    /// A connection was opened with this key term, or for this voice.
    fn opened(&self, term: &str) {
        self.of(term, |speaker| speaker.connections += 1);
    }

    /// An utterance was understood from this much sound.
    fn heard(&self, term: &str, ms: i64) {
        self.of(term, |speaker| speaker.heard_ms.push(ms));
    }

    /// Ends the connection if the model's name says so, and if this has not happened with this term.
    fn may_stop(&self, name: &str, term: &str) -> Result<(), Over> {
        let stops = name.ends_with(STOPS)
            && self.of(term, |speaker| !std::mem::replace(&mut speaker.has_stopped, true));
        if stops { Err("it stops".into()) } else { Ok(()) }
    }
}

/// How a connection was opened.
struct Opened {
    path: String,
    query: Vec<(String, String)>,
    headers: http::HeaderMap,
}

impl Opened {
    fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The rate of the audio, by the query.
    fn rate(&self) -> Result<Rate, Over> {
        rate(self.query("sample_rate").and_then(|rate| rate.parse().ok()))
    }

    /// Whether the connection may be opened, and if not, the status.
    fn refusal(&self) -> Option<u16> {
        let key = match self.path.as_str() {
            "/v1/listen" | "/v2/listen" | "/v1/speak" => {
                self.header("authorization") == format!("Token {KEY}")
            }
            "/tts/websocket" | "/v1/realtime" => self.header("authorization") == format!("Bearer {KEY}"),
            path if path.starts_with("/v1/text-to-speech/") => self.header("xi-api-key") == KEY,
            _ => return Some(404),
        };
        (!key || self.name().ends_with("refuses")).then_some(401)
    }

    /// The voice or the model, where the address has it.
    fn name(&self) -> &str {
        let voice = self.path.strip_prefix("/v1/text-to-speech/").and_then(|path| path.split('/').next());
        voice.or_else(|| self.query("model")).unwrap_or_default()
    }
}

impl SpeechServer {
    /// Starts one on a free port.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let said = Arc::<Said>::default();
        let shared = said.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let said = shared.clone();
                // An error is the end of the connection, which the other side sees.
                std::thread::spawn(move || _ = serve(stream, &said));
            }
        });
        Self { address, said }
    }

    /// Without a path.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next utterances with this key term are recognised as these texts. Further ones have no words. For Flux, a text may
    /// have parts, with `|` between them: the speaker pauses there as if it were the end.
    pub fn will_hear(&self, term: &str, texts: &[&str]) {
        let texts = texts.iter().map(|text| (*text).to_owned());
        self.said.of(term, |speaker| speaker.texts.extend(texts));
    }

    /// How many connections were opened with this key term, or for this voice where the address has it.
    pub fn connections(&self, term: &str) -> usize {
        self.said.of(term, |speaker| speaker.connections)
    }

    /// What the client of a realtime session with this key term did.
    pub fn realtime(&self, term: &str) -> RealtimeLog {
        self.said.of(term, |speaker| speaker.realtime.clone())
    }

    /// How much sound each utterance with this key term had that was understood, in ms.
    pub fn heard_ms(&self, term: &str) -> Vec<i64> {
        self.said.of(term, |speaker| speaker.heard_ms.clone())
    }
}

#[expect(clippy::result_large_err, reason = "the handshake's own type")]
fn serve(stream: TcpStream, said: &Said) -> Result<(), Over> {
    stream.set_nodelay(true)?;
    let mut opened = None;
    let accepted = tungstenite::accept_hdr(stream, |request: &Request, response: Response| {
        let uri = request.uri();
        let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
        let told = Opened { path: uri.path().to_owned(), query, headers: request.headers().clone() };
        match told.refusal() {
            None => {
                opened = Some(told);
                Ok(response)
            }
            Some(status) => {
                let mut refusal = ErrorResponse::new(Some("refused".to_owned()));
                *refusal.status_mut() = http::StatusCode::from_u16(status).expect("a status");
                Err(refusal)
            }
        }
    })
    .ok();
    let (Some(mut socket), Some(opened)) = (accepted, opened) else { return Ok(()) };
    said.opened(opened.query("keyterm").unwrap_or(opened.name()));
    misbehave(&mut socket, opened.name())?;
    let result = match opened.path.as_str() {
        "/v1/listen" => listen::run(&mut socket, &opened, said),
        "/v2/listen" => flux::run(&mut socket, &opened, said),
        "/v1/speak" => aura::run(&mut socket, &opened),
        "/v1/realtime" if opened.query("intent").is_none() => conversation::run(&mut socket, &opened, said),
        "/v1/realtime" => realtime::run(&mut socket, &opened, said),
        "/tts/websocket" => cartesia::run(&mut socket, &opened),
        _ => elevenlabs::run(&mut socket, &opened),
    };
    if let Err(why) = &result {
        let reason = why.to_string().chars().take(100).collect::<String>();
        let _ = socket.close(Some(CloseFrame { code: 1008.into(), reason: reason.into() }));
    } else {
        let _ = socket.close(Some(CloseFrame { code: 1000.into(), reason: "".into() }));
    }
    while socket.read().is_ok() {}
    result
}

/// Does what the name says until the connection is over; nothing if it says nothing.
fn misbehave(socket: &mut Socket, name: &str) -> Result<(), Over> {
    if !["hangs", "breaks", "babbles"].iter().any(|fault| name.ends_with(fault)) {
        return Ok(());
    }
    while next(socket).is_some() && !name.ends_with("breaks") {
        if name.ends_with("babbles") {
            socket.send(Message::text("<!doctype html><title>Welcome</title>"))?;
        }
    }
    Err("it misbehaves".into())
}

/// The next message; `None` when the connection is over.
fn next(socket: &mut Socket) -> Option<Message> {
    loop {
        match socket.read().ok()? {
            Message::Close(_) => return None,
            message @ (Message::Text(_) | Message::Binary(_)) => return Some(message),
            _ => {}
        }
    }
}

fn tell(socket: &mut Socket, message: &Value) -> Result<(), Over> {
    Ok(socket.send(Message::text(message.to_string()))?)
}

fn rate(hz: Option<u64>) -> Result<Rate, Over> {
    match hz {
        Some(8_000) => Ok(Rate::Khz8),
        Some(16_000) => Ok(Rate::Khz16),
        Some(24_000) => Ok(Rate::Khz24),
        _ => Err("unsupported sample rate".into()),
    }
}

/// The sound of a text, in pieces of little-endian samples.
fn sound(text: &str, rate: Rate) -> Vec<Vec<u8>> {
    let samples = speech_like(sound_ms(text), rate, 200.0);
    let piece = usize::try_from(PIECE_MS).unwrap_or_default() * rate.hz() as usize / 1_000;
    samples
        .chunks(piece)
        .map(|piece| piece.iter().flat_map(|sample| sample.to_le_bytes()).collect())
        .collect()
}

/// Sends the sound of a text through `send`, as the voice's name says. Pieces are counted from 0.
fn speak(
    socket: &mut Socket,
    name: &str,
    (text, rate): (&str, Rate),
    mut send: impl FnMut(&mut Socket, usize, Vec<u8>) -> Result<(), Over>,
) -> Result<(), Over> {
    let pieces = sound(text, rate);
    let half = pieces.len() / 2;
    for (nth, piece) in pieces.into_iter().enumerate() {
        if name.ends_with(STOPS) && nth >= half {
            return Err("it stops".into());
        }
        if name.ends_with(SLOW) {
            std::thread::sleep(Duration::from_millis(PIECE_MS.unsigned_abs() * 3 / 2));
        }
        send(socket, nth, piece)?;
    }
    Ok(())
}

fn sound_ms(text: &str) -> i64 {
    text.trim().chars().count() as i64 * CHAR_MS
}

fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn samples_of(bytes: &[u8]) -> Vec<i16> {
    bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()
}

/// Audio as it was announced in the query.
fn decoded(opened: &Opened, bytes: &[u8]) -> Result<Vec<i16>, Over> {
    match opened.query("encoding") {
        Some("mulaw") => Ok(g711::decode(bytes)),
        Some("linear16") => Ok(samples_of(bytes)),
        _ => Err("unsupported encoding".into()),
    }
}

/// How much of it is no silence, in ms.
fn loud_ms(samples: &[i16], rate: Rate) -> i64 {
    let frames = samples.chunks(rate.frame_samples());
    let loud = frames.filter(|frame| frame.iter().any(|sample| sample.unsigned_abs() > LOUD));
    loud.map(|frame| rate.ms_of(frame.len())).sum()
}

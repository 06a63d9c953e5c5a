//! A carrier's API behind a socket: accepts and records orders and commands, and creates calls. The test controls the other
//! end of each call ([`Phone`]).
use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::phone::Phone;
use super::wire::{
    ApiReply, ApiRequest, Behaviour, CallbackRequest, Command, Instruction, PhoneCall, Public, Wire,
};
use super::{http, numbers};
use crate::reply::Reply;

/// How long to wait for an expected request.
pub(super) const TIMEOUT_MS: u64 = 60_000;
/// The delay of a late response.
const LATE_MS: u64 = 1_500;

/// A running fake for one carrier. It lives as long as the process; clones share it.
#[derive(Clone)]
pub struct CarrierServer(Arc<Inner>);

struct Inner {
    wire: Arc<dyn Wire>,
    address: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    service: Option<Service>,
    seen: Vec<Seen>,
    calls: Vec<Entry>,
    /// How transfers of a call are answered.
    transfers: BTreeMap<String, Behaviour>,
}

/// The service's public URL and its real address.
#[derive(Clone)]
struct Service {
    address: SocketAddr,
    public: Public,
}

/// A received request.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// When it was received.
    pub at: Instant,
    /// The request as received.
    pub request: ApiRequest,
    /// Its meaning, or the carrier's rejection of an invalid request.
    pub read: Result<Command, ApiReply>,
}

struct Entry {
    call: PhoneCall,
    /// The order's instruction for the answered call.
    instruction: Option<Instruction>,
    /// Whether the test has taken the other end.
    taken_up: bool,
    over: bool,
}

impl CarrierServer {
    /// Starts one on a free port. Set the service's address later ([`CarrierServer::serve`]), because the service needs this server's
    /// address before it starts.
    pub fn start(wire: impl Wire) -> Self {
        Self::start_shared(Arc::new(wire))
    }

    /// The same with a wire that the test can access.
    pub fn start_shared(wire: Arc<dyn Wire>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let (state, changed) = (Mutex::default(), Condvar::new());
        let server = Self(Arc::new(Inner { wire, address, state, changed }));
        let ours = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let ours = ours.clone();
                std::thread::spawn(move || ours.handle_connection(stream));
            }
        });
        server
    }

    /// Sets the service: `public_base_url` is its public URL, `address` where it listens.
    pub fn serve(&self, address: SocketAddr, public_base_url: &str) {
        let public = Public { base_url: public_base_url.trim_end_matches('/').to_owned() };
        self.lock().service = Some(Service { address, public });
    }

    /// The carrier's name.
    pub fn provider(&self) -> &'static str {
        self.0.wire.provider()
    }

    /// Settings of a service with an account here.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        self.0.wire.settings(&format!("http://{}", self.0.address))
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// All requests, oldest first.
    pub fn seen(&self) -> Vec<Seen> {
        self.lock().seen.clone()
    }

    /// Number of requests.
    pub fn count(&self) -> usize {
        self.lock().seen.len()
    }

    /// The orders to this number, oldest first.
    pub fn orders(&self, number: &str) -> Vec<Seen> {
        let orders = |seen: &Seen| matches!(&seen.read, Ok(Command::Place { to, .. }) if to == number);
        self.lock().seen.iter().filter(|seen| orders(seen)).cloned().collect()
    }

    /// The commands for a call, oldest first.
    pub fn commands(&self, carrier_call_id: &str) -> Vec<Command> {
        let state = self.lock();
        let read = state.seen.iter().filter_map(|seen| seen.read.as_ref().ok());
        read.filter(|command| about(command) == Some(carrier_call_id)).cloned().collect()
    }

    /// The requests that violate the carrier's documentation.
    pub fn invalid_requests(&self) -> Vec<(ApiRequest, ApiReply)> {
        let refused = |seen: &Seen| Some((seen.request.clone(), seen.read.clone().err()?));
        self.lock().seen.iter().filter_map(refused).collect()
    }

    /// Waits for an order to this number and takes the other end.
    #[track_caller]
    pub fn rings(&self, number: &str) -> Phone {
        let what = format!("an order to call {number}");
        let (call, instruction) = self.wait(&what, |state| {
            let waiting =
                |entry: &&mut Entry| entry.call.outbound && !entry.taken_up && entry.call.to == number;
            let entry = state.calls.iter_mut().find(waiting)?;
            entry.taken_up = true;
            Some((entry.call.clone(), entry.instruction.clone()))
        });
        Phone::new(self.clone(), call, instruction)
    }

    /// An incoming call to a number of the service. The handle reports the service's response.
    #[track_caller]
    pub fn call(&self, from: &str, to: &str) -> Phone {
        let mut phone = self.prepare_call(from, to);
        phone.announce();
        phone
    }

    /// An incoming call that has not been reported to the service.
    pub fn prepare_call(&self, from: &str, to: &str) -> Phone {
        let base_url = self.service().public.base_url;
        let path = format!("{base_url}/carriers/{}", self.provider());
        let call = self.new_call(from, to, false, format!("{path}/status"), format!("{path}/voice"));
        let entry = Entry { call: call.clone(), instruction: None, taken_up: true, over: false };
        self.lock().calls.push(entry);
        Phone::new(self.clone(), call, None)
    }

    pub(super) fn wire(&self) -> &dyn Wire {
        &*self.0.wire
    }

    /// The service as the carrier knows it.
    pub(super) fn public(&self) -> Public {
        self.service().public
    }

    /// The real address for a URL of the service, with its path and query.
    #[track_caller]
    pub(super) fn locate(&self, url: &str) -> (SocketAddr, String) {
        let service = self.service();
        let host = without_scheme(&service.public.base_url);
        let path = without_scheme(url).strip_prefix(host).filter(|path| path.starts_with('/'));
        let path = path.unwrap_or_else(|| panic!("{url} is not a URL of the service at {host}"));
        (service.address, path.to_owned())
    }

    /// Sends a callback; an error is a broken connection.
    #[track_caller]
    pub(super) fn send(&self, callback: &CallbackRequest) -> std::io::Result<Reply> {
        let (address, path) = self.locate(&callback.url);
        let mut request = ::http::Request::builder().method(callback.method).uri(path);
        for (name, value) in &callback.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Bytes::from(callback.body.clone())).expect("a callback is a request");
        crate::wire::send(address, &request)
    }

    /// Waits for a matching command for a call.
    #[track_caller]
    pub(super) fn command<T>(&self, call: &PhoneCall, what: &str, look: impl Fn(&Command) -> Option<T>) -> T {
        self.wait(&format!("{what} of {}", call.carrier_call_id), |state| {
            let read = state.seen.iter().filter_map(|seen| seen.read.as_ref().ok());
            read.filter(|command| about(command).is_some_and(|id| names(call, id))).find_map(&look)
        })
    }

    /// Waits for a transfer of this call that comes after so many others.
    pub(super) fn transfer_after(&self, call: &PhoneCall, earlier: usize) -> Result<Instruction, String> {
        self.wait(&format!("a transfer of {}", call.carrier_call_id), |state| {
            let read = state.seen.iter().filter_map(|seen| seen.read.as_ref().ok());
            let mut transfers = read.filter_map(|command| match command {
                Command::Transfer { carrier_call_id, instruction } if names(call, carrier_call_id) => {
                    Some(instruction)
                }
                _ => None,
            });
            transfers.nth(earlier).cloned()
        })
    }

    /// Whether the service has sent a hang-up command for this call.
    pub(super) fn hang_up_commanded(&self, call: &PhoneCall) -> bool {
        let ends = |seen: &Seen| matches!(&seen.read, Ok(Command::HangUp { carrier_call_id }) if names(call, carrier_call_id));
        self.lock().seen.iter().any(ends)
    }

    /// From now on, transfers of this call are answered like this.
    pub(super) fn transfers_are(&self, call: &PhoneCall, behaviour: Behaviour) {
        self.lock().transfers.insert(call.carrier_call_id.clone(), behaviour);
    }

    /// From now on, commands for this call get the response for a call that does not exist.
    pub(super) fn end(&self, call: &PhoneCall) {
        let mut state = self.lock();
        for entry in state.calls.iter_mut().filter(|entry| entry.call.carrier_call_id == call.carrier_call_id)
        {
            entry.over = true;
        }
    }

    /// Waits for a matching request.
    #[track_caller]
    fn wait<T>(&self, what: &str, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        let deadline = Instant::now() + Duration::from_millis(TIMEOUT_MS);
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(state);
                panic!(
                    "{} did not receive {what}; invalid requests: {:#?}",
                    self.provider(),
                    self.invalid_requests()
                );
            }
            state =
                self.0.changed.wait_timeout(state, left).unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }

    /// Serves one connection of the service.
    fn handle_connection(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let mut reader = BufReader::new(stream);
        // An error means that the other side closed the connection.
        while let Ok(Some(request)) = http::read(&mut reader) {
            let last = request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
            let treatment = self.take(request);
            if matches!(treatment, Treatment::Late(_)) {
                std::thread::sleep(Duration::from_millis(LATE_MS));
            }
            match treatment {
                Treatment::Reply(reply) | Treatment::Late(reply) => {
                    if http::write(reader.get_mut(), &reply).is_err() || last {
                        return;
                    }
                }
                Treatment::Cut => return,
                Treatment::Hang => {
                    // Waits until the other side gives up.
                    let _ = reader.read(&mut [0; 1]);
                    return;
                }
            }
        }
    }

    fn take(&self, request: ApiRequest) -> Treatment {
        let read = self.0.wire.read(&request);
        let treatment = match &read {
            Err(refusal) => Treatment::Reply(refusal.clone()),
            Ok(Command::Place { from, to, status_url, instruction, answer_url, detection }) => {
                let behaviour = numbers::behaviour(to);
                let voice_url = answer_url.clone().unwrap_or_default();
                let call = self.new_call(from, to, true, status_url.clone(), voice_url);
                let call = PhoneCall { detection: detection.clone(), ..call };
                if behaviour.has_the_call() {
                    let (call, instruction) = (call.clone(), instruction.clone());
                    self.lock().calls.push(Entry { call, instruction, taken_up: false, over: false });
                }
                match behaviour {
                    Behaviour::Take => Treatment::Reply(self.0.wire.placed(&call)),
                    Behaviour::Late => Treatment::Late(self.0.wire.placed(&call)),
                    Behaviour::Hang => Treatment::Hang,
                    Behaviour::Cut => Treatment::Cut,
                    _ => Treatment::Reply(
                        self.0.wire.refused(behaviour).expect("this behaviour has a response"),
                    ),
                }
            }
            Ok(command) => {
                let id = about(command).unwrap_or_default();
                let live = self.lock().calls.iter().any(|entry| !entry.over && names(&entry.call, id));
                let behaviour = match command {
                    Command::Transfer { .. } => self.lock().transfers.get(id).copied(),
                    _ => None,
                };
                match behaviour {
                    Some(Behaviour::Hang) => Treatment::Hang,
                    Some(Behaviour::Cut) => Treatment::Cut,
                    Some(Behaviour::Late) => Treatment::Late(self.0.wire.done(command)),
                    Some(behaviour) => Treatment::Reply(
                        self.0.wire.refused(behaviour).unwrap_or_else(|| self.0.wire.done(command)),
                    ),
                    None if live => Treatment::Reply(self.0.wire.done(command)),
                    None => Treatment::Reply(self.0.wire.gone()),
                }
            }
        };
        self.lock().seen.push(Seen { at: Instant::now(), request, read });
        self.0.changed.notify_all();
        treatment
    }

    fn new_call(
        &self,
        from: &str,
        to: &str,
        outbound: bool,
        status_url: String,
        voice_url: String,
    ) -> PhoneCall {
        let (carrier_call_id, other_id) = numbers::ids(self.provider());
        let (from, to, format) = (from.to_owned(), to.to_owned(), String::new());
        PhoneCall {
            carrier_call_id,
            other_id,
            from,
            to,
            outbound,
            status_url,
            voice_url,
            format,
            detection: None,
        }
    }

    #[track_caller]
    fn service(&self) -> Service {
        let service = self.lock().service.clone();
        service.unwrap_or_else(|| panic!("{} does not know the service: call serve()", self.provider()))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

enum Treatment {
    Reply(ApiReply),
    Late(ApiReply),
    Hang,
    Cut,
}

/// The call of a command.
fn about(command: &Command) -> Option<&str> {
    match command {
        Command::Place { .. } => None,
        Command::Answer { carrier_call_id, .. }
        | Command::Refuse { carrier_call_id }
        | Command::HangUp { carrier_call_id }
        | Command::Reconnect { carrier_call_id, .. }
        | Command::Transfer { carrier_call_id, .. } => Some(carrier_call_id),
    }
}

/// Whether an id belongs to this call. Before the answer, some calls are known by their other id.
fn names(call: &PhoneCall, id: &str) -> bool {
    call.carrier_call_id == id || call.other_id == id
}

fn without_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}

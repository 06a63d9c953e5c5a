//! The engine's interface for hosts. A host provides [`Ports`], passes requests to the engine, and sends its responses.
//!
//! A request goes through these steps. Each step's type is available only from the previous step:
//!
//! 1. [`Engine::begin`] decides based on the head: [`Admission`].
//! 2. [`PendingRequest`] receives the body, if there is one, and [`PendingRequest::answer`] answers the request.
//!    Accepting a [`PendingSocket`] returns a [`LiveSocket`](crate::live::LiveSocket) to run over the socket.
//! 3. [`PreparedResponse`] is a [`FinalResponse`] to send and log, a [`BlobResponse`] whose blob is opened first, or an
//!    [`EventsResponse`] whose body comes piece by piece for minutes.
//!
//! Jobs run in a long-running process ([`Engine::start`], [`QueueWorker`]) or in short invocations
//! ([`Engine::jobs_of_hints`], [`Engine::scheduled_jobs`]).
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use serde_json::{Map, Value};

use crate::base::error::Code;
use crate::base::ids::WorkspaceId;
use crate::base::limits::{CALL_JOBS_AT_ONCE, SIGN_IN_MS};
use crate::carriers::CarrierName;
use crate::config::Config;
use crate::dashboard;
use crate::interfaces::Interfaces;
use crate::interfaces::api::Api;
use crate::interfaces::generated::Documents;
use crate::interfaces::host;
use crate::interfaces::mounted::sign_in_link;
use crate::interfaces::operator;
use crate::jobs::{HintOf, Invocation, QueueWorker};
use crate::live::telephony;
use crate::ports::{HttpError, HttpReply, JobQueue, Ports};
use crate::services::Services;
use crate::storage::checked::Checked;
use crate::storage::fault::Fault;
use crate::storage::jobs::JobKind;
use crate::storage::moves::told;
use crate::storage::workspaces::NewWorkspace;

pub use crate::storage::workspaces::{ListedKey, ListedWorkspace, Part};

pub use crate::interfaces::host::{
    Admission, BlobResponse, BodyFailure, BodyMemory, BodyTooLarge, EventsResponse, FinalResponse, LogRecord,
    PendingRequest, PendingSocket, PreparedResponse, RequestTrace, Room, SocketAdmission,
};

/// The whole service. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    api: Arc<Api>,
}

/// A started service.
pub struct Started {
    /// The API key of the first workspace, on the first start only. It cannot be read again. After it was shown, call
    /// [`Engine::first_key_shown`]; otherwise the next start returns another one.
    pub first_key: Option<String>,
    /// The link that signs the operator in to the dashboard, as long as the operator never did and nobody is a member of the first
    /// workspace. The next start replaces it.
    pub sign_in_link: Option<String>,
    /// What is dangerous about the settings together with the data; for the log.
    pub warnings: Vec<String>,
    /// One worker per job queue; the host runs all of them.
    pub workers: Vec<QueueWorker>,
}

impl Engine {
    /// Creates the service. Fails only if the operation table is inconsistent.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new(config: Config, ports: Ports) -> Result<Self, Fault> {
        Self::with_documents(config, ports, Documents::derived())
    }

    /// Creates the service with documents that the host's build script generated.
    pub fn with_documents(config: Config, ports: Ports, documents: Documents) -> Result<Self, Fault> {
        Ok(Self { api: Arc::new(Api::new(config, ports, documents, dashboard::handle)?) })
    }

    /// Begins a request with its head. `peer` is the client's address as the platform reports it. `upgrade` is the
    /// host's value for upgrading the connection to a WebSocket, if the handshake is complete; without it, a request
    /// for a WebSocket is a plain request.
    pub fn begin<U>(&self, head: Parts, peer: Option<IpAddr>, upgrade: Option<U>) -> Admission<U> {
        host::begin(self.api.clone(), head, peer, upgrade)
    }

    /// The response to a request whose head is larger than [`HEAD_BYTES_MAX`](crate::base::limits::HEAD_BYTES_MAX). The
    /// host closes the connection after it.
    pub fn refuse_large_head(&self) -> FinalResponse {
        FinalResponse::large_head(self.services().new_id())
    }

    /// Answers a request with a complete body; a request for a WebSocket is not upgraded. For tests and for hosts
    /// without a network.
    pub async fn handle(&self, request: http::Request<Bytes>, peer: Option<IpAddr>) -> PreparedResponse {
        let (head, body) = request.into_parts();
        let mut pending = match self.begin(head, peer, None::<Infallible>) {
            Admission::Respond(response) => return PreparedResponse::Complete(response),
            Admission::ReadBody(pending) => pending,
            Admission::Socket(_, never) => match never {},
        };
        match pending.receive(body) {
            Ok(()) => pending.answer().await,
            Err(BodyTooLarge) => PreparedResponse::Complete(pending.fail(BodyFailure::TooLarge)),
        }
    }

    /// Starts the service in the only process that uses the storage, and returns the workers for its jobs. Existing
    /// leases belong to processes that have ended, and are released. Fails when the data was written with another server
    /// secret. `owner` identifies the process in new leases.
    pub async fn start(&self, owner: &str) -> Result<Started, Fault> {
        let services = self.services();
        services.check_secret().await?;
        services.release_all_leases().await?;
        let first_key = services.first_workspace().await?;
        let mut warnings: Vec<String> = services.ungranted_numbers_warning().await?.into_iter().collect();
        // On a full disk the service starts all the same.
        let token = services.first_link().await.unwrap_or_else(|fault| {
            warnings.push(format!("no sign-in link could be made: {fault:?}"));
            None
        });
        let sign_in_link = token.map(|token| sign_in_link(self.base_url(), &token));
        let worker = |queue: &JobQueue| QueueWorker::new(services.clone(), *queue, owner);
        Ok(Started { first_key, sign_in_link, warnings, workers: JobQueue::ALL.iter().map(worker).collect() })
    }

    /// The operator has seen [`Started::first_key`].
    pub async fn first_key_shown(&self) -> Result<(), Fault> {
        self.services().first_key_shown().await
    }

    /// Lets the data belong to the current server secret, whatever secret it was written with, for the operator.
    pub async fn accept_secret(&self) -> Result<(), Fault> {
        self.services().accept_secret().await
    }

    /// Compares the next recordings with the storage of blobs, `after` the id that the last answer ends with; `""` at first.
    pub async fn check_recordings(&self, after: &str) -> Result<Checked<String>, Fault> {
        self.services().check_recordings(after).await
    }

    /// Compares the next archived transcripts with the storage of blobs, `after` the place that the last answer ends with; 0 at
    /// first.
    pub async fn check_archives(&self, after: i64) -> Result<Checked<i64>, Fault> {
        self.services().check_archives(after).await
    }

    /// The jobs to run after hints have arrived. `None` is an unreadable hint. `owner` identifies the process in leases.
    pub fn jobs_of_hints<'a>(
        &self,
        owner: &str,
        hints: impl IntoIterator<Item = Option<HintOf<'a>>>,
    ) -> Invocation {
        Invocation::of_hints(self.services(), owner, hints)
    }

    /// The sweep and the jobs to run when the host's regular timer fires. `owner` identifies the process in leases.
    pub fn scheduled_jobs(&self, owner: &str) -> Invocation {
        Invocation::scheduled(self.services(), owner)
    }

    /// Asks the carriers to hang up the lines of calls that have ended, for a host that stops and runs no more jobs: a line
    /// outlives its socket, and somebody would listen to nothing until the next start. Returns errors for the host's log.
    pub async fn hang_up_lines(&self, owner: &str) -> Vec<String> {
        let mut incidents = Vec::new();
        let at_once = usize::try_from(CALL_JOBS_AT_ONCE).unwrap_or(1);
        loop {
            match self.services().run_due_jobs(owner, &[JobKind::HangUp], at_once).await {
                Ok(turn) => {
                    incidents.extend(turn.incidents);
                    if turn.ran == 0 {
                        return incidents;
                    }
                }
                Err(fault) => {
                    incidents.push(format!("lines were not hung up: {fault:?}"));
                    return incidents;
                }
            }
        }
    }

    /// Creates a workspace with one key, for the operator.
    pub async fn create_workspace(&self, name: &str) -> Result<NewWorkspace, Fault> {
        self.services().create_workspace(name).await
    }

    /// Creates a key for the workspace with this id or name, for the operator, as `POST /keys` does.
    pub async fn create_key(&self, workspace: &str) -> Result<String, Fault> {
        let id = self.find_workspace(workspace).await?;
        let draft = Map::from_iter([("name".to_owned(), "command line".into())]);
        let created = self.operate(&id, "create_api_key", Vec::new(), Some(draft)).await?;
        created["key"]
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| Fault::Bug("a new key is not shown".to_owned()))
    }

    /// The workspace with this id, or with this name if only one has it.
    pub async fn find_workspace(&self, workspace: &str) -> Result<WorkspaceId, Fault> {
        self.services().find_workspace(workspace).await
    }

    /// The next workspaces, oldest first, `after` what the last part ended with; `""` at first.
    pub async fn workspaces(&self, after: &str) -> Result<Part<ListedWorkspace>, Fault> {
        self.services().list_workspaces(after).await
    }

    /// The next API keys that are not revoked, of one workspace or of all, in the same way.
    pub async fn keys(&self, workspace: Option<&WorkspaceId>, after: &str) -> Result<Part<ListedKey>, Fault> {
        self.services().list_keys(workspace, after).await
    }

    /// The API keys that are not revoked with this id, this SHA-256 or these last four characters; of many, the first.
    pub async fn find_keys(&self, named: &str) -> Result<Vec<ListedKey>, Fault> {
        self.services().find_keys(named).await
    }

    /// Runs an operation in a workspace for the operator at the command line, who needs no key: checked and recorded as over
    /// REST. Returns the response's body; null if it has none.
    pub async fn operate(
        &self,
        workspace: &WorkspaceId,
        operation: &str,
        path: Vec<String>,
        body: Option<Map<String, Value>>,
    ) -> Result<Value, Fault> {
        match operator::run(&self.api, workspace, operation, path, body).await {
            // Where the workspace has moved to another host, for good, the error says where that is.
            Err(Fault::Refused(error)) if error.code == Code::WorkspaceMoving => {
                let moved = told::moved_workspace(self.services(), workspace).await?;
                Err(moved.unwrap_or(error).into())
            }
            done => done,
        }
    }

    /// Answers a request that belongs to moving a workspace (`/operator/…`) for the operator at the command line, who needs no
    /// key: as over HTTP.
    pub async fn as_operator(&self, request: http::Request<Bytes>) -> FinalResponse {
        host::answer_operator(&self.api, request).await
    }

    /// Asks a carrier something harmless with the operator's credentials; a carrier without any is an error.
    pub async fn ask_carrier(&self, name: CarrierName) -> Result<HttpReply, HttpError> {
        let services = self.services();
        let carrier = services.config().carriers.get(name);
        let carrier = carrier.ok_or_else(|| HttpError::Failed("it is not configured".to_owned()))?;
        let id = telephony::leg::command_id(&services.new_id(), "ask");
        telephony::client::send(services, carrier.ask(&id, services.now().ms())).await
    }

    /// A link that signs the operator in to the dashboard, once, within [`SIGN_IN_MS`]. It replaces an earlier one.
    pub async fn sign_in_link(&self) -> Result<String, Fault> {
        Ok(sign_in_link(self.base_url(), &self.services().operator_link(SIGN_IN_MS).await?))
    }

    /// The public URL of the service, without a trailing slash.
    pub fn base_url(&self) -> &str {
        &self.services().config().base_url
    }

    /// The interfaces derived from the operation table.
    pub fn interfaces(&self) -> &Interfaces {
        self.api.interfaces()
    }

    /// Settings, ports and the functions below the interfaces, for tests and benchmarks. A host needs none of them.
    pub fn services(&self) -> &Services {
        self.api.services()
    }
}

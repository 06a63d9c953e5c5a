//! Two hosts as the command line sees them: it asks the operator's requests of engines in this process.
use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::ready;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use sidetone::moving::Stop;
use sidetone::moving::export::{self, Export};
use sidetone::moving::file::Reader;
use sidetone::moving::host::MoveHost;
use sidetone::moving::import::{self, Import};
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_tests::World;
use sidetone_tests::direct_access::wait;
use sidetone_tests::process::bootstrap_key;

use crate::arriving::Target;
use crate::cluster::Cluster;
use crate::frozen::{Stored, rows};
use crate::furnished::{everything, furnished};
use crate::handing_over::with_files;
use crate::once::runs;

const HOUR_MS: i64 = 3_600_000;
/// What a command says that has died.
const DIED: &str = "it died";

/// The answer of a host.
type Answer<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, Stop>> + 'a>>;

fn at_once<'a>(outcome: Result<Response<Bytes>, Stop>) -> Answer<'a> {
    Box::pin(ready(outcome))
}

/// The operator of one host.
pub struct Operator {
    world: World,
    key: String,
    place: &'static str,
    /// Whether jobs run while a command waits.
    pub jobs_run: Cell<bool>,
}

impl Operator {
    /// The setting with its key.
    pub const SETTING: &str = "SIDETONE_OPERATOR_KEY";

    /// The operator of the service behind this workspace, which has the key in its settings.
    pub fn of(world: &World, key: &str, place: &'static str) -> Self {
        Self { world: world.with_key(key), key: key.to_owned(), place, jobs_run: Cell::new(true) }
    }

    fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (mut head, body) = request.into_parts();
        let bearer = HeaderValue::try_from(format!("Bearer {}", self.key)).unwrap();
        head.headers.insert(header::AUTHORIZATION, bearer);
        let reply = self.world.send(Request::from_parts(head, body));
        // What is under way comes to its end while the command waits.
        if reply["state"] == "closing" {
            let sandbox = self.world.sandbox().unwrap();
            sandbox.advance(HOUR_MS);
            if self.jobs_run.get() {
                sandbox.run_jobs();
            }
        }
        Response::builder().status(reply.status).body(reply.body).unwrap()
    }
}

impl MoveHost for Operator {
    fn ask(&self, request: Request<Bytes>) -> Answer<'_> {
        at_once(Ok(self.answer(request)))
    }

    fn place(&self) -> &str {
        self.place
    }

    fn option(&self) -> String {
        format!(" --url {}", self.place)
    }
}

/// One host.
pub struct Host {
    pub target: Target,
    pub operator: Operator,
    /// A workspace that stays there.
    beside: WorkspaceId,
}

impl Host {
    fn new(target: Target, key: &str, place: &'static str) -> Self {
        let beside = WorkspaceId::from_stored(furnished(&target.cluster, 0).1);
        let operator = Operator::of(&target.neighbour, key, place);
        Self { target, operator, beside }
    }

    fn now_ms(&self) -> i64 {
        self.target.services.ports().clock.now_ms()
    }

    /// The rows of the workspace that stays.
    pub fn beside(&self) -> Stored {
        rows(&self.target.cluster.shards, &self.beside)
    }
}

/// Two hosts with secrets of their own, and a workspace that moves between them. The first one has it.
pub struct Hosts {
    pub hosts: [Host; 2],
    pub id: WorkspaceId,
    tenant: World,
}

impl Hosts {
    /// The workspace has rows in every table, recordings and an archived transcript.
    pub fn new() -> Self {
        let keys = [4_000_040, 4_000_041].map(bootstrap_key);
        let cluster = Cluster::with_settings(1, &[(Operator::SETTING, &keys[0])]);
        let (tenant, id) = with_files(&cluster);
        let (neighbour, _) = cluster.workspace(0);
        let services = tenant.direct_access();
        let home = Target { cluster, neighbour, services };
        let away = Target::with_settings(&[(Operator::SETTING, &keys[1])]);
        let hosts = [
            Host::new(home, &keys[0], "https://home.example"),
            Host::new(away, &keys[1], "https://away.example"),
        ];
        assert_ne!(hosts[0].target.services.config().secret, hosts[1].target.services.config().secret);
        Self { hosts, id, tenant }
    }

    /// The operator of a host.
    pub fn operator(&self, at: usize) -> &Operator {
        &self.hosts[at].operator
    }

    /// The workspace, with the key that it had first.
    pub fn world(&self, at: usize) -> World {
        self.hosts[at].target.tenant(&self.tenant)
    }

    /// What is under way comes to its end. Then the two clocks are a second apart.
    pub fn calm_down(&self, at: usize) {
        export_and_cancel(self.operator(at), &self.id);
        let now_ms = self.hosts.iter().map(Host::now_ms).max().unwrap();
        for (host, second) in self.hosts.iter().zip([0, 1_000]) {
            host.target.cluster.sandbox().advance(now_ms + second - host.now_ms());
        }
        // It is noted when a key was used, once an hour.
        self.world(at).get("/workspace").ok();
    }

    /// What the workspace's key reads at a host.
    pub fn everything(&self, at: usize) -> BTreeMap<String, Bytes> {
        let world = self.world(at);
        let mut all = everything(&world);
        let recordings: Vec<String> =
            all.keys().filter(|path| path.ends_with("/recording")).cloned().collect();
        assert!(!recordings.is_empty());
        for path in recordings {
            let reply = world.call_with(Method::GET, &path, None, &[("range", "bytes=100-299")]);
            assert_eq!((reply.status, reply.body.len()), (206, 200), "{path}");
            all.insert(format!("a range of {path}"), reply.body);
        }
        all
    }

    /// The rows of the workspaces that stay.
    pub fn beside(&self) -> [Stored; 2] {
        self.hosts.each_ref().map(Host::beside)
    }

    /// The hosts that run the workspace.
    pub fn running(&self) -> Vec<usize> {
        (0..2).filter(|at| runs(&self.hosts[*at].target.services, &self.id)).collect()
    }
}

/// Fails with the first path at which two readings differ.
#[track_caller]
pub fn assert_same(after: &BTreeMap<String, Bytes>, before: &BTreeMap<String, Bytes>, when: &str) {
    for (path, body) in before {
        assert_eq!(after.get(path), Some(body), "{path} {when}");
    }
    assert_eq!(after.len(), before.len(), "{when}");
}

/// `sidetone export --workspace ID FILE`
pub fn run_export(host: &dyn MoveHost, id: &WorkspaceId, file: &Path) -> Result<String, Stop> {
    let wish = Export {
        workspace: id,
        file,
        without_late_prices: false,
        wait: Duration::from_secs(60),
        pause: Duration::from_millis(1),
    };
    wait(export::export(host, &wish, &mut |_: &str| ()))
}

/// An export that is canceled. What was under way has come to its end for it.
pub fn export_and_cancel(host: &dyn MoveHost, id: &WorkspaceId) {
    let folder = tempfile::tempdir().unwrap();
    run_export(host, id, &folder.path().join("unused.move")).unwrap();
    wait(export::cancel(host, id)).unwrap();
}

/// `sidetone import FILE --from …`
pub fn run_import(host: &dyn MoveHost, file: &Path, from: &dyn MoveHost) -> Result<String, Stop> {
    let wish = Import { file, from: Some(from), admin: None };
    wait(import::import(host, &wish, &mut |_: &str| ()))
}

/// `sidetone export --workspace ID --erase --yes`
pub fn run_erase(host: &dyn MoveHost, id: &WorkspaceId) -> Result<String, Stop> {
    wait(export::erase(host, id, true, &mut |_: &str| ()))
}

/// Both commands, the first one until its file is complete.
pub fn move_over(from: &dyn MoveHost, to: &dyn MoveHost, id: &WorkspaceId, file: &Path) -> Result<(), Stop> {
    if Reader::open(file).is_err() {
        run_export(from, id, file)?;
    }
    run_import(to, file, from).map(drop)
}

/// Commands that die at their nth request, to whichever host.
pub struct Dying<'a> {
    hosts: &'a Hosts,
    left: Cell<u32>,
    dies_after: bool,
}

impl<'a> Dying<'a> {
    /// Before or after the nth request.
    pub fn at(hosts: &'a Hosts, nth: u32, dies_after: bool) -> Self {
        Self { hosts, left: Cell::new(nth), dies_after }
    }

    /// A host, as these commands see it.
    pub fn operator(&self, at: usize) -> DyingHost<'_> {
        DyingHost { command: self, operator: self.hosts.operator(at) }
    }
}

/// Whether commands came to their end. If not, they have died, and nothing else was wrong.
#[track_caller]
pub fn has_lived<T>(outcome: Result<T, Stop>) -> bool {
    match outcome {
        Ok(_) => true,
        Err(stop) => {
            assert_eq!(stop, Stop::Failed(DIED.to_owned()));
            false
        }
    }
}

/// See [`Dying::operator`].
pub struct DyingHost<'a> {
    command: &'a Dying<'a>,
    operator: &'a Operator,
}

impl MoveHost for DyingHost<'_> {
    fn ask(&self, request: Request<Bytes>) -> Answer<'_> {
        let Dying { hosts, left, dies_after } = self.command;
        let what = format!("{} {}", request.method(), request.uri());
        left.set(left.get().saturating_sub(1));
        let dies = left.get() == 0;
        if dies && !dies_after {
            return at_once(Err(Stop::Failed(DIED.to_owned())));
        }
        let answer = self.operator.answer(request);
        let running = hosts.running();
        assert!(running.len() < 2, "both run it after {what}");
        at_once(if dies { Err(Stop::Failed(DIED.to_owned())) } else { Ok(answer) })
    }

    fn place(&self) -> &str {
        self.operator.place()
    }

    fn option(&self) -> String {
        self.operator.option()
    }
}

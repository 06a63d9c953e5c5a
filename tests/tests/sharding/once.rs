//! A workspace runs on one host at most, in whatever order whoever asks for the steps of moves.
use proptest::prelude::*;
use sidetone::sandbox::block_on;
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_engine::services::Services;
use sidetone_engine::sql;
use sidetone_engine::storage::moves::cancel_export::cancel_export;
use sidetone_engine::storage::moves::code::Code;
use sidetone_engine::storage::moves::erase::erase;
use sidetone_engine::storage::moves::freeze::{close, freeze};
use sidetone_engine::storage::moves::release::{Receiver, release};
use sidetone_engine::storage::moves::{Move, State};
use sidetone_tests::World;

use crate::arriving::{File, Target};
use crate::cluster::Cluster;

/// What is asked, of the source or of one of two targets.
#[derive(Debug, Clone, Copy)]
enum Asked {
    Close,
    Freeze,
    Cancel,
    /// To the import of a target, if it has told its id.
    Release(usize),
    Erase,
    Begin(usize),
    /// So many parts.
    Send(usize, usize),
    Verify(usize),
    /// With every code that there is.
    Open(usize),
    CancelImport(usize),
}

fn asked() -> impl Strategy<Value = Asked> {
    let target = 0..2usize;
    prop_oneof![
        1 => Just(Asked::Close),
        3 => Just(Asked::Freeze),
        1 => Just(Asked::Cancel),
        2 => target.clone().prop_map(Asked::Release),
        1 => Just(Asked::Erase),
        2 => target.clone().prop_map(Asked::Begin),
        4 => (target.clone(), 1..8usize).prop_map(|(target, parts)| Asked::Send(target, parts)),
        2 => target.clone().prop_map(Asked::Verify),
        2 => target.clone().prop_map(Asked::Open),
        1 => target.prop_map(Asked::CancelImport),
    ]
}

struct Hosts {
    source: Cluster,
    tenant: World,
    id: WorkspaceId,
    targets: [Target; 2],
    files: Vec<File>,
    codes: Vec<Code>,
}

impl Hosts {
    fn new() -> Self {
        let source = Cluster::new(1);
        let (tenant, id) = source.workspace(0);
        tenant.assistant();
        let targets = [Target::new(), Target::new()];
        let id = WorkspaceId::from_stored(id);
        Self { source, tenant, id, targets, files: Vec::new(), codes: Vec::new() }
    }

    fn ask(&mut self, asked: Asked) {
        let (services, id) = (self.tenant.direct_access(), self.id.clone());
        // A refusal is an answer, too.
        match asked {
            Asked::Close => drop(block_on(close(&services, &id)).unwrap()),
            Asked::Freeze => {
                let _ = block_on(close(&services, &id)).unwrap();
                let _ = block_on(freeze(&services, &id, false)).unwrap();
                if state(&services, &id) == Some(State::Frozen) {
                    self.files.push(File::of(&services, &id));
                }
            }
            Asked::Cancel => drop(block_on(cancel_export(&services, &id)).unwrap()),
            Asked::Release(target) => {
                let Ok(status) = self.targets[target].status(&id) else { return };
                let Some(import_id) = status.import_id else { return };
                let receiver = Receiver {
                    export_id: &status.export_id,
                    import_id: &import_id,
                    base_url: "https://edge.example",
                    instead_of: None,
                };
                if let Ok(released) = block_on(release(&services, &id, receiver)).unwrap() {
                    self.codes.push(released.code);
                }
            }
            Asked::Erase => drop(block_on(erase(&services, &id)).unwrap()),
            Asked::Begin(target) => {
                if let Some(file) = self.files.last() {
                    let _ = self.targets[target].begin(&file.head);
                }
            }
            Asked::Send(target, parts) => {
                let target = &self.targets[target];
                let Some(file) = self.files.last() else { return };
                for _ in 0..parts {
                    let next = target.status(&id).ok().and_then(|status| status.next_part);
                    let Some(n) = next.and_then(|next| usize::try_from(next).ok()) else { return };
                    let Some(part) = file.parts.get(n - 1) else { return };
                    let _ = target.receive(&id, n, part);
                }
            }
            Asked::Verify(target) => drop(self.targets[target].verify(&id)),
            Asked::Open(target) => {
                for code in &self.codes {
                    let _ = self.targets[target].open(&id, code);
                }
            }
            Asked::CancelImport(target) => drop(self.targets[target].cancel(&id)),
        }
    }

    /// On how many hosts the workspace runs.
    fn running(&self) -> usize {
        let hosts = [&self.tenant.direct_access(), &self.targets[0].services, &self.targets[1].services];
        hosts.into_iter().filter(|services| runs(services, &self.id)).count()
    }
}

fn state(services: &Services, id: &WorkspaceId) -> Option<State> {
    block_on(Move::of(services, id)).unwrap().map(|found| found.state)
}

/// Whether a key opens the workspace, and something can be changed in it.
pub fn runs(services: &Services, id: &WorkspaceId) -> bool {
    let find = sql!(
        "SELECT 1 AS found FROM api_keys WHERE workspace_id = :ws AND revoked_at IS NULL
         AND NOT EXISTS (SELECT 1 FROM moves WHERE workspace_id = :ws AND lock = 2)"
    );
    let [found] = block_on(services.read([find.in_workspace(id)])).unwrap();
    !found.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn a_workspace_runs_on_one_host_at_most(order in prop::collection::vec(asked(), 1..60)) {
        let mut hosts = Hosts::new();
        prop_assert_eq!(hosts.running(), 1);
        for asked in order {
            hosts.ask(asked);
            let running = hosts.running();
            prop_assert!(running <= 1, "{} run it after {:?}", running, asked);
            // Nowhere only after it was handed over.
            let is_frozen = state(&hosts.tenant.direct_access(), &hosts.id) == Some(State::Frozen);
            prop_assert!(running == 1 || is_frozen || !hosts.codes.is_empty(), "nobody runs it");
        }
        // Before, it can be canceled.
        if hosts.codes.is_empty() {
            hosts.ask(Asked::Cancel);
            prop_assert_eq!(hosts.running(), 1);
        }
        drop(hosts.source);
    }
}

/// The way on which it moves, with each step twice, and another target that tries the same.
#[test]
fn of_two_targets_with_the_same_file_one_runs_it() {
    let mut hosts = Hosts::new();
    for asked in [
        Asked::Freeze,
        Asked::Begin(0),
        Asked::Begin(1),
        Asked::Send(0, 100),
        Asked::Send(1, 100),
        Asked::Verify(0),
        Asked::Verify(1),
        Asked::Open(0),
        Asked::Release(0),
        Asked::Release(1),
        Asked::Cancel,
        Asked::Open(1),
    ] {
        hosts.ask(asked);
        hosts.ask(asked);
        assert!(hosts.running() <= 1, "{asked:?}");
    }
    assert_eq!((hosts.running(), hosts.codes.len()), (0, 2));
    hosts.ask(Asked::Open(0));
    assert_eq!(state(&hosts.targets[0].services, &hosts.id), Some(State::Running));
    assert_eq!(state(&hosts.targets[1].services, &hosts.id), Some(State::Arrived));
    for asked in [
        Asked::Open(1),
        Asked::CancelImport(0),
        Asked::CancelImport(1),
        Asked::Close,
        Asked::Freeze,
        Asked::Open(1),
    ] {
        hosts.ask(asked);
        assert_eq!(hosts.running(), 1, "{asked:?}");
    }
    assert_eq!(state(&hosts.targets[0].services, &hosts.id), Some(State::Running));
}

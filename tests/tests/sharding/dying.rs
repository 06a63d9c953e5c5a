//! A move whose commands or databases die anywhere: whoever runs the commands again gets the same workspace on the other host, and
//! at no moment do both hosts run it.
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use sidetone_tests::World;
use sidetone_tests::process::bootstrap_key;

use crate::lost_writes::Failing;
use crate::once::runs;
use crate::operators::{
    Dying, Hosts, Operator, assert_same, export_and_cancel, has_lived, move_over, run_erase,
};

/// Moves a workspace to and fro. Of each move, the commands die at another request: the nth of an export with its import, and the
/// nth of erasing.
fn moves_wherever_commands_die(dies_after: bool) {
    let hosts = Hosts::new();
    let id = &hosts.id;
    hosts.calm_down(0);
    hosts.world(0).run();
    let everything = |at| {
        let mut all = hosts.everything(at);
        // It is noted when a key was used, and time passes while a command waits.
        all.remove("/keys").unwrap();
        all
    };
    let (before, beside) = (everything(0), hosts.beside());
    let mut nth = 1;
    loop {
        let (from, to) = if nth % 2 == 1 { (0, 1) } else { (1, 0) };
        let when = format!("after a move that died at request {nth}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("acme.move");
        let dying = Dying::at(&hosts, nth, dies_after);
        let has_moved = has_lived(move_over(&dying.operator(from), &dying.operator(to), id, &file));
        if !has_moved {
            move_over(hosts.operator(from), hosts.operator(to), id, &file).unwrap();
        }
        assert_eq!(hosts.running(), [to], "{when}");
        let dying = Dying::at(&hosts, nth, dies_after);
        let is_erased = has_lived(run_erase(&dying.operator(from), id));
        if !is_erased {
            run_erase(hosts.operator(from), id).unwrap();
        }
        assert_eq!(hosts.running(), [to], "{when}");
        assert_same(&everything(to), &before, &when);
        if has_moved && is_erased {
            break;
        }
        nth += 1;
    }
    println!("{} moves", nth - 1);
    assert!(nth > 15, "{nth}: too few requests");
    assert_eq!(hosts.beside(), beside, "the neighbours are unchanged");
    // The run that has waited all the while.
    let at = hosts.running()[0];
    assert!(hosts.hosts[at].target.cluster.run_jobs() > 0);
}

#[test]
fn a_workspace_moves_wherever_the_commands_die_before_a_request() {
    moves_wherever_commands_die(false);
}

#[test]
fn a_workspace_moves_wherever_the_commands_die_after_a_request() {
    moves_wherever_commands_die(true);
}

/// What the small workspace below shows.
fn shown(world: &World, call: &str) -> Vec<Bytes> {
    let paths = ["/workspace", "/assistants", "/tools", "/webhooks", "/calls", "/simulations/runs", "/audit"];
    let of_call = ["", "/recording", "/waveform"].map(|rest| format!("/calls/{call}{rest}"));
    paths.into_iter().map(str::to_owned).chain(of_call).map(|path| world.get(path).ok().body).collect()
}

/// Moves a small workspace once for each write of a host, which is cut off. How many writes there are.
fn moves_whatever_write_is_lost(at_source: bool) -> u32 {
    let keys = [4_000_050, 4_000_051].map(bootstrap_key);
    let mut writes = 0;
    for is_made in [false, true] {
        for nth in 0.. {
            let databases: [Arc<Failing>; 2] = [Failing::new(is_made), Failing::new(is_made)];
            let source = World::over_with(databases[0].clone(), &[(Operator::SETTING, &keys[0])]);
            let secret = ("SIDETONE_SECRET", "a secret of another host, where it arrives");
            let target = World::over_with(databases[1].clone(), &[(Operator::SETTING, &keys[1]), secret]);
            // Sandboxes make the same ids otherwise.
            target.sandbox().unwrap().services().ports().random.fill(&mut [0; 64]);
            target.sandbox().unwrap().advance(1_000);
            let (tenant, neighbour) = (source.other(), target.other());
            neighbour.assistant();
            tenant.assistant();
            tenant.a_tool();
            tenant.webhook();
            let call = tenant.a_recorded_call().id;
            tenant.run();
            let id = tenant.workspace_id();
            let operators = [
                Operator::of(&source, &keys[0], "https://source.example"),
                Operator::of(&target, &keys[1], "https://target.example"),
            ];
            // Nothing is waited for any more.
            export_and_cancel(&operators[0], &id);
            // A workspace whose triggers are not all there yet may still begin a run: this one waits until it has moved.
            operators[0].jobs_run.set(false);
            let before = shown(&tenant, &call);
            let beside = neighbour.get("/assistants").ok().body;
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("acme.move");
            let services = [source.direct_access(), target.direct_access()];
            let running = || services.each_ref().map(|services| runs(services, &id));
            let failing = &databases[usize::from(!at_source)];
            failing.fail_after(nth);
            let mut has_moved = false;
            let mut tries = 0;
            while !has_moved {
                has_moved = move_over(&operators[0], &operators[1], &id, &file).is_ok();
                assert_ne!(running(), [true, true], "write {nth}");
                tries += 1;
                assert!(has_moved || tries < 3, "write {nth}: it fails again and again");
            }
            if run_erase(&operators[0], &id).is_err() {
                run_erase(&operators[0], &id).unwrap();
            }
            let has_failed = failing.has_failed();
            failing.recover();
            assert_eq!(running(), [false, true], "write {nth}");
            let there = target.with_key(tenant.key());
            assert_eq!(shown(&there, &call), before, "write {nth}");
            assert_eq!(neighbour.get("/assistants").ok().body, beside);
            tenant.get("/assistants").refused("workspace_moved");
            there.post("/assistants", json!({"name": "New", "instructions": "Be kind."})).created();
            assert!(target.sandbox().unwrap().run_jobs() > 0, "the run that waited");
            let list = there.get("/simulations/runs").ok();
            assert_eq!(list["runs"][0]["status"], "completed", "write {nth}");
            if !has_failed {
                writes = nth;
                break;
            }
        }
    }
    writes
}

#[test]
fn a_workspace_moves_whatever_write_the_source_loses() {
    let writes = moves_whatever_write_is_lost(true);
    assert!(writes > 15, "{writes}");
}

#[test]
fn a_workspace_moves_whatever_write_the_target_loses() {
    let writes = moves_whatever_write_is_lost(false);
    assert!(writes > 12, "{writes}");
}

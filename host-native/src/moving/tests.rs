//! Whole moves between hosts, and databases, that are played. Hosts may die before and after each request.
mod databases;
mod hosts;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sidetone_engine::storage::moves::part::Part;
use tokio::runtime::Runtime;

use self::hosts::{CODE, Dying, IMPORT, Source, Target};
use super::Stop;
use super::export::{self, Export, Release};
use super::file::{Begun, Reader};
use super::host::MoveHost;
use super::import::{self, Canceled, Import};
use super::sample::{head, parts, workspace};

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Runs `sidetone export`; returns what it said and what came of it.
fn exported(host: &dyn MoveHost, file: &Path, wait_ms: u64) -> (Vec<String>, Result<String, Stop>) {
    let mut said = Vec::new();
    let wish = Export {
        workspace: "Acme & Söhne",
        file,
        without_late_prices: false,
        wait: Duration::from_millis(wait_ms),
        pause: Duration::from_millis(1),
    };
    let done = runtime().block_on(export::export(host, &wish, &mut |line: &str| said.push(line.to_owned())));
    (said, done)
}

fn imported(
    host: &dyn MoveHost,
    file: &Path,
    from: Option<&dyn MoveHost>,
) -> (Vec<String>, Result<String, Stop>) {
    let mut said = Vec::new();
    let wish = Import { file, from, admin: None };
    let done = runtime().block_on(import::import(host, &wish, &mut |line: &str| said.push(line.to_owned())));
    (said, done)
}

/// Runs `sidetone import --cancel`; returns what it said and what came of it.
fn canceled(host: &dyn MoveHost, what: Canceled<'_>) -> (Vec<String>, Result<String, Stop>) {
    let mut said = Vec::new();
    let done = runtime().block_on(import::cancel(host, what, &mut |line: &str| said.push(line.to_owned())));
    (said, done)
}

/// A place for a file.
fn file(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("acme.move")
}

/// A complete file.
fn whole(folder: &tempfile::TempDir, source: &Source) -> PathBuf {
    let file = file(folder);
    exported(source, &file, 60_000).1.unwrap();
    file
}

#[test]
fn a_workspace_moves() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (Source::waiting(2), Target::default());
    let file = file(&folder);
    let (said, done) = exported(&source, &file, 60_000);
    let done = done.unwrap();
    let begins = format!("no call and no run begins in Acme ({}) any more", workspace());
    assert_eq!(
        said,
        [
            format!("At https://box.example.com: {begins}").as_str(),
            "waiting for 2 conversations, 1 line (until 16:40 UTC) …",
            "waiting for 1 conversation, 1 line (until 16:40 UTC) …",
            "Acme is frozen: it can be read; changes are answered with 503 workspace_moving",
        ]
    );
    assert!(
        done.contains(": 4 rows, 2 signing secrets (sealed), 1 file (11 bytes). Acme still belongs to"),
        "{done}"
    );
    assert!(done.contains("\nexport:   exp_1\nnext:     sidetone import "), "{done}");
    assert!(done.contains("Not in it: 1 file of recordings and transcripts, lost there"), "{done}");
    assert!(done.contains("--cancel --url https://box.example.com"), "{done}");
    assert_eq!(exported(&source, &file, 60_000).1.unwrap(), done, "again, it is there");

    let (said, done) = imported(&target, &file, Some(&source));
    let done = done.unwrap();
    assert_eq!(
        said[1..],
        [
            format!("At https://edge.example.com: Acme ({}) arrives", workspace()).as_str(),
            "warning: It does not know the carrier `plivo`.",
            "part 1 of 6",
            "part 6 of 6",
            format!("Every row and file is as in {}.", file.display()).as_str(),
            "handed over by https://box.example.com",
        ]
    );
    assert!(done.starts_with("Acme runs at https://edge.example.com\nimport:   imp_1\n"), "{done}");
    assert!(
        done.contains("the carriers' addresses of 1 number here; invite people (--admin); change"),
        "{done}"
    );
    assert!(done.ends_with("--erase --yes --url https://box.example.com"), "{done}");
    assert_eq!(source.released(), Some((IMPORT.to_owned(), "https://voice.example.com".to_owned())));
    let reader = Reader::open(&file).unwrap();
    let sent: Vec<_> = (1..=6).map(|n| reader.part(n).unwrap().unwrap()).collect();
    assert_eq!(target.received(), sent);
    assert_eq!(imported(&target, &file, Some(&source)).1.unwrap(), done, "again, it runs");

    // The file can be made again, and what is left at the source goes.
    fs::remove_file(&file).unwrap();
    let (said, done) = exported(&source, &file, 60_000);
    let again = "Acme was handed over to https://voice.example.com already; its file is made again";
    assert_eq!(said, [again]);
    assert!(!done.unwrap().contains("--cancel"));
    let erase =
        |is_sure| runtime().block_on(export::erase(&source, "Acme & Söhne", is_sure, &mut |_: &str| ()));
    let asked = erase(false).unwrap_err();
    assert_eq!((asked.exit_code(), source.released().is_some()), (1, true));
    let asked = asked.to_string();
    assert!(asked.contains("imp_1 at https://voice.example.com on 2026-11-28 at 17:05 UTC. "), "{asked}");
    assert!(asked.ends_with("--erase --yes --url https://box.example.com"), "{asked}");
    let erased = erase(true).unwrap();
    assert!(erased.contains("erased at https://box.example.com"), "{erased}");
    let stop = exported(&source, &folder.path().join("later.move"), 0).1.unwrap_err();
    assert!(
        stop.to_string().ends_with(" It was handed over to imp_1 at https://voice.example.com."),
        "{stop}"
    );
    let back = runtime().block_on(export::cancel(&source, "Acme & Söhne")).unwrap_err();
    assert_eq!(back.exit_code(), 1);
    assert!(back.to_string().ends_with(" at https://voice.example.com."), "{back}");
    assert_eq!((stop.exit_code(), folder.path().join("later.move.part").exists()), (1, false), "{stop}");
}

/// Whatever dies before or after any request: the same commands again come to the same end.
#[test]
fn a_move_goes_on_wherever_it_died() {
    for dies_after in [false, true] {
        for nth in 1.. {
            let folder = tempfile::tempdir().unwrap();
            let (source, target) = (Source::waiting(1), Target::default());
            let file = file(&folder);
            let lives = Dying::shared(nth, dies_after);
            let dying = exported(&lives.host(&source), &file, 60_000).1.and_then(|_| {
                let from = lives.host(&source);
                imported(&lives.host(&target), &file, Some(&from)).1
            });
            if dying.is_ok() {
                assert!(nth > 15, "it had {nth} requests");
                break;
            }
            if Reader::open(&file).is_err() {
                exported(&source, &file, 60_000).1.unwrap();
            }
            let done = imported(&target, &file, Some(&source)).1.unwrap();
            assert!(done.starts_with("Acme runs at"), "{nth}: {done}");
            assert_eq!(target.received().len(), parts().len() + 1, "{nth}");
            assert_eq!(source.released().map(|(import, _)| import), Some(IMPORT.to_owned()));
        }
    }
}

#[test]
fn without_the_source_a_code_opens_it() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (Source::waiting(0), Target::default());
    let file = whole(&folder, &source);
    let open = |code: &str| runtime().block_on(import::open_with(&target, &file, code, None));
    let early = open(CODE).unwrap_err();
    assert_eq!(early.exit_code(), 1);
    assert!(early.to_string().contains("not everything of Acme"), "{early}");

    let stop = imported(&target, &file, None).1.unwrap_err();
    assert_eq!(stop.exit_code(), 1);
    let told = stop.to_string();
    let command = format!("--release {IMPORT} --export-id exp_1 --to https://voice.example.com\n");
    assert!(told.contains(&command) && told.contains("--code --url https://edge.example.com"), "{told}");
    assert_eq!(source.released(), None);

    let release =
        Release { export_id: "exp_1", import_id: IMPORT, to: "https://voice.example.com", instead_of: None };
    let before = Release { export_id: "exp_0", ..release };
    let stop = runtime().block_on(export::release(&source, "Acme & Söhne", &before)).unwrap_err();
    assert_eq!((stop.exit_code(), source.released()), (1, None), "{stop}");
    let code = runtime().block_on(export::release(&source, "Acme & Söhne", &release)).unwrap();
    let other = Release { import_id: "imp_2", ..release };
    let stop = runtime().block_on(export::release(&source, "Acme & Söhne", &other)).unwrap_err();
    assert_eq!(stop.exit_code(), 1, "{stop}");
    let told = stop.to_string();
    assert!(
        told.contains(" imp_1 at https://voice.example.com.") && told.ends_with("--instead-of imp_1"),
        "{told}"
    );
    let wrong = open("move_wrong").unwrap_err();
    assert_eq!(wrong.exit_code(), 2);
    assert!(wrong.to_string().ends_with(command.trim_end()), "{wrong}");
    assert!(open(&code).unwrap().starts_with("Acme runs at"));
    assert!(open(&code).unwrap().starts_with("Acme runs at"), "again");
    let stop = canceled(&target, Canceled::OfFile(&file)).1.unwrap_err();
    assert_eq!(stop.exit_code(), 1);
    assert!(stop.to_string().contains("nothing of"), "what runs is not removed: {stop}");
}

#[test]
fn what_has_arrived_can_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (Source::waiting(0), Target::default());
    let file = whole(&folder, &source);
    let cancel = || canceled(&target, Canceled::OfFile(&file));
    let nothing = "Nothing of an import of Acme is at https://edge.example.com: there is nothing to remove.";
    assert_eq!(cancel(), (Vec::new(), Ok(nothing.to_owned())));
    imported(&target, &file, None).1.unwrap_err();
    // Everything is there, and the source may have handed it over: it may run nowhere then.
    let (said, done) = cancel();
    let warning =
        "warning: all of Acme had arrived at https://edge.example.com (imp_1), and is removed there: ";
    assert!(said.len() == 1 && said[0].starts_with(warning), "{said:?}");
    let (done, runs_again) =
        (done.unwrap(), format!("sidetone export --workspace {} --cancel\n", workspace()));
    assert!(done.contains("is removed") && done.contains(&runs_again), "{done}");
    assert!(done.ends_with(": --instead-of imp_1"), "{done}");
    assert_eq!(target.received().len(), 0);
    assert_eq!(cancel(), (Vec::new(), Ok(nothing.to_owned())), "again");

    // Of another file, it has to be said, and that file may be lost.
    imported(&target, &file, None).1.unwrap_err();
    let next = folder.path().join("next.move");
    let (writer, _) = Begun::at(&next).unwrap().resume(&head("exp_2")).unwrap();
    drop(writer);
    let next = next.with_added_extension("part");
    let stop = canceled(&target, Canceled::OfFile(&next)).1.unwrap_err();
    let command =
        format!("sidetone import --workspace {} --cancel --url https://edge.example.com", workspace());
    let told = stop.to_string();
    assert!(told.contains("that of exp_1") && told.ends_with(&command), "{told}");
    assert_ne!(target.received().len(), 0);
    let by_id = || canceled(&target, Canceled::Of(&workspace())).1.unwrap();
    assert!(by_id().contains("is removed"));
    assert_eq!(target.received().len(), 0);
    assert_eq!(by_id(), nothing, "again");
    imported(&target, &file, Some(&source)).1.unwrap();
}

/// How the source cuts the rows depends on what else is in its database.
#[test]
fn a_file_that_is_cut_elsewhere_does_not_go_on_where_another_one_was_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (Source::waiting(0), Target::default());
    let file = whole(&folder, &source);
    // Before it sends its second part.
    let lives = Dying::shared(4, false);
    imported(&lives.host(&target), &file, None).1.unwrap_err();
    assert_eq!(target.received().len(), 1);

    let again = folder.path().join("again.move");
    let all = parts();
    let pages = [all[0].pages().unwrap(), all[1].pages().unwrap()].concat();
    let first_two = Part::of_pages(&pages, all[1].head.next.clone());
    let (mut writer, _) = Begun::at(&again).unwrap().resume(&head("exp_1")).unwrap();
    writer.add(&first_two.to_bytes()).unwrap();
    all[2..].iter().for_each(|part| writer.add(&part.to_bytes()).unwrap());
    writer.finish().unwrap();
    let stop = imported(&target, &again, Some(&source)).1.unwrap_err();
    assert_eq!((stop.exit_code(), target.received().len()), (1, 1), "{stop}");
    let told = stop.to_string();
    assert!(
        told.contains("cut elsewhere") && told.contains("--cancel --url https://edge.example.com"),
        "{told}"
    );

    let (said, done) = canceled(&target, Canceled::OfFile(&again));
    assert!(
        said.is_empty() && done.unwrap().ends_with("It can be imported there again."),
        "it was not whole"
    );
    imported(&target, &again, Some(&source)).1.unwrap();
    assert_eq!(target.received().len(), parts().len());
}

#[test]
fn a_file_of_an_export_that_was_taken_back_takes_nothing_over() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (Source::waiting(0), Target::default());
    let file = whole(&folder, &source);
    let done = runtime().block_on(export::cancel(&source, "Acme & Söhne")).unwrap();
    assert!(done.starts_with("Acme runs at https://box.example.com."), "{done}");
    for again in [false, true] {
        if again {
            exported(&source, &folder.path().join("second.move"), 60_000).1.unwrap();
        }
        let stop = imported(&target, &file, Some(&source)).1.unwrap_err();
        assert_eq!(stop.exit_code(), 1);
        assert!(stop.to_string().contains("not frozen for this file"), "{stop}");
        assert_eq!((source.released(), target.received().len()), (None, 0), "nothing is sent");
    }
    // The first file is not in the way of the second export, and not taken for it.
    let stop = exported(&source, &file, 60_000).1.unwrap_err();
    assert!(stop.to_string().contains("exists; choose another file"), "{stop}");
}

#[test]
fn nothing_is_sent_for_a_file_whose_workspace_was_handed_over_to_another_import() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (Source::waiting(0), Target::default());
    let file = whole(&folder, &source);
    let to =
        Release { export_id: "exp_1", import_id: "imp_0", to: "https://lost.example.com", instead_of: None };
    runtime().block_on(export::release(&source, "Acme & Söhne", &to)).unwrap();
    let stop = imported(&target, &file, Some(&source)).1.unwrap_err();
    assert_eq!((stop.exit_code(), target.received().len()), (1, 0), "{stop}");
    let told = stop.to_string();
    assert!(
        told.contains("imp_0 at https://lost.example.com") && told.ends_with("--instead-of imp_0"),
        "{told}"
    );
}

#[test]
fn what_is_under_way_is_not_waited_for_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let source = Source::waiting(u32::MAX);
    let stop = exported(&source, &file(&folder), 0).1.unwrap_err();
    assert_eq!(stop.exit_code(), 1);
    let told = stop.to_string();
    assert!(told.contains("waits for") && told.contains("--cancel --url https://box.example.com"), "{told}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "no empty file is left");
}

#[test]
fn a_file_that_cannot_be_written_changes_nothing_there() {
    let folder = tempfile::tempdir().unwrap();
    let source = Source::waiting(0);
    fs::write(file(&folder), "something else").unwrap();
    let [folder_itself, none, taken] = ["", "none", "acme.move"].map(|name| folder.path().join(name));
    let is_folder = |path: &Path| format!("{} is a folder; name a file in it", path.display());
    for (path, told) in [
        (folder.path().to_owned(), is_folder(folder.path())),
        (folder_itself.clone(), is_folder(&folder_itself)),
        // Such a name is one of a folder, whether it is there or not.
        (none.join(""), is_folder(&none.join(""))),
        (
            none.join("acme.move"),
            format!("the folder {} does not exist; make it first, or choose another one", none.display()),
        ),
        (taken.join("acme.move"), format!("{} is no folder; choose another one", taken.display())),
        (taken.clone(), format!("{} exists; choose another file", taken.display())),
    ] {
        let stop = exported(&source, &path, 0).1.unwrap_err();
        assert_eq!((stop.exit_code(), source.is_closed()), (2, false), "{stop}");
        assert_eq!(stop.to_string(), told);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left");
}

#[test]
fn refusals_say_whether_somebody_can_help() {
    let folder = tempfile::tempdir().unwrap();
    let source = Source::waiting(0);
    let file = whole(&folder, &source);
    for (reason, code) in [
        ("numbers_taken", 1),
        ("keys_taken", 1),
        ("workspace_exists", 1),
        ("other_export", 1),
        ("schema_older", 2),
        ("wrong_part", 2),
        ("something_new", 2),
    ] {
        let target = Target::default();
        target.refuse(reason);
        let stop = imported(&target, &file, Some(&source)).1.unwrap_err();
        assert_eq!(stop.exit_code(), code, "{reason}");
        let told = stop.to_string();
        assert!(told.starts_with(&format!("https://edge.example.com: Refused as {reason}.")), "{told}");
        let drops =
            format!("sidetone import --workspace {} --cancel --url https://edge.example.com", workspace());
        assert_eq!(told.ends_with(&drops), reason == "other_export", "{told}");
        assert_eq!(source.released(), None);
    }
}

#[test]
fn two_commands_may_send_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (Source::waiting(0), Target::default());
    let file = whole(&folder, &source);
    // Another command is ahead by two parts whenever this one sends its second.
    target.another_sends(3);
    imported(&target, &file, Some(&source)).1.unwrap();
    assert_eq!(target.received().len(), parts().len() + 1);
}

//! What the binary says when it cannot start: the setting, the path, and what to do.
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use sidetone_tests::process::{self, Folder, Server};

use crate::said::{refused, settle};

/// Every word is in the line.
fn says(line: &str, words: &[&str]) {
    for word in words {
        assert!(line.contains(word), "`{word}` is not in: {line}");
    }
}

#[test]
fn a_folder_that_cannot_be_written() {
    let folder = Folder::new();
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").unwrap();
    let below = file.join("data");
    for path in [&file, &below] {
        says(
            &refused(&process::run(path, &[], &[])),
            &["SIDETONE_DATA", &path.display().to_string(), "is a file"],
        );
    }
    // The root user may write everywhere, so the binary runs as somebody else, from where everybody may.
    let open = tempfile::tempdir().unwrap();
    std::fs::set_permissions(open.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = open.path().join("sidetone");
    std::fs::copy(process::binary(), &program).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let locked = open.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, PermissionsExt::from_mode(0o555)).unwrap();
    let data = locked.join("data");
    let mut command = std::process::Command::new(&program);
    command.env("SIDETONE_DATA", &data).env("SIDETONE_LISTEN", "127.0.0.1:0");
    let is_root = std::fs::metadata(&data).is_err() && std::fs::write(locked.join("probe"), "").is_ok();
    if is_root {
        command.uid(65_534).gid(65_534);
    }
    let line = refused(&command.output().unwrap());
    says(&line, &["SIDETONE_DATA", &data.display().to_string(), "chown"]);
    says(&line, &[if is_root { "65534" } else { "number" }]);
}

#[test]
fn a_damaged_database_file() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    assert!(Server::start(&data, &[]).stop().success());
    let file = data.join("sidetone.db");
    settle(&data);
    let before = std::fs::read(&file).unwrap();
    std::fs::write(&file, [&b"this is no database at all"[..], &before[26..]].concat()).unwrap();
    for arguments in [&[][..], &["key", "list"], &["check"]] {
        let line = refused(&process::run(&data, &[], arguments));
        says(&line, &["SIDETONE_DATA", &file.display().to_string(), "damaged", "sidetone restore"]);
    }
    assert_eq!(std::fs::read(&file).unwrap()[..26], b"this is no database at all"[..], "it is left as it is");
}

/// As after `mv sidetone.db elsewhere`: SQLite would make a new database, and delete the log of the old one.
#[test]
fn a_database_that_is_lost() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let server = Server::start(&data, &[]);
    let (file, log) = (data.join("sidetone.db"), data.join("sidetone.db-wal"));
    server.kill();
    std::fs::write(&log, [1; 4_152]).unwrap();
    std::fs::rename(&file, data.join("elsewhere.db")).unwrap();
    let backup = folder.path().join("backup.tar");
    let commands: [&[&str]; 9] = [
        &[],
        &["key", "list"],
        &["workspace", "list"],
        &["workspace", "create", "another"],
        &["secrets", "accept"],
        &["sign-in-link"],
        &["backup", backup.to_str().unwrap()],
        &["check"],
        &["check", "--remove-unnamed", "--yes"],
    ];
    let everywhere = |words: &[&str]| {
        for arguments in commands {
            says(&refused(&process::run(&data, &[], arguments)), words);
        }
        let doctor = process::run(&data, &[], &["doctor"]);
        assert!(!doctor.status.success());
        let found = String::from_utf8_lossy(&doctor.stdout).into_owned();
        let found = found.lines().find(|line| line.contains("database")).unwrap();
        says(found, &["PROBLEM"]);
        says(found, &words[1..]);
    };
    let left_log = ["SIDETONE_DATA", "missing or empty", log.to_str().unwrap(), "put the database back"];
    everywhere(&left_log);
    assert!(!file.exists());
    std::fs::write(&file, []).unwrap();
    everywhere(&left_log);
    assert_eq!(std::fs::read(&log).unwrap(), [1; 4_152], "the log is as it was");
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 0);

    // Without the log, recordings tell that there was one.
    std::fs::remove_file(&log).unwrap();
    let workspace = data.join("recordings/ws_01kdvdna006rbtcft1tgva37vw");
    std::fs::create_dir_all(&workspace).unwrap();
    let recording = workspace.join("call_01kdvdpb6g8hyqcrq96pk6gcf2.rec_01kdvdpb6g8hyqcrq96pk6gcf3.0.pcm");
    std::fs::write(&recording, [0; 4]).unwrap();
    let left_files = ["SIDETONE_DATA", "missing or empty", "1 file", "recordings", "restore a backup"];
    everywhere(&left_files);
    std::fs::remove_file(&file).unwrap();
    everywhere(&left_files);
    assert!(!file.exists() && recording.exists());

    std::fs::rename(data.join("elsewhere.db"), &file).unwrap();
    assert!(Server::start(&data, &[]).stop().success());
    assert!(recording.exists(), "whoever has put the database back is asked first");
}

#[test]
fn the_last_line_of_a_log_has_its_form() {
    let data = Folder::new();
    let json = [("SIDETONE_LOG_FORMAT", "json"), ("SIDETONE_LISTEN", "192.0.2.1:8787")];
    let output = process::run(data.path(), &json, &[]);
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().unwrap();
    assert_eq!((&last["level"], &last["target"]), (&"ERROR".into(), &"sidetone".into()));
    says(last["message"].as_str().unwrap(), &["SIDETONE_LISTEN", "192.0.2.1:8787"]);
    assert!(last["timestamp"].as_str().unwrap().ends_with('Z'));
    let command = refused(&process::run(&data.path().join("none"), &json, &["key", "list"]));
    says(&command, &["does not exist"]);
}

#[test]
fn a_database_of_a_newer_version() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    assert!(Server::start(&data, &[]).stop().success());
    let file = data.join("sidetone.db");
    rusqlite::Connection::open(&file)
        .and_then(|file| file.execute("INSERT INTO migrations (name) VALUES ('9999_later.sql')", []))
        .unwrap();
    for arguments in [&[][..], &["workspace", "list"]] {
        let line = refused(&process::run(&data, &[], arguments));
        says(
            &line,
            &["SIDETONE_DATA", &file.display().to_string(), "9999_later.sql", "newer", "restore a backup"],
        );
    }
}

#[test]
fn a_port_that_is_taken_or_an_address_that_is_not_here() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let line = refused(&process::run(&data, &[("SIDETONE_LISTEN", &address.to_string())], &[]));
    says(&line, &["SIDETONE_LISTEN", &address.to_string(), "ss -ltnp", &address.port().to_string()]);
    let line = refused(&process::run(&data, &[("SIDETONE_LISTEN", "192.0.2.1:8787")], &[]));
    says(&line, &["SIDETONE_LISTEN", "192.0.2.1:8787", "0.0.0.0:8787"]);
    let line = refused(&process::run(&data, &[("SIDETONE_LISTEN", "voice.example.com:443")], &[]));
    says(&line, &["SIDETONE_LISTEN", "voice.example.com:443", "127.0.0.1:443", "0.0.0.0:443"]);
}

#[test]
fn localhost_is_this_machine() {
    let folder = Folder::new();
    let server = Server::start(&folder.path().join("data"), &[("SIDETONE_LISTEN", "localhost:0")]);
    assert!(server.address().ip().is_loopback());
    assert!(server.stop().success());
}

#[test]
fn a_second_server_names_the_first() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let server = Server::start(&data, &[]);
    for arguments in [&[][..], &["secrets", "accept"]] {
        let line = refused(&process::run(&data, &[], arguments));
        let process = format!("process {}", server.pid());
        says(&line, &["SIDETONE_DATA", &process, &data.display().to_string(), "stop it"]);
    }
    // The lock of a process that died is nobody's.
    server.kill();
    assert!(Server::start(&data, &[]).stop().success());
}

#[test]
fn settings_of_the_log_and_of_proxies() {
    let data = Folder::new();
    let wrong =
        |name: &str, value: &str| refused(&process::run(Path::new(data.path()), &[(name, value)], &[]));
    says(&wrong("RUST_LOG", "sidetone=loud"), &["RUST_LOG", "sidetone=loud", "sidetone=debug"]);
    says(&wrong("SIDETONE_LOG_FORMAT", "xml"), &["SIDETONE_LOG_FORMAT", "xml", "json"]);
    for value in ["proxy.example.com", "10.0.0.0/33", "10.0.0.0/8;10.1.0.0/16"] {
        says(&wrong("SIDETONE_TRUSTED_PROXIES", value), &["SIDETONE_TRUSTED_PROXIES", value, "10.0.0.0/8"]);
    }
}

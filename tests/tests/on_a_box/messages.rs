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

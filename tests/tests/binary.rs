//! The binary from the operator's point of view: start, stop, errors at start, and the command line.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]
use std::io::{BufReader, Read as _, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::json;
use sidetone_tests::fakes::carrier::default_account;
use sidetone_tests::process::{self, Folder, Server, bootstrap_key, read_answer, request_head};
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};
use sidetone_tests::{LiveClient, Reply, wire};

#[test]
fn a_graceful_stop_finishes_open_requests() {
    let folder = Folder::new();
    let key = bootstrap_key(1);
    let settings = [("SIDETONE_BOOTSTRAP_KEYS", key.as_str()), ("SIDETONE_STOP_SECONDS", "30")];
    let mut server = Server::start(&folder.path().join("data"), &settings);
    // The more of a body has arrived, the longer the rest is waited for: on a busy machine it comes late.
    let body = json!({"name": "Late", "instructions": "Be kind. ".repeat(2_500)}).to_string();
    let (first, rest) = body.split_at(body.len() - 10);

    let mut open = BufReader::new(TcpStream::connect(server.address()).expect("the server listens"));
    let head = request_head("POST", "/assistants", &key, &[], body.len());
    open.get_mut().write_all((head + first).as_bytes()).expect("the server reads");
    // The first connection was accepted before this one.
    server.connect(&key).expect(200, "GET", "/assistants", None);
    std::thread::sleep(Duration::from_millis(1_000));
    server.terminate();
    let deadline = Instant::now() + Duration::from_secs(15);
    while TcpStream::connect(server.address()).is_ok() {
        assert!(Instant::now() < deadline, "no new connection is accepted");
        std::thread::sleep(Duration::from_millis(20));
    }
    open.get_mut().write_all(rest.as_bytes()).expect("the server still reads");
    let answer = read_answer(&mut open).expect("the open request gets its response");

    assert_eq!(answer.status, 201, "{}", answer.json);
    assert!(server.wait().success());
}

#[test]
fn a_stop_ends_an_idle_connection_at_once() {
    let folder = Folder::new();
    let key = bootstrap_key(1);
    let server = Server::start(&folder.path().join("data"), &[("SIDETONE_BOOTSTRAP_KEYS", &key)]);
    let mut idle = server.connect(&key);
    idle.expect(200, "GET", "/assistants", None);
    let started = Instant::now();
    assert!(server.stop().success());
    assert!(started.elapsed() < Duration::from_secs(5), "there was no open request to wait for");
}

#[test]
fn a_stop_ends_the_streams_of_those_who_follow() {
    let folder = Folder::new();
    let key = bootstrap_key(1);
    let server = Server::start(&folder.path().join("data"), &[("SIDETONE_BOOTSTRAP_KEYS", &key)]);
    let mut client = server.connect(&key);
    let assistant =
        client.expect(201, "POST", "/assistants", Some(&json!({"name": "A", "instructions": "B"})));
    let path = format!("/assistants/{}/test-token", assistant["id"].as_str().expect("an id"));
    let token = client.expect(200, "POST", &path, Some(&json!({})));
    let url = token["websocket_url"].as_str().expect("a URL");
    let path = url.find("/voice-test").map_or(url, |at| &url[at..]);
    let mut talking = LiveClient::over_tcp(server.address(), path).expect("the token is good");
    let call = talking.expect("call_started")["call"]["id"].as_str().expect("an id").to_owned();
    let mut following = TcpStream::connect(server.address()).expect("the server listens");
    let head = request_head("GET", &format!("/calls/{call}/events"), &key, &[], 0);
    following.write_all(head.as_bytes()).expect("the server reads");
    let mut first = [0; 4_096];
    assert!(following.read(&mut first).expect("the head and the status") > 0);
    drop(talking);
    let started = Instant::now();
    assert!(server.stop().success());
    assert!(started.elapsed() < Duration::from_secs(5), "whoever follows is not waited for");
}

/// One time for the requests and the jobs together.
#[test]
fn a_stop_waits_no_longer_than_it_is_told() {
    let (folder, key) = (Folder::new(), bootstrap_key(1));
    let settings = [
        ("SIDETONE_BOOTSTRAP_KEYS", key.as_str()),
        ("SIDETONE_ALLOW_PRIVATE_TARGETS", "1"),
        ("SIDETONE_STOP_SECONDS", "5"),
    ];
    let server = Server::start(&folder.path().join("data"), &settings);
    let receiver = Receiver::start(ReceiverBehaviour::Hang);
    let mut client = server.connect(&key);
    let webhook = json!({"url": receiver.url(), "events": ["*"]});
    let webhook = client.expect(201, "POST", "/webhooks", Some(&webhook))["id"].clone();
    let path = format!("/webhooks/{}/test", webhook.as_str().expect("an id"));
    client.expect(201, "POST", &path, None);
    receiver.wait_for(1, Duration::from_secs(10));
    let mut open = TcpStream::connect(server.address()).expect("the server listens");
    let head = request_head("POST", "/assistants", &key, &[], 100);
    open.write_all(head.as_bytes()).expect("the server reads");
    std::thread::sleep(Duration::from_millis(200));
    let started = Instant::now();
    assert!(server.stop().success());
    let took = started.elapsed();
    // One after the other it would be ten seconds.
    assert!(Duration::from_millis(4_500) < took && took < Duration::from_secs(9), "{took:?}");
}

/// Needs the right to mount a small disk; without it, it says so and ends.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_still_takes_deletes_and_is_not_ready() {
    let folder = Folder::new();
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).expect("a folder");
    let mount = |arguments: &[&str]| {
        std::process::Command::new(arguments[0]).args(&arguments[1..]).arg(&disk).status()
    };
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs"]).is_ok_and(|status| status.success()) {
        println!("not tested: a disk cannot be mounted here");
        return;
    }
    let tested = std::panic::catch_unwind(|| fill_and_empty(&disk.join("data")));
    assert!(mount(&["umount", "-l"]).is_ok_and(|status| status.success()));
    tested.expect("the full disk");
}

#[cfg(target_os = "linux")]
fn fill_and_empty(data: &Path) {
    let key = bootstrap_key(5);
    let settings = [("SIDETONE_BOOTSTRAP_KEYS", key.as_str()), ("SIDETONE_RESERVE_MB", "8")];
    let server = Server::start(data, &settings);
    let mut client = server.connect(&key);
    assert_eq!(client.expect(200, "GET", "/readyz", None), json!({"status": "ready"}));
    let content = "We are open from nine to five. ".repeat(1_500);
    let mut ids = Vec::new();
    let full = loop {
        let document = json!({"name": format!("Hours {}", ids.len()), "content": content});
        let answer = client.send("POST", "/knowledge", &[], Some(&document)).expect("an answer");
        match answer.status {
            201 => ids.push(answer["id"].as_str().expect("an id").to_owned()),
            _ => break answer,
        }
        assert!(ids.len() < 1_000, "the disk has 24 MB");
    };
    assert_eq!(full.status, 503, "{}", full.json);
    client.expect(200, "GET", "/healthz", None);
    // An answer is kept for a second.
    std::thread::sleep(Duration::from_secs(1));
    let ready = client.expect(503, "GET", "/readyz", None);
    assert_eq!(ready["reason"], "the disk is full");
    for id in &ids {
        client.expect(204, "DELETE", &format!("/knowledge/{id}"), None);
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while client.send("GET", "/readyz", &[], None).expect("an answer").status != 200 {
        assert!(Instant::now() < deadline, "what was deleted makes room");
        std::thread::sleep(Duration::from_millis(200));
    }
    let document = json!({"name": "Hours", "content": content});
    client.expect(201, "POST", "/knowledge", Some(&document));
    assert!(server.stop().success());
}

/// With few files, silent connections and unfinished heads take all places; whoever asks something still gets through.
#[test]
#[cfg(unix)]
fn silent_connections_block_nobody() {
    let folder = Folder::new();
    let (data, key) = (folder.path().join("data"), bootstrap_key(1));
    let program = process::command(&data, &[("SIDETONE_BOOTSTRAP_KEYS", &key)]);
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -n 160 && exec \"$0\""]).arg(program.get_program());
    limited.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let log = std::fs::File::create(folder.path().join("log")).expect("a log file");
    let server = Server::spawn(limited.stderr(log), folder.path().join("log"));
    let mut silent = Vec::new();
    for n in 0..300 {
        let mut stream = TcpStream::connect(server.address()).expect("the server listens");
        if n % 3 == 0 {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\n").expect("the server reads");
        }
        silent.push(stream);
    }
    let started = Instant::now();
    server.connect(&key).expect(200, "GET", "/healthz", None);
    server.connect(&key).expect(200, "GET", "/assistants", None);
    assert!(started.elapsed() < Duration::from_secs(20), "without waiting for the silent ones to be closed");
}

#[test]
fn a_second_server_on_the_same_folder_does_not_start() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let server = Server::start(&data, &[]);
    let line = refused(&process::run(&data, &[], &[]));
    assert!(line.contains("another sidetone (process ") && line.contains("is serving"), "{line}");
    assert!(server.stop().success());
}

#[test]
fn a_database_from_a_newer_version_is_rejected() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    assert!(Server::start(&data, &[]).stop().success());
    Connection::open(data.join("sidetone.db"))
        .and_then(|file| file.execute("INSERT INTO migrations (name) VALUES ('9999_later.sql')", []))
        .expect("the database can be written");
    let commands: [&[&str]; 3] =
        [&[], &["workspace", "create", "late"], &["key", "create", "--workspace", "late"]];
    for arguments in commands {
        let line = refused(&process::run(&data, &[], arguments));
        assert!(line.contains("9999_later.sql") && line.contains("newer"), "{line}");
    }
}

#[test]
fn an_invalid_setting_prevents_the_start_and_is_named() {
    let folder = Folder::new();
    for (name, value) in [
        ("SIDETONE_LISTEN", "everywhere"),
        ("SIDETONE_RESERVE_MB", "much"),
        ("SIDETONE_BASE_URL", "voice.example.com"),
        ("SIDETONE_SECRET", "short"),
        ("SIDETONE_BOOTSTRAP_KEYS", "sidetone_nope"),
        ("SIDETONE_OPERATOR_KEY", "sidetone_nope"),
        ("SIDETONE_DEFAULT_MODEL", "nobody/model"),
        ("SIDETONE_DEFAULT_VOICE", "tone"),
        ("SIDETONE_PROVIDERS", "{"),
        ("SIDETONE_MODELS", "{\"nobody/model\": {}}"),
        ("SIDETONE_ALLOW_PRIVATE_TARGETS", "perhaps"),
        ("SIDETONE_TRUSTED_PROXIES", "proxy.example.com"),
    ] {
        let line = refused(&process::run(&folder.path().join("data"), &[(name, value)], &[]));
        assert!(line.contains(name), "{line}");
    }
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").expect("the folder can be written");
    let line = refused(&process::run(&file, &[], &[]));
    assert!(line.contains("SIDETONE_DATA"), "{line}");
}

#[test]
fn the_command_line_works_while_the_server_runs() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let server = Server::start(&data, &[]);

    let made = answered(&process::run(&data, &[], &["workspace", "create", "Second"]));
    let first = key_in(&made);
    let second = key_in(&answered(&process::run(&data, &[], &["key", "create", "--workspace", "Second"])));
    assert_ne!(first, second);
    let agent = json!({"name": "Desk", "instructions": "Be kind."});
    server.connect(&first).expect(201, "POST", "/assistants", Some(&agent));
    let seen = server.connect(&second).expect(200, "GET", "/assistants", None);
    assert_eq!(seen.as_array().map(Vec::len), Some(1), "both keys open the same workspace");
    let other = server.connect(&key_in(server.welcome())).expect(200, "GET", "/assistants", None);
    assert_eq!(other, json!([]), "and no other");

    let backup = folder.path().join("backup.db");
    let arguments = ["backup", &backup.to_string_lossy()];
    answered(&process::run(&data, &[], &arguments));
    let name: String = Connection::open(&backup)
        .and_then(|file| file.query_row("SELECT name FROM assistants", [], |row| row.get(0)))
        .expect("the backup contains the assistant");
    assert_eq!(name, "Desk");
    let line = refused(&process::run(&data, &[], &arguments));
    assert!(line.contains("exists"), "{line}");
    let line = refused(&process::run(&data, &[], &["key", "create", "--workspace", "Third"]));
    assert!(line.contains("Third"), "{line}");
    assert!(server.stop().success());
}

/// Somebody who has signed out, and has neither mail nor another way to sign in, comes back.
#[test]
fn the_command_line_makes_links_to_sign_in() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let help = answered(&process::run(&data, &[], &["--help"]));
    assert!(help.contains("sign-in-link") && help.contains("signs the operator in"), "{help}");
    let server = Server::start(&data, &[]);
    let path = |text: &str| {
        let at = text.find("/dashboard/sign-in/link?token=").unwrap_or_else(|| panic!("no link: {text}"));
        text[at..].split_whitespace().next().expect("a link").to_owned()
    };
    let first = path(server.welcome());
    let make = || {
        answered(&process::run(
            &data,
            &[("SIDETONE_BASE_URL", "https://voice.example.com")],
            &["sign-in-link"],
        ))
    };
    let elsewhere = data.with_extension("elsewhere");
    let told = refused(&process::run(&elsewhere, &[], &["sign-in-link"]));
    assert!(told.contains("SIDETONE_DATA") && !elsewhere.exists(), "no second folder is made: {told}");
    let made = make();
    assert!(made.starts_with("https://voice.example.com/dashboard/sign-in/link?token="), "{made}");
    assert_eq!(made.lines().count(), 1, "{made}");
    assert_eq!(browse(&server, "GET", &first, "", "").status, 401, "it replaces the link of the start");
    let session = sign_in(&server, &path(&made));
    let page = browse(&server, "GET", "/dashboard", &session, "");
    assert!(page.status == 200 && body(&page).contains("operator"), "{page:?}");
    assert_eq!(browse(&server, "GET", &path(&made), "", "").status, 401, "once");
    // Signed out, while the service runs and has an account: the same person again.
    let csrf = field(&body(&page), "_csrf");
    let out = browse(&server, "POST", "/dashboard/sign-out", &session, &format!("_csrf={csrf}"));
    assert_eq!((out.status, out.header("location")), (303, Some("/dashboard/sign-in")));
    assert_eq!(browse(&server, "GET", "/dashboard", &session, "").status, 303);
    let session = sign_in(&server, &path(&make()));
    assert_eq!(browse(&server, "GET", "/dashboard", &session, "").status, 200);
    let people: i64 = Connection::open(data.join("sidetone.db"))
        .and_then(|file| file.query_row("SELECT COUNT(*) FROM accounts", [], |row| row.get(0)))
        .expect("the database can be read");
    assert_eq!(people, 1);
    assert!(server.stop().success());
    let server = Server::start(&data, &[]);
    assert!(!server.welcome().contains("sign-in/link"), "the operator has signed in: {}", server.welcome());
    assert!(server.stop().success());
}

/// One request of a browser with this cookie.
fn browse(server: &Server, method: &str, path: &str, cookie: &str, form: &str) -> Reply {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("cookie", cookie)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form.to_owned().into())
        .expect("a request");
    wire::send(server.address(), &request).expect("the server answers")
}

/// Opens a link and presses its button; the cookie of the session.
fn sign_in(server: &Server, link: &str) -> String {
    let cookie = |reply: &Reply| {
        let cookies = reply.headers.get_all("set-cookie").iter().filter_map(|one| one.to_str().ok());
        let mut kept = cookies.filter_map(|one| one.split(';').next()).filter(|pair| !pair.ends_with('='));
        kept.next().expect("a cookie").to_owned()
    };
    let page = browse(server, "GET", link, "", "");
    assert_eq!(page.status, 200, "{page:?}");
    let html = body(&page);
    let form = format!("_csrf={}&token={}", field(&html, "_csrf"), field(&html, "token"));
    let reply = browse(server, "POST", "/dashboard/sign-in/link", &cookie(&page), &form);
    assert_eq!((reply.status, reply.header("location")), (303, Some("/dashboard")), "{reply:?}");
    cookie(&reply)
}

fn body(reply: &Reply) -> String {
    String::from_utf8_lossy(&reply.body).into_owned()
}

/// The value of a hidden field.
fn field(html: &str, name: &str) -> String {
    let rest = html.split(&format!("name=\"{name}\" value=\"")).nth(1);
    rest.and_then(|rest| rest.split('"').next()).unwrap_or_else(|| panic!("no {name}: {html}")).to_owned()
}

#[test]
fn printing_the_secrets_of_a_worker_writes_nothing() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let text = answered(&process::run(&data, &[], &["secrets"]));
    assert!(!data.exists(), "no data folder is created");
    let lines: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let names: Vec<&str> = lines.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["SIDETONE_SECRET", "SIDETONE_BOOTSTRAP_KEYS", "SIDETONE_OPERATOR_KEY"]);
    assert!(lines[0].1.len() == 64 && lines[1].1 != lines[2].1, "{text}");
    // The printed settings are valid, and the key creates a workspace.
    let server = Server::start(&data, &lines);
    server.connect(lines[1].1).expect(200, "GET", "/assistants", None);
}

#[test]
fn a_restored_backup_works() {
    let folder = Folder::new();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let key = bootstrap_key(2);
    let settings = [("SIDETONE_BOOTSTRAP_KEYS", key.as_str())];
    let server = Server::start(&data, &settings);
    let tool = json!({"name": "look_up", "url": "https://example.com/t"});
    let id = server.connect(&key).expect(201, "POST", "/tools", Some(&tool))["id"].clone();
    std::fs::create_dir(&copy).expect("the folder can be written");
    answered(&process::run(&data, &[], &["backup", &copy.join("sidetone.db").to_string_lossy()]));
    std::fs::copy(data.join("secret"), copy.join("secret")).expect("the secret can be copied");
    drop(server);
    let server = Server::start(&copy, &settings);
    let tools = server.connect(&key).expect(200, "GET", "/tools", None);
    assert_eq!(tools[0]["id"], id);
    assert!(server.stop().success());
}

#[test]
fn a_backup_completes_during_writes() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let key = bootstrap_key(3);
    let server = Server::start(&data, &[("SIDETONE_BOOTSTRAP_KEYS", &key)]);
    let content = "We are open from nine to five. ".repeat(1_000);
    let document = |n: usize| json!({"name": format!("Hours {n}"), "content": content});
    let mut client = server.connect(&key);
    let pages = 8 * 60;
    for n in 0..60 {
        client.expect(201, "POST", "/knowledge", Some(&document(n)));
    }
    let stop = AtomicBool::new(false);
    let backup = folder.path().join("backup.db");
    std::fs::write(folder.path().join("backup.db.part"), "of an interrupted backup").expect("a file");
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut client = server.connect(&key);
            let persona = json!({"name": "Hurried", "system_prompt": "You have one minute."});
            while !stop.load(Ordering::Relaxed) {
                client.expect(201, "POST", "/simulations/personas", Some(&persona));
            }
        });
        let mut child = process::command(&data, &[])
            .args([std::ffi::OsStr::new("backup"), backup.as_os_str()])
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("the binary runs");
        let deadline = Instant::now() + Duration::from_secs(20);
        let ended = loop {
            match child.try_wait().expect("the process can be waited for") {
                None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
                ended => break ended,
            }
        };
        stop.store(true, Ordering::Relaxed);
        let _ = child.kill();
        assert!(ended.is_some_and(|status| status.success()), "the backup completes: {ended:?}");
    });
    let file = Connection::open(&backup).expect("the backup opens");
    let number = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).expect(sql);
    assert!(number("PRAGMA page_count") > pages);
    assert_eq!(number("SELECT count(*) FROM documents"), 60);
    let check: String =
        file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("the backup can be checked");
    assert_eq!(check, "ok");
    assert!(!folder.path().join("backup.db.part").exists());
    assert!(server.stop().success());
}

#[test]
fn a_start_that_cannot_listen_does_not_use_up_the_first_key() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its number").to_string();
    let output = process::run(&data, &[("SIDETONE_LISTEN", &address)], &[]);
    assert!(refused(&output).contains("SIDETONE_LISTEN"));
    let server = Server::start(&data, &[]);
    let link = format!("serving http://{} ", server.address());
    assert!(server.welcome().contains(&link), "links contain the real port: {}", server.welcome());
    server.connect(&key_in(server.welcome())).expect(200, "GET", "/assistants", None);
    assert!(server.stop().success());
}

#[test]
fn the_error_names_a_broken_secret_file() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    assert!(Server::start(&data, &[]).stop().success());
    for text in ["", "short\n"] {
        std::fs::write(data.join("secret"), text).expect("the folder can be written");
        let line = refused(&process::run(&data, &[], &[]));
        assert!(line.contains(&data.join("secret").to_string_lossy().into_owned()), "{line}");
    }
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_data() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| path.metadata().expect("the file exists").permissions().mode() & 0o777;
    let folder = Folder::new();
    let data = folder.path().join("data");
    let server = Server::start(&data, &[]);
    server.connect(&key_in(server.welcome())).expect(200, "GET", "/assistants", None);
    for file in ["secret", "lock", "sidetone.db", "sidetone.db-wal", "sidetone.db-shm"] {
        assert_eq!(mode(&data.join(file)), 0o600, "{file}");
    }
    let backup = folder.path().join("backup.db");
    answered(&process::run(&data, &[], &["backup", &backup.to_string_lossy()]));
    assert_eq!(mode(&backup), 0o600);
    assert!(server.stop().success());
    assert_eq!(mode(&data), 0o700);
}

#[test]
fn no_secret_is_logged() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let settings =
        [("RUST_LOG", "trace,h2=trace,hyper=trace"), ("SIDETONE_SECRET", "a server secret to look for")];
    let server = Server::start(&data, &settings);
    let key = key_in(server.welcome());
    let mut client = server.connect(&key);
    let tool = json!({"name": "look_up", "url": "https://example.com/t"});
    let tool = client.expect(201, "POST", "/tools", Some(&tool));
    let hook = json!({"url": "https://example.com/h", "events": ["*"]});
    let hook = client.expect(201, "POST", "/webhooks", Some(&hook));
    let made = client.expect(201, "POST", "/keys", Some(&json!({"name": "second"})));
    client.expect(200, "GET", "/assistants", None);
    client.expect(422, "POST", "/assistants", Some(&json!({"name": 5})));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "create_api_key", "arguments": {"data": {"name": "third"}}}});
    let called = client.expect(200, "POST", "/mcp", Some(&call));
    let third = called["result"]["structuredContent"]["key"].clone();
    let wrong = bootstrap_key(200);
    server.connect(&wrong).expect(401, "GET", "/assistants", None);
    client.expect(426, "GET", "/carriers/telnyx/media/what-opens-a-call", None);

    let log = server.log();
    assert!(log.contains("/assistants"), "requests are logged at this level: {log}");
    let secrets = [&tool["signing_secret"], &hook["signing_secret"], &made["key"], &third];
    let secrets = secrets.map(|secret| secret.as_str().expect("shown once").to_owned());
    let others =
        [key.clone(), wrong, "a server secret to look for".to_owned(), "what-opens-a-call".to_owned()];
    for secret in secrets.iter().chain(&others) {
        assert!(!log.contains(secret.as_str()), "{secret} is in the log");
    }
    assert!(!log.contains("whsec_"), "no signing secret is in the log");
    assert_eq!(server.welcome().matches("shown only once").count(), 1);
    assert!(server.stop().success());
    let server = Server::start(&data, &settings);
    assert!(!server.welcome().contains(&key), "the first key is shown only at the first start");
}

#[test]
fn a_lost_or_changed_secret_is_refused_until_it_is_accepted() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let key = bootstrap_key(4);
    let settings = [("SIDETONE_BOOTSTRAP_KEYS", key.as_str())];
    assert!(Server::start(&data, &settings).stop().success());
    let secret = std::fs::read_to_string(data.join("secret")).expect("a secret");
    std::fs::remove_file(data.join("secret")).expect("the folder can be written");
    for arguments in [&[][..], &["workspace", "create", "late"]] {
        let line = refused(&process::run(&data, &settings, arguments));
        assert!(line.contains("secret is missing") && line.contains("sidetone secrets accept"), "{line}");
        assert!(!data.join("secret").exists(), "no new secret is made");
    }
    let other = [settings[0], ("SIDETONE_SECRET", "another server secret")];
    let line = process::run(&data, &other, &[]);
    let line = String::from_utf8_lossy(&line.stderr).into_owned();
    assert!(line.contains("SIDETONE_SECRET") && line.contains("sidetone secrets accept"), "{line}");
    // With the content of the lost file it works, whichever way it is given.
    assert!(Server::start(&data, &[settings[0], ("SIDETONE_SECRET", &secret)]).stop().success());
    answered(&process::run(&data, &other, &["secrets", "accept"]));
    assert!(Server::start(&data, &other).stop().success());
    // And back to a new file.
    answered(&process::run(&data, &settings, &["secrets", "accept"]));
    let server = Server::start(&data, &settings);
    server.connect(&key).expect(200, "GET", "/assistants", None);
    assert!(server.stop().success());
}

#[test]
fn a_first_key_that_was_never_printed_is_replaced() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let server = Server::start(&data, &[]);
    let first = key_in(server.welcome());
    server.connect(&first).expect(200, "GET", "/assistants", None);
    assert!(server.stop().success());
    // As if the process had died between creating the key and printing it.
    Connection::open(data.join("sidetone.db"))
        .and_then(|file| file.execute("INSERT INTO service_facts SELECT 'unseen_key', id FROM api_keys", []))
        .expect("the database can be written");
    let server = Server::start(&data, &[]);
    let second = key_in(server.welcome().split_once("shown only once").expect("a key is shown").1);
    assert_ne!(first, second);
    server.connect(&second).expect(200, "GET", "/assistants", None);
    server.connect(&first).expect(401, "GET", "/assistants", None);
    assert!(server.stop().success());
    let server = Server::start(&data, &[]);
    assert!(!server.welcome().contains("shown only once"), "{}", server.welcome());
    server.connect(&second).expect(200, "GET", "/assistants", None);
}

#[test]
fn numbers_that_the_operator_has_given_are_their_workspaces_alone() {
    const NUMBER: &str = "/numbers/+14155550100";
    let folder = Folder::new();
    let data = folder.path().join("data");
    let keys = [bootstrap_key(6), bootstrap_key(7)];
    let both = keys.join(",");
    let carrier = default_account();
    let mut settings: Vec<(&str, &str)> =
        carrier.iter().map(|(name, value)| (*name, value.as_str())).collect();
    settings.push(("SIDETONE_BOOTSTRAP_KEYS", &both));
    let server = Server::start(&data, &settings);
    let clients = keys.each_ref().map(|key| server.connect(key));
    let [(id, body), (_, other_body)] = clients.map(|mut client| {
        let id = client.expect(200, "GET", "/workspace", None)["id"].as_str().expect("an id").to_owned();
        let assistant = json!({"name": "Desk", "instructions": "Be kind.", "voice": "builtin/tone"});
        let assistant = client.expect(201, "POST", "/assistants", Some(&assistant));
        (id, json!({"assistant_id": assistant["id"], "provider": "twilio"}))
    });
    // Whoever comes first has it; the next start warns of that.
    server.connect(&keys[1]).expect(200, "PUT", NUMBER, Some(&other_body));
    server.connect(&keys[0]).expect(409, "PUT", NUMBER, Some(&body));
    assert!(!server.log().contains("SIDETONE_NUMBERS"), "there was no workspace yet: {}", server.log());
    assert!(server.stop().success());
    let server = Server::start(&data, &settings);
    assert_eq!(server.log().matches("SIDETONE_NUMBERS is not set").count(), 1, "{}", server.log());
    assert!(server.stop().success());

    let numbers = json!({"+14155550100": id}).to_string();
    settings.push(("SIDETONE_NUMBERS", &numbers));
    let server = Server::start(&data, &settings);
    assert_eq!(server.log().matches("SIDETONE_NUMBERS").count(), 1, "no warning any more: {}", server.log());
    let [mut first, mut other] = keys.each_ref().map(|key| server.connect(key));
    let order =
        json!({"assistant_id": other_body["assistant_id"], "to": "+14155557777", "from": "+14155550100"});
    other.expect(422, "POST", "/calls/outbound", Some(&order));
    other.expect(409, "PUT", NUMBER, Some(&other_body));
    first.expect(200, "PUT", NUMBER, Some(&body));
    assert_eq!(other.expect(200, "GET", "/numbers", None), json!([]));
    assert!(server.stop().success());

    let wrong = json!({"+14155550100": "default"}).to_string();
    let line = refused(&process::run(&data, &[("SIDETONE_NUMBERS", &wrong)], &[]));
    assert!(line.contains("SIDETONE_NUMBERS"), "{line}");
}

/// The error, which must be one line, after the one that names the folder.
fn refused(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = match text.split_once('\n') {
        Some((place, rest)) if place.starts_with("In ") => rest.to_owned(),
        _ => text,
    };
    assert!(!output.status.success(), "the start succeeded: {}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(text.lines().count(), 1, "expected one line: {text}");
    assert!(text.starts_with("sidetone: "), "{text}");
    text
}

fn answered(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn key_in(text: &str) -> String {
    let start = text.find("sidetone_").unwrap_or_else(|| panic!("no key in the output: {text}"));
    text[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}

//! `sidetone doctor` against stand-ins for everybody that it asks.
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_tests::fakes::carrier::Carriers;
use sidetone_tests::process::{self, Folder, Server};

use crate::said::{place, settle};

const SECRETS: [&str; 5] = ["key-openai", "key-deepgram", "key-eleven", "key-cartesia", "key-of-the-mail"];

/// Everybody who is asked, at one address: accepts the right credentials, and notes what was asked.
struct Everybody {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Everybody {
    /// `late_seconds`: how far its clock is behind.
    fn start(behind_seconds: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let log = log.clone();
                std::thread::spawn(move || answer(stream, behind_seconds, &log));
            }
        });
        Self { address, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn asked(&self) -> Vec<String> {
        let mut asked = self.asked.lock().unwrap().clone();
        asked.sort();
        asked
    }
}

fn answer(stream: TcpStream, behind_seconds: u64, log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let line = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
    let header = |name: &str| {
        let found = head.lines().filter_map(|line| line.split_once(": ")).find(|(known, _)| known == &name);
        found.map(|(_, value)| value.to_owned()).unwrap_or_default()
    };
    let authorization = header("authorization");
    let basic = authorization.starts_with("Basic ");
    let signed = authorization.starts_with("Bearer ey") && authorization.matches('.').count() == 2;
    let (path, status) = match line.split(' ').nth(1).unwrap_or_default() {
        "/healthz" => ("/healthz", 200),
        path if path.starts_with("/2010-04-01/Accounts/AC") => ("twilio", if basic { 200 } else { 401 }),
        "/balance" => ("telnyx", if authorization.starts_with("Bearer ") { 200 } else { 401 }),
        path if path.starts_with("/v1/Account/") => ("plivo", if basic { 200 } else { 401 }),
        "/v1/calls?page_size=1" => ("vonage", if signed { 200 } else { 401 }),
        "/openai/models" => ("openai", if authorization == "Bearer key-openai" { 200 } else { 401 }),
        "/own/models" => ("own", 404),
        "/busy/models" => ("busy", 503),
        "/v1/projects" => ("deepgram", if authorization == "Token key-deepgram" { 200 } else { 401 }),
        "/v1/models" if header("xi-api-key") == "key-eleven" => ("elevenlabs", 401),
        "/voices?limit=1" => ("cartesia", if authorization == "Bearer key-cartesia" { 200 } else { 401 }),
        "/emails" => ("mail", if authorization == "Bearer key-of-the-mail" { 405 } else { 401 }),
        "/hangs/models" => {
            std::thread::sleep(Duration::from_secs(30));
            return;
        }
        _ => ("nobody", 400),
    };
    let method = line.split(' ').next().unwrap_or_default();
    log.lock().unwrap().push(format!("{method} {path}"));
    let now = std::time::SystemTime::now() - Duration::from_secs(behind_seconds);
    // ElevenLabs' answer to a key that may only speak. It repeats what it got, as some do.
    let body =
        format!("{{\"detail\": {{\"status\": \"missing_permissions\"}}, \"got\": \"{authorization}\"}}");
    let _ = write!(
        reader.get_mut(),
        "HTTP/1.1 {status} x\r\ndate: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        date(now),
        body.len()
    );
    let _ = reader.get_mut().flush();
    let _ = reader.read(&mut [0; 16]);
}

fn date(time: std::time::SystemTime) -> String {
    httpdate::fmt_http_date(time)
}

/// The findings, and whether the status says that all is well.
fn doctor(folder: &Folder, settings: &[(&str, &str)]) -> (Vec<Value>, bool) {
    let output = process::run(&folder.path().join("data"), settings, &["doctor", "--json"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let plain = process::run(&folder.path().join("data"), settings, &["doctor"]);
    let all =
        text.clone() + &String::from_utf8_lossy(&plain.stdout) + &String::from_utf8_lossy(&plain.stderr);
    for (name, value) in settings {
        let is_secret = ["KEY", "TOKEN", "SECRET", "SMTP_URL"].iter().any(|word| name.ends_with(word));
        assert!(!is_secret || value.len() < 4 || !all.contains(value), "{name} is printed: {all}");
    }
    for secret in SECRETS {
        assert!(!all.contains(secret), "{secret} is printed: {all}");
    }
    assert!(place(&output).contains("data"), "the folder is named");
    let findings: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(String::from_utf8_lossy(&plain.stdout).lines().count(), findings.len());
    (findings, output.status.success())
}

fn state<'a>(findings: &'a [Value], check: &str) -> &'a str {
    of(findings, check)["state"].as_str().unwrap()
}

#[track_caller]
fn of<'a>(findings: &'a [Value], check: &str) -> &'a Value {
    findings.iter().find(|one| one["check"] == check).unwrap_or_else(|| panic!("no {check} in {findings:?}"))
}

#[test]
fn everything_that_is_set_is_looked_at() {
    let folder = Folder::new();
    let others = Everybody::start(0);
    let base = others.url("");
    let providers = json!({
        "own": {"base_url": others.url("/own")},
        "busy": {"base_url": others.url("/busy"), "api_key": "k-busy"},
    })
    .to_string();
    let carriers: Vec<(&str, String)> = Carriers::shared().iter().flat_map(|one| one.settings()).collect();
    let mut settings: Vec<(&str, &str)> = carriers
        .iter()
        .map(|(name, value)| {
            (*name, if name.ends_with("_BASE_URL") { base.as_str() } else { value.as_str() })
        })
        .collect();
    let (openai, mail) = (others.url("/openai"), others.url("/emails"));
    settings.extend([
        ("SIDETONE_OPENAI_API_KEY", "key-openai"),
        ("SIDETONE_OPENAI_BASE_URL", openai.as_str()),
        ("SIDETONE_PROVIDERS", providers.as_str()),
        ("SIDETONE_DEEPGRAM_API_KEY", "key-deepgram"),
        ("SIDETONE_DEEPGRAM_BASE_URL", base.as_str()),
        ("SIDETONE_ELEVENLABS_API_KEY", "key-eleven"),
        ("SIDETONE_ELEVENLABS_BASE_URL", base.as_str()),
        ("SIDETONE_CARTESIA_API_KEY", "key-cartesia"),
        ("SIDETONE_CARTESIA_BASE_URL", base.as_str()),
        ("SIDETONE_MAIL_URL", mail.as_str()),
        ("SIDETONE_MAIL_API_KEY", "key-of-the-mail"),
        ("SIDETONE_MAIL_FROM", "Sidetone <voice@example.com>"),
    ]);
    let data = folder.path().join("data");
    let server = Server::start(&data, &settings);
    settings.push(("SIDETONE_BASE_URL", base.as_str()));
    let (findings, is_well) = doctor(&folder, &settings);
    for check in [
        "settings",
        "data folder",
        "database",
        "clock",
        "twilio",
        "telnyx",
        "plivo",
        "vonage",
        "openai",
        "own",
        "deepgram",
        "elevenlabs",
        "cartesia",
        "mail",
    ] {
        assert_eq!(state(&findings, check), "ok", "{}", of(&findings, check));
    }
    assert_eq!(state(&findings, "busy"), "warning");
    assert_ne!(state(&findings, "disk"), "problem", "{}", of(&findings, "disk"));
    // Carriers cannot reach this machine's own address, whatever answers there.
    let told: Vec<&Value> = findings.iter().filter(|one| one["check"] == "base URL").collect();
    assert_eq!((&told[0]["state"], &told[1]["state"]), (&json!("problem"), &json!("ok")), "{told:?}");
    assert!(!is_well);
    // Nothing but harmless requests, each twice: as JSON and in words.
    let asked = others.asked();
    assert!(asked.iter().all(|line| line.starts_with("GET ")), "{asked:?}");
    assert!(!asked.contains(&"GET nobody".to_owned()) && asked.len() == 24, "{asked:?}");
    assert!(server.stop().success());
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    assert!(Server::start(&data, &[]).stop().success());
    let others = Everybody::start(3_600);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (wrong, gone) = (others.url("/openai"), format!("http://{nobody}"));
    let mail = format!("smtp://anna:password-of-the-mail@{nobody}");
    let base = others.url("");
    let settings = [
        ("SIDETONE_LISTENS", "0.0.0.0:1"),
        ("SIDETONE_BASE_URL", base.as_str()),
        ("SIDETONE_OPENAI_API_KEY", "key-wrong"),
        ("SIDETONE_OPENAI_BASE_URL", wrong.as_str()),
        ("SIDETONE_DEEPGRAM_API_KEY", "key-deepgram"),
        ("SIDETONE_DEEPGRAM_BASE_URL", gone.as_str()),
        ("SIDETONE_SMTP_URL", mail.as_str()),
        ("SIDETONE_MAIL_FROM", "Sidetone <voice@example.com>"),
    ];
    std::fs::set_permissions(data.join("secret"), PermissionsExt::from_mode(0o644)).unwrap();
    let (findings, is_well) = doctor(&folder, &settings);
    assert!(!is_well);
    for (check, is, words) in [
        ("settings", "warning", "did you mean SIDETONE_LISTEN?"),
        ("data folder", "problem", "chmod"),
        ("database", "ok", "sound"),
        ("base URL", "warning", "none runs on this folder"),
        ("clock", "problem", "timedatectl"),
        ("openai", "problem", "SIDETONE_OPENAI_API_KEY"),
        ("deepgram", "problem", "cannot be reached: Connection refused"),
        ("mail", "problem", "SIDETONE_SMTP_URL"),
    ] {
        let finding = of(&findings, check);
        assert_eq!(finding["state"], is, "{finding}");
        assert!(finding["detail"].as_str().unwrap().contains(words), "{finding}");
    }
}

#[test]
fn a_wrong_setting_a_damaged_database_and_a_missing_folder() {
    let folder = Folder::new();
    let (findings, is_well) = doctor(&folder, &[]);
    assert!(is_well, "a service that has never started has warnings: {findings:?}");
    assert_eq!(state(&findings, "data folder"), "warning");
    assert_eq!(state(&findings, "base URL"), "warning");
    assert_eq!(state(&findings, "clock"), "ok", "nobody could be asked");
    assert!(!folder.path().join("data").exists(), "nothing is made");

    let data = folder.path().join("data");
    assert!(Server::start(&data, &[]).stop().success());
    settle(&data);
    let mut before = std::fs::read(data.join("sidetone.db")).unwrap();
    let middle = before.len() / 2;
    before[middle..middle + 8_192].fill(0x5a);
    std::fs::write(data.join("sidetone.db"), before).unwrap();
    let (findings, is_well) = doctor(&folder, &[("SIDETONE_TRUSTED_PROXIES", "proxy")]);
    assert!(!is_well);
    assert_eq!(state(&findings, "settings"), "problem");
    let finding = of(&findings, "database");
    assert!(
        finding["state"] == "problem" && finding["detail"].as_str().unwrap().contains("damaged"),
        "{finding}"
    );
}

#[test]
fn a_server_that_hangs_takes_ten_seconds_and_no_more() {
    let folder = Folder::new();
    let others = Everybody::start(0);
    let providers = json!({
        "one": {"base_url": others.url("/hangs")},
        "two": {"base_url": others.url("/hangs")},
    })
    .to_string();
    let started = Instant::now();
    let output = process::run(
        &folder.path().join("data"),
        &[("SIDETONE_PROVIDERS", &providers)],
        &["doctor", "--json"],
    );
    let took = started.elapsed();
    assert!(took < Duration::from_secs(17), "both at once: {took:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.matches("it did not answer in time").count(), 2, "{text}");
}

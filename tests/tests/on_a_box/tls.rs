//! HTTPS of the binary: files that are read and read again, errors at the start, WebSockets, and strangers who are slow.
use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::json;
use sidetone_tests::process::{self, Folder, Server, bootstrap_key, read_answer, request_head};
use sidetone_tests::wire;
use tungstenite::Message;

use crate::said::refused;

type Secure = StreamOwned<ClientConnection, TcpStream>;

/// A certificate for `localhost` in two files of a folder.
struct Pair {
    cert: PathBuf,
    key: PathBuf,
}

impl Pair {
    fn new(folder: &Path, name: &str) -> (Self, CertificateDer<'static>) {
        let pair = Self { cert: folder.join(format!("{name}.crt")), key: folder.join(format!("{name}.key")) };
        let made = pair.replace();
        (pair, made)
    }

    /// Writes a new certificate into the files.
    fn replace(&self) -> CertificateDer<'static> {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&self.cert, cert.pem()).unwrap();
        std::fs::write(&self.key, signing_key.serialize_pem()).unwrap();
        cert.der().clone()
    }

    fn settings<'a>(&'a self, key: &'a str) -> [(&'a str, &'a str); 3] {
        [
            ("SIDETONE_TLS_CERT", self.cert.to_str().unwrap()),
            ("SIDETONE_TLS_KEY", self.key.to_str().unwrap()),
            ("SIDETONE_BOOTSTRAP_KEYS", key),
        ]
    }
}

/// A client that trusts only this certificate.
fn secure(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    protocols: &[&[u8]],
) -> std::io::Result<Secure> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream =
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), wire::connect(address)?);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(stream)
}

fn get(stream: &mut BufReader<Secure>, path: &str, key: &str) -> u16 {
    stream.get_mut().write_all(request_head("GET", path, key, &[], 0).as_bytes()).unwrap();
    read_answer(stream).unwrap().status
}

#[test]
fn https_serves_requests_and_conversations() {
    let (folder, key) = (Folder::new(), bootstrap_key(1));
    let (pair, cert) = Pair::new(folder.path(), "a");
    let server = Server::start(&folder.path().join("data"), &pair.settings(&key));
    let address = server.address();
    assert!(server.welcome().contains(&format!("serving https://{address} ")), "{}", server.welcome());

    // Several requests on one connection; HTTP/1.1 is what was agreed on.
    let mut stream = BufReader::new(secure(address, &cert, &[b"h2", b"http/1.1"]).unwrap());
    assert_eq!(stream.get_ref().conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    for _ in 0..3 {
        assert_eq!(get(&mut stream, "/assistants", &key), 200);
    }
    // A response of hundreds of kilobytes; bodies of tens of them: one with instructions of more than 32,768 bytes, one of less.
    assert_eq!(get(&mut stream, "/openapi.json", &key), 200);
    for (sentences, status) in [(10_000, 422), (3_300, 201)] {
        let body = json!({"name": "Long", "instructions": "Be kind. ".repeat(sentences)}).to_string();
        let head = request_head("POST", "/assistants", &key, &[], body.len());
        stream.get_mut().write_all((head + &body).as_bytes()).unwrap();
        let made = read_answer(&mut stream).unwrap();
        assert_eq!(made.status, status, "{}", made.json);
    }

    let assistant =
        json!({"name": "Desk", "instructions": "Be kind.", "first_message": "Hello."}).to_string();
    let head = request_head("POST", "/assistants", &key, &[], assistant.len());
    stream.get_mut().write_all((head + &assistant).as_bytes()).unwrap();
    let id = read_answer(&mut stream).unwrap()["id"].as_str().unwrap().to_owned();
    let head = request_head("POST", &format!("/assistants/{id}/test-token"), &key, &[], 2);
    stream.get_mut().write_all((head + "{}").as_bytes()).unwrap();
    let token = read_answer(&mut stream).unwrap();
    let url = token["websocket_url"].as_str().unwrap();
    assert!(url.starts_with("wss://"), "{url}");
    let socket = secure(address, &cert, &[]).unwrap();
    let (mut socket, _) = tungstenite::client(url, socket).expect("wss is upgraded");
    let Message::Text(first) = socket.read().unwrap() else { panic!("a text") };
    assert!(first.contains("call_started"), "{first}");
    drop(socket);

    // Plain HTTP is told where it is.
    let mut plain = wire::connect(address).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    let mut answer = String::new();
    let _ = plain.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("https:// (wss://)"), "{answer}");
    drop(stream);
    assert!(server.stop().success());
}

#[test]
fn new_files_are_used_and_wrong_ones_are_not() {
    let (folder, key) = (Folder::new(), bootstrap_key(1));
    let (pair, first) = Pair::new(folder.path(), "a");
    let server = Server::start(&folder.path().join("data"), &pair.settings(&key));
    let address = server.address();
    let mut open = BufReader::new(secure(address, &first, &[]).unwrap());
    assert_eq!(get(&mut open, "/assistants", &key), 200);
    let hang_up = || {
        let script = format!("kill -HUP {}", server.pid());
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
    };

    // Half a renewal: the certificate is new, the key is not. The earlier pair stays.
    let before = std::fs::read(&pair.key).unwrap();
    let second = pair.replace();
    let after = std::fs::read(&pair.key).unwrap();
    std::fs::write(&pair.key, before).unwrap();
    hang_up();
    server.logs("the earlier one stays");
    assert!(server.log().contains("SIDETONE_TLS_KEY"), "{}", server.log());
    assert!(secure(address, &first, &[]).is_ok());
    // The other half, without a signal: the files are looked at.
    std::fs::write(&pair.key, after).unwrap();
    server.logs("the certificate was read again");
    assert!(secure(address, &second, &[]).is_ok());
    assert!(secure(address, &first, &[]).is_err(), "the first is no longer shown");
    assert_eq!(get(&mut open, "/assistants", &key), 200, "what is open goes on");
    drop(open);
    assert!(server.stop().success());
}

#[test]
fn files_that_cannot_be_used_are_named_at_the_start() {
    let folder = Folder::new();
    let (good, _) = Pair::new(folder.path(), "a");
    let (other, _) = Pair::new(folder.path(), "b");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let missing = path(&folder.path().join("missing.pem"));
    let refused = |cert: &str, key: &str| {
        let settings = [("SIDETONE_TLS_CERT", cert), ("SIDETONE_TLS_KEY", key)];
        refused(&process::run(&folder.path().join("data"), &settings, &[]))
    };
    let (cert, key) = (path(&good.cert), path(&good.key));
    for (setting, wrong, line) in [
        ("SIDETONE_TLS_KEY", "required", refused(&cert, "")),
        ("SIDETONE_TLS_CERT", "required", refused("", &key)),
        ("SIDETONE_TLS_CERT", missing.as_str(), refused(&missing, &key)),
        ("SIDETONE_TLS_KEY", missing.as_str(), refused(&cert, &missing)),
        ("SIDETONE_TLS_CERT", "empty.pem", refused(&path(&empty), &key)),
        ("SIDETONE_TLS_CERT", "BEGIN CERTIFICATE", refused(&key, &key)),
        ("SIDETONE_TLS_KEY", "BEGIN PRIVATE KEY", refused(&cert, &cert)),
        ("SIDETONE_TLS_KEY", "not the key of the certificate", refused(&cert, &path(&other.key))),
    ] {
        assert!(line.starts_with(&format!("sidetone: {setting}")) && line.contains(wrong), "{wrong}: {line}");
    }
}

/// Whether the service has closed it, or reset it; otherwise nothing comes in time.
fn is_closed(stream: &mut TcpStream) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    !matches!(stream.read(&mut [0; 16]), Err(error) if matches!(error.kind(), WouldBlock | TimedOut))
}

/// One address opens as many handshakes as it can and finishes none. Others are served, and it is cut off in time.
#[test]
fn slow_handshakes_keep_nobody_out() {
    let (folder, key) = (Folder::new(), bootstrap_key(1));
    let (pair, cert) = Pair::new(folder.path(), "a");
    let server = Server::start(&folder.path().join("data"), &pair.settings(&key));
    let address = server.address();
    let slow = Ipv4Addr::new(127, 0, 0, 9);
    let mut strangers: Vec<TcpStream> = (0..1_700)
        .map(|_| {
            let mut stream = wire::connect_from(slow, address).unwrap();
            // The head of a record, and the first byte of what it announces.
            stream.write_all(&[22, 3, 1, 2, 0, 1]).unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            stream
        })
        .collect();
    let opened = Instant::now();
    // 24 KiB for each are more than 8/9 of 36 MiB: the last were closed at once.
    let last = strangers.last_mut().unwrap();
    while !is_closed(last) {
        assert!(opened.elapsed() < Duration::from_secs(9), "one address has all the memory of handshakes");
    }
    let mut honest = BufReader::new(secure(address, &cert, &[]).unwrap());
    assert_eq!(get(&mut honest, "/assistants", &key), 200);
    std::thread::sleep(Duration::from_secs(20).saturating_sub(opened.elapsed()));
    let closed = strangers.iter_mut().filter_map(|stream| is_closed(stream).then_some(())).count();
    assert_eq!(closed, strangers.len(), "a handshake has 10 s");
    assert_eq!(get(&mut honest, "/assistants", &key), 200);
    drop(honest);
    assert!(server.stop().success());
}

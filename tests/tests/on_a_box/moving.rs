//! A workspace moves to another box, by the commands as an operator types them.
use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};
use sidetone::moving::file::Reader;
use sidetone_tests::process::{self, Client, Folder, Server, bootstrap_key};

use crate::said::{answered, key_in, refused};

/// What a command printed, if it ended with this code.
#[track_caller]
fn ended(output: &Output, code: i32) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "\n{out}\n{err}");
    (out, err)
}

/// A box with a workspace `default`.
struct Host {
    data: PathBuf,
    server: Server,
    operator: String,
}

impl Host {
    fn start(folder: &Folder, name: &str, operator: u32) -> Self {
        let (data, operator) = (folder.path().join(name), bootstrap_key(operator));
        let server = Server::start(&data, &[("SIDETONE_OPERATOR_KEY", operator.as_str())]);
        Self { data, server, operator }
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The first workspace's key.
    fn key(&self) -> String {
        key_in(self.server.welcome())
    }

    fn client(&self) -> Client {
        self.server.connect(&self.key())
    }

    /// Runs a command on the folder, beside the service.
    fn run(&self, arguments: &[&str]) -> Output {
        process::run(&self.data, &[], arguments)
    }

    /// Runs a command with the URL, from elsewhere.
    fn ask(&self, arguments: &[&str], further: &[(&str, &str)]) -> Output {
        let (url, nowhere) = (self.url(), self.data.with_extension("nowhere"));
        let settings = [("SIDETONE_URL", url.as_str()), ("SIDETONE_OPERATOR_KEY", self.operator.as_str())];
        process::run(&nowhere, &[&settings[..], further].concat(), arguments)
    }

    /// The id of the workspace with this name.
    fn id_of(&self, name: &str) -> String {
        let listed = answered(&self.run(&["workspace", "list", "--json"]));
        let all: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let found = all.iter().find(|one| one["name"] == name).expect("it is listed");
        found["id"].as_str().unwrap().to_owned()
    }

    /// The line of the first workspace in the list, and what the doctor says of its move.
    #[track_caller]
    fn shown(&self) -> (String, Option<String>) {
        let listed = answered(&self.run(&["workspace", "list"]));
        let line = listed.lines().next().expect("a workspace").to_owned();
        let output = self.run(&["doctor", "--json"]);
        let found = String::from_utf8(output.stdout).expect("UTF-8");
        let found = found.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let moves = found.filter(|one| one["check"] == "moves" && one["state"] == "warning");
        (line, moves.map(|one| one["detail"].as_str().unwrap().to_owned()).next())
    }
}

/// Something of most kinds.
fn furnish(client: &mut Client) {
    for n in 0..3 {
        let assistant = json!({"name": format!("Desk {n}"), "instructions": "Be kind."});
        client.expect(201, "POST", "/assistants", Some(&assistant));
    }
    let document = json!({"name": "Hours", "content": "We open at nine."});
    client.expect(201, "POST", "/knowledge", Some(&document));
    let webhook = json!({"url": "https://hooks.example.com/", "events": ["call.ended"]});
    client.expect(201, "POST", "/webhooks", Some(&webhook));
}

/// What the workspace's key reads.
fn everything(client: &mut Client) -> Vec<Value> {
    let paths = ["/workspace", "/assistants", "/knowledge", "/webhooks", "/audit", "/events"];
    paths.iter().map(|path| client.expect(200, "GET", path, None)).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_workspace_moves_from_box_to_box() {
    let folder = Folder::new();
    let (source, target) = (Host::start(&folder, "source", 1), Host::start(&folder, "target", 2));
    let file = folder.path().join("acme.move");
    let mut client = source.client();
    furnish(&mut client);
    let before = everything(&mut client);

    let (out, err) = ended(&source.ask(&["export", "--workspace", "default", text(&file)], &[]), 0);
    assert!(err.contains("default is frozen: it can be read"), "{err}");
    let url = source.url();
    assert!(out.contains(&format!("default still belongs to {url}.")), "{out}");
    assert!(out.contains(&format!("--cancel --url {url}")), "{out}");
    assert_eq!(everything(&mut client), before, "it can be read");
    let desk = json!({"name": "Late", "instructions": "Be kind."});
    let frozen = client.expect(503, "POST", "/assistants", Some(&desk));
    assert_eq!(frozen["error"]["code"], "workspace_moving");
    let (again, _) = ended(&source.ask(&["export", "--workspace", "default", text(&file)], &[]), 0);
    assert_eq!(again, out);

    let arguments = ["import", text(&file), "--from", url.as_str()];
    let keys = [("SIDETONE_FROM_OPERATOR_KEY", source.operator.as_str())];
    let (out, err) = ended(&target.ask(&arguments, &keys), 0);
    assert!(err.contains(&format!("handed over by {url}")), "{err}");
    assert!(out.starts_with(&format!("default runs at {}", target.url())), "{out}");
    let mut there = target.server.connect(&source.key());
    assert_eq!(everything(&mut there), before, "the same key reads the same");
    there.expect(201, "POST", "/assistants", Some(&desk));
    let gone = client.expect(410, "GET", "/assistants", None);
    assert_eq!(gone["error"]["code"], "workspace_moved");
    ended(&target.ask(&arguments, &keys), 0);

    let (line, next) = source.shown();
    assert!(line.ends_with(&format!("default  moved to {}", target.url())), "{line}");
    assert!(next.is_some_and(|next| next.contains("--erase")), "it is not erased");

    // Nobody takes it back, and what is left can go.
    let id = before[0]["id"].as_str().unwrap().to_owned();
    for command in
        [&["key", "create", "--workspace", id.as_str()][..], &["workspace", "rename", id.as_str(), "Later"]]
    {
        let line = refused(&source.run(command));
        assert!(line.contains(&format!("has moved to {}.", target.url())), "{line}");
    }
    let (_, err) = ended(&source.ask(&["export", "--workspace", &id, "--cancel"], &[]), 1);
    assert!(err.contains("moved") && err.contains(&format!(" at {}.", target.url())), "{err}");
    let erase = ["export", "--workspace", id.as_str(), "--erase"];
    let (_, err) = ended(&source.ask(&erase, &[]), 1);
    let command = format!("sidetone export --workspace {id} --erase --yes --url {url}");
    assert!(err.contains(&format!(" at {} on 20", target.url())) && err.contains(&command), "{err}");
    let (out, _) = ended(&source.ask(&[&erase[..], &["--yes"]].concat(), &[]), 0);
    assert!(out.contains("are erased at"), "{out}");
    assert_eq!(source.shown().1, None);
    client.expect(410, "GET", "/assistants", None);
    assert_eq!(everything(&mut there)[1].as_array().map(Vec::len), Some(4));
}

#[test]
fn folders_need_no_keys_and_the_code_comes_by_standard_input() {
    let folder = Folder::new();
    let (source, target) = (Host::start(&folder, "source", 1), Host::start(&folder, "target", 2));
    let file = folder.path().join("acme.move");
    furnish(&mut source.client());
    let before = everything(&mut source.client());
    let id = source.id_of("default");
    let (out, err) = ended(&source.run(&["export", "--workspace", &id, text(&file)]), 0);
    assert!(err.starts_with("In ") && !out.contains("--url http:"), "{err}\n{out}");

    let (_, err) = ended(&target.run(&["import", text(&file)]), 1);
    assert!(err.contains("warning: SIDETONE_BASE_URL is not set"), "{err}");
    let said = |option: &str| {
        let value = err.split(option).nth(1).and_then(|rest| rest.split_whitespace().next());
        value.expect("a command").to_owned()
    };
    let (import, export) = (said("--release "), said("--export-id "));
    let url = target.url();
    let release = |import: &str, export: &str| {
        let to = ["--export-id", export, "--to", &url];
        source.run(&[&["export", "--workspace", &id, "--release", import][..], &to].concat())
    };
    // Not for a file of another export.
    ended(&release(&import, "exp_01arz3ndektsv4rrffq69g5fav"), 1);
    let (code, _) = ended(&release(&import, &export), 0);
    assert!(code.starts_with("move_") && code.lines().count() == 1, "{code}");
    assert_eq!(ended(&release(&import, &export), 0).0, code, "the same again");
    ended(&release("imp_01arz3ndektsv4rrffq69g5fav", &export), 1);

    let open = |code: &str| {
        let mut command = process::command(&target.data, &[]);
        command.args(["import", text(&file), "--code"]).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        child.stdin.take().expect("a pipe").write_all(code.as_bytes()).expect("it reads");
        child.wait_with_output().expect("it ends")
    };
    assert!(ended(&open(""), 1).1.contains("SIDETONE_MOVE_CODE"));
    ended(&open("move_something\n"), 2);
    assert!(ended(&open(&code), 0).0.starts_with("default runs at"));
    assert_eq!(everything(&mut target.server.connect(&source.key())), before);
    let settings = [("SIDETONE_MOVE_CODE", code.trim())];
    ended(&process::run(&target.data, &settings, &["import", text(&file), "--code"]), 0);
}

#[test]
fn an_export_and_an_import_can_be_canceled() {
    let folder = Folder::new();
    let (source, target) = (Host::start(&folder, "source", 1), Host::start(&folder, "target", 2));
    let file = folder.path().join("acme.move");
    let mut client = source.client();
    furnish(&mut client);
    assert_eq!(source.shown().1, None);
    ended(&source.run(&["export", "--workspace", "default", text(&file)]), 0);
    let (line, next) = source.shown();
    assert!(line.ends_with("default  moving (frozen)"), "{line}");
    assert!(next.as_ref().is_some_and(|next| next.contains("--cancel")), "{next:?}");
    ended(&target.run(&["import", text(&file)]), 1);
    let (_, next) = target.shown();
    assert!(next.as_ref().is_some_and(|next| next.contains("--release imp_")), "{next:?}");
    target.server.connect(&source.key()).expect(503, "GET", "/assistants", None);

    let (out, _) = ended(&source.run(&["export", "--workspace", "default", "--cancel"]), 0);
    assert!(out.starts_with("default runs at"), "{out}");
    let (line, next) = source.shown();
    assert!(line.contains(" key") && line.ends_with("  default") && next.is_none(), "{line} {next:?}");
    let desk = json!({"name": "Late", "instructions": "Be kind."});
    client.expect(201, "POST", "/assistants", Some(&desk));

    // What has arrived of that export is of no use, and in the way of the next one.
    let url = source.url();
    let arguments = ["import", text(&file), "--from", url.as_str()];
    let settings = [("SIDETONE_FROM_OPERATOR_KEY", source.operator.as_str())];
    let (_, err) = ended(&process::run(&target.data, &settings, &arguments), 1);
    assert!(err.contains("not frozen for this file"), "{err}");
    let next = folder.path().join("next.move");
    ended(&source.run(&["export", "--workspace", "default", text(&next)]), 0);
    let (_, err) = ended(&target.run(&["import", text(&next)]), 1);
    let id = source.id_of("default");
    let drops = format!("sidetone import --workspace {id} --cancel");
    assert!(err.starts_with("In ") && err.contains("sidetone: ") && err.contains(&drops), "{err}");
    let (_, err) = ended(&target.run(&["import", text(&next), "--cancel"]), 1);
    assert!(err.contains("of another file, that of exp_") && err.contains(&drops), "{err}");
    let (out, _) = ended(&target.run(&["import", "--workspace", &id, "--cancel"]), 0);
    assert!(out.contains("is removed"), "{out}");
    let (out, _) = ended(&target.run(&["import", "--workspace", &id, "--cancel"]), 0);
    assert!(out.starts_with("Nothing of an import of "), "again: {out}");
    target.server.connect(&source.key()).expect(401, "GET", "/assistants", None);
    let arguments = ["import", text(&next), "--from", url.as_str()];
    ended(&process::run(&target.data, &settings, &arguments), 0);
    let there = everything(&mut target.server.connect(&source.key()));
    assert_eq!(there[1].as_array().map(Vec::len), Some(4));
    ended(&target.run(&["import", text(&next), "--cancel"]), 1);
}

/// A proxy has given up, or somebody has pressed Ctrl-C: whoever reads the log later finds to which import it was handed over.
#[test]
fn a_hand_over_is_logged_though_nobody_waits_for_its_answer() {
    let folder = Folder::new();
    let source = Host::start(&folder, "source", 1);
    let (id, file) = (source.id_of("default"), folder.path().join("acme.move"));
    let (out, _) = ended(&source.run(&["export", "--workspace", "default", text(&file)]), 0);
    let export_id = out.lines().find_map(|line| line.strip_prefix("export:   ")).expect("its id");
    let import_id = "imp_01arz3ndektsv4rrffq69g5fav";
    let body =
        json!({"export_id": export_id, "import_id": import_id, "moved_to": "https://edge.example.com"});
    let body = body.to_string();
    let request = format!(
        "POST /operator/exports/{id}/release HTTP/1.1\r\nhost: box\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        source.operator,
        body.len()
    );
    // A connection may be closed before the request is looked at. Once it was handed over, repeating that logs nothing of it.
    let line = format!("{id} was handed over to {import_id} at https://edge.example.com");
    let is_logged = (0..100).any(|nth| {
        let mut stream = TcpStream::connect(source.server.address()).expect("a connection");
        stream.write_all(request.as_bytes()).expect("it is sent");
        sleep(Duration::from_millis(nth % 6));
        drop(stream);
        sleep(Duration::from_millis(100));
        source.server.log().contains(&line)
    });
    assert!(is_logged, "{}", source.server.log());
    assert!(source.server.log().contains("export_release"));
}

#[test]
fn a_file_that_was_cut_off_is_continued() {
    let folder = Folder::new();
    let source = Host::start(&folder, "source", 1);
    furnish(&mut source.client());
    let file = folder.path().join("acme.move");
    ended(&source.run(&["export", "--workspace", "default", text(&file)]), 0);
    let whole = fs::read(&file).unwrap();
    let sums = |file: &Path| Reader::open(file).expect("it is whole").totals().tally.sums.clone();
    let before = sums(&file);
    assert!(before["assistants"].rows == 3 && before["webhooks"].rows == 1);
    let (data, log) = (source.data.clone(), source.server.log());
    // The service is killed, too: the workspace stays frozen.
    source.server.kill();
    let server = Server::start(&data, &[]);
    for cut in [0, 10, whole.len() / 3, whole.len() / 2, whole.len() - 1] {
        let other = folder.path().join("other.move");
        fs::write(folder.path().join("other.move.part"), &whole[..cut]).unwrap();
        let arguments = ["export", "--workspace", "default", text(&other)];
        let (_, err) = ended(&process::run(&data, &[], &arguments), 0);
        assert_eq!(sums(&other), before, "cut at {cut}\n{log}");
        // Every part is the same whenever it is asked for, also those of secrets.
        assert!(fs::read(&other).unwrap() == whole, "cut at {cut}\n{log}");
        // What is missing then is the end alone.
        assert!(cut < whole.len() - 1 || err.contains("going on after"), "cut at {cut}: {err}");
        assert!(!folder.path().join("other.move.part").exists());
        fs::remove_file(&other).unwrap();
    }
    // A file that is cut off, or was changed, is not sent.
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    for (name, bytes) in [("cut", &whole[..whole.len() - 1]), ("changed", &changed[..])] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let (_, err) = ended(&process::run(&data, &[], &["import", text(&path)]), 2);
        assert!(err.contains("Copy it again") || err.contains("copy it again"), "{err}");
    }
    assert!(server.stop().success());
}

#[test]
fn what_is_wrong_is_said_in_a_line() {
    let folder = Folder::new();
    let source = Host::start(&folder, "source", 1);
    let file = folder.path().join("acme.move");
    let export = ["export", "--workspace", "default", text(&file)];
    let url = source.url();
    let nowhere = folder.path().join("nowhere");
    let said = |settings: &[(&str, &str)], arguments: &[&str]| {
        let (_, err) = ended(&process::run(&nowhere, settings, arguments), 2);
        let line = err.lines().last().expect("a line").to_owned();
        assert!(line.starts_with("sidetone: "), "{err}");
        line
    };
    let line = said(&[("SIDETONE_URL", url.as_str())], &export);
    assert!(line.contains(&format!(
        "SIDETONE_OPERATOR_KEY is not set: this command needs the operator's key of {url}"
    )));
    let wrong = bootstrap_key(9);
    let settings = [("SIDETONE_URL", url.as_str()), ("SIDETONE_OPERATOR_KEY", wrong.as_str())];
    let line = said(&settings, &export);
    assert_eq!(line, format!("sidetone: SIDETONE_OPERATOR_KEY is not the operator's key of {url}"));
    let settings = [("SIDETONE_URL", "box.example.com"), ("SIDETONE_OPERATOR_KEY", wrong.as_str())];
    assert!(said(&settings, &export).contains("SIDETONE_URL box.example.com: is not a URL such as"));
    // With and without a key.
    for settings in [&[][..], &settings] {
        let line = said(settings, &[&export[..], &["--url", "http://user:hunter2@127.0.0.1:1"]].concat());
        assert!(line.starts_with("sidetone: --url must not have a user name or password in it: "), "{line}");
        assert!(!line.contains("hunter2"), "{line}");
    }
    let settings = [("SIDETONE_URL", url.as_str()), ("SIDETONE_OPERATOR_KEY", source.operator.as_str())];
    let line = said(&settings, &["export", "--workspace", "Nobody", text(&file)]);
    assert!(line.contains(&url) && line.contains("Nobody"), "{line}");
    assert!(said(&[], &export).contains("SIDETONE_DATA"), "no folder is made");
    assert!(said(&[], &["workspace", "move", "default", "DB_2"]).contains("name the Worker: --url"));
    // Of two keys, the one that is wrong is named.
    let other = folder.path().join("other.move");
    ended(&source.ask(&["export", "--workspace", "default", text(&other)], &[]), 0);
    let import = ["import", text(&other), "--from", url.as_str()];
    assert!(said(&settings, &import).contains("SIDETONE_FROM_OPERATOR_KEY is not set: "));
    let with_wrong = [&settings[..], &[("SIDETONE_FROM_OPERATOR_KEY", wrong.as_str())]].concat();
    let target =
        Server::start(&folder.path().join("target"), &[("SIDETONE_OPERATOR_KEY", source.operator.as_str())]);
    let target_url = format!("http://{}", target.address());
    let line = said(&with_wrong, &[&import[..], &["--url", target_url.as_str()]].concat());
    assert_eq!(line, format!("sidetone: SIDETONE_FROM_OPERATOR_KEY is not the operator's key of {url}"));
    ended(&source.ask(&["export", "--workspace", "default", "--cancel"], &[]), 0);
    fs::write(&file, "something else").unwrap();
    assert!(said(&settings, &export).contains("exists; choose another file"));
    assert!(said(&settings, &["import", text(&file)]).contains("no file that `sidetone export` has made"));
    assert!(!nowhere.exists() && !file.with_added_extension("part").exists());

    // A service without the key has none of this.
    let plain = Server::start(&folder.path().join("plain"), &[]);
    let plain_url = format!("http://{}", plain.address());
    let settings = [("SIDETONE_URL", plain_url.as_str()), ("SIDETONE_OPERATOR_KEY", wrong.as_str())];
    assert!(said(&settings, &export).contains("SIDETONE_OPERATOR_KEY is not set"));

    // Options that exclude each other, or need each other.
    for arguments in [
        &["export", "--workspace", "default"][..],
        &["export", text(&file)],
        &["export", "--workspace", "default", text(&file), "--cancel"],
        &["export", "--workspace", "default", "--erase", "--cancel"],
        &["export", "--workspace", "default", "--cancel", "--yes"],
        &["export", "--workspace", "default", "--release", "imp_1"],
        &["export", "--workspace", "default", "--release", "imp_1", "--to", "https://edge.example.com"],
        &["export", "--workspace", "default", "--to", "https://edge.example.com", "--erase"],
        &["import", text(&file), "--code", "--cancel"],
        &["import", "--cancel"],
        &["import", "--workspace", "default"],
        &["import", text(&file), "--workspace", "default", "--cancel"],
        &["import", text(&file), "--from", "https://box.example.com", "--code"],
    ] {
        let (_, err) = ended(&process::run(&nowhere, &[], arguments), 2);
        assert!(err.contains("Usage:"), "{arguments:?}: {err}");
    }
    source.client().expect(201, "POST", "/knowledge", Some(&json!({"name": "Hours", "content": "Nine."})));
}

//! A server, a workspace, and a folder that is a copy of the sample.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use sidetone_tests::process::{self, Client, Folder, Server, bootstrap_key};

/// What a command printed, and its exit code.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        Self {
            code: output.status.code().expect("it exits"),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// Whether it ended with this code; says what it printed if not.
    #[track_caller]
    pub fn expect(self, code: i32) -> String {
        assert_eq!(self.code, code, "\n{}\n{}", self.out, self.err);
        self.out + &self.err
    }
}

/// A folder, and perhaps a server for it.
pub struct Desk {
    place: Folder,
    server: Option<Server>,
    key: String,
}

impl Desk {
    /// A copy of the sample, without a server.
    pub fn alone() -> Self {
        let place = Folder::new();
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("as-code-sample"), &place.path().join("folder"));
        Self { place, server: None, key: bootstrap_key(1) }
    }

    /// The same with a server whose workspace is empty.
    pub fn new() -> Self {
        let mut desk = Self::alone();
        let settings = [("SIDETONE_BOOTSTRAP_KEYS", desk.key.as_str())];
        desk.server = Some(Server::start(&desk.place.path().join("data"), &settings));
        desk
    }

    /// The same, after `apply`: workspace and folder are in step.
    #[track_caller]
    pub fn applied() -> Self {
        let desk = Self::new();
        desk.run(&["apply", "folder"]).expect(0);
        desk
    }

    /// The folder.
    pub fn folder(&self) -> PathBuf {
        self.place.path().join("folder")
    }

    /// Another folder, which does not exist yet.
    pub fn other(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().expect("it has one")
    }

    pub fn client(&self) -> Client {
        self.server().connect(&self.key)
    }

    /// The command, with the folder in which it works.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let url =
            self.server.as_ref().map(|server| format!("http://{}", server.address())).unwrap_or_default();
        let settings = [("SIDETONE_URL", url.as_str()), ("SIDETONE_API_KEY", self.key.as_str())];
        let mut command = process::command(&self.other("none"), &settings);
        command.current_dir(self.place.path()).args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Said {
        Said::of(&self.command(arguments).output().expect("the binary runs"))
    }

    /// Changes the text of a file, which has it once.
    #[track_caller]
    pub fn edit(&self, file: &str, old: &str, new: &str) {
        let path = self.folder().join(file);
        let text = fs::read_to_string(&path).expect("the file");
        assert_eq!(text.matches(old).count(), 1, "{text}");
        fs::write(path, text.replace(old, new)).expect("it is written");
    }

    /// Removes files.
    #[track_caller]
    pub fn remove(&self, files: &[&str]) {
        for file in files {
            fs::remove_file(self.folder().join(file)).expect("it is there");
        }
    }

    /// A simulation of somebody else's, of what the first one in the list is of.
    pub fn their_simulation(&self, name: &str) -> Value {
        let ours = self.client().expect(200, "GET", "/simulations", None)[0].clone();
        json!({
            "name": name,
            "assistant_id": ours["assistant_id"],
            "persona_id": ours["persona_id"],
            "scenario_id": ours["scenario_id"],
        })
    }

    pub fn write(&self, file: &str, text: &str) {
        fs::write(self.folder().join(file), text).expect("it is written");
    }

    pub fn text(&self, file: &str) -> String {
        fs::read_to_string(self.folder().join(file)).expect("the file")
    }

    /// The only resource of a list.
    pub fn only(&self, path: &str) -> Value {
        let all = self.client().expect(200, "GET", path, None);
        assert_eq!(all.as_array().map(Vec::len), Some(1), "{all}");
        all[0].clone()
    }

    /// The path of the only resource of a list.
    pub fn path_of_only(&self, path: &str) -> String {
        format!("{path}/{}", self.only(path)["id"].as_str().expect("an id"))
    }
}

/// All files of a folder and their bytes, without the lock.
pub fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for kind in fs::read_dir(folder).expect("a folder").map(|kind| kind.expect("an entry").path()) {
        if kind.is_dir() {
            for file in fs::read_dir(&kind).expect("a folder").map(|file| file.expect("an entry").path()) {
                let name = file.strip_prefix(folder).expect("within it").to_string_lossy().into_owned();
                files.insert(name, fs::read_to_string(&file).expect("UTF-8"));
            }
        }
    }
    files
}

pub fn copy(from: &Path, to: &Path) {
    for (name, text) in files(from) {
        let path = to.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it is created");
        fs::write(path, text).expect("it is written");
    }
}

//! Holds the engine's modules to their floors: a module imports only from its own floor and the floors below it, so
//! no two of them can import each other.
#![allow(clippy::unwrap_used, reason = "a test")]
mod common;

use std::fs;
use std::path::Path;

use common::rust_files;

/// The modules at the top of `src`, from the ground up. ARCHITECTURE.md says in a sentence what each of them holds.
const FLOORS: [&str; 16] = [
    "base",
    "ports",
    "speech",
    "conversation",
    "models",
    "simulation",
    "carriers",
    "config",
    "services",
    "storage",
    "live",
    "jobs",
    "operations",
    "interfaces",
    "dashboard",
    "engine",
];

#[test]
fn modules_import_from_their_own_floor_or_below() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    assert!(files.len() > 100, "only {} files found below {}", files.len(), src.display());
    let broken: Vec<String> = files
        .iter()
        .flat_map(|path| {
            let name = path.strip_prefix(&src).unwrap().to_str().unwrap().replace('\\', "/");
            breaches(&name, &fs::read_to_string(path).unwrap())
        })
        .collect();
    assert!(broken.is_empty(), "imports that go up:\n{}", broken.join("\n"));
}

/// The chapter of ARCHITECTURE.md that says where things are names only files that exist.
#[test]
fn what_the_map_names_exists() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = fs::read_to_string(engine.join("../ARCHITECTURE.md")).unwrap();
    let (_, chapter) = map.split_once("\n## Where do I find").unwrap();
    let chapter = chapter.split("\n## ").next().unwrap();
    let is_path = |word: &&str| {
        let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
        is_plain
            && (word.ends_with('/') || word.contains('/') && word.rsplit('/').next().unwrap().contains('.'))
    };
    let paths: Vec<&str> = chapter.split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(paths.len() > 100, "{paths:?}");
    let exists = |path: &str| {
        ["src", "..", "src/dashboard", "src/storage"].iter().any(|base| engine.join(base).join(path).exists())
    };
    let missing: Vec<&&str> = paths.iter().filter(|path| !exists(path)).collect();
    assert!(missing.is_empty(), "named in ARCHITECTURE.md and not there: {missing:?}");
}

#[test]
fn an_import_that_goes_up_is_named_by_file_line_and_rule() {
    let text = "use crate::base::ids;\n\nuse crate::{\n    base::text,\n    jobs::Turn,\n};\n";
    let expected = "src/storage/batch.rs:5: `storage` imports `jobs`, which stands above it";
    assert_eq!(breaches("storage/batch.rs", text), [expected]);
    for (line, found) in [
        ("fn f(x: crate::jobs::Turn) {}", 1),
        ("    crate::operations::by_id(id)", 1),
        ("use super::super::jobs::Turn;", 1),
        ("use super::cost::Cost;", 0),
        ("/// As [`crate::jobs::Turn`] does.", 0),
        ("use crate::storage::cost::Cost;", 0),
        ("use crate::sql;", 0),
        ("use crate::nowhere::Thing;", 1),
    ] {
        assert_eq!(breaches("storage/batch.rs", line).len(), found, "{line}");
    }
    assert!(breaches("lib.rs", "pub use crate::engine::Engine;").is_empty());
}

/// What is wrong with the imports of one file, a line each.
fn breaches(file: &str, text: &str) -> Vec<String> {
    let home = file.split('/').next().unwrap().trim_end_matches(".rs");
    if home == "lib" {
        return Vec::new();
    }
    let Some(floor) = FLOORS.iter().position(|name| *name == home) else {
        return vec![format!("src/{file}:1: `{home}` has no floor: add it to FLOORS")];
    };
    let depth = file.split('/').filter(|part| *part != "mod.rs").count();
    imports(text, depth)
        .into_iter()
        .filter_map(|(line, module)| match FLOORS.iter().position(|name| *name == module) {
            Some(other) if other <= floor => None,
            Some(_) => Some(format!("src/{file}:{line}: `{home}` imports `{module}`, which stands above it")),
            None => Some(format!("src/{file}:{line}: `{module}` has no floor")),
        })
        .collect()
}

/// The top-level modules that a file names, by line. `depth` is how many modules lead to the file's own.
fn imports(text: &str, depth: usize) -> Vec<(usize, String)> {
    let code: String =
        text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let line = |offset: usize| code[..offset].matches('\n').count() + 1;
        let rest_at = at + "crate::".len();
        match code[rest_at..].strip_prefix('{') {
            None => found.push((line(at), word(&code[rest_at..]))),
            Some(list) => {
                found.extend(
                    list_heads(list).into_iter().map(|(offset, name)| (line(rest_at + 1 + offset), name)),
                );
            }
        }
    }
    // `super` reaches the top where there are as many of them as modules lead here. Those of a test module count one
    // less, so a path that goes up from there is found at its next step at the latest.
    let climb = "super::".repeat(depth);
    for (number, line) in code.lines().enumerate() {
        if let Some(at) = line.find(&climb) {
            let rest = &line[at + climb.len()..];
            if !rest.starts_with("super") && FLOORS.contains(&word(rest).as_str()) {
                found.push((number + 1, word(rest)));
            }
        }
    }
    // Macros live at the top of the crate by the rules of the language.
    found.retain(|(_, name)| !["sql", "words"].contains(&name.as_str()));
    found
}

/// The first word of each entry of a list of imports, up to its closing brace, with its offset.
fn list_heads(list: &str) -> Vec<(usize, String)> {
    let (mut depth, mut expected, mut heads) = (0, true, Vec::new());
    for (offset, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => expected = true,
            c if expected && !c.is_whitespace() => {
                heads.push((offset, word(&list[offset..])));
                expected = false;
            }
            _ => {}
        }
    }
    heads
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

//! Types that hold a secret and can be printed for debugging hide it: `Secret`, `PrivateKey`, or no `Debug` at all.
#![allow(clippy::unwrap_used, reason = "a test")]
mod common;

use std::fs;
use std::path::Path;

use common::rust_files;
use regex::Regex;

/// Fields that are no secrets although their names look like it.
const NO_SECRETS: &[(&str, &str)] = &[
    // The Idempotency-Key that a client has chosen.
    ("Idempotency", "key"),
    ("Extras", "key"),
    // The name of a field.
    ("Reference", "key"),
    ("Check", "public_key"),
    // The columns of a primary key, and of some rows.
    ("Table", "key"),
    ("Keys", "keys"),
    // Keys of a telephone.
    ("Input", "keys"),
    // Sealed.
    ("Move", "file_key"),
];

#[test]
fn no_type_shows_a_secret_when_it_is_debugged() {
    let hosts = ["engine", "host-native", "host-worker"];
    let mut files = Vec::new();
    for host in hosts {
        rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(host).join("src"), &mut files);
    }
    assert!(files.len() > 200, "only {} files found", files.len());
    let shown: Vec<String> = files
        .iter()
        .flat_map(|path| {
            let found = shown_secrets(&fs::read_to_string(path).unwrap());
            found.into_iter().map(|what| format!("{}: {what}", path.display())).collect::<Vec<_>>()
        })
        .collect();
    assert!(shown.is_empty(), "make each a `Secret`, or the type not `Debug`:\n{}", shown.join("\n"));
}

#[test]
fn a_secret_that_would_be_shown_is_named() {
    let account = |derive: &str, field: &str| {
        format!("{derive}\n/// An account.\npub struct Account<'a> {{\n    /// Its name.\n    {field},\n}}\n")
    };
    let debug = "#[derive(Debug, Clone)]";
    for (derive, field, found) in [
        (debug, "pub auth_token: String", 1),
        (debug, "secret: Option<&'a str>", 1),
        (debug, "private_key: Vec<u8>", 1),
        (debug, "pub(super) password: Secret", 0),
        (debug, "input_tokens: u64", 0),
        (debug, "key_id: KeyId", 0),
        (debug, "name: String", 0),
        ("#[derive(Clone)]", "secret: String", 0),
    ] {
        assert_eq!(shown_secrets(&account(derive, field)).len(), found, "{derive} {field}");
    }
}

/// `Type.field` of each text or bytes named like a secret, in a type that derives `Debug`.
fn shown_secrets(source: &str) -> Vec<String> {
    let item = r"(?sm)^ *#\[derive\([^)]*\bDebug\b[^)]*\)\](?:\s*(?:#\[[^\n]*\]|///[^\n]*))*\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum) (\w+)[^{;]*\{(.*?)^ *\}";
    let field = r"(?m)^\s*(?:pub(?:\([^)]*\))? )?(\w*(?:secret|key|keys|token|password))\s*:\s*([^\n]+)";
    let (item, field) = (Regex::new(item).unwrap(), Regex::new(field).unwrap());
    let plain = Regex::new(r"\b(?:String|str|Bytes|u8)\b").unwrap();
    let mut shown = Vec::new();
    for found in item.captures_iter(source) {
        for one in field.captures_iter(&found[2]) {
            let is_known = NO_SECRETS.contains(&(&found[1], &one[1]));
            if plain.is_match(&one[2]) && !is_known {
                shown.push(format!("{}.{}", &found[1], &one[1]));
            }
        }
    }
    shown
}

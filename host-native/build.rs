//! The commit, for `sidetone --version`: git's where there is a clone, else SIDETONE_COMMIT, for builds of an archive.
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=SIDETONE_COMMIT");
    let commit = git(&["rev-parse", "--short=12", "HEAD"])
        .or_else(|| std::env::var("SIDETONE_COMMIT").ok())
        .filter(|commit| !commit.trim().is_empty());
    // A commit, and a change of branch, are written there.
    if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])
        && Path::new(&log).exists()
    {
        println!("cargo::rerun-if-changed={log}");
    } else {
        println!("cargo::rerun-if-changed=build.rs");
    }
    // Not SIDETONE_…: `cargo run` gives it to the program, which warns of settings that it does not know.
    println!("cargo::rustc-env=BUILT_COMMIT={}", commit.as_deref().map_or("unknown", str::trim));
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

//! Generates the engine's documents (schemas, OpenAPI, tool list) at build time, and keeps the section
//! `target_features`, which the profile's `strip` would remove: with it, wasm-bindgen uses reference types instead of a
//! table of JavaScript values.
#![allow(clippy::print_stdout, reason = "build scripts communicate over standard output")]
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo also reruns it when the engine changes.
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("wasm32") {
        return Ok(());
    }
    println!("cargo::rustc-link-arg=--keep-section=target_features");
    let documents = sidetone_engine::interfaces::generated::build().map_err(|fault| format!("{fault:?}"))?;
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("documents"), documents)?;
    Ok(())
}

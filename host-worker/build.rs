//! Makes what the engine says of itself (schemas, documents, tool list) while there is a machine that has the time,
//! and asks the linker for what the profile's `strip` would take along with the names: `target_features`, by which
//! wasm-bindgen knows that references to JavaScript values need no table on the JavaScript side.
#![allow(clippy::print_stdout, reason = "how a build script speaks")]
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // It runs again, too, whenever the engine in it is another.
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("wasm32") {
        return Ok(());
    }
    println!("cargo::rustc-link-arg=--keep-section=target_features");
    let made = sidetone_engine::interfaces::generated::build().map_err(|fault| format!("{fault:?}"))?;
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("documents"), made)?;
    Ok(())
}

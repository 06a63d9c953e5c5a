//! Embeds the engine's schemas and documents, like the Worker's build.
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let made = sidetone_engine::interfaces::generated::build().map_err(|fault| format!("{fault:?}"))?;
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("documents"), made)?;
    Ok(())
}

//! Makes the client of the document that `SIDETONE_OPENAPI` names.
use std::error::Error;
use std::{env, fs};

use progenitor::{GenerationSettings, Generator, InterfaceStyle};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-env-changed=SIDETONE_OPENAPI");
    let path = env::var("SIDETONE_OPENAPI")?;
    println!("cargo:rerun-if-changed={path}");
    let document: openapiv3::OpenAPI = serde_json::from_slice(&fs::read(path)?)?;
    let mut settings = GenerationSettings::new();
    settings.with_interface(InterfaceStyle::Builder);
    let client = Generator::new(&settings).generate_tokens(&document)?;
    let text = prettyplease::unparse(&syn::parse2(client)?);
    fs::write(format!("{}/client.rs", env::var("OUT_DIR")?), text)?;
    Ok(())
}

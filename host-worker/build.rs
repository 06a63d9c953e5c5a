//! Asks the linker for what the profile's `strip` would take along with the names: `target_features`, by which
//! wasm-bindgen knows that references to JavaScript values need no table on the JavaScript side.
#![allow(clippy::print_stdout, reason = "how a build script speaks")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("wasm32") {
        println!("cargo::rustc-link-arg=--keep-section=target_features");
    }
}

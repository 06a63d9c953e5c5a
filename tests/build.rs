//! Sets `cfg(test_host = "…")` to the host under test, so that tests that do not apply there can be
//! marked as ignored. Cargo recompiles the package when `SIDETONE_TEST_HOST` changes.
#![allow(clippy::print_stdout, reason = "build scripts communicate by printing")]
use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SIDETONE_TEST_HOST");
    println!(r#"cargo::rustc-check-cfg=cfg(test_host, values("sandbox", "native", "worker"))"#);
    let host = env::var_os("SIDETONE_TEST_HOST").unwrap_or_else(|| "sandbox".into());
    match host.to_str() {
        Some(host @ ("sandbox" | "native" | "worker")) => println!("cargo::rustc-cfg=test_host=\"{host}\""),
        _ => {
            println!("cargo::error=SIDETONE_TEST_HOST={}: not one of sandbox, native, worker", host.display())
        }
    }
}

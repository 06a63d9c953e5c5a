//! The host under test, chosen at compile time (`build.rs`), so that tests that do not apply can be marked as ignored.

/// The value of `SIDETONE_TEST_HOST` at compile time; the Sandbox if it was not set.
const COMPILED_FOR: &str = if cfg!(test_host = "native") {
    "native"
} else if cfg!(test_host = "worker") {
    "worker"
} else {
    "sandbox"
};

/// `sandbox`, `native` or `worker`. Panics if `SIDETONE_TEST_HOST` now names another host than at compile time.
pub fn host() -> &'static str {
    if let Some(wanted) = std::env::var_os("SIDETONE_TEST_HOST") {
        assert!(
            wanted == COMPILED_FOR,
            "SIDETONE_TEST_HOST={} but this program was compiled for {COMPILED_FOR}: start it with `cargo test`, \
             which compiles it for the host that SIDETONE_TEST_HOST names",
            wanted.display()
        );
    }
    COMPILED_FOR
}

/// `SIDETONE_TEST_SHARDS`: how many databases the Sandbox and the Worker have; 0 without it: one, and no directory.
pub fn shards() -> usize {
    let count = std::env::var("SIDETONE_TEST_SHARDS").ok();
    count.map_or(0, |count| count.parse().expect("SIDETONE_TEST_SHARDS is a number"))
}

/// Fails a test that does not apply to this host but runs anyway, for example with `--ignored`.
#[track_caller]
pub fn only_on(hosts: &[&str]) {
    let host = host();
    assert!(
        hosts.contains(&host),
        "this test does not apply on the host {host}, where it is ignored: set SIDETONE_TEST_HOST to {}",
        hosts.join(" or ")
    );
}

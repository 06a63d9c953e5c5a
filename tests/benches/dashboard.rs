//! How quickly the dashboard answers. Run with `cargo bench -p sidetone-tests --bench dashboard`;
//! `SIDETONE_BENCH_ENFORCE=1` makes a missed bound an error.
//!
//! The page of 200 calls is compared with the JSON list that it is made of, in this process, in turns, so that noise on the
//! machine affects both. The pages of the menu are then requested from the release binary, over TCP, each one often enough
//! that it is warm, and as a browser asks for them: compressed, at its first visit, with the stylesheet in the page.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a benchmark")]
#![allow(missing_docs, reason = "a program, not a library")]
use std::process::ExitCode;
use std::time::Instant;

use bytes::Bytes;
use http::Method;
use serde_json::json;
use sidetone::sandbox::block_on;
use sidetone_engine::base::ids::{AssistantId, Id as _};
use sidetone_engine::engine::PreparedResponse;
use sidetone_engine::storage::calls::{NewCall, write};
use sidetone_tests::World;
use sidetone_tests::example::{analysis, ended_call, new_call};
use sidetone_tests::visitor::{Visitor, text};

const CALLS: usize = 200;
const TURNS: usize = 100;
const RATIO_MAX: f64 = 2.0;
const WARM_MS: f64 = 5.0;
const FIRST_PAINT_BYTES_MAX: usize = 60 * 1_024;
const LIST: &str = "/calls?limit=200";
const LIST_PAGE: &str = "/dashboard/calls?limit=200";
const PAGES: [&str; 9] = [
    "/dashboard",
    "/dashboard/assistants",
    "/dashboard/assistants/new",
    "/dashboard/tools",
    "/dashboard/calls",
    LIST_PAGE,
    "/dashboard/simulations",
    "/dashboard/keys",
    "/dashboard/settings",
];

fn main() -> ExitCode {
    if !std::env::args().any(|word| word == "--bench") {
        println!("a benchmark: run it with `cargo bench -p sidetone-tests`");
        return ExitCode::SUCCESS;
    }
    let mut kept = list_and_page();
    println!(
        "\n{:<36} {:>8} {:>8} {:>8} {:>12}",
        "a warm page of the binary", "p50, ms", "p99, ms", "bound", "on the wire"
    );
    let (_, mut visitor) = filled("native");
    for page in PAGES {
        let mut ask = || visitor.send(Method::GET, page, &[("accept-encoding", "gzip")], Bytes::new());
        let bytes = ask().body.len();
        let mut times: Vec<f64> = (0..TURNS + 5).map(|_| time_ms(|| ask().status)).skip(5).collect();
        times.sort_by(f64::total_cmp);
        let (p50, p99) = (times[TURNS / 2], times[TURNS * 99 / 100]);
        println!("{page:<36} {p50:>8.2} {p99:>8.2} {WARM_MS:>8} {bytes:>6} bytes");
        kept &= p50 <= WARM_MS && bytes <= FIRST_PAINT_BYTES_MAX;
    }
    println!("all bounds: {}", if kept { "kept" } else { "MISSED" });
    match kept || std::env::var("SIDETONE_BENCH_ENFORCE").as_deref() != Ok("1") {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Whether the page takes at most [`RATIO_MAX`] times as long as the list.
fn list_and_page() -> bool {
    let (api, mut visitor) = filled("sandbox");
    let cookies: Vec<String> =
        visitor.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let (key, cookies) = (format!("Bearer {}", api.key()), cookies.join("; "));
    let engine = api.sandbox().expect("it is one").engine();
    let answer = |path: &str, name: &str, value: &str| {
        let request = http::Request::get(path).header(name, value).body(Bytes::new()).expect("a request");
        match block_on(engine.handle(request, None)) {
            PreparedResponse::Complete(response) => response.into_parts().0.status().as_u16(),
            PreparedResponse::Blob(_) | PreparedResponse::Events(_) => panic!("{path}: a stream"),
        }
    };
    let (mut lists, mut pages) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        lists.push(time_ms(|| answer(LIST, "authorization", &key)));
        pages.push(time_ms(|| answer(LIST_PAGE, "cookie", &cookies)));
    }
    let rows = text(&visitor.get(LIST_PAGE)).matches("/dashboard/calls/call_").count();
    assert!(rows >= CALLS, "{rows} rows");
    let (list, page) = (median(lists), median(pages));
    let ratio = page / list;
    println!(
        "{CALLS} calls, in the engine: JSON {list:.2} ms, page {page:.2} ms, ratio {ratio:.2}, bound {RATIO_MAX}"
    );
    ratio <= RATIO_MAX
}

/// A workspace with calls, its API and somebody in its dashboard.
fn filled(host: &str) -> (World, Visitor) {
    let world = World::on_host(host);
    let mut visitor = Visitor::signed_in(&world, &format!("{host}@bench.example"));
    let made = visitor.act("create_api_key", "/dashboard/keys", &[("name", "Benchmark")]);
    let page = text(&made);
    let at = page.find("sidetone_").expect("a key");
    let api = world.with_key(&page[at..at + "sidetone_".len() + 49]);
    let assistant =
        api.post("/assistants", json!({"name": "Reception", "instructions": "Be kind."})).created()["id"]
            .as_str()
            .expect("an id")
            .to_owned();
    let of_all = NewCall { assistant_id: AssistantId::from_stored(assistant), ..new_call(&api) };
    let ids = api.direct_access();
    let calls = (0..CALLS).map(|_| NewCall { id: ids.new_id(), ..of_all.clone() });
    api.write(calls.flat_map(|new| write::record(&new, Some(&ended_call()), Some(&analysis()))).collect());
    (api, visitor)
}

fn time_ms(request: impl FnOnce() -> u16) -> f64 {
    let started = Instant::now();
    let status = request();
    let time = started.elapsed().as_secs_f64() * 1e3;
    assert_eq!(status, 200);
    time
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

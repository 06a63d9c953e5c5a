//! The fake by itself, for clients in other languages: prints its base URL and serves until its
//! standard input closes.
#![allow(clippy::print_stdout, reason = "that is what it is for")]
use std::io::Read;

use sidetone_tests::fakes::openai::OpenAi;

fn main() {
    println!("{}", OpenAi::start().base_url());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

//! The fake as a program, for clients in other languages: prints its base URL and serves until its standard input closes.
#![allow(clippy::print_stdout, reason = "printing is its purpose")]
use std::io::Read;

use sidetone_tests::fakes::openai::OpenAi;

fn main() {
    println!("{}", OpenAi::start().base_url());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

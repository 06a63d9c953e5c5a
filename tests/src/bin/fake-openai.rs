//! The fake as a program, for clients in other languages: prints its base URL and serves until its standard input closes.
//! What is said with the prompt `greeting` is transcribed as `Good morning.`, ten times.
#![allow(clippy::print_stdout, reason = "printing is its purpose")]
use std::io::Read;

use sidetone_tests::fakes::openai::OpenAi;

fn main() {
    let server = OpenAi::start();
    server.will_hear("greeting", &["Good morning."; 10]);
    println!("{}", server.base_url());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

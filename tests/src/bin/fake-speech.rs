//! The fake of speech providers as a program, for their own clients: prints its address and serves until its standard input
//! closes. What is said with the key term `greeting` is recognised as `Good morning.`, ten times.
#![allow(clippy::print_stdout, reason = "printing is its purpose")]
use std::io::Read;

use sidetone_tests::fakes::speech::SpeechServer;

fn main() {
    let server = SpeechServer::start();
    server.will_hear("greeting", &["Good morning."; 10]);
    println!("{}", server.base_url());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

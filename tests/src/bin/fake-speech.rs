//! The fake of speech providers as a program, for their own clients and for pages: prints its address and serves until its
//! standard input closes. What is said with the key term `greeting` is recognised as `Good morning.`, ten times. A line of its
//! input, a key term and a text with a tab between them, announces an utterance.
#![allow(clippy::print_stdout, reason = "printing is its purpose")]
use sidetone_tests::fakes::speech::SpeechServer;

fn main() {
    let server = SpeechServer::start();
    server.will_hear("greeting", &["Good morning."; 10]);
    println!("{}", server.base_url());
    for line in std::io::stdin().lines().map_while(Result::ok) {
        if let Some((term, text)) = line.split_once('\t') {
            server.will_hear(term, &[text]);
        }
    }
}

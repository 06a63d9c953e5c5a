//! The signed examples of the documentation verify as it says: whoever builds a receiver can check it with them.
#![allow(clippy::unwrap_used, reason = "a test")]
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use regex::Regex;
use serde_json::Value;
use sha2::Sha256;

/// The pages, and how many signed requests each shows.
const PAGES: &[(&str, usize)] = &[("docs/tools.md", 2), ("docs/webhooks.md", 1)];

/// A request as a page shows it.
struct Example {
    head: String,
    body: String,
}

impl Example {
    fn header(&self, name: &str) -> &str {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap()
    }

    /// By the recipe of docs/webhooks.md, without the code that signs.
    fn verifies(&self, secret: &str) -> bool {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        let message =
            format!("{}.{}.{}", self.header("webhook-id"), self.header("webhook-timestamp"), self.body);
        mac.update(message.as_bytes());
        let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        self.header("webhook-signature").split(' ').any(|signature| signature == expected)
    }
}

#[test]
fn the_signed_examples_verify_over_the_bytes_that_are_shown() {
    let secrets = Regex::new("whsec_[A-Za-z0-9+/]{20,}={0,2}").unwrap();
    for (page, expected) in PAGES {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page)).unwrap();
        let secret = secrets.find(&text).unwrap().as_str();
        let mut examples = signed(&text);
        assert_eq!(examples.len(), *expected, "{page}");
        for example in &mut examples {
            assert!(example.verifies(secret), "{page}: {}\n\n{}", example.head, example.body);
            let id = example.header("webhook-id").to_owned();
            if page.ends_with("tools.md") {
                assert_eq!(example.header("idempotency-key"), id, "{page}");
            }
            if !example.body.is_empty() {
                let body: Value = serde_json::from_str(&example.body).unwrap();
                assert_eq!(body["id"], id.as_str(), "{page}");
            }
            example.body.push(' ');
            assert!(!example.verifies(secret), "{page}: another body has this signature");
        }
    }
}

/// The examples with a signature. A body is the line after the head.
fn signed(page: &str) -> Vec<Example> {
    let blocks = page.split("```http\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    blocks
        .filter(|block| block.contains("\nwebhook-signature: "))
        .map(|block| {
            let (head, body) = block.split_once("\n\n").unwrap_or((block, ""));
            Example { head: head.to_owned(), body: body.to_owned() }
        })
        .collect()
}

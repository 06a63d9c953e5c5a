//! `PublicUrl::parse` accepts nothing private, and parses its own normalised form to the same URL.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidetone_engine::base::targets::{PublicUrl, URL_BYTES_MAX, is_public_address};
use url::Host;

fuzz_target!(|text: &str| {
    check(text);
    check(&format!("https://{text}"));
});

fn check(text: &str) {
    let Ok(target) = PublicUrl::parse(text, false) else {
        return;
    };
    assert_eq!(target.as_str(), text);
    assert!(text.len() <= URL_BYTES_MAX);
    let url = target.url();
    assert_eq!(url.scheme(), "https");
    assert!(url.username().is_empty() && url.password().is_none());
    match url.host().expect("it has a host") {
        Host::Ipv4(address) => assert!(is_public_address(address.into()), "{address}"),
        Host::Ipv6(address) => assert!(is_public_address(address.into()), "{address}"),
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            assert!(name.contains('.'), "{name}");
            for local in ["localhost", ".local", ".internal", ".home.arpa", ".localdomain"] {
                assert!(
                    !name.ends_with(local) || (local == "localhost" && !name.ends_with(".localhost")),
                    "{name}"
                );
            }
        }
    }
    assert!(PublicUrl::parse(text, true).is_ok(), "development accepts more, not less");
    if url.as_str().len() <= URL_BYTES_MAX {
        let again = PublicUrl::parse(url.as_str(), false).expect("its normalised form is accepted");
        assert_eq!(again.url(), url);
    }
}

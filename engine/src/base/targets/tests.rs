use proptest::prelude::*;

use super::*;

fn is_malformed(text: &str) {
    let result = PublicUrl::parse(text, false);
    assert!(matches!(result, Err(TargetError::Malformed(_))), "{text:?} gave {result:?}");
}

fn is_not_public(text: &str) {
    let result = PublicUrl::parse(text, false);
    assert!(
        matches!(result, Err(TargetError::NotPublic(_) | TargetError::Insecure(_))),
        "{text:?} gave {result:?}"
    );
}

#[test]
fn accepts_public_urls_and_keeps_their_spelling() {
    let urls = [
        "https://example.com",
        "https://example.com/",
        "https://example.com:443/hook",
        "https://example.com:8443/hook?a=b&c=%20#part",
        "HTTPS://Example.COM/Hook",
        "https://example.com./hook",
        "https://xn--bcher-kva.example/hook",
        "https://8.8.8.8/",
        "https://134744072/",
        "https://[2606:4700:4700::1111]/",
        "https://localhost.example.com/",
        "https://mylocalhost.com/",
        "https://internal.example.com/",
        "https://a_b.example.com/",
        "https://example.com/user@host",
        "https://example.com?to=me@example.com",
        "https://100.63.255.255/",
        "https://172.32.0.1/",
        "https://192.0.1.1/",
        "https://223.255.255.255/",
    ];
    for text in urls {
        assert_eq!(PublicUrl::parse(text, false).unwrap().as_str(), text);
    }
    assert_eq!(
        PublicUrl::parse("https://EXAMPLE.com:443", false).unwrap().url().as_str(),
        "https://example.com/"
    );
}

#[test]
fn rejects_private_addresses_in_every_spelling() {
    let hosts = [
        // loopback: decimal, hexadecimal, octal, short, mixed, full-width, percent-encoded, trailing dot
        "127.0.0.1",
        "127.255.255.254",
        "2130706433",
        "0x7f000001",
        "0X7F.1",
        "0x7f.1",
        "017700000001",
        "0177.0.0.1",
        "0177.0.0.01",
        "127.1",
        "127.0.1",
        "0x7f.0.0x1",
        "127.0x0.0.1",
        "１２７.０.０.１",
        "127。0。0。1",
        "１２７。１",
        "%31%32%37.0.0.1",
        "127%2E0%2E0%2E1",
        "127.0.0.1.",
        "127.1.",
        "2130706433.",
        "0x7f000001.",
        "①②⑦.0.0.1",
        "%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1",
        // this network, private, CGNAT, link-local, reserved
        "0",
        "0.0.0.0",
        "0x0",
        "0.1.2.3",
        "10.0.0.1",
        "10.1",
        "012.0.0.1",
        "167772161",
        "100.64.0.1",
        "100.127.255.255",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0xA9.0xFE.0xA9.0xFE",
        "0251.0376.0251.0376",
        "169.254.43518",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "192.168.257",
        "3232235521",
        "192.0.0.1",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.9",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "4294967295",
        "168.63.129.16",
        // IPv6
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[0000:0000:0000:0000:0000:0000:0000:0001]",
        "[::ffff:127.0.0.1]",
        "[::FFFF:7f00:1]",
        "[::ffff:8.8.8.8]",
        "[::127.0.0.1]",
        "[::7f00:1]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::10.0.0.1]",
        "[64:ff9b::a00:1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2002:a00:1::1]",
        "[2001::1]",
        "[2001:0:7f00:1::]",
        "[2001:2::1]",
        "[2001:10::1]",
        "[2001:db8::1]",
        "[3fff::1]",
        "[100::1]",
        "[5f00::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[FD12:3456::1]",
        "[fe80::1]",
        "[febf::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[4000::1]",
        "[8000::1]",
        "[e000::1]",
        "[200::1]",
    ];
    for host in hosts {
        // Other spellings of ASCII are refused before anybody asks what they spell.
        let refuses: fn(&str) = match host.is_ascii() && !host.contains('%') {
            true => is_not_public,
            false => is_malformed,
        };
        refuses(&format!("https://{host}/"));
        refuses(&format!("https://{host}:8443"));
        let in_development = PublicUrl::parse(&format!("http://{host}/"), true);
        assert_eq!(in_development.is_ok(), host.is_ascii() && !host.contains('%'), "{host} in development");
    }
}

#[test]
fn rejects_local_names_in_every_spelling() {
    let hosts = [
        "localhost",
        "LOCALHOST",
        "LocalHost.",
        "a.localhost",
        "a.b.localhost.",
        "ｌｏｃａｌｈｏｓｔ",
        "%6c%6f%63%61%6c%68%6f%73%74",
        "loc\u{ad}alhost",
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
        "printer.local",
        "printer.LOCAL.",
        "metadata.google.internal",
        "internal",
        "metadata.google.internal.",
        "host.docker.internal",
        "router.home.arpa",
        "home.arpa",
        "home.arpa.",
        "localhost.localdomain",
        "localhost.localdomain.",
        "intranet",
        "db",
        "db.",
        "a%2elocal",
        "a。local",
        "a．internal",
    ];
    for host in hosts {
        let refuses: fn(&str) = match host.is_ascii() && !host.contains('%') {
            true => is_not_public,
            false => is_malformed,
        };
        refuses(&format!("https://{host}/"));
        refuses(&format!("https://{host}:1234/x"));
    }
}

#[test]
fn rejects_http_and_credentials() {
    for text in [
        "http://example.com/",
        "HTTP://example.com/",
        "https://user@example.com/",
        "https://user:pass@example.com/",
        "https://:pass@example.com/",
        "https://@example.com/",
        "https://:@example.com/",
        "https://example.com@127.0.0.1/",
        "https://example.com%40x@example.com/",
    ] {
        is_not_public(text);
    }
    for text in ["https://user@example.com/", "http://user:pass@localhost/"] {
        assert!(
            matches!(PublicUrl::parse(text, true), Err(TargetError::NotPublic(_))),
            "credentials are never allowed"
        );
    }
}

#[test]
fn rejects_ambiguous_and_malformed_urls() {
    let texts = [
        "",
        " ",
        "example.com",
        "//example.com",
        "/hook",
        "https:",
        "https:/",
        "https://",
        "https:///",
        "https:///example.com",
        "https:example.com",
        "https:/example.com",
        "https:\\\\example.com",
        "https://example.com\\@127.0.0.1/",
        "https://exa\tmple.com/",
        "https://exam\nple.com/",
        " https://example.com/",
        "https://example.com/ ",
        "https://example.com/a b",
        "https://example.com/\0",
        "\u{0}https://example.com",
        "https://exa mple.com/",
        "https://exa%20mple.com/",
        "https://example.com:0/",
        "https://example.com:65536/",
        "https://example.com:a/",
        "https://example.com:-1/",
        "https://?a",
        "https://#a",
        "https://:443/",
        "https://example..com/",
        "https://.example.com/",
        "https://example.com../",
        "https://./",
        "https://../",
        "https://[::1/",
        "https://::1/",
        "https://[::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://[v1.a]/",
        "https://1.2.3.4.5/",
        "https://256.0.0.1/",
        "https://bücher.example/hook",
        "https://b%C3%BCcher.example/hook",
        "https://0x100000000/",
        "https://4294967296/",
        "https://09.0.0.1/",
        "https://example.0x7f/",
        "https://%00/",
        "https://a%2fb.com/",
        "https://a<b.com/",
        "https://\u{ad}/",
        "https://%/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "ws://example.com/",
        "wss://example.com/",
        "javascript://example.com/",
        "data:text/plain,a",
        "httpss://example.com",
        "ht\ttps://example.com",
        "https://exam\u{2028}ple.com",
    ];
    for text in texts {
        is_malformed(text);
        assert!(
            matches!(PublicUrl::parse(text, true), Err(TargetError::Malformed(_))),
            "{text:?} in development"
        );
    }
    let long = |bytes: usize| format!("https://example.com/{}", "a".repeat(bytes - 20));
    assert!(PublicUrl::parse(&long(URL_BYTES_MAX), false).is_ok());
    is_malformed(&long(URL_BYTES_MAX + 1));
}

#[test]
fn development_accepts_private_hosts() {
    for text in [
        "http://localhost:3000/hook",
        "http://127.0.0.1",
        "http://[::1]:8080/",
        "https://db/",
        "http://example.com/",
    ] {
        assert_eq!(PublicUrl::parse(text, true).unwrap().as_str(), text);
    }
}

#[test]
fn every_range_has_exact_bounds() {
    let public = [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "168.63.129.17",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.3.0",
        "192.88.98.255",
        "192.88.100.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "198.51.101.0",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "2000::",
        "2001:200::",
        "2001:db7:ffff::",
        "2001:db9::",
        "2003::",
        "2001:4860:4860::8888",
        "3ffe:ffff::",
        "3fff:1000::",
    ];
    for address in public {
        assert!(is_public_address(address.parse().unwrap()), "{address}");
    }
    for address in [
        "1fff:ffff::",
        "2001:1ff:ffff::",
        "3fff:fff:ffff::",
        "4000::",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    ] {
        assert!(!is_public_address(address.parse().unwrap()), "{address}");
    }
}

/// One address in every spelling that a URL allows.
fn spelling() -> impl Strategy<Value = String> {
    let part = |n: u32, form: u8| match form {
        0 => n.to_string(),
        1 => format!("0x{n:x}"),
        2 => format!("0X{n:X}"),
        _ => format!("0{n:o}"),
    };
    (any::<u32>(), 1..5usize, any::<[u8; 4]>(), any::<bool>()).prop_map(
        move |(address, parts, forms, dot)| {
            let mut words: Vec<String> = Vec::new();
            for (byte, form) in address.to_be_bytes().into_iter().zip(forms).take(parts - 1) {
                words.push(part(u32::from(byte), form % 4));
            }
            let rest = if parts == 1 { address } else { address & (u32::MAX >> (8 * (parts - 1))) };
            words.push(part(rest, forms[3] % 4));
            words.join(".") + if dot { "." } else { "" }
        },
    )
}

proptest! {
    #[test]
    fn every_spelling_of_an_address_gives_the_same_result(host in spelling()) {
        let text = format!("https://{host}/");
        let Some(Host::Ipv4(address)) = Url::parse(&text).unwrap().host().map(|host| host.to_owned()) else {
            return Err(TestCaseError::fail("not an address"));
        };
        prop_assert_eq!(PublicUrl::parse(&text, false).is_ok(), is_public_address(address.into()));
    }

    #[test]
    fn private_targets_are_never_accepted(text in r"https://(\[[0-9a-f:.]{2,30}\]|[0-9a-fA-FxX.%]{1,20}|\PC{1,12})(:[0-9]{1,5})?(/\PC{0,5})?") {
        if let Ok(target) = PublicUrl::parse(&text, false) {
            prop_assert_eq!(target.as_str(), &text);
            prop_assert_eq!(target.url().scheme(), "https");
            prop_assert!(target.url().username().is_empty() && target.url().password().is_none());
            match target.url().host().unwrap() {
                Host::Domain(name) => prop_assert!(is_public_name(name)),
                Host::Ipv4(address) => prop_assert!(is_public_address(address.into())),
                Host::Ipv6(address) => prop_assert!(is_public_address(address.into())),
            }
        }
    }

    #[test]
    fn an_embedded_private_address_is_not_public(address in any::<u32>(), prefix in prop::sample::select(vec![
        "::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::", "2002::"
    ])) {
        let base = u128::from(prefix.parse::<Ipv6Addr>().unwrap());
        let shift = if prefix == "2002::" { 80 } else { 0 };
        prop_assert!(!is_public_address(Ipv6Addr::from(base | (u128::from(address) << shift)).into()));
    }

    #[test]
    fn never_panics(text in any::<String>(), allow_private in any::<bool>()) {
        let _ = PublicUrl::parse(&text, allow_private);
        let _ = PublicUrl::parse(&format!("https://{text}"), allow_private);
    }
}

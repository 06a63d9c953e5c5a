//! Where requests on behalf of users may go: public HTTPS addresses, in whatever spelling a private one hides.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use url::{Host, Url};

/// Longest URL that a tool or a webhook may have.
pub const URL_BYTES_MAX: usize = 2048;

/// A URL that requests on behalf of a user may be sent to.
///
/// The name may still lead to a private address when it is looked up: whoever connects asks [`is_public_address`] about
/// the address it got, at every attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    written: String,
    url: Url,
}

/// Why a URL was not taken. Both are 422; `NotPublic` has the code `private_target`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetError {
    /// It is not a URL that can be understood in one way only.
    Malformed(String),
    /// It is a URL, but not of a public HTTPS server.
    NotPublic(String),
}

impl PublicUrl {
    /// Takes an `https` URL of a public host, on any port, without credentials.
    ///
    /// `allow_private` is for development: it also takes `http` and private hosts.
    pub fn parse(text: &str, allow_private: bool) -> Result<Self, TargetError> {
        let authority = authority_of(text)?;
        let url = Url::parse(text).map_err(|error| {
            TargetError::Malformed(format!("is not a URL ({error}); write it like https://example.com/hook"))
        })?;
        if url.port() == Some(0) {
            return Err(malformed("has port 0, which no server can listen on; give another port or none"));
        }
        let host =
            url.host().ok_or_else(|| malformed("has no host; write it like https://example.com/hook"))?;
        if let Host::Domain(name) = host {
            check_labels(name)?;
        }
        if authority.contains('@') {
            return Err(not_public("must not carry a user name or password; requests are signed instead"));
        }
        if !allow_private {
            check_public(&url, &host)?;
        }
        Ok(Self { written: text.to_owned(), url })
    }

    /// The URL exactly as it was written: what is stored and shown.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// The URL in its one normal spelling: what requests are sent to.
    pub fn url(&self) -> &Url {
        &self.url
    }
}

/// Whether the URL's host is written as an address that is not public. Nothing resolves such a host,
/// so a host checks it before it connects.
pub fn names_private_address(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok_and(|address| !is_public_address(address))
}

/// Whether requests on behalf of users may go to this address. Ask it about every address a name leads to, when connecting.
pub fn is_public_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !NOT_PUBLIC_V4.iter().any(|range| range.contains(&address)),
        IpAddr::V6(address) => !NOT_PUBLIC_V6.iter().any(|range| range.contains(&address)),
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(message) | Self::NotPublic(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for TargetError {}

/// IPv4 ranges that are not the public internet.
const NOT_PUBLIC_V4: &[Ipv4Net] = &[
    v4([0, 0, 0, 0], 8),        // this network (RFC 791, 3.2)
    v4([10, 0, 0, 0], 8),       // private (RFC 1918)
    v4([100, 64, 0, 0], 10),    // carrier-grade NAT (RFC 6598)
    v4([127, 0, 0, 0], 8),      // loopback (RFC 1122, 3.2.1.3)
    v4([168, 63, 129, 16], 32), // Azure's host agent: no RFC, but it hands out a machine's secrets
    v4([169, 254, 0, 0], 16),   // link-local, and every cloud's metadata (RFC 3927)
    v4([172, 16, 0, 0], 12),    // private (RFC 1918)
    v4([192, 0, 0, 0], 24),     // protocol assignments (RFC 6890)
    v4([192, 0, 2, 0], 24),     // documentation (RFC 5737)
    v4([192, 88, 99, 0], 24),   // 6to4 relays, withdrawn (RFC 7526)
    v4([192, 168, 0, 0], 16),   // private (RFC 1918)
    v4([198, 18, 0, 0], 15),    // benchmarking (RFC 2544)
    v4([198, 51, 100, 0], 24),  // documentation (RFC 5737)
    v4([203, 0, 113, 0], 24),   // documentation (RFC 5737)
    v4([224, 0, 0, 0], 4),      // multicast (RFC 5771)
    v4([240, 0, 0, 0], 4),      // reserved, with broadcast at its end (RFC 1112, RFC 8190)
];

/// IPv6 ranges that are not the public internet, or that lead to an IPv4 address by another way.
const NOT_PUBLIC_V6: &[Ipv6Net] = &[
    v6([0, 0, 0, 0, 0, 0], 96), // unspecified, loopback, IPv4-compatible (RFC 4291, 2.5)
    v6([0, 0, 0, 0, 0, 0xffff], 96), // IPv4-mapped (RFC 4291, 2.5.5.2)
    v6([0, 0, 0, 0, 0xffff, 0], 96), // IPv4-translated (RFC 2765)
    v6([0x64, 0xff9b, 0, 0, 0, 0], 96), // IPv4 behind NAT64 (RFC 6052)
    v6([0x64, 0xff9b, 1, 0, 0, 0], 48), // IPv4 behind a local NAT64 (RFC 8215)
    v6([0x100, 0, 0, 0, 0, 0], 64), // discard (RFC 6666)
    v6([0x2001, 0, 0, 0, 0, 0], 23), // protocol assignments: Teredo, benchmarking, ORCHID (RFC 2928, 4380, 5180, 7343)
    v6([0x2001, 0xdb8, 0, 0, 0, 0], 32), // documentation (RFC 3849)
    v6([0x2002, 0, 0, 0, 0, 0], 16), // 6to4, which embeds an IPv4 address (RFC 3056)
    v6([0x3fff, 0, 0, 0, 0, 0], 20), // documentation (RFC 9637)
    v6([0x5f00, 0, 0, 0, 0, 0], 16), // segment routing (RFC 9602)
    v6([0xfc00, 0, 0, 0, 0, 0], 7),  // unique local (RFC 4193)
    v6([0xfe80, 0, 0, 0, 0, 0], 10), // link-local (RFC 4291, 2.5.6)
    v6([0xfec0, 0, 0, 0, 0, 0], 10), // site-local (RFC 3879)
    v6([0xff00, 0, 0, 0, 0, 0], 8),  // multicast (RFC 4291, 2.7)
    v6([0, 0, 0, 0, 0, 0], 3), // below 2000::/3, the only part handed out as global unicast (RFC 4291, 2.4)
    v6([0x4000, 0, 0, 0, 0, 0], 2), // above it, first quarter
    v6([0x8000, 0, 0, 0, 0, 0], 1), // above it, the rest
];

/// Names that end in one of these never leave the machine or the local network.
const NOT_PUBLIC_NAMES: &[&str] = &[
    "localhost",   // RFC 6761, 6.3
    "local",       // multicast DNS (RFC 6762)
    "internal",    // private use (ICANN resolution 2024.07.29.06); clouds keep their metadata here
    "home.arpa",   // home networks (RFC 8375)
    "localdomain", // what resolvers add to a bare name
];

const fn v4([a, b, c, d]: [u8; 4], prefix_bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix_bits)
}

const fn v6([a, b, c, d, e, f]: [u16; 6], prefix_bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, 0, 0), prefix_bits)
}

/// The part between `://` and the path. Refuses what URL readers take differently from one another: they drop control
/// characters and blanks, turn backslashes round, and forgive missing or surplus slashes.
fn authority_of(text: &str) -> Result<&str, TargetError> {
    if text.len() > URL_BYTES_MAX {
        return Err(TargetError::Malformed(format!(
            "is longer than {URL_BYTES_MAX} bytes; use a shorter URL"
        )));
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(malformed(
            "contains a blank, a control character or a backslash; write those percent-encoded",
        ));
    }
    let (scheme, rest) = text
        .split_once("://")
        .ok_or_else(|| malformed("is not a full URL; write it like https://example.com/hook"))?;
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return Err(malformed("must start with https://"));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Err(malformed("has no host; write it like https://example.com/hook"));
    }
    Ok(authority)
}

fn check_labels(name: &str) -> Result<(), TargetError> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.split('.').any(str::is_empty) {
        return Err(malformed("has a host name with an empty part; check its dots"));
    }
    Ok(())
}

fn check_public(url: &Url, host: &Host<&str>) -> Result<(), TargetError> {
    if url.scheme() != "https" {
        return Err(not_public(
            "must start with https://, so that nobody can read or change the request on its way",
        ));
    }
    let public = match *host {
        Host::Domain(name) => is_public_name(name),
        Host::Ipv4(address) => is_public_address(address.into()),
        Host::Ipv6(address) => is_public_address(address.into()),
    };
    if !public {
        return Err(not_public(
            "must lead to a public host: private, local and reserved addresses and names are refused",
        ));
    }
    Ok(())
}

/// The name comes from the URL reader: lower case, percent and full-width spellings undone.
fn is_public_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let ends_in =
        |suffix: &&str| name.strip_suffix(*suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    name.contains('.') && !NOT_PUBLIC_NAMES.iter().any(ends_in)
}

fn malformed(message: &str) -> TargetError {
    TargetError::Malformed(message.to_owned())
}

fn not_public(message: &str) -> TargetError {
    TargetError::NotPublic(message.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_malformed(text: &str) {
        let result = PublicUrl::parse(text, false);
        assert!(matches!(result, Err(TargetError::Malformed(_))), "{text:?} gave {result:?}");
    }

    fn is_not_public(text: &str) {
        let result = PublicUrl::parse(text, false);
        assert!(matches!(result, Err(TargetError::NotPublic(_))), "{text:?} gave {result:?}");
    }

    #[test]
    fn takes_public_urls_and_shows_them_as_written() {
        let urls = [
            "https://example.com",
            "https://example.com/",
            "https://example.com:443/hook",
            "https://example.com:8443/hook?a=b&c=%20#part",
            "HTTPS://Example.COM/Hook",
            "https://example.com./hook",
            "https://bücher.example/hook",
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
    fn refuses_private_addresses_in_every_spelling() {
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
            is_not_public(&format!("https://{host}/"));
            is_not_public(&format!("https://{host}:8443"));
            assert!(PublicUrl::parse(&format!("http://{host}/"), true).is_ok(), "{host} in development");
        }
    }

    #[test]
    fn refuses_local_names_in_every_spelling() {
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
            is_not_public(&format!("https://{host}/"));
            is_not_public(&format!("https://{host}:1234/x"));
        }
    }

    #[test]
    fn refuses_http_and_credentials() {
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
                "credentials never"
            );
        }
    }

    #[test]
    fn refuses_what_is_not_one_clear_url() {
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
            "https://0x100000000/",
            "https://4294967296/",
            "https://09.0.0.1/",
            "https://example.0x7f/",
            "https://%00/",
            "https://a%2fb.com/",
            "https://a<b.com/",
            "https://xn--a/",
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
    fn development_takes_private_hosts() {
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
    fn every_range_ends_where_it_should() {
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

    /// One address in the spellings a URL allows.
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
        fn an_address_is_judged_alike_in_every_spelling(host in spelling()) {
            let text = format!("https://{host}/");
            let Some(Host::Ipv4(address)) = Url::parse(&text).unwrap().host().map(|host| host.to_owned()) else {
                return Err(TestCaseError::fail("not an address"));
            };
            prop_assert_eq!(PublicUrl::parse(&text, false).is_ok(), is_public_address(address.into()));
        }

        #[test]
        fn nothing_private_is_taken(text in r"https://(\[[0-9a-f:.]{2,30}\]|[0-9a-fA-FxX.%]{1,20}|\PC{1,12})(:[0-9]{1,5})?(/\PC{0,5})?") {
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
}

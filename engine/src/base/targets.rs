//! Validates the targets of requests on behalf of users: public HTTPS servers only, however a private address is spelled.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use url::{Host, Url};

use crate::base::error::Code;

/// Longest URL of a tool or a webhook.
pub const URL_BYTES_MAX: usize = 2048;

/// A URL that may receive requests on behalf of a user.
///
/// Its host name may still resolve to a private address: the connecting code must call [`is_public_address`] with the
/// resolved address, at every attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    written: String,
    url: Url,
}

/// Why a URL was rejected. All are 422; some have a [code](TargetError::code) of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetError {
    /// Not a URL, or one that parsers interpret differently.
    Malformed(String),
    /// A URL of `http`.
    Insecure(String),
    /// A URL that does not lead to a public server.
    NotPublic(String),
}

impl TargetError {
    /// The code of an error that has nothing else to say.
    pub fn code(&self) -> Code {
        match self {
            Self::Malformed(_) => Code::ValidationFailed,
            Self::Insecure(_) => Code::InsecureTarget,
            Self::NotPublic(_) => Code::PrivateTarget,
        }
    }
}

impl PublicUrl {
    /// Accepts an `https` URL of a public host, on any port, without credentials.
    ///
    /// `allow_private` also accepts `http` and private hosts, for development.
    pub fn parse(text: &str, allow_private: bool) -> Result<Self, TargetError> {
        let authority = authority_of(text)?;
        // Reading these takes 30 KB of tables, gzipped, and wherever a name is registered it is written in ASCII.
        let host = authority.rsplit('@').next().unwrap_or_default();
        if !host.is_ascii() || host.contains('%') {
            return Err(malformed(
                "has a host with characters beyond ASCII or with `%`; write an international name in its ASCII form, xn--…",
            ));
        }
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
            return Err(not_public(
                "must not have credentials in it (`user:password@`); requests are signed instead",
            ));
        }
        if !allow_private {
            check_public(&url, &host)?;
        }
        Ok(Self { written: text.to_owned(), url })
    }

    /// The URL as the user wrote it: the form that is stored and shown.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// The normalised URL: the form that requests use.
    pub fn url(&self) -> &Url {
        &self.url
    }
}

/// Whether the URL's host is a literal address that is not public. Such a host is never resolved, so a host implementation
/// checks it before connecting.
pub fn names_private_address(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok_and(|address| !is_public_address(address))
}

/// Whether requests on behalf of users may connect to this address. Check every address that a name resolves to, when
/// connecting.
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
            Self::Malformed(message) | Self::Insecure(message) | Self::NotPublic(message) => {
                f.write_str(message)
            }
        }
    }
}

impl std::error::Error for TargetError {}

/// IPv4 ranges outside the public internet.
const NOT_PUBLIC_V4: &[Ipv4Net] = &[
    v4([0, 0, 0, 0], 8),        // this network (RFC 791, 3.2)
    v4([10, 0, 0, 0], 8),       // private (RFC 1918)
    v4([100, 64, 0, 0], 10),    // carrier-grade NAT (RFC 6598)
    v4([127, 0, 0, 0], 8),      // loopback (RFC 1122, 3.2.1.3)
    v4([168, 63, 129, 16], 32), // Azure's host agent: no RFC, but it serves a machine's secrets
    v4([169, 254, 0, 0], 16),   // link-local, including the clouds' metadata services (RFC 3927)
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

/// IPv6 ranges outside the public internet, and those that embed an IPv4 address.
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
    v6([0, 0, 0, 0, 0, 0], 3), // below 2000::/3, the only range allocated as global unicast (RFC 4291, 2.4)
    v6([0x4000, 0, 0, 0, 0, 0], 2), // above it, first quarter
    v6([0x8000, 0, 0, 0, 0, 0], 1), // above it, the rest
];

/// Names with these suffixes resolve only on the machine or in the local network.
const NOT_PUBLIC_NAMES: &[&str] = &[
    "localhost",   // RFC 6761, 6.3
    "local",       // multicast DNS (RFC 6762)
    "internal",    // private use (ICANN resolution 2024.07.29.06); clouds serve their metadata here
    "home.arpa",   // home networks (RFC 8375)
    "localdomain", // resolvers append it to a bare name
];

const fn v4([a, b, c, d]: [u8; 4], prefix_bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix_bits)
}

const fn v6([a, b, c, d, e, f]: [u16; 6], prefix_bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, 0, 0), prefix_bits)
}

/// The part between `://` and the path. Rejects what URL parsers interpret differently: some drop control characters and
/// spaces, turn backslashes into slashes, or tolerate missing and extra slashes.
fn authority_of(text: &str) -> Result<&str, TargetError> {
    if text.len() > URL_BYTES_MAX {
        return Err(TargetError::Malformed(format!(
            "is longer than {URL_BYTES_MAX} bytes; use a shorter URL"
        )));
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(malformed("contains a space, a control character or a backslash; percent-encode it"));
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
        return Err(TargetError::Insecure(
            "must start with https://, so that the request is encrypted in transit; for development, a server with the \
             setting SIDETONE_ALLOW_PRIVATE_TARGETS=1 takes http://"
                .to_owned(),
        ));
    }
    let public = match *host {
        Host::Domain(name) => is_public_name(name),
        Host::Ipv4(address) => is_public_address(address.into()),
        Host::Ipv6(address) => is_public_address(address.into()),
    };
    if !public {
        return Err(not_public(
            "must lead to a public host; private, local and reserved addresses and names are not allowed, except in \
             development by a server with the setting SIDETONE_ALLOW_PRIVATE_TARGETS=1",
        ));
    }
    Ok(())
}

/// The name comes from the URL parser: lower case, with percent and full-width spellings decoded.
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
mod tests;

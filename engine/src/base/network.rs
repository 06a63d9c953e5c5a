//! Under which address a client is counted.
use std::net::IpAddr;

/// The address that stands for everybody behind `address`: an IPv6 network of /64, the smallest block that one customer
/// gets, or an IPv4 address.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_counts_by_its_network_and_mapped_ipv4_as_ipv4() {
        let network = |text: &str| network_of(text.parse().unwrap());
        assert_eq!(network("2001:db8:1:2:3::1"), network("2001:db8:1:2:ffff::9"));
        assert_ne!(network("2001:db8:1:2:3::1"), network("2001:db8:1:3:3::1"));
        assert_eq!(network("::ffff:1.2.3.4"), IpAddr::from([1, 2, 3, 4]));
    }
}

//! Which addresses a name may lead to. Who owns a name chooses its address: without this, any allowed name could be
//! made to point at the host itself or at its neighbours.
//!
//! Must never take an address that holds another one for what it looks like.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a name may lead to `address`. `explicit`: the policy names host and port, so that it may be a local one.
pub fn may_reach(address: IpAddr, explicit: bool) -> bool {
    is_global(address) || (explicit && is_local(address))
}

/// Whether an address belongs to somebody on the public internet.
pub fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four_is_global(four),
        IpAddr::V6(six) => six_is_global(six),
    }
}

/// The host itself or a network around it: what an explicit name may lead to. Link-local addresses are never among
/// them: there the keys of cloud machines are.
fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_loopback() || four.is_private() || is_carrier(four),
        IpAddr::V6(six) => six.is_loopback() || (six.segments()[0] & 0xfe00) == 0xfc00,
    }
}

fn is_carrier(address: Ipv4Addr) -> bool {
    let [a, b, ..] = address.octets();
    a == 100 && (64..128).contains(&b)
}

/// IPv4 networks that are nobody's on the public internet: first address and length of the prefix.
const SPECIAL: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, and what is reserved up to the broadcast address.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

fn four_is_global(address: Ipv4Addr) -> bool {
    let bits = u32::from(address);
    !SPECIAL
        .iter()
        .any(|(first, length)| (bits ^ u32::from(*first)) >> (32 - length) == 0)
}

fn six_is_global(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    if let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = segments {
        // A translated IPv4 address: networks without IPv4 answer so for every host.
        let bits = u32::from(high) << 16 | u32::from(low);
        return four_is_global(Ipv4Addr::from(bits));
    }
    let [a, b, ..] = segments;
    // Only 2000::/3 is given out; in it are tunnels that hold an IPv4 address, and documentation.
    let given_out = (a & 0xe000) == 0x2000;
    let protocols = a == 0x2001 && b < 0x200;
    let documentation = (a == 0x2001 && b == 0xdb8) || (a == 0x3fff && b < 0x1000);
    given_out && !protocols && !documentation && a != 0x2002
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_public_addresses_are_global() {
        for text in [
            "1.1.1.1",
            "93.184.216.34",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "64:ff9b::101:101",
        ] {
            assert!(is_global(text.parse().unwrap()), "{text}");
        }
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:1.1.1.1",
            "::ffff:127.0.0.1",
            "::7f00:1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!is_global(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn an_explicit_name_may_be_local_but_never_link_local() {
        for text in [
            "127.0.0.1",
            "::1",
            "10.0.0.1",
            "192.168.0.1",
            "100.64.0.1",
            "fd00::1",
            "1.1.1.1",
        ] {
            assert!(may_reach(text.parse().unwrap(), true), "{text}");
        }
        for text in [
            "169.254.169.254",
            "fe80::1",
            "0.0.0.0",
            "::",
            "224.0.0.1",
            "255.255.255.255",
            "::ffff:127.0.0.1",
        ] {
            assert!(!may_reach(text.parse().unwrap(), true), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn an_address_in_disguise_is_never_more_than_itself(bits in any::<u32>()) {
            let four = Ipv4Addr::from(bits);
            let known = four.is_private() || four.is_loopback() || four.is_link_local() || four.is_unspecified()
                || four.is_broadcast() || four.is_multicast() || four.is_documentation();
            prop_assert!(!(known && is_global(four.into())));
            let [a, b, c, d] = four.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            prop_assert!(!is_global(four.to_ipv6_mapped().into()));
            prop_assert!(!is_global(Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1).into()));
            let translated = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low);
            prop_assert_eq!(is_global(translated.into()), is_global(four.into()));
        }
    }
}

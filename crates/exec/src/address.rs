//! Addresses as programs pass them: `struct sockaddr_in` and `struct sockaddr_in6`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use libc::c_int;
use transom_stack::mapped::mapped;

/// The longest address that is looked at.
pub(crate) const MAX_LEN: usize = 28;
const V4_LEN: usize = 16;

/// Reads an address for a socket of IPv6 or of IPv4. The error is the number that Linux gives.
pub(crate) fn read(bytes: &[u8], v6: bool) -> Result<SocketAddr, c_int> {
    let family = bytes.first_chunk().map(|bytes| c_int::from(u16::from_ne_bytes(*bytes)));
    let family = family.ok_or(libc::EINVAL)?;
    match (family, v6) {
        (libc::AF_INET6, true) => {
            let bytes: &[u8; MAX_LEN] = bytes.first_chunk().ok_or(libc::EINVAL)?;
            let [_, _, p0, p1, _, _, _, _, address @ .., s0, s1, s2, s3] = bytes;
            let address = Ipv6Addr::from(*address);
            let scope = u32::from_ne_bytes([*s0, *s1, *s2, *s3]);
            let port = u16::from_be_bytes([*p0, *p1]);
            Ok(SocketAddrV6::new(address, port, 0, scope).into())
        }
        (libc::AF_INET, false) => {
            let bytes: &[u8; V4_LEN] = bytes.first_chunk().ok_or(libc::EINVAL)?;
            let [_, _, p0, p1, a, b, c, d, ..] = *bytes;
            Ok((Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([p0, p1])).into())
        }
        (libc::AF_INET, true) => Err(libc::EINVAL),
        _ => Err(libc::EAFNOSUPPORT),
    }
}

/// An address for a socket of IPv6, which shows IPv4 addresses as mapped ones, or of IPv4.
pub(crate) fn write(address: SocketAddr, v6: bool) -> Vec<u8> {
    let address = if v6 { mapped(address) } else { address };
    let port = address.port().to_be_bytes();
    let family = |family: c_int| (family as u16).to_ne_bytes();
    match address {
        SocketAddr::V4(v4) => {
            [&family(libc::AF_INET)[..], &port, &v4.ip().octets(), &[0; 8]].concat()
        }
        SocketAddr::V6(v6) => {
            let scope = v6.scope_id().to_ne_bytes();
            [&family(libc::AF_INET6)[..], &port, &[0; 4], &v6.ip().octets(), &scope].concat()
        }
    }
}

/// No address and no port.
pub(crate) fn unspecified(v6: bool) -> SocketAddr {
    let ip: IpAddr = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    SocketAddr::new(ip, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for (text, v6) in
            [("192.0.2.7:80", false), ("[2001:db8::7]:443", true), ("[fe80::1%3]:9", true)]
        {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(read(&write(address, v6), v6), Ok(address));
        }
        let shown = write("192.0.2.7:80".parse().unwrap(), true);
        assert_eq!(read(&shown, true), Ok("[::ffff:192.0.2.7]:80".parse().unwrap()));
    }

    #[test]
    fn malformed_addresses_are_refused() {
        let v4 = write("192.0.2.7:80".parse().unwrap(), false);
        let v6 = write("[::1]:80".parse().unwrap(), true);
        for len in 0..v4.len() {
            assert!(read(v4.get(..len).unwrap(), false).is_err(), "{len}");
        }
        for len in 0..v6.len() {
            assert!(read(v6.get(..len).unwrap(), true).is_err(), "{len}");
        }
        assert_eq!(read(&v6, false), Err(libc::EAFNOSUPPORT));
        assert_eq!(read(&v4, true), Err(libc::EINVAL));
        assert_eq!(read(&[0xff; MAX_LEN], true), Err(libc::EAFNOSUPPORT));
    }
}

//! Socket addresses as C programs hold them: Linux' `sockaddr_in` and `sockaddr_in6`.
//!
//! Family in the machine's byte order, port and addresses in the network's:
//!
//! ```text
//! sockaddr_in    family 2 | port 2 | address 4 | zero 8                          16 bytes
//! sockaddr_in6   family 2 | port 2 | flow info 4 | address 16 | scope 4          28 bytes
//! ```
//!
//! Flow information and scope are written as zero and not looked at: a host here has one interface.

use crate::errno::{Errno, Result};
use libc::{AF_INET, AF_INET6, EAFNOSUPPORT, EINVAL};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The address family of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    /// From `AF_INET` or `AF_INET6`.
    pub(crate) fn from_number(domain: i32) -> Result<Self> {
        match domain {
            AF_INET => Ok(Family::V4),
            AF_INET6 => Ok(Family::V6),
            _ => Err(Errno(EAFNOSUPPORT)),
        }
    }

    pub(crate) fn number(self) -> i32 {
        match self {
            Family::V4 => AF_INET,
            Family::V6 => AF_INET6,
        }
    }

    pub(crate) fn unspecified(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or(Errno(EINVAL))
}

/// Reads a `sockaddr_in` or `sockaddr_in6`.
///
/// # Errors
/// `EINVAL` if it is too short (a `sockaddr_in6` may lack its scope), `EAFNOSUPPORT` for any other family.
pub fn decode(bytes: &[u8]) -> Result<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(field(bytes, 0)?));
    let port = u16::from_be_bytes(field(bytes, 2)?);
    match Family::from_number(family)? {
        Family::V4 => {
            let address: [u8; 4] = field(bytes, 4)?;
            let _padding: [u8; 8] = field(bytes, 8)?;
            Ok(SocketAddr::new(Ipv4Addr::from(address).into(), port))
        }
        Family::V6 => {
            let address: [u8; 16] = field(bytes, 8)?;
            Ok(SocketAddr::new(Ipv6Addr::from(address).into(), port))
        }
    }
}

/// Writes a `sockaddr_in` or `sockaddr_in6`.
pub fn encode(address: SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of::<libc::sockaddr_in6>());
    let family = Family::of(address.ip());
    bytes.extend((family.number() as u16).to_ne_bytes());
    bytes.extend(address.port().to_be_bytes());
    match address.ip() {
        IpAddr::V4(v4) => {
            bytes.extend(v4.octets());
            bytes.extend([0; 8]);
        }
        IpAddr::V6(v6) => {
            bytes.extend([0; 4]);
            bytes.extend(v6.octets());
            bytes.extend([0; 4]);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_laid_out_as_linux_does() {
        let v4: SocketAddr = "192.0.2.1:8080".parse().unwrap();
        let [low, high] = 2u16.to_ne_bytes();
        let expected = [low, high, 0x1f, 0x90, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(encode(v4), expected);
        assert_eq!(decode(&expected), Ok(v4));

        let v6: SocketAddr = "[2001:db8::2]:443".parse().unwrap();
        let bytes = encode(v6);
        assert_eq!(bytes.len(), 28);
        assert_eq!(bytes[..2], 10u16.to_ne_bytes());
        assert_eq!(bytes[2..4], [1, 187]);
        assert_eq!(bytes[8..12], [0x20, 0x01, 0x0d, 0xb8]);
        assert_eq!(bytes[23], 2);
        assert_eq!(decode(&bytes), Ok(v6));
        assert_eq!(decode(&bytes[..24]), Ok(v6), "without the scope, as before RFC 2553");
    }

    #[test]
    fn short_and_foreign_addresses_are_refused() {
        let v4 = encode("192.0.2.1:80".parse().unwrap());
        for len in 0..16 {
            assert_eq!(decode(&v4[..len]), Err(Errno(EINVAL)), "{len} bytes");
        }
        let v6 = encode("[::1]:80".parse().unwrap());
        assert_eq!(decode(&v6[..23]), Err(Errno(EINVAL)));
        let mut unix = [0u8; 16];
        unix[..2].copy_from_slice(&1u16.to_ne_bytes());
        assert_eq!(decode(&unix), Err(Errno(EAFNOSUPPORT)));
    }
}

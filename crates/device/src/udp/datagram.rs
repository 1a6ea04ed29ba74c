//! The format of datagrams.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  version = 1  |     kind      |             flags             |
//! +---------------+---------------+-------------------------------+
//! |                   the receiver's session                      |
//! +---------------------------------------------------------------+
//! |                            body ...
//! ```
//!
//! Numbers are in network byte order. A datagram of another version is dropped, but for a hello, which is refused: so these eight bytes and
//! the refusal stay what they are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The version that this is.
pub(super) const VERSION: u8 = 1;
/// Bytes before the body.
pub(super) const HEADER_LEN: usize = 8;
/// In a packet: its transport checksum is covered by UDP's, and its field need not be right.
pub(super) const CHECKSUM_COVERED: u16 = 1;

/// The kinds of datagram.
pub(super) mod kind {
    pub(crate) const HELLO: u8 = 1;
    pub(crate) const CHALLENGE: u8 = 2;
    pub(crate) const WELCOME: u8 = 3;
    pub(crate) const REFUSAL: u8 = 4;
    pub(crate) const PACKET: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const PONG: u8 = 7;
    pub(crate) const STRANGER: u8 = 8;
    pub(crate) const BYE: u8 = 9;
}

/// The first eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) version: u8,
    pub(super) kind: u8,
    pub(super) flags: u16,
    pub(super) session: u32,
}

impl Header {
    pub(super) fn new(kind: u8, session: u32) -> Self {
        Header { version: VERSION, kind, flags: 0, session }
    }

    /// The header and what is behind it; `None` if there is less than a header.
    pub(super) fn read(datagram: &[u8]) -> Option<(Header, &[u8])> {
        let (bytes, body) = datagram.split_first_chunk::<HEADER_LEN>()?;
        let [version, kind, f0, f1, session @ ..] = *bytes;
        let flags = u16::from_be_bytes([f0, f1]);
        Some((Header { version, kind, flags, session: u32::from_be_bytes(session) }, body))
    }

    pub(super) fn bytes(self) -> [u8; HEADER_LEN] {
        let [f0, f1] = self.flags.to_be_bytes();
        let [s0, s1, s2, s3] = self.session.to_be_bytes();
        [self.version, self.kind, f0, f1, s0, s1, s2, s3]
    }
}

/// The handling of a datagram that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It carries a packet that may be delivered.
    Deliver,
    /// Send this back.
    Answer(Vec<u8>),
    /// Nothing.
    Drop,
}

/// Addresses inside the tunnel, at most one of each version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Addresses {
    pub(super) v4: Option<Ipv4Addr>,
    pub(super) v6: Option<Ipv6Addr>,
}

impl Addresses {
    const LEN: usize = 20;

    /// `None` if there are two of one version.
    pub(super) fn of(addresses: impl IntoIterator<Item = IpAddr>) -> Option<Self> {
        let mut all = Addresses::default();
        for address in addresses {
            let before = match address {
                IpAddr::V4(v4) => all.v4.replace(v4).is_some(),
                IpAddr::V6(v6) => all.v6.replace(v6).is_some(),
            };
            if before {
                return None;
            }
        }
        Some(all)
    }

    pub(super) fn each(self) -> impl Iterator<Item = IpAddr> {
        self.v4.map(IpAddr::V4).into_iter().chain(self.v6.map(IpAddr::V6))
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend(self.v4.unwrap_or(Ipv4Addr::UNSPECIFIED).octets());
        out.extend(self.v6.unwrap_or(Ipv6Addr::UNSPECIFIED).octets());
    }

    fn read(bytes: &[u8; Self::LEN]) -> Self {
        let [v4 @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = *bytes;
        let [_, _, _, _, v6 @ ..] = *bytes;
        let (v4, v6) = (Ipv4Addr::from(v4), Ipv6Addr::from(v6));
        Addresses {
            v4: Some(v4).filter(|v4| !v4.is_unspecified()),
            v6: Some(v6).filter(|v6| !v6.is_unspecified()),
        }
    }
}

/// A request to be let in. It is the longest of the messages that strangers send and are sent: nobody gets more than they gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// The session that answers shall name.
    pub(super) session: u32,
    /// Random. It identifies a peer, also when the peer comes from another address.
    pub(super) identity: [u8; 16],
    /// The cookie of the challenge; zeros before.
    pub(super) cookie: [u8; 16],
    /// The addresses that it would have; any if it does not say.
    pub(super) wanted: Addresses,
}

impl Hello {
    pub(super) const LEN: usize = HEADER_LEN + 16 + 16 + Addresses::LEN;

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::LEN);
        out.extend(Header::new(kind::HELLO, self.session).bytes());
        out.extend(self.identity);
        out.extend(self.cookie);
        self.wanted.write(&mut out);
        out
    }

    pub(super) fn read(header: Header, body: &[u8]) -> Option<Hello> {
        let (identity, rest) = body.split_first_chunk()?;
        let (cookie, rest) = rest.split_first_chunk()?;
        let wanted = Addresses::read(rest.try_into().ok()?);
        Some(Hello { session: header.session, identity: *identity, cookie: *cookie, wanted })
    }
}

/// The answer to one who is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Welcome {
    /// The session that the other end names from now on.
    pub(super) session: u32,
    /// Its addresses, and the lengths of their networks.
    pub(super) given: Addresses,
    pub(super) lengths: [u8; 2],
    /// The addresses of who welcomes.
    pub(super) own: Addresses,
}

impl Welcome {
    pub(super) const LEN: usize = HEADER_LEN + 4 + Addresses::LEN + 2 + Addresses::LEN;

    pub(super) fn bytes(&self, to: u32) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::LEN);
        out.extend(Header::new(kind::WELCOME, to).bytes());
        out.extend(self.session.to_be_bytes());
        self.given.write(&mut out);
        out.extend(self.lengths);
        self.own.write(&mut out);
        out
    }

    pub(super) fn read(body: &[u8]) -> Option<Welcome> {
        let (session, rest) = body.split_first_chunk()?;
        let (given, rest) = rest.split_first_chunk()?;
        let (lengths, rest) = rest.split_first_chunk()?;
        let own = rest.try_into().ok()?;
        Some(Welcome {
            session: u32::from_be_bytes(*session),
            given: Addresses::read(given),
            lengths: *lengths,
            own: Addresses::read(own),
        })
    }
}

/// The reason for a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error(
        "the other end speaks version {0} of the tunnel's protocol, and this is version {VERSION}"
    )]
    Version(u8),
    #[error("the other end accepts no more peers")]
    Full,
    #[error("the address asked for is taken, or is not in the other end's network")]
    Address,
    #[error("the other end refuses the tunnel, and this version does not know the reason")]
    Unknown,
}

impl Refusal {
    pub(super) fn bytes(self, to: u32) -> Vec<u8> {
        let mut out = Header::new(kind::REFUSAL, to).bytes().to_vec();
        out.push(match self {
            Refusal::Version(_) => 1,
            Refusal::Full => 2,
            Refusal::Address => 3,
            Refusal::Unknown => 0,
        });
        out
    }

    pub(super) fn read(header: Header, body: &[u8]) -> Refusal {
        match body.first() {
            Some(1) => Refusal::Version(header.version),
            Some(2) => Refusal::Full,
            Some(3) => Refusal::Address,
            _ => Refusal::Unknown,
        }
    }
}

/// A challenge: prove that you are where you seem to be.
pub(super) fn challenge(cookie: [u8; 16], to: u32) -> Vec<u8> {
    let mut out = Header::new(kind::CHALLENGE, to).bytes().to_vec();
    out.extend(cookie);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nobody_gets_more_than_they_gave() {
        assert_eq!(Hello::LEN, 60);
        const { assert!(Welcome::LEN <= Hello::LEN) };
        assert!(challenge([0; 16], 1).len() <= Hello::LEN);
        assert!(Refusal::Full.bytes(1).len() <= HEADER_LEN + 4);
    }

    fn addresses() -> impl Strategy<Value = Addresses> {
        (any::<u32>(), any::<u128>()).prop_map(|(v4, v6)| Addresses {
            v4: Some(Ipv4Addr::from(v4)).filter(|v4| !v4.is_unspecified()),
            v6: Some(Ipv6Addr::from(v6)).filter(|v6| !v6.is_unspecified()),
        })
    }

    proptest! {
        #[test]
        fn hellos_are_read_as_they_were_written(
            session: u32, identity: [u8; 16], cookie: [u8; 16], wanted in addresses(),
        ) {
            let hello = Hello { session, identity, cookie, wanted };
            let bytes = hello.bytes();
            prop_assert_eq!(bytes.len(), Hello::LEN);
            let (header, body) = Header::read(&bytes).unwrap();
            prop_assert_eq!(header, Header::new(kind::HELLO, session));
            prop_assert_eq!(Hello::read(header, body), Some(hello));
            prop_assert_eq!(Hello::read(header, &body[1..]), None);
        }

        #[test]
        fn welcomes_are_read_as_they_were_written(
            session: u32, to: u32, lengths: [u8; 2], given in addresses(), own in addresses(),
        ) {
            let welcome = Welcome { session, given, lengths, own };
            let bytes = welcome.bytes(to);
            prop_assert_eq!(bytes.len(), Welcome::LEN);
            prop_assert_eq!(Welcome::read(&bytes[HEADER_LEN..]), Some(welcome));
            prop_assert_eq!(Welcome::read(&bytes[HEADER_LEN + 1..]), None);
        }

        #[test]
        fn any_bytes_are_read_or_not(bytes: Vec<u8>) {
            if let Some((header, body)) = Header::read(&bytes) {
                let _ = (Hello::read(header, body), Welcome::read(body), Refusal::read(header, body));
            }
        }
    }
}

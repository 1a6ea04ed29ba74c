//! Where a client comes from: those of one source share what there is.
//!
//! All users of a machine have the same addresses. The kernel knows whose socket is at the other end of a connection over the loopback interface
//! (`sock_diag`), if it is in the same network namespace. There is no such knowledge of other machines.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::diag::Diag;

/// A source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// A user of this machine.
    User(u32),
    /// Somebody on this machine; the loopback addresses are one source.
    Somebody,
    /// Another machine, or a network of the length that one gets in IPv6.
    Host(IpAddr),
}

/// Tells sources apart.
#[derive(Debug, Default)]
pub(super) struct Sources {
    diag: Option<Diag>,
}

impl Sources {
    /// The source of a connection between these addresses.
    pub(super) fn of(&mut self, peer: SocketAddr, local: SocketAddr) -> Source {
        let address = peer.ip().to_canonical();
        // A machine that talks to itself does so from one of its own addresses.
        if address != local.ip().to_canonical() && !address.is_loopback() {
            return Source::Host(network(address));
        }
        self.user(peer, local).map_or(Source::Somebody, Source::User)
    }

    fn user(&mut self, peer: SocketAddr, local: SocketAddr) -> Option<u32> {
        let diag = match &mut self.diag {
            Some(diag) => diag,
            none => none.insert(Diag::open().ok()?),
        };
        match diag.find(peer, local) {
            // Without an inode, no process has it any more.
            Ok(found) => found.filter(|socket| socket.inode != 0).map(|socket| socket.user),
            Err(_) => {
                // The next connection gets a new netlink socket.
                self.diag = None;
                None
            }
        }
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_user_at_the_other_end_is_known() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(at) else {
                eprintln!("SKIPPED {at}: there is no such address");
                continue;
            };
            let there = listener.local_addr().unwrap();
            let stream = TcpStream::connect(there).unwrap();
            let (_accepted, peer) = listener.accept().unwrap();
            let me = rustix::process::geteuid().as_raw();
            assert_eq!(Sources::default().of(peer, there), Source::User(me), "{at}");
            // Nobody has it any more.
            drop(stream);
            let gone = Sources::default().of(peer, there);
            assert!(gone == Source::Somebody || gone == Source::User(me), "{gone:?}");
        }
    }

    #[test]
    fn other_machines_are_told_apart_by_their_addresses() {
        let mut sources = Sources::default();
        let mut of =
            |peer: &str, local: &str| sources.of(peer.parse().unwrap(), local.parse().unwrap());
        let here = "[2001:db8::1]:80";
        assert_eq!(of("[2001:db8:1::2]:5", here), of("[2001:db8:1::3]:6", here));
        assert_ne!(of("[2001:db8:1::2]:5", here), of("[2001:db8:2::3]:6", here));
        assert_ne!(of("10.0.0.1:1", "10.0.0.9:80"), of("10.0.0.2:1", "10.0.0.9:80"));
        assert_eq!(of("127.0.0.2:1", "127.0.0.1:80"), of("127.0.0.3:1", "127.0.0.1:80"));
    }
}

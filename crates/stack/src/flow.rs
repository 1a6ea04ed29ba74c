//! Demultiplexing: from a packet's addresses and ports to what handles it, in constant time.
//!
//! The table is hashed with SipHash-1-3 under a secret key, because the peer chooses the keys: without the secret nobody can
//! put many flows into one bucket. Iteration order is never used, so runs stay deterministic.

use core::hash::{BuildHasher, Hash, Hasher};
use core::net::{IpAddr, SocketAddr};
use hashbrown::HashMap;
use siphasher::sip::SipHasher13;

/// The four values that name a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowKey {
    /// Our address.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// Our port.
    pub local_port: u16,
    /// The peer's port.
    pub remote_port: u16,
}

impl FlowKey {
    /// The key for our `local` and the peer's `remote`.
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        FlowKey {
            local: local.ip(),
            remote: remote.ip(),
            local_port: local.port(),
            remote_port: remote.port(),
        }
    }

    /// The key of a packet from outside, read from its usual place: TCP right behind an IP header without options. The result
    /// is not verified, and meaningless for other packets.
    pub fn peek(packet: &[u8]) -> Option<Self> {
        let port = |at: usize| {
            packet
                .get(at..)
                .and_then(|rest| rest.first_chunk::<2>())
                .map(|b| u16::from_be_bytes(*b))
        };
        match packet.first()? {
            0x45 => {
                let ip = packet.first_chunk::<20>()?;
                let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *ip;
                Some(FlowKey {
                    local: IpAddr::from([d0, d1, d2, d3]),
                    remote: IpAddr::from([s0, s1, s2, s3]),
                    local_port: port(22)?,
                    remote_port: port(20)?,
                })
            }
            0x60..0x70 => Some(FlowKey {
                local: IpAddr::from(*packet.get(24..)?.first_chunk::<16>()?),
                remote: IpAddr::from(*packet.get(8..)?.first_chunk::<16>()?),
                local_port: port(42)?,
                remote_port: port(40)?,
            }),
            _ => None,
        }
    }

    /// Our side.
    pub fn local(&self) -> SocketAddr {
        SocketAddr::new(self.local, self.local_port)
    }

    /// The peer's side.
    pub fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.remote, self.remote_port)
    }
}

impl Hash for FlowKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // One or a few words instead of a call per field: this is done for every packet.
        let ports = u64::from(self.local_port) << 16 | u64::from(self.remote_port);
        match (self.local, self.remote) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                state.write_u64(u64::from(local.to_bits()) << 32 | u64::from(remote.to_bits()));
                state.write_u64(ports);
            }
            (local, remote) => {
                for address in [local, remote] {
                    let bits = match address {
                        IpAddr::V4(v4) => u128::from(v4.to_bits()),
                        IpAddr::V6(v6) => v6.to_bits(),
                    };
                    state.write_u64((bits >> 64) as u64);
                    state.write_u64(bits as u64);
                }
                state.write_u64(ports);
            }
        }
    }
}

/// SipHash-1-3 under a key.
#[derive(Clone, Debug)]
pub struct KeyedHash {
    key: [u64; 2],
}

impl KeyedHash {
    /// A hasher for tables under `key`.
    pub fn new(key: [u64; 2]) -> Self {
        KeyedHash { key }
    }
}

impl BuildHasher for KeyedHash {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.key[0], self.key[1])
    }
}

/// The handler of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// A connection, by its place.
    Connection(u32),
    /// A half-open connection of a listener, by its place.
    HalfOpen(u32),
    /// A connection in TIME-WAIT, by its place.
    TimeWait(u32),
}

/// The table of flows.
pub type FlowTable = HashMap<FlowKey, Handler, KeyedHash>;

//! Demultiplexing: from a packet's addresses and ports to what handles it, in constant time.
//!
//! The table is hashed with SipHash-1-3 under a secret key, because the peer chooses the keys: without the secret nobody can
//! put many flows into one bucket. Iteration order is never used, so runs stay deterministic.

use alloc::collections::VecDeque;
use core::hash::{BuildHasher, Hash, Hasher};
use core::net::{IpAddr, SocketAddr};
use hashbrown::{HashMap, HashSet};
use siphasher::sip::SipHasher13;

/// The four values that name a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowKey {
    /// Our address.
    pub(crate) local: IpAddr,
    /// The peer's address.
    pub(crate) remote: IpAddr,
    /// Our port.
    pub(crate) local_port: u16,
    /// The peer's port.
    pub(crate) remote_port: u16,
}

impl FlowKey {
    /// The key for our `local` and the peer's `remote`.
    pub(crate) fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        FlowKey {
            local: local.ip(),
            remote: remote.ip(),
            local_port: local.port(),
            remote_port: remote.port(),
        }
    }

    /// The key of a packet from outside, read from its usual place: TCP right behind an IP header without options. The result
    /// is not verified, and meaningless for other packets.
    pub(crate) fn peek(packet: &[u8]) -> Option<Self> {
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
    pub(crate) fn local(&self) -> SocketAddr {
        SocketAddr::new(self.local, self.local_port)
    }

    /// The peer's side.
    pub(crate) fn remote(&self) -> SocketAddr {
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
pub(crate) struct KeyedHash {
    key: [u64; 2],
}

impl KeyedHash {
    /// A hasher for tables under `key`.
    pub(crate) fn new(key: [u64; 2]) -> Self {
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
pub(crate) enum Handler {
    /// A connection, by its place.
    Connection(u32),
    /// A half-open connection of a listener, by its place.
    HalfOpen(u32),
    /// A connection in TIME-WAIT, by its place.
    TimeWait(u32),
    /// A SYN that a listener holds, by its place.
    Held(u32),
}

/// A change at one of the host's bound ports, when the caller allocates ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundPortChange {
    /// The first flow is there.
    Taken(SocketAddr),
    /// The last flow has gone, TIME-WAIT included.
    Freed(SocketAddr),
}

/// The table of flows.
#[derive(Debug)]
pub(crate) struct FlowTable {
    flows: HashMap<FlowKey, Handler, KeyedHash>,
    /// The flows at each place, if a caller allocates ports.
    places: Option<Places>,
}

/// How many flows there are at each of our places.
#[derive(Debug)]
struct Places {
    flows: HashMap<SocketAddr, u32, KeyedHash>,
    /// Those of which was told that they are taken.
    told: HashSet<SocketAddr, KeyedHash>,
    /// Those that had their first flow, or lost their last one. Many of these have another by now.
    changed: VecDeque<SocketAddr>,
}

impl Places {
    fn poll_change(&mut self) -> Option<BoundPortChange> {
        loop {
            let place = self.changed.pop_front()?;
            if self.flows.contains_key(&place) {
                if self.told.insert(place) {
                    return Some(BoundPortChange::Taken(place));
                }
            } else if self.told.remove(&place) {
                return Some(BoundPortChange::Freed(place));
            }
        }
    }
}

impl FlowTable {
    /// An empty table; with `watched` it tells when a place is taken and when it is free.
    pub(crate) fn new(hash: KeyedHash, watched: bool) -> Self {
        let places = || Places {
            flows: HashMap::with_hasher(hash.clone()),
            told: HashSet::with_hasher(hash.clone()),
            changed: VecDeque::new(),
        };
        FlowTable { places: watched.then(places), flows: HashMap::with_hasher(hash) }
    }

    pub(crate) fn get(&self, key: &FlowKey) -> Option<&Handler> {
        self.flows.get(key)
    }

    /// Whether there are flows at a place of ours; only where places are watched.
    pub(crate) fn has_place(&self, place: SocketAddr) -> bool {
        self.places.as_ref().is_some_and(|places| places.flows.contains_key(&place))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &FlowKey> {
        self.flows.keys()
    }

    pub(crate) fn insert(&mut self, key: FlowKey, handler: Handler) {
        let known = self.flows.insert(key, handler).is_some();
        if !known && let Some(places) = &mut self.places {
            let flows = places.flows.entry(key.local()).or_default();
            *flows += 1;
            if *flows == 1 {
                places.changed.push_back(key.local());
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &FlowKey) {
        let known = self.flows.remove(key).is_some();
        if known
            && let Some(places) = &mut self.places
            && let Some(flows) = places.flows.get_mut(&key.local())
        {
            *flows -= 1;
            if *flows == 0 {
                places.flows.remove(&key.local());
                places.changed.push_back(key.local());
            }
        }
    }

    /// The next change of a place.
    pub(crate) fn poll_change(&mut self) -> Option<BoundPortChange> {
        self.places.as_mut()?.poll_change()
    }
}

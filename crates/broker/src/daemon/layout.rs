//! Keys and values of the maps that we share with the programs: the structures of `bpf/shared.h`, byte for byte.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use transom_device::interface::IpPrefix;

/// The number of this layout. It is in the names of pinned maps, so that no broker takes up maps that it would misunderstand. A change of the layout
/// raises it.
pub(super) const LAYOUT: u32 = 2;
/// `struct end`.
pub(super) const ENDPOINT_LEN: usize = 20;
/// `struct lease`.
pub(super) const LEASE_LEN: usize = 88;
/// `struct flow`.
pub(super) const FLOW_LEN: usize = 2 * ENDPOINT_LEN;
/// `struct track`.
pub(super) const TRACK_LEN: usize = 16;
/// So many connections of a device are known: `struct flows_of_one`.
pub(super) const MAX_FLOWS: u32 = 16_384;
/// So many connections are in quarantine at once.
pub(super) const MAX_QUARANTINED: usize = 262_144;
/// `HOLD_TIME` of the programs: the kernel's TIME-WAIT (`TCP_TIMEWAIT_LEN`).
pub(super) const HOLD_TIME: Duration = Duration::from_secs(60);
/// Why `guard` drops, in the order of `enum reason`.
pub(super) const DROP_REASONS: [&str; 16] = [
    "no-lease",
    "rate",
    "malformed",
    "not-tcp",
    "fragment",
    "ip-options",
    "foreign-port",
    "destination",
    "offload",
    "small-segment",
    "no-route",
    "not-an-uplink",
    "too-big",
    "peer",
    "kernel",
    "quarantine",
];
/// The counter of ports that the kernel has taken.
pub(super) const PORT_TAKEN_COUNTER: &str = "kernel-listens";
/// The counters of `demux`, in the order of `struct demux_counts`.
pub(super) const DEMUX_COUNTERS: [&str; 10] = [
    "packets",
    "icmp-errors",
    "fragments",
    "device-gone",
    PORT_TAKEN_COUNTER,
    "spoofed",
    "peer",
    "failed",
    "kernel-connection",
    "quarantine",
];

/// A key or a value as the programs have it.
pub(super) trait Entry: Sized {
    fn bytes(&self) -> Vec<u8>;
    fn read(bytes: &[u8]) -> Option<Self>;
}

impl Entry for u32 {
    fn bytes(&self) -> Vec<u8> {
        self.to_ne_bytes().to_vec()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        read_u32(bytes, 0)
    }
}

/// `struct end`.
impl Entry for SocketAddr {
    fn bytes(&self) -> Vec<u8> {
        endpoint_key(self.ip(), self.port()).to_vec()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let address = Ipv6Addr::from(*bytes.first_chunk::<16>()?).to_canonical();
        let port = u16::from_be_bytes(*bytes.get(16..)?.first_chunk()?);
        Some(SocketAddr::new(address, port))
    }
}

fn mapped_octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// The key of an address and port; port 0 in the map of addresses.
pub(super) fn endpoint_key(address: IpAddr, port: u16) -> [u8; ENDPOINT_LEN] {
    let mut out = [0; ENDPOINT_LEN];
    out[..16].copy_from_slice(&mapped_octets(address));
    out[16..18].copy_from_slice(&port.to_be_bytes());
    out
}

/// `struct port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortEntry {
    pub(super) device: u32,
    pub(super) peers: u32,
    pub(super) cookie: u64,
}

impl Entry for PortEntry {
    fn bytes(&self) -> Vec<u8> {
        let words = [self.device.to_ne_bytes(), self.peers.to_ne_bytes()];
        [words.as_flattened(), &self.cookie.to_ne_bytes()].concat()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(PortEntry {
            device: read_u32(bytes, 0)?,
            peers: read_u32(bytes, 4)?,
            cookie: read_u64(bytes, 8)?,
        })
    }
}

/// `struct flow`: a connection of a device, the device's end first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Flow {
    pub(super) own: SocketAddr,
    pub(super) peer: SocketAddr,
}

impl Entry for Flow {
    fn bytes(&self) -> Vec<u8> {
        [self.own.bytes(), self.peer.bytes()].concat()
    }

    fn read(key: &[u8]) -> Option<Self> {
        let peer = SocketAddr::read(key.get(ENDPOINT_LEN..)?)?;
        Some(Flow { own: SocketAddr::read(key)?, peer })
    }
}

/// `struct track`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Track {
    /// When the last FIN or RST was sent.
    ended: Duration,
    /// Whether the process has sent a RST, or both ends a FIN.
    over: bool,
}

impl Track {
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (own, peer) = (read_u32(bytes, 8)?, read_u32(bytes, 12)?);
        let over = own == OVER_BY_RESET || (own != 0 && peer != 0);
        Some(Track { ended: Duration::from_nanos(read_u64(bytes, 0)?), over })
    }

    /// Whether its TIME-WAIT has passed too.
    pub(super) fn is_past(&self, now: Duration) -> bool {
        self.over && now.saturating_sub(self.ended) >= HOLD_TIME
    }
}

const OVER_BY_RESET: u32 = 2;

/// `struct quarantined`. Times are those of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quarantined {
    pub(super) until: Duration,
    /// The acknowledgement number of probes. Only the peer's host sees it.
    pub(super) nonce: u32,
    /// Of the ended holder.
    pub(super) user: u32,
}

impl Entry for Quarantined {
    fn bytes(&self) -> Vec<u8> {
        let words = [self.nonce.to_be_bytes(), self.user.to_ne_bytes()];
        [&nanos(self.until).to_ne_bytes(), words.as_flattened()].concat()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Quarantined {
            until: Duration::from_nanos(read_u64(bytes, 0)?),
            nonce: u32::from_be_bytes(*bytes.get(8..)?.first_chunk()?),
            user: read_u32(bytes, 12)?,
        })
    }
}

/// `struct hold`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) until: Duration,
    /// Of the ended holder: this user may have the port all the same.
    pub(super) user: u32,
}

impl Entry for Hold {
    fn bytes(&self) -> Vec<u8> {
        let words = [self.user.to_ne_bytes(), [0; 4]];
        [&nanos(self.until).to_ne_bytes(), words.as_flattened()].concat()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Hold { until: Duration::from_nanos(read_u64(bytes, 0)?), user: read_u32(bytes, 8)? })
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The monotonic clock: that of the programs (`bpf_ktime_get_ns`).
pub(super) fn monotonic() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// `struct lease`, as far as it is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeaseEntry {
    pub(super) interval: u64,
    pub(super) burst: u64,
    pub(super) started: u64,
    pub(super) process: u32,
    pub(super) user: u32,
    pub(super) group: u32,
    pub(super) queues: u32,
    pub(super) token: [u8; 16],
    pub(super) name: String,
}

impl Entry for LeaseEntry {
    fn bytes(&self) -> Vec<u8> {
        let longs = [self.interval, self.burst, self.started].map(u64::to_ne_bytes);
        let words = [self.process, self.user, self.group, self.queues].map(u32::to_ne_bytes);
        let name = self.name.as_bytes();
        let name = &name[..name.len().min(32)];
        let mut out = [longs.as_flattened(), words.as_flattened(), &self.token, name].concat();
        out.resize(LEASE_LEN, 0);
        out
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let name = bytes.get(56..LEASE_LEN)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(LeaseEntry {
            interval: read_u64(bytes, 0)?,
            burst: read_u64(bytes, 8)?,
            started: read_u64(bytes, 16)?,
            process: read_u32(bytes, 24)?,
            user: read_u32(bytes, 28)?,
            group: read_u32(bytes, 32)?,
            queues: read_u32(bytes, 36)?,
            token: *bytes.get(40..)?.first_chunk()?,
            name: String::from_utf8_lossy(name).into_owned(),
        })
    }
}

impl LeaseEntry {
    /// `struct rate`, with nothing sent yet; nothing without a limit.
    pub(super) fn rate_bytes(&self) -> Option<Vec<u8>> {
        (self.interval > 0).then(|| [0, self.interval, self.burst].map(u64::to_ne_bytes).concat())
    }

    /// How many packets a second it allows.
    pub(super) fn rate(&self) -> Option<u32> {
        let rate = 1_000_000_000u64.checked_div(self.interval)?;
        Some(u32::try_from(rate).unwrap_or(u32::MAX))
    }
}

/// `struct peer_key`.
pub(super) fn peer_key(list: u32, network: &IpPrefix) -> Vec<u8> {
    let mapped = if network.address().is_ipv4() { 96 } else { 0 };
    let length = 32 + mapped + u32::from(network.prefix_len());
    let words = [length.to_ne_bytes(), list.to_ne_bytes()];
    [words.as_flattened(), &mapped_octets(network.address())].concat()
}

/// The number of the list in a key of the map of peers.
pub(super) fn peer_list_number(key: &[u8]) -> Option<u32> {
    read_u32(key, 4)
}

/// Adds up numbers of 64 bits, one row for each processor.
pub(super) fn sum_rows<const N: usize>(rows: &[Vec<u8>]) -> [u64; N] {
    let mut sums = [0u64; N];
    for row in rows {
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum = sum.wrapping_add(read_u64(row, at * 8).unwrap_or(0));
        }
    }
    sums
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_encoding_and_decoding() {
        let lease = LeaseEntry {
            interval: 10,
            burst: 20,
            started: 30,
            process: 40,
            user: 50,
            group: 60,
            queues: 2,
            token: [7; 16],
            name: "web".into(),
        };
        assert_eq!(lease.bytes().len(), LEASE_LEN);
        assert_eq!(LeaseEntry::read(&lease.bytes()), Some(lease));
        assert_eq!(LeaseEntry::read(&[0; LEASE_LEN - 1]), None);
        for address in ["192.0.2.1:80", "[2001:db8::1]:443"] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(SocketAddr::read(&address.bytes()), Some(address));
        }
        let port = PortEntry { device: 1, peers: 2, cookie: 3 };
        assert_eq!(PortEntry::read(&port.bytes()), Some(port));
        let own = "192.0.2.1:80".parse().unwrap();
        let flow = Flow { own, peer: "198.51.100.7:4000".parse().unwrap() };
        assert_eq!(flow.bytes().len(), FLOW_LEN);
        assert_eq!(Flow::read(&flow.bytes()), Some(flow));
        let until = Duration::from_nanos(7);
        let quarantined = Quarantined { until, nonce: 8, user: 9 };
        assert_eq!(Quarantined::read(&quarantined.bytes()), Some(quarantined));
        let hold = Hold { until, user: 9 };
        assert_eq!(Hold::read(&hold.bytes()), Some(hold));
    }

    #[test]
    fn a_connection_is_past_a_time_wait_after_its_end() {
        let track = |own: u32, peer: u32| {
            let ended = 5_000_000_000u64;
            let bytes = [&ended.to_ne_bytes()[..], &own.to_ne_bytes(), &peer.to_ne_bytes()];
            Track::read(&bytes.concat()).unwrap()
        };
        let (soon, late) = (Duration::from_secs(64), Duration::from_secs(65));
        for (own, peer, over) in
            [(0, 0, false), (1, 0, false), (0, 1, false), (1, 1, true), (2, 0, true)]
        {
            assert!(!track(own, peer).is_past(soon), "{own} {peer}");
            assert_eq!(track(own, peer).is_past(late), over, "{own} {peer}");
        }
    }
}

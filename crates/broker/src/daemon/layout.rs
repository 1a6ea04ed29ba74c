//! Keys and values of the maps that we share with the programs: the structures of `bpf/shared.h`, byte for byte.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use transom_device::interface::IpPrefix;

/// The number of this layout. It is in the names of pinned maps, so that no broker takes up maps that it would misunderstand. A change of the layout
/// raises it.
pub(super) const LAYOUT: u32 = 1;
/// `struct end`.
pub(super) const ENDPOINT_LEN: usize = 20;
/// `struct lease`.
pub(super) const LEASE_LEN: usize = 88;
/// `struct flow`.
pub(super) const FLOW_LEN: usize = 2 * ENDPOINT_LEN;
/// So many connections of a device are remembered: `struct flows_of_one`.
pub(super) const MAX_FLOWS: u32 = 2048;
/// Why `guard` drops, in the order of `enum reason`.
pub(super) const DROP_REASONS: [&str; 15] = [
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
];
/// The counter of ports that the kernel has taken.
pub(super) const PORT_TAKEN_COUNTER: &str = "kernel-listens";
/// The counters of `demux`, in the order of `struct demux_counts`.
pub(super) const DEMUX_COUNTERS: [&str; 9] = [
    "packets",
    "icmp-errors",
    "fragments",
    "device-gone",
    PORT_TAKEN_COUNTER,
    "spoofed",
    "peer",
    "failed",
    "kernel-connection",
];

fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
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

/// And back.
pub(super) fn read_endpoint(bytes: &[u8]) -> Option<SocketAddr> {
    let address = Ipv6Addr::from(*bytes.first_chunk::<16>()?).to_canonical();
    let port = u16::from_be_bytes(*bytes.get(16..)?.first_chunk()?);
    Some(SocketAddr::new(address, port))
}

/// `struct port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortEntry {
    pub(super) device: u32,
    pub(super) peers: u32,
    pub(super) cookie: u64,
}

impl PortEntry {
    pub(super) fn bytes(self) -> Vec<u8> {
        let mut out = Vec::new();
        append(&mut out, &self.device.to_ne_bytes());
        append(&mut out, &self.peers.to_ne_bytes());
        append(&mut out, &self.cookie.to_ne_bytes());
        out
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        Some(PortEntry {
            device: read_u32(bytes, 0)?,
            peers: read_u32(bytes, 4)?,
            cookie: read_u64(bytes, 8)?,
        })
    }
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

impl LeaseEntry {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(LEASE_LEN);
        for long in [self.interval, self.burst, self.started] {
            append(&mut out, &long.to_ne_bytes());
        }
        for word in [self.process, self.user, self.group, self.queues] {
            append(&mut out, &word.to_ne_bytes());
        }
        append(&mut out, &self.token);
        let name = self.name.as_bytes();
        append(&mut out, &name[..name.len().min(32)]);
        out.resize(LEASE_LEN, 0);
        out
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
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

    /// `struct rate`, with nothing sent yet; nothing without a limit.
    pub(super) fn rate_bytes(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        for long in [0, self.interval, self.burst] {
            append(&mut out, &long.to_ne_bytes());
        }
        (self.interval > 0).then_some(out)
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
    let mut out = Vec::new();
    append(&mut out, &length.to_ne_bytes());
    append(&mut out, &list.to_ne_bytes());
    append(&mut out, &mapped_octets(network.address()));
    out
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
            assert_eq!(read_endpoint(&endpoint_key(address.ip(), address.port())), Some(address));
        }
        let port = PortEntry { device: 1, peers: 2, cookie: 3 };
        assert_eq!(PortEntry::read(&port.bytes()), Some(port));
    }
}

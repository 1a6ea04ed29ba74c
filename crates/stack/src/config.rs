//! The configuration of a host, and its counters.

use crate::fast_open::FastOpenConfig;
use crate::fragments::FragmentLimits;
use crate::memory::MemoryLimits;
use crate::stack::Shard;
use crate::totals::HostTotals;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use transom_tcp::{Profile, ProfileError};

/// The most connections of one shard: so many have names. A power of two.
pub(crate) const MOST_CONNECTIONS: usize = 1 << 26;

/// The work that the device does for the stack, as far as the stack needs to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offload {
    /// The device completes partial checksums.
    pub tx_checksum: bool,
    /// The longest super-segment it cuts, in bytes including headers; `None`: none.
    pub segmentation: Option<usize>,
}

transom_tcp::setters! {
    const Offload:
    with_tx_checksum = tx_checksum: bool,
    with_segmentation = segmentation: Option<usize>,
}

/// The source of free ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortSource {
    /// The host: its addresses are nobody else's, so a port is free when no socket of the host has it.
    #[default]
    Own,
    /// The caller, who has reserved the port where the addresses are shared, for instance with the kernel. Each call names its port: port 0 is refused.
    /// [`Stack::poll_port_change`](crate::stack::Stack::poll_port_change) says when a reservation is not needed any more.
    Caller,
}

/// The settings of a host's interface that may change while the host runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// [`StackConfig::mtu`].
    pub mtu: u32,
    /// [`StackConfig::addresses`].
    pub addresses: Vec<(IpAddr, u8)>,
    /// [`StackConfig::address_mtus`].
    pub address_mtus: Vec<(IpAddr, u32)>,
}

/// A host's configuration.
/// [RFC1122-3.2.2.9-1] [RFC1122-3.2.2.9-2]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StackConfig {
    /// Its addresses with their prefix lengths. The prefix only tells the directed broadcast address.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Its addresses are others' too: the kernel of the same machine has them, and other processes. The ports are what is the host's own, so the caller
    /// says which they are ([`PortSource::Caller`]). Such a host may be without addresses for a while.
    pub shared: bool,
    /// Every unicast address is the host's, loopback addresses too: it is the end of all connections that are routed to its device, as a transparent
    /// proxy is. Packets from any source are accepted, and those to any address leave by the device. Connections may be opened from any address that the
    /// caller names; where it names none, one of [`addresses`](StackConfig::addresses) is chosen, of which there may be none. The host answers no echo
    /// requests, and sends no ICMP errors about other protocols than TCP.
    pub every_address: bool,
    /// The host is one of a simulation, and its packets reach no device. Only such a host may take the safe ranges of extensions away.
    pub simulated: bool,
    /// The longest IP packet its interface takes.
    pub mtu: u32,
    /// Addresses whose packets must be shorter than that, and how long they may be.
    pub address_mtus: Vec<(IpAddr, u32)>,
    /// The offload of the device.
    pub offload: Offload,
    /// The profile of connections for which none is named.
    pub profile: Arc<Profile>,
    /// From this every sequence number, port and hash key is derived. Random on a real network.
    pub secret: [u8; 16],
    /// Which of how many stacks of one host it is. They have the same addresses and the same secret, and listen at the same places.
    pub shard: Shard,
    /// The counts that all shards of a host share, so that limits hold for the host. `None`: this stack is alone.
    pub totals: Option<Arc<HostTotals>>,
    /// The source of free ports.
    pub ports: PortSource,
    /// Ports for active opens, where the host chooses them itself.
    pub ephemeral_ports: core::ops::RangeInclusive<u16>,
    /// Half-open connections kept in all; beyond that (or beyond a listener's share) SYNs are answered by cookies.
    pub max_half_open: usize,
    /// The most connections in TIME-WAIT; beyond that the oldest is dropped.
    pub max_time_wait: usize,
    /// Connections in all; beyond that opens are refused and SYNs dropped.
    pub max_connections: usize,
    /// How much memory the data of all connections may take.
    pub memory: MemoryLimits,
    /// Keys and memory for TCP Fast Open, where listeners and connections ask for it.
    pub fast_open: FastOpenConfig,
    /// Bounds on reassembly.
    pub fragments: FragmentLimits,
    /// ICMP errors sent per second at most.
    pub icmp_errors_per_second: u32,
    /// Answer echo requests.
    pub echo: bool,
    /// How many records of the [event log](crate::log) are kept, 64 bytes each; with none it is off.
    pub log_records: usize,
    /// Adds a comment on the sender's state to each segment ([`Transmit::comment`](crate::stack::Transmit::comment)), for captures: text is
    /// formatted for each.
    pub comments: bool,
}

transom_tcp::setters! {
    StackConfig:
    with_addresses = addresses: Vec<(IpAddr, u8)>,
    with_shared = shared: bool,
    with_every_address = every_address: bool,
    with_simulated = simulated: bool,
    with_mtu = mtu: u32,
    with_address_mtus = address_mtus: Vec<(IpAddr, u32)>,
    with_offload = offload: Offload,
    with_profile = profile: Arc<Profile>,
    with_secret = secret: [u8; 16],
    with_shard = shard: Shard,
    with_totals = totals: Option<Arc<HostTotals>>,
    with_ports = ports: PortSource,
    with_ephemeral_ports = ephemeral_ports: core::ops::RangeInclusive<u16>,
    with_max_half_open = max_half_open: usize,
    with_max_time_wait = max_time_wait: usize,
    with_max_connections = max_connections: usize,
    with_memory = memory: MemoryLimits,
    with_fast_open = fast_open: FastOpenConfig,
    with_fragments = fragments: FragmentLimits,
    with_icmp_errors_per_second = icmp_errors_per_second: u32,
    with_echo = echo: bool,
    with_log_records = log_records: usize,
    with_comments = comments: bool,
}

impl StackConfig {
    /// A host with `addresses`, an MTU of 1500 bytes, no offloads and default limits. The secret is all zeros: set one
    /// for use outside a simulator.
    pub fn new(addresses: Vec<(IpAddr, u8)>) -> Self {
        StackConfig {
            addresses,
            shared: false,
            every_address: false,
            simulated: false,
            mtu: 1500,
            address_mtus: Vec::new(),
            offload: Offload::default(),
            profile: Arc::new(Profile::default()),
            secret: [0; 16],
            shard: Shard::ALONE,
            totals: None,
            ports: PortSource::Own,
            ephemeral_ports: 32_768..=65_535,
            max_half_open: 1024,
            max_time_wait: 65_536,
            max_connections: 1_048_576,
            memory: MemoryLimits::default(),
            fast_open: FastOpenConfig::default(),
            fragments: FragmentLimits::default(),
            icmp_errors_per_second: 100,
            echo: true,
            log_records: 4096,
            comments: false,
        }
    }

    /// Checks that the configuration is consistent.
    /// [RFC1122-3.2.2.9-8] [RFC1122-3.2.1.3-5] [RFC8200-5-1]
    pub(crate) fn validate(&self) -> Result<(), StackConfigError> {
        if self.every_address && self.shared {
            return Err(StackConfigError::EveryAddressShared);
        }
        if self.addresses.is_empty() && !self.shared && !self.every_address {
            return Err(StackConfigError::NoAddress);
        }
        if self.shared && self.ports == PortSource::Own {
            return Err(StackConfigError::SharedPorts);
        }
        for &(address, prefix) in &self.addresses {
            let bits = if address.is_ipv4() { 32 } else { 128 };
            if prefix > bits {
                return Err(StackConfigError::Prefix(address, prefix));
            }
            if !is_unicast(address) || is_broadcast_of(address, prefix, address) {
                return Err(StackConfigError::NotUnicast(address));
            }
        }
        let has_v6 = self.every_address || self.addresses.iter().any(|(a, _)| a.is_ipv6());
        let least = if has_v6 { 1280 } else { 68 };
        if self.mtu < least || self.mtu > 65_535 {
            return Err(StackConfigError::Mtu(self.mtu, least));
        }
        for &(address, mtu) in &self.address_mtus {
            let least = if address.is_ipv6() { 1280 } else { 68 };
            if mtu < least {
                return Err(StackConfigError::Mtu(mtu, least));
            }
        }
        if self.ephemeral_ports.is_empty() || *self.ephemeral_ports.start() == 0 {
            return Err(StackConfigError::Ports);
        }
        let counted = self
            .totals
            .as_ref()
            .is_none_or(|totals| u32::try_from(totals.shards()) == Ok(self.shard.count));
        if !self.shard.is_possible() || !counted {
            return Err(StackConfigError::Shard(self.shard));
        }
        if self.max_connections > MOST_CONNECTIONS {
            return Err(StackConfigError::Connections(self.max_connections));
        }
        if !self.memory.are_ordered() {
            return Err(StackConfigError::Memory(self.memory));
        }
        self.profile.validate()?;
        Ok(())
    }
}

/// Why a configuration was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StackConfigError {
    /// A host needs an address.
    #[error("a host needs at least one address")]
    NoAddress,
    /// Every address cannot be the host's and others' too.
    #[error("a host that has every address cannot share its addresses")]
    EveryAddressShared,
    /// On a shared address the caller allocates ports.
    #[error("a host on shared addresses cannot choose its ports itself")]
    SharedPorts,
    /// A prefix longer than the address.
    #[error("{0} cannot have a prefix of {1} bits")]
    Prefix(IpAddr, u8),
    /// A multicast, broadcast or unspecified address.
    #[error("{0} is not a host's address")]
    NotUnicast(IpAddr),
    /// An impossible MTU.
    #[error("an MTU of {0} bytes is outside {1} to 65535")]
    Mtu(u32, u32),
    /// No ports to choose from.
    #[error("the range of ephemeral ports is empty or contains port 0")]
    Ports,
    /// An index beyond the count, or too many.
    #[error(
        "shard {0:?} of a host is not possible: a host has 1 to 64 shards, numbered from 0, and its totals are for as many"
    )]
    Shard(Shard),
    /// More connections than there are names.
    #[error("{0} connections are too many: a shard names up to {MOST_CONNECTIONS}")]
    Connections(usize),
    /// Thresholds that do not grow.
    #[error("limits on memory must grow from low to pressure to limit: {0:?} do not")]
    Memory(MemoryLimits),
    /// The profile does not work.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// Whether an address can name one host (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.5.2: an IPv4-mapped address is
/// never on the wire).
pub fn is_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [first, ..] = v4.octets();
            !(v4.is_multicast() || v4 == Ipv4Addr::BROADCAST || first == 0 || first >= 240)
        }
        IpAddr::V6(v6) => {
            !(v6.is_multicast() || v6.is_unspecified() || v6.to_ipv4_mapped().is_some())
        }
    }
}

/// Whether `address` is the broadcast address of the network that `ours` is in. A network of two hosts has none (RFC 3021).
/// [RFC1122-3.2.1.3-1]
pub(crate) fn is_broadcast_of(ours: IpAddr, prefix: u8, address: IpAddr) -> bool {
    match (ours, address) {
        (IpAddr::V4(ours), IpAddr::V4(address)) if prefix < 31 => {
            let host = u32::MAX.checked_shr(u32::from(prefix)).unwrap_or(0);
            address.to_bits() == ours.to_bits() | host
        }
        _ => false,
    }
}

/// The counters of a host.
/// [RFC1122-3.1-9]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackCounters {
    /// Packets received (a super-segment counts once).
    pub packets_received: u64,
    /// Packets sent (a super-segment counts once).
    pub packets_sent: u64,
    /// Packets that were no valid IP.
    pub malformed: u64,
    /// Packets for another host, or from an impossible source.
    pub misaddressed: u64,
    /// IPv6 packets dropped because of an extension header: an option or a header that may not be skipped and is not understood.
    pub refused_extensions: u64,
    /// Packets whose checksum was wrong.
    pub bad_checksum: u64,
    /// TCP segments with no valid header.
    pub bad_tcp: u64,
    /// SYNs dropped because a queue was full.
    pub syns_dropped: u64,
    /// SYN cookies sent.
    pub cookies_sent: u64,
    /// Connections that came from a SYN cookie.
    pub cookies_accepted: u64,
    /// Connections that began with data in our SYN, which the SYN-ACK acknowledged (RFC 7413).
    pub fast_opens_active: u64,
    /// Connections that began with a peer's SYN and its cookie.
    pub fast_opens_passive: u64,
    /// Cookie requests from peers.
    pub fast_open_requests: u64,
    /// SYNs with a cookie that was not ours, not for that peer, or too old.
    pub fast_open_bad_cookies: u64,
    /// SYNs whose option was ignored: too many such connections waited for their handshake, or memory was short.
    pub fast_open_overflows: u64,
    /// Resets sent because there was no connection.
    pub resets_sent: u64,
    /// Connections opened actively.
    pub active_opens: u64,
    /// Connections accepted.
    pub passive_opens: u64,
    /// Answers not sent because too many were waiting.
    pub replies_dropped: u64,
    /// ICMP errors sent.
    pub icmp_errors_sent: u64,
    /// ICMP errors received that named a connection.
    pub icmp_errors_received: u64,
    /// Packets given up in reassembly.
    pub fragments_dropped: u64,
    /// Segments on a shared address without a connection or listener here, which the kernel answers.
    pub left_to_others: u64,
    /// Packets not sent, because their address was not the host's any more.
    pub unsent_without_address: u64,
    /// Packets handed to another [stack of the host](Shard), because their connection is not here.
    pub passed_on: u64,
    /// Packets for another stack of the host, dropped because too many were waiting.
    pub forwards_dropped: u64,
}

impl core::iter::Sum for StackCounters {
    /// The sum of the counters of several stacks.
    fn sum<I: Iterator<Item = Self>>(counters: I) -> Self {
        counters.fold(StackCounters::default(), |a, b| StackCounters {
            packets_received: a.packets_received + b.packets_received,
            packets_sent: a.packets_sent + b.packets_sent,
            malformed: a.malformed + b.malformed,
            misaddressed: a.misaddressed + b.misaddressed,
            refused_extensions: a.refused_extensions + b.refused_extensions,
            bad_checksum: a.bad_checksum + b.bad_checksum,
            bad_tcp: a.bad_tcp + b.bad_tcp,
            syns_dropped: a.syns_dropped + b.syns_dropped,
            cookies_sent: a.cookies_sent + b.cookies_sent,
            cookies_accepted: a.cookies_accepted + b.cookies_accepted,
            fast_opens_active: a.fast_opens_active + b.fast_opens_active,
            fast_opens_passive: a.fast_opens_passive + b.fast_opens_passive,
            fast_open_requests: a.fast_open_requests + b.fast_open_requests,
            fast_open_bad_cookies: a.fast_open_bad_cookies + b.fast_open_bad_cookies,
            fast_open_overflows: a.fast_open_overflows + b.fast_open_overflows,
            resets_sent: a.resets_sent + b.resets_sent,
            active_opens: a.active_opens + b.active_opens,
            passive_opens: a.passive_opens + b.passive_opens,
            replies_dropped: a.replies_dropped + b.replies_dropped,
            icmp_errors_sent: a.icmp_errors_sent + b.icmp_errors_sent,
            icmp_errors_received: a.icmp_errors_received + b.icmp_errors_received,
            fragments_dropped: a.fragments_dropped + b.fragments_dropped,
            left_to_others: a.left_to_others + b.left_to_others,
            unsent_without_address: a.unsent_without_address + b.unsent_without_address,
            passed_on: a.passed_on + b.passed_on,
            forwards_dropped: a.forwards_dropped + b.forwards_dropped,
        })
    }
}

//! A host with the kernel's TCP: a network namespace of its own, and a TUN interface as its way into the network.
//!
//! Theory of operation. To its kernel the host has one interface, with the address that the network knows it by and a route to everything.
//! The route names the congestion control, which holds for our sockets and for those of programs, also where the system would not let
//! ordinary users choose it and whatever its own default is. What connections have learned is forgotten between them
//! (`tcp_no_metrics_save`), and windows may become as large as any path needs: a limit that the scenario does not have
//! should not be seen. The interface takes super-segments and open checksums, both of which the emulator finishes.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use transom_device::interface::IpPrefix;
use transom_device::namespace::{Namespace, NamespaceError};
use transom_device::tun::{Tun, TunError};
use transom_sim::network::NodeId;

use super::EmulateError;
use crate::scenario::{Host, KernelCongestion, Name};

/// The interface's name.
const INTERFACE: &str = "transom0";
/// What the interface keeps for the emulator, in packets or super-segments. Full buffers of the size below are this many packets of 1,448
/// bytes; a super-segment is one.
const QUEUE: u32 = 50_000;
/// The least, the usual and the greatest buffer of a connection, in bytes: 64 MiB are 500 ms of 1 Gbit/s. What is not in use takes no memory.
const BUFFERS: &str = "4096 131072 67108864";
/// Idle receive buffers kept, of 64 KiB each.
const KEEP_BUFFERS: usize = 64;

/// A host outside of the network.
pub(super) struct KernelHost {
    pub(super) name: Name,
    /// Its gateway in the network.
    pub(super) node: NodeId,
    pub(super) namespace: Arc<Namespace>,
}

impl KernelHost {
    /// Makes the host, and the interface through which its packets come and go.
    pub(super) fn open(
        name: &Name,
        node: NodeId,
        host: &Host,
        address: Ipv4Addr,
    ) -> Result<(Self, Tun), EmulateError> {
        let namespace = Namespace::new().map_err(EmulateError::Namespace)?;
        let set = |parameter: &str, value: &str| {
            namespace.set_sysctl(parameter, value).map_err(|source| EmulateError::Parameter {
                parameter: parameter.into(),
                host: name.clone(),
                source,
            })
        };
        match set("net.ipv6.conf.all.disable_ipv6", "1") {
            // A kernel without IPv6.
            Err(EmulateError::Parameter { source, .. })
                if source.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
        set("net.ipv4.tcp_no_metrics_save", "1")?;
        set("net.ipv4.tcp_rmem", BUFFERS)?;
        set("net.ipv4.tcp_wmem", BUFFERS)?;
        set("net.ipv4.ip_unprivileged_port_start", "0")?;
        match host.ecn {
            Some(true) => set("net.ipv4.tcp_ecn", "1")?,
            Some(false) => set("net.ipv4.tcp_ecn", "0")?,
            None => {}
        }
        let own = |address: Ipv4Addr, length| {
            // Lengths are within what an IPv4 address has.
            IpPrefix::new(address.into(), length).unwrap_or_else(|| unreachable!("{length}"))
        };
        let interface = |source: TunError| EmulateError::Interface { host: name.clone(), source };
        let tun = Tun::builder()
            .name(INTERFACE)
            .mtu(u16::try_from(host.mtu).unwrap_or(u16::MAX))
            .queue_len(QUEUE)
            .keep_buffers(KEEP_BUFFERS)
            .address(own(address, 32));
        let tun =
            namespace.run(|| tun.open()).map_err(EmulateError::Namespace)?.map_err(interface)?;
        let congestion = host.congestion.unwrap_or(KernelCongestion::Cubic);
        let everything = own(Ipv4Addr::UNSPECIFIED, 0);
        namespace
            .interfaces()
            .add_route_with_congestion(INTERFACE, everything, congestion.name())
            .map_err(|source| EmulateError::Congestion {
                host: name.clone(),
                congestion: congestion.name(),
                available: available(),
                source,
            })?;
        let host = KernelHost { name: name.clone(), node, namespace: Arc::new(namespace) };
        Ok((host, tun))
    }

    /// Packets that the kernel had for the emulator and did not keep for it.
    pub(super) fn lost(&self) -> u64 {
        let counters = self.namespace.interfaces().counters(INTERFACE);
        counters.map_or(0, |counters| counters.transmit_dropped)
    }
}

/// Which congestion controls the kernel says it has.
fn available() -> String {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let list = std::fs::read_to_string(file).unwrap_or_default();
    list.split_whitespace().collect::<Vec<_>>().join(", ")
}

/// Whether this process may make such hosts, and if not, what to do.
///
/// # Errors
/// The kernel's refusal.
pub(super) fn permitted() -> Result<(), NamespaceError> {
    Namespace::new().map(drop)
}

//! A host with the kernel's TCP: a network namespace of its own, and a TUN interface into the network.
//!
//! Theory of operation. The host's kernel has one interface, with the address of the host in the network and a route to everything. The route
//! sets the congestion control for our sockets and those of programs. This also works if ordinary users may not choose it, and with any
//! default of the system. Connections leave no metrics for later ones (`tcp_no_metrics_save`), and windows may become as large as any path
//! needs, so that no limit outside of the scenario has an effect. The interface takes super-segments and partial checksums; the emulator
//! completes both.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use transom_device::interface::IpPrefix;
use transom_device::namespace::Namespace;
use transom_device::tun::Tun;
use transom_sim::network::NodeId;

use super::{RunError, system};
use crate::scenario::{Host, KernelCongestion, Name};

/// The parameter by which a host has no IPv6.
const NO_IPV6: &str = "net.ipv6.conf.all.disable_ipv6";
/// The interface's name.
const INTERFACE: &str = "transom0";
/// The length of the interface's queue, in packets or super-segments. Full buffers of the size below are this many packets of 1,448 bytes; a
/// super-segment is one.
const QUEUE: u32 = 50_000;
/// The least, the default and the largest buffer of a connection, in bytes: 64 MiB are 500 ms of 1 Gbit/s. Unused buffers take no memory.
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
    ) -> Result<(Self, Tun), RunError> {
        let namespace = Namespace::new()?;
        let set = |parameter: &str, value: &str| {
            let result = match namespace.set_sysctl(parameter, value) {
                // A kernel without IPv6.
                Err(error) if parameter == NO_IPV6 && error.kind() == io::ErrorKind::NotFound => {
                    Ok(())
                }
                other => other,
            };
            let what = format!("the kernel parameter {parameter} of host {name} cannot be set");
            result.map_err(system(what))
        };
        set(NO_IPV6, "1")?;
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
        let tun = Tun::builder()
            .name(INTERFACE)
            .mtu(u16::try_from(host.mtu).unwrap_or(u16::MAX))
            .queue_len(QUEUE)
            .keep_buffers(KEEP_BUFFERS)
            .address(own(address, 32));
        let what = format!("cannot make an interface for host {name}");
        let tun = namespace.run(|| tun.open())?.map_err(system(what))?;
        let congestion = host.congestion.unwrap_or(KernelCongestion::Cubic).name();
        let everything = own(Ipv4Addr::UNSPECIFIED, 0);
        namespace
            .interfaces()
            .add_route_with_congestion(INTERFACE, everything, congestion)
            .map_err(|source| RunError::System {
                what: format!(
                    "host {name} cannot have {congestion}: the kernel has {}",
                    available()
                ),
                source: source.into(),
            })?;
        let host = KernelHost { name: name.clone(), node, namespace: Arc::new(namespace) };
        Ok((host, tun))
    }

    /// Packets that the kernel had for the emulator and did not keep for it.
    pub(super) fn lost(&self) -> u64 {
        let state = self.namespace.interfaces().state(INTERFACE);
        state.map_or(0, |state| state.counters.transmit_dropped)
    }
}

/// Which congestion controls the kernel says it has.
fn available() -> String {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let list = std::fs::read_to_string(file).unwrap_or_default();
    list.split_whitespace().collect::<Vec<_>>().join(", ")
}

//! Two namespaces and an emulated path between them. Several examples use this file.

use std::io;
use std::net::IpAddr;
use std::thread;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use transom_device::namespace::Namespace;
use transom_device::tun::{Tun, TunOffload};
use transom_device::{Device, RxPacket, TxPacket};
use transom_lab::{Emulated, PathConfig};
use transom_sim::link::LinkConfig;
use transom_sim::units::Limit;
use transom_tcp::time::Duration;

/// The addresses of the two namespaces on the path. Transom's processes have addresses of their own behind the senders'.
const SENDERS: &str = "10.8.0.1/30";
const RECEIVERS: &str = "10.8.0.2/30";
const TRANSOMS: &str = "10.9.0.0/16";
/// The path, the same in both directions.
pub(crate) struct PathSettings<'a> {
    pub(crate) rate: &'a str,
    pub(crate) delay: Duration,
    pub(crate) queue: &'a str,
    /// The congestion control of the kernel's connections on the path, if it is not the system's. They then measure the path anew each time.
    pub(crate) congestion: Option<&'a str>,
    pub(crate) seed: u64,
}

/// The network. The path lasts as long as the process.
pub(crate) struct Network {
    pub(crate) senders: Namespace,
    pub(crate) receivers: Namespace,
}

impl Network {
    pub(crate) fn build(path: &PathSettings<'_>) -> Result<Network> {
        let PathSettings { rate, delay, queue, congestion, seed } = *path;
        let (senders, receivers) = (Namespace::new()?, Namespace::new()?);
        let left = tun(&senders, SENDERS)?;
        let right = tun(&receivers, RECEIVERS)?;
        let ends =
            [(&senders, left.name(), "10.8.0.2/32"), (&receivers, right.name(), "10.8.0.1/32")];
        for (namespace, device, peer) in ends {
            let Some(congestion) = congestion else { continue };
            // Ordinary users may not choose it for all connections, but for a route.
            namespace.interfaces().add_route_with_congestion(device, peer.parse()?, congestion)?;
            let _ = namespace.set_sysctl("net.ipv4.tcp_no_metrics_save", "1");
        }
        senders.set_sysctl("net.ipv4.ip_forward", "1").context("cannot forward packets")?;
        receivers.interfaces().add_route(right.name(), TRANSOMS.parse()?, None)?;
        let rate = rate.parse().map_err(|error| anyhow::anyhow!("{rate}: {error}"))?;
        let queue: Limit = queue.parse().map_err(|error| anyhow::anyhow!("{queue}: {error}"))?;
        let mut link = LinkConfig::default();
        (link.rate, link.delay, link.queue) = (Some(rate), delay, queue.into());
        let config = PathConfig { egress: link.clone(), ingress: link, seed };
        let left = Emulated::new(left, &config).context("cannot emulate the path")?;
        thread::Builder::new().name("path".into()).spawn(move || carry(left, right))?;
        Ok(Network { senders, receivers })
    }

    /// The receivers' address.
    pub(crate) fn receiver(&self) -> IpAddr {
        let prefix: transom_device::interface::IpPrefix =
            RECEIVERS.parse().expect("a literal prefix");
        prefix.address()
    }
}

fn tun(namespace: &Namespace, address: &str) -> Result<Tun> {
    let address = address.parse()?;
    // Packets as on a wire: the path counts and drops them one by one.
    let open = || {
        let builder = Tun::builder().name("path%d").address(address);
        builder.offload(TunOffload::None).queue_len(5000).open()
    };
    Ok(namespace.run(open)??)
}

/// Carries packets both ways until the process ends.
fn carry(mut left: Emulated<Tun>, mut right: Tun) {
    loop {
        let moved = pass(&mut left, &mut right) | pass(&mut right, &mut left);
        if moved {
            continue;
        }
        let (Some(one), Some(other)) = (left.poll_fd(), right.poll_fd()) else { return };
        let mut wanted = [
            PollFd::from_borrowed_fd(one, PollFlags::IN),
            PollFd::from_borrowed_fd(other, PollFlags::IN),
        ];
        let _ = poll(&mut wanted, None);
    }
}

/// Passes on what has arrived. Whether there was any.
fn pass(from: &mut dyn Device, to: &mut dyn Device) -> bool {
    for passed in 0..64 {
        match from.recv() {
            Ok(packet) => {
                // What does not fit is lost.
                let _ = to.send(&TxPacket::whole(packet.bytes()));
                let RxPacket { buffer, .. } = packet;
                from.recycle(buffer);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return passed > 0,
        }
    }
    true
}

//! Two namespaces and the path between them.

use std::io;
use std::net::IpAddr;
use std::thread;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use transom_device::namespace::Namespace;
use transom_device::tun::{Tun, TunOffload};
use transom_device::{Device, RxPacket, TxPacket};
use transom_lab::emulated::{Emulated, PathConfig};
use transom_sim::link::LinkConfig;
use transom_sim::units::QueueLimit;
use transom_tcp::time::Duration;

/// The path between the two namespaces. Transom's processes have addresses of their own behind the senders'.
const SENDERS: &str = "10.8.0.1/30";
const RECEIVERS: &str = "10.8.0.2/30";
const TRANSOMS: &str = "10.9.0.0/16";
/// Figure 8's, each way; the queue is that of the scenario `ictcp/fig8`.
pub(crate) const RATE: &str = "1Mbit/s";
pub(crate) const DELAY: Duration = Duration::from_millis(120);
pub(crate) const QUEUE: &str = "40 packets";

/// The network. The path lasts as long as the process.
pub(crate) struct Network {
    pub(crate) senders: Namespace,
    pub(crate) receivers: Namespace,
}

impl Network {
    pub(crate) fn build(seed: u64) -> Result<Network> {
        let (senders, receivers) = (Namespace::new()?, Namespace::new()?);
        let left = tun(&senders, SENDERS)?;
        let right = tun(&receivers, RECEIVERS)?;
        senders.set_sysctl("net.ipv4.ip_forward", "1").context("cannot forward packets")?;
        receivers.interfaces().add_route(right.name(), TRANSOMS.parse()?, None)?;
        let rate = RATE.parse().map_err(|error| anyhow::anyhow!("{RATE}: {error}"))?;
        let queue: QueueLimit =
            QUEUE.parse().map_err(|error| anyhow::anyhow!("{QUEUE}: {error}"))?;
        let link = || LinkConfig {
            rate: Some(rate),
            delay: DELAY,
            queue: queue.into(),
            ..LinkConfig::default()
        };
        let config = PathConfig { egress: link(), ingress: link(), seed };
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

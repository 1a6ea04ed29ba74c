//! A process that hands packets over: demultiplexing without help from the kernel.
//!
//! It owns a TUN interface, looks at the port of each packet, and gives the packet to the process that has the port. Each of those processes
//! shares two [rings](ring) with it. This is what `crates/broker` is measured against, so it is as quick as it can be without giving
//! up what it is for:
//!
//! - A super-segment of 64 KB is handed over in one piece, as a TUN interface gives and takes it.
//! - An incoming packet is read into memory of the process' own before it is copied to its owner's ring: until it has been read,
//!   nobody knows whose it is.
//! - An outgoing packet is written to the interface from the ring. Its headers are copied first, since their owner could change them
//!   between the check and the write.
//! - A process is woken only if it sleeps, and takes everything that waits before it sleeps again.

pub mod device;
pub mod process;
pub mod ring;

use crate::network::{ROUTED, Veth, routed_tun};
use crate::roles;
use anyhow::Context;
use device::HandedDevice;
use ring::Ring;
use rustix::fd::AsRawFd;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::process::Child;
use std::time::Duration;
use transom_device::Device;
use transom_device::tun::TunOffload;

/// Both directions between the two processes.
#[derive(Debug)]
struct Rings {
    /// To the owner of the port.
    inward: Ring,
    /// To the interface.
    outward: Ring,
}

impl Rings {
    fn new() -> anyhow::Result<Self> {
        Ok(Rings { inward: Ring::new()?, outward: Ring::new()? })
    }

    fn descriptors(&self) -> [i32; 4] {
        let [inward, outward] = [&self.inward, &self.outward].map(Ring::descriptors);
        [inward[0], inward[1], outward[0], outward[1]]
    }
}

/// The process. It ends with this value.
#[derive(Debug)]
pub struct HandingProcess(Child);

impl HandingProcess {
    /// Its processor time so far.
    ///
    /// # Errors
    /// When it has ended.
    pub fn time(&self) -> anyhow::Result<Duration> {
        let path = format!("/proc/{}/schedstat", self.0.id());
        let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
        let nanoseconds = text.split(' ').next().context("an empty line")?.parse()?;
        Ok(Duration::from_nanos(nanoseconds))
    }
}

impl Drop for HandingProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Opens a TUN interface behind the wire, and starts the process that owns it. The device returned gets what is for [`ROUTED`] and a port of `ports`.
///
/// # Errors
/// When the system refuses any of it.
pub fn start(
    veth: &Veth,
    ports: RangeInclusive<u16>,
) -> anyhow::Result<(HandingProcess, HandedDevice)> {
    let opened = routed_tun(veth, TunOffload::Segmentation)?;
    let address = Ipv4Addr::from(ROUTED);
    let descriptor = opened.poll_fd().context("the TUN device has no descriptor")?;
    // The copy is inherited, and the interface is the process' alone when ours are closed.
    let inherited = rustix::io::dup(descriptor)?;
    let rings = Rings::new()?;
    let [a, b, c, d] = rings.descriptors();
    let (first, last) = (ports.start(), ports.end());
    let what = format!("{} {address} {first} {last} {a} {b} {c} {d}", inherited.as_raw_fd());
    let child = veth.other.run(|| roles::command("hand-over", &what)?.spawn())??;
    let capabilities = opened.capabilities();
    drop((opened, inherited));
    Ok((HandingProcess(child), HandedDevice::new(capabilities, rings.inward, rings.outward)))
}

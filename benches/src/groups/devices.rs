//! Bulk transfer over each device of a stack, beside the kernel's TCP over veth and Transom over TUN.
//!
//! All but TUN share the baseline's wire: a veth pair between two namespaces. Over `packet` and `xdp` the peer is the kernel's TCP. A tunnel in UDP has
//! Transom at both ends, so both of its sides are in this process.

use super::Settings;
use super::bulk::{kernel_to_kernel, kernel_to_transom, transfer, transom_to_kernel};
use crate::harness::{Case, Group, Unit};
use crate::network::{PATIENCE, Veth, patient};
use anyhow::Context;
use std::net::SocketAddr;
use transom_device::open::{OpenOptions, open};
use transom_device::tun::TunOffload;
use transom_net::{Profile, Stack};

const PORT: u16 = 5001;
const KERNEL: &str = "kernel to kernel over veth";
const TUN: &str = "Transom over TUN";
/// Transom's address on the wire.
const OURS: [u8; 4] = [192, 0, 2, 3];

/// Which end writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Send,
    Receive,
}

/// A stack on a device that is opened at an end of the wire.
fn stack(end: &crate::network::KernelEnd, word: &str, address: &str) -> anyhow::Result<Stack> {
    let options = OpenOptions::default().with_addresses(vec![address.parse()?]);
    let opened = end.run(|| open(&word.parse()?, &options).with_context(|| word.to_owned()))??;
    let mut builder = Stack::builder().profile(Profile::classic());
    for prefix in opened.addresses {
        builder = builder.address(prefix.address(), prefix.prefix_len());
    }
    builder.start(opened.device).context("starting Transom")
}

fn patiently(stream: &transom_net::TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// Transom on a device at one end of the wire, the kernel at the other.
fn beside_kernel(
    name: &'static str,
    word: &str,
    direction: Direction,
    settings: Settings,
) -> anyhow::Result<Case> {
    let veth = Veth::new()?;
    let stack = stack(&veth.other, word, "192.0.2.3/24")?;
    let theirs = veth.kernel.listen(PORT)?;
    let ours = stack.listen(SocketAddr::from((OURS, PORT)))?;
    Ok(Case::new(name, move |span| match direction {
        Direction::Send => {
            let sender =
                transom_net::TcpStream::connect_timeout(&stack, &veth.kernel.at(PORT), PATIENCE)?;
            patiently(&sender)?;
            let (receiver, _) = theirs.accept()?;
            patient(&receiver)?;
            transfer(sender, receiver, span, settings)
        }
        Direction::Receive => {
            let sender = veth.kernel.connect((OURS, PORT).into())?;
            let (receiver, _) = ours.accept()?;
            patiently(&receiver)?;
            transfer(sender, receiver, span, settings)
        }
    }))
}

/// Two Transoms at the two ends of the wire.
fn tunnel(name: &'static str, settings: Settings) -> anyhow::Result<Case> {
    let veth = Veth::new()?;
    let listening = stack(&veth.kernel, "udp:listen:192.0.2.1:4000", "10.9.0.1/24")?;
    let connecting = stack(&veth.other, "udp:192.0.2.1:4000", "10.9.0.2/24")?;
    let at = SocketAddr::from(([10, 9, 0, 1], PORT));
    let listener = listening.listen(at)?;
    Ok(Case::new(name, move |span| {
        let sender = transom_net::TcpStream::connect_timeout(&connecting, &at, PATIENCE)?;
        patiently(&sender)?;
        let (receiver, _) = listener.accept()?;
        patiently(&receiver)?;
        // The wire and the listening stack stay for as long as the case.
        let _ = (&veth, &listening);
        transfer(sender, receiver, span, settings)
    }))
}

fn build(direction: Direction, settings: Settings) -> anyhow::Result<Group> {
    let over_tun = match direction {
        Direction::Send => transom_to_kernel(TUN, TunOffload::Segmentation, settings)?,
        Direction::Receive => kernel_to_transom(TUN, TunOffload::Segmentation, settings)?,
    };
    let packet = beside_kernel("Transom over packet", "packet:veth0", direction, settings)?;
    let mut cases = vec![
        kernel_to_kernel(settings)?,
        over_tun.against(KERNEL),
        packet.against(KERNEL).against(TUN),
    ];
    if cfg!(feature = "xdp") {
        let xdp = beside_kernel("Transom over xdp", "xdp:veth0", direction, settings)?;
        cases.push(xdp.against(KERNEL).against(TUN));
    }
    if direction == Direction::Send {
        let udp = tunnel("Transom to Transom over udp", settings)?;
        cases.push(udp.against(KERNEL).against(TUN));
    }
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}

/// Builds the group in which Transom sends.
///
/// # Errors
/// When one of the paths cannot be made.
pub fn build_send(settings: Settings) -> anyhow::Result<Group> {
    build(Direction::Send, settings)
}

/// Builds the group in which Transom receives.
///
/// # Errors
/// When one of the paths cannot be made.
pub fn build_recv(settings: Settings) -> anyhow::Result<Group> {
    build(Direction::Receive, settings)
}

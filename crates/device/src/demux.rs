//! Demultiplexing by a process: one process owns a device, and hands each packet to the process that has its port.
//!
//! "An Experimental User Level Implementation of TCP" (section 3) weighs this against demultiplexing in the kernel, which the broker does. It needs no
//! program in the kernel, and costs each packet a second crossing, a copy, and often a wake-up. `transom demux` is such a process
//! ([`Demultiplexer`]), and the device `demux:SOCKET` is a process behind it (`DemuxDevice`).
//!
//! A process connects to a Unix socket, and says which ports it will listen at. The answer has the addresses, the MTU, and one end of a pair of sockets
//! of the kind `SOCK_SEQPACKET`, by which IP packets travel, one in each message. A port that the process sends from becomes its own with the first
//! packet, if nobody has it. All its ports are free again when it closes its end.
//!
//! What a process sends is looked at: TCP, no fragment, from an address of the device and a port of its own. All else is dropped and counted. So
//! a process neither receives nor sends in the name of another. Whoever may write to the Unix socket's file may connect.
//!
//! Packets are whole: no offloads cross the socket. A process that does not read loses packets, as at any full queue.

mod device;
mod server;

use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use transom_wire::{IpPacket, Protocol};

use crate::interface::IpPrefix;

pub(crate) use device::DemuxDevice;
pub use server::{Demultiplexer, DemuxCounters};

/// The first word of each message of the beginning.
const GREETING: &str = "transom-demux 1";
/// The longest message of the beginning.
const LONGEST: usize = 4096;

/// The ends of a TCP segment in a whole IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
}

/// The ends of a packet; `None` unless it is TCP in one piece, as long as it says.
fn ends(packet: &[u8]) -> Option<Ends> {
    let ip = IpPacket::parse(packet).ok()?;
    if ip.protocol() != Protocol::TCP || ip.fragment().is_some() || ip.total_len() != packet.len() {
        return None;
    }
    let [a, b, c, d] = *ip.payload().first_chunk()?;
    let (from, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    Some(Ends { source: (ip.src(), from), destination: (ip.dst(), to) })
}

/// The ports from one to another; `None` if these are no ports, or end before they begin.
pub(crate) fn ports_between(first: &str, last: &str) -> Option<RangeInclusive<u16>> {
    let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
    (first > 0 && first <= last).then_some(first..=last)
}

/// What a process asks for.
fn hello(ports: &[RangeInclusive<u16>]) -> String {
    let ports: Vec<String> =
        ports.iter().map(|range| format!("{}-{}", range.start(), range.end())).collect();
    format!("{GREETING}\n{}", ports.join(","))
}

/// The ports that a process asks for; `None` if it speaks otherwise.
fn asked(text: &str) -> Option<Vec<RangeInclusive<u16>>> {
    let list = text.strip_prefix(GREETING)?.strip_prefix('\n')?;
    let range = |text: &str| {
        let (first, last) = text.split_once('-')?;
        ports_between(first, last)
    };
    list.split(',').filter(|text| !text.is_empty()).map(range).collect()
}

/// The answer to a process that is let in.
fn welcome(mtu: usize, addresses: &[IpPrefix]) -> String {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    format!("{GREETING}\nmtu {mtu}\n{}", addresses.join(","))
}

/// The answer to one that is not.
fn refusal(reason: &str) -> String {
    format!("{GREETING}\nrefused {reason}")
}

/// The MTU and the addresses of a welcome.
fn welcomed(text: &str) -> io::Result<(usize, Vec<IpPrefix>)> {
    let strange = || io::Error::new(io::ErrorKind::InvalidData, "no `transom demux` listens there");
    let text = text.strip_prefix(GREETING).and_then(|text| text.strip_prefix('\n'));
    let text = text.ok_or_else(strange)?;
    if let Some(reason) = text.strip_prefix("refused ") {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, reason.to_owned()));
    }
    let (mtu, list) = text.split_once('\n').ok_or_else(strange)?;
    let mtu = mtu.strip_prefix("mtu ").and_then(|mtu| mtu.parse().ok()).ok_or_else(strange)?;
    let addresses: Result<Vec<IpPrefix>, _> = list.split(',').map(str::parse).collect();
    Ok((mtu, addresses.map_err(|_| strange())?))
}

#[cfg(test)]
mod tests;

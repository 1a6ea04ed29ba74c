//! The cost of handing a packet to its process: in the kernel, in a process, and not at all.
//!
//! The host has a wire to a neighbour. A program of ours has, on the host:
//!
//! - *no demultiplexing*: a TUN interface with an address of its own, to which the kernel routes;
//! - *in the kernel*: a device of the broker's, and a port of the host's own address (`crates/broker`);
//! - *by a process*: the same as the first, but a process owns the interface and hands packets over ([`crate::handed`]).
//!
//! There is no TCP of ours here. Inward, a thread puts frames on the wire as the neighbour, and takes them as the program. Outward, it gives packets to
//! the program's device, and the neighbour drops them at once. A figure is the processor time of that thread and of the process that hands packets
//! over, so it does not depend on other work of the machine. It contains the way of a packet through two network stacks, which is the same for all three.
//! Small packets have 20 bytes of data, large ones are super-segments of 64 KB.

use super::Settings;
use crate::clock::thread_time;
use crate::handed::device::HandedDevice;
use crate::handed::{self, HandingProcess};
use crate::harness::{Bound, Case, Group, Unit};
use crate::lent_address::{BareLease, LentHost};
use crate::network::{KERNEL, OTHER, PATIENCE, ROUTED, Veth, routed_tun};
use anyhow::{Context, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::{Duration, Instant};
use transom_device::tun::{Tun, TunOffload};
use transom_device::{Device, FrameSocket, RxPacket, TxPacket};
use transom_testkit::packets;
use transom_wire::TcpHeader;
use transom_wire::offload::{SegmentKind, Segmentation, TxChecksum, TxOffload, VirtioNetHdr};

const PORT: u16 = 8080;
/// Where packets go that the neighbour drops.
const NOBODY: [u8; 4] = [192, 0, 2, 9];
/// Bytes of data in a small packet, and in a super-segment.
const SMALL: usize = 20;
const LARGE: usize = 64_000;
/// Bytes of data in each segment of a super-segment.
const SEGMENT: u16 = 1460;
const HEADERS: usize = 40;
const ETHERNET: usize = 14;

/// The case without demultiplexing; each kind of packet has its own.
const PLAIN: [&str; 3] = [
    "no demultiplexing, one by one",
    "no demultiplexing, 32 at once",
    "no demultiplexing, 64 KB, 32 at once",
];
const SHARED: [&str; 3] =
    ["in the kernel, one by one", "in the kernel, 32 at once", "in the kernel, 64 KB, 32 at once"];
const HANDED: [&str; 3] =
    ["by a process, one by one", "by a process, 32 at once", "by a process, 64 KB, 32 at once"];
/// Bytes of data, and packets at once.
const KINDS: [(usize, usize); 3] = [(SMALL, 1), (SMALL, 32), (LARGE, 32)];

/// What a program has.
enum Way {
    Plain { veth: Veth, tun: Tun },
    Shared { host: Box<LentHost>, lease: Box<BareLease> },
    Handed { veth: Veth, device: HandedDevice, process: HandingProcess },
}

impl Way {
    fn plain() -> anyhow::Result<Self> {
        let veth = Veth::new()?;
        let tun = routed_tun(&veth, TunOffload::Segmentation)?;
        Ok(Way::Plain { veth, tun })
    }

    fn shared() -> anyhow::Result<Self> {
        let host = LentHost::new()?;
        let lease = Box::new(host.bare((OTHER, PORT).into())?);
        Ok(Way::Shared { host: Box::new(host), lease })
    }

    fn handed() -> anyhow::Result<Self> {
        let veth = Veth::new()?;
        let (process, device) = handed::start(&veth, PORT..=PORT)?;
        Ok(Way::Handed { veth, device, process })
    }

    fn veth(&self) -> &Veth {
        match self {
            Way::Plain { veth, .. } | Way::Handed { veth, .. } => veth,
            Way::Shared { host, .. } => &host.veth,
        }
    }

    fn device(&mut self) -> &mut dyn Device {
        match self {
            Way::Plain { tun, .. } => tun,
            Way::Shared { lease, .. } => &mut lease.device,
            Way::Handed { device, .. } => device,
        }
    }

    /// The program's address and port.
    fn own(&self) -> SocketAddr {
        match self {
            Way::Shared { .. } => (OTHER, PORT).into(),
            _ => (ROUTED, PORT).into(),
        }
    }

    /// Waits until what was given to the device is on the wire. Returns the processor time of waiting, which costs nobody anything in
    /// earnest.
    fn settle(&self) -> Duration {
        let Way::Handed { device, .. } = self else { return Duration::ZERO };
        let before = thread_time();
        while !device.is_sent() {
            std::thread::yield_now();
        }
        thread_time() - before
    }

    /// The processor time so far of this thread, and of the process that hands packets over.
    fn time(&self) -> anyhow::Result<Duration> {
        let other = match self {
            Way::Handed { process, .. } => process.time()?,
            _ => Duration::ZERO,
        };
        Ok(thread_time() + other)
    }
}

/// A packet with that many bytes of data. The checksum of a super-segment is open.
fn packet(from: SocketAddr, to: SocketAddr, data: usize) -> Vec<u8> {
    let header = TcpHeader { flags: transom_wire::tcp::Flags::ACK, ..TcpHeader::default() };
    let mut packet = packets::tcp(from, to, &header, &vec![7; data]);
    if data > SMALL
        && let (IpAddr::V4(from), IpAddr::V4(to)) = (from.ip(), to.ip())
    {
        let words = [from.octets(), to.octets()].concat();
        let words = words.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let mut sum = words.sum::<u32>() + 6 + (data + 20) as u32;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        packet[36..38].copy_from_slice(&(sum as u16).to_be_bytes());
    }
    packet
}

fn offload(data: usize) -> TxOffload {
    if data <= SMALL {
        return TxOffload::default();
    }
    TxOffload {
        checksum: TxChecksum::Partial { start: 20, offset: 16 },
        segmentation: Some(Segmentation {
            kind: SegmentKind::Tcp4,
            segment_size: SEGMENT,
            header_len: HEADERS as u16,
        }),
    }
}

/// A frame with its virtio-net header, as the neighbour puts it on the wire.
fn frame(veth: &Veth, to: SocketAddr, data: usize) -> anyhow::Result<Vec<u8>> {
    let packet = packet((KERNEL, 4000).into(), to, data);
    let mut header = VirtioNetHdr::for_packet(&offload(data), &packet[..HEADERS], packet.len())?;
    if data > SMALL {
        header.csum_start += ETHERNET as u16;
        header.hdr_len += ETHERNET as u16;
    }
    let (host, neighbour) = (veth.other.wire()?.station, veth.kernel.wire()?.station);
    Ok([&header.encode()[..], &host, &neighbour, &[8, 0], &packet].concat())
}

/// Takes the next packet for the port.
fn next(device: &mut dyn Device) -> anyhow::Result<RxPacket> {
    loop {
        match device.recv() {
            Ok(packet) if crate::lent_address::is_for(&packet, PORT) => return Ok(packet),
            Ok(packet) => device.recycle(packet.buffer),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let bell = device.poll_fd().context("nothing to wait for")?;
                let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
                let ready =
                    poll(&mut [PollFd::from_borrowed_fd(bell, PollFlags::IN)], Some(&patience));
                ensure!(ready? > 0, "a packet is lost");
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Calls `work` for `span`, with `batch` packets each time. Returns how many packets there were, and the time that `work` has spent waiting.
fn repeated(
    span: Duration,
    batch: usize,
    mut work: impl FnMut() -> anyhow::Result<Duration>,
) -> anyhow::Result<(u64, Duration)> {
    let (start, mut packets, mut waited) = (Instant::now(), 0, Duration::ZERO);
    while start.elapsed() < span {
        waited += work()?;
        packets += batch as u64;
    }
    Ok((packets, waited))
}

/// Nanoseconds for each packet.
fn each(spent: Duration, packets: u64) -> f64 {
    spent.as_nanos() as f64 / packets.max(1) as f64
}

fn inward(name: &'static str, mut way: Way, kind: (usize, usize)) -> anyhow::Result<Case> {
    let (data, batch) = kind;
    let wire = {
        let neighbour = &way.veth().kernel;
        let index = neighbour.wire()?.index;
        neighbour.run(|| FrameSocket::open(index))??
    };
    let frame = frame(way.veth(), way.own(), data)?;
    Ok(Case::new(name, move |span| {
        let before = way.time()?;
        let device = way.device();
        let (packets, _) = repeated(span, batch, || {
            for _ in 0..batch {
                ensure!(wire.send(&frame)?, "the wire is full");
            }
            for _ in 0..batch {
                let packet = next(device)?;
                ensure!(packet.range.len() == data + HEADERS, "another packet came");
                device.recycle(packet.buffer);
            }
            Ok(Duration::ZERO)
        })?;
        Ok(each(way.time()? - before, packets))
    }))
}

fn outward(name: &'static str, mut way: Way, kind: (usize, usize)) -> anyhow::Result<Case> {
    let (data, batch) = kind;
    // The neighbour is known to have this address, and does not have it.
    let station = way.veth().kernel.wire()?.station.map(|byte| format!("{byte:02x}")).join(":");
    let to = std::net::Ipv4Addr::from(NOBODY).to_string();
    let words = ["neighbour", "add", &to, "lladdr", &station, "dev", "veth0"];
    let status = way.veth().other.run(|| Command::new("ip").args(words).status())?;
    ensure!(status.context("starting ip(8)")?.success(), "ip(8) failed");
    let packet = packet(way.own(), (NOBODY, 9).into(), data);
    Ok(Case::new(name, move |span| {
        let arrived = way.veth().kernel.received()?;
        let (headers, payload) = packet.split_at(HEADERS);
        let parts = TxPacket { headers, payload: [payload, &[]], offload: offload(data) };
        let before = way.time()?;
        let (packets, waited) = repeated(span, batch, || {
            for _ in 0..batch {
                way.device().send(&parts)?;
            }
            Ok(way.settle())
        })?;
        let cost = each((way.time()? - before).saturating_sub(waited), packets);
        let arrived = way.veth().kernel.received()? - arrived;
        ensure!(arrived >= packets, "{arrived} of {packets} packets arrived");
        Ok(cost)
    }))
}

type Build = fn(&'static str, Way, (usize, usize)) -> anyhow::Result<Case>;

fn build(direction: Build) -> anyhow::Result<Group> {
    let mut cases = Vec::new();
    for (at, kind) in KINDS.into_iter().enumerate() {
        cases.push(direction(PLAIN[at], Way::plain()?, kind)?);
        let shared = direction(SHARED[at], Way::shared()?, kind)?.against(PLAIN[at]);
        // The reason why it is in the kernel.
        cases.push(shared.figure(HANDED[at], Bound::AtMost(1.0)));
        cases.push(direction(HANDED[at], Way::handed()?, kind)?.against(PLAIN[at]));
    }
    Ok(Group::new(Unit::Nanoseconds, cases))
}

/// Builds the group in which packets come in.
///
/// # Errors
/// When one of the ways cannot be made.
pub fn build_in(_: Settings) -> anyhow::Result<Group> {
    let note = whose_packets_are_whose()?;
    Ok(build(inward)?.note(note))
}

/// Builds the group in which packets go out.
///
/// # Errors
/// When one of the ways cannot be made.
pub fn build_out(_: Settings) -> anyhow::Result<Group> {
    build(outward)
}

/// So many processes hold a port each, and so many packets are for each of them, for one of the kernel's ports, and for one that nobody has.
const HOLDERS: u16 = 4;
const PACKETS: u64 = 5000;

/// Sends packets for everybody in a random order, with the kernel's TCP in use beside. Says who got what.
fn whose_packets_are_whose() -> anyhow::Result<String> {
    use std::sync::atomic::{AtomicBool, Ordering};
    let host = LentHost::new()?;
    let ports: Vec<u16> = (PORT..PORT + HOLDERS).collect();
    let holders = ports.iter().map(|port| host.holder((OTHER, *port).into()));
    let holders = holders.collect::<anyhow::Result<Vec<_>>>()?;
    let listener = host.end().listen(80)?;
    let neighbour = &host.veth.kernel;
    let index = neighbour.wire()?.index;
    let wire = neighbour.run(|| FrameSocket::open(index))??;
    let all: Vec<u16> = ports.iter().copied().chain([80, PORT + HOLDERS]).collect();
    let frames = all.iter().map(|port| frame(&host.veth, (OTHER, *port).into(), SMALL));
    let frames = frames.collect::<anyhow::Result<Vec<_>>>()?;
    let done = AtomicBool::new(false);
    let trips = std::thread::scope(|scope| {
        let echo = scope.spawn(|| super::round_trip::echo(listener.accept()?.0));
        let mut stream = neighbour.connect((OTHER, 80).into())?;
        let asking = scope.spawn(|| {
            let mut trips = 0u64;
            while !done.load(Ordering::Relaxed) {
                super::round_trip::stream_trip(&mut stream, trips as u8)?;
                trips += 1;
            }
            drop(stream);
            anyhow::Ok(trips)
        });
        let sending = send_shuffled(&wire, &frames);
        done.store(true, Ordering::Relaxed);
        let trips = asking.join().unwrap_or_else(|_| bail!("the kernel's client panicked"))?;
        echo.join().unwrap_or_else(|_| bail!("the kernel's server panicked"))?;
        sending.map(|()| trips)
    })?;
    for (holder, port) in holders.into_iter().zip(ports) {
        let (own, others) = holder.counts()?;
        ensure!((own, others) == (PACKETS, 0), "port {port}: {own} own, {others} of others");
    }
    Ok(format!(
        "Before: {HOLDERS} processes held a port each. {PACKETS} packets for each of these ports, for one of the kernel's and for one that nobody had \
         came in a random order. Each process got its {PACKETS} packets and no other. Meanwhile a client made {trips} round trips with the kernel's \
         server at the same address."
    ))
}

/// Each frame [`PACKETS`] times.
fn send_shuffled(wire: &FrameSocket, frames: &[Vec<u8>]) -> anyhow::Result<()> {
    let mut left = vec![PACKETS; frames.len()];
    // xorshift: the same order each time.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut sent = 0u64;
    while left.iter().any(|count| *count > 0) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let at = (state % frames.len() as u64) as usize;
        if left[at] == 0 {
            continue;
        }
        while !wire.send(&frames[at])? {
            std::thread::sleep(Duration::from_micros(100));
        }
        left[at] -= 1;
        sent += 1;
        // The queue of a device has 2000 places.
        if sent.is_multiple_of(500) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(())
}

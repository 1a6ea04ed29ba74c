//! Random traffic for one connection: ordinary segments for the most part, and everything that is unusual about a packet.

use crate::harness::{HOST, PEER, Peer, stream};
use proptest::prelude::*;
use transom_testkit::packets::{fragment4, with_ip_options};
use transom_wire::{Flags, Protocol, SackBlock, TcpHeader};

/// What happens next.
#[derive(Clone, Debug)]
pub enum Step {
    Arrive(Arrival),
    /// The application reads at most so many bytes.
    Read(usize),
    Write(usize),
    Wait(u64),
    Shutdown,
}

/// A packet: where its data lies relative to the next that is expected, and what is unusual about it.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub from: i32,
    pub len: usize,
    pub flags: Flags,
    pub acknowledges: bool,
    pub window: u16,
    pub vouched: bool,
    pub merged: bool,
    pub twist: Twist,
    /// A reader waits for it and takes what it can.
    pub awaited: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Twist {
    None,
    Damaged(usize),
    IpOptions,
    NoTimestamps,
    OldTimestamps,
    Sack,
    Urgent,
    /// Bytes behind the packet, as Ethernet pads.
    Padded(usize),
    Cut(usize),
    Fragments,
    ToAnotherPort,
    FromOurselves,
}

fn twist() -> impl Strategy<Value = Twist> {
    prop_oneof![
        12 => Just(Twist::None),
        2 => (0usize..200).prop_map(Twist::Damaged),
        1 => Just(Twist::IpOptions),
        1 => Just(Twist::NoTimestamps),
        1 => Just(Twist::OldTimestamps),
        1 => Just(Twist::Sack),
        1 => Just(Twist::Urgent),
        1 => (1usize..30).prop_map(Twist::Padded),
        1 => (1usize..60).prop_map(Twist::Cut),
        1 => Just(Twist::Fragments),
        1 => Just(Twist::ToAnotherPort),
        1 => Just(Twist::FromOurselves),
    ]
}

fn flags() -> impl Strategy<Value = Flags> {
    prop_oneof![
        12 => Just(Flags::ACK),
        6 => Just(Flags::ACK | Flags::PSH),
        1 => Just(Flags::ACK | Flags::FIN),
        1 => Just(Flags::ACK | Flags::ECE),
        1 => Just(Flags::ACK | Flags::SYN),
        1 => Just(Flags::empty()),
        1 => Just(Flags::RST),
    ]
}

fn arrival() -> impl Strategy<Value = Arrival> {
    let from = prop_oneof![6 => Just(0), 1 => -3_000i32..3_000, 1 => any::<i32>()];
    let len = prop_oneof![2 => Just(0usize), 2 => 1usize..1_448, 2 => Just(1_448), 1 => 1_449usize..30_000];
    let window = prop_oneof![4 => Just(65_535), 1 => any::<u16>()];
    let yes = prop::bool::weighted(0.8);
    (from, len, flags(), yes, window, any::<bool>(), any::<bool>(), twist(), yes).prop_map(
        |(from, len, flags, acknowledges, window, vouched, merged, twist, awaited)| Arrival {
            from,
            len,
            flags,
            acknowledges,
            window,
            vouched,
            merged,
            twist,
            awaited,
        },
    )
}

pub fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => arrival().prop_map(Step::Arrive),
        2 => (1usize..20_000).prop_map(Step::Read),
        2 => (1usize..20_000).prop_map(Step::Write),
        2 => (0u64..3_000).prop_map(Step::Wait),
        1 => Just(Step::Shutdown),
    ]
}

/// The packets of an arrival.
pub fn packets(peer: &Peer, arrival: &Arrival) -> Vec<Vec<u8>> {
    let mut peer = *peer;
    match arrival.twist {
        Twist::ToAnotherPort => peer.to.set_port(81),
        Twist::FromOurselves => peer.from.set_ip(peer.to.ip()),
        _ => {}
    }
    peer.window = arrival.window;
    let v6 = peer.from.is_ipv6();
    let header = peer.header(arrival.flags);
    let mut header = TcpHeader { seq: header.seq + arrival.from as u32, ..header };
    if !arrival.acknowledges {
        header.ack -= 1;
    }
    match arrival.twist {
        Twist::NoTimestamps => header.options.timestamps = None,
        Twist::OldTimestamps => {
            if let Some(stamps) = &mut header.options.timestamps {
                stamps.value = stamps.value.wrapping_sub(1_000);
            }
        }
        Twist::Sack => {
            let block = SackBlock { left: header.ack + 100, right: header.ack + 200 };
            header.options.sack.push(block);
        }
        Twist::Urgent => {
            header.flags |= Flags::URG;
            header.urgent = 3;
        }
        _ => {}
    }
    // The stream is endless and tells its place.
    let place = header.seq.get() as usize % 251;
    let payload = &stream(251 + arrival.len)[place..place + arrival.len];
    let mut packet = peer.packet(&header, payload);
    match arrival.twist {
        Twist::Damaged(at) => {
            let at = at % packet.len();
            packet[at] ^= 0x10;
        }
        Twist::IpOptions if !v6 => packet = with_ip_options(&packet, &[1, 1, 1, 0]),
        Twist::Padded(len) => packet.resize(packet.len() + len, 0xee),
        Twist::Cut(len) => packet.truncate(packet.len().saturating_sub(len)),
        Twist::Fragments if !v6 && packet.len() > 100 => {
            let transport = &packet[20..];
            return vec![
                fragment4(PEER, HOST, Protocol::TCP, 7, 64, false, &transport[64..]),
                fragment4(PEER, HOST, Protocol::TCP, 7, 0, true, &transport[..64]),
            ];
        }
        _ => {}
    }
    vec![packet]
}

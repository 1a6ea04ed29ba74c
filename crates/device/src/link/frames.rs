//! Frames of ARP and neighbour discovery.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr, Icmpv6Packet, Icmpv6Repr, IpProtocol, Ipv6Packet, Ipv6Repr, NdiscNeighborFlags,
    NdiscRepr, RawHardwareAddress,
};

/// The address of a station on an Ethernet.
pub(crate) type Mac = [u8; 6];

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET_LEN: usize = 14;
/// The hop limit of neighbour discovery: a packet with it cannot come from beyond the link (RFC 4861 section 7.1.1).
const HOP_LIMIT: u8 = 255;

/// The meaning of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// An IP packet.
    Packet,
    /// A question for the station of an address. An asker without an address only checks that it is free.
    Question { asker: Option<(IpAddr, Mac)>, target: IpAddr },
    /// An answer: the station of an address.
    Answer { address: IpAddr, mac: Mac },
    /// Nothing for us.
    Nothing,
}

/// Whether a frame is for this station.
/// [RFC1122-3.2.2-8] [RFC1122-3.3.6-6] [RFC4443-2.4-8]
pub(super) fn is_to(frame: &[u8], mac: Mac) -> bool {
    frame.starts_with(&mac)
}

/// Understands a frame.
pub(super) fn read_frame(frame: &[u8]) -> Received {
    let Ok(ethernet) = EthernetFrame::new_checked(frame) else { return Received::Nothing };
    match ethernet.ethertype() {
        EthernetProtocol::Arp => read_arp(ethernet.payload()).unwrap_or(Received::Nothing),
        EthernetProtocol::Ipv4 => Received::Packet,
        EthernetProtocol::Ipv6 => read_ipv6(ethernet.payload()),
        EthernetProtocol::Unknown(_) => Received::Nothing,
    }
}

fn read_arp(payload: &[u8]) -> Option<Received> {
    let arp = ArpPacket::new_checked(payload).ok()?;
    let ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr,
        source_protocol_addr,
        target_protocol_addr,
        ..
    } = ArpRepr::parse(&arp).ok()?
    else {
        return None;
    };
    let (address, mac) = (source_protocol_addr, source_hardware_addr.0);
    let sender = Some((IpAddr::V4(address), mac)).filter(|_| !address.is_unspecified());
    Some(match operation {
        ArpOperation::Request => {
            Received::Question { asker: sender, target: target_protocol_addr.into() }
        }
        ArpOperation::Reply => {
            let (address, mac) = sender?;
            Received::Answer { address, mac }
        }
        ArpOperation::Unknown(_) => return None,
    })
}

fn read_ipv6(payload: &[u8]) -> Received {
    // Type 135 to 136 without anything before it, as neighbour discovery has it; all else is the stack's.
    let is_discovery = payload.get(6) == Some(&u8::from(IpProtocol::Icmpv6))
        && payload.get(40).is_some_and(|kind| (133..=137).contains(kind));
    if !is_discovery {
        return Received::Packet;
    }
    read_discovery(payload).unwrap_or(Received::Nothing)
}

fn read_discovery(payload: &[u8]) -> Option<Received> {
    let ip = Ipv6Packet::new_checked(payload).ok()?;
    let (source, destination) = (ip.src_addr(), ip.dst_addr());
    if ip.hop_limit() != HOP_LIMIT {
        return None;
    }
    let icmp = Icmpv6Packet::new_checked(ip.payload()).ok()?;
    let sums = ChecksumCapabilities::default();
    let Icmpv6Repr::Ndisc(message) = Icmpv6Repr::parse(&source, &destination, &icmp, &sums).ok()?
    else {
        return None;
    };
    let mac = |address: Option<RawHardwareAddress>| -> Option<Mac> {
        address?.as_bytes().try_into().ok()
    };
    match message {
        NdiscRepr::NeighborSolicit { target_addr, lladdr } => {
            let asker = mac(lladdr).filter(|_| !source.is_unspecified());
            let asker = asker.map(|mac| (IpAddr::V6(source), mac));
            Some(Received::Question { asker, target: target_addr.into() })
        }
        NdiscRepr::NeighborAdvert { target_addr, lladdr, .. } => {
            Some(Received::Answer { address: target_addr.into(), mac: mac(lladdr)? })
        }
        _ => None,
    }
}

/// The group that listens for questions about an address (RFC 4291 section 2.7.1), and its station.
pub(crate) fn solicited_node(address: Ipv6Addr) -> (Ipv6Addr, Mac) {
    let [.., a, b, c] = address.octets();
    let group =
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from_be_bytes([b, c]));
    (group, [0x33, 0x33, 0xff, a, b, c])
}

/// All nodes of the link (RFC 4291 section 2.7.1).
const ALL_NODES: (Ipv6Addr, Mac) =
    (Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1), [0x33, 0x33, 0, 0, 0, 1]);

/// Asks where `target` is, everybody or the station `at` which it was.
pub(super) fn question(
    mac: Mac,
    source: IpAddr,
    target: IpAddr,
    at: Option<Mac>,
) -> Option<Vec<u8>> {
    match (source, target) {
        (IpAddr::V4(source), IpAddr::V4(target)) => Some(arp(
            ArpOperation::Request,
            (mac, source),
            ([0; 6], target),
            at.unwrap_or([0xff; 6]),
        )),
        (IpAddr::V6(source), IpAddr::V6(target)) => {
            let message = NdiscRepr::NeighborSolicit {
                target_addr: target,
                lladdr: Some(EthernetAddress(mac).into()),
            };
            let to = at.map_or_else(|| solicited_node(target), |at| (target, at));
            Some(discovery((mac, source), to, message))
        }
        _ => None,
    }
}

/// Says where `own` is, to one who has asked, or to everybody.
pub(super) fn answer(mac: Mac, own: IpAddr, asker: Option<(IpAddr, Mac)>) -> Option<Vec<u8>> {
    match (own, asker) {
        (IpAddr::V4(own), Some((IpAddr::V4(asker), at))) => {
            Some(arp(ArpOperation::Reply, (mac, own), (at, asker), at))
        }
        (IpAddr::V4(own), None) => {
            Some(arp(ArpOperation::Reply, (mac, own), (mac, own), [0xff; 6]))
        }
        (IpAddr::V6(own), asker) => {
            let (to, solicited) = match asker {
                Some((IpAddr::V6(asker), at)) => ((asker, at), NdiscNeighborFlags::SOLICITED),
                _ => (ALL_NODES, NdiscNeighborFlags::empty()),
            };
            let message = NdiscRepr::NeighborAdvert {
                flags: NdiscNeighborFlags::OVERRIDE | solicited,
                target_addr: own,
                lladdr: Some(EthernetAddress(mac).into()),
            };
            Some(discovery((mac, own), to, message))
        }
        _ => None,
    }
}

/// Says to everybody where `own` is: an ARP announcement (RFC 5227 section 3), or an unsolicited advertisement (RFC 4861 section 7.2.6).
pub(super) fn announcement(mac: Mac, own: IpAddr) -> Option<Vec<u8>> {
    match own {
        IpAddr::V4(own) => Some(arp(ArpOperation::Request, (mac, own), ([0; 6], own), [0xff; 6])),
        IpAddr::V6(_) => answer(mac, own, None),
    }
}

fn ethernet(from: Mac, to: Mac, ethertype: EthernetProtocol, length: usize) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET_LEN + length];
    let repr =
        EthernetRepr { src_addr: EthernetAddress(from), dst_addr: EthernetAddress(to), ethertype };
    repr.emit(&mut EthernetFrame::new_unchecked(&mut frame));
    frame
}

fn arp(
    operation: ArpOperation,
    (mac, own): (Mac, Ipv4Addr),
    (target_mac, target): (Mac, Ipv4Addr),
    to: Mac,
) -> Vec<u8> {
    let repr = ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr: EthernetAddress(mac),
        source_protocol_addr: own,
        target_hardware_addr: EthernetAddress(target_mac),
        target_protocol_addr: target,
    };
    let mut frame = ethernet(mac, to, EthernetProtocol::Arp, repr.buffer_len());
    repr.emit(&mut ArpPacket::new_unchecked(&mut frame[ETHERNET_LEN..]));
    frame
}

fn discovery(
    (mac, source): (Mac, Ipv6Addr),
    (destination, to): (Ipv6Addr, Mac),
    message: NdiscRepr<'_>,
) -> Vec<u8> {
    let message = Icmpv6Repr::Ndisc(message);
    let ip = Ipv6Repr {
        src_addr: source,
        dst_addr: destination,
        next_header: IpProtocol::Icmpv6,
        payload_len: message.buffer_len(),
        hop_limit: HOP_LIMIT,
    };
    let length = ip.buffer_len() + message.buffer_len();
    let mut frame = ethernet(mac, to, EthernetProtocol::Ipv6, length);
    let mut packet = Ipv6Packet::new_unchecked(&mut frame[ETHERNET_LEN..]);
    ip.emit(&mut packet);
    let mut icmp = Icmpv6Packet::new_unchecked(packet.payload_mut());
    message.emit(&source, &destination, &mut icmp, &ChecksumCapabilities::default());
    frame
}

//! An Ethernet, for a station of its own: finds neighbours and answers their questions (ARP, RFC 826; neighbour discovery, RFC 4861).
//!
//! The stack above knows IP packets only. This module turns them into frames and back, for the devices that carry frames:
//! [`packet`](crate::packet) and [`xdp`](crate::xdp). It does no input or output but one: the kernel is asked which gateway leads out of the link.

mod frames;
mod neighbours;
mod routes;
mod sending;

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use transom_wire::offload::TxOffload;

use crate::TxPacket;
use crate::interface::IpPrefix;
use frames::Received;
pub(crate) use frames::{ETHERNET_LEN, Mac, solicited_node};
use neighbours::Neighbours;
pub(crate) use routes::Routes;
pub(crate) use sending::{OnLink, destination};

/// A packet that waits until its neighbour is found.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) packet: Vec<u8>,
    pub(crate) offload: TxOffload,
    /// To whom it goes.
    pub(crate) to: Mac,
}

/// The station that gets a packet.
#[derive(Debug)]
pub(crate) struct NextStation {
    /// A frame to send first.
    pub(crate) question: Option<Vec<u8>>,
    /// `None`: the packet is kept until its neighbour answers.
    pub(crate) station: Option<Mac>,
}

/// The way of a packet.
#[derive(Debug)]
enum Way {
    /// Send it to this station.
    To(Mac),
    /// It is kept until a neighbour answers this frame.
    Ask(Option<Vec<u8>>),
    /// It can go nowhere.
    Nowhere,
}

/// The kind of a frame.
#[derive(Debug)]
pub(crate) enum Taken {
    /// An IP packet for the stack, behind the Ethernet header.
    Packet,
    /// Something for the link. This is to be sent, and those packets can go now.
    Link(Option<Vec<u8>>, Vec<Held>),
    /// Nothing for us.
    Nothing,
}

/// The link.
#[derive(Debug)]
pub(crate) struct Link {
    mac: Mac,
    addresses: Vec<IpPrefix>,
    neighbours: Neighbours,
    routes: Routes,
}

impl Link {
    pub(crate) fn new(mac: Mac, addresses: Vec<IpPrefix>, routes: Routes) -> Self {
        Link { mac, addresses, neighbours: Neighbours::default(), routes }
    }

    pub(crate) fn mac(&self) -> Mac {
        self.mac
    }

    fn has(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.address() == address)
    }

    /// Our address to ask `other` from: one of its network, or any of its version.
    fn source_for(&self, other: IpAddr) -> Option<IpAddr> {
        let same_version = |own: &&IpPrefix| own.address().is_ipv4() == other.is_ipv4();
        let mut of_version = self.addresses.iter().filter(same_version);
        let near = of_version.clone().find(|own| own.contains(other));
        near.or_else(|| of_version.next()).map(IpPrefix::address)
    }

    /// Frames that tell everybody where we are, so that nobody believes what was true before.
    pub(crate) fn announcements(&self) -> Vec<Vec<u8>> {
        let announce = |own: &IpPrefix| frames::announcement(self.mac, own.address());
        self.addresses.iter().filter_map(announce).collect()
    }

    /// Finds the station that gets a packet to `destination`.
    pub(crate) fn next_station(
        &mut self,
        now: Duration,
        destination: IpAddr,
        packet: &TxPacket<'_>,
    ) -> io::Result<NextStation> {
        match self.way(now, destination, packet) {
            Way::To(mac) => {
                Ok(NextStation { question: self.confirm(now, destination), station: Some(mac) })
            }
            Way::Ask(question) => Ok(NextStation { question, station: None }),
            Way::Nowhere => Err(io::ErrorKind::HostUnreachable.into()),
        }
    }

    /// The way of a packet to `destination`. If its neighbour is not known, the packet is kept.
    fn way(&mut self, now: Duration, destination: IpAddr, packet: &TxPacket<'_>) -> Way {
        // Nobody on the link has an address of ours.
        if self.has(destination) {
            return Way::Nowhere;
        }
        let near = self.addresses.iter().any(|own| own.contains(destination));
        let hop = if near { Some(destination) } else { self.routes.gateway(now, destination) };
        let Some(hop) = hop else { return Way::Nowhere };
        match self.neighbours.find(now, hop) {
            Some(mac) => Way::To(mac),
            None => self.keep(now, hop, packet),
        }
    }

    fn keep(&mut self, now: Duration, hop: IpAddr, packet: &TxPacket<'_>) -> Way {
        let mut copy = vec![0; packet.len()];
        if packet.copy_to(&mut copy).is_some() {
            self.neighbours.hold(hop, copy, packet.offload);
        }
        let ask = self.neighbours.may_ask(now, hop);
        let source = self.source_for(hop).filter(|_| ask);
        Way::Ask(source.and_then(|source| frames::question(self.mac, source, hop, None)))
    }

    /// When a neighbour that is in use has not been heard for a while: what to ask it.
    fn confirm(&mut self, now: Duration, destination: IpAddr) -> Option<Vec<u8>> {
        let near = self.addresses.iter().any(|own| own.contains(destination));
        let hop = if near { destination } else { self.routes.gateway(now, destination)? };
        let mac = self.neighbours.wants_confirmation(now, hop)?;
        frames::question(self.mac, self.source_for(hop)?, hop, Some(mac))
    }

    /// Looks at a frame that has arrived.
    pub(crate) fn take(&mut self, now: Duration, frame: &[u8]) -> Taken {
        match frames::read_frame(frame) {
            Received::Packet if frames::is_to(frame, self.mac) => Taken::Packet,
            Received::Question { asker, target } if self.has(target) => {
                let answer = frames::answer(self.mac, target, asker);
                // One who looks whether an address is free (RFC 5227, RFC 4862) has none yet.
                let held = asker.map(|(address, mac)| self.learn(now, address, mac, true));
                Taken::Link(answer, held.unwrap_or_default())
            }
            Received::Answer { address, mac } => {
                Taken::Link(None, self.learn(now, address, mac, false))
            }
            Received::Packet | Received::Question { .. } | Received::Nothing => Taken::Nothing,
        }
    }

    /// Learns the station of an address. `asked`: the neighbour has asked for ours, so we will soon send to it.
    fn learn(&mut self, now: Duration, address: IpAddr, mac: Mac, asked: bool) -> Vec<Held> {
        // Nobody else has our addresses, and nobody has the address of a group.
        if self.has(address) || mac[0] & 1 != 0 {
            return Vec::new();
        }
        let held = self.neighbours.learn(now, address, mac, asked);
        held.into_iter().map(|(packet, offload)| Held { packet, offload, to: mac }).collect()
    }
}

/// A station before strangers.
#[cfg(any(test, fuzzing))]
pub(crate) fn hostile() -> Link {
    let addresses = ["192.0.2.1/24", "2001:db8::1/64"].iter().filter_map(|own| own.parse().ok());
    Link::new([2, 0, 0, 0, 0, 1], addresses.collect(), Routes::none())
}

#[cfg(test)]
mod tests;

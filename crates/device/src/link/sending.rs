//! The way out of a device that is a station of its own on a link.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::{Held, Link, Mac};
use crate::TxPacket;

/// A device that is a station of its own: it finds the neighbour of each packet.
pub(crate) trait OnLink {
    /// The link, and the time since the device was opened.
    fn link(&mut self) -> (&mut Link, Duration);

    /// Sends a frame of the link itself, such as a question for a neighbour. A lost frame is repeated when it is needed again.
    fn send_frame(&mut self, frame: &[u8]);

    /// Sends a packet to a station.
    fn send_to(&mut self, to: Mac, packet: &TxPacket<'_>) -> io::Result<()>;

    /// Sends a packet, in one piece, that has waited for its neighbour.
    fn send_held(&mut self, to: Mac, packet: &TxPacket<'_>) -> io::Result<()> {
        self.send_to(to, packet)
    }

    /// Sends a packet to its neighbour, or asks for the neighbour and keeps the packet meanwhile.
    fn send_packet(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.neighbour_of(packet)?.map_or(Ok(()), |station| self.send_to(station, packet))
    }

    /// The station to which a packet goes. If that is not known yet, asks for it and keeps the packet meanwhile.
    fn neighbour_of(&mut self, packet: &TxPacket<'_>) -> io::Result<Option<Mac>> {
        let destination = destination(packet.headers).ok_or(io::ErrorKind::InvalidInput)?;
        let (link, now) = self.link();
        let next = link.next_station(now, destination, packet)?;
        if let Some(question) = next.question {
            self.send_frame(&question);
        }
        Ok(next.station)
    }

    /// Sends the answer to a frame of the link's, and the packets that waited for it.
    fn send_after_link_frame(&mut self, answer: Option<Vec<u8>>, held: Vec<Held>) {
        if let Some(answer) = answer {
            self.send_frame(&answer);
        }
        for Held { packet, offload, to } in held {
            let packet = TxPacket { headers: &packet, payload: [&[]; 2], offload };
            // As on any link, some are lost.
            let _ = self.send_held(to, &packet);
        }
    }
}

/// The destination of a packet that begins like this.
pub(crate) fn destination(headers: &[u8]) -> Option<IpAddr> {
    match headers.first()? >> 4 {
        4 => Some(Ipv4Addr::from(*headers.get(16..)?.first_chunk::<4>()?).into()),
        6 => Some(Ipv6Addr::from(*headers.get(24..)?.first_chunk::<16>()?).into()),
        _ => None,
    }
}

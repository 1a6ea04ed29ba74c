//! A connection of a capture: its two ends and its two ways.

use std::net::SocketAddr;

use transom_tcp::time::Instant;
use transom_wire::Flags;

use crate::segment::Segment;
use crate::way::{Arrived, Way};

/// RFC 7323 section 2.3: larger shifts count as this one.
const MOST_SHIFT: u8 = 14;

/// A connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Its number in the capture, from one, in the order of the connections' first packets.
    pub number: usize,
    /// Its ends. The first one opened the connection if the capture has the SYN; otherwise it sent the first packet of the capture.
    pub ends: [SocketAddr; 2],
    /// The time of its first packet, since 1970.
    pub first: Instant,
    /// The time of its last packet.
    pub last: Instant,
    /// How many packets there are.
    pub packets: u64,
    /// How many of them are resets.
    pub resets: u64,
    /// How many of them lack options, because the capture kept too little.
    pub cut_options: u64,
    /// The data from the first end to the second, and back.
    pub ways: [Way; 2],
    /// The window scale that each end stated.
    scales: [Scale; 2],
    /// Whether both ends have sent a SYN.
    synchronised: [bool; 2],
}

/// An end's window scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Scale {
    /// Its SYN was not seen, or not its options.
    #[default]
    Unknown,
    /// Its SYN had no such option.
    None,
    /// A shift.
    Shift(u8),
}

impl Connection {
    pub(crate) fn new(number: usize, segment: &Segment) -> Connection {
        let mut ends = [segment.source, segment.destination];
        // An answer to a SYN that was not seen.
        if segment.header.flags.contains(Flags::SYN | Flags::ACK) {
            ends.reverse();
        }
        Connection {
            number,
            ends,
            first: segment.at,
            last: segment.at,
            packets: 0,
            resets: 0,
            cut_options: 0,
            ways: Default::default(),
            scales: [Scale::Unknown; 2],
            synchronised: [false; 2],
        }
    }

    /// Whether the capture has both SYNs.
    pub fn has_handshake(&self) -> bool {
        self.synchronised == [true; 2]
    }

    /// Which end sent a segment.
    fn end_of(&self, segment: &Segment) -> usize {
        usize::from(self.ends.first() != Some(&segment.source))
    }

    /// Whether a segment is the beginning of another connection between the same ends.
    pub(crate) fn is_over(&self, segment: &Segment) -> bool {
        let flags = segment.header.flags;
        if !flags.contains(Flags::SYN) || flags.contains(Flags::ACK) {
            return false;
        }
        let [way, other] = self.from(self.end_of(segment));
        match way.isn {
            Some(isn) => isn != segment.header.seq,
            // Without a SYN of this end there may be one of the other: both may open (RFC 9293 section 3.5).
            None => !way.sent.is_empty() || !way.acks.is_empty() || !other.acks.is_empty(),
        }
    }

    /// The way from this end, and the other way.
    fn from(&self, end: usize) -> [&Way; 2] {
        let [there, back] = &self.ways;
        if end == 0 { [there, back] } else { [back, there] }
    }

    pub(crate) fn add(&mut self, segment: &Segment) {
        let Segment { at, header, length, has_options, .. } = segment;
        let end = self.end_of(segment);
        self.packets += 1;
        self.last = self.last.max(*at);
        self.first = self.first.min(*at);
        self.cut_options += u64::from(!has_options);
        // A reset is often not of either end, and its numbers may be anything.
        if header.flags.contains(Flags::RST) {
            self.resets += 1;
            return;
        }
        let is_syn = header.flags.contains(Flags::SYN);
        let scale = match header.options.window_scale {
            Some(shift) => Scale::Shift(shift.min(MOST_SHIFT)),
            None if *has_options => Scale::None,
            None => Scale::Unknown,
        };
        if is_syn {
            for (place, value) in self.scales.iter_mut().enumerate() {
                if place == end {
                    *value = scale;
                }
            }
            for (place, value) in self.synchronised.iter_mut().enumerate() {
                *value |= place == end;
            }
        }
        let window = self.window(end, header.window, is_syn);
        let [there, back] = &mut self.ways;
        let (way, other) = if end == 0 { (there, back) } else { (back, there) };
        if is_syn {
            way.isn = Some(header.seq);
        }
        let space = header.segment_len(*length);
        way.sent(*at, header, space, *length);
        if header.flags.contains(Flags::ACK) {
            other.acknowledged(&Arrived { at: *at, header, window, is_bare: space == 0 });
        }
    }

    /// The window in bytes that a segment of this end states (RFC 7323 section 2.2).
    fn window(&self, end: usize, field: u16, is_syn: bool) -> Option<u64> {
        if is_syn {
            return Some(field.into());
        }
        match self.scales {
            [Scale::Shift(first), Scale::Shift(second)] => {
                Some(u64::from(field) << if end == 0 { first } else { second })
            }
            [Scale::None, _] | [_, Scale::None] => Some(field.into()),
            _ => None,
        }
    }
}

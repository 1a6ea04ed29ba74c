//! A connection of a capture: its two ends and its two ways.

use std::fmt;
use std::net::SocketAddr;

use transom_tcp::time::Instant;
use transom_wire::{Flags, Seq, TcpHeader};

use crate::direction::{Arrived, Way};
use crate::segment::Segment;

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
    /// How many of them are left out of the ways, because their numbers lie outside of any possible window.
    pub strays: u64,
    /// How many of them lack options, because the capture kept too little.
    pub cut_options: u64,
    /// The data from the first end to the second, and back.
    pub ways: [Way; 2],
    /// The window scale that each end stated.
    scales: [Scale; 2],
    /// Whether the capture has the SYN of each end.
    pub synchronised: [bool; 2],
    /// For each end, the number that the other end's SYN acknowledged.
    expected: [Option<Seq>; 2],
    /// For each end, other SYNs with which it answered, until one of them is acknowledged.
    others: [Vec<Segment>; 2],
}

/// So many different answers to a SYN are kept.
const MOST_OTHERS: usize = 4;

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

impl Scale {
    /// In a SYN.
    fn of(header: &TcpHeader, has_options: bool) -> Scale {
        match header.options.window_scale {
            Some(shift) => Scale::Shift(shift.min(MOST_SHIFT)),
            None if has_options => Scale::None,
            None => Scale::Unknown,
        }
    }
}

impl fmt::Display for Connection {
    /// A line: its number, its ends, and what they sent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [from, to] = self.ends;
        let [there, back] = self.ways.each_ref().map(|way| &way.counts);
        write!(
            f,
            "{}: {from} – {to}: {} packets in {:.3} s; {} bytes there, {} back; {} segments sent again",
            self.number,
            self.packets,
            self.last.since(self.first).as_secs_f64(),
            there.bytes,
            back.bytes,
            there.retransmissions + back.retransmissions,
        )
    }
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
            strays: 0,
            cut_options: 0,
            ways: Default::default(),
            scales: [Scale::Unknown; 2],
            synchronised: [false; 2],
            expected: [None; 2],
            others: Default::default(),
        }
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
        let end = self.end_of(segment);
        let [way, other] = self.from(end);
        match way.isn {
            Some(isn) => isn != segment.header.seq,
            // The capture has its answer before it.
            None if self.is_expected(end, segment) => false,
            // Without a SYN of this end there may be one of the other: both may open (RFC 9293 section 3.5).
            None => !way.is_unused() || !other.acks.is_empty() || other.is_old(),
        }
    }

    /// Whether the other end has acknowledged this SYN already, perhaps with its data (RFC 7413).
    fn is_expected(&self, end: usize, segment: &Segment) -> bool {
        let acked = if end == 0 { self.expected[0] } else { self.expected[1] };
        acked.is_some_and(|acked| {
            u32::try_from((acked - 1).distance_from(segment.header.seq))
                .is_ok_and(|data| data <= segment.length)
        })
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
        let acks = header.flags.contains(Flags::ACK);
        if !self.is_possible(end, segment) {
            self.strays += 1;
            return;
        }
        if is_syn {
            let [first, second] = &mut self.scales;
            *(if end == 0 { first } else { second }) = Scale::of(header, *has_options);
            let [first, second] = &mut self.synchronised;
            *(if end == 0 { first } else { second }) = true;
        }
        let window = self.window(end, header.window, is_syn);
        let [there, back] = &mut self.ways;
        let (way, other) = if end == 0 { (there, back) } else { (back, there) };
        if is_syn {
            way.begin(header.seq);
            if acks {
                let [first, second] = &mut self.expected;
                *(if end == 0 { second } else { first }) = Some(header.ack);
                other.numbers.expect(header.ack - 1);
            }
        }
        let space = header.segment_len(*length);
        way.sent(*at, header, space, *length);
        if acks {
            other.acknowledged(&Arrived { at: *at, header, window, is_bare: space == 0 });
        }
    }

    /// Whether the numbers of a segment can be of this connection. Remembers what may come true later.
    fn is_possible(&mut self, end: usize, segment: &Segment) -> bool {
        let Segment { header, length, .. } = segment;
        let acks = header.flags.contains(Flags::ACK);
        let [there, back] = &mut self.ways;
        let (way, other) = if end == 0 { (there, back) } else { (back, there) };
        let [ours, theirs] = &mut self.others;
        let (ours, theirs) = if end == 0 { (ours, theirs) } else { (theirs, ours) };
        if header.flags.contains(Flags::SYN) {
            let is_other = way.isn.is_some_and(|isn| isn != header.seq);
            // The caller may believe another answer than the first. Its acknowledgement tells.
            if is_other && way.acks.is_empty() && ours.len() < MOST_OTHERS {
                ours.push(*segment);
            }
            return !is_other && (!acks || other.numbers.can_be_acknowledged(header.ack));
        }
        // Both are asked: each may remember something.
        let space = header.segment_len(*length);
        let is_sent = way.numbers.is_possible(header.seq, space);
        if !acks {
            return is_sent;
        }
        if other.acks.is_empty()
            && let Some(place) = theirs.iter().position(|syn| syn.header.seq + 1 == header.ack)
        {
            // The caller has believed that one.
            let syn = theirs.swap_remove(place);
            *other = Way::default();
            other.begin(syn.header.seq);
            other.sent(syn.at, &syn.header, syn.header.segment_len(syn.length), syn.length);
            let [first, second] = &mut self.scales;
            *(if end == 0 { second } else { first }) = Scale::of(&syn.header, syn.has_options);
        }
        let is_acked = other.numbers.can_be_acknowledged(header.ack);
        is_sent && is_acked
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

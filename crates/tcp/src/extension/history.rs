//! The recent past: acknowledgements that arrived, and messages that were acknowledged.
//!
//! Both lists are bounded, and kept only for an extension that requires them. An extension that needs a longer history keeps its own.

use crate::pos::Pos;
use crate::sent::Sent;
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;
use bitflags::bitflags;
use core::ops::Range;

/// The most acknowledgements and messages that are remembered.
const REMEMBERED: usize = 256;

bitflags! {
    /// The kind of an acknowledgement; often several.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct AckKind: u8 {
        /// It acknowledged new data cumulatively.
        const NEW_DATA = 1 << 0;
        /// A duplicate (RFC 5681 section 2; with SACK, RFC 6675 section 2).
        const DUPLICATE = 1 << 1;
        /// It acknowledged new data selectively.
        const SACK = 1 << 2;
        /// It reported data that arrived twice (RFC 2883).
        const DSACK = 1 << 3;
        /// It changed the peer's window.
        const WINDOW_UPDATE = 1 << 4;
        /// It echoed congestion experienced (RFC 3168).
        const ECN_ECHO = 1 << 5;
    }
}

impl AckKind {
    /// These, or none.
    #[inline]
    pub(crate) const fn only_if(self, condition: bool) -> AckKind {
        AckKind::from_bits_retain(self.bits() * condition as u8)
    }
}

/// An acknowledgement that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// When it arrived.
    pub at: Instant,
    /// The position that it acknowledged cumulatively; SND.UNA for one that was overtaken and only brought SACK blocks.
    pub ack: Pos,
    /// The peer's window with it, in bytes.
    pub window: u64,
    /// Its kind.
    pub kind: AckKind,
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// Bytes newly acknowledged selectively.
    pub sacked: u64,
    /// The data that arrived twice, with [`AckKind::DSACK`]: a spurious retransmission, if it was retransmitted.
    pub duplicated: Option<Range<Pos>>,
    /// The round-trip time it gave.
    pub rtt: Option<Duration>,
}

/// A message: the data of one transmission, and its fate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Its range.
    pub range: Range<Pos>,
    /// When it first left.
    pub first_sent: Instant,
    /// When it last left.
    pub last_sent: Instant,
    /// How many times it left.
    pub transmissions: u16,
    /// Whether it is acknowledged selectively.
    pub sacked: bool,
    /// Whether it is believed lost.
    pub lost: bool,
    /// When it was acknowledged cumulatively, if it was.
    pub acked_at: Option<Instant>,
}

impl Message {
    /// The message for a record of the scoreboard.
    pub(crate) fn of(record: &Sent) -> Message {
        Message {
            range: record.start..record.end,
            first_sent: record.first_sent,
            last_sent: record.last_sent,
            transmissions: record.transmissions,
            sacked: record.status.sacked,
            lost: record.status.lost,
            acked_at: None,
        }
    }

    /// Its own round-trip time, from its last transmission to its cumulative acknowledgement. Only for an acknowledged message that
    /// left once, because otherwise it is unknown which copy was acknowledged (Karn's rule).
    pub fn rtt(&self) -> Option<Duration> {
        let acked_at = self.acked_at.filter(|_| self.transmissions == 1)?;
        Some(acked_at.since(self.last_sent))
    }
}

/// The bounded lists.
#[derive(Debug, Default)]
pub(crate) struct History {
    acks: Option<VecDeque<Ack>>,
    messages: Option<VecDeque<Message>>,
}

impl History {
    /// Keeps the requested lists, and drops the others.
    pub(crate) fn keep(&mut self, acks: bool, messages: bool) {
        fn keep<T>(list: &mut Option<VecDeque<T>>, wanted: bool) {
            *list = list
                .take()
                .or_else(|| Some(VecDeque::with_capacity(REMEMBERED)))
                .filter(|_| wanted);
        }
        keep(&mut self.acks, acks);
        keep(&mut self.messages, messages);
    }

    /// Notes an acknowledgement.
    #[inline]
    pub(crate) fn note_ack(&mut self, ack: Option<&Ack>) {
        if let (Some(acks), Some(ack)) = (&mut self.acks, ack) {
            push(acks, ack.clone());
        }
    }

    /// Some acknowledgements were missed: those before the gap are dropped, so that the last ones are never taken for those that are missing.
    pub(crate) fn forget_acks(&mut self) {
        if let Some(acks) = &mut self.acks {
            acks.clear();
        }
    }

    /// Notes that a message, or the part of it before `upto`, is acknowledged.
    pub(crate) fn note_acknowledged(&mut self, record: &Sent, upto: Pos, now: Instant) {
        if let Some(messages) = &mut self.messages {
            let message = Message::of(record);
            let range = message.range.start..message.range.end.min(upto);
            push(messages, Message { range, acked_at: Some(now), ..message });
        }
    }

    /// The acknowledgements that are remembered, the latest first.
    pub(crate) fn acks(&self) -> impl Iterator<Item = &Ack> {
        self.acks.iter().flat_map(|acks| acks.iter().rev())
    }

    /// The last `count` of them, or as many as are remembered, in the order in which they arrived.
    pub(crate) fn last_acks(&self, count: usize) -> impl Iterator<Item = &Ack> {
        self.acks.iter().flat_map(move |acks| acks.range(acks.len().saturating_sub(count)..))
    }

    /// The acknowledged messages that are remembered, the latest first.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().flat_map(|messages| messages.iter().rev())
    }
}

fn push<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() == REMEMBERED {
        list.pop_front();
    }
    list.push_back(item);
}

//! The occasions that wake an extension, and the capabilities that it may require.

use super::history::Ack;
use crate::pos::Pos;
use crate::time::Instant;
use bitflags::bitflags;
use core::fmt;
use core::ops::Range;

bitflags! {
    /// Events an extension is woken for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct Wake: u8 {
        /// An acknowledgement that acknowledges something new, cumulatively or selectively.
        const ACK = 1 << 0;
        /// A duplicate acknowledgement, or one that says that something arrived twice.
        const DUPLICATE_ACK = 1 << 1;
        /// A round trip ended: everything that was outstanding at its beginning is acknowledged.
        const ROUND = 1 << 2;
        /// Fast recovery begins.
        const LOSS = 1 << 3;
        /// The retransmission timer expired.
        const TIMEOUT = 1 << 4;
        /// Data has left, for the first time or again.
        const SEND = 1 << 5;
        /// The time that the layer [requested](super::Limits::wake_at) has come. Needs no subscription.
        const TIMER = 1 << 6;
        /// New data of the peer has arrived, in order or not.
        const DATA = 1 << 7;
    }
}

bitflags! {
    /// Capabilities that an extension requires.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct Capabilities: u8 {
        /// The list of recent acknowledgements ([`View::acks`](super::View::acks)).
        const ACK_LIST = 1 << 0;
        /// The list of messages acknowledged lately ([`View::past_messages`](super::View::past_messages)); those not yet acknowledged are always there.
        const MESSAGE_LIST = 1 << 1;
        /// Selective acknowledgement agreed with the peer, and with it reports of duplicates.
        const SACK = 1 << 2;
        /// Timestamps agreed with the peer.
        const TIMESTAMPS = 1 << 3;
        /// A controller that counts acknowledged bytes towards its next increase, so that cwnd_cnt matters.
        const CWND_CNT = 1 << 4;
    }
}

impl Wake {
    /// These, or none.
    #[inline]
    pub(crate) const fn only_if(self, condition: bool) -> Wake {
        Wake::from_bits_retain(self.bits() * condition as u8)
    }
}

impl fmt::Display for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bitflags::parser::to_writer(self, f)
    }
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bitflags::parser::to_writer(self, f)
    }
}

/// The occasion on which a layer is woken. A call of the connection is running then: the layer decides, and its limits apply to the rest of that call.
///
/// Several things may happen at once: an acknowledgement that ends a round and begins a recovery is one occasion. Those who only watch take the
/// [events](crate::event::Event) after the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occasion {
    /// When.
    pub now: Instant,
    /// The kinds.
    pub what: Wake,
    /// The acknowledgement, if there was one.
    pub ack: Option<Ack>,
    /// The data that left, for [`Wake::SEND`].
    pub sent: Option<Range<Pos>>,
}

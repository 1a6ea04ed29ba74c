//! What a connection does when its host is short of memory.
//!
//! Whoever holds many connections adds up what they hold ([`Connection::held`]) and says how things stand before each call
//! ([`Connection::set_memory_state`]). The thresholds are the host's business.

use super::Connection;
use crate::pos::Pos;
#[cfg(fixed_units)]
use crate::units::direct::*;

/// A connection takes in, and lets be written, so many bytes however short memory is.
pub const RESERVE: usize = 16 * 1024;

/// How things stand with the memory of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryState {
    /// There is enough.
    #[default]
    Normal,
    /// Buffers grow no further, and data beyond a gap is not taken in.
    Pressure,
    /// Nothing is taken in beyond [`RESERVE`].
    Full,
}

impl Connection {
    /// Bytes of data that the connection holds, received and to be sent.
    #[inline]
    pub fn held(&self) -> usize {
        self.snd.buffer.memory() + self.rcv.ordering.charge()
    }

    /// Says how things stand with the host's memory.
    #[inline]
    pub fn set_memory_state(&mut self, state: MemoryState) {
        self.memory = state;
    }

    /// Drops what has arrived beyond a gap (RFC 2018 section 8): the peer sends it again. Returns how many bytes those were.
    pub fn prune_out_of_order(&mut self) -> usize {
        if !self.rcv.ordering.has_gap() {
            return 0;
        }
        let before = self.rcv.ordering.charge();
        self.rcv.ordering.prune();
        // A FIN beyond the gap has to come again too.
        self.rcv.fin = self.rcv.fin.filter(|&fin| fin <= self.rcv.next);
        before.saturating_sub(self.rcv.ordering.charge())
    }

    /// Up to where data from `at` to `end` is taken in.
    pub(super) fn memory_takes_upto(&self, at: Pos, end: Pos) -> Pos {
        if at > self.rcv.next {
            return at;
        }
        if self.memory == super::MemoryState::Pressure {
            return end;
        }
        let room = RESERVE.saturating_sub(self.rcv.ordering.charge());
        end.min(self.rcv.next + room as u64)
    }
}

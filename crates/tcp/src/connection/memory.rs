//! The behaviour of a connection when its host is short of memory.
//!
//! The owner of many connections adds up their memory ([`Connection::held`]) and sets the state before each call
//! ([`Connection::swap_memory`]). The owner decides the thresholds.

use super::Connection;
use crate::ordering::Ordering as _;
use crate::pos::Pos;
use crate::send_buffer::SpareBlocks;

/// The bytes that a connection accepts from the network and from the application even without memory.
pub const RESERVE: usize = 16 * 1024;

/// The state of a host's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryState {
    /// There is enough.
    #[default]
    Normal,
    /// Buffers grow no further, and data beyond a gap is not taken in.
    Pressure,
    /// Nothing is accepted beyond [`RESERVE`].
    Full,
}

impl Connection {
    /// Bytes of data that the connection holds, received and to be sent.
    #[inline]
    pub fn held(&self) -> usize {
        self.snd.buffer.memory() + self.rcv.ordering.charge()
    }

    /// Takes the state of the host's memory, and exchanges the free blocks of the send buffer for others: a host lends its own to the connection that it
    /// calls, and takes them back by the same call.
    #[inline]
    pub fn swap_memory(&mut self, state: MemoryState, spare: &mut SpareBlocks) {
        self.memory = state;
        self.snd.buffer.swap_spare(spare);
    }

    /// Drops what has arrived beyond a gap (RFC 2018 section 8): the peer sends it again. Returns how many bytes those were.
    pub fn prune_out_of_order(&mut self) -> usize {
        if !self.rcv.ordering.has_gap() {
            return 0;
        }
        let before = self.rcv.ordering.charge();
        self.rcv.ordering.prune();
        // A FIN beyond the gap has to come again too.
        self.rcv.fin = self.rcv.fin.filter(|&fin| fin <= self.rcv.next());
        before.saturating_sub(self.rcv.ordering.charge())
    }

    /// The end of the data from `at` to `end` that is accepted.
    pub(super) fn memory_takes_upto(&self, at: Pos, end: Pos) -> Pos {
        if at > self.rcv.next() {
            return at;
        }
        if self.memory == super::MemoryState::Pressure {
            return end;
        }
        let room = RESERVE.saturating_sub(self.rcv.ordering.charge());
        end.min(self.rcv.next() + room as u64)
    }
}

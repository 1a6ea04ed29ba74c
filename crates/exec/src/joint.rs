//! Two connections joined to one: what one end sends, the other end receives, with ends, resets and urgent data.
//!
//! *Inner* is the connection to the program's kernel socket, *outer* the one to the peer. Neither has a buffer of its own here: bytes lie in the receive buffer of one
//! connection until the send buffer of the other has room. So the program's window follows the rate of the outer connection.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use transom_net::Bytes;

use crate::end::{End, Failed, Look, Returned};

/// The most bytes that are carried in a turn, each way. Between turns other connections run, and the devices are read.
const MAX_BYTES_PER_TURN: usize = 512 * 1024;
/// The size of the memory that small data passes through.
pub(crate) const SCRATCH_LEN: usize = 64 * 1024;
/// After a reset by the peer, the program may take this long to make room for the data before it. A program that reads nothing is told then all the same.
const LAST_DATA: Duration = Duration::from_secs(60);
/// How long after each other is looked whether it has.
const LAST_DATA_STEP: Duration = Duration::from_millis(100);

/// One direction.
#[derive(Debug, Default)]
struct Way {
    /// Taken from one end, and not yet taken by the other.
    pending: VecDeque<Bytes>,
    /// An urgent byte that comes after them.
    urgent: Option<u8>,
    /// Nothing more will come.
    ended: bool,
    /// The other end was told so.
    shut: bool,
}

/// Which end of a direction has failed.
enum Broken {
    From,
    To,
}

impl Way {
    /// Hands on what was taken before. Whether all of it was taken.
    fn flush(&mut self, to: &mut End, carried: &mut usize) -> Result<bool, Failed> {
        if !self.pending.is_empty() {
            *carried += to.write_pieces(&mut self.pending)?;
            if !self.pending.is_empty() {
                return Ok(false);
            }
        }
        if let Some(byte) = self.urgent {
            if !to.write_urgent(byte)? {
                return Ok(false);
            }
            self.urgent = None;
        }
        Ok(true)
    }

    /// Carries what there is. Whether there may be more at once.
    fn carry(
        &mut self,
        from: &mut End,
        to: &mut End,
        scratch: &mut [u8],
        returned: &Returned,
    ) -> Result<bool, Broken> {
        let mut carried = 0;
        while self.flush(to, &mut carried).map_err(|Failed| Broken::To)? {
            if self.ended {
                if !self.shut {
                    self.shut = true;
                    to.shut_down_writes();
                }
                return Ok(false);
            }
            if carried >= MAX_BYTES_PER_TURN {
                return Ok(true);
            }
            match from.look(scratch) {
                Look::Bytes { len, is_all } => {
                    let bytes = scratch.get(..len).unwrap_or_default();
                    let written = to.write(bytes).map_err(|Failed| Broken::To)?;
                    carried += written;
                    match bytes.get(written..).filter(|rest| !rest.is_empty()) {
                        Some(rest) => self.pending.push_back(Bytes::copy_from_slice(rest)),
                        // To look once more costs as much as this look did.
                        None if is_all => return Ok(false),
                        None => {}
                    }
                }
                Look::Large => from.take_pieces(MAX_BYTES_PER_TURN, returned, &mut self.pending),
                Look::Urgent(byte) => self.urgent = Some(byte),
                Look::End => self.ended = true,
                Look::Nothing => return Ok(false),
                // What was carried leaves before the other end hears of it.
                Look::Failed if carried > 0 => return Ok(true),
                Look::Failed => return Err(Broken::From),
            }
        }
        Ok(false)
    }

    /// Whether the last turn did not end with a look at the end that it comes from.
    fn has_not_looked(&self) -> bool {
        self.ended || !self.pending.is_empty() || self.urgent.is_some()
    }
}

/// The state of two joined connections after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing can be carried before the next event.
    Idle,
    /// The same, and the joint has to be looked at again at this time.
    Until(Instant),
    /// More can be carried at once.
    More,
    /// Both have ended, and can be dropped.
    Over,
}

/// One of two joined connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Inner,
    Outer,
}

impl Side {
    pub(crate) fn other(self) -> Side {
        match self {
            Side::Inner => Side::Outer,
            Side::Outer => Side::Inner,
        }
    }
}

/// Two connections that are one.
#[derive(Debug)]
pub(crate) struct Joint {
    pub(crate) inner: End,
    pub(crate) outer: End,
    /// From the program to the peer.
    up: Way,
    /// From the peer to the program.
    down: Way,
    /// Whether something has happened that concerns a direction since its last turn.
    up_is_due: bool,
    down_is_due: bool,
    /// The program has no descriptor of its socket any more, and the kernel has forgotten it.
    program_gone: bool,
    /// The outer connection has failed; the program is given the data that came before, until then.
    last_data_until: Option<Instant>,
}

impl Joint {
    pub(crate) fn new(inner: End, outer: End) -> Self {
        Joint {
            inner,
            outer,
            up: Way::default(),
            down: Way::default(),
            up_is_due: true,
            down_is_due: true,
            program_gone: false,
            last_data_until: None,
        }
    }

    /// Notes that an end is readable or writable.
    pub(crate) fn note(&mut self, side: Side, readable: bool, writable: bool) {
        let (taking, giving) = match side {
            Side::Inner => (&mut self.up_is_due, &mut self.down_is_due),
            Side::Outer => (&mut self.down_is_due, &mut self.up_is_due),
        };
        *taking |= readable;
        *giving |= writable;
    }

    /// Notes an event of the host's kernel at the outer end.
    pub(crate) fn note_kernel(&mut self, flags: epoll::EventFlags) {
        if let End::Kernel(kernel) = &mut self.outer {
            kernel.note(flags);
            self.note(Side::Outer, true, true);
        }
    }

    /// Notes that the program has no descriptor of its socket any more.
    pub(crate) fn lose_program(&mut self) {
        self.program_gone = true;
        self.up_is_due = true;
    }

    /// Carries as much as possible now.
    pub(crate) fn turn(&mut self, scratch: &mut [u8], returned: &Returned) -> Turn {
        if let Some(until) = self.last_data_until {
            return self.give_last_data(until, scratch, returned);
        }
        let (inner, outer) = (&mut self.inner, &mut self.outer);
        let up = match self.up_is_due {
            true => self.up.carry(inner, outer, scratch, returned),
            false => Ok(false),
        };
        let down = match self.down_is_due && up.is_ok() && !self.program_gone {
            true => self.down.carry(outer, inner, scratch, returned),
            false => Ok(false),
        };
        (self.up_is_due, self.down_is_due) = (matches!(up, Ok(true)), matches!(down, Ok(true)));
        let inner_failed = matches!(up, Err(Broken::From))
            || matches!(down, Err(Broken::To))
            || self.up.has_not_looked() && inner.has_failed() && !self.program_gone;
        let outer_failed = matches!(up, Err(Broken::To))
            || matches!(down, Err(Broken::From))
            || (self.down.has_not_looked() || self.program_gone) && outer.has_failed();
        if inner_failed {
            outer.reset_on_drop();
            return Turn::Over;
        }
        if outer_failed {
            let until = Instant::now() + LAST_DATA;
            self.last_data_until = Some(until);
            return self.give_last_data(until, scratch, returned);
        }
        if self.up.shut && (self.down.shut || self.program_gone) {
            return Turn::Over;
        }
        match (up, down) {
            (Ok(false), Ok(false)) => Turn::Idle,
            _ => Turn::More,
        }
    }

    /// The peer has reset the connection. The program gets what came before, and then the reset.
    fn give_last_data(&mut self, until: Instant, scratch: &mut [u8], returned: &Returned) -> Turn {
        let (inner, outer) = (&mut self.inner, &mut self.outer);
        // It ends where the outer connection has failed.
        let given = self.down.carry(outer, inner, scratch, returned);
        let more = matches!(given, Ok(true));
        let waits = !self.down.pending.is_empty() || self.down.urgent.is_some();
        let goes_on = !matches!(given, Err(Broken::To)) && !self.program_gone;
        let delivered = !waits && !more && inner.has_sent_all();
        if goes_on && !delivered && !inner.has_failed() && Instant::now() < until {
            // Room for what was written already is not told.
            let again = (Instant::now() + LAST_DATA_STEP).min(until);
            return if more { Turn::More } else { Turn::Until(again) };
        }
        inner.reset_on_drop();
        Turn::Over
    }
}

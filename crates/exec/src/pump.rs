//! Bytes between our end of a pair and the outer connection.
//!
//! Each of the four places where bytes come from or go to is remembered as ready until it says "not now"; then an event says when it is again.
//! Data that was taken and cannot be passed on waits in a buffer. The buffer holds one piece, so that the sender is held back.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::OwnedFd;

use libc::c_int;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use transom_net::Chunk;

use crate::outer::{Moved, Outer, Read};
use crate::pair;

/// The most bytes, each way, before other sockets have their turn. The device is asked for acknowledgements then, too.
const TURN: usize = 512 * 1024;
/// Pieces of this size are moved to where they are sent from without a copy. For smaller ones that would take too much memory.
const BULK: usize = 16 * 1024;
/// So many pieces are given at once at most.
const MOST_PIECES: usize = 64;
/// The size of the memory that bytes pass through.
pub(crate) const SCRATCH: usize = 256 * 1024;

/// Data taken from one side and not yet given to the other.
#[derive(Debug, Default)]
struct Rest {
    bytes: Vec<u8>,
    given: usize,
}

impl Rest {
    fn left(&self) -> &[u8] {
        self.bytes.get(self.given..).unwrap_or_default()
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.given = 0;
    }

    fn give(&mut self, count: usize) {
        self.given += count;
        if self.given >= self.bytes.len() {
            *self = Rest::default();
        }
    }
}

/// A connection that carries data.
#[derive(Debug)]
pub(crate) struct Pump {
    pub(crate) outer: Outer,
    /// From the program to the peer.
    up: Rest,
    /// From the peer to the program.
    down: Rest,
    /// The same, of large pieces: they lie where they arrived, and come before it.
    pieces: VecDeque<Chunk>,
    pub(crate) ready: Ready,
    /// The program's end is closed.
    pub(crate) hung_up: bool,
    /// All that the program wrote was passed on, and its end too.
    up_finished: bool,
    /// The program has written all it will.
    up_ended: bool,
    /// The peer's end was passed on.
    down_finished: bool,
    /// The program does not read any more: what comes is dropped, as TCP does.
    deaf: bool,
    /// The program has closed its end and left something unread. The kernel says so once, to whichever call is the first.
    abandoned: bool,
    /// The program has written a lot at once.
    bulk: bool,
}

/// Which of the four has not yet said "not now".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) program_readable: bool,
    pub(crate) program_writable: bool,
    pub(crate) outer_readable: bool,
    pub(crate) outer_writable: bool,
}

/// How things stand after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// There is nothing to do before an event.
    Idle,
    /// There is more to do.
    More,
    /// Both are done with each other.
    Closed,
    /// The program closed and left something unread: TCP resets the connection then.
    Abandoned,
    /// The connection failed.
    Failed(c_int),
}

impl Pump {
    pub(crate) fn new(outer: Outer) -> Self {
        let ready = Ready {
            program_readable: true,
            program_writable: true,
            outer_readable: true,
            outer_writable: true,
        };
        Pump {
            outer,
            up: Rest::default(),
            down: Rest::default(),
            pieces: VecDeque::new(),
            ready,
            hung_up: false,
            up_finished: false,
            up_ended: false,
            down_finished: false,
            deaf: false,
            abandoned: false,
            bulk: false,
        }
    }

    /// Whether the program has to read before there is anything to do.
    pub(crate) fn waits_for_room(&self) -> bool {
        !self.ready.program_writable && !self.deaf && !self.hung_up
    }

    /// Carries as much as possible now.
    pub(crate) fn turn(&mut self, ours: &OwnedFd, scratch: &mut [u8]) -> Turn {
        let down = if self.hung_up { Ok(false) } else { self.turn_down(ours, scratch) };
        let up = self.turn_up(ours, scratch);
        match (up, down) {
            (Err(turn), _) | (_, Err(turn)) => turn,
            _ if self.hung_up && self.up_finished => Turn::Closed,
            (Ok(up), Ok(down)) if up || down => Turn::More,
            _ => Turn::Idle,
        }
    }

    /// Whether there is more to do.
    fn turn_up(&mut self, ours: &OwnedFd, scratch: &mut [u8]) -> Result<bool, Turn> {
        let mut carried = 0;
        while !self.up_finished && carried < TURN {
            if !self.up.left().is_empty() {
                if !self.ready.outer_writable {
                    return Ok(false);
                }
                let written = self.outer.write(self.up.left()).map_err(Turn::Failed)?;
                self.ready.outer_writable = written > 0;
                self.up.give(written);
                carried += written;
                continue;
            }
            if self.up_ended && self.abandoned {
                return Err(Turn::Abandoned);
            }
            if self.up_ended {
                self.outer.finish();
                self.up_finished = true;
                return Ok(false);
            }
            if !self.ready.program_readable || !self.ready.outer_writable {
                return Ok(false);
            }
            if self.bulk {
                match self.outer.take_from(ours) {
                    Moved::Bytes(n) => {
                        carried += n;
                        continue;
                    }
                    Moved::Full => {
                        self.ready.outer_writable = false;
                        continue;
                    }
                    Moved::Later => self.ready.program_readable = false,
                    Moved::Broken => self.abandoned = true,
                    // The ordinary way finds the same.
                    Moved::End | Moved::NotHere => {}
                }
                self.bulk = false;
                continue;
            }
            let room = match &self.outer {
                Outer::Transom(_) => scratch.len().min(BULK),
                Outer::Kernel(_) => scratch.len(),
            };
            let small = scratch.get_mut(..room).unwrap_or_default();
            match recv(ours, small, RecvFlags::DONTWAIT) {
                // The event of a close may come later than the end. A close may have to reset the connection, so the caller decides first.
                Ok((0, _)) if !self.hung_up && pair::is_closed(ours) => {
                    self.hung_up = true;
                    return Ok(true);
                }
                Ok((0, _)) => self.up_ended = true,
                Ok((n, _)) => {
                    self.bulk = n == room && matches!(self.outer, Outer::Transom(_));
                    let bytes = scratch.get(..n).unwrap_or_default();
                    let written = self.outer.write(bytes).map_err(Turn::Failed)?;
                    carried += written;
                    if written < n {
                        self.ready.outer_writable = written > 0;
                        self.up.keep(bytes.get(written..).unwrap_or_default());
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.ready.program_readable = false,
                Err(_) => return Err(Turn::Abandoned),
            }
        }
        Ok(!self.up_finished)
    }

    fn turn_down(&mut self, ours: &OwnedFd, scratch: &mut [u8]) -> Result<bool, Turn> {
        let mut carried = 0;
        while !self.down_finished && carried < TURN {
            if !self.pieces.is_empty() {
                if !self.ready.program_writable && !self.deaf {
                    return Ok(false);
                }
                carried += self.give_pieces(ours);
                continue;
            }
            if !self.down.left().is_empty() {
                if !self.ready.program_writable {
                    return Ok(false);
                }
                let given = self.give(ours, None);
                carried += given;
                continue;
            }
            if !self.ready.outer_readable || !(self.ready.program_writable || self.deaf) {
                return Ok(false);
            }
            if !self.deaf {
                self.outer.take_pieces(&mut self.pieces, TURN);
                if !self.pieces.is_empty() {
                    continue;
                }
            }
            match self.outer.read(scratch) {
                Read::Bytes(n, more) => {
                    self.ready.outer_readable = more;
                    let bytes = scratch.get(..n).unwrap_or_default();
                    carried += self.give(ours, Some(bytes));
                }
                Read::Later => self.ready.outer_readable = false,
                Read::End => {
                    // The program finds the end behind what lies in the pair.
                    let _ = rustix::net::shutdown(ours, rustix::net::Shutdown::Write);
                    self.down_finished = true;
                }
                Read::Failed(error) => return Err(Turn::Failed(error)),
            }
        }
        Ok(!self.down_finished)
    }

    /// Gives the program its pieces where they lie, and all at once, as each call wakes the program. Returns the number of bytes given.
    fn give_pieces(&mut self, ours: &OwnedFd) -> usize {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        if self.deaf {
            return self.pieces.drain(..).map(|piece| piece.len()).sum();
        }
        let slices: Vec<IoSlice<'_>> =
            self.pieces.iter().take(MOST_PIECES).map(|piece| IoSlice::new(piece)).collect();
        let all: usize = slices.iter().map(|slice| slice.len()).sum();
        let given = match sendmsg(ours, &slices, &mut SendAncillaryBuffer::default(), flags) {
            Ok(given) => given,
            Err(Errno::INTR) => return 0,
            Err(Errno::AGAIN) => 0,
            Err(error) => {
                self.refuse(error);
                return 0;
            }
        };
        self.ready.program_writable = given == all;
        let mut left = given;
        while let Some(piece) = self.pieces.front_mut() {
            if piece.len() > left {
                piece.advance(left);
                break;
            }
            left -= piece.len();
            self.pieces.pop_front();
        }
        given
    }

    /// The program's end takes no more.
    fn refuse(&mut self, error: Errno) {
        self.deaf = true;
        self.abandoned |= error == Errno::CONNRESET;
    }

    /// Gives the program `fresh` bytes, or those that waited for it. Returns the number of bytes given.
    fn give(&mut self, ours: &OwnedFd, fresh: Option<&[u8]>) -> usize {
        let all = fresh.unwrap_or(self.down.left()).len();
        let given = loop {
            if self.deaf {
                break all;
            }
            let bytes = fresh.unwrap_or(self.down.left());
            match send(ours, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(n) => break n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break 0,
                Err(error) => self.refuse(error),
            }
        };
        self.ready.program_writable = given == all;
        match fresh {
            Some(bytes) if given < all => self.down.keep(bytes.get(given..).unwrap_or_default()),
            Some(_) => {}
            None => self.down.give(given),
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    /// A pump between a pair and a connection of the kernel's, with the program's end and the peer.
    fn pump() -> (Pump, OwnedFd, OwnedFd, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let outer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        outer.set_nonblocking(true).unwrap();
        let (peer, _) = listener.accept().unwrap();
        let (ours, theirs) = pair::new(100_000).unwrap();
        (Pump::new(Outer::Kernel(outer)), ours, theirs, peer)
    }

    /// Turns until nothing changes.
    fn turns(pump: &mut Pump, ours: &OwnedFd) -> Turn {
        let mut scratch = vec![0; SCRATCH];
        loop {
            pump.ready.program_readable = true;
            match pump.turn(ours, &mut scratch) {
                Turn::More => {}
                other => return other,
            }
        }
    }

    /// The kernel says only once that the program has left something unread: to whichever call is the first. If that was a write, reading finds an
    /// end like any other.
    #[test]
    fn a_reset_that_a_write_heard_of_is_not_forgotten() {
        for (heard, expected) in [(Errno::CONNRESET, Turn::Abandoned), (Errno::PIPE, Turn::Closed)]
        {
            let (mut pump, ours, theirs, mut peer) = pump();
            assert_eq!(send(&theirs, b"last words", SendFlags::empty()), Ok(10));
            pump.refuse(heard);
            drop(theirs);
            assert_eq!(turns(&mut pump, &ours), expected);
            // Data written before is passed on all the same.
            let mut got = [0; 10];
            peer.read_exact(&mut got).unwrap();
            assert_eq!(&got, b"last words");
        }
    }

    #[test]
    fn a_reset_that_a_read_hears_of_abandons_the_connection() {
        let (mut pump, ours, theirs, _peer) = pump();
        assert_eq!(send(&ours, b"unread", SendFlags::empty()), Ok(6));
        drop(theirs);
        assert_eq!(turns(&mut pump, &ours), Turn::Abandoned);
    }
}

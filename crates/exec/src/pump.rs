//! Carries bytes between our end of a pair and the outer connection.
//!
//! Each side can be readable and writable: four flags ([`Ready`]). A call that would block clears a flag, and an event sets it again.
//! Bytes that one side gave and the other does not take yet wait in a buffer. While it holds bytes, nothing more is read, so the sender has to wait.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::OwnedFd;

use libc::c_int;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use transom_net::Chunk;

use crate::outer::{MoveOutcome, OuterConnection, ReadOutcome};
use crate::pair;

/// The most bytes that one socket carries in a turn, each way. Between turns other sockets run, and the device is read.
const MAX_BYTES_PER_TURN: usize = 512 * 1024;
/// After a read of this size, data goes from the pair into the send buffer without a copy. For smaller reads that would take too much memory.
const MIN_UNCOPIED: usize = 16 * 1024;
/// The most pieces in one `sendmsg`.
const MAX_PIECES: usize = 64;
/// The size of the memory that bytes pass through.
pub(crate) const SCRATCH_LEN: usize = 256 * 1024;

/// Bytes that were read from one side, and that the other side has not taken yet.
#[derive(Debug, Default)]
struct UnsentBytes {
    bytes: Vec<u8>,
    sent: usize,
}

impl UnsentBytes {
    fn unsent(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }

    fn store(&mut self, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.sent = 0;
    }

    fn mark_sent(&mut self, count: usize) {
        self.sent += count;
        if self.sent >= self.bytes.len() {
            *self = UnsentBytes::default();
        }
    }
}

/// A connection that carries data.
#[derive(Debug)]
pub(crate) struct Pump {
    pub(crate) outer: OuterConnection,
    /// From the program to the peer.
    to_peer: UnsentBytes,
    /// From the peer to the program.
    to_program: UnsentBytes,
    /// Large pieces from the peer, in the buffers in which they arrived. The program gets them before `to_program`.
    pieces: VecDeque<Chunk>,
    pub(crate) ready: Ready,
    /// The program has closed its end.
    pub(crate) hung_up: bool,
    /// The peer was sent all that the program wrote, and the end.
    outer_shut_down: bool,
    /// The program will write no more.
    program_ended: bool,
    /// The program was shown the end of the peer's data.
    peer_end_relayed: bool,
    /// The program does not read any more. Later data from the peer is dropped, as TCP does.
    program_stopped_reading: bool,
    /// The program has closed its end with unread data in it. The kernel reports that once, to the first call.
    program_reset: bool,
    /// The last read was large: the next data goes into the send buffer without a copy.
    move_without_copy: bool,
}

/// The directions in which a call may succeed: none has reported that it would block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) program_readable: bool,
    pub(crate) program_writable: bool,
    pub(crate) outer_readable: bool,
    pub(crate) outer_writable: bool,
}

/// The state of the connection after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing can be carried before the next event.
    Idle,
    /// More can be carried at once.
    More,
    /// Both sides have ended.
    Closed,
    /// The program closed and left something unread: TCP resets the connection then.
    Abandoned,
    /// The connection failed.
    Failed(c_int),
}

impl Pump {
    pub(crate) fn new(outer: OuterConnection) -> Self {
        let ready = Ready {
            program_readable: true,
            program_writable: true,
            outer_readable: true,
            outer_writable: true,
        };
        Pump {
            outer,
            to_peer: UnsentBytes::default(),
            to_program: UnsentBytes::default(),
            pieces: VecDeque::new(),
            ready,
            hung_up: false,
            outer_shut_down: false,
            program_ended: false,
            peer_end_relayed: false,
            program_stopped_reading: false,
            program_reset: false,
            move_without_copy: false,
        }
    }

    /// Whether the program has to read before there is anything to do.
    pub(crate) fn waits_for_program_to_read(&self) -> bool {
        !self.ready.program_writable && !self.program_stopped_reading && !self.hung_up
    }

    /// Carries as much as possible now.
    pub(crate) fn turn(&mut self, ours: &OwnedFd, scratch: &mut [u8]) -> Turn {
        let down = if self.hung_up { Ok(false) } else { self.carry_to_program(ours, scratch) };
        let up = self.carry_to_peer(ours, scratch);
        match (up, down) {
            (Err(turn), _) | (_, Err(turn)) => turn,
            _ if self.hung_up && self.outer_shut_down => Turn::Closed,
            (Ok(up), Ok(down)) if up || down => Turn::More,
            _ => Turn::Idle,
        }
    }

    /// Whether there is more to do.
    fn carry_to_peer(&mut self, ours: &OwnedFd, scratch: &mut [u8]) -> Result<bool, Turn> {
        let mut carried = 0;
        while !self.outer_shut_down && carried < MAX_BYTES_PER_TURN {
            if !self.to_peer.unsent().is_empty() {
                if !self.ready.outer_writable {
                    return Ok(false);
                }
                let written = self.outer.write(self.to_peer.unsent()).map_err(Turn::Failed)?;
                self.ready.outer_writable = written > 0;
                self.to_peer.mark_sent(written);
                carried += written;
                continue;
            }
            if self.program_ended && self.program_reset {
                return Err(Turn::Abandoned);
            }
            if self.program_ended {
                self.outer.shut_down_writes();
                self.outer_shut_down = true;
                return Ok(false);
            }
            if !self.ready.program_readable || !self.ready.outer_writable {
                return Ok(false);
            }
            if self.move_without_copy {
                match self.outer.move_from_pair(ours) {
                    MoveOutcome::Bytes(n) => {
                        carried += n;
                        continue;
                    }
                    MoveOutcome::NoRoom => {
                        self.ready.outer_writable = false;
                        continue;
                    }
                    MoveOutcome::NoData => self.ready.program_readable = false,
                    MoveOutcome::Reset => self.program_reset = true,
                    // The ordinary read below handles these.
                    MoveOutcome::End | MoveOutcome::Unsupported => {}
                }
                self.move_without_copy = false;
                continue;
            }
            let room = match &self.outer {
                OuterConnection::Transom(_) => scratch.len().min(MIN_UNCOPIED),
                OuterConnection::Kernel(_) => scratch.len(),
            };
            let small = scratch.get_mut(..room).unwrap_or_default();
            match recv(ours, small, RecvFlags::DONTWAIT) {
                // The event of a close may come later than the end. A close may have to reset the connection, so the caller decides first.
                Ok((0, _)) if !self.hung_up && pair::is_closed(ours) => {
                    self.hung_up = true;
                    return Ok(true);
                }
                Ok((0, _)) => self.program_ended = true,
                Ok((n, _)) => {
                    self.move_without_copy =
                        n == room && matches!(self.outer, OuterConnection::Transom(_));
                    let bytes = scratch.get(..n).unwrap_or_default();
                    let written = self.outer.write(bytes).map_err(Turn::Failed)?;
                    carried += written;
                    if written < n {
                        self.ready.outer_writable = written > 0;
                        self.to_peer.store(bytes.get(written..).unwrap_or_default());
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.ready.program_readable = false,
                Err(_) => return Err(Turn::Abandoned),
            }
        }
        Ok(!self.outer_shut_down)
    }

    fn carry_to_program(&mut self, ours: &OwnedFd, scratch: &mut [u8]) -> Result<bool, Turn> {
        let mut carried = 0;
        while !self.peer_end_relayed && carried < MAX_BYTES_PER_TURN {
            if !self.pieces.is_empty() {
                if !self.ready.program_writable && !self.program_stopped_reading {
                    return Ok(false);
                }
                carried += self.send_pieces(ours);
                continue;
            }
            if !self.to_program.unsent().is_empty() {
                if !self.ready.program_writable {
                    return Ok(false);
                }
                let sent = self.send_to_program(ours, None);
                carried += sent;
                continue;
            }
            if !self.ready.outer_readable
                || !(self.ready.program_writable || self.program_stopped_reading)
            {
                return Ok(false);
            }
            if !self.program_stopped_reading {
                self.outer.take_pieces(&mut self.pieces, MAX_BYTES_PER_TURN);
                if !self.pieces.is_empty() {
                    continue;
                }
            }
            match self.outer.read(scratch) {
                ReadOutcome::Bytes(n, more) => {
                    self.ready.outer_readable = more;
                    let bytes = scratch.get(..n).unwrap_or_default();
                    carried += self.send_to_program(ours, Some(bytes));
                }
                ReadOutcome::WouldBlock => self.ready.outer_readable = false,
                ReadOutcome::End => {
                    // The program finds the end behind what lies in the pair.
                    let _ = rustix::net::shutdown(ours, rustix::net::Shutdown::Write);
                    self.peer_end_relayed = true;
                }
                ReadOutcome::Failed(error) => return Err(Turn::Failed(error)),
            }
        }
        Ok(!self.peer_end_relayed)
    }

    /// Gives the program its pieces where they lie, and all at once, as each call wakes the program. Returns the number of bytes sent.
    fn send_pieces(&mut self, ours: &OwnedFd) -> usize {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        if self.program_stopped_reading {
            return self.pieces.drain(..).map(|piece| piece.len()).sum();
        }
        let slices: Vec<IoSlice<'_>> =
            self.pieces.iter().take(MAX_PIECES).map(|piece| IoSlice::new(piece)).collect();
        let total: usize = slices.iter().map(|slice| slice.len()).sum();
        let sent = match sendmsg(ours, &slices, &mut SendAncillaryBuffer::default(), flags) {
            Ok(sent) => sent,
            Err(Errno::INTR) => return 0,
            Err(Errno::AGAIN) => 0,
            Err(error) => {
                self.note_send_error(error);
                return 0;
            }
        };
        self.ready.program_writable = sent == total;
        let mut left = sent;
        while let Some(piece) = self.pieces.front_mut() {
            if piece.len() > left {
                piece.advance(left);
                break;
            }
            left -= piece.len();
            self.pieces.pop_front();
        }
        sent
    }

    /// The program's end takes no more.
    fn note_send_error(&mut self, error: Errno) {
        self.program_stopped_reading = true;
        self.program_reset |= error == Errno::CONNRESET;
    }

    /// Gives the program `fresh` bytes, or those that waited for it. Returns the number of bytes sent.
    fn send_to_program(&mut self, ours: &OwnedFd, fresh: Option<&[u8]>) -> usize {
        let total = fresh.unwrap_or(self.to_program.unsent()).len();
        let sent = loop {
            if self.program_stopped_reading {
                break total;
            }
            let bytes = fresh.unwrap_or(self.to_program.unsent());
            match send(ours, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(n) => break n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break 0,
                Err(error) => self.note_send_error(error),
            }
        };
        self.ready.program_writable = sent == total;
        match fresh {
            Some(bytes) if sent < total => {
                self.to_program.store(bytes.get(sent..).unwrap_or_default())
            }
            Some(_) => {}
            None => self.to_program.mark_sent(sent),
        }
        sent
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
        (Pump::new(OuterConnection::Kernel(outer)), ours, theirs, peer)
    }

    /// Turns until nothing changes.
    fn turns(pump: &mut Pump, ours: &OwnedFd) -> Turn {
        let mut scratch = vec![0; SCRATCH_LEN];
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
    fn a_reset_that_a_write_reported_is_remembered() {
        for (write_error, expected) in
            [(Errno::CONNRESET, Turn::Abandoned), (Errno::PIPE, Turn::Closed)]
        {
            let (mut pump, ours, theirs, mut peer) = pump();
            assert_eq!(send(&theirs, b"last words", SendFlags::empty()), Ok(10));
            pump.note_send_error(write_error);
            drop(theirs);
            assert_eq!(turns(&mut pump, &ours), expected);
            // Data written before is passed on all the same.
            let mut got = [0; 10];
            peer.read_exact(&mut got).unwrap();
            assert_eq!(&got, b"last words");
        }
    }

    #[test]
    fn a_reset_that_a_read_reports_abandons_the_connection() {
        let (mut pump, ours, theirs, _peer) = pump();
        assert_eq!(send(&ours, b"unread", SendFlags::empty()), Ok(6));
        drop(theirs);
        assert_eq!(turns(&mut pump, &ours), Turn::Abandoned);
    }
}

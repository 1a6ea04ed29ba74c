//! Readiness: what could be done without waiting, by the rules of Linux' `tcp_poll`.

use crate::drive::Sockets;
use crate::socket::{Role, Stream};
use libc::{
    POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLPRI, POLLRDHUP, POLLRDNORM, POLLWRNORM,
};
use transom_tcp::State;

impl Sockets<'_> {
    /// All events that hold for a descriptor.
    pub fn readiness(&self, fd: i32) -> i16 {
        let Ok(socket) = self.table.get(fd) else { return POLLNVAL };
        match &socket.role {
            // Linux finds an unconnected socket writable, and hung up.
            Role::Fresh => POLLHUP | POLLOUT | POLLWRNORM,
            Role::Listener { id, .. } => {
                if self.stack.acceptable(*id) > 0 {
                    POLLIN | POLLRDNORM
                } else {
                    0
                }
            }
            Role::Stream(stream) => self.stream_readiness(fd, stream),
        }
    }

    fn stream_readiness(&self, fd: i32, stream: &Stream) -> i16 {
        let state = self.state(stream);
        let closed = state == State::Closed;
        let no_more_in = self.at_end(stream);
        let no_more_out = closed || stream.shut_write;
        let mut ready = 0;
        if closed || (no_more_in && no_more_out) {
            ready |= POLLHUP;
        }
        if no_more_in {
            ready |= POLLIN | POLLRDNORM | POLLRDHUP;
        }
        if !self.is_in_handshake(stream) {
            if self.has_ordinary(fd, stream) && self.has_enough(stream) {
                ready |= POLLIN | POLLRDNORM;
            }
            if no_more_out || self.has_room(stream) {
                ready |= POLLOUT | POLLWRNORM;
            }
            if self.has_urgent(fd, stream) {
                ready |= POLLPRI;
            }
        }
        if self.pending_error(stream).is_some() {
            ready |= POLLERR;
        }
        ready
    }

    /// A third of the buffer has to be free, so that a writer is not woken for a few bytes.
    fn has_room(&self, stream: &Stream) -> bool {
        self.connection(stream).is_some_and(|connection| {
            let info = connection.info(self.now());
            let free = info.snd_buffer.saturating_sub(info.unacknowledged);
            free > 0 && free >= info.unacknowledged / 2 && connection.is_writable()
        })
    }

    /// Whether the low-water mark of a reader is reached (SO_RCVLOWAT).
    fn has_enough(&self, stream: &Stream) -> bool {
        self.connection(stream).is_some_and(|connection| connection.has_enough(usize::MAX))
    }

    /// Has the stack tell of room to write, if there is too little now.
    pub fn await_room(&mut self, fd: i32) {
        if let Ok(Some(stream)) = self.stream(fd) {
            let now = self.now();
            let _ = self.stack.with_connection(stream.id, now, |c| c.expect_room());
        }
    }
}

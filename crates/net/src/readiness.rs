//! A real file descriptor that is readable and writable when a stream is, for programs that wait with poll or epoll.
//!
//! It is one end of a pair of Unix sockets. A byte put in from the other end makes it readable; filling its own send buffer
//! makes it not writable; shutting the other end's writing side down announces the end of the stream. The application only
//! waits on it: reading or writing the descriptor itself is not how the stream's data is reached.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair, sockopt,
};
use std::io;

/// The pair. The program's end shows what was told last.
#[derive(Debug)]
pub struct Readiness {
    theirs: OwnedFd,
    ours: OwnedFd,
    readable: bool,
    writable: bool,
}

impl Readiness {
    /// A descriptor that is neither readable nor, yet, blocked for writing.
    ///
    /// # Errors
    /// When the system gives no descriptors.
    pub fn new() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (theirs, ours) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // As small as the kernel allows: it has to be filled to signal "not writable".
        sockopt::set_socket_send_buffer_size(&theirs, 1)?;
        Ok(Readiness { theirs, ours, readable: false, writable: true })
    }

    /// The program's end.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.theirs.as_fd()
    }

    /// Goes on with another descriptor as the program's end, which must be a duplicate of the present one.
    pub fn at(self, duplicate: OwnedFd) -> Self {
        Readiness { theirs: duplicate, ..self }
    }

    /// The program's end, which shows nothing new any more.
    pub fn into_fd(self) -> OwnedFd {
        self.theirs
    }

    /// Makes the descriptor show this state.
    ///
    /// # Errors
    /// The kernel's, which are not expected.
    pub fn show(&mut self, readable: bool, writable: bool) -> io::Result<()> {
        if readable && !self.readable {
            again(|| send(&self.ours, &[1], SendFlags::NOSIGNAL))?;
        } else if !readable && self.readable {
            drain(&self.theirs)?;
        }
        self.readable = readable;
        if writable && !self.writable {
            drain(&self.ours)?;
        } else if !writable && self.writable {
            let filler = [0; 256];
            while again(|| send(&self.theirs, &filler, SendFlags::NOSIGNAL))? > 0 {}
        }
        self.writable = writable;
        Ok(())
    }
}

/// Calls again after a signal; "would block" counts as zero bytes.
fn again(mut call: impl FnMut() -> Result<usize, Errno>) -> io::Result<usize> {
    loop {
        match call() {
            Ok(n) => return Ok(n),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
    }
}

fn drain(fd: &OwnedFd) -> io::Result<()> {
    let mut sink = [0; 4096];
    while again(|| recv(fd, &mut sink[..], RecvFlags::empty()).map(|(n, _)| n))? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn state(readiness: &Readiness) -> (bool, bool) {
        let mut fds = [PollFd::from_borrowed_fd(readiness.fd(), PollFlags::IN | PollFlags::OUT)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
        let got = fds[0].revents();
        (got.contains(PollFlags::IN), got.contains(PollFlags::OUT))
    }

    #[test]
    fn all_four_states_can_be_shown_in_any_order() {
        let mut readiness = Readiness::new().unwrap();
        assert_eq!(state(&readiness), (false, true));
        for round in 0..3 {
            for (readable, writable) in
                [(true, false), (false, false), (true, true), (false, true), (false, false)]
            {
                readiness.show(readable, writable).unwrap();
                assert_eq!(state(&readiness), (readable, writable), "round {round}");
            }
        }
    }
}

//! The pair of Unix sockets that stands for a TCP socket.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair, sockopt,
};

/// Data to fill a buffer of the smallest size.
const FILLER: [u8; 1024] = [0; 1024];

/// A new pair: our end, and the program's. `size` bytes may lie between them, either way. Calls on the program's end wait; those on ours say each that they
/// do not.
pub(crate) fn new(size: usize) -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_size(&ours, size);
    set_size(&theirs, size);
    Ok((ours, theirs))
}

/// Has calls on the program's end not wait.
pub(crate) fn set_non_blocking(theirs: &OwnedFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(theirs, true)?)
}

/// Whether calls on a descriptor do not wait.
pub(crate) fn is_non_blocking(socket: impl AsFd) -> bool {
    rustix::fs::fcntl_getfl(socket).is_ok_and(|flags| flags.contains(rustix::fs::OFlags::NONBLOCK))
}

/// Whether the program has closed its end, or both directions have ended.
pub(crate) fn is_closed(ours: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(ours, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let polled = poll(&mut fds, Some(&now));
    polled.is_ok_and(|_| fds[0].revents().contains(PollFlags::HUP))
}

/// Whether the program still reads from its end.
pub(crate) fn program_still_reads(ours: &OwnedFd) -> bool {
    send(ours, &[], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) != Err(Errno::PIPE)
}

/// How much may be written into an end before it is read at the other.
pub(crate) fn set_size(end: &OwnedFd, bytes: usize) {
    // The kernel takes a larger size for the largest that it allows.
    let _ = sockopt::set_socket_send_buffer_size(end, bytes);
}

/// Makes the program's end not writable. Gives how many bytes lie in it for that.
pub(crate) fn fill(theirs: &OwnedFd) -> io::Result<usize> {
    // As small as the kernel makes it.
    sockopt::set_socket_send_buffer_size(theirs, 1)?;
    let mut filled = 0;
    loop {
        match send(theirs, &FILLER, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(n) => filled += n,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(filled),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Takes the filling out again.
pub(crate) fn discard(ours: &OwnedFd, mut filled: usize) {
    let mut sink = [0; 4096];
    while filled > 0 {
        let room = sink.len().min(filled);
        match recv(ours, &mut sink[..room], RecvFlags::DONTWAIT) {
            Ok((n, _)) if n > 0 => filled -= n.min(filled),
            Err(Errno::INTR) => {}
            _ => return,
        }
    }
}

/// Puts a byte into one end, to be read at the other. Whether there was room.
pub(crate) fn put_token(from: impl AsFd) -> bool {
    send(from, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) == Ok(1)
}

/// Takes a byte out of one end, if one is there.
pub(crate) fn take_token(at: impl AsFd) -> bool {
    let mut byte = [0];
    matches!(recv(at, &mut byte[..], RecvFlags::DONTWAIT), Ok((1, _)))
}

/// Whether nothing lies unread in an end.
pub(crate) fn is_empty(end: impl AsFd) -> bool {
    rustix::io::ioctl_fionread(end).is_ok_and(|bytes| bytes == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn poll_now(end: &OwnedFd) -> PollFlags {
        let mut fds = [PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN | PollFlags::OUT)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
        fds[0].revents()
    }

    #[test]
    fn a_filled_end_is_not_writable_until_it_is_emptied() {
        let (ours, theirs) = new(100_000).unwrap();
        assert!(poll_now(&theirs).contains(PollFlags::OUT));
        let filled = fill(&theirs).unwrap();
        assert!(!poll_now(&theirs).contains(PollFlags::OUT));
        discard(&ours, filled);
        assert!(poll_now(&theirs).contains(PollFlags::OUT));
        assert!(is_empty(&ours));
        set_size(&theirs, 100_000);
        assert_eq!(send(&theirs, &[7; 50_000], SendFlags::DONTWAIT), Ok(50_000));
    }

    #[test]
    fn closing_an_end_with_unread_data_resets_the_other() {
        let (ours, theirs) = new(100_000).unwrap();
        assert!(put_token(&theirs));
        drop(ours);
        assert!(poll_now(&theirs).contains(PollFlags::ERR | PollFlags::HUP));
        let mut byte = [0];
        assert_eq!(
            recv(&theirs, &mut byte[..], RecvFlags::empty()).map(|r| r.0),
            Err(Errno::CONNRESET)
        );
    }

    #[test]
    fn each_token_is_taken_once() {
        let (ours, theirs) = new(100_000).unwrap();
        assert!(!take_token(&theirs));
        assert!(put_token(&ours) && put_token(&ours));
        assert!(poll_now(&theirs).contains(PollFlags::IN));
        assert!(take_token(&theirs) && take_token(&theirs) && !take_token(&theirs));
    }
}

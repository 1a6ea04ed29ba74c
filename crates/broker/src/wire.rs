//! Packets with descriptors over a Unix socket of the kind `SOCK_SEQPACKET`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::net::{SocketAddrUnix, SocketFlags};
use transom_device::passing;
pub(crate) use transom_device::passing::socket;

use crate::protocol::{LONGEST, MAX_QUEUES};

/// As many descriptors come with a packet at most.
const MAX_DESCRIPTORS: usize = MAX_QUEUES as usize;

/// Opens a socket and connects it.
pub(crate) fn connect(path: &Path) -> io::Result<OwnedFd> {
    let socket = socket(SocketFlags::CLOEXEC)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Sends one packet, and copies of descriptors with it, as a whole or not at all.
pub(crate) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    if descriptors.len() > MAX_DESCRIPTORS {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors"));
    }
    passing::send(socket, bytes, descriptors)
}

/// Receives one packet of at most `LONGEST` bytes, and the descriptors that came with it. `None` when the other end has closed. A packet that is longer, or has
/// more descriptors than any message, is [`io::ErrorKind::InvalidData`].
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let mut descriptors = Vec::new();
    let received = receive_into(socket, &mut descriptors)?;
    Ok(received.map(|bytes| (bytes, descriptors)))
}

/// The same, but the descriptors are the caller's to close also after an error.
pub(crate) fn receive_into(
    socket: impl AsFd,
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<Option<Vec<u8>>> {
    passing::receive(socket, LONGEST, MAX_DESCRIPTORS, descriptors)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        passing::pair().unwrap()
    }

    #[test]
    fn packets_and_descriptors_arrive_together() {
        let (near, far) = pair();
        let (other, _) = pair();
        send(&near, b"one", &[other.as_fd(), far.as_fd()]).unwrap();
        send(&near, b"two", &[]).unwrap();
        let (bytes, descriptors) = receive(&far).unwrap().unwrap();
        assert_eq!((&bytes[..], descriptors.len()), (&b"one"[..], 2));
        let (bytes, descriptors) = receive(&far).unwrap().unwrap();
        assert_eq!((&bytes[..], descriptors.len()), (&b"two"[..], 0));
        drop(near);
        assert!(receive(&far).unwrap().is_none());
    }

    #[test]
    fn a_packet_that_is_too_long_is_refused_and_the_next_is_received() {
        let (near, far) = pair();
        send(&near, &vec![1; LONGEST + 1], &[]).unwrap();
        send(&near, b"next", &[]).unwrap();
        assert_eq!(receive(&far).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(receive(&far).unwrap().unwrap().0, b"next");
        let many: Vec<_> = std::iter::repeat_n(near.as_fd(), MAX_DESCRIPTORS + 1).collect();
        assert!(send(&near, b"many", &many).is_err());
    }
}

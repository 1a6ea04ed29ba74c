//! Packets with descriptors over a Unix socket of the kind `SOCK_SEQPACKET`.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use crate::protocol::{LONGEST, MAX_QUEUES};

/// As many descriptors come with a packet at most.
const MAX_DESCRIPTORS: usize = MAX_QUEUES as usize;
/// As many as the kernel lets anybody send with one (`SCM_MAX_FD`). With less room the kernel itself would close the rest, and that may wait.
const SCM_MAX_FD: usize = 253;

/// Opens a socket and connects it.
///
/// # Errors
/// The system's.
pub fn connect(path: &Path) -> io::Result<OwnedFd> {
    let socket = socket(SocketFlags::CLOEXEC)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// A socket of the right kind.
///
/// # Errors
/// The system's.
pub fn socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    let kind = SocketType::SEQPACKET;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?)
}

/// Sends one packet, and copies of descriptors with it.
///
/// # Errors
/// The system's; the packet is sent as a whole or not at all.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fits = descriptors.is_empty()
        || (descriptors.len() <= MAX_DESCRIPTORS
            && control.push(SendAncillaryMessage::ScmRights(descriptors)));
    if !fits {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors"));
    }
    loop {
        let parts = [IoSlice::new(bytes)];
        match rustix::net::sendmsg(&socket, &parts, &mut control, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Receives one packet of at most [`LONGEST`] bytes, and the descriptors that came with it. `None` when the other end has closed.
///
/// # Errors
/// The system's; [`io::ErrorKind::InvalidData`] for a packet that is longer, or that has more descriptors than any message.
pub fn receive(socket: impl AsFd) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let mut descriptors = Vec::new();
    let received = receive_into(socket, &mut descriptors)?;
    Ok(received.map(|bytes| (bytes, descriptors)))
}

/// The same, but the descriptors are the caller's to close also after an error.
///
/// # Errors
/// As [`receive`].
pub fn receive_into(
    socket: impl AsFd,
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SCM_MAX_FD))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        match rustix::net::recvmsg(&socket, &mut parts, &mut control, flags) {
            Ok(received) => break received,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    };
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)
        || descriptors.len() > MAX_DESCRIPTORS
    {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
    }
    if received.bytes == 0 && descriptors.is_empty() {
        return Ok(None);
    }
    bytes.truncate(received.bytes);
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None).unwrap()
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

//! Packets with descriptors between processes, over a Unix socket of the kind `SOCK_SEQPACKET` (unix(7)).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

/// As many descriptors as the kernel lets anybody send with one packet (`SCM_MAX_FD`). With less room the kernel itself would close the rest, and that may
/// wait.
const MOST_DESCRIPTORS: usize = 253;

/// A socket of the right kind.
///
/// # Errors
/// The system's.
pub fn socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    let kind = SocketType::SEQPACKET;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?)
}

/// Two of them that are connected. They block, and are closed on exec.
///
/// # Errors
/// The system's.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    Ok(rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None)?)
}

/// Sends one packet, and copies of descriptors with it, `MOST_DESCRIPTORS` at most.
///
/// # Errors
/// The system's; the packet is sent as a whole or not at all.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fits = descriptors.is_empty()
        || (descriptors.len() <= MOST_DESCRIPTORS
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

/// Receives one packet of at most `longest` bytes, and adds the descriptors that came with it, `most` at most. `None` when the other end has closed. The
/// descriptors are the caller's to close also after an error.
///
/// # Errors
/// The system's; [`io::ErrorKind::InvalidData`] for a packet that is longer, or that has more descriptors.
pub fn receive(
    socket: impl AsFd,
    longest: usize,
    most: usize,
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; longest];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
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
    let before = descriptors.len();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let came = descriptors.len() - before;
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) || came > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
    }
    if received.bytes == 0 && came == 0 {
        return Ok(None);
    }
    bytes.truncate(received.bytes);
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_and_descriptors_arrive_together_and_bounds_hold() {
        let (near, far) = pair().unwrap();
        let (other, _) = pair().unwrap();
        send(&near, b"one", &[other.as_fd(), far.as_fd()]).unwrap();
        send(&near, b"two", &[other.as_fd(), far.as_fd()]).unwrap();
        send(&near, b"three", &[]).unwrap();
        send(&near, b"four", &[]).unwrap();
        let mut came = Vec::new();
        assert_eq!(receive(&far, 9, 2, &mut came).unwrap().unwrap(), b"one");
        assert_eq!(came.len(), 2);
        let refused = receive(&far, 9, 1, &mut came).unwrap_err();
        assert_eq!((refused.kind(), came.len()), (io::ErrorKind::InvalidData, 4));
        let refused = receive(&far, 4, 1, &mut came).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        assert_eq!(receive(&far, 9, 0, &mut came).unwrap().unwrap(), b"four");
        let many: Vec<_> = std::iter::repeat_n(near.as_fd(), MOST_DESCRIPTORS + 1).collect();
        send(&near, b"many", &many).unwrap_err();
        drop(near);
        assert!(receive(&far, 9, 0, &mut came).unwrap().is_none());
    }
}

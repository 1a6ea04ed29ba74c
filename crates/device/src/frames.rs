//! Whole frames of a network interface that exists already, taken beside the kernel's own network (packet(7)).
//!
//! A [`FrameSocket`] gets a copy of each frame that comes in by an interface, for any destination, and sends frames unchanged. A
//! virtio-net header precedes each frame, in both directions. So a frame that passes from one interface to another may be a super-segment, or
//! have a partial checksum, without being parsed.
//!
//! The kernel takes VLAN tags off before, and they are lost here: this is for interfaces without.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use transom_wire::offload::VirtioNetHdr;

use crate::af_packet::{self, Membership};

/// Bytes of the socket's receive buffer.
const RECEIVE_BUFFER: usize = 8 << 20;

/// An interface's frames.
#[derive(Debug)]
pub struct FrameSocket {
    socket: OwnedFd,
}

impl FrameSocket {
    /// The longest frame there is, with its virtio-net header: what a buffer for it must hold.
    pub const MAX_LEN: usize = VirtioNetHdr::LEN + 18 + 65_536;

    /// Opens the interface with this number, in the network namespace of the calling thread. From then on it takes in frames for others as
    /// well, until the socket is closed.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] without `CAP_NET_RAW`, or the kernel's refusal.
    pub fn open(index: u32) -> io::Result<Self> {
        let socket = af_packet::open(RECEIVE_BUFFER)?;
        af_packet::join(&socket, index, Membership::Promiscuous, None)?;
        af_packet::bind(&socket, index)?;
        Ok(FrameSocket { socket })
    }

    /// Takes one frame behind its virtio-net header; `None` if there is none. A frame that does not fit into `buffer` is cut off.
    ///
    /// # Errors
    /// The kernel's: the interface is gone, or down.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            return match rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((length, _)) => Ok(Some(length)),
                Err(Errno::AGAIN) => Ok(None),
                Err(Errno::INTR) => continue,
                Err(errno) => Err(errno.into()),
            };
        }
    }

    /// Sends one frame, which begins with its virtio-net header. Whether the kernel took it: what is longer than the interface carries, or too
    /// much at once, it does not.
    ///
    /// # Errors
    /// The kernel's: the interface is gone, or down.
    pub fn send(&self, frame: &[u8]) -> io::Result<bool> {
        loop {
            return match rustix::net::send(&self.socket, frame, SendFlags::empty()) {
                Ok(_) => Ok(true),
                Err(
                    Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::MSGSIZE | Errno::INVAL,
                ) => Ok(false),
                Err(Errno::INTR) => continue,
                Err(errno) => Err(errno.into()),
            };
        }
    }
}

impl AsFd for FrameSocket {
    /// Readable when there is a frame.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Namespace;

    #[test]
    fn a_frame_goes_from_one_interface_to_another() {
        let (Ok(left), Ok(right)) = (Namespace::new(), Namespace::new()) else {
            eprintln!("SKIPPED: no network namespaces here");
            return;
        };
        left.add_veth("a", &right, "b").unwrap();
        let open = |namespace: &Namespace, name: &str| {
            namespace.interfaces().set_up(name, true).unwrap();
            let index = namespace.interfaces().state(name).unwrap().index;
            namespace.run(|| FrameSocket::open(index)).unwrap().unwrap()
        };
        let (from, to) = (open(&left, "a"), open(&right, "b"));
        // A virtio-net header of zeros, and a frame of an experimental type (IEEE 802) to nobody in particular.
        let mut frame = vec![0; VirtioNetHdr::LEN];
        frame.extend_from_slice(&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb5]);
        frame.extend_from_slice(&[0x5a; 100]);
        let mut buffer = vec![0; FrameSocket::MAX_LEN];
        // The kernel lets frames through some time after both ends are up, and drops them before. It also sends frames of its own.
        let found = (0..10_000).any(|turn| {
            if turn % 100 == 0 {
                assert!(from.send(&frame).unwrap());
            }
            match to.receive(&mut buffer).unwrap() {
                Some(length) => buffer[VirtioNetHdr::LEN..length] == frame[VirtioNetHdr::LEN..],
                None => {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    false
                }
            }
        });
        assert!(found, "the frame did not arrive");
        // A socket does not receive what it sends.
        while let Some(length) = from.receive(&mut buffer).unwrap() {
            assert_ne!(buffer[VirtioNetHdr::LEN..length], frame[VirtioNetHdr::LEN..]);
        }
        // Longer than the interface carries.
        assert!(!from.send(&[0; 3000]).unwrap());
    }

    #[test]
    fn an_interface_that_is_not_there_is_refused() {
        assert!(FrameSocket::open(u32::MAX >> 1).is_err());
    }
}

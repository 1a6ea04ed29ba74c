//! The broker's socket by hand: packets that its own client would not send.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::net::{SocketAddrUnix, SocketFlags};
use transom_device::passing;
pub(crate) use transom_device::passing::{send, socket};

/// Opens a socket and connects it.
pub(crate) fn connect(path: &Path) -> io::Result<OwnedFd> {
    let socket = socket(SocketFlags::CLOEXEC)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Receives a packet of the protocol, and the descriptors that came with it.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let mut descriptors = Vec::new();
    let received = passing::receive(socket, 65_536, 8, &mut descriptors)?;
    Ok(received.map(|bytes| (bytes, descriptors)))
}

//! A netlink socket that waits for its answers: no thread and no runtime of its own.
//!
//! The crates `netlink-packet-*` know the format of the messages (RFC 3549, section 2). The kernel handles a request before
//! `send` returns and queues the answer: for requests that ask for something one message with it, and always an acknowledgement that
//! carries an error number or zero. A request for a dump is answered with any number of messages and one that says it was the last. A
//! socket acts on the network namespace it was opened in, not on its user's.

use std::io;
use std::iter;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use netlink_packet_core::{
    ErrorBuffer, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
    NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable, NlaBuffer, NlasIterator,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt,
};

/// More than the kernel puts in one answer.
const LONGEST: usize = 64 * 1024;

/// A socket to one of the kernel's subsystems, in one network namespace.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket to a subsystem, in the calling thread's network namespace.
    pub(crate) fn open(subsystem: impl Into<Option<Protocol>>) -> io::Result<Self> {
        Self::open_with(subsystem.into(), SocketFlags::CLOEXEC)
    }

    /// Opens a socket that hears what a subsystem tells everybody in these groups, one bit for each. It does not block.
    pub(crate) fn listen(subsystem: impl Into<Option<Protocol>>, groups: u32) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let netlink = Self::open_with(subsystem.into(), flags)?;
        rustix::net::bind(&netlink.socket, &SocketAddrNetlink::new(0, groups))?;
        Ok(netlink)
    }

    /// One that another process has opened. `subsystem` is its number (`NETLINK_*`).
    pub(crate) fn from_descriptor(socket: OwnedFd, subsystem: i32) -> io::Result<Self> {
        let is_netlink = sockopt::socket_domain(&socket)? == AddressFamily::NETLINK;
        let protocol = sockopt::socket_protocol(&socket)?;
        // The one of routing has number 0, which is told as no protocol.
        let number = protocol.map_or(0, |protocol| protocol.as_raw().get());
        if is_netlink && i64::from(number) == i64::from(subsystem) {
            Ok(Netlink { socket, sequence: 0 })
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidData, "it is no such netlink socket"))
        }
    }

    fn open_with(subsystem: Option<Protocol>, flags: SocketFlags) -> io::Result<Self> {
        let kind = SocketType::RAW;
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, subsystem)?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Carries out a request and returns the body of the answer, empty if there is none but success. `flags` are `NLM_F_*` beyond the
    /// usual ones.
    pub(crate) fn execute(
        &mut self,
        flags: u16,
        request: impl NetlinkSerializable,
    ) -> io::Result<Vec<u8>> {
        let mut answer = Vec::new();
        self.ask(flags | NLM_F_ACK, request, |body| answer = body.to_vec())?;
        Ok(answer)
    }

    /// Carries out a request for a dump and hands the body of each message of the answer to `each`.
    pub(crate) fn dump(
        &mut self,
        request: impl NetlinkSerializable,
        each: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        self.ask(NLM_F_DUMP, request, each)
    }

    fn ask(
        &mut self,
        flags: u16,
        request: impl NetlinkSerializable,
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        self.send_with(flags, self.sequence, request)?;
        let mut buffer = vec![0; LONGEST];
        loop {
            let length = self.receive(&mut buffer)?;
            let received = messages(buffer.get(..length).unwrap_or_default());
            for reply in received.filter(|reply| reply.sequence_number() == self.sequence) {
                match reply.message_type() {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => return outcome(reply.payload()),
                    _ => each(reply.payload()),
                }
            }
        }
    }

    /// Hands everything that has been told since the last time to `each`; for a socket that listens.
    pub(crate) fn hear(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        let mut buffer = vec![0; LONGEST];
        loop {
            match self.receive(&mut buffer) {
                Ok(length) => messages(buffer.get(..length).unwrap_or_default())
                    .for_each(|message| each(message.payload())),
                Err(Errno::AGAIN) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Sends a request that is answered only if it fails, and waits for nothing.
    pub(crate) fn send(&self, request: impl NetlinkSerializable) -> io::Result<()> {
        self.send_with(0, 0, request)
    }

    fn send_with(
        &self,
        flags: u16,
        sequence: u32,
        request: impl NetlinkSerializable,
    ) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(request));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        rustix::net::send(&self.socket, &bytes, SendFlags::empty())?;
        Ok(())
    }

    /// The next datagram, as it is: see [`messages`].
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> rustix::io::Result<usize> {
        let received =
            retry_on_intr(|| rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::empty()));
        received.map(|(length, _)| length)
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The contents of an `NLMSG_ERROR`.
fn outcome(body: &[u8]) -> io::Result<()> {
    match ErrorBuffer::new_checked(body).map(|error| error.code()) {
        Ok(None) => Ok(()),
        Ok(Some(code)) => Err(io::Error::from_raw_os_error(code.get().saturating_neg())),
        Err(_) => Err(io::Error::from_raw_os_error(libc::EBADMSG)),
    }
}

/// The messages in what was received at once; ends at the first that does not fit.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = NetlinkBuffer<&[u8]>> {
    iter::from_fn(move || {
        let message = NetlinkBuffer::new_checked(bytes).ok()?;
        let length = (message.length() as usize).next_multiple_of(4);
        bytes = bytes.get(length..).unwrap_or_default();
        Some(message)
    })
}

/// The attributes behind the fixed part of a message's body, which is so long; ends at the first that does not fit.
///
/// They are read one by one, so that one that a newer kernel writes otherwise does not spoil the others.
pub(crate) fn attributes(body: &[u8], fixed: usize) -> impl Iterator<Item = NlaBuffer<&[u8]>> {
    NlasIterator::new(body.get(fixed..).unwrap_or_default()).map_while(Result::ok)
}

/// An attribute, as the kernel writes it.
#[cfg(test)]
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lying_length_ends_the_walk() {
        assert_eq!(messages(&[0; 64]).count(), 0);
        assert_eq!(messages(&[255; 64]).count(), 0);
        assert_eq!(attributes(&[0; 8], 0).count(), 0);
        assert_eq!(attributes(&[255, 255, 3, 0, 1], 0).count(), 0);
        assert_eq!(attributes(&[4, 0, 3, 0, 255, 255, 3, 0], 0).count(), 1);
        assert_eq!(attributes(&[4, 0, 3, 0], 5).count(), 0);
    }

    #[test]
    fn an_answer_says_what_was_refused() {
        assert!(outcome(&[0; 4]).is_ok());
        let refused = outcome(&(-libc::ENODEV).to_ne_bytes()).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENODEV));
        assert_eq!(outcome(&[1]).unwrap_err().raw_os_error(), Some(libc::EBADMSG));
        assert!(outcome(&i32::MIN.to_ne_bytes()).is_err());
    }
}

//! The part of netlink that sets up interfaces and looks at sockets, by hand.
//!
//! A request is a header, a fixed body that depends on its kind, and attributes, all of them padded
//! to four bytes and in the machine's byte order (RFC 3549, section 2). The kernel handles it
//! before `send` returns and queues the answer: for requests that ask for something one message
//! with it, and always an acknowledgement that carries an error number or zero. A socket acts on
//! the network namespace it was opened in, whoever uses it later. A request for a dump is answered with any number of messages and
//! one that says it was the last.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Bytes of `struct nlmsghdr`.
const HEADER_LEN: usize = 16;
/// Attributes and messages start at multiples of this.
const ALIGNMENT: usize = 4;

/// A request under construction.
pub(crate) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// A request of one of the `RTM_*` kinds with its fixed body; `flags` are `NLM_F_*` beyond the
    /// usual ones.
    pub(crate) fn new(kind: u16, flags: i32, body: &[u8]) -> Self {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
        let mut bytes = vec![0; HEADER_LEN];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(body);
        let mut request = Request { bytes };
        request.pad();
        request
    }

    /// A request that is answered only if it fails.
    pub(crate) fn unacknowledged(kind: u16, body: &[u8]) -> Self {
        let mut request = Request::new(kind, 0, body);
        request.bytes[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
        request
    }

    /// Appends an attribute.
    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        self.begin(kind);
        let start = self.bytes.len() - 4;
        self.bytes.extend_from_slice(value);
        self.finish(start);
        self
    }

    /// Appends a zero-terminated string attribute.
    pub(crate) fn text(self, kind: u16, value: &str) -> Self {
        let mut terminated = value.as_bytes().to_vec();
        terminated.push(0);
        self.attribute(kind, &terminated)
    }

    /// Appends an attribute that consists of `prefix` and of the attributes `fill` adds.
    pub(crate) fn nested(
        mut self,
        kind: u16,
        prefix: &[u8],
        fill: impl FnOnce(Self) -> Self,
    ) -> Self {
        self.begin(kind);
        let start = self.bytes.len() - 4;
        self.bytes.extend_from_slice(prefix);
        self.pad();
        let mut filled = fill(self);
        filled.finish(start);
        filled
    }

    fn begin(&mut self, kind: u16) {
        self.bytes.extend_from_slice(&[0, 0]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
    }

    fn finish(&mut self, start: usize) {
        // Requests are made of interface names and addresses: far below the 64 KiB an attribute can
        // hold.
        let length = (self.bytes.len() - start) as u16;
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.pad();
    }

    fn pad(&mut self) {
        let padded = self.bytes.len().next_multiple_of(ALIGNMENT);
        self.bytes.resize(padded, 0);
    }

    fn into_message(mut self, sequence: u32) -> Vec<u8> {
        let length = self.bytes.len() as u32;
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

/// A socket to one of the kernel's subsystems, by default routing, in one network namespace.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket in the calling thread's network namespace.
    pub(crate) fn open() -> io::Result<Self> {
        Self::open_with(None, SocketFlags::CLOEXEC)
    }

    /// Opens a socket to another subsystem.
    pub(crate) fn open_to(protocol: Protocol) -> io::Result<Self> {
        Self::open_with(Some(protocol), SocketFlags::CLOEXEC)
    }

    /// Opens a socket that hears what a subsystem tells everybody in these groups, one bit for each.
    pub(crate) fn listen_to(protocol: Option<Protocol>, groups: u32) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let netlink = Self::open_with(protocol, flags)?;
        rustix::net::bind(&netlink.socket, &SocketAddrNetlink::new(0, groups))?;
        Ok(netlink)
    }

    fn open_with(protocol: Option<Protocol>, flags: SocketFlags) -> io::Result<Self> {
        let kind = SocketType::RAW;
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, protocol)?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Carries out a request for a dump and hands the body of each message of the answer to `each`.
    pub(crate) fn dump(&mut self, request: Request, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let message = request.into_message(self.sequence);
        rustix::net::send(&self.socket, &message, SendFlags::empty())?;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let (length, _) = rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            for reply in replies(&buffer[..length]) {
                if reply.sequence != self.sequence {
                    continue;
                }
                match i32::from(reply.kind) {
                    libc::NLMSG_DONE => return Ok(()),
                    libc::NLMSG_ERROR => return Err(refusal(reply.body)),
                    _ => each(reply.body),
                }
            }
        }
    }

    /// Hands everything that has been told since the last time to `each`; for a socket that listens.
    pub(crate) fn hear(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
                Ok((length, _)) => {
                    replies(&buffer[..length]).for_each(|reply| each(reply.body));
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Sends a request whose answer is not waited for.
    pub(crate) fn send(&self, request: Request) -> io::Result<()> {
        rustix::net::send(&self.socket, &request.into_message(0), SendFlags::empty())?;
        Ok(())
    }

    /// The next message, as it is.
    pub(crate) fn receive_raw(&self, buffer: &mut [u8]) -> rustix::io::Result<usize> {
        rustix::net::recv(&self.socket, buffer, RecvFlags::empty()).map(|(length, _)| length)
    }

    /// Carries out one request and returns the body of the answer, empty if there is none but
    /// success.
    pub(crate) fn execute(&mut self, request: Request) -> io::Result<Vec<u8>> {
        self.sequence = self.sequence.wrapping_add(1);
        let message = request.into_message(self.sequence);
        rustix::net::send(&self.socket, &message, SendFlags::empty())?;
        let mut answer = Vec::new();
        let mut buffer = vec![0; 32 * 1024];
        loop {
            let (length, _) = rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            for reply in replies(&buffer[..length]) {
                if reply.sequence != self.sequence {
                    continue;
                }
                if i32::from(reply.kind) != libc::NLMSG_ERROR {
                    answer = reply.body.to_vec();
                    continue;
                }
                return match reply.body.first_chunk() {
                    Some([0, 0, 0, 0]) => Ok(answer),
                    _ => Err(refusal(reply.body)),
                };
            }
        }
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What an `NLMSG_ERROR` says.
fn refusal(body: &[u8]) -> io::Error {
    let code = body.first_chunk().map_or(-libc::EBADMSG, |code| i32::from_ne_bytes(*code));
    io::Error::from_raw_os_error(code.saturating_neg())
}

/// One message from the kernel.
struct Reply<'a> {
    kind: u16,
    sequence: u32,
    body: &'a [u8],
}

/// The messages in what one `recv` returned; ends at the first that does not fit.
fn replies(mut bytes: &[u8]) -> impl Iterator<Item = Reply<'_>> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
        let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
        let sequence = u32::from_ne_bytes(*bytes.get(8..)?.first_chunk()?);
        let body = bytes.get(HEADER_LEN..length)?;
        bytes = bytes.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some(Reply { kind, sequence, body })
    })
}

/// The value of the first attribute of `kind` among `attributes`.
pub(crate) fn find_attribute(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(*attributes.first_chunk()?));
        let found = u16::from_ne_bytes(*attributes.get(2..)?.first_chunk()?);
        let value = attributes.get(4..length)?;
        if found == kind {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(ALIGNMENT)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_nested_lengths_cover_their_children() {
        let message = Request::new(16, 0, &[9; 2])
            .nested(18, &[], |inner| inner.text(1, "veth"))
            .into_message(7);
        let mut expected = Vec::new();
        expected.extend_from_slice(&36u32.to_ne_bytes());
        expected.extend_from_slice(&16u16.to_ne_bytes());
        expected.extend_from_slice(&5u16.to_ne_bytes()); // NLM_F_REQUEST | NLM_F_ACK
        expected.extend_from_slice(&7u32.to_ne_bytes());
        expected.extend_from_slice(&0u32.to_ne_bytes());
        expected.extend_from_slice(&[9, 9, 0, 0]);
        expected.extend_from_slice(&16u16.to_ne_bytes()); // 4 + (4 + 5 padded to 12)
        expected.extend_from_slice(&18u16.to_ne_bytes());
        expected.extend_from_slice(&9u16.to_ne_bytes());
        expected.extend_from_slice(&1u16.to_ne_bytes());
        expected.extend_from_slice(b"veth\0\0\0\0");
        assert_eq!(message, expected);
    }

    #[test]
    fn a_lying_length_ends_the_walk() {
        assert_eq!(find_attribute(&[0, 0, 0, 0, 0, 0, 0, 0], 3), None);
        assert_eq!(find_attribute(&[255, 255, 3, 0, 1], 3), None);
        assert_eq!(replies(&[0; 64]).count(), 0);
        assert_eq!(replies(&[255; 64]).count(), 0);
    }

    #[test]
    fn the_second_attribute_is_found_behind_padding() {
        let mut attributes = Vec::new();
        attributes.extend_from_slice(&5u16.to_ne_bytes());
        attributes.extend_from_slice(&1u16.to_ne_bytes());
        attributes.extend_from_slice(&[42, 0, 0, 0]);
        attributes.extend_from_slice(&6u16.to_ne_bytes());
        attributes.extend_from_slice(&2u16.to_ne_bytes());
        attributes.extend_from_slice(&[7, 8]);
        assert_eq!(find_attribute(&attributes, 2), Some(&[7, 8][..]));
        assert_eq!(find_attribute(&attributes, 1), Some(&[42][..]));
    }
}

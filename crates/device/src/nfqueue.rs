//! Packets that the kernel holds until a program decides about them (NFQUEUE, `linux/netfilter/nfnetlink_queue.h`).
//!
//! A rule of iptables(8) or nft(8) sends packets to a numbered queue. The process that has bound the number gets each of them, whole or its
//! beginning, as a netlink message, and answers with a verdict, which may replace the bytes. A packet without a verdict stays where it
//! is. If no process has bound the number, packets are dropped unless the rule says to pass them by (`--queue-bypass`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{Emitable, NetlinkSerializable, Nla};
use rustix::io::Errno;
use rustix::net::netlink::NETFILTER;

use crate::netlink::{Netlink, attributes, messages};

/// `NFNL_SUBSYS_QUEUE`, in a message's kind.
const SUBSYSTEM: u16 = 3 << 8;
const MSG_PACKET: u16 = SUBSYSTEM;
const MSG_VERDICT: u16 = SUBSYSTEM | 1;
const MSG_CONFIG: u16 = SUBSYSTEM | 2;
/// `NFQA_CFG_*`.
const CFG_COMMAND: u16 = 1;
const CFG_PARAMETERS: u16 = 2;
const CFG_MAX_LENGTH: u16 = 3;
const CFG_MASK: u16 = 4;
const CFG_FLAGS: u16 = 5;
const COMMAND_BIND: u8 = 1;
const COPY_PACKET: u8 = 2;
const FLAG_FAIL_OPEN: u32 = 1;
const FLAG_GSO: u32 = 4;
/// `NFQA_*`.
const PACKET_HEADER: u16 = 1;
const VERDICT_HEADER: u16 = 2;
const PAYLOAD: u16 = 10;
const CAPTURED: u16 = 13;
const SKB_INFO: u16 = 14;
const CHECKSUM_NOT_READY: u32 = 1;
const ACCEPT: u32 = 1;
/// Bytes of `struct nfgenmsg`.
const BODY_LEN: usize = 4;
/// Bytes of the socket's receive buffer.
const RECEIVE_BUFFER: usize = 4 << 20;
/// The longest message: 64 KiB of a packet, and what is said of it.
const MESSAGE: usize = 128 * 1024;

/// How a queue is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// How many bytes of each packet are wanted. A packet of which not all came must not be changed.
    pub copy: u16,
    /// Take super-segments, and packets whose checksums are not complete; otherwise the kernel cuts and completes them before. A packet that
    /// came so must not be changed.
    pub offloads: bool,
    /// How many packets the kernel holds at most. More go on without a verdict.
    pub held: u32,
}

/// A bound queue.
#[derive(Debug)]
pub struct PacketQueue {
    netlink: Netlink,
    number: u16,
    /// One for each packet of a batch. They are made when a batch is as large for the first time.
    buffers: Vec<Vec<u8>>,
}

/// A packet that waits for a verdict.
#[derive(Debug)]
#[non_exhaustive]
pub struct QueuedPacket<'a> {
    /// Its number in the queue.
    pub id: u32,
    /// It, from the IP header on, or its beginning.
    pub bytes: &'a mut [u8],
    /// Its length.
    pub len: usize,
    /// Whether its checksum is what it will be on the wire.
    pub checksum_ready: bool,
    /// The decision about it.
    pub decision: Decision,
}

/// A decision about a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decision {
    /// It goes on.
    #[default]
    Accept,
    /// It goes on with the bytes as they are now.
    AcceptChanged,
    /// It stays until [`PacketQueue::accept`].
    Keep,
}

impl PacketQueue {
    /// Binds a number, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`io::ErrorKind::ResourceBusy`] if another process has it, [`io::ErrorKind::PermissionDenied`] without `CAP_NET_ADMIN`; anything else mostly
    /// means that the kernel knows no such queues.
    pub fn bind(number: u16, options: QueueOptions) -> io::Result<Self> {
        let mut netlink = Netlink::listen(NETFILTER, 0)?;
        // More than users may have, which we are not, or else as it is.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(
            netlink.as_fd(),
            RECEIVE_BUFFER,
        );
        let command = [Attribute(CFG_COMMAND, &[COMMAND_BIND, 0, 0, 0])];
        netlink.execute(0, Message { kind: MSG_CONFIG, number, attributes: &command })?;
        let mut parameters = [0; 5];
        parameters[..4].copy_from_slice(&u32::from(options.copy).to_be_bytes());
        parameters[4] = COPY_PACKET;
        let flags = FLAG_FAIL_OPEN | if options.offloads { FLAG_GSO } else { 0 };
        let settings = [
            Attribute(CFG_PARAMETERS, &parameters),
            Attribute(CFG_MAX_LENGTH, &options.held.to_be_bytes()),
            Attribute(CFG_MASK, &(FLAG_FAIL_OPEN | FLAG_GSO).to_be_bytes()),
            Attribute(CFG_FLAGS, &flags.to_be_bytes()),
        ];
        netlink.execute(0, Message { kind: MSG_CONFIG, number, attributes: &settings })?;
        Ok(PacketQueue { netlink, number, buffers: Vec::new() })
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Takes the packets that are there, up to `most`, and does with them what `decide` has written beside each, in their order. Nothing is
    /// waited for. Whether there may be more.
    ///
    /// # Errors
    /// The kernel's. Packets that were lost on the way here are no error: they went on.
    pub fn receive_all(
        &mut self,
        most: usize,
        decide: impl FnOnce(&mut [QueuedPacket<'_>]),
    ) -> io::Result<bool> {
        let mut buffers = std::mem::take(&mut self.buffers);
        let taken = self.receive_into(&mut buffers, most, decide);
        self.buffers = buffers;
        taken
    }

    fn receive_into(
        &mut self,
        buffers: &mut Vec<Vec<u8>>,
        most: usize,
        decide: impl FnOnce(&mut [QueuedPacket<'_>]),
    ) -> io::Result<bool> {
        let (mut found, mut more) = (Vec::new(), true);
        while more && found.len() < most {
            if buffers.len() == found.len() {
                buffers.push(vec![0; MESSAGE]);
            }
            let Some(buffer) = buffers.get_mut(found.len()) else { break };
            match self.netlink.receive(buffer) {
                Ok(length) => found.extend(buffer.get(..length).and_then(parse)),
                Err(Errno::AGAIN) => more = false,
                // More came than the socket holds; the kernel has let that pass.
                Err(Errno::NOBUFS) => {}
                // It will be said again when those before have their verdicts.
                Err(_) if !found.is_empty() => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        if found.is_empty() {
            return Ok(more);
        }
        let mut packets: Vec<QueuedPacket<'_>> = found
            .iter()
            .zip(buffers)
            .map(|(found, buffer)| QueuedPacket {
                id: found.id,
                bytes: buffer.get_mut(found.at..found.at + found.captured).unwrap_or_default(),
                len: found.len,
                checksum_ready: found.checksum_ready,
                decision: Decision::Accept,
            })
            .collect();
        decide(&mut packets);
        for packet in &packets {
            match packet.decision {
                Decision::Accept => self.accept(packet.id, None)?,
                Decision::AcceptChanged => self.accept(packet.id, Some(packet.bytes))?,
                Decision::Keep => {}
            }
        }
        Ok(more)
    }

    /// Lets a packet go on, with other bytes if there are some.
    ///
    /// # Errors
    /// The kernel's.
    pub fn accept(&self, id: u32, bytes: Option<&[u8]>) -> io::Result<()> {
        let mut verdict = [0; 8];
        verdict[..4].copy_from_slice(&ACCEPT.to_be_bytes());
        verdict[4..].copy_from_slice(&id.to_be_bytes());
        let verdict = Attribute(VERDICT_HEADER, &verdict);
        // An attribute's length has 16 bits. There is no longer packet whose bytes may be changed.
        let attributes = match bytes.filter(|bytes| bytes.len() < 65_532) {
            Some(bytes) => &[verdict, Attribute(PAYLOAD, bytes)][..],
            None => &[verdict][..],
        };
        self.netlink.send(Message { kind: MSG_VERDICT, number: self.number, attributes })
    }
}

impl AsFd for PacketQueue {
    /// Readable when there may be a packet.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.netlink.as_fd()
    }
}

/// A message to the queue of this number.
struct Message<'a> {
    kind: u16,
    number: u16,
    attributes: &'a [Attribute<'a>],
}

impl NetlinkSerializable for Message<'_> {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        BODY_LEN + self.attributes.buffer_len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        // struct nfgenmsg: family, version, the queue's number.
        let [high, low] = self.number.to_be_bytes();
        buffer[..BODY_LEN].copy_from_slice(&[libc::AF_UNSPEC as u8, 0, high, low]);
        self.attributes.emit(&mut buffer[BODY_LEN..]);
    }
}

/// Its kind and its value.
struct Attribute<'a>(u16, &'a [u8]);

impl Nla for Attribute<'_> {
    fn kind(&self) -> u16 {
        self.0
    }

    fn value_len(&self) -> usize {
        self.1.len()
    }

    fn emit_value(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(self.1);
    }
}

/// The parts of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    id: u32,
    at: usize,
    captured: usize,
    len: usize,
    checksum_ready: bool,
}

fn parse(received: &[u8]) -> Option<Found> {
    let message =
        messages(received).next().filter(|message| message.message_type() == MSG_PACKET)?;
    let (mut id, mut len, mut info, mut payload) = (None, None, 0, &[][..]);
    for attribute in attributes(message.payload(), BODY_LEN) {
        let kind = attribute.kind();
        let length = usize::from(attribute.length());
        let value = attribute.into_inner().get(4..length).unwrap_or_default();
        let number = value.first_chunk().map(|number| u32::from_be_bytes(*number));
        match kind {
            PACKET_HEADER => id = number,
            CAPTURED => len = number,
            SKB_INFO => info = number.unwrap_or(0),
            PAYLOAD => payload = value,
            _ => {}
        }
    }
    let at = match payload {
        [] => 0,
        _ => payload.as_ptr() as usize - received.as_ptr() as usize,
    };
    Some(Found {
        id: id?,
        at,
        captured: payload.len(),
        len: len.map_or(payload.len(), |len| len as usize),
        checksum_ready: info & CHECKSUM_NOT_READY == 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; 16 + BODY_LEN];
        bytes[4..6].copy_from_slice(&MSG_PACKET.to_ne_bytes());
        for (kind, value) in attributes {
            bytes.extend_from_slice(&((4 + value.len()) as u16).to_ne_bytes());
            bytes.extend_from_slice(&kind.to_ne_bytes());
            bytes.extend_from_slice(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_packet_is_found_in_its_message() {
        // id 7, hardware protocol, hook; a packet of 1500 bytes of which five came; checksum not ready.
        let header = [0, 0, 0, 7, 8, 0, 2];
        let all = message(&[
            (PACKET_HEADER, &header),
            (CAPTURED, &1500u32.to_be_bytes()),
            (SKB_INFO, &3u32.to_be_bytes()),
            (PAYLOAD, b"\x45head"),
        ]);
        let found = parse(&all).unwrap();
        assert_eq!((found.id, found.len, found.checksum_ready), (7, 1500, false));
        assert_eq!(&all[found.at..found.at + found.captured], b"\x45head");
        // A whole one, and one without bytes.
        let whole = parse(&message(&[(PACKET_HEADER, &header), (PAYLOAD, b"all")])).unwrap();
        assert_eq!((whole.len, whole.checksum_ready), (3, true));
        assert_eq!(parse(&message(&[(PACKET_HEADER, &header)])).unwrap().captured, 0);
        assert_eq!(parse(&message(&[(PAYLOAD, b"nobody's")])), None);
        for length in 0..all.len() {
            assert_eq!(parse(&all[..length]), None, "{length} bytes of a message");
        }
    }
}

//! A packet as it leaves a host, read back.
//!
//! Every packet of every test is checked here. It has to be IP, and its checksums have to be right once the device's part
//! is done.

use std::fmt;
use std::net::SocketAddr;
use transom_tcp::time::Instant;
use transom_wire::offload::{TxChecksum, TxOffload, complete_checksum};
use transom_wire::{Flags, IpPacket, Protocol, TcpHeader, TcpPacket};

/// A packet that left a host.
#[derive(Clone)]
pub struct Sent {
    /// When it left.
    pub at: Instant,
    /// The whole packet; a partial checksum is completed.
    pub bytes: Vec<u8>,
    /// The work left to the device.
    pub offload: TxOffload,
    /// The stack's note of it for a capture; empty unless the host keeps comments.
    pub comment: String,
}

impl Sent {
    /// Takes a packet, completes its checksum as a device would, and checks what has to be right in every packet.
    #[track_caller]
    pub fn new(at: Instant, mut bytes: Vec<u8>, offload: TxOffload) -> Self {
        if offload.checksum != TxChecksum::Complete {
            complete_checksum(&mut bytes, offload.checksum).unwrap();
        }
        let sent = Sent { at, bytes, offload, comment: String::new() };
        let ip = sent.ip();
        if let IpPacket::V4(v4) = &ip {
            assert!(v4.checksum_ok(), "a wrong header checksum left");
        }
        if ip.protocol() == Protocol::TCP {
            assert!(ip.transport_checksum_ok(), "a wrong checksum left");
        }
        sent
    }

    /// Its IP header and what that carries.
    #[track_caller]
    pub fn ip(&self) -> IpPacket<'_> {
        IpPacket::parse(&self.bytes).expect("the host sends valid IP")
    }

    /// Whether it is a TCP segment.
    pub fn is_tcp(&self) -> bool {
        self.ip().protocol() == Protocol::TCP
    }

    /// The TCP header. The packet is a TCP segment.
    #[track_caller]
    pub fn tcp(&self) -> TcpHeader {
        assert!(self.is_tcp(), "{:?} left", self.ip().protocol());
        TcpPacket::parse(self.ip().payload()).expect("the host sends valid TCP").header
    }

    /// The flags of the TCP header.
    #[track_caller]
    pub fn flags(&self) -> Flags {
        self.tcp().flags
    }

    /// The TCP payload.
    #[track_caller]
    pub fn payload(&self) -> Vec<u8> {
        TcpPacket::parse(self.ip().payload()).unwrap().payload.to_vec()
    }

    /// From and to.
    #[track_caller]
    pub fn ends(&self) -> (SocketAddr, SocketAddr) {
        let (ip, tcp) = (self.ip(), self.tcp());
        (SocketAddr::new(ip.src(), tcp.src_port), SocketAddr::new(ip.dst(), tcp.dst_port))
    }
}

/// Its length, and the TCP header if there is one.
impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes.len())?;
        if self.is_tcp() { write!(f, ": {}", self.tcp()) } else { Ok(()) }
    }
}

/// The only packet of several.
#[track_caller]
pub fn one(sent: Vec<Sent>) -> Sent {
    assert_eq!(sent.len(), 1, "{sent:?}");
    sent.into_iter().next().unwrap()
}

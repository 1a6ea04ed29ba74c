//! Packet headers, options and checksums for IPv4, IPv6, TCP, UDP, ICMP and ICMPv6.
//!
//! Everything here is a pure function of bytes: no clock, no I/O, no allocation, no `unsafe`. A
//! *packet* type (`TcpPacket`, …) is a checked view of received bytes. A *header* type
//! (`TcpHeader`, …) is the plain value that is read from one and can be written out again. Received
//! bytes are hostile: whatever they say, the answer is a value or an [`Error`], never a panic.
//!
//! | to do | see |
//! |---|---|
//! | read a packet of either IP version | [`IpPacket`], then [`TcpPacket`], [`UdpPacket`], [`IcmpMessage`] |
//! | write one | [`IpHeader`], or [`Ipv4Header`] and [`Ipv6Header`]; [`TcpHeader`], [`UdpHeader`] |
//! | compute, verify or adjust a checksum | [`checksum`] |
//! | leave checksum or segmentation to the device, or do them for it | [`offload`] |
//!
//! ```
//! use transom_wire::{IpPacket, Protocol, TcpPacket, checksum, tcp};
//!
//! // A SYN from 192.0.2.1 port 49152 to 198.51.100.2 port 80, as a device delivered it.
//! let received = [
//!     0x45, 0x00, 0x00, 0x30, 0x12, 0x34, 0x40, 0x00, 0x40, 0x06, 0x3c, 0x5d, // IPv4
//!     192, 0, 2, 1, 198, 51, 100, 2, // addresses
//!     0xc0, 0x00, 0x00, 0x50, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, // TCP
//!     0x70, 0x02, 0xfa, 0xf0, 0xdc, 0x9e, 0x00, 0x00, // flags, window, checksum
//!     0x02, 0x04, 0x05, 0xb4, 0x01, 0x03, 0x03, 0x07, // MSS 1460, window scale 7
//! ];
//!
//! let packet = IpPacket::parse(&received)?;
//! assert!(packet.transport_checksum_ok());
//! assert_eq!(packet.protocol(), Protocol::TCP);
//! let segment = TcpPacket::parse(packet.payload())?;
//! assert_eq!(
//!     segment.header.to_string(),
//!     "49152 > 80 [SYN] seq 1 win 64240 mss 1460 wscale 7"
//! );
//!
//! // The same packet again, from the values.
//! let IpPacket::V4(v4) = packet else { unreachable!("the version is 4") };
//! let mut sent = [0; 48];
//! let tcp_len = segment.header.header_len() + segment.payload.len();
//! let ip_len = v4.header().emit(tcp_len, &mut sent)?;
//! segment.header.emit(&mut sent[ip_len..])?;
//! checksum::fill(
//!     packet.src(),
//!     packet.dst(),
//!     Protocol::TCP,
//!     &mut sent[ip_len..],
//!     tcp::CHECKSUM_OFFSET,
//! )?;
//! assert_eq!(sent, received);
//! # Ok::<(), transom_wire::Error>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod checksum;
mod error;
mod icmp;
pub mod ip;
mod ipv4;
mod ipv6;
pub mod offload;
mod seq;
pub mod tcp;
mod udp;

pub use checksum::Sum;
pub use error::Error;
pub use icmp::{IcmpMessage, UnreachableCode};
pub use ip::{Ecn, Fragment, IpHeader, IpPacket, Protocol, QuotedPacket};
pub use ipv4::{Ipv4Header, Ipv4Options, Ipv4Packet};
pub use ipv6::{ExtensionProblem, FragmentHeader, Ipv6Header, Ipv6Packet, MAX_EXTENSION_HEADERS};
pub use seq::Seq;
pub use tcp::{
    AccEcn, AccEcnCounters, AccEcnOrder, FastOpen, Flags, Options, PartialReliability, SackBlock,
    SackBlocks, TcpHeader, TcpPacket, Timestamps, UserTimeout,
};
pub use udp::{UdpHeader, UdpPacket};

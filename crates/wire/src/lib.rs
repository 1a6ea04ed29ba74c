//! Packet headers, options and checksums for IPv4, IPv6, TCP, UDP, ICMP and ICMPv6.
//!
//! Everything here is a pure function of bytes: no clock, no I/O, no allocation, no `unsafe`. A *packet*
//! type (`TcpPacket`, …) is a checked view of received bytes; a *header* type (`TcpHeader`, …) is the plain
//! value that is read from one and can be written out again. Received bytes are hostile: whatever they
//! say, the answer is a value or an [`Error`], never a panic.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod checksum;
mod error;
pub mod icmp;
pub mod icmpv6;
pub mod ip;
pub mod ipv4;
pub mod ipv6;
pub mod offload;
pub mod seq;
pub mod tcp;
pub mod udp;

pub use checksum::Sum;
pub use error::Error;
pub use icmp::IcmpMessage;
pub use icmpv6::Icmpv6Message;
pub use ip::{Ecn, Fragment, IpPacket, Protocol, QuotedPacket};
pub use ipv4::{Ipv4Header, Ipv4Options, Ipv4Packet};
pub use ipv6::{Ipv6Header, Ipv6Packet};
pub use seq::Seq;
pub use tcp::{
    FastOpen, Flags, OptionIter, Options, SackBlock, SackBlocks, TcpHeader, TcpOption, TcpPacket,
    Timestamps, UserTimeout, emit_options,
};
pub use udp::{UdpHeader, UdpPacket};

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

mod error;
pub mod offload;
pub mod seq;
pub mod tcp;

pub use error::Error;
pub use seq::Seq;
pub use tcp::{
    FastOpen, Flags, OptionIter, Options, SackBlock, SackBlocks, TcpHeader, TcpOption, TcpPacket,
    Timestamps, UserTimeout, emit_options,
};

//! A host, sans-IO: many TCP connections over one interface.
//!
//! [`Stack`] owns the connections of `transom-tcp` and the other state of a host. It has
//! the table that finds a packet's connection, listeners with their queues and SYN
//! cookies ([`ListenConfig`]), SYNs that wait for a decision ([`Incoming`]), the timing
//! wheel, and TIME-WAIT. It also has
//! cookies of TCP Fast Open ([`FastOpenConfig`]), unpredictable ports and sequence numbers,
//! ICMP and reassembly ([`FragmentLimits`]). It has no clock, no thread and no
//! device: packets and time come in by calls.
//!
//! # Example
//!
//! Two hosts joined by hand; a loop carries packets both ways:
//!
//! ```
//! use transom_stack::{ListenConfig, Stack, StackConfig};
//! use transom_tcp::time::Instant;
//!
//! fn carry(from: &mut Stack, to: &mut Stack, now: Instant) -> bool {
//!     let mut moved = false;
//!     while let Some(packet) = from.poll_transmit(now) {
//!         to.on_packet(now, &packet.to_vec(), Default::default());
//!         moved = true;
//!     }
//!     moved
//! }
//!
//! let now = Instant::ZERO;
//! let host = |address: &str| {
//!     Stack::new(StackConfig::new(vec![(address.parse().unwrap(), 24)]), now).unwrap()
//! };
//! let (mut alice, mut bob) = (host("10.0.0.1"), host("10.0.0.2"));
//!
//! let listener = bob.listen("0.0.0.0:80".parse().unwrap(), ListenConfig::default()).unwrap();
//! let client = alice.connect(now, None, "10.0.0.2:80".parse().unwrap(), None).unwrap();
//! alice.write(client, now, b"hello").unwrap();
//! while carry(&mut alice, &mut bob, now) | carry(&mut bob, &mut alice, now) {}
//!
//! let (server, _) = bob.accept(listener).unwrap();
//! let mut buffer = [0; 16];
//! assert_eq!(bob.read(server, now, &mut buffer), Ok(5));
//! assert_eq!(&buffer[..5], b"hello");
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod config;
mod cookie;
mod destinations;
mod fast_open;
mod flow;
mod fragments;
mod icmp;
mod icmp_errors;
mod incoming;
mod listener;
pub mod log;
pub mod mapped;
mod memory;
mod path_mtus;
mod secrets;
mod slab;
mod socket_options;
mod stack;
mod totals;
mod wheel;

pub use config::{
    Interface, Offload, PortSource, StackConfig, StackConfigError, StackCounters, is_unicast,
};
pub use fast_open::FastOpenConfig;
pub use flow::BoundPortChange;
pub use fragments::FragmentLimits;
pub use incoming::{AdmitError, Incoming, IncomingId, Refusal, Unreachable};
pub use listener::{ListenConfig, ListenerId};
pub use memory::{MemoryInfo, MemoryLimits, RESERVE};
pub use socket_options::{SocketOption, SocketOptions};
pub use stack::{
    ConnectError, ConnectionId, ForwardedPacket, ListenError, Shard, SocketError, Stack,
    StackSignal, Transmit,
};
pub use totals::{HostTotals, ListenTotals};

//! A host, sans-IO: many TCP connections over one interface.
//!
//! [`stack::Stack`] owns the connections of `transom-tcp` and the other state of a host. It has
//! the table that finds a packet's connection ([`flow`]), listeners with their queues and SYN
//! cookies ([`listener`], [`cookie`]), SYNs that wait for a decision ([`incoming`]), the timing
//! wheel ([`wheel`]), and TIME-WAIT. It also has
//! cookies of TCP Fast Open ([`fast_open`]), unpredictable ports and sequence numbers
//! ([`secrets`]), ICMP ([`icmp`]) and reassembly ([`fragments`]). It has no clock, no thread and no
//! device: packets and time come in by calls.
//!
//! # Example
//!
//! Two hosts joined by hand; a loop carries packets both ways:
//!
//! ```
//! use transom_stack::config::StackConfig;
//! use transom_stack::listener::ListenConfig;
//! use transom_stack::stack::{Packet, Stack};
//! use transom_tcp::time::Instant;
//!
//! fn carry(from: &mut Stack, to: &mut Stack, now: Instant) -> bool {
//!     let mut moved = false;
//!     while let Some(packet) = from.poll_transmit(now) {
//!         to.on_packet(now, Packet::borrowed(&packet.to_vec()));
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

pub mod config;
pub mod cookie;
mod destinations;
pub mod fast_open;
pub mod flow;
pub mod fragments;
pub mod icmp;
mod icmp_errors;
pub mod incoming;
pub mod listener;
pub mod log;
pub mod mapped;
pub mod memory;
mod path_mtus;
pub mod secrets;
mod slab;
pub mod socket_options;
pub mod stack;
pub mod totals;
pub mod wheel;

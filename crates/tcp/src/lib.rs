//! One TCP connection, sans-IO, composed of replaceable units.
//!
//! The crate owns no clock, no thread and no socket. Its centre is [`connection::Connection`]. Around it are the units of which a connection is
//! composed, each a small trait with several choices. The sender has [`congestion`] (how much may be in flight), [`slow_start`] (how that grows at
//! the beginning), [`recovery`] (which data is retransmitted) and [`rto`] (the retransmission timer). The others are [`ordering`] (in which order
//! data is delivered), [`flow`] (the advertised window), [`ack_policy`] (when to acknowledge) and [`pacing`] (when transmissions leave). A
//! [`profile::Profile`] names one choice for each.
//!
//! # Example
//!
//! Two connections, joined by hand:
//!
//! ```
//! use std::sync::Arc;
//! use transom_tcp::connection::{Connection, Endpoint, PathInfo, State};
//! use transom_tcp::packet::Payload;
//! use transom_tcp::passive::HalfOpen;
//! use transom_tcp::profile::Profile;
//! use transom_tcp::segment::Segment;
//! use transom_tcp::time::Instant;
//! use transom_wire::{Ecn, Seq};
//!
//! let now = Instant::ZERO;
//! let profile = Arc::new(Profile::default());
//! let path = PathInfo { mtu: 1500, interface_mtu: 1500, ip_header: 20, max_super_segment: None, simulated: false };
//! let client_ports = Endpoint { local_port: 40_000, remote_port: 80 };
//! let server_ports = Endpoint { local_port: 80, remote_port: 40_000 };
//!
//! let mut client = Connection::connect(profile.clone(), client_ports, path, Seq::new(1), 0, now);
//! let syn = client.poll_transmit(now).unwrap().header;
//! let mut half = HalfOpen::new(&profile, server_ports, path, Seq::new(9), 0, &syn, now);
//! let syn_ack = half.syn_ack(&profile, now);
//! client.on_segment(now, &Segment { header: &syn_ack, payload: Payload::EMPTY, segment_size: None, ecn: Ecn::NotEct });
//! assert_eq!(client.state(), State::Established);
//!
//! client.write(now, b"hello").unwrap();
//! let hello = client.poll_transmit(now).unwrap();
//! let mut server = Connection::from_half_open(profile, &half, now);
//! let bytes = hello.payload.concat();
//! server.on_segment(now, &Segment {
//!     header: &hello.header,
//!     payload: Payload::borrowed(&bytes),
//!     segment_size: None, ecn: Ecn::NotEct,
//! });
//! let mut buffer = [0; 16];
//! assert_eq!(server.read(now, &mut buffer), Ok(5));
//! assert_eq!(&buffer[..5], b"hello");
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod accurate_ecn;
pub mod ack_context;
pub mod ack_policy;
pub mod adu;
pub mod compose;
pub mod congestion;
pub mod connection;
mod control;
pub mod ecn;
pub mod event;
pub mod extension;
pub mod flow;
pub mod holes;
pub mod manipulation;
mod one_of;
pub mod options;
pub mod ordering;
pub mod pacing;
pub mod passive;
pub mod path_mtu;
pub mod persistence;
pub mod pos;
pub mod profile;
pub mod ranges;
pub mod rate;
pub mod recovery;
pub mod reduction;
pub mod reordering;
pub mod rto;
pub mod segment;
pub mod send_buffer;
pub mod sent;
pub mod slow_start;
pub mod state;
pub mod time_wait;
pub mod undo;
pub mod validation;

pub use transom_base::{arguments, packet, quantity, setters, time};

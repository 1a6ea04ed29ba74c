//! One TCP connection, sans-IO, composed of replaceable units.
//!
//! The crate owns no clock, no thread and no socket. Its centre is [`Connection`]. Around it are the units of which a connection is
//! composed, each a small trait with several choices. The sender has [`congestion`] (how much may be in flight), [`slow_start`] (how that grows at
//! the beginning), [`RecoveryChoice`] (which data is retransmitted) and [`TimerChoice`] (the retransmission timer). The others are [`OrderingChoice`] (in which order
//! data is delivered), [`FlowChoice`] (the advertised window), [`AckChoice`] (when to acknowledge) and [`PacingChoice`] (when transmissions leave). A
//! [`Profile`] names one choice for each.
//!
//! # Example
//!
//! Two connections, joined by hand:
//!
//! ```
//! use std::sync::Arc;
//! use transom_tcp::{Connection, Endpoint, HalfOpen, PathInfo, Profile, Segment, State};
//! use transom_tcp::packet::Payload;
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

mod accurate_ecn;
mod ack_context;
mod ack_policy;
mod adu;
pub mod compose;
pub mod congestion;
mod connection;
mod control;
mod ecn;
mod event;
pub mod extension;
mod flow;
mod holes;
pub mod manipulation;
mod named;
mod one_of;
mod options;
mod ordering;
mod pacing;
mod passive;
mod path_mtu;
mod persistence;
mod pos;
mod profile;
mod ranges;
mod rate;
mod recovery;
mod reduction;
mod reordering;
mod rto;
mod segment;
mod send_buffer;
mod sent;
pub mod slow_start;
mod state;
mod time_wait;
mod undo;
mod validation;

pub use accurate_ecn::Counts as AccurateCounts;
pub use ack_context::{AckContext, Newest};
pub use adu::AduConfig;
pub use connection::extensions::LayerInfo;
pub use connection::{
    AccurateInfo, Adu, Connection, ConnectionError, EcnInfo, Endpoint, FastOpenFailure,
    FastOpenInfo, FastOpenOutcome, IcmpError, MemoryState, OpeningState, PartialInfo, PathInfo,
    PathState, Piece, Prepared, RESERVE, ReadError, Received, Report, Setting, Settings, Signal,
    State, UnitChoice, WriteError, WriteOptions,
};
pub use ecn::EcnConfig;
pub use event::{Event, Probe, Publisher, Sent};
pub use flow::ReceiveWindowConfig;
pub use holes::{Hole, HoleChoice};
pub use options::Agreed;
pub use ordering::{Delivery, Taken, UnitFaults};
pub use passive::{HalfOpen, HalfOpenAction};
pub use path_mtu::{PathMtuChoice, PathMtuDiscovery};
pub use persistence::Persistence;
pub use pos::{Pos, SeqSpace};
pub use profile::{
    AckChoice, AckRule, CongestionChoice, Counting, EcnChoice, FlowChoice, InitialWindow,
    KeepAlive, MAX_WINDOW, OfferedOptions, OrderingChoice, PacingChoice, Profile, ProfileError,
    RecoveryChoice, ReductionChoice, SlowStartChoice, TimerChoice, ValidationChoice,
};
pub use rate::{LostTransmission, RateSample};
pub use recovery::Phase;
pub use rto::{
    Eifel, EifelConfig, Estimate, FixedConfig, RetransmissionTimer, Rfc6298, Rfc6298Config,
};
pub use segment::{Segment, Transmit, reset_for};
pub use send_buffer::{BLOCK, SpareBlocks, ZEROS};
pub use state::{ConnectionState, Counters, Glance, LimitReason, LimitedBy, Name, Untold};
pub use time_wait::{TimeWait, TimeWaitAction};
pub use transom_base::{arguments, packet, quantity, setters, time};
pub use undo::UndoConfig;

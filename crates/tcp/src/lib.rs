//! One TCP connection, sans-IO, composed of replaceable units.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod ack_context;
pub mod ack_policy;
pub mod congestion;
pub mod flow;
pub mod ordering;
pub mod pacing;
pub mod packet;
pub mod pos;
pub mod ranges;
pub mod rate;
pub mod recovery;
pub mod rto;
pub mod send_buffer;
pub mod sent;
pub mod time;

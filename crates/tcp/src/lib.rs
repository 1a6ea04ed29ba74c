//! One TCP connection, sans-IO, composed of replaceable units.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod packet;
pub mod time;

//! The vocabulary of every part of Transom: times, quantities, the one grammar of choices with parameters, and packet buffers.
//!
//! Nothing here knows a protocol. Numbers are integers that saturate, and a text is read the same on every machine.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod arguments;
pub mod packet;
pub mod quantity;
mod setters;
pub mod time;

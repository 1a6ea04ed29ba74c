//! Hostile input, in virtual time: what an attacker on or off the path, or a malicious peer, can make a host do.
//!
//! A module per family of attacks. In each of them the bounds are asserted, not measured by a clock. A counting allocator
//! tells how much memory the host holds and how often it allocates, every injected packet has a bound on the packets that
//! leave because of it, and the host's own invariants are checked after every packet (see [`harness`]).
//!
//! Each test says what holds. Where an attack cannot be told from honest behaviour, that is said too.
#![allow(unreachable_pub)] // one binary: what is public is so for its other modules

mod acks;
mod allocator;
mod blind;
mod crumbs;
mod fast_open;
mod floods;
mod forged_icmp;
mod fragments;
mod harness;
mod hoarding;
mod malformed;
mod memory;
mod peer;
mod states;
mod storms;
mod substitution;

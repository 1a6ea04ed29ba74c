//! `libtransom`: BSD sockets for C programs, over a TCP in this process.
//!
//! What the calls mean is in `transom-sockets`, which `transom-sansio` uses too. Here a real host drives them: a stack on a device, with the
//! runtime of `transom-net`. Programs see [`ffi`] by way of `include/transom/transom.h`; docs/c.md tells how they use it.
//!
//! | module | what it does |
//! |---|---|
//! | [`stack`] | opens stacks by the words of a device, and makes calls wait on them |
//! | [`registry`] | knows which descriptors of the process are sockets of this library; `fork` and `exit` |
//! | [`entry`] | one such descriptor |
//! | [`watch`] | tells who waits with `poll`, `epoll` or a stack's descriptor |
//! | [`poll`] | `poll` over sockets of this library and of the kernel |
//! | [`signals`] | whether a signal ends a call |
#![deny(unsafe_code)]

mod entry;
mod error;
#[allow(unsafe_code, reason = "C's pointers and calls; every use says why it is sound")]
pub mod ffi;
mod poll;
mod registry;
#[allow(unsafe_code, reason = "sigaction and pthread_sigmask; every use says why it is sound")]
mod signals;
mod stack;
mod watch;

//! The meaning of Linux' socket calls, over a sans-IO stack: descriptors, options, readiness, errors.
//!
//! The rules are here once, and two libraries for C programs use them. `transom-sansio` drives a stack in virtual time;
//! `libtransom` drives one that runs on a device. A driver of a stack implements [`Drive`]: how a call gets the stack, and how it
//! waits. In return it has all calls of [`SocketCalls`].
//!
//! | module or type | what it has |
//! |---|---|
//! | [`SocketCalls`] | the calls, for the driver of a stack |
//! | [`Drive`] | what a driver does, and a host's sockets at one moment |
//! | [`Table`] | descriptors, and the sockets behind them |
//! | [`socket`], [`address`], [`options`], [`info`] | sockets, addresses, options and `TCP_INFO` as C programs hold them |
//! | [`stream`], [`closing`], [`readiness`], [`urgent`] | reading and writing, `shutdown` and `close`, `poll`, the urgent byte |
//! | [`errno`] | errors by Linux' numbers |
#![forbid(unsafe_code)]

pub mod address;
mod calls;
pub mod closing;
mod drive;
pub mod errno;
mod fast_open;
pub mod info;
mod opening;
pub mod options;
pub mod readiness;
pub mod socket;
pub mod stream;
mod table;
pub mod urgent;

pub use calls::SocketCalls;
pub use drive::{Awaited, Drive, Port, Sockets, Waited};
pub use errno::{Errno, Result};
pub use table::Table;

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
//! | [`address`], [`options`], [`TcpInfo`] | addresses, options and `TCP_INFO` as C programs hold them |
//! | [`Sink`] | where received bytes go to |
//! | [`Errno`] | errors by Linux' numbers |
//!
//! Linux' constants are those of `libc`.
#![forbid(unsafe_code)]

pub mod address;
mod calls;
mod closing;
mod drive;
mod errno;
mod fast_open;
mod info;
mod opening;
pub mod options;
mod readiness;
mod socket;
mod stream;
mod table;
mod urgent;

pub use calls::SocketCalls;
pub use drive::{Awaited, Drive, Port, Sockets, Waited};
pub use errno::{Errno, Result};
pub use info::TcpInfo;
pub use stream::Sink;
pub use table::Table;

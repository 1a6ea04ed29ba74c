//! Stacks, streams and listeners.
//!
//! Every call gives up Python's lock before it takes the stack's. A call that waits looks for signals, such as Ctrl-C, ten times a second.
//!
//! | module | what it does |
//! |---|---|
//! | [`held`] | holds what takes a stack's lock when it ends, and ends it without Python's |
//! | [`waiting`] | calls that wait, with their timeouts |
//! | [`stack`] | a host on a device |
//! | [`stream`], [`listener`] | its sockets |

mod held;
mod listener;
mod stack;
mod stream;
mod waiting;

pub(crate) use listener::Listener;
pub(crate) use stack::{MemoryDevice, Stack, memory_devices};
pub(crate) use stream::Stream;

use std::net::SocketAddr;

/// An address as the module socket has it.
fn shown(address: SocketAddr) -> (String, u16) {
    (address.ip().to_string(), address.port())
}

//! Extensions in other processes, in any language: they come to a Unix socket, see a connection, and narrow what it does.
//!
//! [`ExtensionSocket`] listens at a path and [is offered](ExtensionSocket::offer) connections. Whoever comes chooses one and the events it
//! wants to hear of, is told of them with the view of the connection, and says what it wants. The protocol is in docs/remote-extensions.md, a client in Python in
//! examples/remote.
//!
//! # Theory of operation
//!
//! A peer is an [`Observer`](transom_net::Observer) with a socket: one thread reads what the peer says, one tells it what happens. Nothing of it touches
//! the connection but through the observer's mailbox, which holds one view. So a peer that is slow, or does not read at all, holds up the thread that
//! writes to it and nothing else; what happens meanwhile is told together, and counted as missed. A peer that goes, that reads nothing for five seconds though there
//! is something to read, or that breaks the protocol is at fault like any other extension: its layer is detached, the connection reports it, and the flow goes on
//! without.
//!
//! What a peer says is hostile until it has been parsed ([`protocol`]): lines and frames are bounded, numbers are checked, and the first thing that
//! makes no sense is answered with the reason, and is the last.
#![forbid(unsafe_code)]

pub mod protocol;
mod server;

pub use server::{ExtensionSocket, Offer};

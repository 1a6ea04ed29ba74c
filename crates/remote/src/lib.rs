//! Extensions in other processes, in any language: they come to a Unix socket, see a connection, and narrow what it does.
//!
//! [`ExtensionSocket`] listens at a path and [is offered](ExtensionSocket::offer) connections. A peer chooses a connection and events. It then
//! receives these events with the view of the connection, and sends its requests. The protocol is in docs/remote-extensions.md, a client in Python in
//! examples/remote.
//!
//! # Theory of operation
//!
//! A peer is an [`Observer`](transom_net::Observer) with a socket: one thread reads its commands, one sends it events. Both touch the connection only
//! through the observer's mailbox, which holds one view. So a slow peer delays only the thread that writes to it. Events that happen meanwhile are
//! reported together, and counted as missed. A peer is at fault like any other extension if it disconnects, reads nothing for five seconds although
//! there is data, or breaks the protocol. Then its layer is detached, the connection reports it, and the flow continues.
//!
//! Input from a peer is hostile until it has been parsed ([`protocol`]): lines and frames are bounded, and numbers are checked. The first invalid
//! message is answered with the reason, and ends the connection.
//! # The Congestion Manager of several processes
//!
//! [`cm`] is the other side of the protocol: one process that is attached to the connections of several others.
#![forbid(unsafe_code)]

pub mod cm;
pub mod protocol;
mod server;

pub use server::{ExtensionSocket, Offer};

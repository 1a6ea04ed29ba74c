//! The Congestion Manager of several processes: icCM (icTCP, section 5.4.2) with a server.
//!
//! [`CmServer`] is one process. It attaches to the connections that other processes offer at their extension sockets
//! ([`ExtensionSocket`](crate::ExtensionSocket)). Connections to one address are a macroflow, without a name of its own. At each round trip, loss
//! and timeout of a connection the server takes its state, and limits its congestion window to its share. The shares are those of
//! [`transom_extensions::cm`]: the server has no arithmetic of its own.
//!
//! Flows of UDP take part by a second socket (docs/remote-extensions.md describes it). A program registers the destination with [`Client`], reports its receiver's
//! feedback, and sends when it gets a grant.
//!
//! # Permissions
//!
//! The server takes programs, and attaches to sockets, of its own user and of root only (SO_PEERCRED). A program can take bandwidth away from
//! the flows of its macroflow, and cannot make a TCP connection faster than TCP itself.
//!
//! # Ends
//!
//! When the server is gone, Transom detaches its layers: the connections are plain TCP again. When a process or a program is gone, its flows leave
//! their macroflows. A program without a server gets an error from [`Client`] and has to control its congestion itself.
//!
//! # Theory of operation
//!
//! One thread waits for all sockets, and never for a single one. What arrives is bounded: lines, frames, connections, programs, requests. Data that a
//! peer does not take is bounded as well, and a peer that takes none for five seconds is dropped. Of several events that wait, only the last counts.
//!
//! Differences from the extension `cm` in a process: a connection that begins to send again after a pause is counted from its next round trip on,
//! because the server does not ask for every transmission. A share arrives later, by the time that the two processes take.

mod attachment;
mod client;
mod companion;
mod protocol;
mod server;
mod sockets;
mod wire;

pub use client::{Client, Grant};
pub use protocol::{Estimate, Flow, Macroflow, Registration};
pub use server::CmServer;

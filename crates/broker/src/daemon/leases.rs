//! The leases.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::closing::ReceivedFd;
use super::layout::LeaseEntry;
use super::process::Process;
use crate::policy::Caller;

/// A device that is lent.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) entry: LeaseEntry,
    /// The user with the groups as they were when it was opened or found: to ask for them can take long.
    pub(super) caller: Caller,
    /// The device's name.
    pub(super) device: String,
    pub(super) process: Process,
    /// Ports by the cookies of their sockets.
    pub(super) ports: BTreeMap<u64, LeasedPort>,
    /// Whether a connection belongs to it.
    pub(super) connected: bool,
}

impl Lease {
    pub(super) fn endpoints(&self) -> impl Iterator<Item = SocketAddr> {
        self.ports.values().flat_map(|held| held.endpoints.iter().copied())
    }
}

/// A port that a process holds by a socket.
#[derive(Debug)]
pub(super) struct LeasedPort {
    pub(super) bound: SocketAddr,
    pub(super) only_v6: bool,
    /// Our copy of the socket, so that the kernel gives the port to nobody else. A broker that was started anew has none until it is shown again.
    pub(super) _socket: Option<ReceivedFd>,
    pub(super) endpoints: BTreeSet<SocketAddr>,
}

/// All of them, by the device's number.
pub(super) type Leases = BTreeMap<u32, Lease>;

/// The token as it is sent.
pub(super) fn token_text(token: &[u8; 16]) -> String {
    token.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a token is this one; how long it takes does not depend on where they differ.
pub(super) fn is_token(text: &str, token: &[u8; 16]) -> bool {
    let right = token_text(token);
    let differ = right.bytes().zip(text.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    text.len() == right.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_token_is_accepted() {
        let token = [0xa5; 16];
        assert!(is_token(&token_text(&token), &token));
        for text in ["", "a5", &"a5".repeat(15), &"a5".repeat(17), &"5a".repeat(16)] {
            assert!(!is_token(text, &token), "{text}");
        }
    }
}

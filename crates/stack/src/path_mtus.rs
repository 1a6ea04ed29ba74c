//! The host's knowledge of the paths to other hosts (RFC 1191 section 6.3), from its connections.
//!
//! A path MTU that one connection believes slows every later one to the same host, so it takes evidence: two connections must have found the path to be
//! narrow. One that carried larger segments to the end proves the opposite.

use crate::flow::KeyedHash;
use crate::stack::ConnectionId;
use core::net::IpAddr;
use hashbrown::HashMap;
use transom_tcp::time::{Duration, Instant};

/// The most hosts that are remembered.
const MAX_PATHS: usize = 4096;

/// How long a path MTU is believed (RFC 1191 section 6.3, RFC 8201 section 4).
const LIFETIME: Duration = Duration::from_secs(600);

/// The MTU of a path. Smaller ones come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PathMtu {
    /// In bytes of an IP packet.
    pub(crate) mtu: u32,
    /// Packets of that size pass whole; otherwise they are fragmented.
    pub(crate) whole: bool,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    /// The value that two connections have found.
    known: Option<PathMtu>,
    /// A smaller value that one connection has found.
    claim: Option<(PathMtu, ConnectionId)>,
    /// When anything was last found.
    learned: Instant,
}

/// Path MTUs by remote address.
#[derive(Debug)]
pub(crate) struct PathMtus {
    paths: HashMap<IpAddr, Path, KeyedHash>,
}

impl PathMtus {
    pub(crate) fn new(hash: KeyedHash) -> Self {
        PathMtus { paths: HashMap::with_hasher(hash) }
    }

    /// The path MTU towards `remote`, if it is known to be less than the interface's.
    pub(crate) fn get(&self, remote: IpAddr, now: Instant) -> Option<PathMtu> {
        let path = self.paths.get(&remote)?;
        path.known.filter(|_| now.since(path.learned) < LIFETIME)
    }

    /// The connection `by` believes that no more than `found` reaches `remote`.
    pub(crate) fn note(&mut self, by: ConnectionId, remote: IpAddr, found: PathMtu, now: Instant) {
        let known = self.paths.get(&remote).copied();
        let known = known.filter(|path| now.since(path.learned) < LIFETIME);
        let mut path = known.unwrap_or(Path { known: None, claim: None, learned: now });
        path.learned = now;
        if path.known.is_none_or(|known| found < known) {
            match path.claim {
                // The larger of the two is what both say.
                Some((claimed, other)) if other != by => {
                    (path.known, path.claim) = (Some(claimed.max(found)), None);
                }
                _ => path.claim = Some((found, by)),
            }
        }
        if known.is_none() && self.paths.len() >= MAX_PATHS {
            self.paths.retain(|_, path| now.since(path.learned) < LIFETIME);
        }
        if self.paths.len() < MAX_PATHS || self.paths.contains_key(&remote) {
            self.paths.insert(remote, path);
        }
    }

    /// A packet of this size has reached `remote`. Contradicting values are dropped.
    pub(crate) fn prove(&mut self, remote: IpAddr, carried: PathMtu) {
        let Some(path) = self.paths.get_mut(&remote) else { return };
        path.claim = path.claim.filter(|&(claimed, _)| claimed >= carried);
        path.known = path.known.filter(|&known| known >= carried);
        if path.known.is_none() && path.claim.is_none() {
            self.paths.remove(&remote);
        }
    }
}

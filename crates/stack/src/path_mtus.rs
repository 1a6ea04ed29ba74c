//! What the host's connections have found out about the paths to other hosts (RFC 1191 section 6.3).
//!
//! A path MTU that one connection believes slows every later one to the same host, so it takes evidence: two connections must have found the path to be
//! narrow. One that carried larger segments to the end proves the opposite.

use crate::flow::KeyedHash;
use crate::stack::ConnectionId;
use core::net::IpAddr;
use hashbrown::HashMap;
use transom_tcp::time::{Duration, Instant};

/// So many hosts are remembered.
const MAX_PATHS: usize = 4096;

/// How long a path MTU is believed (RFC 1191 section 6.3, RFC 8201 section 4).
const LIFETIME: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug)]
struct Path {
    /// What two connections have found.
    mtu: Option<u32>,
    /// What one has found that is less.
    claim: Option<(u32, ConnectionId)>,
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
    pub(crate) fn get(&self, remote: IpAddr, now: Instant) -> Option<u32> {
        let path = self.paths.get(&remote)?;
        path.mtu.filter(|_| now.since(path.learned) < LIFETIME)
    }

    /// The connection `by` believes that packets of more than `mtu` bytes do not reach `remote`.
    pub(crate) fn note(&mut self, by: ConnectionId, remote: IpAddr, mtu: u32, now: Instant) {
        let known = self.paths.get(&remote).copied();
        let known = known.filter(|path| now.since(path.learned) < LIFETIME);
        let mut path = known.unwrap_or(Path { mtu: None, claim: None, learned: now });
        path.learned = now;
        if path.mtu.is_none_or(|known| mtu < known) {
            match path.claim {
                // The larger of the two is what both say.
                Some((claimed, other)) if other != by => {
                    (path.mtu, path.claim) = (Some(claimed.max(mtu)), None);
                }
                _ => path.claim = Some((mtu, by)),
            }
        }
        if known.is_none() && self.paths.len() >= MAX_PATHS {
            self.paths.retain(|_, path| now.since(path.learned) < LIFETIME);
        }
        if self.paths.len() < MAX_PATHS || self.paths.contains_key(&remote) {
            self.paths.insert(remote, path);
        }
    }

    /// Packets of `mtu` bytes have reached `remote`. What contradicts that is forgotten.
    pub(crate) fn prove(&mut self, remote: IpAddr, mtu: u32) {
        let Some(path) = self.paths.get_mut(&remote) else { return };
        path.claim = path.claim.filter(|&(claimed, _)| claimed >= mtu);
        path.mtu = path.mtu.filter(|&known| known >= mtu);
        if path.mtu.is_none() && path.claim.is_none() {
            self.paths.remove(&remote);
        }
    }
}

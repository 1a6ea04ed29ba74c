//! The host's state of TCP Fast Open (RFC 7413): the cookies that it gives to clients, and those that it has from servers.
//!
//! A cookie is a keyed hash of both addresses. So a client can use it from its own address only, and the host needs no memory to check it (RFC 7413
//! section 4.1.2). The key changes once in a [lifetime](FastOpenConfig::key_lifetime). A cookie of the previous key is accepted too, and its client
//! gets a new one. Cookies are compared as 64-bit numbers, in constant time.

use crate::flow::{FlowKey, KeyedHash};
use crate::secrets::{Purpose, Secrets};
use core::hash::Hash;
use core::net::{IpAddr, SocketAddr};
use hashbrown::HashMap;
use transom_tcp::FastOpenOutcome;
use transom_tcp::time::{Duration, Instant};
use transom_wire::FastOpen;

/// How a host does Fast Open where it is asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FastOpenConfig {
    /// How long a key makes cookies. They are honoured for as long again. At least a second; a day by default.
    pub key_lifetime: Duration,
    /// The most servers whose cookies are remembered; the least recently used one is dropped first. The same number of refusals is remembered.
    pub servers: usize,
}

transom_tcp::setters! {
    const FastOpenConfig:
    with_key_lifetime = key_lifetime: Duration,
    with_servers = servers: usize,
}

impl Default for FastOpenConfig {
    fn default() -> Self {
        FastOpenConfig { key_lifetime: Duration::from_secs(86_400), servers: 1024 }
    }
}

/// The validity of a cookie that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Made with the present key.
    Valid,
    /// Made with the key before: it is time for another.
    Old,
    /// Not made by us for this client, or too long ago.
    Unknown,
}

fn epoch(config: &FastOpenConfig, now: Instant) -> u64 {
    now.as_nanos() / config.key_lifetime.max(Duration::from_secs(1)).as_nanos()
}

fn mac(secrets: &Secrets, key: &FlowKey, epoch: u64) -> u64 {
    secrets.hash(Purpose::FastOpen, &(epoch, key.local, key.remote))
}

/// The cookie for the client at the other end of `key`.
pub(crate) fn make(
    secrets: &Secrets,
    config: &FastOpenConfig,
    key: &FlowKey,
    now: Instant,
) -> Option<FastOpen> {
    FastOpen::new(&mac(secrets, key, epoch(config, now)).to_be_bytes())
}

/// Whether `cookie` is one of ours for that client.
pub(crate) fn check(
    secrets: &Secrets,
    config: &FastOpenConfig,
    key: &FlowKey,
    cookie: &FastOpen,
    now: Instant,
) -> Verdict {
    let Ok(bytes) = cookie.as_slice().try_into() else { return Verdict::Unknown };
    let cookie = u64::from_be_bytes(bytes);
    let epoch = epoch(config, now);
    if mac(secrets, key, epoch) == cookie {
        return Verdict::Valid;
    }
    match epoch.checked_sub(1) {
        Some(before) if mac(secrets, key, before) == cookie => Verdict::Old,
        _ => Verdict::Unknown,
    }
}

/// The first refusal is remembered for so long, each further one in a row for twice as long.
const REFUSAL: Duration = Duration::from_secs(60);
/// The most times that it is doubled.
const MOST_DOUBLINGS: u32 = 6;

#[derive(Clone, Copy, Debug)]
struct Server {
    cookie: FastOpen,
    mss: u16,
    used: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Refusal {
    until: Instant,
    in_a_row: u32,
}

/// The servers with a cookie for this host, and those without.
///
/// A cookie belongs to our address and the server's (RFC 7413 section 4.1.3). A refusal belongs to a port too, because a server enables Fast Open for
/// each. RFC 7413 section 4.1.3.1 has negative responses remembered: no answer to a SYN with the option, an ICMP error about it, an answer that takes
/// none of its data, or one without a cookie.
#[derive(Debug)]
pub(crate) struct Servers {
    most: usize,
    cookies: HashMap<(IpAddr, IpAddr), Server, KeyedHash>,
    refusals: HashMap<(IpAddr, SocketAddr), Refusal, KeyedHash>,
}

impl Servers {
    pub(crate) fn new(most: usize, hash: KeyedHash) -> Self {
        Servers {
            most,
            cookies: HashMap::with_hasher(hash.clone()),
            refusals: HashMap::with_hasher(hash),
        }
    }

    /// The option of a SYN of this flow, and the segment size for a cookie; nothing while the server refuses.
    pub(crate) fn option_for(&mut self, key: &FlowKey, now: Instant) -> Option<(FastOpen, u16)> {
        let refused = self.refusals.get(&(key.local, key.remote()));
        if refused.is_some_and(|refusal| now < refusal.until) {
            return None;
        }
        let Some(server) = self.cookies.get_mut(&(key.local, key.remote)) else {
            return Some((FastOpen::REQUEST, 0));
        };
        server.used = now;
        Some((server.cookie, server.mss))
    }

    /// The handshake of a SYN with the option is complete, or has failed.
    pub(crate) fn learn(&mut self, key: &FlowKey, outcome: FastOpenOutcome, now: Instant) {
        let FastOpenOutcome { cookie, mss, requested, lost, refused } = outcome;
        let addresses = (key.local, key.remote);
        let service = (key.local, key.remote());
        if lost || refused || (requested && cookie.is_none()) {
            self.refuse(service, now);
        } else {
            self.refusals.remove(&service);
        }
        if let Some(cookie) = cookie {
            let server = Server { cookie, mss, used: now };
            insert_bounded(&mut self.cookies, self.most, addresses, server, |server| server.used);
        } else if let Some(server) = self.cookies.get_mut(&addresses).filter(|_| !lost) {
            server.mss = mss;
        }
    }

    fn refuse(&mut self, service: (IpAddr, SocketAddr), now: Instant) {
        let before = self.refusals.get(&service).map_or(0, |refusal| refusal.in_a_row);
        let until = now + REFUSAL.doubled(before.min(MOST_DOUBLINGS));
        let refusal = Refusal { until, in_a_row: before.saturating_add(1) };
        insert_bounded(&mut self.refusals, self.most, service, refusal, |refusal| refusal.until);
    }
}

/// Inserts a value; if there are too many, drops the one with the earliest time.
fn insert_bounded<K: Copy + Eq + Hash, V>(
    map: &mut HashMap<K, V, KeyedHash>,
    most: usize,
    key: K,
    value: V,
    time: impl Fn(&V) -> Instant,
) {
    if !map.contains_key(&key) && map.len() >= most.max(1) {
        let oldest = map.iter().min_by_key(|(_, value)| time(value)).map(|(&key, _)| key);
        oldest.map(|oldest| map.remove(&oldest));
    }
    map.insert(key, value);
}

#[cfg(test)]
#[path = "fast_open/tests.rs"]
mod tests;

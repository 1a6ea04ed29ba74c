//! Listeners: their addresses, and how many connections may queue.

use crate::flow::{FlowKey, KeyedHash};
use crate::incoming::IncomingId;
use crate::mapped::Bound;
use crate::stack::ConnectionId;
use crate::totals::{ListenCounts, ListenTotals};
use crate::wheel::TimerId;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use hashbrown::HashMap;
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{HalfOpen, Profile};

/// A reset of a connection that opened fast counts for so long, as on Linux (RFC 7413 section 5.1).
pub(crate) const RESET_COUNTS_FOR: Duration = Duration::from_secs(60);

/// A listener's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// How a listener listens.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListenConfig {
    /// Connections that may wait to be accepted.
    pub backlog: usize,
    /// Half-open connections that may wait for the peer's acknowledgement before cookies are used.
    pub syn_backlog: usize,
    /// The profile of its connections; `None`: the host's.
    pub profile: Option<Arc<Profile>>,
    /// TCP Fast Open (RFC 7413): the most connections that began with data in a SYN and wait for the end of their handshake. Beyond that, and always
    /// with 0, data in a SYN is not accepted.
    ///
    /// A program with this option accepts a risk: such a connection can be accepted, read and answered before the peer is verified. And a SYN that
    /// the network duplicates, or the client repeats, is a new connection with the same data if it arrives after the first connection has ended (RFC
    /// 7413 section 2.1). So it is for idempotent requests.
    pub fast_open: usize,
    /// At the unspecified IPv6 address, listen for IPv6 alone and not for IPv4 too (`IPV6_V6ONLY`). It cannot be changed
    /// later.
    pub v6_only: bool,
    /// SYNs are [held](crate::Incoming) for as long as this at most, instead of being answered; `None`: they are answered at once. A listener that holds
    /// them sends no SYN cookies, and does no Fast Open.
    pub hold_syns: Option<Duration>,
    /// The counts that all parts of a listener share, if it is in several shards. Its limits are those of all parts together.
    pub totals: Option<Arc<ListenTotals>>,
}

transom_tcp::setters! {
    ListenConfig:
    with_backlog = backlog: usize,
    with_syn_backlog = syn_backlog: usize,
    with_profile = profile: Option<Arc<Profile>>,
    with_fast_open = fast_open: usize,
    with_v6_only = v6_only: bool,
    with_hold_syns = hold_syns: Option<Duration>,
    with_totals = totals: Option<Arc<ListenTotals>>,
}

impl Default for ListenConfig {
    fn default() -> Self {
        ListenConfig {
            backlog: 128,
            syn_backlog: 256,
            profile: None,
            fast_open: 0,
            v6_only: false,
            hold_syns: None,
            totals: None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) bound: Bound,
    pub(crate) profile: Arc<Profile>,
    pub(crate) backlog: usize,
    pub(crate) syn_backlog: usize,
    /// The number of the shard, and where its parts count together.
    pub(crate) shard: u32,
    pub(crate) totals: Option<Arc<ListenTotals>>,
    pub(crate) half_open: usize,
    /// The limit of connections that opened fast and wait for their handshake, and how many there are.
    pub(crate) fast_open: usize,
    pub(crate) fast_pending: usize,
    /// When others were reset before that.
    pub(crate) fast_resets: VecDeque<Instant>,
    pub(crate) accept: VecDeque<ConnectionId>,
    /// For how long SYNs are held, how many are, and how many of them its owner has not taken. Those have their names in `arrivals`, which may
    /// have some more.
    pub(crate) hold_syns: Option<Duration>,
    pub(crate) held: usize,
    pub(crate) untaken: usize,
    pub(crate) arrivals: VecDeque<IncomingId>,
    /// Cookies were sent lately and are accepted until then.
    pub(crate) cookies_until: Instant,
}

impl Listener {
    /// No more connections may wait to be accepted.
    pub(crate) fn is_full(&self) -> bool {
        self.accept.len() + self.elsewhere().accept >= self.backlog
    }

    /// Half-open connections and held SYNs in all shards: the SYN backlog is for both.
    pub(crate) fn unfinished(&self) -> usize {
        self.half_open + self.held + self.elsewhere().half_open
    }

    /// No more connections may begin with data in a SYN.
    pub(crate) fn is_full_of_fast(&self, now: Instant) -> bool {
        let here = self.fast_pending + self.fast_resets.len();
        let totals = self.totals.as_ref();
        let resets = totals.map_or(0, |totals| totals.resets_of_others(self.shard, now));
        here + self.elsewhere().fast + resets >= self.fast_open
    }

    /// What its other parts have.
    fn elsewhere(&self) -> ListenCounts {
        let totals = self.totals.as_ref();
        totals.map_or_else(ListenCounts::default, |totals| totals.others(self.shard))
    }

    /// Tells the other shards what is here.
    pub(crate) fn tell(&self) {
        if let Some(totals) = &self.totals {
            let counts = ListenCounts {
                accept: self.accept.len(),
                half_open: self.half_open + self.held,
                fast: self.fast_pending,
            };
            let until = self.fast_resets.back().map(|&last| last + RESET_COUNTS_FOR);
            totals.tell(self.shard, counts, (self.fast_resets.len(), until));
        }
    }
}

/// A half-open connection with its place in the host.
#[derive(Debug)]
pub(crate) struct HalfEntry {
    pub(crate) half: HalfOpen,
    pub(crate) key: FlowKey,
    pub(crate) listener: ListenerId,
    pub(crate) timer: TimerId,
    /// When the SYN-ACK was last sent because the SYN came again, or first.
    pub(crate) last_syn_ack: Instant,
    pub(crate) last_challenge: Option<Instant>,
    /// The held SYN that was admitted.
    pub(crate) incoming: Option<IncomingId>,
}

/// Which listener is where. An exact address wins over the unspecified one, and that of IPv4 over a dual-stack listener's.
#[derive(Debug)]
pub(crate) struct ListenTable {
    by_address: HashMap<SocketAddr, (ListenerId, Bound), KeyedHash>,
    /// How many listeners there are at a port.
    at_port: HashMap<u16, u32, KeyedHash>,
    /// The listener for everything that no other one has, and whether that is IPv6 alone.
    everything: Option<(ListenerId, bool)>,
}

impl ListenTable {
    pub(crate) fn new(hash: KeyedHash) -> Self {
        ListenTable {
            by_address: HashMap::with_hasher(hash.clone()),
            at_port: HashMap::with_hasher(hash),
            everything: None,
        }
    }

    /// The listener for packets to `local`.
    pub(crate) fn find(&self, local: SocketAddr) -> Option<ListenerId> {
        self.find_named(local).or_else(|| {
            let takes = |&(_, v6_only): &(ListenerId, bool)| local.is_ipv6() || !v6_only;
            self.everything.filter(takes).map(|(id, _)| id)
        })
    }

    /// The listener at `local`, other than the one for everything.
    pub(crate) fn find_named(&self, local: SocketAddr) -> Option<ListenerId> {
        let at = |ip: IpAddr| self.by_address.get(&SocketAddr::new(ip, local.port()));
        let exact = self.by_address.get(&local);
        let found = match local.ip() {
            IpAddr::V4(_) => exact
                .or_else(|| at(Ipv4Addr::UNSPECIFIED.into()))
                .or_else(|| at(Ipv6Addr::UNSPECIFIED.into()).filter(|(_, bound)| bound.is_dual)),
            IpAddr::V6(_) => exact.or_else(|| at(Ipv6Addr::UNSPECIFIED.into())),
        };
        found.map(|&(id, _)| id)
    }

    /// Whether a listener at `bound` would be one too many: there is one at the same address, or both would have all of IPv4.
    pub(crate) fn conflicts(&self, bound: &Bound) -> bool {
        let address = bound.address;
        let at = |ip: IpAddr| self.by_address.get(&SocketAddr::new(ip, address.port()));
        let other = match address.ip() {
            ip if bound.is_dual => at(ip).or_else(|| at(Ipv4Addr::UNSPECIFIED.into())),
            ip if ip == Ipv4Addr::UNSPECIFIED => at(ip)
                .or_else(|| at(Ipv6Addr::UNSPECIFIED.into()).filter(|(_, other)| other.is_dual)),
            ip => at(ip),
        };
        other.is_some()
    }

    /// Whether `bound` is free, so that it takes no packets of another socket.
    pub(crate) fn is_free(&self, bound: &Bound) -> bool {
        let address = bound.address;
        if address.ip().is_unspecified() {
            return !self.at_port.contains_key(&address.port());
        }
        self.find_named(address).is_none()
    }

    pub(crate) fn insert(&mut self, bound: Bound, id: ListenerId) {
        let address = bound.address;
        if self.by_address.insert(address, (id, bound)).is_none() {
            *self.at_port.entry(address.port()).or_default() += 1;
        }
    }

    /// Makes a listener the one for everything, unless there is one.
    pub(crate) fn insert_everything(&mut self, id: ListenerId, v6_only: bool) -> bool {
        let free = self.everything.is_none();
        self.everything = self.everything.or(Some((id, v6_only)));
        free
    }

    pub(crate) fn remove(&mut self, bound: &Bound, id: ListenerId) {
        if self.everything.is_some_and(|(everything, _)| everything == id) {
            self.everything = None;
            return;
        }
        let address = bound.address;
        if self.by_address.remove(&address).is_some()
            && let Some(count) = self.at_port.get_mut(&address.port())
        {
            *count -= 1;
            if *count == 0 {
                self.at_port.remove(&address.port());
            }
        }
    }
}

//! Listeners: who waits for connections where, and how many may queue.

use crate::flow::{FlowKey, KeyedHash};
use crate::stack::ConnectionId;
use crate::wheel::TimerId;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::net::{IpAddr, SocketAddr};
use hashbrown::HashMap;
use transom_tcp::passive::HalfOpen;
use transom_tcp::profile::Profile;
use transom_tcp::time::Instant;

/// A listener's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// How a listener listens.
#[derive(Clone, Debug)]
pub struct ListenConfig {
    /// Connections that may wait to be accepted.
    pub backlog: usize,
    /// Half-open connections that may wait for the peer's acknowledgement before cookies are used.
    pub syn_backlog: usize,
    /// The profile of its connections; `None`: the host's.
    pub profile: Option<Arc<Profile>>,
}

impl Default for ListenConfig {
    fn default() -> Self {
        ListenConfig { backlog: 128, syn_backlog: 256, profile: None }
    }
}

#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    pub(crate) profile: Arc<Profile>,
    pub(crate) backlog: usize,
    pub(crate) syn_backlog: usize,
    pub(crate) half_open: usize,
    pub(crate) accept: VecDeque<ConnectionId>,
    /// Cookies were sent lately and are accepted until then.
    pub(crate) cookies_until: Instant,
}

impl Listener {
    pub(crate) fn is_full(&self) -> bool {
        self.accept.len() >= self.backlog
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
}

/// Which listener is where. An exact address wins over the unspecified one.
#[derive(Debug)]
pub(crate) struct ListenTable {
    by_address: HashMap<SocketAddr, ListenerId, KeyedHash>,
}

impl ListenTable {
    pub(crate) fn new(hash: KeyedHash) -> Self {
        ListenTable { by_address: HashMap::with_hasher(hash) }
    }

    pub(crate) fn find(&self, local: SocketAddr) -> Option<ListenerId> {
        let any: IpAddr = if local.is_ipv4() {
            core::net::Ipv4Addr::UNSPECIFIED.into()
        } else {
            core::net::Ipv6Addr::UNSPECIFIED.into()
        };
        let any = SocketAddr::new(any, local.port());
        self.by_address.get(&local).or_else(|| self.by_address.get(&any)).copied()
    }

    pub(crate) fn contains(&self, address: SocketAddr) -> bool {
        self.by_address.contains_key(&address)
    }

    pub(crate) fn insert(&mut self, address: SocketAddr, id: ListenerId) {
        self.by_address.insert(address, id);
    }

    pub(crate) fn remove(&mut self, address: SocketAddr) {
        self.by_address.remove(&address);
    }
}

//! Opening: listening, and connecting from an unpredictable port (RFC 6056).

use super::template::Template;
use super::transmit::IpFields;
use super::{ConnectionId, Owner, Slot, Stack};
use crate::config::PortSource;
use crate::flow::{FlowKey, Handler};
use crate::listener::{ListenConfig, Listener, ListenerId};
use crate::mapped::{Bound, canonical};
use crate::secrets::Purpose;
use crate::totals::ListenCounts;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use transom_tcp::time::Instant;
use transom_tcp::{Connection, Endpoint, PathInfo, Profile, ProfileError, Setting};

/// Why a connection was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The remote address is not one host's [MUST-46], or the port is zero.
    #[error("{0} is not an address one can connect to")]
    BadRemote(SocketAddr),
    /// There is no local address of the remote's family.
    #[error("this host has no address from which to reach {0}")]
    NoRoute(IpAddr),
    /// The local address is not ours.
    #[error("{0} is not an address of this host")]
    NotLocal(IpAddr),
    /// The connection exists already (or lingers in TIME-WAIT).
    #[error("the addresses and ports are in use")]
    InUse,
    /// Every ephemeral port is in use towards that remote, or the caller has to name one ([`PortSource::Caller`]).
    #[error("no free port to connect from")]
    NoPort,
    /// There are as many connections as configured.
    #[error("too many connections")]
    TooMany,
    /// The profile does not work.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// Why a listener was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// A listener uses it already.
    #[error("{0} is in use")]
    InUse(SocketAddr),
    /// The address is neither ours nor unspecified.
    #[error("{0} is not an address of this host")]
    NotLocal(IpAddr),
    /// There is a listener for everything already.
    #[error("another listener has every port")]
    EverythingInUse,
    /// The host's ports are others' too, so it cannot have all of them.
    #[error("a host that shares its ports cannot listen at every port")]
    NotOurPorts,
    /// No port is free for port 0, or the caller has to name one ([`PortSource::Caller`]).
    #[error("no free port to listen on")]
    NoPort,
    /// The profile does not work.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

impl Stack {
    /// Listens at `address`; an unspecified address means all of ours, port 0 a free one. Existing connections are unaffected [MUST-41] [MUST-42].
    /// The unspecified IPv6 address includes our IPv4 addresses too, unless [`ListenConfig::v6_only`]; an IPv4-mapped address means the IPv4 address
    /// in it.
    pub fn listen(
        &mut self,
        address: SocketAddr,
        config: ListenConfig,
    ) -> Result<ListenerId, ListenError> {
        let v6_only = config.v6_only;
        let listener_at = self.new_listener(config)?;
        let ip = canonical(address).ip();
        if !ip.is_unspecified() && !self.is_local(ip) {
            return Err(ListenError::NotLocal(ip));
        }
        let bound = if address.port() == 0 {
            if self.config.ports == PortSource::Caller {
                return Err(ListenError::NoPort);
            }
            let is_free = |stack: &Stack, bound: &Bound| {
                stack.listening.is_free(bound) && !stack.is_reserved(bound)
            };
            self.free_place(address.ip(), v6_only, is_free).ok_or(ListenError::NoPort)?
        } else {
            Bound::new(address, v6_only)
        };
        if self.listening.conflicts(&bound) || self.is_reserved(&bound) {
            return Err(ListenError::InUse(bound.address));
        }
        let (index, generation) = self.listeners.insert(listener_at(bound));
        let id = ListenerId { index, generation };
        self.listening.insert(bound, id);
        Ok(id)
    }

    /// Listens at every port of every address of ours, for what no other listener has. It takes both versions of IP, or IPv6 alone
    /// ([`ListenConfig::v6_only`]). Its [address](Stack::listener_address) is the unspecified one with port 0.
    ///
    /// # Errors
    /// [`ListenError::NotOurPorts`] on a host whose ports are others' too; [`ListenError::EverythingInUse`] if there is such a listener.
    pub fn listen_to_everything(
        &mut self,
        config: ListenConfig,
    ) -> Result<ListenerId, ListenError> {
        if self.config.shared || self.config.ports == PortSource::Caller {
            return Err(ListenError::NotOurPorts);
        }
        let v6_only = config.v6_only;
        let listener_at = self.new_listener(config)?;
        // No packet has this port.
        let nowhere = Bound::new(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0), v6_only);
        let (index, generation) = self.listeners.insert(listener_at(nowhere));
        let id = ListenerId { index, generation };
        if !self.listening.insert_everything(id, v6_only) {
            self.listeners.remove(index);
            return Err(ListenError::EverythingInUse);
        }
        Ok(id)
    }

    /// Makes a listener of its settings, wherever it is to be.
    fn new_listener(
        &self,
        config: ListenConfig,
    ) -> Result<impl FnOnce(Bound) -> Listener + use<>, ListenError> {
        let shard = self.config.shard.index;
        let ListenConfig {
            backlog,
            syn_backlog,
            profile,
            fast_open,
            v6_only: _,
            hold_syns,
            totals,
        } = config;
        let profile = profile.unwrap_or_else(|| self.config.profile.clone());
        profile.validate()?;
        Ok(move |bound| Listener {
            bound,
            profile,
            backlog: backlog.max(1),
            syn_backlog: syn_backlog.max(1),
            shard,
            totals,
            half_open: 0,
            fast_open: if hold_syns.is_some() { 0 } else { fast_open },
            fast_pending: 0,
            fast_resets: VecDeque::new(),
            accept: VecDeque::new(),
            hold_syns,
            held: 0,
            untaken: 0,
            arrivals: VecDeque::new(),
            cookies_until: Instant::ZERO,
        })
    }

    pub(super) fn listener(&self, id: ListenerId) -> Option<&Listener> {
        self.listeners.named(id.index, id.generation)
    }

    /// Changes how a listener listens, for connections that come from now on.
    ///
    /// # Errors
    /// [`ListenError::Profile`] if the profile does not work; nothing is changed then.
    pub fn reconfigure_listener(
        &mut self,
        id: ListenerId,
        config: ListenConfig,
    ) -> Result<(), ListenError> {
        let ListenConfig { backlog, syn_backlog, profile, fast_open, hold_syns, .. } = config;
        let profile = profile.unwrap_or_else(|| self.config.profile.clone());
        profile.validate()?;
        if let Some(listener) = self.listeners.named_mut(id.index, id.generation) {
            listener.backlog = backlog.max(1);
            listener.syn_backlog = syn_backlog.max(1);
            listener.fast_open = if hold_syns.is_some() { 0 } else { fast_open };
            listener.hold_syns = hold_syns;
            listener.profile = profile;
        }
        Ok(())
    }

    /// Whether a listener, or any connection down to TIME-WAIT, uses an address of this socket. It checks every flow: it is for binding, not for
    /// packets.
    pub fn is_in_use(&self, bound: &Bound) -> bool {
        // Whether there is one does not depend on the order in which the table is walked.
        self.is_listened_at(bound)
            || self.flows.keys().any(|key| bound.overlaps(&Bound::new(key.local(), true)))
    }

    /// Whether a listener gets packets that this socket would get. It checks every listener.
    pub fn is_listened_at(&self, bound: &Bound) -> bool {
        self.listeners.values().any(|listener| listener.bound.overlaps(bound))
    }

    /// The address of a listener.
    pub fn listener_address(&self, id: ListenerId) -> Option<SocketAddr> {
        Some(self.listener(id)?.bound.address)
    }

    /// Connections waiting to be accepted.
    pub fn acceptable(&self, id: ListenerId) -> usize {
        self.listener(id).map_or(0, |listener| listener.accept.len())
    }

    /// Takes the oldest connection out of a listener's accept queue.
    pub fn accept(&mut self, id: ListenerId) -> Option<(ConnectionId, SocketAddr)> {
        loop {
            let listener = self.listeners.named_mut(id.index, id.generation)?;
            let connection = listener.accept.pop_front()?;
            listener.tell();
            if let Some(accepted) = self.hand_over(connection) {
                return Some(accepted);
            }
        }
    }

    /// A connection of an accept queue becomes the application's.
    pub(super) fn hand_over(
        &mut self,
        connection: ConnectionId,
    ) -> Option<(ConnectionId, SocketAddr)> {
        let index = self.slot_index(connection)?;
        let slot = self.slots.get_mut(index)?;
        slot.owner = Owner::Application;
        // What happened while it waited.
        slot.connection.renew_signals();
        let remote = slot.key.remote();
        while let Some(signal) = slot.connection.poll_signal() {
            self.signals.push_back(super::StackSignal::Connection(connection, signal));
        }
        Some((connection, remote))
    }

    /// Stops listening. Connections not accepted are reset, half-open ones forgotten, and held SYNs refused by resets.
    pub fn close_listener(&mut self, id: ListenerId, now: Instant) {
        if self.listener(id).is_none() {
            return;
        }
        self.refuse_held_of(id, now);
        let Some(listener) = self.listeners.remove(id.index) else { return };
        self.listening.remove(&listener.bound, id);
        if let Some(totals) = &listener.totals {
            totals.tell(listener.shard, ListenCounts::default(), (0, None));
        }
        for connection in listener.accept {
            if let Some(index) = self.slot_index(connection)
                && let Some(slot) = self.slots.get_mut(index)
            {
                slot.owner = Owner::Nobody;
                self.recorded(index, now, |connection| connection.abort(now));
                self.touched(index, now);
            }
        }
        for index in 0..self.halves.capacity() {
            if self.halves.get(index).is_some_and(|entry| entry.listener == id) {
                self.drop_half_open(index);
            }
        }
    }

    /// Connects to `remote`. Without a local address one of ours is chosen [MUST-44], without a local port a free one;
    /// both stay the same from then on [MUST-45]. IPv4-mapped addresses are taken for the IPv4 addresses in them.
    pub fn connect(
        &mut self,
        now: Instant,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        profile: Option<Arc<Profile>>,
    ) -> Result<ConnectionId, ConnectError> {
        self.open(now, local, remote, profile, false)
    }

    /// Like [`Stack::connect`], with TCP Fast Open (RFC 7413). If the server has given a cookie, the SYN waits for the first write, and carries the
    /// data that fits ([`OpeningState::holds_syn`](transom_tcp::OpeningState::holds_syn); a read, a shutdown, or [`Connection::release`] sends it without data). If it has not, the SYN
    /// leaves at once and requests one. A server that does not answer such a request is not asked again for a while.
    ///
    /// Data in a SYN may reach the application of the server twice: see [`ListenConfig::fast_open`].
    pub fn connect_on_write(
        &mut self,
        now: Instant,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        profile: Option<Arc<Profile>>,
    ) -> Result<ConnectionId, ConnectError> {
        self.open(now, local, remote, profile, true)
    }

    fn open(
        &mut self,
        now: Instant,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        profile: Option<Arc<Profile>>,
        fast: bool,
    ) -> Result<ConnectionId, ConnectError> {
        let profile = profile.unwrap_or_else(|| self.config.profile.clone());
        profile.validate()?;
        let (local, remote) = (local.map(canonical), canonical(remote));
        // RFC 1122 section 3.2.1.3 (g): a loopback address never leaves the host.
        let nowhere = remote.ip().is_loopback() && !self.is_local(remote.ip());
        if remote.port() == 0 || nowhere || !self.is_host(remote.ip()) {
            return Err(ConnectError::BadRemote(remote));
        }
        if self.is_full() {
            return Err(ConnectError::TooMany);
        }
        // [MUST-43] the caller's address, if it names one.
        let ip = match local.map(|local| local.ip()).filter(|ip| !ip.is_unspecified()) {
            // [RFC1122-3.2.1.3-2] [RFC1122-3.3.4.2-2]
            Some(ip) if !self.is_local(ip) => return Err(ConnectError::NotLocal(ip)),
            Some(ip) if !self.reaches(ip, remote.ip()) => {
                return Err(ConnectError::NoRoute(remote.ip()));
            }
            Some(ip) => ip,
            None => self.source_for(remote.ip()).ok_or(ConnectError::NoRoute(remote.ip()))?,
        };
        let local = match local.map(|local| local.port()).filter(|&port| port != 0) {
            Some(port) if self.is_reserved(&Bound::new(SocketAddr::new(ip, port), true)) => {
                return Err(ConnectError::InUse);
            }
            Some(port) => SocketAddr::new(ip, port),
            None if self.config.ports == PortSource::Caller => return Err(ConnectError::NoPort),
            None => self.ephemeral(ip, remote, now).ok_or(ConnectError::NoPort)?,
        };
        let key = FlowKey::new(local, remote);
        let beyond = match self.flows.get(&key).copied() {
            None => None,
            Some(Handler::TimeWait(place)) => {
                let wait = self.waits.get(place).filter(|entry| entry.wait.may_be_reused(now));
                Some(wait.ok_or(ConnectError::InUse)?.wait.snd_nxt)
            }
            Some(_) => return Err(ConnectError::InUse),
        };
        if let Some(Handler::TimeWait(place)) = self.flows.get(&key).copied() {
            self.end_time_wait(place);
        }
        let mut iss = self.secrets.initial_sequence(&key, now);
        if let Some(beyond) = beyond
            && !iss.after(beyond)
        {
            iss = beyond + (iss.get() & 0x000f_ffff) + 1;
        }
        let path = self.path_info(&key, &profile, now);
        let endpoint = Endpoint { local_port: local.port(), remote_port: remote.port() };
        let offset = self.secrets.timestamp_offset(&key);
        let mut connection = Connection::connect(profile, endpoint, path, iss, offset, now);
        if let Some((option, mss)) = self.servers.option_for(&key, now).filter(|_| fast) {
            connection.open_fast(option, mss, true);
        }
        let index = self.install(now, connection, key, Owner::Application);
        self.counters.active_opens += 1;
        self.touched(index, now);
        self.id_of(index).ok_or(ConnectError::TooMany)
    }

    /// One of our addresses from which `remote` can be reached. Of those with the smallest sufficient scope, it shares
    /// the longest prefix with `remote` (RFC 6724 section 5, rules 2 and 8).
    /// [RFC1122-3.1-3]
    pub fn source_for(&self, remote: IpAddr) -> Option<IpAddr> {
        let shared = |ours: IpAddr| match (ours, remote) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            _ => 0,
        };
        let preference = |ours: IpAddr| match scope(ours) {
            large if large >= scope(remote) => (true, u8::MAX - large, shared(ours)),
            small => (false, small, shared(ours)),
        };
        let candidates = self.config.addresses.iter().map(|&(ours, _)| ours);
        candidates.filter(|&ours| self.reaches(ours, remote)).max_by_key(|&ours| preference(ours))
    }

    /// Gives a connection its place among the others.
    pub(super) fn install(
        &mut self,
        now: Instant,
        mut connection: Connection,
        key: FlowKey,
        owner: Owner,
    ) -> u32 {
        connection.set(Setting::Remote(key.remote));
        let takes_over = connection.profile().path_mtu_discovery.takes_over();
        let known = self.path_mtus.get(key.remote, now).filter(|_| takes_over);
        if known.is_some_and(|known| !known.whole) {
            connection.expect_fragments(now);
        }
        let ip_fields = IpFields {
            dont_fragment: connection.dont_fragment(),
            ..IpFields::of(connection.profile())
        };
        let slot = Slot {
            connection,
            key,
            owner,
            timer: None,
            ready: false,
            detached: false,
            ip_fields,
            ident: self.secrets.hash(Purpose::Identification, &key) as u16,
            template: Template::new(&key, &ip_fields),
            to_self: self.is_loop(&key),
            homeless: false,
            fast_pending_at: None,
            incoming: None,
            held: 0,
        };
        let (index, _) = self.slots.insert(Box::new(slot));
        let subject = self.subject(index, now);
        if let Some(slot) = self.slots.get(index) {
            self.log.opened(subject, &slot.connection, key.local(), key.remote());
        }
        self.flows.insert(key, Handler::Connection(index));
        index
    }

    /// The path to a remote host, as far as it is known.
    pub(super) fn path_info(&self, key: &FlowKey, profile: &Profile, now: Instant) -> PathInfo {
        let ip_header = if key.local.is_ipv4() { 20 } else { 40 };
        let known = self.path_mtus.get(key.remote, now);
        let known = known.filter(|_| profile.path_mtu_discovery.takes_over());
        let interface_mtu = self.mtu_from(key);
        // [RFC1122-3.3.3-1] [RFC8200-8.3-1] [RFC8200-5-3]
        let path = PathInfo {
            mtu: known.map_or(interface_mtu, |known| known.mtu.min(interface_mtu)),
            interface_mtu,
            ip_header,
            // The IP length field has 16 bits, and the headers take their part.
            simulated: self.config.simulated,
            max_super_segment: self.config.offload.segmentation.map(|max| {
                u32::try_from(max.min(65_535)).unwrap_or(65_535).saturating_sub(ip_header + 60)
            }),
        };
        path.limited_to(profile.max_segment)
    }
}

/// How far an address is known, larger is further: the host, the link, everywhere (RFC 6724 sections 3.1 and 3.2).
fn scope(address: IpAddr) -> u8 {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    match address {
        _ if address.is_loopback() => 0,
        _ if link_local => 1,
        _ => 2,
    }
}

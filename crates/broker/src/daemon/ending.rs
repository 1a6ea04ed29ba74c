//! Ends of leases and of ports: who may have a port afterwards, and what becomes of its connections.
//!
//! A port is free at once, but its connections go into [quarantine](super::quarantine): its next holder gets nothing of them. The order is always the same.
//! The entry in the map of ports goes first: from then on the process sends nothing, so it begins no connection. Then its connections are read and
//! put into quarantine. Only then is a request answered that may give the port to somebody else.
//!
//! A device has room for so many connections. If it has had more, its ports are held: for a TIME-WAIT nobody but the same user may have them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};

use super::audit::Event;
use super::kernel::Kernel;
use super::layout::{Flow, HOLD_TIME, Hold, Quarantined, monotonic};
use super::peer_probe::{self, ProbeSockets};
use super::quarantine::Table;
use super::{Daemon, leftover};

/// How long the connections at an address are kept that the host has lost: their peers cannot be probed, and go on for as long as they retransmit.
pub(super) const LOST_ADDRESS_TIME: Duration = Duration::from_secs(3600);
/// How long a broker that is stopped waits for the answers to its probes. What is left then is for the next one.
pub(super) const STOP_PATIENCE: Duration = Duration::from_secs(2);
/// The interval of checks for holds that are over.
const HOLD_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// So many entries of maps of flows are read at a time, in search of connections that ended long ago.
const FLOWS_AT_A_TIME: usize = 16_384;

/// What waits for a later moment.
#[derive(Debug, Default)]
pub(super) struct Endings {
    /// Ports that a lease has no more, and whose connections are not in quarantine yet.
    released: BTreeMap<SocketAddr, Released>,
    /// Nobody gets a port before this time: there was no room for a hold.
    closed_until: Duration,
    /// Whether the programs look for connections in quarantine.
    quarantine_in_use: bool,
    /// Whether an address that the host has got could not be added to a port: somebody else's connections are held there.
    pub(super) endpoint_waits: bool,
    holds_checked: Duration,
    /// How many ports are held, as of the last check or hold.
    held_ports: u64,
    /// The device whose map of flows was read last.
    flows_checked: u32,
}

/// A port of a lease that goes on without it. To read the connections of a device takes a while, and a client may give up many ports: so they are read later,
/// but before anybody gets the port.
#[derive(Clone, Copy, Debug)]
struct Released {
    device: u32,
    /// How long the connections will be in quarantine.
    lasting: Duration,
    /// Whether the host has lost the address. If the lease gets it back, its connections go on.
    may_return: bool,
}

/// The kernel's map, and raw sockets.
struct PinnedTable<'a>(&'a Kernel, &'a ProbeSockets);

impl Table for PinnedTable<'_> {
    fn held(&self, flow: &Flow) -> Option<Quarantined> {
        self.0.quarantine.get(flow)
    }

    fn release(&self, flow: &Flow) {
        self.0.quarantine.remove(flow);
    }

    fn probe(&self, flow: &Flow, nonce: u32, attempt: u32) {
        // A peer that cannot be reached gets its reset when it sends something.
        let _ = self.1.send(flow, peer_probe::sequence(nonce, attempt), nonce);
    }
}

/// A number that nobody can guess; `None` without randomness.
pub(super) fn nonce() -> Option<u32> {
    let mut bytes = [0; 4];
    let got = getrandom(&mut bytes, GetRandomFlags::empty());
    got.is_ok_and(|length| length == bytes.len()).then(|| u32::from_ne_bytes(bytes))
}

impl Daemon {
    /// Ends a lease: its ports are the kernel's again, and the device goes.
    pub(super) fn end_lease(&mut self, device: u32, reason: &str) {
        let Some(lease) = self.leases.remove(&device) else { return };
        let user = lease.entry.user;
        let endpoints: BTreeSet<_> = lease.endpoints().collect();
        self.clear_ports(device, user, &endpoints, HOLD_TIME);
        // Nothing that a process has keeps it: neither a copy of the descriptor nor the persist flag.
        let _ = self.interfaces.remove(device);
        let connections = self.quarantine_device(device, user);
        self.forget_device(device);
        let users = self.leases.values().map(|lease| lease.entry.user).collect();
        self.kernel.retain_rates(&users);
        self.counters.ended += 1;
        // One line, however many ports there were.
        self.audit.write(&Event {
            event: "lease-end",
            user: Some(user),
            process: Some(lease.entry.process),
            device: Some(&lease.device),
            ports: Some(endpoints.len()),
            connections: Some(connections),
            reason: Some(reason),
            ..Event::default()
        });
    }

    /// Ends a lease that an earlier broker has left, whose device has gone. `endpoints` are those that it has in the map of ports.
    pub(super) fn end_found_lease(
        &mut self,
        device: u32,
        user: u32,
        endpoints: &BTreeSet<SocketAddr>,
    ) {
        self.clear_ports(device, user, endpoints, HOLD_TIME);
        self.quarantine_device(device, user);
        self.forget_device(device);
    }

    /// Removes entries of a device from the map of ports. If the device has connections that nobody knows, they are held before that.
    fn clear_ports(
        &mut self,
        device: u32,
        user: u32,
        endpoints: &BTreeSet<SocketAddr>,
        lasting: Duration,
    ) {
        let hold_all = |daemon: &mut Daemon| {
            let untracked = daemon.kernel.has_untracked(device);
            endpoints.iter().filter(|_| untracked).for_each(|at| daemon.hold(*at, user, lasting));
            untracked
        };
        let held = hold_all(self);
        endpoints.iter().for_each(|at| self.clear_port_of(device, *at));
        // The guard looks at the map of ports once more when it has written down a connection. Either it finds that the entry has gone, or what it has
        // written is found from here on.
        fence(Ordering::SeqCst);
        if !held {
            hold_all(self);
        }
    }

    /// Puts all connections of a device whose lease has ended into quarantine. Returns how many there were.
    fn quarantine_device(&mut self, device: u32, user: u32) -> usize {
        // The longest of what its ports have been given up for.
        let pending = self.endings.released.extract_if(.., |_, one| one.device == device);
        let lasting = pending.map(|(_, one)| one.lasting).max().unwrap_or(HOLD_TIME);
        let now = monotonic();
        let flows = self.kernel.flows(device).into_iter();
        let flows = flows.filter(|(_, track)| !track.is_past(now)).map(|(flow, _)| flow);
        let flows: Vec<_> = flows.collect();
        let count = flows.len();
        self.quarantine_flows(user, flows, lasting.max(HOLD_TIME));
        count
    }

    fn quarantine_flows(&mut self, user: u32, flows: Vec<Flow>, lasting: Duration) {
        if flows.is_empty() {
            return;
        }
        let (now, kernel) = (monotonic(), &self.kernel);
        // Before the first one is there.
        let usable = self.endings.quarantine_in_use || kernel.use_quarantine(true).is_ok();
        self.endings.quarantine_in_use = usable;
        let place = |flow: &Flow| {
            let value = nonce().map(|nonce| Quarantined { until: now + lasting, nonce, user });
            usable && value.is_some_and(|value| kernel.quarantine.set(flow, &value).is_ok())
        };
        for at in self.quarantine.admit(user, flows, now, place) {
            self.hold(at, user, lasting);
        }
    }

    /// Keeps others than this user from a port for some time.
    fn hold(&mut self, at: SocketAddr, user: u32, lasting: Duration) {
        let until = monotonic() + lasting;
        let earlier = self.kernel.holds.get(&at).filter(|hold| hold.until > monotonic());
        // Of two users neither gets it before both holds are over.
        let (user, until) = match earlier {
            Some(hold) if hold.user != user => (NOBODY, until.max(hold.until)),
            Some(hold) => (user, until.max(hold.until)),
            None => (user, until),
        };
        self.endings.held_ports += u64::from(earlier.is_none());
        if self.kernel.holds.set(&at, &Hold { until, user }).is_err() {
            self.endings.closed_until = self.endings.closed_until.max(until);
        }
    }

    /// How long a user has to wait for a port yet; nothing if the port can be had.
    pub(super) fn wait_for_port(&self, at: SocketAddr, user: u32) -> Option<Duration> {
        let held =
            self.kernel.holds.get(&at).filter(|hold| hold.user != user).map(|hold| hold.until);
        let until = held.unwrap_or_default().max(self.endings.closed_until);
        until.checked_sub(monotonic()).filter(|left| !left.is_zero())
    }

    /// Whether a lease has this address and port, also if the programs have removed its entry since.
    pub(super) fn is_held(&self, at: SocketAddr) -> bool {
        let mut ports = self.leases.values().flat_map(|lease| lease.ports.values());
        self.kernel.ports.get(&at).is_some() || ports.any(|held| held.endpoints.contains(&at))
    }

    /// Takes ports from a lease that goes on. Their connections go into quarantine soon; before that nobody gets the ports ([`Daemon::settle_ports`]). Those at
    /// an address that the host has lost wait for it.
    pub(super) fn give_up_ports(
        &mut self,
        device: u32,
        endpoints: &BTreeSet<SocketAddr>,
        may_return: bool,
    ) {
        let Some(lease) = self.leases.get(&device) else { return };
        let user = lease.entry.user;
        let lasting = if may_return { LOST_ADDRESS_TIME } else { HOLD_TIME };
        self.clear_ports(device, user, endpoints, lasting);
        for at in endpoints {
            self.endings.released.insert(*at, Released { device, lasting, may_return });
        }
    }

    /// Before a lease gets these ports: the connections of whoever has given them up are in quarantine afterwards.
    pub(super) fn settle_ports(&mut self, device: u32, endpoints: &BTreeSet<SocketAddr>) {
        let released = &mut self.endings.released;
        for at in endpoints {
            if released.get(at).is_some_and(|one| one.device == device && one.may_return) {
                released.remove(at);
            }
        }
        let found = endpoints.iter().filter_map(|at| Some((*at, released.get(at)?.device)));
        for (at, owner) in found.collect::<Vec<_>>() {
            self.settle_device(owner, |one, released| one == at || !released.may_return);
        }
    }

    /// Puts the connections of all ports that were given up into quarantine.
    pub(super) fn settle_all(&mut self) {
        let owners: BTreeSet<_> =
            self.endings.released.values().map(|released| released.device).collect();
        for device in owners {
            let ports = self.leases.get(&device).map(|lease| lease.ports.values());
            let ports: BTreeSet<_> =
                ports.into_iter().flatten().map(|held| held.bound.port()).collect();
            self.settle_device(device, |at, released| {
                !released.may_return || !ports.contains(&at.port())
            });
        }
    }

    fn settle_device(&mut self, device: u32, due: impl Fn(SocketAddr, Released) -> bool) {
        let is_due = |at: &SocketAddr, one: &mut Released| one.device == device && due(*at, *one);
        let released: BTreeMap<_, _> = self.endings.released.extract_if(.., is_due).collect();
        let Some(lease) = self.leases.get(&device).filter(|_| !released.is_empty()) else { return };
        let user = lease.entry.user;
        let (now, flows) = (monotonic(), self.kernel.flows(device));
        let gone = flows.iter().filter_map(|(flow, track)| {
            let lasting = released.get(&flow.own)?.lasting;
            Some((flow, lasting, track.is_past(now)))
        });
        let gone: Vec<_> = gone.collect();
        for lasting in [HOLD_TIME, LOST_ADDRESS_TIME] {
            let open = gone.iter().filter(|(_, time, is_past)| *time == lasting && !is_past);
            self.quarantine_flows(user, open.map(|(flow, ..)| **flow).collect(), lasting);
        }
        self.kernel.forget_flows(device, gone.iter().map(|(flow, ..)| *flow));
    }

    /// Connections of a lease that was found at ports that it does not have any more.
    pub(super) fn settle_found_lease(&mut self, device: u32) {
        let Some(lease) = self.leases.get(&device) else { return };
        let held: BTreeSet<_> = lease.endpoints().collect();
        let flows = self.kernel.flows(device);
        let gone = flows.iter().map(|(flow, _)| flow.own).filter(|own| !held.contains(own));
        let gone: BTreeSet<_> = gone.collect();
        let is_there = |at: &SocketAddr| self.host_state.has_address(at.ip());
        let (gone, lost): (BTreeSet<_>, BTreeSet<_>) = gone.into_iter().partition(is_there);
        self.give_up_ports(device, &gone, false);
        self.give_up_ports(device, &lost, true);
        self.settle_device(device, |_, released| !released.may_return);
    }

    /// Goes on with an earlier broker's quarantine: its own map, and what one that was stopped has left in a file.
    pub(super) fn recover_quarantine(&mut self) {
        let now = monotonic();
        let found = self.kernel.quarantine.all();
        self.endings.quarantine_in_use =
            !found.is_empty() && self.kernel.use_quarantine(true).is_ok();
        for (flow, held) in found {
            self.quarantine.restore(held.user, flow, now);
        }
        let path = self.leftover_path();
        match leftover::load(&path) {
            Ok(left) => {
                for (flow, user, until) in left.connections(now) {
                    self.quarantine_flows(user, vec![flow], until.saturating_sub(now));
                }
                for (at, user, until) in left.holds(now) {
                    self.hold(at, user, until.saturating_sub(now));
                }
                let _ = std::fs::remove_file(&path);
            }
            Err(error) => self.log_error(&format!("cannot read {}: {error}", path.display())),
        }
    }

    /// Sends the probes that are due. Returns how long it may wait for the next ones.
    pub(super) fn run_quarantine(&mut self) -> Option<Duration> {
        let now = monotonic();
        let table = PinnedTable(&self.kernel, &self.probe_sockets);
        let next = self.quarantine.run(now, &table);
        if next.is_none() && self.endings.quarantine_in_use {
            // What the list at the start may have missed, as entries went meanwhile.
            for (flow, held) in self.kernel.quarantine.all() {
                self.quarantine.restore(held.user, flow, now);
            }
            if self.quarantine.len() == 0 {
                self.endings.quarantine_in_use = self.kernel.use_quarantine(false).is_err();
            }
        }
        Some(next?.saturating_sub(now))
    }

    /// What is done now and then: connections of ports that were given up, holds that are over, and connections that ended long ago.
    pub(super) fn tidy_up(&mut self) {
        self.settle_all();
        let now = monotonic();
        if now >= self.endings.holds_checked + HOLD_CHECK_INTERVAL {
            self.endings.holds_checked = now;
            self.endings.held_ports = 0;
            for (at, hold) in self.kernel.holds.all() {
                if hold.until <= now {
                    self.kernel.holds.remove(&at);
                } else {
                    self.endings.held_ports += 1;
                }
            }
        }
        let (mut read, last) = (0, self.endings.flows_checked);
        let later = self.leases.range(last.saturating_add(1)..);
        let devices = later.chain(self.leases.range(..=last)).map(|(device, _)| *device);
        for device in devices {
            let flows = self.kernel.flows(device);
            let past = flows.iter().filter(|(_, track)| track.is_past(now));
            self.kernel.forget_flows(device, past.map(|(flow, _)| flow));
            self.endings.flows_checked = device;
            read += flows.len();
            if read >= FLOWS_AT_A_TIME {
                return;
            }
        }
    }

    /// For how many connections and ports others wait.
    pub(super) fn quarantine_counts(&self) -> [u64; 2] {
        [self.quarantine.len() as u64, self.endings.held_ports]
    }

    /// The state of a device in the maps and the pins.
    pub(super) fn forget_device(&self, device: u32) {
        self.kernel.clear_lease(device);
        self.kernel.detach("guard", device);
    }

    pub(super) fn end_all_leases(&mut self, reason: &str) {
        for device in self.leases.keys().copied().collect::<Vec<_>>() {
            self.end_lease(device, reason);
        }
    }

    /// Waits a moment until all peers are reset, and leaves the rest to the next broker.
    pub(super) fn finish_quarantine(&mut self) {
        let end = monotonic() + STOP_PATIENCE;
        while let Some(wait) = self.run_quarantine() {
            let Some(left) = end.checked_sub(monotonic()) else { break };
            std::thread::sleep(wait.min(left));
        }
        let left = leftover::Leftover::new(self.kernel.quarantine.all(), self.kernel.holds.all());
        if let Err(error) = leftover::save(&self.leftover_path(), &left) {
            self.log_error(&format!("cannot write {}: {error}", self.leftover_path().display()));
        }
    }
}

/// The user of a hold that is for nobody: (uid_t) -1, which no user is.
pub(super) const NOBODY: u32 = u32::MAX;

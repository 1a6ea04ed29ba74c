//! The requests of clients.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Bound;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::rand::{GetRandomFlags, getrandom};
use transom_device::PortSocket;
use transom_device::private::Client;
use transom_device::tun::Tun;

use super::audit::Event;
use super::closing::ReceivedFd;
use super::ending::NOBODY;
use super::kernel::named_counts;
use super::layout::{DROP_REASONS, LeaseEntry, PortEntry};
use super::leases::{Lease, LeasedPort, is_token, token_text};
use super::process::Process;
use super::{Daemon, DaemonError, host, networks};
use crate::policy::Rule;
use crate::protocol::{
    Address, ErrorKind, Host, LONGEST, LONGEST_NAME, LeaseStatus, MAX_QUEUES, Opened, Page, Port,
    Refused, Reply, Request, Status, Token, Uplink,
};

/// Names of devices; the kernel puts a number in.
const DEVICE_NAME: &str = "tcpk%d";
/// How many packets wait for a process; super-segments are one.
const QUEUE_LEN: u32 = 2000;
/// `LEAST_SEGMENT` of the programs.
const LEAST_SEGMENT: u16 = 88;
/// The burst at the allowed rate: the packets of a tenth of a second, and some more.
const BURST: u64 = 100_000_000;
const BURST_PACKETS: u64 = 1000;
/// An upper bound for the bytes of a message around a page.
const PAGE_OVERHEAD: usize = 256;
/// So many addresses and ports of a lease are in a list.
const SHOWN_PORTS: usize = 64;

type Answer = Result<(Reply, Vec<OwnedFd>), Refused>;

fn refused<T>(kind: ErrorKind, message: impl Into<String>) -> Result<T, Refused> {
    Err(Refused::new(kind, message))
}

/// The time of a packet at a rule's rate and how far ahead of the clock packets may be, in nanoseconds; the time is 0 without a rate.
pub(super) fn rate_parameters(rule: &Rule) -> (u64, u64) {
    let each = rule.packets_per_second.map(|rate| (1_000_000_000 / u64::from(rate.max(1))).max(1));
    let interval = each.unwrap_or(0);
    (interval, (interval * BURST_PACKETS).max(BURST))
}

/// The cause is for the log; who asks gets the words that are not about this machine.
fn failed(action: &str) -> impl Fn(DaemonError) -> Refused + '_ {
    move |error| {
        let mut text = format!("{action}: {error}");
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        Refused::new(ErrorKind::Failed, text)
    }
}

impl Daemon {
    pub(super) fn handle_request(
        &mut self,
        number: u64,
        request: &Request,
        mut descriptors: Vec<ReceivedFd>,
    ) -> Answer {
        let expected = usize::from(matches!(request, Request::AddPort));
        if descriptors.len() != expected {
            let message = format!("this message comes with {expected} descriptors");
            return refused(ErrorKind::Malformed, message);
        }
        // The kernel tells clients of a new address too, and they may ask before we have looked.
        let needs_addresses = matches!(request, Request::Host | Request::AddPort);
        if needs_addresses && self.changes.any().unwrap_or(true) {
            self.refresh_host_state();
        }
        let without_descriptors = |reply| Ok((reply, Vec::new()));
        match request {
            Request::Open { name, queues } => self.open(number, name, *queues),
            Request::Resume { token } => without_descriptors(self.resume(number, token)?),
            Request::AddPort => match descriptors.pop() {
                Some(socket) => without_descriptors(self.add_port(self.lease_of(number)?, socket)?),
                None => refused(ErrorKind::Malformed, "there is no descriptor"),
            },
            Request::RemovePort { id } => {
                without_descriptors(self.remove_port(self.lease_of(number)?, *id)?)
            }
            Request::Host => {
                let device = self.lease_of(number)?;
                without_descriptors(Reply::Host(self.host_for(device)))
            }
            Request::List { after } => {
                without_descriptors(Reply::Leases(self.status_page(number, *after)))
            }
            Request::Network => Ok((Reply::Network {}, vec![self.network(number)?])),
            Request::Stop => match self.connections.get(&number) {
                Some(connection) if connection.caller.user == 0 => {
                    without_descriptors(Reply::Stopping {})
                }
                _ => refused(ErrorKind::Denied, "only root stops the broker"),
            },
        }
    }

    /// Starts a private network for a user whom the policy has a rule for. Its first rule says how many.
    fn network(&mut self, number: u64) -> Result<OwnedFd, Refused> {
        let Some(connection) = self.connections.get(&number) else {
            return refused(ErrorKind::Gone, "the connection has ended");
        };
        let (user, group, named) = (connection.caller.user, connection.group, connection.named);
        let Some(rule) = self.policy.first(&connection.caller) else {
            let message = format!("the policy has no rule for user {user}");
            return refused(ErrorKind::Denied, message);
        };
        let most = usize::from(rule.devices);
        let (theirs, all) = self.networks.count(user);
        if theirs >= most {
            let message = format!("user {user} has {most} private networks already");
            return refused(ErrorKind::Limit, message);
        }
        if user != 0 {
            // The last quarter is for users whom a rule names.
            let most = if named { networks::MOST } else { networks::MOST / 4 * 3 };
            if all >= most {
                return refused(ErrorKind::Limit, "there are too many private networks");
            }
            if !self.open_rate.of(named).allows(user, Instant::now()) {
                let message = "networks are asked for too often: try again later";
                return refused(ErrorKind::Limit, message);
            }
        }
        let socket = self.networks.start(Client { user, group })?;
        self.audit.write(&Event {
            event: "network",
            user: Some(user),
            process: self.connections.get(&number).map(|connection| connection.process),
            ..Event::default()
        });
        Ok(socket)
    }

    fn lease_of(&self, number: u64) -> Result<u32, Refused> {
        let connection = self.connections.get(&number);
        match connection.and_then(|connection| connection.lease) {
            None => refused(ErrorKind::Malformed, "open a device first"),
            Some(device) if self.leases.contains_key(&device) => Ok(device),
            Some(_) => refused(ErrorKind::Gone, "the lease has ended"),
        }
    }

    fn open(&mut self, number: u64, name: &str, queues: u16) -> Answer {
        let Some(connection) = self.connections.get(&number) else {
            return refused(ErrorKind::Gone, "the connection has ended");
        };
        if connection.lease.is_some() {
            return refused(ErrorKind::Malformed, "there is one device for each connection");
        }
        if name.len() > LONGEST_NAME || name.contains(char::is_control) {
            return refused(ErrorKind::Malformed, "the name is too long, or no name");
        }
        if queues == 0 || queues > MAX_QUEUES {
            return refused(ErrorKind::Malformed, format!("a device has 1 to {MAX_QUEUES} queues"));
        }
        let (caller, group) = (connection.caller.clone(), connection.group);
        let connection_named = connection.named;
        let Some(rule) = self.policy.first(&caller) else {
            let message = format!("the policy has no rule for user {}", caller.user);
            return refused(ErrorKind::Denied, message);
        };
        let max_devices = usize::from(rule.devices);
        let device_count =
            self.leases.values().filter(|lease| lease.entry.user == caller.user).count();
        if device_count >= max_devices {
            let message = format!("user {} has {max_devices} devices already", caller.user);
            return refused(ErrorKind::Limit, message);
        }
        let pidfd = connection.pidfd.as_ref().and_then(|pidfd| pidfd.try_clone().ok());
        let process = pidfd.and_then(|pidfd| Process::from_pidfd(pidfd, connection.process).ok());
        let Some(process) = process else {
            let message = "the process that connected has ended, or cannot be seen from here";
            return refused(ErrorKind::Denied, message);
        };
        // Root is trusted with the rest.
        if caller.user != 0 {
            let most = self.policy.most_devices as usize;
            // The last quarter is for users whom a rule names.
            let most = if connection_named { most } else { most - most / 4 };
            if self.leases.len() >= most {
                return refused(ErrorKind::Limit, "there are as many devices as the policy allows");
            }
            if !self.open_rate.of(connection_named).allows(caller.user, Instant::now()) {
                return refused(
                    ErrorKind::Limit,
                    "devices are asked for too often: try again later",
                );
            }
        }
        let (interval, burst) = rate_parameters(rule);
        let mut token = [0; 16];
        match getrandom(&mut token, GetRandomFlags::empty()) {
            Ok(length) if length == token.len() => {}
            _ => return refused(ErrorKind::Failed, "there is no randomness"),
        }
        let entry = LeaseEntry {
            interval,
            burst,
            started: process.started,
            process: connection.process,
            user: caller.user,
            group,
            queues: queues.into(),
            token,
            name: name.to_owned(),
        };
        let (device, name, queues) =
            self.make_device(&entry).map_err(failed("cannot make a device"))?;
        let ports = BTreeMap::new();
        let lease = Lease { entry, caller, device: name, process, ports, connected: true };
        self.leases.insert(device, lease);
        self.counters.leases += 1;
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.lease = Some(device);
        }
        self.log_lease_event(device, Event { event: "lease", ..Event::default() });
        let opened = self.opened_reply(device)?;
        Ok((Reply::Opened(opened), queues))
    }

    /// Makes a device. It is guarded before it is up, and before anybody else has a descriptor.
    fn make_device(
        &mut self,
        entry: &LeaseEntry,
    ) -> Result<(u32, String, Vec<OwnedFd>), DaemonError> {
        let queues = u16::try_from(entry.queues).unwrap_or(1);
        let (name, queues) = Tun::create(DEVICE_NAME, queues)?;
        let index = self.interfaces.state(&name)?.index;
        // Of a device that had the number before a restart of the kernel's count.
        self.forget_device(index);
        let set_up = self.set_up_device(index, &name, entry);
        if set_up.is_err() {
            self.forget_device(index);
        }
        set_up.map(|()| (index, name, queues))
    }

    fn set_up_device(
        &mut self,
        index: u32,
        name: &str,
        entry: &LeaseEntry,
    ) -> Result<(), DaemonError> {
        self.kernel.set_lease(index, entry)?;
        self.kernel.attach("guard", index)?;
        host::prepare_device(name).map_err(DaemonError::io("cannot set the device up"))?;
        self.interfaces.set_mtu(name, self.host_state.mtu())?;
        self.interfaces.set_queue_len(name, QUEUE_LEN)?;
        self.interfaces.set_up(name, true)?;
        Ok(())
    }

    fn opened_reply(&self, device: u32) -> Result<Opened, Refused> {
        let Some(lease) = self.leases.get(&device) else {
            return refused(ErrorKind::Gone, "the lease has ended");
        };
        Ok(Opened {
            token: Token(token_text(&lease.entry.token)),
            device: lease.device.clone(),
            index: device,
            queues: u16::try_from(lease.entry.queues).unwrap_or(1),
            min_segment: LEAST_SEGMENT,
            packets_per_second: lease.entry.rate(),
            host: self.host_for(device),
        })
    }

    fn resume(&mut self, number: u64, token: &Token) -> Result<Reply, Refused> {
        let Some(connection) = self.connections.get_mut(&number) else {
            return refused(ErrorKind::Gone, "the connection has ended");
        };
        if connection.lease.is_some() {
            return refused(ErrorKind::Malformed, "there is one device for each connection");
        }
        let user = connection.caller.user;
        let found = self
            .leases
            .iter_mut()
            .find(|(_, lease)| is_token(&token.0, &lease.entry.token) && lease.entry.user == user);
        let Some((device, lease)) = found else {
            return refused(ErrorKind::Gone, "there is no such lease");
        };
        let device = *device;
        lease.connected = true;
        connection.lease = Some(device);
        self.opened_reply(device).map(Reply::Opened)
    }

    /// The addresses that the policy lets a lease's user hold any port of.
    fn host_for(&self, device: u32) -> Host {
        let mtu = self.host_state.mtu();
        let Some(lease) = self.leases.get(&device) else { return Host::default() };
        let allowed = |at: &&Address| {
            let mut rules = self.policy.rules.iter();
            rules.any(|rule| rule.allows_address(&lease.caller, at.address))
        };
        Host { addresses: self.host_state.addresses.iter().filter(allowed).cloned().collect(), mtu }
    }

    fn add_port(&mut self, device: u32, socket: ReceivedFd) -> Result<Reply, Refused> {
        let examined = match PortSocket::examine(&socket) {
            Ok(examined) => examined,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return refused(ErrorKind::Socket, "the descriptor is no TCP socket");
            }
            Err(_) => return refused(ErrorKind::Socket, "the descriptor is no socket"),
        };
        self.check_socket(&examined)?;
        // With it, somebody else could bind a socket there too.
        if set_socket_reuseaddr(&socket, false).is_err() {
            return refused(ErrorKind::Socket, "the socket takes no options");
        }
        let wanted = self.wanted_endpoints(device, &examined)?;
        let endpoints: BTreeSet<_> = wanted.iter().map(|(at, _)| *at).collect();
        self.settle_ports(device, &endpoints);
        self.check_holds(device, &endpoints)?;
        // A port that a new broker is shown again has packets already.
        let registered =
            self.leases.get(&device).and_then(|lease| lease.ports.get(&examined.cookie));
        let new_endpoints: Vec<_> = endpoints
            .iter()
            .filter(|at| registered.is_none_or(|held| !held.endpoints.contains(at)))
            .copied()
            .collect();
        for (endpoint, peers) in &wanted {
            let entry = PortEntry { device, peers: *peers, cookie: examined.cookie };
            if let Err(error) = self.kernel.ports.set(endpoint, &entry) {
                new_endpoints.iter().for_each(|endpoint| self.kernel.ports.remove(endpoint));
                return Err(failed("cannot register the port")(error));
            }
        }
        // Checked afterwards, so that no socket comes in between. `demux` leaves connections that are made meanwhile to the kernel.
        if let Err(refused) = self.check_unoccupied(&new_endpoints, examined.cookie) {
            new_endpoints.iter().for_each(|endpoint| self.kernel.ports.remove(endpoint));
            return Err(refused);
        }
        let Some(lease) = self.leases.get_mut(&device) else {
            return refused(ErrorKind::Gone, "the lease has ended");
        };
        let port = Port {
            id: examined.cookie,
            bound: examined.local,
            at: endpoints.iter().copied().collect(),
        };
        let held = LeasedPort {
            bound: examined.local,
            only_v6: examined.only_v6,
            _socket: Some(socket),
            endpoints,
        };
        lease.ports.insert(examined.cookie, held);
        self.log_ports(device, "port", port.bound, port.at.len(), None);
        Ok(Reply::Added(port))
    }

    fn check_unoccupied(&mut self, endpoints: &[SocketAddr], cookie: u64) -> Result<(), Refused> {
        match self.occupied(endpoints, cookie).map_err(failed("cannot register the port"))? {
            None => Ok(()),
            Some(at) => {
                let message = format!("another socket of the kernel's is at {at}");
                refused(ErrorKind::InUse, message)
            }
        }
    }

    /// Refuses ports whose last holder had connections that nobody knows, unless it was the same user.
    fn check_holds(&self, device: u32, endpoints: &BTreeSet<SocketAddr>) -> Result<(), Refused> {
        let user = self.leases.get(&device).map_or(NOBODY, |lease| lease.entry.user);
        let waits = endpoints.iter().filter_map(|at| Some((at, self.wait_for_port(*at, user)?)));
        match waits.max_by_key(|(_, left)| *left) {
            None => Ok(()),
            Some((at, left)) => refused(
                ErrorKind::InUse,
                format!(
                    "connections of the last holder of {at} may still be open: it is free in {} s",
                    left.as_secs() + 1
                ),
            ),
        }
    }

    fn check_socket(&self, examined: &PortSocket) -> Result<(), Refused> {
        let reason = if examined.namespace != self.namespace {
            "the socket is of another network namespace"
        } else if examined.foreign_addresses {
            "the socket may be bound to addresses that are not the host's (IP_FREEBIND, IP_TRANSPARENT)"
        } else if examined.listening || examined.connected {
            "the socket listens or is connected: it only has to be bound"
        } else if examined.bound_to_interface {
            "the socket belongs to one interface (SO_BINDTODEVICE)"
        } else if examined.local.port() == 0 {
            "the socket is not bound"
        } else {
            return Ok(());
        };
        refused(ErrorKind::Socket, reason)
    }

    /// The endpoints whose packets a socket gets, and the list of peers for each.
    fn wanted_endpoints(
        &self,
        device: u32,
        examined: &PortSocket,
    ) -> Result<Vec<(SocketAddr, u32)>, Refused> {
        let Some(lease) = self.leases.get(&device) else {
            return refused(ErrorKind::Gone, "the lease has ended");
        };
        let (user, port) = (lease.entry.user, examined.local.port());
        let addresses = self.host_state.addresses_of(examined.local, examined.only_v6);
        if let [one] = addresses[..]
            && !self.host_state.has_address(one)
        {
            let message = format!("{one} is not an address of an uplink");
            return refused(ErrorKind::NotLocal, message);
        }
        let endpoints = self.allowed_endpoints(device, &addresses, port);
        if endpoints.is_empty() {
            let message =
                format!("user {user} may not hold port {port} of {}", examined.local.ip());
            return refused(ErrorKind::Denied, message);
        }
        for (at, _) in &endpoints {
            let holder = self.kernel.ports.get(at);
            // An entry whose device has gone is nobody's.
            let other = holder.filter(|held| self.leases.contains_key(&held.device));
            if other.is_some_and(|held| held.device != device || held.cookie != examined.cookie) {
                return refused(ErrorKind::InUse, format!("{at} is lent already"));
            }
            // The programs may have removed the entry of a lease whose end we have not heard of yet.
            let others = self.leases.iter().filter(|(other, _)| **other != device);
            let mut held = others.flat_map(|(_, lease)| lease.ports.values());
            if held.any(|held| held.endpoints.contains(at)) {
                return refused(ErrorKind::InUse, format!("{at} is lent already"));
            }
        }
        let of_user = |lease: &&Lease| lease.entry.user == user;
        let held_ports: usize =
            self.leases.values().filter(of_user).map(|lease| lease.endpoints().count()).sum();
        let max_ports = self.policy.first(&lease.caller).map_or(0, |rule| rule.most_ports) as usize;
        let already_registered = lease.ports.contains_key(&examined.cookie);
        let socket_count: usize = self.leases.values().map(|lease| lease.ports.len()).sum();
        if !already_registered && user != 0 && socket_count >= self.max_port_sockets {
            return refused(ErrorKind::Limit, "the broker has no descriptor left for a port");
        }
        if !already_registered && held_ports + endpoints.len() > max_ports {
            return refused(
                ErrorKind::Limit,
                format!("user {user} has {held_ports} ports already"),
            );
        }
        Ok(endpoints)
    }

    /// Of these addresses, those whose port the policy lets a lease's user hold.
    pub(super) fn allowed_endpoints(
        &self,
        device: u32,
        addresses: &[IpAddr],
        port: u16,
    ) -> Vec<(SocketAddr, u32)> {
        let Some(lease) = self.leases.get(&device) else { return Vec::new() };
        let ephemeral = host::ephemeral_ports();
        let allowed = addresses.iter().filter_map(|address| {
            let rule = self.policy.allows(&lease.caller, *address, port, &ephemeral)?;
            Some((SocketAddr::new(*address, port), self.peers_of(rule)))
        });
        allowed.collect()
    }

    /// The number of a rule's list of peers; 0 if it has none.
    fn peers_of(&self, rule: usize) -> u32 {
        match self.policy.rules.get(rule) {
            Some(found) if !found.peers.is_empty() => self.peer_list_base + rule as u32 + 1,
            _ => 0,
        }
    }

    fn remove_port(&mut self, device: u32, id: u64) -> Result<Reply, Refused> {
        let held = self.leases.get_mut(&device).and_then(|lease| lease.ports.remove(&id));
        let Some(held) = held else {
            return refused(ErrorKind::Gone, "there is no such port");
        };
        self.give_up_ports(device, &held.endpoints, false);
        self.log_ports(device, "port-end", held.bound, held.endpoints.len(), None);
        Ok(Reply::Removed {})
    }

    /// Removes an entry if it is still this device's.
    pub(super) fn clear_port_of(&self, device: u32, at: SocketAddr) {
        if self.kernel.ports.get(&at).is_some_and(|held| held.device == device) {
            self.kernel.ports.remove(&at);
        }
    }

    /// Logs something about ports of a lease: the first of them, and how many there are.
    pub(super) fn log_ports(
        &mut self,
        device: u32,
        event: &str,
        first: SocketAddr,
        count: usize,
        reason: Option<&str>,
    ) {
        let (port, ports) = (Some(first.to_string()), Some(count).filter(|count| *count > 1));
        self.log_lease_event(device, Event { event, port, ports, reason, ..Event::default() });
    }

    /// Logs an event of a lease: whose it is and what device is filled in.
    pub(super) fn log_lease_event(&mut self, device: u32, event: Event<'_>) {
        let Some(lease) = self.leases.get(&device) else { return };
        self.audit.write(&Event {
            user: Some(lease.entry.user),
            process: Some(lease.entry.process),
            device: Some(&lease.device),
            ..event
        });
    }

    /// The status with as many leases as fit in a message.
    fn status_page(&self, number: u64, after: u32) -> Page {
        let user = self.connections.get(&number).map(|connection| connection.caller.user);
        let visible = |lease: &Lease| user == Some(0) || user == Some(lease.entry.user);
        let mut page = Page { status: self.status(), next: None };
        let length = |value: Result<Vec<u8>, _>| value.map_or(LONGEST, |bytes| bytes.len());
        let mut left = LONGEST
            - PAGE_OVERHEAD
            - length(serde_json::to_vec(&page)).min(LONGEST - PAGE_OVERHEAD);
        let (mut last, range) = (after, (Bound::Excluded(after), Bound::Unbounded));
        for (device, lease) in self.leases.range(range).filter(|(_, lease)| visible(lease)) {
            let lease = self.lease_status(*device, lease);
            let lease_len = length(serde_json::to_vec(&lease)) + 1;
            if lease_len > left {
                page.next = Some(last);
                break;
            }
            left -= lease_len;
            last = *device;
            page.status.leases.push(lease);
        }
        page
    }

    fn status(&self) -> Status {
        let uplinks = self.policy.uplinks.iter().map(|name| {
            let found = self.host_state.uplinks.iter().find(|link| link.name == *name);
            let index = found.map_or(0, |link| link.index);
            let attached = index != 0 && self.kernel.is_attached("demux", index);
            Uplink { name: name.clone(), index, attached }
        });
        let counters = self.counters;
        let names = [
            "requests",
            "refused",
            "malformed",
            "leases",
            "ended",
            "tampered",
            "connections",
            "quarantined",
            "held-ports",
        ];
        let [quarantined, held_ports] = self.quarantine_counts();
        let counts = [
            counters.requests,
            counters.refused,
            counters.malformed,
            counters.leases,
            counters.ended,
            counters.tampered,
            self.connections.len() as u64,
            quarantined,
            held_ports,
        ];
        Status {
            uplinks: uplinks.collect(),
            leases: Vec::new(),
            demux: self.kernel.demux_counts(),
            guard: self.kernel.guard_counts(),
            broker: named_counts(&names, &counts),
        }
    }

    fn lease_status(&self, device: u32, lease: &Lease) -> LeaseStatus {
        let counts = self.kernel.counts(device);
        let drops = counts.map(|counts| counts.drops).unwrap_or_default();
        let drops = named_counts(&DROP_REASONS, &drops).into_iter().filter(|count| count.count > 0);
        LeaseStatus {
            device: lease.device.clone(),
            index: device,
            name: lease.entry.name.clone(),
            process: i32::try_from(lease.entry.process).unwrap_or(0),
            user: lease.entry.user,
            connected: lease.connected,
            packets_per_second: lease.entry.rate(),
            ports: lease.endpoints().take(SHOWN_PORTS).collect(),
            more_ports: lease.endpoints().count().saturating_sub(SHOWN_PORTS) as u64,
            received_packets: counts.map_or(0, |counts| counts.received_packets),
            received_bytes: counts.map_or(0, |counts| counts.received_bytes),
            sent_packets: counts.map_or(0, |counts| counts.sent_packets),
            sent_bytes: counts.map_or(0, |counts| counts.sent_bytes),
            drops: drops.collect(),
        }
    }
}

//! Work without a request: taking over from an earlier broker, and following changes of interfaces, addresses and devices.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use transom_device::interface::InterfaceState;
use transom_device::own_file;

use super::audit::Event;
use super::ending::NOBODY;
use super::host::{self, HostState, LOOPBACK};
use super::layout::{self, LeaseEntry, PortEntry};
use super::leases::{Lease, LeasedPort};
use super::process::Process;
use super::requests::rate_parameters;
use super::{Daemon, DaemonError, unlock};
use crate::policy::Caller;

impl Daemon {
    /// Reads the host's state, and takes over the state of an earlier broker.
    pub(super) fn take_over(&mut self) -> Result<(), DaemonError> {
        self.host_state = HostState::read(&mut self.interfaces, &self.policy.uplinks)
            .map_err(DaemonError::io("cannot look at the interfaces"))?;
        for name in &self.policy.uplinks {
            if !self.host_state.uplinks.iter().any(|link| link.name == *name) {
                let event = Event { event: "no-uplink", device: Some(name), ..Event::default() };
                self.audit.write(&event);
            }
        }
        let earlier = self.write_peers()?;
        self.recover_quarantine();
        self.recover_leases();
        self.accept_local_packets()?;
        self.apply_host_state()?;
        self.check_rules();
        self.check_ports();
        // From now on no port has one of these.
        self.kernel.clear_peers(&earlier);
        self.taken_ports = self.kernel.taken_port_count();
        Ok(())
    }

    /// Writes the policy's lists of peers, with other numbers than the lists of the policy before: its ports keep theirs until they are checked.
    /// Returns the earlier lists.
    fn write_peers(&mut self) -> Result<Vec<Vec<u8>>, DaemonError> {
        let rules = self.policy.rules.iter().enumerate();
        let lists: Vec<_> = rules
            .flat_map(|(at, rule)| rule.peers.iter().map(move |net| (at as u32 + 1, net)))
            .collect();
        let keys_with_base =
            |base: u32| lists.iter().map(move |(list, net)| layout::peer_key(base + list, net));
        let present: BTreeSet<Vec<u8>> = self.kernel.peers().into_iter().collect();
        for base in [0, SECOND_LIST_BASE] {
            if keys_with_base(base).collect::<BTreeSet<_>>() == present {
                self.peer_list_base = base;
                return Ok(Vec::new());
            }
        }
        let second_in_use =
            present.iter().any(|key| layout::peer_list_number(key) > Some(SECOND_LIST_BASE));
        self.peer_list_base = if second_in_use { 0 } else { SECOND_LIST_BASE };
        self.kernel.add_peers(&keys_with_base(self.peer_list_base).collect::<Vec<_>>())?;
        Ok(present.into_iter().collect())
    }

    /// The policy may be another one than before: leases of users without a rule end, and others get the rate that is theirs now.
    fn check_rules(&mut self) {
        for device in self.leases.keys().copied().collect::<Vec<_>>() {
            let Some(lease) = self.leases.get_mut(&device) else { continue };
            let Some(rule) = self.policy.first(&lease.caller) else {
                self.end_lease(device, "the policy has changed");
                continue;
            };
            let (interval, burst) = rate_parameters(rule);
            if (lease.entry.interval, lease.entry.burst) != (interval, burst) {
                (lease.entry.interval, lease.entry.burst) = (interval, burst);
                // Without room in the map the device sends nothing more, which is within any rate.
                let _ = self.kernel.change_lease(device, &lease.entry);
            }
        }
    }

    /// Leases whose device and process are there yet go on; others end.
    fn recover_leases(&mut self) {
        let mut ended = BTreeMap::new();
        for (device, entry) in self.kernel.leases.all() {
            let link = self.host_state.links.get(&device);
            let link = link.filter(|link| link.persistent_tun.is_some());
            let process = Process::find(entry.process).ok();
            let process = process.filter(|process| process.started == entry.started);
            match (link, process) {
                (Some(link), Some(process)) => {
                    let device_name = link.name.clone();
                    self.adopt_lease(device, device_name, entry, process);
                }
                (link, _) => {
                    if link.is_some() {
                        // The kernel's answer can only be that it has gone.
                        let _ = self.interfaces.remove(device);
                    }
                    ended.insert(device, (entry.user, BTreeSet::new()));
                }
            }
        }
        for (at, entry) in self.kernel.ports.all() {
            match (self.leases.get_mut(&entry.device), ended.get_mut(&entry.device)) {
                (Some(lease), _) => {
                    let held = lease.ports.entry(entry.cookie).or_insert_with(|| LeasedPort {
                        bound: at,
                        only_v6: at.is_ipv6(),
                        _socket: None,
                        endpoints: BTreeSet::new(),
                    });
                    held.endpoints.insert(at);
                }
                (None, Some((_, endpoints))) => drop(endpoints.insert(at)),
                (None, None) => self.kernel.ports.remove(&at),
            }
        }
        for (device, (user, endpoints)) in ended {
            self.end_found_lease(device, user, &endpoints);
        }
        for device in self.leases.keys().copied().collect::<Vec<_>>() {
            self.settle_found_lease(device);
        }
        for device in self.kernel.attached("guard") {
            if !self.leases.contains_key(&device) {
                self.kernel.detach("guard", device);
            }
        }
    }

    fn adopt_lease(&mut self, device: u32, name: String, entry: LeaseEntry, process: Process) {
        let ports = std::collections::BTreeMap::new();
        let caller = Caller::new(entry.user, entry.group);
        let lease = Lease { entry, caller, device: name, process, ports, connected: false };
        self.leases.insert(device, lease);
        self.log_lease_event(device, Event { event: "lease-found", ..Event::default() });
    }

    /// The policy may be another one than before.
    fn check_ports(&mut self) {
        let devices: Vec<_> = self.leases.keys().copied().collect();
        for device in devices {
            let mut gone = Vec::new();
            for (cookie, at) in self.endpoints_of(device) {
                let lists = self.allowed_endpoints(device, &[at.ip()], at.port());
                match lists.first() {
                    Some((_, peers)) => {
                        let entry = PortEntry { device, peers: *peers, cookie };
                        // The lease goes on without it.
                        let _ = self.kernel.ports.set(&at, &entry);
                    }
                    None => gone.push((cookie, at)),
                }
            }
            self.remove_endpoints(device, &gone, "the policy has changed", false);
        }
    }

    /// The addresses and ports of a lease, with the cookies of their sockets.
    fn endpoints_of(&self, device: u32) -> Vec<(u64, SocketAddr)> {
        let Some(lease) = self.leases.get(&device) else { return Vec::new() };
        let ports = lease.ports.iter();
        ports.flat_map(|(cookie, held)| held.endpoints.iter().map(|at| (*cookie, *at))).collect()
    }

    /// Takes addresses and ports from a lease. `may_return` says that the host has lost the address, and may get it back.
    fn remove_endpoints(
        &mut self,
        device: u32,
        gone: &[(u64, SocketAddr)],
        reason: &str,
        may_return: bool,
    ) {
        let Some((_, first)) = gone.first() else { return };
        self.give_up_ports(device, &gone.iter().map(|(_, at)| *at).collect(), may_return);
        if let Some(lease) = self.leases.get_mut(&device) {
            for (cookie, at) in gone {
                if let Some(held) = lease.ports.get_mut(cookie) {
                    held.endpoints.remove(at);
                }
            }
        }
        self.log_ports(device, "port-end", *first, gone.len(), Some(reason));
    }

    /// Removes the ports that the programs have given back to the kernel.
    fn release_taken_ports(&mut self) {
        let taken = self.kernel.taken_port_count();
        if std::mem::replace(&mut self.taken_ports, taken) == taken {
            return;
        }
        for device in self.leases.keys().copied().collect::<Vec<_>>() {
            let is_taken = |at: SocketAddr| {
                self.kernel.ports.get(&at).is_none_or(|port| port.device != device)
            };
            let mut gone = self.endpoints_of(device);
            gone.retain(|(_, at)| is_taken(*at));
            let reason = "a socket of the kernel's listens there";
            self.remove_endpoints(device, &gone, reason, false);
        }
    }

    /// Has the loopback interface accept packets from the host's own addresses. A file keeps the earlier setting until the end.
    fn accept_local_packets(&self) -> Result<(), DaemonError> {
        let failed = DaemonError::io("cannot let the loopback interface take local packets");
        let set_and_save = || {
            let before = host::set_accept_local("1")?;
            let path = self.loopback_setting_path();
            // Where there is one of an earlier broker's, the setting is ours by now.
            match own_file::read(&path) {
                Ok(Some(_)) => Ok(()),
                _ => own_file::replace(&path, before.as_bytes()),
            }
        };
        set_and_save().map_err(failed)
    }

    /// Reads interfaces, addresses and devices again, and applies their changes.
    pub(super) fn refresh_host_state(&mut self) {
        self.release_taken_ports();
        let Ok(state) = HostState::read(&mut self.interfaces, &self.policy.uplinks) else { return };
        for (device, reason) in self.ended_leases(&state) {
            if reason == TAMPERED {
                self.counters.tampered += 1;
            }
            self.end_lease(device, reason);
        }
        // Devices come and go; the rest seldom changes.
        // Carriers come and go, too, and leases do not depend on them.
        let essence = |link: &InterfaceState| {
            (link.index, link.name.clone(), link.mtu, link.up, link.hardware, link.persistent_tun)
        };
        let before = self.host_state.uplinks.iter().map(essence);
        let unchanged = state.uplinks.iter().map(essence).eq(before)
            && state.addresses == self.host_state.addresses
            && state.locals == self.host_state.locals;
        let mtu = self.host_state.mtu();
        self.host_state = state;
        if unchanged && !std::mem::take(&mut self.endings.endpoint_waits) {
            return;
        }
        if let Err(error) = self.apply_host_state() {
            self.log_error(&error.to_string());
        }
        self.update_port_endpoints();
        if mtu != self.host_state.mtu() {
            for lease in self.leases.values() {
                // A device that goes at this moment.
                let _ = self.interfaces.set_mtu(&lease.device, self.host_state.mtu());
            }
        }
    }

    /// Leases whose device has gone or was tampered with, and the reason.
    fn ended_leases(&self, state: &HostState) -> Vec<(u32, &'static str)> {
        let ended = self.leases.keys().filter_map(|device| match state.links.get(device) {
            None => Some((*device, "the device was closed")),
            Some(link) if link.persistent_tun == Some(true) => Some((*device, TAMPERED)),
            Some(_) => None,
        });
        ended.collect()
    }

    /// Brings the programs to the uplinks that there are, and tells them the addresses.
    fn apply_host_state(&self) -> Result<(), DaemonError> {
        let devices: Vec<_> = self.host_state.uplinks.iter().map(|link| link.index).collect();
        self.kernel.set_locals(&self.host_state.locals)?;
        self.kernel.set_uplinks(&devices)?;
        for device in self.kernel.attached("demux") {
            if !devices.contains(&device) {
                self.kernel.detach("demux", device);
            }
        }
        devices.into_iter().try_for_each(|device| self.kernel.attach("demux", device))?;
        self.kernel.attach("demux_own", LOOPBACK)
    }

    /// Ports of addresses that have gone go too; those of unspecified addresses follow new ones.
    fn update_port_endpoints(&mut self) {
        let devices: Vec<_> = self.leases.keys().copied().collect();
        for device in devices {
            let mut lost = self.endpoints_of(device);
            lost.retain(|(_, at)| !self.host_state.has_address(at.ip()));
            let reason = "the host has lost the address";
            self.remove_endpoints(device, &lost, reason, true);
            let Some(lease) = self.leases.get(&device) else { continue };
            let held = lease.ports.iter();
            let held: Vec<_> = held
                .map(|(id, held)| (*id, held.bound, held.only_v6, held.endpoints.clone()))
                .collect();
            for (cookie, bound, only_v6, endpoints) in held {
                let addresses = self.host_state.addresses_of(bound, only_v6);
                for (at, peers) in self.allowed_endpoints(device, &addresses, bound.port()) {
                    if self.host_state.has_address(at.ip()) && !endpoints.contains(&at) {
                        self.add_endpoint(device, cookie, at, peers);
                    }
                }
            }
        }
    }

    fn add_endpoint(&mut self, device: u32, cookie: u64, at: SocketAddr, peers: u32) {
        let user = self.leases.get(&device).map_or(NOBODY, |lease| lease.entry.user);
        self.settle_ports(device, &BTreeSet::from([at]));
        if self.wait_for_port(at, user).is_some() {
            self.endings.endpoint_waits = true;
            return;
        }
        let entry = PortEntry { device, peers, cookie };
        if self.is_held(at) || self.kernel.ports.set(&at, &entry).is_err() {
            return;
        }
        // A list that cannot be had is no reason to believe that nobody else is there.
        if !matches!(self.occupied(&[at], cookie), Ok(None)) {
            self.kernel.ports.remove(&at);
            return;
        }
        if let Some(lease) = self.leases.get_mut(&device)
            && let Some(held) = lease.ports.get_mut(&cookie)
        {
            held.endpoints.insert(at);
        }
        self.log_ports(device, "port", at, 1, Some("the host has got the address"));
    }

    /// Takes everything out of the system.
    pub(super) fn shut_down(mut self) {
        self.end_all_leases("the broker was stopped");
        self.audit.write(&Event { event: "stop", ..Event::default() });
        self.finish_quarantine();
        host::restore_loopback(&self.loopback_setting_path());
        // The client that asked for the stop sees the connection end after everything has gone.
        if let Err(error) = self.kernel.remove() {
            self.log_error(&error.to_string());
        }
        let _ = std::fs::remove_file(&self.socket);
        unlock(self.lock, &self.socket);
    }
}

/// The first number of lists of peers that alternate with those from 0 on.
const SECOND_LIST_BASE: u32 = 1 << 16;
const TAMPERED: &str = "the process made its device persistent";

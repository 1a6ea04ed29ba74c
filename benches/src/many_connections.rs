//! Two hosts with many connections between them.

use crate::pair::{MTU, carry, carry_together, wire};
use anyhow::{Context, ensure};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use transom_device::memory::MemoryLink;
use transom_stack::{ConnectionId, ListenConfig, ListenerId, Stack, StackConfig};

use transom_tcp::Profile;
use transom_tcp::time::Instant;

/// The client's address.
const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// The server's address.
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
/// The server's first port.
const FIRST_PORT: u16 = 1000;
/// Connections to one port of the server: fewer than a client has ports.
const PER_PORT: usize = 20_000;

/// The two hosts, sized for a number of connections that are not there yet.
#[derive(Debug)]
pub struct Hosts {
    /// The one that connects.
    pub client: Stack,
    /// The one that accepts.
    pub server: Stack,
    listeners: Vec<ListenerId>,
}

impl Hosts {
    /// Two hosts of which the server takes `count` connections, in any state.
    ///
    /// # Errors
    /// When a configuration is refused.
    pub fn new(count: usize, now: Instant) -> anyhow::Result<Self> {
        Hosts::with(Profile::classic().with_nodelay(true), count, now)
    }

    /// The same with this profile.
    ///
    /// # Errors
    /// As there.
    pub fn with(profile: Profile, count: usize, now: Instant) -> anyhow::Result<Self> {
        let profile = Arc::new(profile);
        let host = |address: Ipv4Addr, secret: u8| {
            let config = StackConfig::new(vec![(IpAddr::V4(address), 24)])
                .with_mtu(MTU as u32)
                .with_profile(profile.clone())
                .with_secret([secret; 16])
                .with_max_half_open(count)
                .with_max_time_wait(count);
            Stack::new(config, now)
        };
        let (client, mut server) = (host(CLIENT, 1)?, host(SERVER, 2)?);
        let ports = u16::try_from(count.div_ceil(PER_PORT))?;
        let listen = ListenConfig::default().with_syn_backlog(PER_PORT);
        let listeners = (0..ports)
            .map(|port| server.listen((SERVER, FIRST_PORT + port).into(), listen.clone()))
            .collect::<Result<_, _>>()?;
        Ok(Hosts { client, server, listeners })
    }

    /// Where the connection with this number leads.
    pub fn address(&self, number: usize) -> SocketAddr {
        (SERVER, FIRST_PORT + (number / PER_PORT) as u16).into()
    }

    /// The listener there.
    pub fn listener(&self, number: usize) -> ListenerId {
        self.listeners[number / PER_PORT]
    }
}

/// A connection's name at either end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// At the host that connected.
    pub client: ConnectionId,
    /// At the host that accepted.
    pub server: ConnectionId,
}

/// Two hosts and their connections.
#[derive(Debug)]
pub struct Crowd {
    /// The hosts.
    pub hosts: Hosts,
    /// The connections.
    pub connections: Vec<Ends>,
    wire: MemoryLink,
}

impl Crowd {
    /// Two hosts with `count` established connections.
    ///
    /// # Errors
    /// When one is not established.
    pub fn new(count: usize, now: Instant) -> anyhow::Result<Self> {
        Crowd::between(Hosts::new(count, now)?, count, now)
    }

    /// The same between these two hosts.
    ///
    /// # Errors
    /// As there.
    pub fn between(hosts: Hosts, count: usize, now: Instant) -> anyhow::Result<Self> {
        let connections = Vec::with_capacity(count);
        let mut crowd = Crowd { hosts, connections, wire: wire() };
        for number in 0..count {
            let client =
                crowd.hosts.client.connect(now, None, crowd.hosts.address(number), None)?;
            crowd.exchange(now);
            let listener = crowd.hosts.listener(number);
            let (server, _) = crowd.hosts.server.accept(listener).context("nothing to accept")?;
            crowd.connections.push(Ends { client, server });
        }
        crowd.forget_signals();
        let Hosts { client, server, .. } = &crowd.hosts;
        ensure!(client.connection_count() == count && server.connection_count() == count);
        Ok(crowd)
    }

    /// Carries packets both ways until there are none; returns how many there were.
    pub fn exchange(&mut self, now: Instant) -> u64 {
        let Hosts { client, server, .. } = &mut self.hosts;
        let mut carried = 0;
        loop {
            let there = carry(client, server, &mut self.wire, now);
            let back = carry(server, client, &mut self.wire, now);
            carried += there + back;
            if there + back == 0 {
                return carried;
            }
        }
    }

    /// Sends `bytes` to the server on one connection and back again; returns how many packets that took.
    ///
    /// # Errors
    /// When the bytes do not arrive.
    pub fn request(&mut self, ends: Ends, bytes: &[u8], now: Instant) -> anyhow::Result<u64> {
        let mut into = [0; MTU];
        let into = into.get_mut(..bytes.len()).context("a request of more than one packet")?;
        self.hosts.client.write(ends.client, now, bytes)?;
        let mut carried = self.exchange(now);
        let read = self.hosts.server.read(ends.server, now, into)?;
        ensure!(read == bytes.len(), "the server read {read} bytes");
        self.hosts.server.write(ends.server, now, bytes)?;
        carried += self.exchange(now);
        let read = self.hosts.client.read(ends.client, now, into)?;
        ensure!(read == bytes.len(), "the client read {read} bytes");
        Ok(carried)
    }

    /// The same on several connections at a time: all requests arrive at the server together, and all answers at the client.
    ///
    /// # Errors
    /// As there.
    pub fn requests(&mut self, ends: &[Ends], bytes: &[u8], now: Instant) -> anyhow::Result<u64> {
        let mut into = [0; MTU];
        let into = into.get_mut(..bytes.len()).context("a request of more than one packet")?;
        for ends in ends {
            self.hosts.client.write(ends.client, now, bytes)?;
        }
        let Hosts { client, server, .. } = &mut self.hosts;
        let mut carried = carry_together(client, server, &mut self.wire, now);
        for ends in ends {
            let read = self.hosts.server.read(ends.server, now, into)?;
            ensure!(read == bytes.len(), "the server read {read} bytes");
            self.hosts.server.write(ends.server, now, bytes)?;
        }
        let Hosts { client, server, .. } = &mut self.hosts;
        carried += carry_together(server, client, &mut self.wire, now);
        for ends in ends {
            let read = self.hosts.client.read(ends.client, now, into)?;
            ensure!(read == bytes.len(), "the client read {read} bytes");
        }
        carried += self.exchange(now);
        Ok(carried)
    }

    /// Lets both hosts act on the time.
    pub fn tick(&mut self, now: Instant) {
        self.hosts.client.on_timeout(now);
        self.hosts.server.on_timeout(now);
    }

    /// Throws away what happened; nobody here waits for it.
    pub fn forget_signals(&mut self) {
        while self.hosts.client.poll_signal().is_some() {}
        while self.hosts.server.poll_signal().is_some() {}
    }
}

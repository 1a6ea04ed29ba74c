//! How much memory a connection takes that does nothing.
//!
//! A connection counts as idle after a minute of silence; by then it must have given its buffers back.
//!
//! Everything the server's host allocates and keeps is counted and divided by the number of its connections: the
//! connection itself, its units, and its share of the tables, which hold 100,000. Allocations of the client, and those
//! made to carry packets, are not counted.

use super::Settings;
use crate::counting;
use crate::harness::{Bound, Case, Group, Unit};
use crate::many_connections::Hosts;
use anyhow::{Context, ensure};
use transom_stack::{ConnectionId, Stack};
use transom_tcp::time::{Duration, Instant};
use transom_wire::offload::RxOffload;

/// Connections.
const COUNT: usize = 100_000;
/// Time between two connections' openings.
const INTERVAL: Duration = Duration::from_micros(100);
/// Seconds in which nothing happens before a connection counts as idle.
const SILENCE: u64 = 60;
/// The longest packet between the two.
const LONGEST: usize = 1500;

/// What the server's connections are brought to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    HalfOpen,
    Established,
    Used,
    TimeWait,
}

/// Two hosts of which the server's memory is counted.
struct Counted {
    hosts: Hosts,
    live_bytes: i64,
    /// Virtual time.
    now: Instant,
    packet: Box<[u8; LONGEST]>,
}

impl Counted {
    fn new() -> anyhow::Result<Self> {
        ensure!(counting::is_installed(), "this program's allocator does not count");
        let now = Instant::from_secs(1);
        Ok(Counted {
            hosts: Hosts::new(COUNT, now)?,
            live_bytes: 0,
            now,
            packet: Box::new([0; LONGEST]),
        })
    }

    /// Calls the server, and counts.
    fn server<T>(&mut self, call: impl FnOnce(&mut Stack, Instant, &mut [u8; LONGEST]) -> T) -> T {
        let Counted { hosts, live_bytes, now, packet } = self;
        let (result, counts) = counting::count(|| call(&mut hosts.server, *now, packet));
        *live_bytes += counts.live_bytes;
        result
    }

    /// Lets time pass in which nothing arrives but what timers send.
    fn rest(&mut self) {
        for _ in 0..SILENCE {
            self.now += Duration::from_secs(1);
            self.hosts.client.on_timeout(self.now);
            self.server(|server, now, _| server.on_timeout(now));
            self.exchange();
        }
    }

    /// Carries what the client sends.
    fn deliver_to_server(&mut self) -> bool {
        let Some(len) = take(&mut self.hosts.client, self.now, &mut self.packet) else {
            return false;
        };
        self.server(|server, now, packet| {
            server.on_packet(now, &packet[..len], RxOffload::default())
        });
        true
    }

    /// Carries what the server sends.
    fn deliver_to_client(&mut self) -> bool {
        let Some(len) = self.server(take) else { return false };
        self.hosts.client.on_packet(self.now, &self.packet[..len], RxOffload::default());
        true
    }

    fn exchange(&mut self) {
        while self.deliver_to_server() || self.deliver_to_client() {}
        while self.hosts.client.poll_signal().is_some() {}
        self.server(|server, _, _| while server.poll_signal().is_some() {});
    }

    /// Sends half a kilobyte each way and reads it.
    fn request(&mut self, client: ConnectionId, server_end: ConnectionId) -> anyhow::Result<()> {
        let mut bytes = [1; 512];
        self.hosts.client.write(client, self.now, &bytes)?;
        self.exchange();
        self.server(|server, now, _| {
            server.read(server_end, now, &mut bytes)?;
            server.write(server_end, now, &bytes)
        })?;
        self.exchange();
        self.hosts.client.read(client, self.now, &mut bytes)?;
        Ok(())
    }

    /// Brings one connection to `stage`.
    fn open(&mut self, number: usize, stage: Stage) -> anyhow::Result<()> {
        let client = self.hosts.client.connect(self.now, None, self.hosts.address(number), None)?;
        if stage == Stage::HalfOpen {
            self.deliver_to_server();
            // The SYN-ACK is lost.
            while self.server(take).is_some() {}
            return Ok(());
        }
        self.exchange();
        let listener = self.hosts.listener(number);
        let accepted = self.server(|server, _, _| server.accept(listener));
        let (server_end, _) = accepted.context("nothing to accept")?;
        self.exchange();
        match stage {
            Stage::HalfOpen | Stage::Established => {}
            Stage::Used => self.request(client, server_end)?,
            Stage::TimeWait => {
                self.server(|server, now, _| server.close(server_end, now));
                self.exchange();
                self.hosts.client.close(client, self.now);
                self.exchange();
            }
        }
        Ok(())
    }
}

/// The next packet a host sends, copied.
fn take(host: &mut Stack, now: Instant, into: &mut [u8; LONGEST]) -> Option<usize> {
    let packet = host.poll_transmit(now)?;
    let mut at = 0;
    for part in [packet.headers, packet.payload[0], packet.payload[1]] {
        into[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    Some(at)
}

/// Bytes per connection.
fn measure(stage: Stage) -> anyhow::Result<f64> {
    let mut counted = Counted::new()?;
    for number in 0..COUNT {
        counted.open(number, stage)?;
        counted.now += INTERVAL;
    }
    if matches!(stage, Stage::Established | Stage::Used) {
        counted.rest();
    }
    let server = &counted.hosts.server;
    let reached = match stage {
        Stage::HalfOpen => server.half_open_count(),
        Stage::Established | Stage::Used => server.connection_count(),
        Stage::TimeWait => server.time_wait_count(),
    };
    ensure!(reached == COUNT, "{reached} connections of {COUNT} got there");
    Ok(counted.live_bytes as f64 / COUNT as f64)
}

/// Builds the group.
///
/// # Errors
/// None; a case fails where the program's allocator does not count.
pub fn build(_settings: Settings) -> anyhow::Result<Group> {
    let case = |name, stage| Case::new(name, move |_| measure(stage));
    let figure = Bound::AtMost(2048.0);
    let cases = vec![
        case("established, nothing sent", Stage::Established).absolute(figure),
        case("established, idle for a minute after a request", Stage::Used).absolute(figure),
        case("half-open", Stage::HalfOpen),
        case("TIME-WAIT", Stage::TimeWait),
    ];
    Ok(Group { most_samples: 1, ..Group::new(Unit::Bytes, cases) })
}

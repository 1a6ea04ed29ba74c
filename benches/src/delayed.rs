//! Two hosts with many connections and a path between them that takes time: bulk transfer in virtual time, measured in CPU time.
//!
//! Without a delay there are no round trips, and an extension that is woken for each of them has nothing to do. So packets wait in a queue for
//! each direction until they have been serialised and the delay is over, and the clock jumps from one event to the next. The path costs little: a
//! place in the queue for each packet. Arriving packets are given to the stack one by one, which is the dearest way for whoever is woken for every
//! acknowledgement.

use crate::clock::thread_time;
use crate::many_connections::{Crowd, Hosts};
use crate::pair::wire;
use crate::transfer::gigabits;
use anyhow::{Context, ensure};
use std::collections::VecDeque;
use std::time::Duration as Span;
use transom_device::memory::MemoryLink;
use transom_device::{Device, RxPacket, TxPacket};
use transom_stack::{ConnectionId, Stack, StackSignal};
use transom_tcp::extension::ExtensionChoice;
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{Profile, Signal};

/// No transfer takes so many events without a byte that arrives.
const STALL: u32 = 1_000_000;

/// What the path is like, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Bits per second.
    pub rate: u64,
    /// One way.
    pub delay: Duration,
}

/// One direction.
#[derive(Debug)]
struct Way {
    packets: VecDeque<(Instant, RxPacket)>,
    /// When the last packet has been serialised.
    free: Instant,
}

/// Gives data to a connection of the client.
pub type Write = Box<dyn FnMut(&mut Stack, ConnectionId, Instant, &[u8])>;

/// How the application gives data to the connections of the client.
pub struct Feed {
    /// What it does.
    pub write: Write,
    /// Whether it does so for each connection after every acknowledgement, and not only when a connection can be written to again.
    pub after_acks: bool,
}

/// Writes as much as there is room for.
pub fn plain_feed() -> Feed {
    let write: Write =
        Box::new(|stack, id, now, bytes| while let Ok(1..) = stack.write(id, now, bytes) {});
    Feed { write, after_acks: false }
}

/// The hosts, the path and the application.
pub struct Delayed {
    crowd: Crowd,
    path: Path,
    there: Way,
    back: Way,
    wire: MemoryLink,
    now: Instant,
    out: Vec<u8>,
    into: Vec<u8>,
    feed: Feed,
}

impl std::fmt::Debug for Delayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delayed").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Delayed {
    /// `count` connections of this profile.
    ///
    /// # Errors
    /// When one is not established.
    pub fn new(profile: Profile, count: usize, path: Path, feed: Feed) -> anyhow::Result<Self> {
        let now = Instant::from_millis(1);
        let crowd = Crowd::between(Hosts::with(profile, count, now)?, count, now)?;
        let way = || Way { packets: VecDeque::new(), free: now };
        let mut delayed = Delayed {
            crowd,
            path,
            there: way(),
            back: way(),
            wire: wire(),
            now,
            out: vec![1; 65_536],
            into: vec![0; 65_536],
            feed,
        };
        for number in 0..count {
            let id = delayed.crowd.connections[number].client;
            (delayed.feed.write)(&mut delayed.crowd.hosts.client, id, now, &delayed.out);
        }
        Ok(delayed)
    }

    /// The first of the connections as the client knows it.
    pub fn first(&self) -> Option<(&Stack, ConnectionId)> {
        let ends = self.crowd.connections.first()?;
        Some((&self.crowd.hosts.client, ends.client))
    }

    /// Transfers for about `span` of real time; the rate in Gb/s of CPU time.
    ///
    /// # Errors
    /// When nothing arrives any more.
    pub fn sample(&mut self, span: Span) -> anyhow::Result<f64> {
        let (start, started) = (std::time::Instant::now(), thread_time());
        let (mut received, mut fruitless) = (0u64, 0);
        loop {
            // A look at the clock on the wall costs, so not for every event.
            for _ in 0..256 {
                let arrived = self.step()?;
                received += arrived;
                fruitless = if arrived == 0 { fruitless + 1 } else { 0 };
            }
            ensure!(fruitless < STALL, "the transfer stalled");
            if start.elapsed() >= span {
                return Ok(gigabits(received, thread_time() - started));
            }
        }
    }

    /// All connections have these extensions from now on, at both ends, and no others.
    ///
    /// # Errors
    /// When one cannot be attached.
    pub fn wear(&mut self, choices: &[ExtensionChoice]) -> anyhow::Result<()> {
        let Hosts { client, server, .. } = &mut self.crowd.hosts;
        for ends in &self.crowd.connections {
            for (host, id) in [(&mut *client, ends.client), (&mut *server, ends.server)] {
                host.with_connection(id, self.now, |connection| {
                    let worn: Vec<_> = connection.layers().map(|layer| layer.id).collect();
                    worn.into_iter().for_each(|layer| _ = connection.detach(self.now, layer));
                    choices.iter().try_for_each(|choice| {
                        connection.attach(self.now, choice.extension()).map(drop)
                    })
                })??;
            }
        }
        Ok(())
    }

    /// Transfers so many bytes.
    ///
    /// # Errors
    /// When nothing arrives any more.
    pub fn transfer(&mut self, bytes: u64) -> anyhow::Result<()> {
        let (mut received, mut fruitless) = (0u64, 0);
        while received < bytes {
            let arrived = self.step()?;
            received += arrived;
            fruitless = if arrived == 0 { fruitless + 1 } else { 0 };
            ensure!(fruitless < STALL, "the transfer stalled");
        }
        Ok(())
    }

    /// The next event, whatever it is; returns the bytes that the application got.
    fn step(&mut self) -> anyhow::Result<u64> {
        let Hosts { client, server, .. } = &mut self.crowd.hosts;
        send(client, &mut self.there, &mut self.wire, self.path, self.now);
        send(server, &mut self.back, &mut self.wire, self.path, self.now);
        let due = |way: &Way| way.packets.front().map(|(due, _)| *due);
        let next =
            [due(&self.there), due(&self.back), client.next_timeout(), server.next_timeout()];
        let next = next.into_iter().flatten().min().context("nothing will ever happen again")?;
        self.now = self.now.max(next);
        client.on_timeout(self.now);
        server.on_timeout(self.now);
        deliver(server, &mut self.there, &mut self.wire, self.now);
        let acks = deliver(client, &mut self.back, &mut self.wire, self.now);
        let mut received = 0;
        while let Some(event) = server.poll_signal() {
            if let StackSignal::Connection(id, Signal::Readable) = event {
                while let Ok(read @ 1..) = server.read(id, self.now, &mut self.into) {
                    received += read as u64;
                }
            }
        }
        while let Some(event) = client.poll_signal() {
            if let StackSignal::Connection(id, Signal::Writable) = event {
                (self.feed.write)(client, id, self.now, &self.out);
            }
        }
        if acks && self.feed.after_acks {
            for ends in &self.crowd.connections {
                (self.feed.write)(client, ends.client, self.now, &self.out);
            }
        }
        Ok(received)
    }
}

/// Everything a host has to send goes into its queue.
fn send(from: &mut Stack, way: &mut Way, wire: &mut MemoryLink, path: Path, now: Instant) {
    while let Some(packet) = from.poll_transmit(now) {
        let packet =
            TxPacket { headers: packet.headers, payload: packet.payload, offload: packet.offload };
        if wire.send(&packet).is_err() {
            continue; // The wire is empty, so there is room; what it cannot take is lost.
        }
        while let Ok(packet) = wire.recv() {
            let bits = packet.range.len() as u64 * 8;
            let takes = Duration::from_nanos(bits * 1_000_000_000 / path.rate);
            way.free = way.free.max(now) + takes;
            way.packets.push_back((way.free + path.delay, packet));
        }
    }
}

/// Delivers the packets whose time has come; returns whether there were any.
fn deliver(to: &mut Stack, way: &mut Way, wire: &mut MemoryLink, now: Instant) -> bool {
    let mut any = false;
    while way.packets.front().is_some_and(|(due, _)| *due <= now) {
        let Some((_, RxPacket { buffer, range, offload })) = way.packets.pop_front() else { break };
        any = true;
        if let Some(buffer) = to.on_owned_packet(now, buffer, range, offload) {
            wire.recycle(buffer);
        }
        while let Some(buffer) = to.reclaim() {
            wire.recycle(buffer);
        }
    }
    any
}

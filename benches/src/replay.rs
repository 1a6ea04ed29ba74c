//! One end of a conversation, replayed without the other.
//!
//! A host is a function of its configuration, its secret and what it is called with. So a conversation between two hosts is
//! held once and written down: every call of the application and every packet that arrived, with its time. A fresh
//! host that is taken through the same steps does exactly the same, with nobody at the other end; what is measured
//! then is one end's work and nothing else.

use crate::pair::{MTU, fixed_buffers};
use anyhow::{Context, ensure};
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use transom_stack::{ConnectionId, ListenConfig, ListenerId, Offload, Stack, StackConfig};
use transom_tcp::packet::PacketBuf;
use transom_tcp::time::{Duration, Instant};
use transom_wire::offload::{RxChecksum, RxOffload};

const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
const PORT: u16 = 7;
const START: Instant = Instant::from_secs(1);
/// Time between two rounds.
const ROUND: Duration = Duration::from_micros(500);
/// Rounds before measuring begins, for slow start and the first allocations.
const WARM_UP: u32 = 500;
/// Rounds that are measured.
const ROUNDS: u32 = 100;
/// Bytes written in a round of a bulk transfer: 22 segments.
const BULK: usize = 32 * 1024;
/// Bytes of a request and of its answer.
const REQUEST: usize = 64;

/// Which end is replayed, and in what conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The sender of a bulk transfer.
    BulkSender,
    /// The receiver of a bulk transfer.
    BulkReceiver,
    /// The client of short requests and answers.
    Requester,
}

impl Role {
    fn side(self) -> Side {
        match self {
            Role::BulkSender | Role::Requester => Side::Client,
            Role::BulkReceiver => Side::Server,
        }
    }
}

/// Who computes and verifies checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// The host.
    Software,
    /// The device.
    Device,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// What happens to a host.
#[derive(Clone, Debug)]
enum Step {
    Connect,
    Accept,
    Write(usize),
    Read,
    /// A packet of this length arrives.
    Receive(PacketBuf, usize),
    /// Everything there is to send is sent.
    Transmit,
    Timeout,
}

/// A host, and what is needed to take it through steps.
#[derive(Debug)]
struct Host {
    stack: Stack,
    listener: Option<ListenerId>,
    connection: Option<ConnectionId>,
    received: RxOffload,
    memory: Vec<u8>,
    sent: u64,
    read: u64,
}

impl Host {
    fn new(side: Side, checksums: Checksums) -> anyhow::Result<Self> {
        let in_device = checksums == Checksums::Device;
        let (address, secret) = match side {
            Side::Client => (CLIENT, 1),
            Side::Server => (SERVER, 2),
        };
        let config = StackConfig::new(vec![(IpAddr::V4(address), 24)])
            .with_mtu(MTU as u32)
            .with_offload(Offload::default().with_tx_checksum(in_device))
            .with_profile(Arc::new(fixed_buffers(128 * 1024).with_nodelay(true)))
            .with_secret([secret; 16]);
        let mut stack = Stack::new(config, START)?;
        let listener = match side {
            Side::Client => None,
            Side::Server => Some(stack.listen((SERVER, PORT).into(), ListenConfig::default())?),
        };
        let checksum = if in_device { RxChecksum::Valid } else { RxChecksum::Unverified };
        Ok(Host {
            stack,
            listener,
            connection: None,
            received: RxOffload { checksum, segmentation: None },
            memory: vec![3; BULK],
            sent: 0,
            read: 0,
        })
    }

    /// Takes one step. `send` gets the packets of [`Step::Transmit`].
    fn step(
        &mut self,
        now: Instant,
        step: Step,
        mut send: impl FnMut(&transom_stack::Transmit<'_>),
    ) -> anyhow::Result<()> {
        match step {
            Step::Connect => {
                let server = SocketAddr::from((SERVER, PORT));
                self.connection = Some(self.stack.connect(now, None, server, None)?);
            }
            Step::Accept => {
                let listener = self.listener.context("a client does not accept")?;
                self.connection = self.stack.accept(listener).map(|(id, _)| id);
            }
            Step::Write(len) => {
                let id = self.connection.context("not connected")?;
                let bytes = self.memory.get(..len).context("too much for one write")?;
                // A full buffer takes less, both times.
                let _ = self.stack.write(id, now, bytes);
            }
            Step::Read => {
                let id = self.connection.context("not connected")?;
                while let Ok(read @ 1..) = self.stack.read(id, now, &mut self.memory) {
                    self.read += read as u64;
                }
            }
            Step::Receive(buffer, len) => {
                drop(self.stack.on_owned_packet(now, buffer, 0..len, self.received));
            }
            Step::Transmit => {
                while let Some(packet) = self.stack.poll_transmit(now) {
                    send(&packet);
                    self.sent += 1;
                }
            }
            Step::Timeout => {
                self.stack.on_timeout(now);
                while self.stack.poll_signal().is_some() {}
            }
        }
        Ok(())
    }
}

/// Two hosts in conversation; what one of them goes through is written down.
struct Recorder {
    client: Host,
    server: Host,
    now: Instant,
    recorded: Side,
    steps: Vec<(Instant, Step)>,
}

impl Recorder {
    fn step(&mut self, side: Side, step: Step) -> anyhow::Result<Vec<Vec<u8>>> {
        let host = match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        };
        let mut sent = Vec::new();
        host.step(self.now, step.clone(), |packet| sent.push(packet.to_vec()))?;
        // A host that had nothing to send need not be asked again.
        if side == self.recorded && !(matches!(step, Step::Transmit) && sent.is_empty()) {
            self.steps.push((self.now, step));
        }
        Ok(sent)
    }

    fn exchange(&mut self) -> anyhow::Result<()> {
        loop {
            let mut quiet = true;
            for (from, to) in [(Side::Client, Side::Server), (Side::Server, Side::Client)] {
                for packet in self.step(from, Step::Transmit)? {
                    quiet = false;
                    let mut buffer = PacketBuf::from(vec![0; MTU]);
                    buffer[..packet.len()].copy_from_slice(&packet);
                    self.step(to, Step::Receive(buffer, packet.len()))?;
                }
            }
            if quiet {
                return Ok(());
            }
        }
    }

    fn message(&mut self, from: Side, to: Side, len: usize) -> anyhow::Result<()> {
        self.step(from, Step::Write(len))?;
        self.exchange()?;
        self.step(to, Step::Read)?;
        // Reading may open the window.
        self.exchange()
    }

    fn round(&mut self, role: Role) -> anyhow::Result<()> {
        self.now += ROUND;
        self.step(Side::Client, Step::Timeout)?;
        self.step(Side::Server, Step::Timeout)?;
        match role {
            Role::BulkSender | Role::BulkReceiver => self.message(Side::Client, Side::Server, BULK),
            Role::Requester => {
                self.message(Side::Client, Side::Server, REQUEST)?;
                self.message(Side::Server, Side::Client, REQUEST)
            }
        }
    }
}

/// One end of a conversation, ready to be measured.
#[derive(Debug)]
pub struct Replay {
    host: Host,
    steps: Vec<(Instant, Step)>,
    /// Packets it sends and receives while it is measured.
    packets: u64,
    sent: u64,
    read: u64,
}

impl Replay {
    /// Holds the conversation and takes a fresh host to where measuring begins.
    ///
    /// # Errors
    /// When the conversation fails.
    pub fn new(role: Role, checksums: Checksums) -> anyhow::Result<Self> {
        let mut recorder = Recorder {
            client: Host::new(Side::Client, checksums)?,
            server: Host::new(Side::Server, checksums)?,
            now: START,
            recorded: role.side(),
            steps: Vec::new(),
        };
        recorder.step(Side::Client, Step::Connect)?;
        recorder.exchange()?;
        recorder.step(Side::Server, Step::Accept)?;
        for _ in 0..WARM_UP {
            recorder.round(role)?;
        }
        let warm = recorder.steps.len();
        let host = |recorder: &Recorder| match role.side() {
            Side::Client => (recorder.client.sent, recorder.client.read),
            Side::Server => (recorder.server.sent, recorder.server.read),
        };
        let before = host(&recorder);
        for _ in 0..ROUNDS {
            recorder.round(role)?;
        }
        let after = host(&recorder);
        let mut steps = recorder.steps;
        let measured = steps.split_off(warm);
        let received = measured.iter().filter(|(_, step)| matches!(step, Step::Receive(..)));
        let (sent, read) = (after.0 - before.0, after.1 - before.1);
        let packets = received.count() as u64 + sent;
        let mut fresh = Host::new(role.side(), checksums)?;
        for (now, step) in steps {
            fresh.step(now, step, |_| ())?;
        }
        ensure!((fresh.sent, fresh.read) == before, "a host did not do the same again");
        (fresh.sent, fresh.read) = (0, 0);
        Ok(Replay { host: fresh, steps: measured, packets, sent, read })
    }

    /// Packets that are sent and received while it is measured.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Takes the host through the steps to be measured.
    ///
    /// # Panics
    /// If the host does not do what it did when the conversation was held.
    pub fn run(mut self) -> Self {
        for (now, step) in std::mem::take(&mut self.steps) {
            let result = self.host.step(now, step, |packet| {
                black_box(packet);
            });
            assert!(result.is_ok(), "{result:?}");
        }
        assert_eq!((self.host.sent, self.host.read), (self.sent, self.read));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replayed_end_sends_and_reads_what_it_did_before() {
        for checksums in [Checksums::Software, Checksums::Device] {
            let rounds = u64::from(ROUNDS);
            let sender = Replay::new(Role::BulkSender, checksums).unwrap().run();
            assert!(sender.sent >= rounds * (BULK as u64).div_ceil(1460), "{}", sender.sent);
            assert_eq!(sender.read, 0);
            let receiver = Replay::new(Role::BulkReceiver, checksums).unwrap().run();
            assert_eq!(receiver.read, rounds * BULK as u64);
            assert!(receiver.packets >= sender.sent + receiver.sent);
            let requester = Replay::new(Role::Requester, checksums).unwrap().run();
            assert_eq!(requester.read, rounds * REQUEST as u64);
            assert!(requester.packets >= 2 * rounds);
        }
    }
}

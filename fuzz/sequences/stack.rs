//! A host, fed whatever a script says: packets that are right, nearly right or nonsense, the application's calls, and time.
//!
//! What must hold, whatever the script: no panic, the host's invariants after each step, packets that are valid, from an
//! address of the host's, to one that can be answered, and no longer than the interface takes; few packets for each that
//! arrived, beyond what the application wrote; and in the end, when the application has let go and the network is silent,
//! nothing left.

#[path = "stack_arrivals.rs"]
mod arrivals;
#[path = "stack_held.rs"]
mod held;
#[path = "stack_packets.rs"]
mod packets;

use crate::bytes::Script;
use held::HeldNames;
use packets::{MTU, address, check_packet, cookie_in, ours, remote, tcp};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use transom_stack::{ConnectionId, ListenConfig, ListenerId, SocketOption, Stack, StackConfig};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{Profile, RecoveryChoice, Setting};
use transom_wire::offload::RxOffload;
use transom_wire::{FastOpen, Flags, IpPacket, Options, Seq, TcpHeader, TcpPacket, Timestamps};

/// What one arrival may cause beyond sending data: a reply, and what waited for room or a timer.
const REPLIES: usize = 8;
/// Packets kept to be answered, quoted or sent back.
const KEPT: usize = 32;

struct Run {
    stack: Stack,
    now: Instant,
    listeners: Vec<ListenerId>,
    connections: Vec<ConnectionId>,
    /// The cookies of Fast Open that the host has given to peers.
    cookies: Vec<(IpAddr, FastOpen)>,
    /// What the host sent last.
    sent: Vec<Vec<u8>>,
    packets: u64,
    /// It has every address, as a transparent proxy has.
    every_address: bool,
    held: HeldNames,
}

impl Run {
    fn new(script: &mut Script<'_>) -> Self {
        let addresses =
            vec![(address("10.0.0.2"), 24), (address("fd00::2"), 64), (address("10.0.0.9"), 24)];
        let mut config = StackConfig::new(addresses);
        config.mtu = MTU as u32;
        config.max_half_open = script.pick(&[1_024, 2, 8]);
        config.max_time_wait = script.pick(&[1_024, 1, 4]);
        config.max_connections = script.pick(&[1_024, 3, 10]);
        config.every_address = script.last() % 4 == 3;
        let mut profile = Profile::classic();
        profile.options.timestamps = script.flag();
        profile.options.sack = script.flag();
        profile.nodelay = script.flag();
        if !profile.options.sack {
            profile.recovery = RecoveryChoice::NewReno;
        }
        profile.time_wait = Duration::from_secs(5);
        profile.send_buffer = 20_000;
        profile.max_send_buffer = 60_000;
        config.profile = Arc::new(profile);
        let (now, every_address) = (Instant::from_secs(100), config.every_address);
        let stack = Stack::new(config, now).unwrap();
        let mut run = Run {
            stack,
            now,
            listeners: Vec::new(),
            connections: Vec::new(),
            cookies: Vec::new(),
            sent: Vec::new(),
            packets: 0,
            every_address,
            held: HeldNames::default(),
        };
        for address in ["0.0.0.0:80", "[::]:80"] {
            let (backlog, syn_backlog) = (script.pick(&[16, 1, 2]), script.pick(&[16, 1, 2]));
            let v6_only = true;
            let listen = ListenConfig::default()
                .with_backlog(backlog)
                .with_syn_backlog(syn_backlog)
                .with_v6_only(v6_only)
                .with_fast_open(3);
            run.listeners.push(run.stack.listen(address.parse().unwrap(), listen).unwrap());
        }
        run.listen_and_hold();
        // Scripts find their way into connections, but start with some.
        for n in 0..script.below(4) as u16 {
            let from = SocketAddr::new(address("10.0.0.1"), 6_000 + n);
            if n == 2 { run.open_fast(from) } else { run.open(from) }
        }
        run
    }

    /// A peer connects as it should, and is accepted if there is room.
    fn open(&mut self, from: SocketAddr) {
        let local = SocketAddr::new(ours(from.ip()), 80);
        let options = Options {
            mss: Some(1_460),
            window_scale: Some(4),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 1, echo: 0 }),
            ..Options::default()
        };
        let syn = TcpHeader {
            seq: Seq::new(0xffff_ff00),
            flags: Flags::SYN,
            window: 60_000,
            options,
            ..TcpHeader::default()
        };
        self.arrive(&tcp(from, local, &syn, &[]));
        let Some(answer) = self.sent.last().cloned() else { return };
        let ip = IpPacket::parse(&answer).unwrap();
        let Ok(segment) = TcpPacket::parse(ip.payload()) else { return };
        let theirs = &segment.header;
        if theirs.dst_port != from.port() || theirs.flags != Flags::SYN | Flags::ACK {
            return;
        }
        let echo =
            theirs.options.timestamps.map(|stamps| Timestamps { value: 2, echo: stamps.value });
        let options = Options { timestamps: echo, ..Options::default() };
        let ack =
            TcpHeader { seq: syn.seq + 1, ack: theirs.seq + 1, flags: Flags::ACK, options, ..syn };
        // Data with it, so that something is acknowledged, and can be answered.
        self.arrive(&tcp(from, local, &ack, &[9; 10]));
        if let Some((id, _)) =
            self.listeners.first().and_then(|&listener| self.stack.accept(listener))
        {
            self.connections.push(id);
        }
    }

    /// A peer asks for a cookie, and opens with it and with data; the handshake is left to the script.
    fn open_fast(&mut self, from: SocketAddr) {
        let local = SocketAddr::new(ours(from.ip()), 80);
        for port in [7_000, from.port()] {
            let fresh = Options { mss: Some(536), window_scale: Some(4), ..Options::default() };
            let options = self.opening_fast(fresh, from.ip());
            let syn =
                TcpHeader { flags: Flags::SYN, window: 60_000, options, ..TcpHeader::default() };
            self.arrive(&tcp(SocketAddr::new(from.ip(), port), local, &syn, &[8; 100]));
        }
        let accepted = self.listeners.first().and_then(|&listener| self.stack.accept(listener));
        self.connections.extend(accepted.map(|(id, _)| id));
    }

    /// Takes what the host has to send. `most` bounds the packets besides those that carry what was written.
    fn send(&mut self, most: usize) {
        let data: usize = self
            .connections
            .iter()
            .filter_map(|&id| self.stack.connection(id))
            .map(|connection| connection.unacknowledged() / 16 + 2)
            .sum();
        for count in 0.. {
            let Some(packet) = self.stack.poll_transmit(self.now) else { break };
            let packet = packet.to_vec();
            assert!(count < most + data, "{count} packets left, {most} and {data} may");
            check_packet(&packet, self.every_address);
            self.cookies.extend(cookie_in(&packet));
            self.packets += 1;
            self.sent.push(packet);
        }
        let surplus = self.sent.len().saturating_sub(KEPT);
        self.sent.drain(..surplus);
    }

    /// Some of the options are those of a peer that opens fast, with the cookie it was given, or asks for one.
    fn opening_fast(&self, options: Options, peer: IpAddr) -> Options {
        if options.mss != Some(536) {
            return options;
        }
        let given = self.cookies.iter().rev().find(|&&(to, _)| to == peer);
        let given = given.filter(|_| options.window_scale != Some(14));
        let cookie = given.map_or(FastOpen::REQUEST, |&(_, cookie)| cookie);
        Options { fast_open: Some(cookie), ..options }
    }

    fn arrive(&mut self, packet: &[u8]) {
        self.stack.on_packet(self.now, packet, RxOffload::default());
        self.send(REPLIES);
    }

    fn with_some(
        &mut self,
        script: &mut Script<'_>,
        call: impl FnOnce(&mut Stack, ConnectionId, Instant, &mut Script<'_>),
    ) {
        if self.connections.is_empty() {
            return;
        }
        let id = self.connections[script.below(self.connections.len().min(256))];
        call(&mut self.stack, id, self.now, script);
    }

    fn call(&mut self, script: &mut Script<'_>) {
        match script.below(12) {
            0 | 1 => {
                let listener = self.listeners.get(script.below(2)).copied();
                if let Some((id, _)) = listener.and_then(|listener| self.stack.accept(listener)) {
                    self.connections.push(id);
                }
            }
            2 => {
                let remote = remote(script);
                let opened = match remote.port() {
                    5_000 | 80 => self.stack.connect(self.now, None, remote, None),
                    _ => self.stack.connect_on_write(self.now, None, remote, None),
                };
                if let Ok(id) = opened {
                    self.connections.push(id);
                }
            }
            3..6 => self.with_some(script, |stack, id, now, script| {
                _ = stack.write(id, now, &vec![5; script.pick(&[1, 100, 1_460, 20_000])]);
            }),
            6 | 7 => self.with_some(script, |stack, id, now, script| {
                _ = stack.read(id, now, &mut vec![0; script.pick(&[1, 1_000, 65_535])]);
                _ = stack.reclaim();
            }),
            8 => self.with_some(script, |stack, id, now, _| _ = stack.shutdown_write(id, now)),
            9 => self.with_some(script, |stack, id, now, script| match script.below(3) {
                0 => stack.close(id, now),
                1 => stack.abort(id, now),
                _ => {
                    let byte = u32::from(script.byte());
                    _ = stack.set_option(id, now, &SocketOption::TypeOfService(byte));
                    _ = stack.set_option(id, now, &SocketOption::TimeToLive(byte));
                }
            }),
            10 => self.with_some(script, |stack, id, now, script| {
                let nodelay = script.flag();
                _ = stack.with_connection(id, now, |connection| {
                    connection.set(Setting::NoDelay(nodelay))
                });
            }),
            _ => match script.below(16) {
                15 if !self.listeners.is_empty() => {
                    let listener = self.listeners.remove(script.below(4) % self.listeners.len());
                    self.stack.close_listener(listener, self.now);
                }
                call => self.call_of_a_proxy(call, script),
            },
        }
        self.connections.retain(|&id| self.stack.connection(id).is_some());
    }

    fn advance(&mut self, to: Instant) {
        self.now = self.now.max(to);
        self.stack.on_timeout(self.now);
        // Each connection and each half-open one may repeat itself.
        let timers = 4 * (self.stack.connection_count() + self.stack.half_open_count());
        self.send(REPLIES + timers);
    }

    fn step(&mut self, script: &mut Script<'_>) {
        match script.below(16) {
            0 => self.stranger(script),
            1..7 => self.answer(script),
            7 => self.icmp_error(script),
            8 if script.flag() => self.datagram(script),
            8 => {
                let len = usize::from(script.byte());
                let packet = script.take(len).to_vec();
                self.arrive(&packet);
            }
            9 if script.below(4) == 3 => {
                // Its own packet comes back.
                if let Some(packet) = self.pick_sent(script) {
                    self.mutate(script, packet);
                }
            }
            10 => {
                if let Some(at) = self.stack.next_timeout() {
                    self.advance(at);
                }
            }
            11 => self.advance(self.now + Duration::from_millis(u64::from(script.word()))),
            _ => {
                // Those that a listener holds are refused when it is closed.
                let held = self.stack.held_count();
                self.call(script);
                self.send(REPLIES + held);
            }
        }
        while self.stack.poll_signal().is_some() {}
        self.stack.check().unwrap();
    }

    fn end(&mut self) {
        let held = self.stack.held_count();
        for listener in std::mem::take(&mut self.listeners) {
            while let Some((id, _)) = self.stack.accept(listener) {
                self.connections.push(id);
            }
            self.stack.close_listener(listener, self.now);
        }
        for id in self.connections.clone() {
            self.stack.close(id, self.now);
        }
        self.send(REPLIES + held + 2 * self.connections.len());
        for count in 0.. {
            assert!(count < 20_000, "it does not come to rest");
            let Some(at) = self.stack.next_timeout() else { break };
            self.advance(at);
            self.stack.check().unwrap();
        }
        let stack = &self.stack;
        let left = (stack.connection_count(), stack.half_open_count(), stack.time_wait_count());
        assert_eq!(left, (0, 0, 0), "something is left without a deadline");
        assert_eq!(stack.held_count(), 0, "a SYN is held without a deadline");
    }
}

/// Plays a script. Returns how many packets the host sent, so that a run can be told from another.
pub(crate) fn play(bytes: &[u8]) -> u64 {
    let mut script = Script::new(bytes);
    let mut run = Run::new(&mut script);
    for _ in 0..2_000 {
        if script.is_empty() {
            break;
        }
        run.step(&mut script);
    }
    run.end();
    run.packets
}

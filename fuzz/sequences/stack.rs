//! A host, fed whatever a script says: packets that are right, nearly right or nonsense, the application's calls, and time.
//!
//! What must hold, whatever the script: no panic, the host's invariants after each step, packets that are valid, from an
//! address of the host's, to one that can be answered, and no longer than the interface takes; few packets for each that
//! arrived, beyond what the application wrote; and in the end, when the application has let go and the network is silent,
//! nothing left.

#[path = "stack_packets.rs"]
mod packets;

use crate::bytes::Script;
use packets::{MTU, address, check_packet, ip, options, ours, remote, tcp};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use transom_stack::config::StackConfig;
use transom_stack::listener::{ListenConfig, ListenerId};
use transom_stack::stack::{ConnectionId, Packet, Stack};
use transom_tcp::packet::PacketBuf;
use transom_tcp::profile::{Profile, RecoveryChoice};
use transom_tcp::time::{Duration, Instant};
use transom_wire::icmp::UnreachableCode;
use transom_wire::ipv4::Ipv4Header;
use transom_wire::ipv6::Ipv6Header;
use transom_wire::offload::{RxChecksum, RxOffload, recompute_checksum};
use transom_wire::{
    Flags, IcmpMessage, Icmpv6Message, IpPacket, Options, Protocol, SackBlock, Seq, TcpHeader,
    TcpPacket, Timestamps, icmp, icmpv6,
};

/// What one arrival may cause beyond sending data: a reply, and what waited for room or a timer.
const REPLIES: usize = 8;
/// Packets kept to be answered, quoted or sent back.
const KEPT: usize = 32;

struct Run {
    stack: Stack,
    now: Instant,
    listeners: Vec<ListenerId>,
    connections: Vec<ConnectionId>,
    /// What the host sent last.
    sent: Vec<Vec<u8>>,
    packets: u64,
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
        let mut profile = Profile::default();
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
        let now = Instant::from_secs(100);
        let stack = Stack::new(config, now).unwrap();
        let mut run = Run {
            stack,
            now,
            listeners: Vec::new(),
            connections: Vec::new(),
            sent: Vec::new(),
            packets: 0,
        };
        for address in ["0.0.0.0:80", "[::]:80"] {
            let (backlog, syn_backlog) = (script.pick(&[16, 1, 2]), script.pick(&[16, 1, 2]));
            let listen = ListenConfig { backlog, syn_backlog, profile: None };
            run.listeners.push(run.stack.listen(address.parse().unwrap(), listen).unwrap());
        }
        // Scripts find their way into connections, but start with some.
        for n in 0..script.below(4) as u16 {
            run.open(SocketAddr::new(address("10.0.0.1"), 6_000 + n));
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
        let theirs = segment.header();
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
            check_packet(&packet);
            self.packets += 1;
            self.sent.push(packet);
        }
        let surplus = self.sent.len().saturating_sub(KEPT);
        self.sent.drain(..surplus);
    }

    fn arrive(&mut self, packet: &[u8]) {
        self.stack.on_packet(self.now, Packet::borrowed(packet));
        self.send(REPLIES);
    }

    /// A segment out of nothing.
    fn stranger(&mut self, script: &mut Script<'_>) {
        let remote = remote(script);
        let local = SocketAddr::new(ours(remote.ip()), script.pick(&[80, 80, 80, 81, 5_000, 0]));
        let seq = Seq::new(script.long());
        let flags = match script.below(4) {
            0 | 1 => Flags::SYN,
            2 => Flags::ACK,
            _ => Flags::from_bits_truncate(script.word()),
        };
        let options = options(script, seq);
        let ack = Seq::new(script.long());
        let header =
            TcpHeader { seq, ack, flags, window: script.word(), options, ..TcpHeader::default() };
        let payload = vec![7; script.pick(&[0, 0, 1, 100])];
        let packet = tcp(remote, local, &header, &payload);
        self.arrive(&packet);
    }

    /// An answer to something the host sent, honest or nearly so.
    fn answer(&mut self, script: &mut Script<'_>) {
        let Some(sent) = self.pick_sent(script) else { return };
        let Ok(packet) = IpPacket::parse(&sent) else { return };
        let Ok(segment) = TcpPacket::parse(packet.payload()) else { return };
        let theirs = segment.header();
        let local = SocketAddr::new(packet.src(), theirs.src_port);
        let remote = SocketAddr::new(packet.dst(), theirs.dst_port);
        let ack = theirs.seq + theirs.segment_len(segment.payload().len() as u32);
        let is_syn = theirs.flags.contains(Flags::SYN);
        let seq =
            if theirs.flags.contains(Flags::ACK) { theirs.ack } else { Seq::new(script.long()) };
        let timestamps = theirs.options.timestamps.map(|stamps| Timestamps {
            value: (self.now.as_millis() as u32).wrapping_add(script.offset()),
            echo: stamps.value,
        });
        let (flags, options) = if is_syn && !theirs.flags.contains(Flags::ACK) {
            let offer = options(script, seq);
            (script.pick(&[Flags::SYN | Flags::ACK, Flags::SYN]), Options { timestamps, ..offer })
        } else {
            let extra = script.pick(&[
                Flags::empty(),
                Flags::empty(),
                Flags::PSH,
                Flags::FIN,
                Flags::URG,
                Flags::RST,
                Flags::SYN,
            ]);
            let mut options = Options { timestamps, ..Options::default() };
            if script.below(4) == 3 {
                let left = ack + script.offset();
                options.sack.push(SackBlock { left, right: left + u32::from(script.word()) });
            }
            (Flags::ACK | extra, options)
        };
        let header = TcpHeader {
            seq: seq + script.offset(),
            ack: ack + script.offset(),
            flags,
            window: script.pick(&[65_535, 1_000, 1, 0]),
            urgent: 3,
            options,
            ..TcpHeader::default()
        };
        let payload = vec![9; script.pick(&[0, 0, 0, 1, 100, 1_400])];
        let packet = tcp(remote, local, &header, &payload);
        self.mutate(script, packet);
    }

    fn pick_sent(&self, script: &mut Script<'_>) -> Option<Vec<u8>> {
        // Mostly the newest.
        let back = script.pick(&[1, 1, 1, 2, 3, 5, 10, 30]);
        self.sent.get(self.sent.len().checked_sub(back)?).cloned()
    }

    /// A packet arrives in a buffer that may be kept.
    fn arrive_owned(&mut self, packet: &[u8], room: usize) {
        let buffer = PacketBuf::copy_of(&[&[0; 10], packet, &vec![0; room][..]].concat());
        let range = 10..10 + packet.len();
        self.stack.on_owned_packet(self.now, buffer, range, RxOffload::default());
        self.send(REPLIES);
    }

    /// A packet is taken for the next data of a connection whose reader waits, and treated like any other if it is not.
    fn arrive_expected(&mut self, script: &mut Script<'_>, packet: &[u8]) {
        let guess = self.connections.get(script.below(4)).copied();
        let offload = RxOffload { checksum: RxChecksum::Valid, segmentation: None };
        let taken = guess.and_then(|id| {
            let head = self.stack.expected_headers(id)?;
            let (head, body) = packet.split_at_checked(head)?;
            let kept = self.stack.on_expected(self.now, id, head, body, offload)?;
            assert!(kept <= body.len());
            Some(())
        });
        if taken.is_none() {
            self.arrive(packet);
        }
        self.send(REPLIES);
    }

    /// Delivers a packet: as it is, damaged, cut, or in fragments.
    fn mutate(&mut self, script: &mut Script<'_>, mut packet: Vec<u8>) {
        match script.below(16) {
            0..6 => self.arrive(&packet),
            6..8 => self.arrive_owned(&packet, 0),
            8 => self.arrive_owned(&packet, 2_000),
            9..11 => self.arrive_expected(script, &packet),
            11 => {
                for _ in 0..1 + script.below(3) {
                    let at = usize::from(script.word()) % packet.len().max(1);
                    if let Some(byte) = packet.get_mut(at) {
                        *byte ^= script.byte();
                    }
                }
                // With the checksum put right the damage is not found out.
                if script.flag() {
                    _ = recompute_checksum(&mut packet);
                }
                self.arrive(&packet);
            }
            12 => {
                packet.truncate(usize::from(script.word()) % packet.len().max(1));
                self.arrive(&packet);
            }
            13 => {
                packet.extend_from_slice(script.take(20));
                self.arrive(&packet);
            }
            _ => self.fragments(script, &packet),
        }
    }

    fn fragments(&mut self, script: &mut Script<'_>, packet: &[u8]) {
        let Ok(IpPacket::V4(whole)) = IpPacket::parse(packet) else { return };
        let payload = whole.payload();
        let step = script.pick(&[8, 16, 64, 512, 24]);
        let id = script.byte().into();
        let mut from = 0;
        while from < payload.len() {
            let to = (from + step).min(payload.len());
            let header = Ipv4Header {
                id,
                dont_fragment: false,
                more_fragments: to < payload.len(),
                fragment_offset: from as u16,
                ..whole.header()
            };
            let mut out = [0; 60];
            if let Ok(len) = header.emit(to - from, &mut out) {
                let piece = [&out[..len], &payload[from..to]].concat();
                match script.below(16) {
                    0 => {}
                    1 => {
                        self.arrive(&piece);
                        self.arrive(&piece);
                    }
                    _ => self.arrive(&piece),
                }
            }
            // Overlaps now and then.
            from = if script.below(16) == 15 && step > 8 { to - 8 } else { to };
        }
    }

    fn icmp_error(&mut self, script: &mut Script<'_>) {
        let Some(sent) = self.pick_sent(script) else { return };
        let mtu = script.word();
        let packet = match IpPacket::parse(&sent) {
            Ok(IpPacket::V4(offending)) => {
                let quoted = &sent[..sent.len().min(script.pick(&[28, 48, 600]))];
                let code = UnreachableCode::FragmentationNeeded { next_hop_mtu: mtu };
                let message = match script.below(5) {
                    0 | 1 => IcmpMessage::Unreachable { code, quoted },
                    2 => IcmpMessage::Unreachable { code: UnreachableCode::Port, quoted },
                    3 => IcmpMessage::TimeExceeded { code: 0, quoted },
                    _ => IcmpMessage::ParameterProblem { code: 0, pointer: 1, quoted },
                };
                let header = Ipv4Header::new(offending.dst(), offending.src(), Protocol::ICMP);
                let mut out = vec![0; 600];
                let Ok(len) = icmp::emit_packet(&header, &message, &mut out) else { return };
                out.truncate(len);
                out
            }
            Ok(IpPacket::V6(offending)) => {
                let message = Icmpv6Message::PacketTooBig { mtu: u32::from(mtu), quoted: &sent };
                let header = Ipv6Header::new(offending.dst(), offending.src(), Protocol::ICMPV6);
                let mut out = vec![0; 1_280];
                let Ok(len) = icmpv6::emit_packet(&header, &message, &mut out) else { return };
                out.truncate(len);
                out
            }
            Err(_) => return,
        };
        self.mutate(script, packet);
    }

    fn datagram(&mut self, script: &mut Script<'_>) {
        let remote = remote(script);
        let len = script.pick(&[0usize, 8, 100, 1_472]);
        let packet = match (remote.ip(), ours(remote.ip()), script.flag()) {
            (IpAddr::V4(src), IpAddr::V4(dst), true) => {
                let message = IcmpMessage::EchoRequest { ident: 1, seq: 2, data: &vec![1; len] };
                let mut out = vec![0; 28 + len];
                _ = icmp::emit_packet(
                    &Ipv4Header::new(src, dst, Protocol::ICMP),
                    &message,
                    &mut out,
                );
                out
            }
            (src, dst, _) => ip(
                src,
                dst,
                script.pick(&[Protocol::UDP, Protocol(99), Protocol::ICMP, Protocol::ICMPV6]),
                &vec![2; len],
            ),
        };
        self.mutate(script, packet);
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
                if let Ok(id) = self.stack.connect(self.now, None, remote, None) {
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
                    _ = stack.set_dscp(id, script.byte());
                    _ = stack.set_hop_limit(id, script.byte());
                }
            }),
            10 => self.with_some(script, |stack, id, now, script| {
                let nodelay = script.flag();
                _ = stack.with_connection(id, now, |connection| connection.set_nodelay(nodelay));
            }),
            _ => {
                if script.below(16) == 15 && !self.listeners.is_empty() {
                    let listener = self.listeners.remove(script.below(2) % self.listeners.len());
                    self.stack.close_listener(listener, self.now);
                }
            }
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
                self.call(script);
                self.send(REPLIES);
            }
        }
        while self.stack.poll_event().is_some() {}
        self.stack.check().unwrap();
    }

    fn end(&mut self) {
        for listener in std::mem::take(&mut self.listeners) {
            while let Some((id, _)) = self.stack.accept(listener) {
                self.connections.push(id);
            }
            self.stack.close_listener(listener, self.now);
        }
        for id in self.connections.clone() {
            self.stack.close(id, self.now);
        }
        self.send(REPLIES + 2 * self.connections.len());
        for count in 0.. {
            assert!(count < 20_000, "it does not come to rest");
            let Some(at) = self.stack.next_timeout() else { break };
            self.advance(at);
            self.stack.check().unwrap();
        }
        let stack = &self.stack;
        let left = (stack.connection_count(), stack.half_open_count(), stack.time_wait_count());
        assert_eq!(left, (0, 0, 0), "something is left without a deadline");
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

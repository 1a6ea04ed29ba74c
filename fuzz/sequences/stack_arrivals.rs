//! What a network may bring to the host: segments out of nothing, answers to what it sent, honest or not, errors about it, and
//! other protocols; each as it is, damaged, cut, in fragments, or in the ways in which a driver hands packets over.

use super::packets::{ip, options, ours, remote, tcp};
use super::{REPLIES, Run};
use crate::bytes::Script;
use std::net::{IpAddr, SocketAddr};
use transom_tcp::packet::PacketBuf;
use transom_wire::offload::{RxChecksum, RxOffload, recompute_checksum};
use transom_wire::{
    Flags, IcmpMessage, IpPacket, Ipv4Header, Options, Protocol, SackBlock, Seq, TcpHeader,
    TcpPacket, Timestamps, UnreachableCode,
};

impl Run {
    /// A segment out of nothing.
    pub(super) fn stranger(&mut self, script: &mut Script<'_>) {
        let remote = remote(script);
        let ip = self.wanted_by(remote.ip(), script);
        let local = SocketAddr::new(ip, script.pick(&[80, 80, 80, 81, 5_000, 0]));
        let seq = Seq::new(script.long());
        let flags = match script.below(4) {
            0 | 1 => Flags::SYN,
            2 => Flags::ACK,
            _ => Flags::from_bits_truncate(script.word()),
        };
        let options = self.opening_fast(options(script, seq), remote.ip());
        let ack = Seq::new(script.long());
        let header =
            TcpHeader { seq, ack, flags, window: script.word(), options, ..TcpHeader::default() };
        let payload = vec![7; script.pick(&[0, 0, 1, 100])];
        let packet = tcp(remote, local, &header, &payload);
        self.arrive(&packet);
    }

    /// An answer to something the host sent, honest or nearly so.
    pub(super) fn answer(&mut self, script: &mut Script<'_>) {
        let Some(sent) = self.pick_sent(script) else { return };
        let Ok(packet) = IpPacket::parse(&sent) else { return };
        let Ok(segment) = TcpPacket::parse(packet.payload()) else { return };
        let theirs = &segment.header;
        let local = SocketAddr::new(packet.src(), theirs.src_port);
        let remote = SocketAddr::new(packet.dst(), theirs.dst_port);
        let ack = theirs.seq + theirs.segment_len(segment.payload.len() as u32);
        let is_syn = theirs.flags.contains(Flags::SYN);
        let seq =
            if theirs.flags.contains(Flags::ACK) { theirs.ack } else { Seq::new(script.long()) };
        let timestamps = theirs.options.timestamps.map(|stamps| Timestamps {
            value: (self.now.as_millis() as u32).wrapping_add(script.offset()),
            echo: stamps.value,
        });
        let (flags, options) = if is_syn && !theirs.flags.contains(Flags::ACK) {
            let offer = self.opening_fast(options(script, seq), remote.ip());
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

    /// One of the packets the host sent last.
    pub(super) fn pick_sent(&self, script: &mut Script<'_>) -> Option<Vec<u8>> {
        // Mostly the newest.
        let back = script.pick(&[1, 1, 1, 2, 3, 5, 10, 30]);
        self.sent.get(self.sent.len().checked_sub(back)?).cloned()
    }

    /// A packet arrives in a buffer that may be kept.
    fn arrive_owned(&mut self, packet: &[u8], room: usize) {
        let buffer = PacketBuf::from([&[0; 10], packet, &vec![0; room][..]].concat());
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
    pub(super) fn mutate(&mut self, script: &mut Script<'_>, mut packet: Vec<u8>) {
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
        let Ok(ip) = IpPacket::parse(packet) else { return };
        let (IpPacket::V4(whole), payload) = (ip, ip.payload()) else { return };
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

    /// An error about something the host sent, as a router would report it, or nearly.
    pub(super) fn icmp_error(&mut self, script: &mut Script<'_>) {
        let Some(sent) = self.pick_sent(script) else { return };
        let mtu = script.word();
        let Ok(offending) = IpPacket::parse(&sent) else { return };
        let mtu = u32::from(mtu);
        let message = match offending {
            IpPacket::V4(_) => {
                let quoted = &sent[..sent.len().min(script.pick(&[28, 48, 600]))];
                match script.below(5) {
                    0 | 1 => IcmpMessage::PacketTooBig { mtu, quoted },
                    2 => IcmpMessage::Unreachable { code: UnreachableCode::Port, quoted },
                    3 => IcmpMessage::TimeExceeded { code: 0, quoted },
                    _ => IcmpMessage::ParameterProblem { code: 0, pointer: 1, quoted },
                }
            }
            IpPacket::V6(_) => IcmpMessage::PacketTooBig { mtu, quoted: &sent },
        };
        let (router, host) = (offending.dst(), offending.src());
        let mut packet = vec![0; message.packet_len(router)];
        if message.emit_packet(router, host, &mut packet).is_ok() {
            self.mutate(script, packet);
        }
    }

    /// Something other than TCP.
    pub(super) fn datagram(&mut self, script: &mut Script<'_>) {
        let remote = remote(script);
        let len = script.pick(&[0usize, 8, 100, 1_472]);
        let packet = match (remote.ip(), ours(remote.ip()), script.flag()) {
            (src @ IpAddr::V4(_), dst, true) => {
                let message = IcmpMessage::EchoRequest { ident: 1, seq: 2, data: &vec![1; len] };
                let mut out = vec![0; 28 + len];
                _ = message.emit_packet(src, dst, &mut out);
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
}

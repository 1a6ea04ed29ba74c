//! Arrival of packets: checks that do not depend on a connection, then the handler of the flow.

use super::transmit::IpFields;
use super::{ConnectionId, Reply, Stack, lent};
use crate::flow::{FlowKey, Handler};
use crate::fragments::Reassembly;
use crate::incoming::Marks;
use core::ops::Range;
use transom_tcp::packet::{PacketBuf, Payload};
use transom_tcp::time::Instant;
use transom_tcp::{Segment, TimeWaitAction, reset_for};
use transom_wire::ip::peek_ecn;
use transom_wire::offload::{RxChecksum, RxOffload};
use transom_wire::{Ecn, Flags, IpPacket, Protocol, Seq, TcpHeader, TcpPacket, UdpPacket};

/// The origin of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Outside,
    Ourselves,
    /// Another stack of the host; these have seen it.
    Shard(u64),
}

/// A TCP segment that has passed all checks that do not depend on a connection.
struct Examined {
    key: FlowKey,
    header: TcpHeader,
    /// The place of the payload in the packet.
    payload: Range<usize>,
    segment_size: Option<u16>,
    ecn: Ecn,
    marks: Marks,
}

impl Examined {
    fn segment<'a>(&'a self, packet: &'a [u8]) -> Segment<'a> {
        Segment {
            header: &self.header,
            payload: Payload::borrowed(packet.get(self.payload.clone()).unwrap_or_default()),
            segment_size: self.segment_size,
            ecn: self.ecn,
        }
    }
}

impl Stack {
    /// A packet arrived at `now` from outside. Our own packets to ourselves do not leave, so a packet from one of our addresses
    /// is forged. Data to keep is copied.
    pub fn on_packet(&mut self, now: Instant, packet: &[u8], offload: RxOffload) {
        self.receive(now, packet, offload, Origin::Outside);
    }

    /// A packet arrived, from outside or from ourselves.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        packet: &[u8],
        offload: RxOffload,
        origin: Origin,
    ) {
        if let Some(examined) = self.examine(now, packet, offload, origin) {
            self.on_examined(now, &examined, packet, offload, origin);
        }
    }

    fn on_examined(
        &mut self,
        now: Instant,
        examined: &Examined,
        packet: &[u8],
        offload: RxOffload,
        origin: Origin,
    ) {
        let (key, segment) = (examined.key, examined.segment(packet));
        if !self.on_flow(now, key, &segment, examined.marks)
            && !self.pass_on(&key, packet, offload, origin)
        {
            self.refuse_unknown(key, &segment);
        }
    }

    /// A packet arrived at `now`, at `range` of a buffer that the receive queue may keep, so that its payload need not be
    /// copied. Returns the buffer if it was not kept; one that was comes back through [`Stack::reclaim`].
    pub fn on_owned_packet(
        &mut self,
        now: Instant,
        buffer: PacketBuf,
        range: Range<usize>,
        offload: RxOffload,
    ) -> Option<PacketBuf> {
        let bytes = buffer.get(range.clone()).unwrap_or_default();
        if let Some(index) = FlowKey::peek(bytes).and_then(|key| self.connection_at(&key))
            && let subject = self.subject(index, now)
            && let state = self.memory_state()
            && let Some(slot) = self.slots.get_mut(index).filter(|slot| !slot.to_self)
            && let Some((header, payload)) =
                slot.template.as_ref().and_then(|template| template.read(bytes, offload))
        {
            // The common case, an ordinary segment of a connection: nothing else has to be found out about it.
            self.counters.packets_received += 1;
            let payload = range.start + payload.start..range.start + payload.end;
            let segment_size = offload.segmentation.map(|seg| seg.segment_size);
            let ecn = peek_ecn(bytes);
            let connection = &mut slot.connection;
            let back = lent(connection, state, &mut self.blocks, |connection| {
                connection.on_owned_segment(now, &header, buffer, payload, segment_size, ecn)
            });
            connection.publish(&mut self.log.recorder(subject));
            self.touched(index, now);
            return back;
        }
        let origin = Origin::Outside;
        let Some(examined) = self.examine(now, bytes, offload, origin) else { return Some(buffer) };
        let Some(index) = self.connection_at(&examined.key) else {
            self.on_examined(now, &examined, bytes, offload, origin);
            return Some(buffer);
        };
        let Examined { key: _, header, payload, segment_size, ecn, marks: _ } = examined;
        let payload = range.start + payload.start..range.start + payload.end;
        let back = self.recorded(index, now, |connection| {
            connection.on_owned_segment(now, &header, buffer, payload, segment_size, ecn)
        });
        let back = back.flatten();
        self.touched(index, now);
        back
    }

    /// A buffer that was kept and has been read.
    pub fn reclaim(&mut self) -> Option<PacketBuf> {
        self.spent.pop()
    }

    /// Everything that can be checked of a packet before its flow is known. Packets that are not TCP are dealt with here.
    fn examine(
        &mut self,
        now: Instant,
        bytes: &[u8],
        offload: RxOffload,
        origin: Origin,
    ) -> Option<Examined> {
        let from_self = origin == Origin::Ourselves;
        self.counters.packets_received += u64::from(!matches!(origin, Origin::Shard(_)));
        // [RFC1122-3.1-1] [RFC1122-3.2.1.1-1] [RFC1122-3.2.1.7-2] [RFC8200-3-1] [RFC8200-5-2] [RFC792-1-1]
        let Ok(ip) = IpPacket::parse(bytes) else {
            self.counters.malformed += 1;
            return None;
        };
        if let IpPacket::V4(v4) = &ip
            // [RFC1122-3.2.1.2-1]
            && !v4.checksum_ok()
        {
            self.counters.bad_checksum += 1;
            return None;
        }
        // [MUST-57] [MUST-63] not only SYNs: nothing from or to an impossible address is looked at.
        let (src, dst) = (ip.src(), ip.dst());
        // [RFC1122-3.2.1.3-3] [RFC1122-3.2.1.3-4] [RFC1122-3.2.2.6-3] [RFC1122-3.2.2.6-4]
        if !self.is_local(dst) || !self.is_host(src) || self.is_forged(src, dst, from_self) {
            self.counters.misaddressed += 1;
            return None;
        }
        // [RFC8200-4-1] Of a fragment these are the headers in front of the fragment header; the others count once the packet is whole.
        if let IpPacket::V6(v6) = &ip
            && let Some(problem) = v6.extension_problem()
        {
            self.on_extension_problem(now, &ip, bytes, problem);
            return None;
        }
        // [RFC1122-3.2.1.4-1] [RFC1122-3.3.2-1] [RFC8200-4.5-15]
        if ip.fragment().is_some() {
            self.on_fragment(now, &ip, bytes, origin);
            return None;
        }
        match ip.protocol() {
            Protocol::TCP => {
                let examined = self.examine_tcp(&ip, offload)?;
                // The other end of a flow of ours to ourselves is not heard from elsewhere, whoever else has the address.
                if self.config.shared
                    && self.is_local(src)
                    && self.is_loop(&examined.key) != from_self
                {
                    self.counters.misaddressed += 1;
                    return None;
                }
                Some(examined)
            }
            Protocol::ICMP | Protocol::ICMPV6 => {
                if let Some(unknown) = self.on_icmp(now, &ip) {
                    self.pass_on(&unknown, bytes, offload, origin);
                }
                None
            }
            // The kernel has the address too, and speaks them; or the address may be anybody's.
            _ if self.config.shared || self.has_every_address() => None,
            protocol => {
                // RFC 1122 section 4.1.3.4: a damaged datagram is not even refused.
                if protocol != Protocol::UDP || self.is_sound_datagram(&ip, offload) {
                    self.on_unknown_protocol(now, &ip, bytes);
                }
                None
            }
        }
    }

    fn on_fragment(&mut self, now: Instant, ip: &IpPacket<'_>, bytes: &[u8], origin: Origin) {
        self.expire_fragments(now);
        match self.fragments.add(ip, bytes, now) {
            Reassembly::Waiting => {}
            // A packet cut twice is none that a host sends, and no limit would hold if it were put together twice.
            Reassembly::Whole(whole) if is_fragment(&whole) => self.counters.malformed += 1,
            Reassembly::Whole(whole) => self.receive(now, &whole, RxOffload::default(), origin),
            Reassembly::Wrong { code, pointer } => {
                self.report_field(now, ip, bytes, code, pointer);
            }
        }
    }

    fn is_sound_datagram(&mut self, ip: &IpPacket<'_>, offload: RxOffload) -> bool {
        let Ok(udp) = UdpPacket::parse(ip.payload()) else {
            self.counters.malformed += 1;
            return false;
        };
        // [RFC8200-8.1-2]
        let sound = offload.checksum == RxChecksum::Valid || udp.checksum_ok(ip.src(), ip.dst());
        self.counters.bad_checksum += u64::from(!sound);
        sound
    }

    fn examine_tcp(&mut self, ip: &IpPacket<'_>, offload: RxOffload) -> Option<Examined> {
        // [MUST-3]
        if offload.checksum == RxChecksum::Unverified && !ip.transport_checksum_ok() {
            self.counters.bad_checksum += 1;
            return None;
        }
        // [MUST-7] an option whose length lies makes the whole segment untrustworthy.
        let Ok(tcp) = TcpPacket::parse(ip.payload()) else {
            self.counters.bad_tcp += 1;
            return None;
        };
        let header = tcp.header;
        // Port 0 is nobody's. A SYN may have a FIN with it (RFC 9293 section 3.10.7.2), and of a SYN with a reset the reset counts.
        if header.src_port == 0 || header.dst_port == 0 {
            self.counters.bad_tcp += 1;
            return None;
        }
        let start = ip.header_len() + tcp.header_len();
        let key = FlowKey {
            local: ip.dst(),
            remote: ip.src(),
            local_port: header.dst_port,
            remote_port: header.src_port,
        };
        Some(Examined {
            key,
            header,
            payload: start..start + tcp.payload.len(),
            segment_size: offload.segmentation.map(|seg| seg.segment_size),
            ecn: ip.ecn(),
            marks: Marks { hop_limit: ip.hop_limit(), dscp: ip.traffic_class() >> 2 },
        })
    }

    /// The connection of a flow. Packets come in trains, so the one before is asked first.
    fn connection_at(&mut self, key: &FlowKey) -> Option<u32> {
        if let Some(slot) = self.slots.get(self.latest)
            && slot.key == *key
            && !slot.detached
        {
            return Some(self.latest);
        }
        let &Handler::Connection(index) = self.flows.get(key)? else { return None };
        self.latest = index;
        Some(index)
    }

    /// Returns whether somebody here is concerned.
    fn on_flow(&mut self, now: Instant, key: FlowKey, segment: &Segment<'_>, marks: Marks) -> bool {
        match self.flows.get(&key).copied() {
            Some(Handler::Connection(index)) => self.on_connection(now, index, segment),
            Some(Handler::HalfOpen(index)) => self.on_half_open(now, index, segment),
            Some(Handler::TimeWait(place)) => {
                self.on_time_wait(now, place, key, segment, marks);
            }
            Some(Handler::Held(index)) => self.on_held(now, index, segment, marks),
            None => return self.on_unknown_flow(now, key, segment, marks, None),
        }
        true
    }

    pub(super) fn on_connection(&mut self, now: Instant, index: u32, segment: &Segment<'_>) {
        self.recorded(index, now, |connection| connection.on_segment(now, segment));
        self.touched(index, now);
    }

    fn on_time_wait(
        &mut self,
        now: Instant,
        place: u32,
        key: FlowKey,
        segment: &Segment<'_>,
        marks: Marks,
    ) {
        let Some(entry) = self.waits.get_mut(place) else { return };
        let (expires, ip_fields) = (entry.wait.expires, entry.ip_fields);
        let action = entry.wait.on_segment(now, segment);
        if entry.wait.expires != expires {
            let at = entry.wait.expires;
            self.wheel.remove(entry.timer);
            entry.timer = self.wheel.insert(at, super::Wake::TimeWait(place));
        }
        match action {
            TimeWaitAction::Ignore => {}
            TimeWaitAction::Ack(header) => {
                self.reply(Reply::Segment(key, ip_fields, header, Ecn::NotEct))
            }
            TimeWaitAction::Reopen(beyond) => {
                // Only if somebody listens and has room, for a cookie cannot promise to lie beyond the old numbers; otherwise
                // the old incarnation stays protected.
                let listener = self.listening.find(key.local());
                if listener.is_some_and(|listener| self.has_room(listener)) {
                    self.end_time_wait(place);
                    self.on_unknown_flow(now, key, segment, marks, Some(beyond));
                }
            }
        }
    }

    /// A segment for which there is no connection (RFC 9293 section 3.10.7.2). `beyond`: an initial sequence number chosen now
    /// must lie after this one. Returns whether it concerns a listener.
    fn on_unknown_flow(
        &mut self,
        now: Instant,
        key: FlowKey,
        segment: &Segment<'_>,
        marks: Marks,
        beyond: Option<Seq>,
    ) -> bool {
        let flags = segment.header.flags;
        if flags.contains(Flags::RST) {
            return false;
        }
        if let Some(listener) = self.listening.find(key.local()) {
            if flags.contains(Flags::ACK) {
                return !flags.contains(Flags::SYN) && self.on_cookie(now, key, listener, segment);
            }
            if flags.contains(Flags::SYN) && self.holds_syns(listener) {
                self.hold_syn(now, key, listener, segment, marks, beyond);
            } else if flags.contains(Flags::SYN) {
                self.on_syn(now, key, listener, segment, beyond);
            }
            return true;
        }
        false
    }

    /// A segment that concerns nobody (RFC 9293 section 3.10.7.1).
    fn refuse_unknown(&mut self, key: FlowKey, segment: &Segment<'_>) {
        if segment.header.flags.contains(Flags::RST) {
            return;
        }
        if !self.is_ours_to_refuse(&key) && !self.is_loop(&key) {
            self.counters.left_to_others += 1;
            return;
        }
        if let Some(header) = reset_for(segment) {
            self.counters.resets_sent += 1;
            let ip_fields = IpFields::of(&self.config.profile);
            self.reply(Reply::Segment(key, ip_fields, header, Ecn::NotEct));
        }
    }

    pub(super) fn connection_for(&self, key: &FlowKey) -> Option<ConnectionId> {
        match self.flows.get(key) {
            Some(&Handler::Connection(index)) => self.id_of(index),
            _ => None,
        }
    }
}

/// Whether a packet is a fragment of another one.
fn is_fragment(packet: &[u8]) -> bool {
    IpPacket::parse(packet).is_ok_and(|ip| ip.fragment().is_some())
}

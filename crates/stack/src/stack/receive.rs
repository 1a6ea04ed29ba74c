//! Arrival of packets.

use super::fast_open::FastSyn;
use super::template::Template;
use super::transmit::IpFields;
use super::{ConnectionId, Owner, Reply, Slot, Stack};
use crate::cookie;
use crate::flow::{FlowKey, Handler};
use crate::listener::{HalfEntry, ListenerId};
use crate::secrets::Purpose;
use alloc::boxed::Box;
use core::ops::Range;
use transom_tcp::connection::{Connection, Endpoint, PathInfo};
use transom_tcp::packet::{PacketBuf, Payload};
use transom_tcp::passive::{HalfOpen, HalfOpenAction};
use transom_tcp::profile::Profile;
use transom_tcp::segment::{Segment, reset_for};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::time_wait::TimeWaitAction;
use transom_wire::ip::peek_ecn;
use transom_wire::offload::{RxChecksum, RxOffload};
use transom_wire::{
    Ecn, FastOpen, Flags, IpPacket, Options, Protocol, Seq, TcpHeader, TcpPacket, Timestamps,
    UdpPacket,
};

/// A received packet that is only lent to the stack.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    offload: RxOffload,
}

impl<'a> Packet<'a> {
    /// A packet; data to keep is copied.
    pub fn borrowed(bytes: &'a [u8]) -> Self {
        Packet { bytes, offload: RxOffload::default() }
    }

    /// The same packet with what the device knows about it.
    pub fn with_offload(self, offload: RxOffload) -> Self {
        Packet { offload, ..self }
    }
}

/// Where a packet comes from.
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
    /// Where in the packet the payload is.
    payload: Range<usize>,
    segment_size: Option<u16>,
    ecn: Ecn,
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
    /// is forged.
    pub fn on_packet(&mut self, now: Instant, packet: Packet<'_>) {
        self.receive(now, packet, Origin::Outside);
    }

    /// A packet arrived, from outside or from ourselves.
    pub(super) fn receive(&mut self, now: Instant, packet: Packet<'_>, origin: Origin) {
        if let Some(examined) = self.examine(now, packet.bytes, packet.offload, origin) {
            self.on_examined(now, &examined, packet, origin);
        }
    }

    fn on_examined(
        &mut self,
        now: Instant,
        examined: &Examined,
        packet: Packet<'_>,
        origin: Origin,
    ) {
        let (key, segment) = (examined.key, examined.segment(packet.bytes));
        if !self.on_flow(now, key, &segment)
            && !self.pass_on(&key, packet.bytes, packet.offload, origin)
        {
            self.refuse(key, &segment);
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
        let bytes = buffer.bytes().get(range.clone()).unwrap_or_default();
        if let Some(index) = FlowKey::peek(bytes).and_then(|key| self.connection_at(&key))
            && let subject = self.subject(index, now)
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
            connection.set_memory_state(self.memory.state());
            let before = self.log.checkpoint(connection);
            let back =
                connection.on_owned_segment(now, &header, buffer, payload, segment_size, ecn);
            self.log.changes(subject, connection, before);
            self.touched(index, now);
            return back;
        }
        let origin = Origin::Outside;
        let Some(examined) = self.examine(now, bytes, offload, origin) else { return Some(buffer) };
        let Some(index) = self.connection_at(&examined.key) else {
            self.on_examined(now, &examined, Packet { bytes, offload }, origin);
            return Some(buffer);
        };
        let Examined { key: _, header, payload, segment_size, ecn } = examined;
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
        let Ok(ip) = IpPacket::parse(bytes) else {
            self.counters.malformed += 1;
            return None;
        };
        if let IpPacket::V4(v4) = &ip
            && !v4.checksum_ok()
        {
            self.counters.bad_checksum += 1;
            return None;
        }
        // [MUST-57] [MUST-63] not only SYNs: nothing from or to an impossible address is looked at.
        let (src, dst) = (ip.src(), ip.dst());
        if !self.is_local(dst) || !self.is_host(src) || self.is_forged(src, dst, from_self) {
            self.counters.misaddressed += 1;
            return None;
        }
        if ip.fragment().is_some() {
            if let Some(whole) = self.fragments.add(&ip, bytes, now) {
                self.receive(now, Packet::borrowed(&whole), origin);
            }
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
            // The kernel has the address too, and speaks them.
            _ if self.config.shared => None,
            protocol => {
                // RFC 1122 section 4.1.3.4: a damaged datagram is not even refused.
                if protocol != Protocol::UDP || self.is_sound_datagram(&ip, offload) {
                    self.on_unknown_protocol(now, &ip, bytes);
                }
                None
            }
        }
    }

    fn is_sound_datagram(&mut self, ip: &IpPacket<'_>, offload: RxOffload) -> bool {
        let Ok(udp) = UdpPacket::parse(ip.payload()) else {
            self.counters.malformed += 1;
            return false;
        };
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
        let header = *tcp.header();
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
            payload: start..start + tcp.payload().len(),
            segment_size: offload.segmentation.map(|seg| seg.segment_size),
            ecn: ip.ecn(),
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
    fn on_flow(&mut self, now: Instant, key: FlowKey, segment: &Segment<'_>) -> bool {
        match self.flows.get(&key).copied() {
            Some(Handler::Connection(index)) => self.on_connection(now, index, segment),
            Some(Handler::HalfOpen(index)) => self.on_half_open(now, index, segment),
            Some(Handler::TimeWait(place)) => self.on_time_wait(now, place, key, segment),
            None => return self.on_unknown_flow(now, key, segment, None),
        }
        true
    }

    fn on_connection(&mut self, now: Instant, index: u32, segment: &Segment<'_>) {
        self.recorded(index, now, |connection| connection.on_segment(now, segment));
        self.touched(index, now);
    }

    fn on_half_open(&mut self, now: Instant, index: u32, segment: &Segment<'_>) {
        let Some(entry) = self.halves.get_mut(index) else { return };
        let key = entry.key;
        let over = |last: Instant| now.since(last) >= Duration::from_millis(500);
        let Some(listener) = self.listeners.get(entry.listener.index) else { return };
        let ip_fields = IpFields::of(&listener.profile);
        match entry.half.on_segment(now, segment) {
            HalfOpenAction::Ignore => {}
            HalfOpenAction::RepeatSynAck => {
                entry.half.on_repeated_syn(segment.header, segment.ecn);
                if over(entry.last_syn_ack) {
                    entry.last_syn_ack = now;
                    let header = entry.half.syn_ack_header(&listener.profile, now);
                    self.reply(Reply::Segment(key, ip_fields, header, Ecn::NotEct));
                }
            }
            HalfOpenAction::Challenge(header) => {
                if entry.last_challenge.is_none_or(over) {
                    entry.last_challenge = Some(now);
                    self.reply(Reply::Segment(key, ip_fields, header, Ecn::NotEct));
                }
            }
            HalfOpenAction::Reset(header) => {
                self.counters.resets_sent += 1;
                self.reply(Reply::Segment(key, ip_fields, header, Ecn::NotEct));
            }
            HalfOpenAction::Refuse(header) => {
                self.counters.resets_sent += 1;
                self.reply(Reply::Segment(key, ip_fields, header, Ecn::NotEct));
                self.drop_half_open(index);
            }
            HalfOpenAction::Drop => self.drop_half_open(index),
            HalfOpenAction::Complete => {
                let listener = entry.listener;
                // A full accept queue is told by silence: the peer's acknowledgement is as good as lost.
                if self.listeners.get(listener.index).is_none_or(|entry| entry.is_full())
                    || self.slots.len() >= self.config.max_connections
                {
                    return;
                }
                let half = entry.half.clone();
                self.drop_half_open(index);
                self.complete(now, key, listener, &half, segment);
            }
        }
    }

    /// Makes a connection of a half-open one.
    fn complete(
        &mut self,
        now: Instant,
        key: FlowKey,
        listener: ListenerId,
        half: &HalfOpen,
        segment: &Segment<'_>,
    ) {
        let Some(entry) = self.listeners.get(listener.index) else { return };
        let profile = entry.profile.clone();
        let connection = Connection::from_half_open(profile, half, now);
        let index = self.install(now, connection, key, Owner::Listener(listener));
        self.on_connection(now, index, segment);
    }

    pub(super) fn install(
        &mut self,
        now: Instant,
        mut connection: Connection,
        key: FlowKey,
        owner: Owner,
    ) -> u32 {
        let takes_over = connection.profile().path_mtu_discovery.takes_over();
        let known = self.path_mtus.get(key.remote, now).filter(|_| takes_over);
        if known.is_some_and(|known| !known.whole) {
            connection.expect_fragments(now);
        }
        let ip_fields = IpFields {
            dont_fragment: connection.dont_fragment(),
            ..IpFields::of(connection.profile())
        };
        let slot = Slot {
            connection,
            key,
            owner,
            timer: None,
            ready: false,
            detached: false,
            ip_fields,
            ident: self.secrets.hash(Purpose::Identification, &key) as u16,
            template: Template::new(&key, &ip_fields),
            to_self: self.is_loop(&key),
            homeless: false,
            fast_pending_at: None,
            held: 0,
        };
        let (index, _) = self.slots.insert(Box::new(slot));
        let subject = self.subject(index, now);
        if let Some(slot) = self.slots.get(index) {
            self.log.opened(subject, &slot.connection, key.local(), key.remote());
        }
        self.flows.insert(key, Handler::Connection(index));
        index
    }

    pub(super) fn drop_half_open(&mut self, index: u32) {
        let Some(entry) = self.halves.remove(index) else { return };
        self.wheel.remove(entry.timer);
        self.flows.remove(&entry.key);
        if self.listeners.generation(entry.listener.index) == Some(entry.listener.generation)
            && let Some(listener) = self.listeners.get_mut(entry.listener.index)
        {
            listener.half_open = listener.half_open.saturating_sub(1);
        }
    }

    fn on_time_wait(&mut self, now: Instant, place: u32, key: FlowKey, segment: &Segment<'_>) {
        let Some(entry) = self.waits.get_mut(place) else { return };
        let (expires, ip_fields) = (entry.wait.expires(), entry.ip_fields);
        let action = entry.wait.on_segment(now, segment);
        if entry.wait.expires() != expires {
            let at = entry.wait.expires();
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
                    self.on_unknown_flow(now, key, segment, Some(beyond));
                }
            }
        }
    }

    /// Whether a SYN for `listener` makes a half-open connection.
    fn has_room(&self, listener: ListenerId) -> bool {
        self.listeners.get(listener.index).is_some_and(|entry| {
            self.slots.len() < self.config.max_connections
                && !entry.is_full()
                && entry.half_open < entry.syn_backlog
                && self.halves.len() < self.config.max_half_open
        })
    }

    /// A segment for which there is no connection (RFC 9293 section 3.10.7.2). `beyond`: an initial sequence number chosen now
    /// must lie after this one. Returns whether it concerns a listener.
    fn on_unknown_flow(
        &mut self,
        now: Instant,
        key: FlowKey,
        segment: &Segment<'_>,
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
            if flags.contains(Flags::SYN) {
                self.on_syn(now, key, listener, segment, beyond);
            }
            return true;
        }
        false
    }

    /// A segment that concerns nobody (RFC 9293 section 3.10.7.1).
    fn refuse(&mut self, key: FlowKey, segment: &Segment<'_>) {
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

    pub(super) fn path_info(&self, key: &FlowKey, profile: &Profile, now: Instant) -> PathInfo {
        let ip_header = if key.local.is_ipv4() { 20 } else { 40 };
        let known = self.path_mtus.get(key.remote, now);
        let known = known.filter(|_| profile.path_mtu_discovery.takes_over());
        let interface_mtu = self.mtu_from(key);
        let path = PathInfo {
            mtu: known.map_or(interface_mtu, |known| known.mtu.min(interface_mtu)),
            interface_mtu,
            ip_header,
            // The IP length field has 16 bits, and the headers take their part.
            max_super_segment: self.config.offload.segmentation.map(|max| {
                u32::try_from(max.min(65_535)).unwrap_or(65_535).saturating_sub(ip_header + 60)
            }),
        };
        path.limited_to(profile.max_segment)
    }

    fn endpoint(key: &FlowKey) -> Endpoint {
        Endpoint { local_port: key.local_port, remote_port: key.remote_port }
    }

    fn on_syn(
        &mut self,
        now: Instant,
        key: FlowKey,
        listener: ListenerId,
        segment: &Segment<'_>,
        beyond: Option<Seq>,
    ) {
        let syn = segment.header;
        let Some(entry) = self.listeners.get(listener.index) else { return };
        let profile = entry.profile.clone();
        let ip_fields = IpFields::of(&profile);
        let path = self.path_info(&key, &profile, now);
        let full = self.slots.len() >= self.config.max_connections;
        let Some(entry) = self.listeners.get_mut(listener.index) else { return };
        if full || entry.is_full() {
            // No hurry to answer: the peer repeats its SYN.
            self.counters.syns_dropped += 1;
            return;
        }
        let offset = self.secrets.timestamp_offset(&key);
        let fast = self.judge_fast_syn(now, &key, listener, syn);
        let cookie = match fast {
            FastSyn::Cookie(cookie) => cookie,
            FastSyn::Plain | FastSyn::Open(_) => None,
        };
        let Some(entry) = self.listeners.get_mut(listener.index) else { return };
        let crowded =
            entry.half_open >= entry.syn_backlog || self.halves.len() >= self.config.max_half_open;
        // Who has a cookie of Fast Open's is no part of a flood from forged addresses.
        if crowded && !matches!(fast, FastSyn::Open(_)) {
            // Cookies are honoured for as long as they are good.
            entry.cookies_until = now + Duration::from_secs(128);
            self.counters.cookies_sent += 1;
            let iss = cookie::make(&self.secrets, &key, syn, now);
            let half = HalfOpen::new(&profile, Self::endpoint(&key), path, iss, offset, syn, now)
                .with_syn_codepoint(segment.ecn);
            let mut header = half.syn_ack_header(&profile, now);
            // A cookie does not remember that partial reliability was agreed.
            header.options.partial = None;
            header.options = with_cookie(header.options, cookie);
            if let Some(stamps) = &mut header.options.timestamps {
                let offered = cookie::Offered { options: syn.options, ecn: half.agreed().ecn };
                stamps.value = cookie::fold(&offered, stamps.value);
            } else {
                // Without timestamps there is no place to keep these.
                if half.agreed().ecn {
                    header.flags.remove(Flags::ECE);
                }
                header.options.window_scale = None;
                header.options.sack_permitted = false;
            }
            self.reply(Reply::Segment(key, ip_fields, header, Ecn::NotEct));
            return;
        }
        let mut iss = self.secrets.initial_sequence(&key, now);
        if let Some(beyond) = beyond
            && !iss.after(beyond)
        {
            // [MAY-2] beyond everything the old incarnation used
            iss = beyond + (iss.get() & 0x000f_ffff) + 1;
        }
        let mut half = HalfOpen::new(&profile, Self::endpoint(&key), path, iss, offset, syn, now)
            .with_syn_codepoint(segment.ecn);
        if let FastSyn::Open(cookie) = fast {
            self.open_fast(now, key, listener, &half, segment, cookie);
            return;
        }
        let mut header = half.syn_ack(&profile, now);
        header.options = with_cookie(header.options, cookie);
        let codepoint = half.codepoint(&profile);
        entry.half_open += 1;
        let deadline = half.deadline();
        let timer = self.wheel.insert(deadline, super::Wake::HalfOpen(0));
        let (last_syn_ack, last_challenge) = (now, None);
        let entry = HalfEntry { half, key, listener, timer, last_syn_ack, last_challenge };
        let (index, _) = self.halves.insert(entry);
        self.wheel.remove(timer);
        let timer = self.wheel.insert(deadline, super::Wake::HalfOpen(index));
        if let Some(entry) = self.halves.get_mut(index) {
            entry.timer = timer;
        }
        self.flows.insert(key, Handler::HalfOpen(index));
        self.reply(Reply::Segment(key, ip_fields, header, codepoint));
    }

    /// An acknowledgement without a connection: does it bring back a cookie?
    fn on_cookie(
        &mut self,
        now: Instant,
        key: FlowKey,
        listener: ListenerId,
        segment: &Segment<'_>,
    ) -> bool {
        let Some(entry) = self.listeners.get(listener.index) else { return false };
        if entry.cookies_until <= now {
            return false;
        }
        let ack = segment.header;
        let Some(theirs) = cookie::check(&self.secrets, &key, ack, now) else { return false };
        if entry.is_full() || self.slots.len() >= self.config.max_connections {
            return true; // as good as lost
        }
        let profile = entry.profile.clone();
        let offset = self.secrets.timestamp_offset(&key);
        let path = self.path_info(&key, &profile, now);
        let cookie::Offered { options: theirs, ecn } = theirs;
        let theirs = Options {
            timestamps: theirs.timestamps.map(|stamps| Timestamps { echo: 0, ..stamps }),
            ..theirs
        };
        let endpoint = Self::endpoint(&key);
        let half = HalfOpen::from_cookie(&profile, endpoint, path, offset, ack, &theirs, now)
            .with_ecn(&profile, ecn);
        self.counters.cookies_accepted += 1;
        self.complete(now, key, listener, &half, segment);
        true
    }

    pub(super) fn connection_for(&self, key: &FlowKey) -> Option<ConnectionId> {
        match self.flows.get(key) {
            Some(&Handler::Connection(index)) => self.id_of(index),
            _ => None,
        }
    }
}

/// The options of a SYN-ACK, with a cookie of Fast Open if it fits. The option of accurate ECN is dispensable, and is replaced by
/// it.
fn with_cookie(options: Options, cookie: Option<FastOpen>) -> Options {
    let with = Options { fast_open: cookie, ..options };
    let without = Options { acc_ecn: if cookie.is_some() { None } else { with.acc_ecn }, ..with };
    [with, without].into_iter().find(|fit| fit.encoded_len() <= 40).unwrap_or(options)
}

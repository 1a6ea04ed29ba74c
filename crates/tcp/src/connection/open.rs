//! Opening: our own SYN, the answer to it, and the state that a passive open hands over.

use super::controls::Controls;
use super::limiter::ReplyLimiter;
use super::partial::PartialState;
use super::path_mtu::PathMtu;
use super::reports::Reports;
use super::timers::Timers;
use super::user_timeout::UserTimeouts;
use super::{
    Connection, ConnectionError, Counters, Early, Event, MemoryState, Opening, Receiver, Sender,
    State, info::LimitedAccount,
};
use crate::congestion::{CongestionEvent, Window};
use crate::options::{Agreed, TimestampState, syn_options};
use crate::packet::Payload;
use crate::passive::HalfOpen;
use crate::pos::{Pos, SeqSpace};
use crate::profile::Profile;
use crate::segment::Segment;
use crate::send_buffer::SendBuffer;
use crate::sent::SentList;
use crate::time::{Duration, Instant};
use crate::units;
#[cfg(fixed_units)]
use crate::units::direct::*;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::Range;
use transom_wire::{Flags, Options, Seq, TcpHeader};

/// The two ports of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Ours.
    pub local_port: u16,
    /// The peer's.
    pub remote_port: u16,
}

/// The host's knowledge of the path and of its own device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathInfo {
    /// The largest IP packet that is believed to pass, in bytes (path MTU).
    pub mtu: u32,
    /// The largest IP packet of our own interface, which the MSS option announces.
    pub interface_mtu: u32,
    /// Bytes of IP header: 20 or 40.
    pub ip_header: u32,
    /// The most payload the device takes in one super-segment; `None`: one segment at a time.
    pub max_super_segment: Option<u32>,
    /// Nothing that is sent leaves the process: the host is one of a simulation. Only there may a profile take the safe ranges of extensions away
    /// ([`ExtensionChoice::unconstrained`](crate::extension::ExtensionChoice::unconstrained)).
    pub simulated: bool,
}

impl PathInfo {
    /// Payload and TCP options that fit one packet.
    pub fn mss(&self) -> u32 {
        self.mtu.saturating_sub(self.ip_header + 20)
    }

    /// The same path for segments of at most `max_segment` bytes of payload and options.
    pub fn limited_to(self, max_segment: Option<u16>) -> Self {
        let Some(max) = max_segment else { return self };
        let packet = u32::from(max) + self.ip_header + 20;
        PathInfo {
            mtu: self.mtu.min(packet),
            interface_mtu: self.interface_mtu.min(packet),
            ..self
        }
    }

    /// The MSS option to announce: what we can receive, independently of the path in the other direction [MUST-67] [SHLD-6].
    pub fn announced_mss(&self) -> u16 {
        u16::try_from(self.interface_mtu.saturating_sub(self.ip_header + 20)).unwrap_or(u16::MAX)
    }
}

impl Connection {
    /// Opens actively: a SYN will leave with the next [`Connection::poll_transmit`].
    ///
    /// `iss` is the initial sequence number (RFC 6528 is the host's business), `timestamp_offset` where this
    /// connection's timestamp clock starts.
    pub fn connect(
        profile: Arc<Profile>,
        endpoint: Endpoint,
        path: PathInfo,
        iss: Seq,
        timestamp_offset: u32,
        now: Instant,
    ) -> Self {
        let mut connection = Connection::new(profile, endpoint, path, iss, timestamp_offset, now);
        connection.state = State::SynSent;
        connection.active = true;
        connection.snd.syn_due = true;
        connection
    }

    /// Takes over from a half-open connection whose SYN-ACK was answered. The answer itself still has to be given
    /// to [`Connection::on_segment`].
    pub fn from_half_open(profile: Arc<Profile>, half: &HalfOpen, now: Instant) -> Self {
        let mut connection = Connection::new(
            profile,
            half.endpoint(),
            half.path(),
            half.iss(),
            half.timestamp_offset(),
            now,
        );
        connection.state = State::SynReceived;
        connection.agreed = half.agreed();
        connection.start_receiving(half.irs());
        connection.rcv.timestamps = half.timestamps();
        connection.rcv.last_ack_sent = Pos::FIRST_DATA;
        connection.rcv.edge = Pos::FIRST_DATA + u64::from(half.window());
        connection.snd.right_edge = Pos::INITIAL + u64::from(half.peer_window());
        connection.snd.max_window = u64::from(half.peer_window());
        connection.snd.syn_sent_at = half.sent_at();
        connection.snd.syn_transmissions = half.transmissions();
        connection.counters.segments_received = 1;
        connection.counters.segments_sent = u64::from(half.transmissions());
        connection.after_agreement();
        connection.take_accurate_handshake(half);
        connection
    }

    fn new(
        profile: Arc<Profile>,
        endpoint: Endpoint,
        path: PathInfo,
        iss: Seq,
        timestamp_offset: u32,
        now: Instant,
    ) -> Self {
        let agreed = Agreed::new(&Options::default(), &Options::default(), path.ip_header);
        let flow = units::flow(&profile);
        Connection {
            state: State::Closed,
            active: false,
            endpoint,
            path,
            path_mtu: (path.mtu < path.interface_mtu).then(|| PathMtu::narrow(path.mtu, now)),
            agreed,
            snd: Sender {
                space: SeqSpace::new(iss),
                syn_acked: false,
                syn_due: false,
                syn_was_answered: false,
                syn_sent_at: now,
                syn_transmissions: 0,
                buffer: SendBuffer::new(Pos::FIRST_DATA, profile.send_buffer),
                sent: SentList::new(Pos::FIRST_DATA, now),
                window: Window::of(profile.initial_window, path.mss()),
                congestion: units::congestion(&profile),
                slow_start: units::slow_start(&profile),
                validation: units::validation(&profile),
                episode: None,
                reordering: None,
                duplicates_delivered: 0,
                recovery: units::recovery(&profile, false, false),
                recovery_waits: false,
                timer: units::timer(&profile),
                pacing: units::pacing(&profile),
                right_edge: Pos::FIRST_DATA,
                wl1: Pos::INITIAL,
                wl2: Pos::INITIAL,
                max_window: 0,
                cwnd_limited_upto: Pos::INITIAL,
                small_upto: Pos::INITIAL,
                fin_queued: false,
                urgent: Pos::INITIAL,
                probe_outstanding: false,
                probe_due: false,
                tail_probe_due: false,
                writer_waits: false,
                repeat_due: false,
                retransmits: 0,
                probes: 0,
                unanswered_probes: 0,
                unacked_since: Instant::FAR_FUTURE,
                reordered_over: 0,
                reordering_seen: 0,
                round_end: Pos::FIRST_DATA,
                min_rtt: Duration::MAX,
                last_rtt: Duration::MAX,
            },
            rcv: Receiver {
                space: SeqSpace::new(Seq::new(0)),
                ordering: units::ordering(&profile, Pos::FIRST_DATA),
                next: Pos::FIRST_DATA,
                reclaimable: false,
                buffer_limit: flow.buffer_limit(),
                flow_drops: flow.drops(),
                flow,
                wanted_edge: Pos::FIRST_DATA,
                wanted_edge_is_old: true,
                policy: units::acks(&profile),
                edge: Pos::FIRST_DATA,
                last_ack_sent: Pos::INITIAL,
                timestamps: TimestampState::new(timestamp_offset),
                ack_now: false,
                fin: None,
                urgent: Pos::INITIAL,
                dsack: Range::default(),
                segment: 536,
                rtt: Duration::MAX,
                rtt_echo: 0,
                rtt_sampled_at: Instant::ZERO,
                rtt_sample: 0,
                last_heard: now,
                last_data: Instant::FAR_FUTURE,
                keep_alives_unanswered: 0,
                shut: false,
            },
            ecn: None,
            timers: Timers::new(),
            limiter: ReplyLimiter::default(),
            reset_due: None,
            fast_open: None,
            opening: None,
            partial: None,
            extensions: Default::default(),
            events: 0,
            error: None,
            soft_error: None,
            reports: Reports::new(profile.report_soft_errors),
            orphaned: false,
            dismissed: false,
            nodelay: profile.nodelay,
            memory: MemoryState::Normal,
            controls: Controls::of_profile(&profile),
            duplicate_seen: false,
            user_timeout: UserTimeouts::new(&profile),
            counters: Counters::default(),
            limited: LimitedAccount::new(now),
            profile,
        }
    }

    /// The peer's initial sequence number is known.
    fn start_receiving(&mut self, irs: Seq) {
        self.rcv.space = SeqSpace::new(irs);
        self.rcv.segment = u64::from(self.path.announced_mss().clamp(64, 536));
    }

    /// The options are agreed: makes the choices that depend on them.
    fn after_agreement(&mut self) {
        // The window scale is one of them.
        self.rcv.wanted_edge_is_old = true;
        self.snd.recovery = units::recovery(&self.profile, self.agreed.sack, self.agreed.partial);
        self.snd.recovery_waits = self.snd.recovery.has_deadlines();
        self.partial = PartialState::for_profile(&self.profile);
        self.ecn = self.ecn_state();
        self.snd.window = Window::of(self.profile.initial_window, self.mss());
        self.snd.congestion.on_start(&mut self.snd.window, self.snd.syn_sent_at);
        if self.snd.syn_transmissions > 1 + u32::from(self.snd.syn_was_answered) {
            let event = CongestionEvent::HandshakeLoss;
            self.snd.congestion.on_event(&mut self.snd.window, event, self.snd.syn_sent_at);
        }
    }

    /// The options our SYN or SYN-ACK carries.
    pub(super) fn our_syn_options(&self, now: Instant, answer_to: Option<&Options>) -> Options {
        let user_timeout = self.user_timeout_option();
        let options = syn_options(
            &self.profile,
            self.path.announced_mss(),
            self.rcv.flow.max_window(),
            self.rcv.timestamps.option(now),
            answer_to,
        );
        Options { user_timeout, ..options }
    }

    pub(super) fn offers_ecn(&self) -> bool {
        self.profile.ecn.config().is_some_and(|config| config.offer)
    }

    /// The unscaled window of our SYN.
    pub(super) fn syn_window(&self) -> u16 {
        let first = Pos::FIRST_DATA;
        let edge = self.rcv.flow.right_edge(first, first, u64::from(u16::MAX));
        u16::try_from(edge.since(first)).unwrap_or(u16::MAX)
    }

    /// RFC 9293 section 3.10.7.3.
    pub(super) fn on_segment_in_syn_sent(&mut self, now: Instant, segment: &Segment<'_>) {
        if self.holds_syn() {
            return; // Nothing has left: it is no answer.
        }
        let header = segment.header;
        let flags = header.flags;
        let ack = self.snd.space.from_wire(header.ack, Pos::FIRST_DATA);
        if flags.contains(Flags::ACK) && (ack <= Pos::INITIAL || ack > self.highest_sent()) {
            if !flags.contains(Flags::RST) {
                self.reset_due = Some(self.reset_at(now, header.ack));
                self.repeat_answered_syn();
            }
            return;
        }
        if flags.contains(Flags::RST) {
            // Only one that acknowledges our SYN counts (RFC 5961 section 3.2, verified erratum 8167).
            if flags.contains(Flags::ACK) || self.takes_answer_back(header.seq) {
                self.opening = None;
                self.fail(ConnectionError::Refused);
            }
            return;
        }
        if !flags.contains(Flags::SYN) || self.holds(now, segment) {
            return;
        }
        self.start_receiving(header.seq);
        let ours = self.our_syn_options(now, None);
        self.agreed = Agreed::new(&ours, &header.options, self.path.ip_header);
        self.agree_on_ecn(flags);
        if let Some(stamps) = header.options.timestamps.filter(|_| self.agreed.timestamps) {
            self.rcv.timestamps.start(stamps.value, now);
        }
        self.take_user_timeout(&header.options);
        self.rcv.edge = Pos::FIRST_DATA + u64::from(self.syn_window());
        self.after_agreement();
        self.on_answer_to_syn(now, segment);
        // The window in a SYN is never scaled (RFC 7323 section 2.2).
        let window = u64::from(header.window);
        self.snd.max_window = window;
        self.snd.wl1 = Pos::INITIAL;
        self.rcv.last_heard = now;
        if flags.contains(Flags::ACK) {
            self.snd.wl2 = ack;
            self.snd.right_edge = ack + window;
            self.on_syn_acked(now, ack, &header.options);
            self.establish(now);
            // The ACK of the SYN-ACK leaves at once; data that is waiting may ride on it.
            self.rcv.ack_now = true;
            // Data and FIN that came with the SYN-ACK are taken like any other.
            self.on_text(now, segment, Pos::FIRST_DATA);
            self.on_fin(now, segment, Pos::FIRST_DATA);
        } else {
            // [MUST-10] simultaneous open
            self.snd.right_edge = Pos::INITIAL + window;
            self.state = State::SynReceived;
            self.snd.syn_due = true;
            self.keep_for_later(segment);
        }
    }

    /// The SYNs have crossed, and the peer's SYN-ACK acknowledges ours: the handshake is complete (RFC 9293 figure 7, lines 6 and 7) [MUST-10].
    ///
    /// In the figure nobody answers. We do: a peer that takes the SYN-ACK for a repetition waits for an acknowledgement, as older systems do.
    pub(super) fn on_crossing_syn_ack(&mut self, now: Instant, segment: &Segment<'_>, start: Pos) {
        let header = segment.header;
        let ack = self.snd.space.from_wire(header.ack, self.una());
        let crossing = self.state == State::SynReceived
            && self.active
            && header.flags.contains(Flags::SYN | Flags::ACK)
            && start == Pos::INITIAL
            && ack > Pos::INITIAL
            && ack <= self.highest_sent();
        if !crossing {
            return;
        }
        let window = u64::from(header.window);
        self.snd.right_edge = ack + window;
        self.snd.max_window = self.snd.max_window.max(window);
        self.snd.wl1 = start;
        self.snd.wl2 = ack;
        self.snd.syn_due = false;
        self.rcv.last_heard = now;
        self.update_timestamp(now, header, start);
        self.await_accurate_handshake_ack();
        self.on_syn_acked(now, ack, &header.options);
        self.establish(now);
        if self.state != State::Closed {
            self.on_text(now, segment, Pos::FIRST_DATA);
            self.on_fin(now, segment, Pos::FIRST_DATA);
        }
    }

    /// The peer has answered our SYN with a number of an older connection between the same ports, often one that it keeps in TIME-WAIT. Our reset removes
    /// that connection, so the SYN is sent once more behind it, as Linux does. Otherwise it would wait for the retransmission timer, a second. This happens
    /// once: forged segments must not become a stream of SYNs.
    fn repeat_answered_syn(&mut self) {
        if self.snd.syn_transmissions == 1 && self.snd.sent.outstanding() == 0 {
            self.snd.syn_due = true;
            self.snd.syn_was_answered = true;
        }
    }

    /// Data and FIN of a SYN wait until the handshake is complete (RFC 9293 section 3.10.7.3), because the peer is not verified before.
    fn keep_for_later(&mut self, segment: &Segment<'_>) {
        let fin = segment.header.flags & Flags::FIN;
        if segment.payload.is_empty() && fin.is_empty() {
            return;
        }
        let header = TcpHeader { flags: Flags::ACK | fin, ..*segment.header };
        let data = segment.payload.bytes().to_vec();
        self.opening = Some(Box::new(Opening::Early(Early { header, data, ecn: segment.ecn })));
    }

    /// The handshake is complete.
    fn take_early(&mut self, now: Instant) {
        let Some(opening) = self.opening.take() else { return };
        let Opening::Early(Early { header, data, ecn }) = &*opening else { return };
        let payload = Payload::borrowed(data);
        let segment = Segment { header, payload, segment_size: None, ecn: *ecn };
        self.on_text(now, &segment, Pos::FIRST_DATA);
        self.on_fin(now, &segment, Pos::FIRST_DATA);
    }

    /// Our SYN is acknowledged.
    pub(super) fn establish(&mut self, now: Instant) {
        self.snd.syn_acked = true;
        // A SYN-ACK in a simultaneous open is a second transmission of the SYN, but nothing was lost. It leaves open
        // which of the two is acknowledged.
        let lost = if self.active || self.is_opened_fast() {
            self.snd.retransmits > 0
        } else {
            self.snd.syn_transmissions > 1
        };
        if self.snd.syn_transmissions <= 1 {
            let rtt = now.since(self.snd.syn_sent_at);
            self.snd.timer.on_sample(rtt, now);
            self.snd.note_rtt(rtt);
        } else if lost {
            self.snd.timer.on_handshake_loss();
        }
        self.snd.retransmits = 0;
        self.snd.unacked_since = Instant::FAR_FUTURE;
        self.limited.forget_busy();
        if self.has_unsent() || self.snd.sent.outstanding() > 0 {
            self.note_unacked(now);
        }
        self.state = if self.snd.fin_queued { State::FinWait1 } else { State::Established };
        self.rearm_retransmission(now);
        self.arm_keep_alive();
        self.raise(Event::Connected);
        self.raise(Event::Writable);
        self.attach_chosen(now);
        self.take_early(now);
    }
}

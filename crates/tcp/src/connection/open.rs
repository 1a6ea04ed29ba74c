//! Opening: our own SYN, the answer to it, and the state that a passive open hands over.

use super::controls::Controls;
use super::partial::PartialState;
use super::path_mtu::PathMtu;
use super::reports::Reports;
use super::timers::Timers;
use super::user_timeout::UserTimeouts;
use super::{
    Connection, ConnectionError, Counters, Early, Handshake, MemoryState, Opening, Owner, Receiver,
    Replies, Sender, Signal, State, limited::LimitedAccount, notices::Notices,
};
use crate::ack_policy::AckUnit;
use crate::control::Control;
use crate::flow::{FlowControl as _, FlowUnit};
use crate::options::{Agreed, TimestampState, syn_options};
use crate::packet::Payload;
use crate::passive::HalfOpen;
use crate::pos::{Pos, SeqSpace};
use crate::profile::Profile;
use crate::segment::Segment;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::sync::Arc;
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
    pub(crate) fn mss(&self) -> u32 {
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
    pub(crate) fn announced_mss(&self) -> u16 {
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
        connection.owner.active = true;
        connection.snd.syn.due = true;
        connection
    }

    /// Takes over from a half-open connection whose SYN-ACK was answered. The answer itself still has to be given
    /// to [`Connection::on_segment`].
    pub fn from_half_open(profile: Arc<Profile>, half: &HalfOpen, now: Instant) -> Self {
        let mut connection = Connection::new(
            profile,
            half.endpoint,
            half.path,
            half.iss,
            half.timestamps.offset,
            now,
        );
        connection.state = State::SynReceived;
        connection.agreed = half.agreed;
        connection.start_receiving(half.irs);
        connection.rcv.timestamps = half.timestamps;
        connection.rcv.last_ack_sent = Pos::FIRST_DATA;
        connection.rcv.edge = Pos::FIRST_DATA + u64::from(half.window);
        connection.snd.peer.edge = Pos::INITIAL + u64::from(half.peer_window);
        connection.snd.peer.most = u64::from(half.peer_window);
        connection.snd.syn.sent_at = half.sent_at;
        connection.snd.syn.transmissions = half.transmissions;
        connection.counters.segments_received = 1;
        connection.counters.segments_sent = u64::from(half.transmissions);
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
        let ordering = profile.ordering(Pos::FIRST_DATA);
        let units = (ordering, FlowUnit::new(profile.flow), AckUnit::new(profile.ack));
        let timestamps = TimestampState::new(timestamp_offset);
        let mut connection = Connection {
            state: State::Closed,
            endpoint,
            path,
            path_mtu: (path.mtu < path.interface_mtu).then(|| PathMtu::narrow(path.mtu, now)),
            agreed,
            control: Control::new(profile.clone(), path.mss(), now),
            handshake: Handshake { fast: None, opening: None },
            snd: Sender::new(SeqSpace::new(iss), profile.send_buffer, now),
            rcv: Receiver::new(SeqSpace::new(Seq::new(0)), units, timestamps, now),
            ecn: None,
            timers: Timers::new(),
            replies: Replies::default(),
            partial: None,
            extensions: Default::default(),
            notices: Notices::new(Reports::new(profile.report_soft_errors)),
            error: None,
            owner: Owner { active: false, gone: false, dismissed: false, nodelay: profile.nodelay },
            memory: MemoryState::Normal,
            controls: Controls::of_profile(&profile),
            user_timeout: UserTimeouts::new(&profile),
            counters: Counters::default(),
            limited: LimitedAccount::new(now),
            profile,
        };
        connection.fit_buffer_to_interface();
        connection
    }

    /// The peer's initial sequence number is known.
    fn start_receiving(&mut self, irs: Seq) {
        self.rcv.space = SeqSpace::new(irs);
        self.rcv.segment = u64::from(self.path.announced_mss().clamp(64, 536));
    }

    /// The options are agreed: makes the choices that depend on them.
    fn after_agreement(&mut self) {
        let Agreed { sack, partial, .. } = self.agreed;
        let repeated = self.snd.syn.transmissions > 1 + u32::from(self.snd.syn.was_answered);
        self.control.agree(sack, partial, self.mss(), self.snd.syn.sent_at, repeated);
        self.partial = PartialState::for_profile(&self.profile);
        self.ecn = self.ecn_state();
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
                self.replies.reset = Some(self.reset_at(now, header.ack));
                self.repeat_answered_syn();
            }
            return;
        }
        if flags.contains(Flags::RST) {
            // Only one that acknowledges our SYN counts (RFC 5961 section 3.2, verified erratum 8167).
            if flags.contains(Flags::ACK) || self.takes_answer_back(header.seq) {
                self.handshake.opening = None;
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
        self.snd.peer.most = window;
        self.snd.peer.wl1 = Pos::INITIAL;
        self.rcv.heard.last = now;
        if flags.contains(Flags::ACK) {
            self.snd.peer.wl2 = ack;
            self.snd.peer.edge = ack + window;
            self.on_syn_acked(now, ack, &header.options);
            self.establish(now);
            // The ACK of the SYN-ACK leaves at once; data that is waiting may ride on it.
            self.rcv.ack_now = true;
            // Data and FIN that came with the SYN-ACK are taken like any other.
            self.on_text(now, segment, Pos::FIRST_DATA);
            self.on_fin(now, segment, Pos::FIRST_DATA);
        } else {
            // [MUST-10] simultaneous open
            self.snd.peer.edge = Pos::INITIAL + window;
            self.enter(State::SynReceived);
            self.snd.syn.due = true;
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
            && self.owner.active
            && header.flags.contains(Flags::SYN | Flags::ACK)
            && start == Pos::INITIAL
            && ack > Pos::INITIAL
            && ack <= self.highest_sent();
        if !crossing {
            return;
        }
        let window = u64::from(header.window);
        self.snd.peer.take(start, ack, window);
        self.snd.syn.due = false;
        self.rcv.heard.last = now;
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
        if self.snd.syn.transmissions == 1 && self.control.board().outstanding() == 0 {
            self.snd.syn.due = true;
            self.snd.syn.was_answered = true;
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
        self.handshake.opening =
            Some(Box::new(Opening::Early(Early { header, data, ecn: segment.ecn })));
    }

    /// The handshake is complete.
    fn take_early(&mut self, now: Instant) {
        let Some(opening) = self.handshake.opening.take() else { return };
        let Opening::Early(Early { header, data, ecn }) = &*opening else { return };
        let payload = Payload::borrowed(data);
        let segment = Segment { header, payload, segment_size: None, ecn: *ecn };
        self.on_text(now, &segment, Pos::FIRST_DATA);
        self.on_fin(now, &segment, Pos::FIRST_DATA);
    }

    /// Our SYN is acknowledged.
    pub(super) fn establish(&mut self, now: Instant) {
        // A SYN-ACK in a simultaneous open is a second transmission of the SYN, but nothing was lost. It leaves open
        // which of the two is acknowledged.
        let lost = if self.owner.active || self.is_opened_fast() {
            self.snd.retransmits > 0
        } else {
            self.snd.syn.transmissions > 1
        };
        let once = self.snd.syn.transmissions <= 1;
        let una = self.una();
        self.control.begin(now, once.then(|| now.since(self.snd.syn.sent_at)), lost);
        self.notices.acknowledged(false, self.una() > una, 0);
        self.snd.retransmits = 0;
        self.snd.unacked_since = Instant::FAR_FUTURE;
        self.limited.forget_busy();
        if self.has_unsent() || self.control.board().outstanding() > 0 {
            self.note_unacked(now);
        }
        self.enter(if self.snd.fin_queued { State::FinWait1 } else { State::Established });
        self.control.rearm(now, &self.extensions.clamp());
        self.arm_keep_alive();
        self.raise(Signal::Connected);
        self.raise(Signal::Writable);
        self.attach_chosen(now);
        self.take_early(now);
    }
}

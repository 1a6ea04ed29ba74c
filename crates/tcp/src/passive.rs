//! A passive open before it is complete: the SYN queue's entry.
//!
//! A listener under attack holds many of these, so one is small and owns no memory. It becomes a
//! [`Connection`](crate::connection::Connection) when the peer proves that it received the SYN-ACK.

use crate::connection::{Endpoint, PathInfo};
use crate::options::{Agreed, TimestampState, syn_options};
use crate::pos::Pos;
use crate::profile::Profile;
use crate::segment::Segment;
use crate::time::{Duration, Instant};
use transom_wire::{Ecn, Flags, Options, Seq, TcpHeader};

/// A connection in SYN-RECEIVED that was opened passively.
#[derive(Clone, Debug)]
pub struct HalfOpen {
    endpoint: Endpoint,
    path: PathInfo,
    iss: Seq,
    irs: Seq,
    agreed: Agreed,
    timestamps: TimestampState,
    window: u16,
    peer_window: u16,
    sent_at: Instant,
    deadline: Instant,
    transmissions: u32,
}

/// What to do after a segment arrived for a half-open connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfOpenAction {
    /// Nothing.
    Ignore,
    /// Send the SYN-ACK again.
    RepeatSynAck,
    /// Send this acknowledgement; within a budget, since the segment may be forged.
    Challenge(TcpHeader),
    /// Send this reset.
    Reset(TcpHeader),
    /// Forget the half-open connection: the peer reset it. The listener stays as it was.
    Drop,
    /// The handshake is complete: make a connection and give it the segment.
    Complete,
}

impl HalfOpen {
    /// Answers `syn`. `iss` and `timestamp_offset` as in
    /// [`Connection::connect`](crate::connection::Connection::connect).
    pub fn new(
        profile: &Profile,
        endpoint: Endpoint,
        path: PathInfo,
        iss: Seq,
        timestamp_offset: u32,
        syn: &TcpHeader,
        now: Instant,
    ) -> Self {
        let mut timestamps = TimestampState::new(timestamp_offset);
        let ours = syn_options(
            profile,
            path.announced_mss(),
            profile.flow.max_window(),
            timestamps.option(now),
            Some(&syn.options),
        );
        let mut agreed = Agreed::new(&ours, &syn.options, path.ip_header);
        agreed.ecn = profile.ecn.config().is_some() && syn.flags.contains(Flags::ECE | Flags::CWR);
        if let Some(stamps) = syn.options.timestamps.filter(|_| agreed.timestamps) {
            timestamps.start(stamps.value, now);
        }
        HalfOpen {
            endpoint,
            path,
            iss,
            irs: syn.seq,
            agreed,
            timestamps,
            window: profile.flow.first_window(),
            peer_window: syn.window,
            sent_at: now,
            deadline: Instant::FAR_FUTURE,
            transmissions: 0,
        }
    }

    /// Rebuilds one from what a SYN cookie kept: `ack` is the segment that brought the cookie back, `theirs` the
    /// options the peer had offered as far as the cookie could keep them.
    pub fn from_cookie(
        profile: &Profile,
        endpoint: Endpoint,
        path: PathInfo,
        timestamp_offset: u32,
        ack: &TcpHeader,
        theirs: &Options,
        now: Instant,
    ) -> Self {
        let syn = TcpHeader {
            seq: ack.seq - 1,
            window: ack.window,
            options: *theirs,
            ..TcpHeader::default()
        };
        let iss = ack.ack - 1;
        let mut half = HalfOpen::new(profile, endpoint, path, iss, timestamp_offset, &syn, now);
        half.transmissions = 1;
        half
    }

    /// With ECN or without, as a SYN cookie remembers it.
    pub fn with_ecn(mut self, profile: &Profile, agreed: bool) -> Self {
        self.agreed.ecn = agreed && profile.ecn.config().is_some();
        self
    }

    /// The ports.
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// The path.
    pub fn path(&self) -> PathInfo {
        self.path
    }

    /// Our initial sequence number.
    pub fn iss(&self) -> Seq {
        self.iss
    }

    /// The peer's initial sequence number.
    pub fn irs(&self) -> Seq {
        self.irs
    }

    /// The options both sides support.
    pub fn agreed(&self) -> Agreed {
        self.agreed
    }

    /// Where our timestamp clock starts.
    pub fn timestamp_offset(&self) -> u32 {
        self.timestamps.offset
    }

    /// When the SYN-ACK last left.
    pub fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// How often it left.
    pub fn transmissions(&self) -> u32 {
        self.transmissions
    }

    pub(crate) fn timestamps(&self) -> TimestampState {
        self.timestamps
    }

    pub(crate) fn window(&self) -> u16 {
        self.window
    }

    pub(crate) fn peer_window(&self) -> u16 {
        self.peer_window
    }

    /// The SYN-ACK; the caller sends it. It is repeated with exponential back-off.
    pub fn syn_ack(&mut self, profile: &Profile, now: Instant) -> TcpHeader {
        let timer = &profile.timer;
        let wait = timer.initial().doubled(self.transmissions.min(10)).min(timer.max());
        self.transmissions = self.transmissions.saturating_add(1);
        self.sent_at = now;
        self.deadline = now + wait.max(Duration::from_millis(100));
        self.syn_ack_header(profile, now)
    }

    /// The SYN-ACK's header without counting a transmission: what a SYN cookie's answer looks like.
    pub fn syn_ack_header(&self, profile: &Profile, now: Instant) -> TcpHeader {
        let max_window = profile.flow.max_window();
        let stamps = self.timestamps.option(now);
        let ours = syn_options(profile, self.path.announced_mss(), max_window, stamps, None);
        TcpHeader {
            seq: self.iss,
            ack: self.irs + 1,
            flags: Flags::SYN
                | Flags::ACK
                | if self.agreed.ecn { Flags::ECE } else { Flags::empty() },
            window: self.window,
            options: Options {
                window_scale: ours.window_scale.filter(|_| self.agreed.send_scale.is_some()),
                sack_permitted: self.agreed.sack,
                timestamps: ours.timestamps.filter(|_| self.agreed.timestamps),
                partial: ours.partial.filter(|_| self.agreed.partial),
                ..ours
            },
            ..self.base()
        }
    }

    /// The codepoint of the SYN-ACK that [`HalfOpen::syn_ack`] made last. Where ECN is agreed and the profile extends it to control packets
    /// the first is ECN-capable; one that has to be repeated may have been dropped for that (draft-ietf-tcpm-generalized-ecn, section
    /// 3.2.2).
    pub fn codepoint(&self, profile: &Profile) -> Ecn {
        let extended = profile.ecn.config().is_some_and(|config| config.control_packets);
        let first = self.transmissions <= 1;
        if self.agreed.ecn && extended && first { Ecn::Ect0 } else { Ecn::NotEct }
    }

    /// The peer repeats its SYN, and without the offer of ECN: whoever has said both must not use it (RFC 3168 section 6.1.1).
    pub fn on_repeated_syn(&mut self, syn: &TcpHeader) {
        self.agreed.ecn &= syn.flags.contains(Flags::ECE | Flags::CWR);
    }

    fn base(&self) -> TcpHeader {
        TcpHeader {
            src_port: self.endpoint.local_port,
            dst_port: self.endpoint.remote_port,
            ..TcpHeader::default()
        }
    }

    /// When the SYN-ACK has to be repeated, or the attempt given up.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether it has been tried often enough. `attempts` counts repetitions.
    pub fn gives_up(&self, attempts: u32) -> bool {
        self.transmissions > attempts
    }

    /// A segment arrived (RFC 9293 section 3.10.7.4 for SYN-RECEIVED after a passive open, with RFC 5961).
    pub fn on_segment(&self, now: Instant, segment: &Segment<'_>) -> HalfOpenAction {
        let header = segment.header;
        let flags = header.flags;
        let ack = || TcpHeader {
            seq: self.iss + 1,
            ack: self.irs + 1,
            flags: Flags::ACK,
            window: self.window,
            options: Options {
                timestamps: self.agreed.timestamps.then(|| self.timestamps.option(now)),
                ..Options::default()
            },
            ..self.base()
        };
        let offset = header.seq.distance_from(self.irs + 1);
        let in_window = offset >= 0 && i64::from(offset) < i64::from(self.window);
        if flags.contains(Flags::RST) {
            return match offset {
                0 => HalfOpenAction::Drop,
                _ if in_window => HalfOpenAction::Challenge(ack()),
                _ => HalfOpenAction::Ignore,
            };
        }
        if flags.contains(Flags::SYN) {
            // The same SYN again: our answer was lost. Another one is a challenge's business (RFC 5961 section 4).
            return if header.seq == self.irs && !flags.contains(Flags::ACK) {
                HalfOpenAction::RepeatSynAck
            } else {
                HalfOpenAction::Challenge(ack())
            };
        }
        if self.agreed.timestamps {
            match header.options.timestamps {
                None => return HalfOpenAction::Ignore,
                Some(stamps) if self.timestamps.is_old(stamps.value, now) => {
                    return HalfOpenAction::Challenge(ack());
                }
                Some(_) => {}
            }
        }
        if !in_window {
            return HalfOpenAction::Challenge(ack());
        }
        if !flags.contains(Flags::ACK) {
            return HalfOpenAction::Ignore;
        }
        if header.ack != self.iss + 1 {
            return HalfOpenAction::Reset(TcpHeader {
                seq: header.ack,
                flags: Flags::RST,
                options: ack().options,
                ..self.base()
            });
        }
        HalfOpenAction::Complete
    }

    /// The position a connection made from this expects next.
    pub fn next(&self) -> Pos {
        Pos::FIRST_DATA
    }
}

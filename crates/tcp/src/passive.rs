//! A passive open before it is complete: the SYN queue's entry.
//!
//! A listener under attack holds many of these, so one is small and owns no memory. It becomes a
//! [`Connection`](crate::connection::Connection) when the peer proves that it received the SYN-ACK.

use crate::accurate_ecn::{self, Agreement, ReceiverCounters};
use crate::connection::{Endpoint, PathInfo};
use crate::options::{Agreed, TimestampState, syn_options};
use crate::profile::Profile;
use crate::segment::Segment;
use crate::time::{Duration, Instant};
use transom_wire::tcp::MAX_OPTIONS_LEN;
use transom_wire::{Ecn, Flags, Options, Seq, TcpHeader};

/// A connection in SYN-RECEIVED that was opened passively.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HalfOpen {
    pub(crate) endpoint: Endpoint,
    pub(crate) path: PathInfo,
    /// Our initial sequence number.
    pub iss: Seq,
    /// The peer's initial sequence number.
    pub irs: Seq,
    /// The options both sides support.
    pub agreed: Agreed,
    pub(crate) timestamps: TimestampState,
    pub(crate) window: u16,
    pub(crate) peer_window: u16,
    /// When the SYN-ACK last left.
    pub(crate) sent_at: Instant,
    /// When the SYN-ACK has to be repeated, or the attempt given up.
    pub deadline: Instant,
    /// How often the SYN-ACK left.
    pub transmissions: u32,
    /// How the peer's latest SYN arrived, which accurate ECN tells the peer: not marked, unless the host says otherwise.
    pub syn_codepoint: Ecn,
    /// This end knows accurate ECN.
    knows_accurate: bool,
    /// Nothing may leave ECN-capable, as the peer may have taken this end for one without ECN (RFC 9768 section 3.1.5): a SYN without the offer of
    /// accurate ECN has arrived after one with it, or such a SYN-ACK has left.
    pub(crate) silent: bool,
    /// The SYN has arrived again.
    repeated: bool,
    /// It was restored from a SYN cookie.
    cookie: bool,
}

/// The action after a segment arrived for a half-open connection.
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
    /// Send this reset and forget the half-open connection: its SYNs contradict each other.
    Refuse(TcpHeader),
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
        let knows_accurate = profile.ecn.accurate().is_some();
        if knows_accurate {
            let agreement = accurate_ecn::answer_to_syn(syn.flags);
            agreed.accurate = agreement == Agreement::Accurate;
            agreed.ecn = agreement == Agreement::Classic;
        } else {
            let offered = syn.flags.contains(Flags::ECE | Flags::CWR);
            agreed.ecn = profile.ecn.config().is_some() && offered;
        }
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
            syn_codepoint: Ecn::NotEct,
            knows_accurate,
            silent: false,
            repeated: false,
            cookie: false,
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
        // A peer with accurate ECN says so in the acknowledgement: 0 and 1 are for all others (RFC 9768 section 5.1).
        let accurate = profile.ecn.accurate().is_some() && accurate_ecn::ace(ack.flags) > 1;
        let mut half = HalfOpen::new(profile, endpoint, path, iss, timestamp_offset, &syn, now);
        half.transmissions = 1;
        half.cookie = true;
        half.agreed.accurate = accurate;
        half.agreed.ecn = false;
        half
    }

    /// With ECN as RFC 3168 has it or without, as a SYN cookie remembers it.
    pub fn with_ecn(mut self, profile: &Profile, agreed: bool) -> Self {
        self.agreed.ecn = agreed && profile.ecn.config().is_some();
        self.agreed.accurate &= !self.agreed.ecn;
        self
    }

    /// How the SYN-ACK left, unless several did in different ways. That of a cookie, or of a connection that sends it itself, was not ECN-capable.
    pub(crate) fn sent_codepoint(&self, profile: &Profile) -> Option<Ecn> {
        let extended = profile.ecn.config().is_some_and(|config| config.control_packets);
        if !extended || self.cookie || self.transmissions == 0 {
            return Some(Ecn::NotEct);
        }
        (!self.is_repeated()).then(|| self.codepoint(profile))
    }

    /// Whether the SYN-ACK has left more than once.
    pub(crate) fn is_repeated(&self) -> bool {
        self.repeated || self.transmissions > 1
    }

    /// The SYN-ACK; the caller sends it. It is repeated with exponential back-off.
    pub fn syn_ack(&mut self, profile: &Profile, now: Instant) -> TcpHeader {
        let timer = &profile.timer;
        let wait = timer.initial().doubled(self.transmissions.min(10)).min(timer.max());
        self.transmissions = self.transmissions.saturating_add(1);
        self.sent_at = now;
        self.deadline = now + wait.max(Duration::from_millis(100));
        self.silent |= self.withholds_accurate();
        self.syn_ack_header(profile, now)
    }

    /// The SYN-ACK's header without counting a transmission: the answer of a SYN cookie.
    pub fn syn_ack_header(&self, profile: &Profile, now: Instant) -> TcpHeader {
        let max_window = profile.flow.max_window();
        let stamps = self.timestamps.option(now);
        let ours = syn_options(profile, self.path.announced_mss(), max_window, stamps, None);
        let mut header = TcpHeader {
            seq: self.iss,
            ack: self.irs + 1,
            flags: Flags::SYN | Flags::ACK | self.ecn_flags(),
            window: self.window,
            options: Options {
                window_scale: ours.window_scale.filter(|_| self.agreed.send_scale.is_some()),
                sack_permitted: self.agreed.sack,
                timestamps: ours.timestamps.filter(|_| self.agreed.timestamps),
                partial: ours.partial.filter(|_| self.agreed.partial),
                ..ours
            },
            ..self.base()
        };
        let options = profile.ecn.accurate() == Some(true);
        if self.agreed.accurate && options && !self.is_repeated() {
            let room = MAX_OPTIONS_LEN.saturating_sub(header.options.encoded_len());
            header.options.acc_ecn = ReceiverCounters::default().handshake_option(room);
        }
        header
    }

    /// The flags by which the SYN-ACK agrees to ECN.
    fn ecn_flags(&self) -> Flags {
        if self.agreed.accurate && !self.withholds_accurate() {
            accurate_ecn::handshake_flags(self.syn_codepoint)
        } else if self.agreed.ecn {
            Flags::ECE
        } else {
            Flags::empty()
        }
    }

    /// Whether the SYN-ACK has to do without accurate ECN's flags: the second went without its option, and was not answered either (RFC 9768
    /// section 3.2.3.2.2).
    fn withholds_accurate(&self) -> bool {
        self.agreed.accurate && self.transmissions > 2
    }

    /// The codepoint of the SYN-ACK that [`HalfOpen::syn_ack`] made last. Where ECN is agreed and the profile extends it to control packets
    /// the first is ECN-capable. One that has to be repeated may have been dropped for that (draft-ietf-tcpm-generalized-ecn, section
    /// 3.2.2).
    pub fn codepoint(&self, profile: &Profile) -> Ecn {
        let extended = profile.ecn.config().is_some_and(|config| config.control_packets);
        let first = self.transmissions <= 1;
        if (self.agreed.ecn || self.agreed.accurate) && extended && first {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        }
    }

    /// The peer repeats its SYN, which has arrived with this codepoint. If it now does not offer ECN, ECN must not be used. A host that has sent both
    /// may use it or not (RFC 3168 section 6.1.1). With accurate ECN the agreement stays, but packets are not ECN-capable (RFC 9768 section 3.1.5).
    fn on_repeated_syn(&mut self, syn: &TcpHeader, arrived: Ecn) {
        self.agreed.ecn &= syn.flags.contains(Flags::ECE | Flags::CWR);
        self.silent |= self.agreed.accurate && accurate_ecn::ace(syn.flags) == 0;
        self.syn_codepoint = arrived;
        self.repeated = true;
    }

    /// Whether a SYN requests a different feedback than the one before it, so that the two ends could disagree (RFC 9768 section 3.1.5).
    fn is_contradicted_by(&self, syn: Flags) -> bool {
        let wanted = accurate_ecn::answer_to_syn(syn);
        self.knows_accurate
            && ((self.agreed.accurate && wanted == Agreement::Classic)
                || (self.agreed.ecn && wanted == Agreement::Accurate))
    }

    /// The field ACE: nothing has been counted yet.
    fn field(&self) -> Flags {
        if self.agreed.accurate { accurate_ecn::count_flags(0) } else { Flags::empty() }
    }

    fn base(&self) -> TcpHeader {
        TcpHeader {
            src_port: self.endpoint.local_port,
            dst_port: self.endpoint.remote_port,
            ..TcpHeader::default()
        }
    }

    /// A segment arrived (RFC 9293 section 3.10.7.4 for SYN-RECEIVED after a passive open, with RFC 5961).
    pub fn on_segment(&mut self, now: Instant, segment: &Segment<'_>) -> HalfOpenAction {
        let header = segment.header;
        let flags = header.flags;
        let ack = || TcpHeader {
            seq: self.iss + 1,
            ack: self.irs + 1,
            flags: Flags::ACK | self.field(),
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
                if self.is_contradicted_by(flags) {
                    let ack = self.irs + 1 + segment.payload.len() as u32;
                    let flags = Flags::RST | Flags::ACK;
                    let reset = TcpHeader { ack, flags, ..self.base() };
                    return HalfOpenAction::Refuse(reset);
                }
                self.on_repeated_syn(header, segment.ecn);
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
}

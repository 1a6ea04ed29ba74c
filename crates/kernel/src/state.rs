//! From the kernel's records to what an extension sees.
//!
//! The kernel counts windows and what is in flight in segments. They become bytes by its maximum segment size, as in its own comparisons.

use transom_tcp::extension::{Ack, AckKind, Capabilities, Observed, Occasion, Wake};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{ConnectionState, LimitedBy, Name, Phase, Pos, SeqSpace, State, Untold};
use transom_wire::Seq;

use crate::layout::{Opening, RawEvent, flag};

/// The kernel's ssthresh before the first reduction (`TCP_INFINITE_SSTHRESH`).
const INFINITE: u32 = 0x7fff_ffff;
/// How many duplicates mean a loss to Linux at first.
const DUPTHRESH: u32 = 3;
/// How often Linux sends again before it gives a connection up (`net.ipv4.tcp_retries2`).
const RETRIES: u32 = 15;

/// What is known of a socket.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) observed: Observed,
    space: SeqSpace,
    /// The last record's counters, which have 32 bits.
    last: RawEvent,
}

impl Known {
    /// A socket as it came under control.
    pub(crate) fn new(opening: &Opening) -> Self {
        // One byte before the first that is followed, as if that was the first of the connection.
        let space = SeqSpace::new(Seq::new(opening.snd_una.wrapping_sub(1)));
        let mut known = Known {
            observed: Observed {
                state: blank(),
                messages: Vec::new(),
                capabilities: capabilities(opening.flags),
            },
            space,
            last: RawEvent { acks: opening.acks, ..RawEvent::default() },
        };
        let info = &mut known.observed.state;
        (info.snd_una, info.snd_nxt) = (Pos::FIRST_DATA, Pos::FIRST_DATA);
        info.snd_nxt = space.from_wire(Seq::new(opening.snd_nxt), Pos::FIRST_DATA);
        info.mss = opening.mss.max(1);
        info.cwnd = bytes(opening.segments, opening.mss);
        info.ssthresh = threshold(opening.ssthresh, opening.mss);
        info.snd_wnd = opening.snd_wnd.into();
        info.srtt = time(opening.srtt_us);
        info.sack = opening.flags & flag::SACK != 0;
        info.timestamps = opening.flags & flag::TIMESTAMPS != 0;
        info.congestion =
            Name::from(if opening.flags & flag::CUBIC != 0 { "cubic" } else { "reno" });
        known
    }

    /// How many acknowledgements there were until the last record.
    pub(crate) fn acks(&self) -> u32 {
        self.last.acks
    }

    /// Takes a record in. Returns the occasion, and how many acknowledgements came before it that were not reported.
    pub(crate) fn take(&mut self, raw: &RawEvent) -> (Occasion, u64) {
        let now = Instant::from_nanos(raw.at);
        let info = &mut self.observed.state;
        let mss = raw.mss.max(1);
        let size = u64::from(mss);
        info.mss = mss;
        info.state = state(raw.tcp_state);
        info.phase = phase(raw.ca_state);
        info.reduced_for_mark = raw.ca_state == 2;
        info.cwnd = bytes(raw.segments, mss);
        info.cwnd_cnt = bytes(raw.cwnd_cnt, mss);
        info.ssthresh = threshold(raw.ssthresh, mss);
        info.snd_una = self.space.from_wire(Seq::new(raw.snd_una), info.snd_una);
        info.snd_nxt = self.space.from_wire(Seq::new(raw.snd_nxt), info.snd_nxt.max(info.snd_una));
        info.snd_nxt = info.snd_nxt.max(info.snd_una);
        info.snd_wnd = raw.snd_wnd.into();
        let gone = u64::from(raw.sacked_out) + u64::from(raw.lost_out);
        let out = (u64::from(raw.packets_out) + u64::from(raw.retrans_out)).saturating_sub(gone);
        // The last segment may be short.
        let most = info.snd_nxt.since(info.snd_una);
        info.in_flight = if raw.sacked_out + raw.lost_out + raw.retrans_out == 0 {
            most
        } else {
            (out * size).min(most)
        };
        info.sacked = bytes(raw.sacked_out, mss);
        info.lost = bytes(raw.lost_out, mss);
        info.retransmitted = bytes(raw.retrans_out, mss);
        info.srtt = time(raw.srtt_us);
        info.rttvar = time(raw.rttvar_us);
        info.min_rtt = (raw.min_rtt_us != u32::MAX).then(|| time(raw.min_rtt_us)).flatten();
        let rtt = u32::try_from(raw.rtt_us).ok().and_then(time);
        info.last_rtt = rtt.or(info.last_rtt);
        info.rto = Duration::from_micros(raw.rto_us.into());
        info.effective_rto = info.rto;
        (info.backoffs, info.retransmits) = (raw.backoff.into(), raw.retransmits.into());
        info.duplicate_acks = raw.sacked_out;
        info.sack = raw.flags & flag::SACK != 0;
        info.timestamps = raw.flags & flag::TIMESTAMPS != 0;
        info.congestion = Name::from(if raw.flags & flag::CUBIC != 0 { "cubic" } else { "reno" });
        info.delivered += u64::from(raw.delivered.wrapping_sub(self.last.delivered)) * size;
        info.delivery_rate = rate(raw);
        info.delivery_rate_app_limited = raw.flags & flag::APP_LIMITED != 0;
        info.outstanding = info.snd_nxt.since(info.snd_una);
        info.unsent = raw.write_seq.wrapping_sub(raw.snd_nxt).into();
        info.limited_by = limited_by(raw, info);
        self.observed.capabilities = capabilities(raw.flags);
        let what = Wake::from_bits_truncate(raw.what);
        let counters = &mut info.counters;
        counters.lost_bytes += u64::from(raw.lost.wrapping_sub(self.last.lost)) * size;
        let again = u64::from(raw.total_retrans.wrapping_sub(self.last.total_retrans));
        counters.retransmitted_segments += again;
        counters.retransmitted_bytes += again * size;
        counters.timeouts += u64::from(what.contains(Wake::TIMEOUT));
        counters.fast_recoveries += u64::from(what.contains(Wake::LOSS));
        counters.spurious_reductions += u64::from(raw.undone.wrapping_sub(self.last.undone));
        // Several may be in one record: those before the last were not told of by themselves.
        let since = u64::from(raw.acks.wrapping_sub(self.last.acks));
        let ack = (raw.ack_kind != 0).then(|| Ack {
            at: now,
            ack: info.snd_una,
            window: raw.snd_wnd.into(),
            kind: AckKind::from_bits_truncate(raw.ack_kind),
            acked: raw.acked.into(),
            sacked: raw.sacked.into(),
            duplicated: None,
            rtt,
        });
        let missed = since.saturating_sub(u64::from(ack.is_some()));
        self.last = *raw;
        (Occasion { now, what, ack, sent: None }, missed)
    }
}

fn capabilities(flags: u8) -> Capabilities {
    let mut has = Capabilities::ACK_LIST;
    has.set(Capabilities::SACK, flags & flag::SACK != 0);
    has.set(Capabilities::TIMESTAMPS, flags & flag::TIMESTAMPS != 0);
    has.set(Capabilities::CWND_CNT, flags & flag::CUBIC == 0);
    has
}

fn bytes(segments: u32, mss: u32) -> u64 {
    u64::from(segments) * u64::from(mss)
}

fn threshold(segments: u32, mss: u32) -> u64 {
    if segments >= INFINITE { u64::MAX } else { bytes(segments, mss) }
}

fn time(us: u32) -> Option<Duration> {
    (us > 0).then(|| Duration::from_micros(us.into()))
}

fn rate(raw: &RawEvent) -> Option<u64> {
    let delivered = bytes(raw.rate_delivered, raw.mss);
    let interval = u64::from(raw.rate_interval_us);
    (interval > 0).then(|| delivered.saturating_mul(1_000_000) / interval)
}

fn state(number: u8) -> State {
    match number {
        1 => State::Established,
        2 => State::SynSent,
        3 => State::SynReceived,
        4 => State::FinWait1,
        5 => State::FinWait2,
        6 => State::TimeWait,
        8 => State::CloseWait,
        9 => State::LastAck,
        11 => State::Closing,
        _ => State::Closed,
    }
}

fn phase(number: u8) -> Phase {
    match number {
        1 => Phase::Disorder,
        3 => Phase::Recovery,
        4 => Phase::Loss,
        _ => Phase::Open,
    }
}

fn limited_by(raw: &RawEvent, info: &ConnectionState) -> LimitedBy {
    if info.unsent == 0 && raw.flags & flag::CWND_LIMITED == 0 {
        LimitedBy::Application
    } else if raw.flags & flag::NARROWED != 0 {
        LimitedBy::VirtualWindow
    } else if raw.flags & flag::CWND_LIMITED != 0 {
        LimitedBy::CongestionWindow
    } else if info.snd_nxt.since(info.snd_una) + u64::from(info.mss) > info.snd_wnd {
        LimitedBy::PeerWindow
    } else {
        LimitedBy::CongestionWindow
    }
}

/// A connection of which nothing is known but what Linux does by itself.
fn blank() -> ConnectionState {
    let mut state = ConnectionState::unknown();
    state.state = State::Established;
    (state.congestion, state.recovery) = (Name::from("cubic"), Name::from("linux"));
    (state.ordering, state.flow) = (Name::from("stream"), Name::from("linux"));
    state.mss = 1;
    (state.rto, state.effective_rto) = (Duration::from_secs(1), Duration::from_secs(1));
    (state.dupthresh, state.reordering) = (DUPTHRESH, DUPTHRESH);
    state.limited_transmit = true;
    state.give_up_after = Some(RETRIES);
    state.untold = Untold::RCV_WND | Untold::REASON;
    state
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use transom_tcp::extension::{Extension, Limits, ObservedLayers, View};

    use super::*;
    use crate::layout::{NAME, NO_SLOT};

    /// Adds up the bytes of the acknowledgements since it was woken last, as far as they are listed.
    #[derive(Debug)]
    struct Adds {
        seen: u64,
        sum: Arc<AtomicU64>,
    }

    impl Extension for Adds {
        fn name(&self) -> &str {
            "adds"
        }

        fn requires(&self) -> Capabilities {
            Capabilities::ACK_LIST
        }

        fn wake_on(&self) -> Wake {
            Wake::ROUND
        }

        fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, _limits: &mut Limits) {
            let new = usize::try_from(view.acks_seen() - self.seen).unwrap();
            self.seen = view.acks_seen();
            let sum: u64 = view.last_acks(new).map(|ack| ack.acked).sum();
            self.sum.fetch_add(sum, Ordering::Relaxed);
        }
    }

    /// An extension that is woken once a round counts each acknowledgement at most once, whatever is lost in between.
    #[test]
    fn an_acknowledgement_is_never_taken_for_one_that_was_missed() {
        let at = Instant::from_nanos(1);
        let mut known = Known::new(&Opening {
            cookie: 1,
            at: 1,
            flags: flag::SACK,
            slot: NO_SLOT,
            acks: 0,
            local: ([127, 0, 0, 1], 1).into(),
            remote: ([127, 0, 0, 1], 2).into(),
            had: [0; NAME],
            mss: 1000,
            segments: 10,
            snd_una: 0,
            place: 0,
            ssthresh: INFINITE,
            snd_nxt: 0,
            snd_wnd: 100_000,
            srtt_us: 1,
        });
        let sum = Arc::new(AtomicU64::new(0));
        let mut layers = ObservedLayers::default();
        layers.attach(at, &known.observed, Box::new(Adds { seen: 0, sum: sum.clone() })).unwrap();
        let mut raw = RawEvent { cookie: 1, mss: 1000, ..RawEvent::default() };
        let mut ack = |lost: u32, bytes: u32, what: u8| {
            raw.acks += lost + 1;
            (raw.what, raw.ack_kind, raw.acked) = (what, 1, bytes);
            let (occasion, missed) = known.take(&raw);
            assert_eq!(missed, u64::from(lost));
            layers.missed(missed);
            layers.wake(&known.observed, &occasion);
        };
        ack(0, 1, 1);
        ack(0, 10, 5);
        assert_eq!(sum.load(Ordering::Relaxed), 11);
        // Two are lost. Those of the round before are not counted again.
        ack(2, 100, 1);
        ack(0, 1000, 5);
        assert_eq!(sum.load(Ordering::Relaxed), 1111);
    }
}

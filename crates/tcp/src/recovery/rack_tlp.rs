//! RACK-TLP (RFC 8985): time reveals losses, and a probe asks for the fate of the last segments.
//!
//! A transmission is lost when a later one was delivered long enough ago that reordering cannot be the reason. The reordering window
//! adapts to the observed reordering. After two round trips of silence, the last segment, or a new one, is sent as a probe, before the
//! retransmission timer expires.
//!
//! Differences from the text: after a timeout everything counts as lost, not only data that left long enough ago (section 6.3), as in the
//! other units. TLP.max_ack_delay is a constant. The check of section 6.2 step 2 whether a retransmission or the original was acknowledged
//! uses the least round-trip time, not the timestamp. The reordering timer (section 6.2 step 5) expires 4 ms late: see `SLACK`.
//! The retransmission timer starts again with each retransmission in recovery, which RFC 6675 allows in section 5. While slow start fills a long queue, the
//! round-trip time grows faster than its estimate: the answer to the first repair would come just after the timeout.

use super::progress::{Progress, report_progress, retransmit_what_is_lost};
use super::{Expiry, Phase, Recovery, Retransmission, Times, Verdict};
use crate::ack_context::AckContext;
use crate::pos::Pos;
use crate::sent::SentList;
use crate::time::{Duration, Instant};
use core::ops::Range;

/// How long the peer may delay an acknowledgement (TLP.max_ack_delay): the value of Linux.
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// How much later than the RFC says the reordering timer expires. An acknowledgement that comes meanwhile finds the same loss, and its repair takes the
/// place of what that one says has left. A repair by the timer comes on top of what fills the bottleneck's queue, and a queue that is full, which is why
/// something was lost, drops it again. Linux adds two ticks of its clock: 2 to 8 ms, by its configuration.
const SLACK: Duration = Duration::from_millis(4);
/// The timeout of a probe before there is a round-trip time.
const FIRST_PROBE: Duration = Duration::from_secs(1);
/// Recoveries without a duplicate report after which the patience is what it was (RACK.reo_wnd_persist).
const PERSIST: u8 = 16;

/// The latest transmission that was delivered.
#[derive(Clone, Copy, Debug)]
struct Rack {
    /// RACK.xmit_ts and RACK.end_seq.
    newest: (Instant, Pos),
    /// RACK.rtt.
    rtt: Duration,
}

/// A tail loss probe on its way.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// TLP.end_seq.
    end: Pos,
    /// TLP.is_retrans.
    again: bool,
}

/// The purpose of the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Nothing,
    /// For what reordering may still bring.
    Reordering(Instant),
    /// For anything, before a probe.
    Probe(Instant),
}

/// The recovery unit of RFC 8985.
#[derive(Clone, Debug)]
pub(crate) struct RackTlp {
    progress: Progress,
    rack: Option<Rack>,
    /// RACK.fack.
    highest: Pos,
    reordering_seen: bool,
    /// RACK.reo_wnd_mult and RACK.reo_wnd_persist.
    patience: u8,
    persist: u8,
    /// RACK.dsack_round; SND.UNA is beyond it if there is none.
    dsack_round: Pos,
    /// Zero before there is one.
    min_rtt: Duration,
    round_trip: Option<Duration>,
    dup_thresh: u32,
    mss: u32,
    waiting: Waiting,
    probe: Option<Probe>,
    /// The point of the last probe: one is enough for the same silence. No data lies at the beginning, where it is without one.
    probed: Pos,
}

impl Default for RackTlp {
    fn default() -> Self {
        RackTlp {
            progress: Progress::default(),
            rack: None,
            highest: Pos::INITIAL,
            reordering_seen: false,
            patience: 1,
            persist: 0,
            dsack_round: Pos::INITIAL,
            min_rtt: Duration::ZERO,
            round_trip: None,
            dup_thresh: 3,
            mss: 1,
            waiting: Waiting::Nothing,
            probe: None,
            probed: Pos::INITIAL,
        }
    }
}

impl RackTlp {
    /// Section 6.2 steps 1 to 3.
    fn take_note(&mut self, ack: &AckContext) {
        self.min_rtt = ack.min_rtt.unwrap_or(Duration::ZERO);
        self.round_trip = ack.srtt();
        self.mss = ack.mss;
        // An answer that comes sooner than any round trip is one to the original.
        let again = ack
            .newest
            .again
            .filter(|&(left, _)| ack.min_rtt.is_none_or(|min| ack.now.since(left) >= min));
        for newest in [ack.newest.original, again].into_iter().flatten() {
            if self.rack.is_none_or(|rack| newest >= rack.newest) {
                self.rack = Some(Rack { newest, rtt: ack.now.since(newest.0) });
            }
        }
        let below = ack.lowest_original.is_some_and(|low| low < self.highest);
        self.reordering_seen |= below;
        let ends = [ack.newest.original, ack.newest.again].into_iter().flatten();
        self.highest = ends.map(|(_, end)| end).fold(self.highest, Pos::max);
    }

    /// Section 6.2 step 4: how much later than its successors a transmission may come.
    fn window(&self, sent: &SentList) -> Duration {
        let many = u64::from(self.dup_thresh) * u64::from(self.mss);
        let recovering = self.progress.is_recovering();
        if !self.reordering_seen && (recovering || sent.sacked_bytes() >= many) {
            return Duration::ZERO;
        }
        let quarter = Duration::from_nanos(self.min_rtt.as_nanos() / 4);
        quarter.times(u64::from(self.patience)).min(self.round_trip.unwrap_or(self.min_rtt))
    }

    fn learn_from_duplicates(&mut self, ack: &AckContext, exited: bool) {
        if ack.duplicated > 0 && ack.una >= self.dsack_round {
            self.dsack_round = ack.nxt;
            self.patience = self.patience.saturating_add(1);
            self.persist = PERSIST;
        } else if exited && self.persist > 0 {
            self.persist -= 1;
            if self.persist == 0 {
                self.patience = 1;
            }
        }
    }

    /// Section 6.2 step 5. Returns the bytes newly believed lost.
    fn detect(&mut self, sent: &mut SentList, now: Instant) -> u64 {
        let Some(rack) = self.rack else { return 0 };
        let wait = rack.rtt + self.window(sent);
        let (lost, later) = sent.mark_lost_sent_before(rack.newest, wait, now);
        self.waiting = later.map_or(Waiting::Nothing, |at| Waiting::Reordering(at + SLACK));
        lost
    }

    fn enter(&mut self, sent: &SentList) {
        self.progress.enter_recovery(sent);
        self.probe = None;
    }

    /// Section 7.4.2. Returns whether the probe has repaired an undetected loss.
    fn judge_probe(&mut self, ack: &AckContext) -> bool {
        let Some(probe) = self.probe.filter(|probe| ack.una >= probe.end) else { return false };
        // With a report of a duplicate, or a duplicate acknowledgement, original and probe have both arrived.
        let both = !probe.again
            || ack.duplicated > 0
            || (ack.una == probe.end && ack.acked == 0 && !ack.has_sack);
        if both || ack.una > probe.end {
            self.probe = None;
        }
        !both && ack.una > probe.end
    }
}

impl Recovery for RackTlp {
    fn name(&self) -> &'static str {
        "rack-tlp"
    }

    fn restarts_timer_on_repair(&self) -> bool {
        true
    }

    fn has_deadlines(&self) -> bool {
        true
    }

    report_progress!();

    fn on_ack(&mut self, sent: &mut SentList, ack: &AckContext, dup_thresh: u32) -> Verdict {
        let mut verdict = Verdict::default();
        self.dup_thresh = dup_thresh;
        if ack.acked > 0 {
            self.probed = Pos::INITIAL;
            verdict.restart_timer = true;
            verdict.exited = self.progress.on_advance(sent);
        } else if ack.duplicate {
            self.progress.on_duplicate();
        }
        self.take_note(ack);
        self.learn_from_duplicates(ack, verdict.exited);
        verdict.lost = self.detect(sent, ack.now);
        let repaired = self.judge_probe(ack);
        if !self.progress.is_recovering() {
            if sent.lost_bytes() > 0 || repaired {
                self.enter(sent);
                verdict.entered = true;
            } else {
                let calm = sent.sacked_bytes() == 0 && self.progress.duplicates == 0;
                self.progress.phase = if calm { Phase::Open } else { Phase::Disorder };
            }
        }
        verdict
    }

    fn on_timeout(&mut self, sent: &mut SentList) -> u64 {
        self.progress.enter_loss(sent);
        self.probe = None;
        self.waiting = Waiting::Nothing;
        sent.mark_all_lost()
    }

    fn on_undo(&mut self) {
        self.progress.leave();
    }

    retransmit_what_is_lost!();

    fn deadline(&mut self, sent: &SentList, times: &Times) -> Option<Instant> {
        if let Waiting::Reordering(at) = self.waiting {
            return Some(at);
        }
        self.waiting = Waiting::Nothing;
        let calm = !self.progress.is_recovering() && sent.sacked_bytes() == 0;
        let probed = self.probe.is_some() || self.probed == sent.start();
        if !calm || probed || sent.outstanding() == 0 {
            return None;
        }
        // Section 7.2.
        let wait = match self.round_trip.or(times.estimate.map(|known| known.srtt)) {
            Some(srtt) if sent.outstanding() <= u64::from(times.mss) => {
                srtt.times(2) + MAX_ACK_DELAY
            }
            Some(srtt) => srtt.times(2),
            None => FIRST_PROBE,
        };
        let at = times.now + wait;
        let at = times.timeout_at.map_or(at, |timeout| at.min(timeout));
        self.waiting = Waiting::Probe(at);
        Some(at)
    }

    fn on_deadline(&mut self, sent: &mut SentList, now: Instant) -> Expiry {
        match self.waiting {
            Waiting::Reordering(_) => {
                let mut verdict = Verdict { lost: self.detect(sent, now), ..Verdict::default() };
                if verdict.lost == 0 {
                    return Expiry::Nothing;
                }
                if !self.progress.is_recovering() {
                    self.enter(sent);
                    verdict.entered = true;
                }
                Expiry::Losses(verdict)
            }
            Waiting::Probe(_) => {
                self.waiting = Waiting::Nothing;
                Expiry::Probe
            }
            Waiting::Nothing => Expiry::Nothing,
        }
    }

    fn on_probed(&mut self, again: bool, end: Pos) {
        self.probe = Some(Probe { end, again });
    }
}

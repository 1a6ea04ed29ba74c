//! Loss detection and recovery: *what* to send again.
//!
//! A recovery unit reads the scoreboard, marks what is lost, and names the next retransmission. It owns the
//! phase of the connection (open, disorder, recovery, loss) and the recovery point, and never touches the
//! congestion window. It reports that recovery began or ended, and the controller answers.

mod giving_up;
mod go_back_n;
mod newreno;
mod progress;
mod rack_tlp;
mod reno;
mod sack;
mod unit;
mod whole_window;

use crate::ack_context::AckContext;
use crate::named::named;
use crate::pos::Pos;
use crate::rto::Estimate;
use crate::sent::{Sent, SentList};
use crate::time::Instant;
use core::fmt;
use core::ops::Range;
pub(crate) use unit::RecoveryUnit;

/// The sender's phase of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Phase {
    /// Nothing is suspicious.
    #[default]
    Open,
    /// Duplicate or selective acknowledgements arrive; reordering or loss.
    Disorder,
    /// Fast recovery: a loss was inferred from acknowledgements.
    Recovery,
    /// The retransmission timer expired and the data outstanding then is not all acknowledged.
    Loss,
}

named! {
    Phase:
    Open = "open",
    Disorder = "disorder",
    Recovery = "recovery",
    Loss = "loss",
}

/// The effect of an acknowledgement on the phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Fast recovery begins with this acknowledgement.
    pub(crate) entered: bool,
    /// Recovery (fast or after a timeout) ended with it.
    pub(crate) exited: bool,
    /// Recovery has ended, and the amount in the pipe during it is unknown. The window must be reduced to the flight (RFC 6582
    /// section 3.2 step 3).
    pub(crate) limit_to_flight: bool,
    /// It acknowledged a part of what recovery has to repair: the retransmission timer may be restarted.
    pub(crate) restart_timer: bool,
    /// Bytes newly marked lost.
    pub(crate) lost: u64,
}

/// The times that a unit needs to set a deadline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The present.
    pub(crate) now: Instant,
    /// The estimate of the round-trip time, once there is a sample.
    pub(crate) estimate: Option<Estimate>,
    /// When the retransmission timer expires, if it runs.
    pub(crate) timeout_at: Option<Instant>,
    /// The sender's maximum segment size.
    pub(crate) mss: u32,
}

/// The action that a passed deadline requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// Nothing.
    Nothing,
    /// Something is believed lost now.
    Losses(Verdict),
    /// Send a segment, new or the last one again, independently of the congestion window, as a probe.
    Probe,
}

/// A segment to send again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Retransmission {
    /// The range to cover; the sender may send less.
    pub(crate) range: Range<Pos>,
    /// Whether the congestion window does not apply: the fast retransmission itself (RFC 5681 section 3.2 step
    /// 3, RFC 6675 section 5 step 4.3).
    pub(crate) exempt: bool,
    /// Whether it is the rescue retransmission (RFC 6675 section 4, NextSeg rule 4).
    pub(crate) rescue: bool,
}

/// A loss-recovery unit.
pub(crate) trait Recovery: fmt::Debug + Send {
    /// The name by which profiles and reports call it.
    fn name(&self) -> &'static str;

    /// The phase the sender is in.
    fn phase(&self) -> Phase;

    /// Consecutive duplicate acknowledgements seen.
    fn duplicate_acks(&self) -> u32;

    /// Bytes in flight by this unit's understanding: RFC 6675's pipe, for a unit that marks on the scoreboard what it knows.
    fn in_flight(&self, sent: &SentList) -> u64 {
        sent.in_flight()
    }

    /// An acknowledgement was entered into the scoreboard. `dup_thresh` is how many duplicates mean loss.
    fn on_ack(&mut self, sent: &mut SentList, ack: &AckContext, dup_thresh: u32) -> Verdict;

    /// The retransmission timer expired. Returns the bytes newly marked lost.
    fn on_timeout(&mut self, sent: &mut SentList) -> u64;

    /// A loss was spurious; the scoreboard is updated already.
    fn on_undo(&mut self);

    /// The data to retransmit now, most urgent first. `new_data` says whether unsent data could leave instead. It changes nothing.
    fn next(&self, sent: &SentList, new_data: bool, mss: u32) -> Option<Retransmission>;

    /// `range` left, of what [`Recovery::next`] `named`.
    fn on_retransmitted(&mut self, named: &Retransmission, range: Range<Pos>);

    /// Whether the unit ever sets a deadline; if not, it is not asked for one after every segment.
    fn has_deadlines(&self) -> bool {
        false
    }

    /// Whether the retransmission timer starts again with each retransmission of fast recovery. RFC 6675, section 5, allows it: a recovery
    /// may last longer than the timeout, and RFC 6298 alone would end it with one that is not needed.
    fn restarts_timer_on_repair(&self) -> bool {
        false
    }

    /// When to call [`Recovery::on_deadline`], if at all. Asked after all data was sent or acknowledged.
    fn deadline(&mut self, _sent: &SentList, _times: &Times) -> Option<Instant> {
        None
    }

    /// The deadline has passed.
    fn on_deadline(&mut self, _sent: &mut SentList, _now: Instant) -> Expiry {
        Expiry::Nothing
    }

    /// The probe that [`Expiry::Probe`] requested has left: new data, or the last segment `again`. `end` is SND.NXT.
    fn on_probed(&mut self, _again: bool, _end: Pos) {}

    /// Losses have been marked: gives up the data that will not be repaired. The data ends at `end`; the FIN behind it is always
    /// repaired. Returns the bytes given up. Ordinary recovery gives up nothing.
    fn give_up(&mut self, _sent: &mut SentList, _end: Pos, _now: Instant) -> u64 {
        0
    }

    /// The position before which nothing will be sent any more, if the peer does not know of it yet by its acknowledgements.
    fn forward_point(&self, _sent: &SentList) -> Option<Pos> {
        None
    }

    /// Whether `record`, lost or not, may be sent again at `now`.
    fn repeats(&self, _record: &Sent, _now: Instant) -> bool {
        true
    }
}

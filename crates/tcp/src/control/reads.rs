//! The state of the send engine that others may read.

use super::Control;
use crate::congestion::{CongestionControl, Window};
use crate::pos::Pos;
use crate::recovery::{Phase, Recovery};
use crate::rto::TimerUnit;
use crate::sent::SentList;
use crate::time::{Duration, Instant};

impl Control {
    /// SND.UNA.
    #[inline]
    pub(crate) fn una(&self) -> Pos {
        if self.begun { self.sent.start() } else { Pos::INITIAL }
    }

    /// SND.NXT.
    #[inline]
    pub(crate) fn nxt(&self) -> Pos {
        self.sent.end()
    }

    /// Whether the peer has our SYN.
    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// The scoreboard.
    #[inline]
    pub(crate) fn board(&self) -> &SentList {
        &self.sent
    }

    /// The congestion variables.
    #[inline]
    pub(crate) fn window(&self) -> Window {
        self.window
    }

    /// The retransmission timer.
    #[inline]
    pub(crate) fn timer(&self) -> &TimerUnit {
        &self.timer
    }

    /// The phase of loss recovery.
    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        self.recovery.phase()
    }

    /// Consecutive duplicate acknowledgements.
    pub(crate) fn duplicate_acks(&self) -> u32 {
        self.recovery.duplicate_acks()
    }

    /// Bytes in flight, as the recovery unit sees it.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.recovery.in_flight(&self.sent)
    }

    /// The least round-trip time, once there is a sample.
    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        Some(self.rtts.min).filter(|&rtt| rtt < Duration::MAX)
    }

    /// The last round-trip time, once there is a sample.
    pub(crate) fn last_rtt(&self) -> Option<Duration> {
        Some(self.rtts.last).filter(|&rtt| rtt < Duration::MAX)
    }

    /// How long ago data, or a FIN, was last sent.
    pub(crate) fn sent_since(&self, now: Instant) -> Option<Duration> {
        (self.sent.end() > Pos::FIRST_DATA).then(|| now.since(self.sent.latest()))
    }

    /// Over how many segments the path was seen to reorder, at most, and how often.
    pub(crate) fn reordering(&self) -> (u32, u32) {
        (self.overtaken.over, self.overtaken.seen)
    }

    /// The position before which nothing will be sent any more, if the peer does not know of it yet by its acknowledgements.
    pub(crate) fn forward_point(&self) -> Option<Pos> {
        self.recovery.forward_point(&self.sent)
    }

    /// The names of the controller and of the recovery unit.
    pub(crate) fn names(&self) -> (&'static str, &'static str) {
        (self.controller.name(), self.recovery.name())
    }

    /// Whether the window grows by counting acknowledged bytes.
    pub(crate) fn counts_acknowledged_bytes(&self) -> bool {
        self.controller.counts_acknowledged_bytes()
    }

    /// Whether the window comes down for marks.
    pub(crate) fn answers_marks(&self) -> bool {
        self.controller.answers_marks()
    }

    /// Whether the controller is a scalable one.
    pub(crate) fn is_scalable(&self) -> bool {
        self.controller.is_scalable()
    }
}

//! Recovery that gives up: another unit finds the losses, and those that have had their chances are not repaired.
//!
//! Data that the other unit marks lost and whose persistence is exhausted is removed from the retransmission list at once, so the unit
//! does not retransmit it. The other unit keeps everything else (phase, recovery point, flight, probes). Its recovery ends as usual,
//! when the data that was outstanding at its beginning is acknowledged, because the peer acknowledges the hole.
//!
//! A path that strips unknown options could still remove the announcements after a successful handshake. If three timeouts pass without
//! any progress, the data that was given up is retransmitted until everything outstanding is acknowledged. So the connection survives
//! with some delay. A peer that knows the forward point ignores such a retransmission as old data.

use super::{Expiry, Phase, Recovery, RecoveryUnit, Retransmission, Times, Verdict};
use crate::ack_context::AckContext;
use crate::persistence::Persistence;
use crate::pos::Pos;
use crate::sent::{Sent, SentList};
use crate::time::{Duration, Instant};
use core::ops::Range;

/// Timeouts without progress after which what was given up is sent after all.
const UNANSWERED: u32 = 3;

/// A recovery unit around another.
#[derive(Debug)]
pub(crate) struct GivingUp {
    inner: RecoveryUnit,
    persistence: Persistence,
    /// Nothing before it will be sent any more.
    forward: Pos,
    /// Timeouts since the peer last acknowledged anything.
    unanswered: u32,
    /// Nothing is given up until this is acknowledged.
    repairs_upto: Option<Pos>,
    /// The deadline that the other unit requested.
    inner_deadline: Option<Instant>,
    /// Losses were marked and have not been judged yet.
    unjudged: bool,
}

impl GivingUp {
    /// Losses found by `inner` are repaired within `persistence`.
    pub(crate) fn new(inner: RecoveryUnit, persistence: Persistence) -> Self {
        GivingUp {
            inner,
            persistence,
            forward: Pos::INITIAL,
            unanswered: 0,
            repairs_upto: None,
            inner_deadline: None,
            unjudged: false,
        }
    }

    /// When the lifetime of something lost ends.
    fn end_of_lifetime(&self, sent: &SentList) -> Option<Instant> {
        let lifetime: Duration = self.persistence.lifetime?;
        if self.repairs_upto.is_some() {
            return None;
        }
        Some(sent.oldest_unrepaired(self.forward)? + lifetime)
    }
}

impl Recovery for GivingUp {
    fn name(&self) -> &'static str {
        self.persistence.name()
    }

    #[inline(never)]
    fn phase(&self) -> Phase {
        self.inner.phase()
    }

    fn duplicate_acks(&self) -> u32 {
        self.inner.duplicate_acks()
    }

    // Apart from the unit that calls it, as it calls that again: the compiler inlines no function into itself.
    #[inline(never)]
    fn in_flight(&self, sent: &SentList) -> u64 {
        self.inner.in_flight(sent)
    }

    fn on_ack(&mut self, sent: &mut SentList, ack: &AckContext, dup_thresh: u32) -> Verdict {
        if ack.acked > 0 {
            self.unanswered = 0;
            self.repairs_upto = self.repairs_upto.filter(|&upto| ack.una < upto);
        }
        let verdict = self.inner.on_ack(sent, ack, dup_thresh);
        self.unjudged |= verdict.lost > 0;
        verdict
    }

    fn on_timeout(&mut self, sent: &mut SentList) -> u64 {
        let lost = self.inner.on_timeout(sent);
        self.unjudged = true;
        if self.forward > sent.start() {
            self.unanswered += 1;
        }
        if self.unanswered >= UNANSWERED {
            sent.take_up_again();
            self.repairs_upto = Some(sent.end());
            self.forward = sent.start();
        }
        lost
    }

    fn on_undo(&mut self) {
        self.inner.on_undo();
    }

    #[inline(never)]
    fn next(&self, sent: &SentList, new_data: bool, mss: u32) -> Option<Retransmission> {
        self.inner.next(sent, new_data, mss)
    }

    fn on_retransmitted(&mut self, named: &Retransmission, range: Range<Pos>) {
        self.inner.on_retransmitted(named, range);
    }

    fn restarts_timer_on_repair(&self) -> bool {
        self.inner.restarts_timer_on_repair()
    }

    fn has_deadlines(&self) -> bool {
        self.persistence.lifetime.is_some() || self.inner.has_deadlines()
    }

    fn deadline(&mut self, sent: &SentList, times: &Times) -> Option<Instant> {
        self.inner_deadline = self.inner.deadline(sent, times);
        [self.inner_deadline, self.end_of_lifetime(sent)].into_iter().flatten().min()
    }

    fn on_deadline(&mut self, sent: &mut SentList, now: Instant) -> Expiry {
        if self.inner_deadline.take_if(|at| *at <= now).is_none() {
            // A lifetime has ended.
            return Expiry::Nothing;
        }
        let expiry = self.inner.on_deadline(sent, now);
        self.unjudged |= matches!(expiry, Expiry::Losses(_));
        expiry
    }

    fn on_probed(&mut self, again: bool, end: Pos) {
        self.inner.on_probed(again, end);
    }

    fn give_up(&mut self, sent: &mut SentList, end: Pos, now: Instant) -> u64 {
        if self.repairs_upto.is_some() {
            return 0;
        }
        let overdue = self.end_of_lifetime(sent).is_some_and(|end| end <= now);
        let mut given_up = 0;
        if core::mem::take(&mut self.unjudged) || overdue {
            let persistence = self.persistence;
            given_up = sent.give_up(end, overdue, |record| persistence.is_exhausted(record, now));
        }
        // Data that was given up behind a repaired part is first in line now.
        let reached = self.forward <= sent.start()
            && sent.first().is_some_and(|record| record.status.given_up);
        if given_up > 0 || reached {
            self.forward = sent.given_up_upto(self.forward);
        }
        given_up
    }

    fn forward_point(&self, sent: &SentList) -> Option<Pos> {
        Some(self.forward).filter(|&forward| forward > sent.start())
    }

    fn repeats(&self, record: &Sent, now: Instant) -> bool {
        self.repairs_upto.is_some() || !self.persistence.is_exhausted(record, now)
    }
}

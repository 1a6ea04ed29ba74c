//! The recovery unit of a connection, whichever it is.

use super::giving_up::GivingUp;
use super::go_back_n::GoBackN;
use super::newreno::NewReno;
use super::rack_tlp::RackTlp;
use super::reno::Reno;
use super::sack::SackRecovery;
use super::whole_window::WholeWindow;
use super::{Expiry, Phase, Recovery, Retransmission, Times, Verdict};
use crate::ack_context::AckContext;
use crate::persistence::Persistence;
use crate::pos::Pos;
use crate::profile::RecoveryChoice;
use crate::sent::{Sent, SentList};
use crate::time::Instant;
use alloc::boxed::Box;
use core::ops::Range;

/// One of the recovery units.
#[derive(Debug)]
pub(crate) enum RecoveryUnit {
    /// Everything from the loss on.
    GoBackN(GoBackN),
    /// Everything from the loss on, again with each partial acknowledgement.
    WholeWindow(WholeWindow),
    /// RFC 2581.
    Reno(Reno),
    /// RFC 6582.
    NewReno(NewReno),
    /// RFC 6675.
    Sack(SackRecovery),
    /// RFC 8985.
    RackTlp(RackTlp),
    /// One of the others, within a persistence.
    GivingUp(Box<GivingUp>),
}

/// Calls whichever unit it is.
macro_rules! each {
    ($self:expr, $unit:ident => $call:expr) => {
        match $self {
            RecoveryUnit::GoBackN($unit) => $call,
            RecoveryUnit::WholeWindow($unit) => $call,
            RecoveryUnit::Reno($unit) => $call,
            RecoveryUnit::NewReno($unit) => $call,
            RecoveryUnit::Sack($unit) => $call,
            RecoveryUnit::RackTlp($unit) => $call,
            RecoveryUnit::GivingUp($unit) => $call,
        }
    };
}

impl RecoveryUnit {
    /// The unit of a connection that has agreed on SACK or not, and gives up data by this persistence.
    pub(crate) fn new(
        choice: RecoveryChoice,
        sack: bool,
        persistence: Option<Persistence>,
    ) -> Self {
        let ordinary = match choice {
            RecoveryChoice::Sack if sack => RecoveryUnit::Sack(SackRecovery::default()),
            RecoveryChoice::RackTlp if sack => RecoveryUnit::RackTlp(RackTlp::default()),
            RecoveryChoice::Sack | RecoveryChoice::RackTlp | RecoveryChoice::NewReno => {
                RecoveryUnit::NewReno(NewReno::default())
            }
            RecoveryChoice::Reno => RecoveryUnit::Reno(Reno::default()),
            RecoveryChoice::GoBackN => RecoveryUnit::GoBackN(GoBackN::default()),
            RecoveryChoice::WholeWindow => RecoveryUnit::WholeWindow(WholeWindow::default()),
        };
        match persistence {
            Some(one) => RecoveryUnit::GivingUp(Box::new(GivingUp::new(ordinary, one))),
            None => ordinary,
        }
    }
}

impl Recovery for RecoveryUnit {
    #[inline]
    fn name(&self) -> &'static str {
        each!(self, one => one.name())
    }

    #[inline]
    fn phase(&self) -> Phase {
        each!(self, one => one.phase())
    }

    #[inline]
    fn duplicate_acks(&self) -> u32 {
        each!(self, one => one.duplicate_acks())
    }

    #[inline]
    fn in_flight(&self, sent: &SentList) -> u64 {
        each!(self, one => one.in_flight(sent))
    }

    #[inline]
    fn on_ack(&mut self, sent: &mut SentList, ack: &AckContext, dup_thresh: u32) -> Verdict {
        each!(self, one => one.on_ack(sent, ack, dup_thresh))
    }

    #[inline]
    fn on_timeout(&mut self, sent: &mut SentList) -> u64 {
        each!(self, one => one.on_timeout(sent))
    }

    #[inline]
    fn on_undo(&mut self) {
        each!(self, one => one.on_undo())
    }

    #[inline]
    fn next(&self, sent: &SentList, new_data: bool, mss: u32) -> Option<Retransmission> {
        each!(self, one => one.next(sent, new_data, mss))
    }

    #[inline]
    fn on_retransmitted(&mut self, named: &Retransmission, range: Range<Pos>) {
        each!(self, one => one.on_retransmitted(named, range))
    }

    #[inline]
    fn recovery_point(&self) -> Option<Pos> {
        each!(self, one => one.recovery_point())
    }

    #[inline]
    fn has_deadlines(&self) -> bool {
        each!(self, one => one.has_deadlines())
    }

    #[inline]
    fn deadline(&mut self, sent: &SentList, times: &Times) -> Option<Instant> {
        each!(self, one => one.deadline(sent, times))
    }

    #[inline]
    fn on_deadline(&mut self, sent: &mut SentList, now: Instant) -> Expiry {
        each!(self, one => one.on_deadline(sent, now))
    }

    #[inline]
    fn on_probed(&mut self, again: bool, end: Pos) {
        each!(self, one => one.on_probed(again, end))
    }

    #[inline]
    fn give_up(&mut self, sent: &mut SentList, end: Pos, now: Instant) -> u64 {
        each!(self, one => one.give_up(sent, end, now))
    }

    #[inline]
    fn forward_point(&self, sent: &SentList) -> Option<Pos> {
        each!(self, one => one.forward_point(sent))
    }

    #[inline]
    fn repeats(&self, record: &Sent, now: Instant) -> bool {
        each!(self, one => one.repeats(record, now))
    }
}

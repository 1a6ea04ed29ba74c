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
use crate::one_of::one_of;
use crate::persistence::Persistence;
use crate::pos::Pos;
use crate::profile::RecoveryChoice;
use crate::sent::{Sent, SentList};
use crate::time::Instant;
use alloc::boxed::Box;
use core::ops::Range;

one_of! {
    /// One of the recovery units.
    #[derive(Debug)]
    pub(crate) enum RecoveryUnit as Recovery {
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

    fn name(&self) -> &'static str;
    fn phase(&self) -> Phase;
    fn duplicate_acks(&self) -> u32;
    fn in_flight(&self, sent: &SentList) -> u64;
    fn on_ack(&mut self, sent: &mut SentList, ack: &AckContext, dup_thresh: u32) -> Verdict;
    fn on_timeout(&mut self, sent: &mut SentList) -> u64;
    fn on_undo(&mut self);
    fn next(&self, sent: &SentList, new_data: bool, mss: u32) -> Option<Retransmission>;
    fn on_retransmitted(&mut self, named: &Retransmission, range: Range<Pos>);
    fn has_deadlines(&self) -> bool;
    fn restarts_timer_on_repair(&self) -> bool;
    fn deadline(&mut self, sent: &SentList, times: &Times) -> Option<Instant>;
    fn on_deadline(&mut self, sent: &mut SentList, now: Instant) -> Expiry;
    fn on_probed(&mut self, again: bool, end: Pos);
    fn give_up(&mut self, sent: &mut SentList, end: Pos, now: Instant) -> u64;
    fn forward_point(&self, sent: &SentList) -> Option<Pos>;
    fn repeats(&self, record: &Sent, now: Instant) -> bool;
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

//! The form in which a connection holds each unit: behind a pointer, because the choice is known only when the connection is opened.

use crate::ack_policy::AckPolicy;
use crate::congestion::CongestionControl;
use crate::flow::FlowControl;
use crate::ordering::Ordering;
use crate::pacing::Pacing;
use crate::pos::Pos;
use crate::profile::Profile;
use crate::recovery::Recovery;
use crate::reduction::Reduction;
use crate::rto::RetransmissionTimer;
use crate::slow_start::SlowStart;
use crate::validation::Validation;
use alloc::boxed::Box;

pub(crate) type Congestion = Box<dyn CongestionControl>;
pub(crate) type SlowStartUnit = Box<dyn SlowStart>;
pub(crate) type ValidationUnit = Box<dyn Validation>;
pub(crate) type RecoveryUnit = Box<dyn Recovery>;
pub(crate) type Timer = Box<dyn RetransmissionTimer>;
pub(crate) type ReductionUnit = Box<dyn Reduction>;
pub(crate) type PacingUnit = Option<Box<dyn Pacing>>;
pub(crate) type OrderingUnit = Box<dyn Ordering>;
pub(crate) type Flow = Box<dyn FlowControl>;
pub(crate) type Acks = Box<dyn AckPolicy>;

pub(crate) fn congestion(profile: &Profile) -> Congestion {
    profile.congestion.controller()
}

pub(crate) fn slow_start(profile: &Profile) -> SlowStartUnit {
    profile.slow_start()
}

pub(crate) fn validation(profile: &Profile) -> ValidationUnit {
    profile.validation()
}

pub(crate) fn recovery(profile: &Profile, sack: bool, partial: bool) -> RecoveryUnit {
    profile.recovery(sack, partial)
}

pub(crate) fn timer(profile: &Profile) -> Timer {
    profile.timer()
}

/// A timer to read.
pub(crate) fn times(timer: &Timer) -> &dyn RetransmissionTimer {
    &**timer
}

pub(crate) fn pacing(profile: &Profile) -> PacingUnit {
    profile.pacing()
}

pub(crate) fn ordering(profile: &Profile, next: Pos) -> OrderingUnit {
    profile.ordering(next)
}

pub(crate) fn flow(profile: &Profile) -> Flow {
    profile.flow()
}

pub(crate) fn acks(profile: &Profile) -> Acks {
    profile.ack()
}

//! The form in which a connection holds each unit: behind a pointer, because the choice is known only when the connection is opened.
//!
//! There is a second form of this file for one purpose. The cost of choosing at run time can only be measured against the same code with the
//! choice made by the compiler. With `--cfg fixed_units` the connection holds the units of the profile `classic` themselves, and every call of
//! them is direct. Only `benches/fixed-units` compiles this crate so, for the group `composition` of the benchmarks. Do not use it elsewhere: a
//! profile with other units panics. Units that exist only during a recovery (the reduction, the detectors of `undo`) or with ECN stay behind a
//! pointer there too.

#[cfg(not(fixed_units))]
mod held {
    use crate::ack_policy::AckPolicy;
    use crate::congestion::CongestionControl;
    use crate::flow::FlowControl;
    use crate::ordering::Ordering;
    use crate::pacing::Pacing;
    use crate::pos::Pos;
    use crate::profile::Profile;
    use crate::recovery::Recovery;
    use crate::rto::RetransmissionTimer;
    use crate::slow_start::SlowStart;
    use crate::validation::Validation;
    use alloc::boxed::Box;

    pub(crate) type Congestion = Box<dyn CongestionControl>;
    pub(crate) type SlowStartUnit = Box<dyn SlowStart>;
    pub(crate) type ValidationUnit = Box<dyn Validation>;
    pub(crate) type RecoveryUnit = Box<dyn Recovery>;
    pub(crate) type Timer = Box<dyn RetransmissionTimer>;
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
}

#[cfg(fixed_units)]
mod held {
    use crate::ack_policy::delayed::DelayedAck;
    use crate::congestion::reno::Reno;
    use crate::flow::receive_window::ReceiveWindow;
    use crate::ordering::in_order::InOrder;
    use crate::pacing::Pacing;
    use crate::pos::Pos;
    use crate::profile::{
        AckChoice, FlowChoice, OrderingChoice, PacingChoice, Profile, RecoveryChoice,
        SlowStartChoice, TimerChoice, ValidationChoice,
    };
    use crate::recovery::sack::SackRecovery;
    use crate::rto::RetransmissionTimer;
    use crate::rto::rfc6298::Rfc6298;
    use crate::slow_start::standard::Standard;
    use crate::time::Instant;
    use crate::validation::restart::RestartWindow;

    pub(crate) type Congestion = Reno;
    pub(crate) type SlowStartUnit = Standard;
    pub(crate) type ValidationUnit = RestartWindow;
    pub(crate) type RecoveryUnit = SackRecovery;
    pub(crate) type Timer = Rfc6298;
    pub(crate) type PacingUnit = Option<NoPacing>;
    pub(crate) type OrderingUnit = InOrder;
    pub(crate) type Flow = ReceiveWindow;
    pub(crate) type Acks = DelayedAck;

    /// A type without values, so that the compiler knows that no unit is called.
    #[derive(Debug)]
    pub(crate) enum NoPacing {}

    impl Pacing for NoPacing {
        fn name(&self) -> &'static str {
            match *self {}
        }

        fn release_at(&self) -> Instant {
            match *self {}
        }

        fn hold_until(&mut self, _release: Instant) {
            match *self {}
        }

        fn quantum(&self, _rate: Option<u64>) -> u64 {
            match *self {}
        }

        fn on_sent(&mut self, _now: Instant, _bytes: u64, _rate: Option<u64>) {
            match *self {}
        }
    }

    const OTHER: &str = "the units of this build are fixed, and this is another";

    pub(crate) fn congestion(profile: &Profile) -> Congestion {
        assert_eq!(profile.congestion.name(), "reno", "{OTHER}");
        Reno
    }

    pub(crate) fn slow_start(profile: &Profile) -> SlowStartUnit {
        let SlowStartChoice::Standard(unit) = profile.slow_start else { panic!("{OTHER}") };
        unit
    }

    pub(crate) fn validation(profile: &Profile) -> ValidationUnit {
        assert_eq!(profile.validation, ValidationChoice::RestartWindow, "{OTHER}");
        RestartWindow { initial: profile.initial_window }
    }

    pub(crate) fn recovery(profile: &Profile, _sack: bool, partial: bool) -> RecoveryUnit {
        assert_eq!(profile.recovery, RecoveryChoice::Sack, "{OTHER}");
        assert!(!partial, "{OTHER}");
        SackRecovery::default()
    }

    pub(crate) fn timer(profile: &Profile) -> Timer {
        let TimerChoice::Rfc6298(config) = profile.timer else { panic!("{OTHER}") };
        Rfc6298::new(config)
    }

    pub(crate) fn times(timer: &Timer) -> &dyn RetransmissionTimer {
        timer
    }

    pub(crate) fn pacing(profile: &Profile) -> PacingUnit {
        assert_eq!(profile.pacing, PacingChoice::None, "{OTHER}");
        None
    }

    pub(crate) fn ordering(profile: &Profile, next: Pos) -> OrderingUnit {
        let OrderingChoice::InOrder = profile.ordering else { panic!("{OTHER}") };
        InOrder::new(next)
    }

    pub(crate) fn flow(profile: &Profile) -> Flow {
        let FlowChoice::ReceiveWindow(config) = profile.flow else { panic!("{OTHER}") };
        ReceiveWindow::new(config)
    }

    pub(crate) fn acks(profile: &Profile) -> Acks {
        let AckChoice::Delayed(delay) = profile.ack else { panic!("{OTHER}") };
        DelayedAck::new(delay)
    }
}

pub(crate) use held::*;

/// The traits of the units, for calls that are direct. Through a pointer they need not be in scope.
#[cfg(fixed_units)]
pub(crate) mod direct {
    pub(crate) use crate::ack_policy::AckPolicy as _;
    pub(crate) use crate::congestion::CongestionControl as _;
    pub(crate) use crate::flow::FlowControl as _;
    pub(crate) use crate::ordering::Ordering as _;
    pub(crate) use crate::pacing::Pacing as _;
    pub(crate) use crate::recovery::Recovery as _;
    pub(crate) use crate::rto::RetransmissionTimer as _;
    pub(crate) use crate::slow_start::SlowStart as _;
    pub(crate) use crate::validation::Validation as _;
}

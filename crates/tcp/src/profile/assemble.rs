//! From the choices to the units themselves.

use super::{
    AckChoice, EcnChoice, FlowChoice, HoleChoice, OrderingChoice, PacingChoice, Profile,
    RecoveryChoice, ReductionChoice, SlowStartChoice, ValidationChoice,
};
use crate::ack_policy::AckPolicy;
use crate::ack_policy::delayed::DelayedAck;
use crate::ack_policy::immediate::Immediate;
use crate::ack_policy::quick::QuickAck;
use crate::adu::AduConfig;
use crate::ecn::EcnFeedback;
use crate::ecn::classic::Classic;
use crate::ecn::per_packet::PerPacket;
use crate::flow::FlowControl;
use crate::flow::fixed::FixedWindow;
use crate::flow::none::NoFlowControl;
use crate::flow::receive_window::ReceiveWindow;
use crate::ordering::Ordering;
use crate::ordering::adu::Units;
use crate::ordering::holed::Holed;
use crate::ordering::in_order::InOrder;
use crate::ordering::unordered::Unordered;
use crate::pacing::{Pacing, RatePacing};
use crate::pos::Pos;
use crate::recovery::Recovery;
use crate::recovery::giving_up::GivingUp;
use crate::recovery::go_back_n::GoBackN;
use crate::recovery::newreno::NewReno;
use crate::recovery::rack_tlp::RackTlp;
use crate::recovery::reno::Reno;
use crate::recovery::sack::SackRecovery;
use crate::reduction::Reduction;
use crate::reduction::prr::Prr;
use crate::rto::RetransmissionTimer;
use crate::slow_start::SlowStart;
use crate::slow_start::hystart::HyStart;
use crate::slow_start::hystart_pp::HyStartPp;
use crate::slow_start::search::Search;
use crate::validation::Validation;
use crate::validation::cwv::Cwv;
use crate::validation::keep::KeepWindow;
use crate::validation::restart::RestartWindow;
use alloc::boxed::Box;

impl Profile {
    pub(crate) fn slow_start(&self) -> Box<dyn SlowStart> {
        match self.slow_start {
            SlowStartChoice::Standard(config) => Box::new(config),
            SlowStartChoice::Limited(config) => Box::new(config),
            SlowStartChoice::HyStartPp => {
                Box::new(HyStartPp::new(self.pacing != PacingChoice::None))
            }
            SlowStartChoice::HyStart => Box::new(HyStart::new(self.pacing != PacingChoice::None)),
            SlowStartChoice::Search => Box::new(Search::default()),
        }
    }

    /// Whether partial reliability is offered to the peer: an end that gives up data can also do
    /// without it.
    pub(crate) fn offers_partial(&self) -> bool {
        self.persistence.is_some() || self.holes != HoleChoice::Wait
    }

    pub(crate) fn recovery(&self, sack_agreed: bool, partial_agreed: bool) -> Box<dyn Recovery> {
        let ordinary = self.ordinary_recovery(sack_agreed);
        match self.persistence.filter(|_| partial_agreed) {
            Some(persistence) => Box::new(GivingUp::new(ordinary, persistence)),
            None => ordinary,
        }
    }

    fn ordinary_recovery(&self, sack_agreed: bool) -> Box<dyn Recovery> {
        match self.recovery {
            RecoveryChoice::Sack if sack_agreed => Box::new(SackRecovery::default()),
            RecoveryChoice::RackTlp if sack_agreed => Box::new(RackTlp::default()),
            RecoveryChoice::Sack | RecoveryChoice::RackTlp | RecoveryChoice::NewReno => {
                Box::new(NewReno::default())
            }
            RecoveryChoice::Reno => Box::new(Reno::default()),
            RecoveryChoice::GoBackN => Box::new(GoBackN::default()),
        }
    }

    pub(crate) fn timer(&self) -> Box<dyn RetransmissionTimer> {
        self.timer.timer()
    }

    /// A stream in order, with holes where there may be any.
    fn stream(&self, next: Pos) -> Box<dyn Ordering> {
        if self.offers_partial() {
            Box::new(Holed::new(next))
        } else {
            Box::new(InOrder::new(next))
        }
    }

    pub(crate) fn ordering(&self, next: Pos) -> Box<dyn Ordering> {
        match self.ordering {
            OrderingChoice::InOrder => self.stream(next),
            OrderingChoice::Unordered => Box::new(Unordered::new(next)),
            OrderingChoice::Units(AduConfig { max, ordered: true }) => {
                Box::new(Units::new(self.stream(next), max))
            }
            OrderingChoice::Units(AduConfig { max, ordered: false }) => {
                Box::new(Units::new(Box::new(Unordered::new(next)), max))
            }
        }
    }

    pub(crate) fn flow(&self) -> Box<dyn FlowControl> {
        match self.flow {
            FlowChoice::ReceiveWindow(config) => Box::new(ReceiveWindow::new(config)),
            FlowChoice::Fixed(size) => Box::new(FixedWindow(size)),
            FlowChoice::None { memory } => Box::new(NoFlowControl::new(memory)),
        }
    }

    pub(crate) fn ack(&self) -> Box<dyn AckPolicy> {
        match self.ack {
            AckChoice::Delayed(delay) => Box::new(DelayedAck::new(delay)),
            AckChoice::Immediate => Box::new(Immediate),
            AckChoice::Quick(max) => Box::new(QuickAck::new(max)),
        }
    }

    pub(crate) fn reduction(&self) -> Option<Box<dyn Reduction>> {
        match self.reduction {
            ReductionChoice::AtOnce => None,
            ReductionChoice::Prr => Some(Box::new(Prr::default())),
        }
    }

    pub(crate) fn validation(&self) -> Box<dyn Validation> {
        match self.validation {
            ValidationChoice::Keep => Box::new(KeepWindow),
            ValidationChoice::RestartWindow => {
                Box::new(RestartWindow { initial: self.initial_window })
            }
            ValidationChoice::Cwv => Box::new(Cwv::new(self.initial_window)),
        }
    }

    pub(crate) fn ecn_feedback(&self) -> Option<Box<dyn EcnFeedback>> {
        match self.ecn {
            EcnChoice::Off => None,
            EcnChoice::Classic(_) | EcnChoice::Accurate(_) => Some(Box::new(Classic::default())),
            EcnChoice::PerPacket(_) => Some(Box::new(PerPacket::default())),
        }
    }

    pub(crate) fn pacing(&self) -> Option<Box<dyn Pacing>> {
        match self.pacing {
            PacingChoice::None => None,
            PacingChoice::Rate => Some(Box::new(RatePacing::default())),
        }
    }
}

//! From the choices to the units themselves.

use super::{HoleChoice, PacingChoice, Profile, ReductionChoice};
use crate::ordering::OrderingUnit;
use crate::pacing::RatePacing;
use crate::pos::Pos;
use crate::recovery::RecoveryUnit;
use crate::reduction::Prr;
use crate::slow_start::SlowStartUnit;
use crate::validation::ValidationUnit;

impl Profile {
    pub(crate) fn slow_start(&self) -> SlowStartUnit {
        SlowStartUnit::new(self.slow_start, self.pacing != PacingChoice::None)
    }

    /// Whether partial reliability is offered to the peer: an end that gives up data can also do
    /// without it.
    pub(crate) fn offers_partial(&self) -> bool {
        self.persistence.is_some() || self.holes != HoleChoice::Wait
    }

    pub(crate) fn recovery(&self, sack_agreed: bool, partial_agreed: bool) -> RecoveryUnit {
        let persistence = self.persistence.filter(|_| partial_agreed);
        RecoveryUnit::new(self.recovery, sack_agreed, persistence)
    }

    pub(crate) fn ordering(&self, next: Pos) -> OrderingUnit {
        OrderingUnit::new(self.ordering, self.offers_partial(), next)
    }

    pub(crate) fn reduction(&self) -> Option<Prr> {
        match self.reduction {
            ReductionChoice::AtOnce => None,
            ReductionChoice::Prr => Some(Prr::default()),
        }
    }

    pub(crate) fn validation(&self) -> ValidationUnit {
        ValidationUnit::new(self.validation, self.initial_window)
    }

    pub(crate) fn pacing(&self) -> Option<RatePacing> {
        match self.pacing {
            PacingChoice::None => None,
            PacingChoice::Rate => Some(RatePacing::with_bursts(self.congestion.pacing_burst())),
        }
    }
}

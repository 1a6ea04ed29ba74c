//! The controller of a connection, whichever it is.

use super::{
    CongestionControl, CongestionEvent, Takeover, Window, bbr, bbr3, bic, cubic, dctcp, fast,
    highspeed, htcp, ledbat, ledbat_plus_plus, lp, ltcp, multcp, nice, none, prague, reno,
    scalable, vegas, westwood,
};
use crate::ack_context::AckContext;
use crate::rate::LostTransmission;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;

/// The controller of a connection: one of those here, or a program's own.
#[derive(Debug)]
pub struct Controller(pub(super) Kind);

/// One of the controllers. The larger ones are boxed, so that a connection has no room for those that it does not use.
#[derive(Debug)]
pub(super) enum Kind {
    NoCongestionControl(none::NoCongestionControl),
    Reno(reno::Reno),
    Cubic(Box<cubic::Controller>),
    Ltcp(Box<ltcp::Controller>),
    HighSpeed(highspeed::HighSpeed),
    Scalable(Box<scalable::Controller>),
    Bic(Box<bic::Controller>),
    HTcp(Box<htcp::Controller>),
    MulTcp(Box<multcp::Controller>),
    Westwood(Box<westwood::Controller>),
    Vegas(Box<vegas::Controller>),
    Fast(Box<fast::Controller>),
    Nice(Box<nice::Controller>),
    Lp(Box<lp::Controller>),
    Ledbat(Box<ledbat::Controller>),
    LedbatPlusPlus(Box<ledbat_plus_plus::Controller>),
    Dctcp(Box<dctcp::Controller>),
    Prague(Box<prague::Controller>),
    Bbr(Box<bbr::Controller>),
    Bbr3(Box<bbr3::Controller>),
    /// A program's own.
    Custom(Box<dyn CongestionControl>),
}

impl Controller {
    /// A program's own.
    pub fn custom(controller: impl CongestionControl + 'static) -> Self {
        Controller(Kind::Custom(Box::new(controller)))
    }
}

/// Calls whichever unit it is.
macro_rules! each {
    ($self:expr, $unit:ident => $call:expr) => {
        match $self {
            Kind::NoCongestionControl($unit) => $call,
            Kind::Reno($unit) => $call,
            Kind::Cubic($unit) => $call,
            Kind::Ltcp($unit) => $call,
            Kind::HighSpeed($unit) => $call,
            Kind::Scalable($unit) => $call,
            Kind::Bic($unit) => $call,
            Kind::HTcp($unit) => $call,
            Kind::MulTcp($unit) => $call,
            Kind::Westwood($unit) => $call,
            Kind::Vegas($unit) => $call,
            Kind::Fast($unit) => $call,
            Kind::Nice($unit) => $call,
            Kind::Lp($unit) => $call,
            Kind::Ledbat($unit) => $call,
            Kind::LedbatPlusPlus($unit) => $call,
            Kind::Dctcp($unit) => $call,
            Kind::Prague($unit) => $call,
            Kind::Bbr($unit) => $call,
            Kind::Bbr3($unit) => $call,
            Kind::Custom($unit) => $call,
        }
    };
}

impl CongestionControl for Controller {
    #[inline]
    fn name(&self) -> &'static str {
        each!(&self.0, one => one.name())
    }

    #[inline]
    fn on_start(&mut self, window: &mut Window, now: Instant) {
        each!(&mut self.0, one => one.on_start(window, now))
    }

    #[inline]
    fn on_takeover(&mut self, window: &mut Window, takeover: &Takeover) {
        each!(&mut self.0, one => one.on_takeover(window, takeover))
    }

    #[inline]
    fn on_leave(&mut self, window: &mut Window) {
        each!(&mut self.0, one => one.on_leave(window))
    }

    #[inline]
    fn on_lost(&mut self, window: &mut Window, lost: &LostTransmission) {
        each!(&mut self.0, one => one.on_lost(window, lost))
    }

    #[inline]
    fn on_sample(&mut self, window: &mut Window, ack: &AckContext) {
        each!(&mut self.0, one => one.on_sample(window, ack))
    }

    #[inline]
    fn has_own_slow_start(&self) -> bool {
        each!(&self.0, one => one.has_own_slow_start())
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, acked: u64, ack: &AckContext) {
        each!(&mut self.0, one => one.on_ack(window, acked, ack))
    }

    #[inline]
    fn ssthresh(&mut self, window: &Window, flight: u64, now: Instant) -> u64 {
        each!(&mut self.0, one => one.ssthresh(window, flight, now))
    }

    #[inline]
    fn has_own_recovery(&self) -> bool {
        each!(&self.0, one => one.has_own_recovery())
    }

    #[inline]
    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, now: Instant) {
        each!(&mut self.0, one => one.on_event(window, event, now))
    }

    #[inline]
    fn on_undo(&mut self, window: &mut Window, prior: Window, now: Instant) {
        each!(&mut self.0, one => one.on_undo(window, prior, now))
    }

    #[inline]
    fn pacing_rate(&self, window: &Window) -> Option<u64> {
        each!(&self.0, one => one.pacing_rate(window))
    }

    #[inline]
    fn needs_pacing(&self) -> bool {
        each!(&self.0, one => one.needs_pacing())
    }

    #[inline]
    fn counts_acknowledged_bytes(&self) -> bool {
        each!(&self.0, one => one.counts_acknowledged_bytes())
    }

    #[inline]
    fn answers_marks(&self) -> bool {
        each!(&self.0, one => one.answers_marks())
    }

    #[inline]
    fn is_scalable(&self) -> bool {
        each!(&self.0, one => one.is_scalable())
    }

    #[inline]
    fn pacing_burst(&self) -> Duration {
        each!(&self.0, one => one.pacing_burst())
    }
}

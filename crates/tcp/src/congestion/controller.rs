//! The controller of a connection, whichever it is.

use super::{
    CongestionControl, CongestionEvent, Takeover, Window, bbr, bbr3, bic, cubic, dctcp, fast,
    highspeed, htcp, ledbat, ledbat_plus_plus, lp, ltcp, multcp, nice, none, prague, reno,
    scalable, vegas, westwood,
};
use crate::ack_context::AckContext;
use crate::one_of::one_of;
use crate::rate::LostTransmission;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;

/// The controller of a connection: one of those here, or a program's own.
#[derive(Debug)]
pub struct Controller(pub(super) Kind);

one_of! {
    /// One of the controllers. The larger ones are boxed, so that a connection has no room for those that it does not use.
    #[derive(Debug)]
    pub(super) enum Kind as CongestionControl for Controller {
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

    fn name(&self) -> &'static str;
    fn on_start(&mut self, window: &mut Window, now: Instant);
    fn on_takeover(&mut self, window: &mut Window, takeover: &Takeover);
    fn on_leave(&mut self, window: &mut Window);
    fn on_lost(&mut self, window: &mut Window, lost: &LostTransmission);
    fn on_sample(&mut self, window: &mut Window, ack: &AckContext);
    fn has_own_slow_start(&self) -> bool;
    fn on_ack(&mut self, window: &mut Window, acked: u64, ack: &AckContext);
    fn ssthresh(&mut self, window: &Window, flight: u64, now: Instant) -> u64;
    fn has_own_recovery(&self) -> bool;
    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, now: Instant);
    fn on_undo(&mut self, window: &mut Window, prior: Window, now: Instant);
    fn pacing_rate(&self, window: &Window) -> Option<u64>;
    fn needs_pacing(&self) -> bool;
    fn counts_acknowledged_bytes(&self) -> bool;
    fn answers_marks(&self) -> bool;
    fn is_scalable(&self) -> bool;
    fn pacing_burst(&self) -> Duration;
}

impl Controller {
    /// A program's own.
    pub fn custom(controller: impl CongestionControl + 'static) -> Self {
        Controller(Kind::Custom(Box::new(controller)))
    }
}

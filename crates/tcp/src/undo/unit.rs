//! A detector of spurious reductions, whichever it is.

use super::dsack::Dsack;
use super::eifel::Eifel;
use super::f_rto::FRto;
use super::{Cause, Detector};
use crate::ack_context::AckContext;
use crate::pos::Pos;

/// One of the detectors.
#[derive(Debug)]
pub(crate) enum DetectorUnit {
    /// RFC 3522.
    Eifel(Eifel),
    /// RFC 3708.
    Dsack(Dsack),
    /// RFC 5682.
    FRto(FRto),
}

/// Calls whichever unit it is.
macro_rules! each {
    ($self:expr, $unit:ident => $call:expr) => {
        match $self {
            DetectorUnit::Eifel($unit) => $call,
            DetectorUnit::Dsack($unit) => $call,
            DetectorUnit::FRto($unit) => $call,
        }
    };
}

impl Detector for DetectorUnit {
    #[inline]
    fn on_reduction(&mut self, cause: Cause, nxt: Pos) {
        each!(self, one => one.on_reduction(cause, nxt))
    }

    #[inline]
    fn on_retransmission(&mut self, bytes: u64, stamp: Option<u32>) {
        each!(self, one => one.on_retransmission(bytes, stamp))
    }

    #[inline]
    fn on_ack(&mut self, ack: &AckContext) -> bool {
        each!(self, one => one.on_ack(ack))
    }

    #[inline]
    fn wants_new_data(&self) -> bool {
        each!(self, one => one.wants_new_data())
    }

    #[inline]
    fn on_new_data(&mut self) {
        each!(self, one => one.on_new_data())
    }

    #[inline]
    fn no_new_data(&mut self) {
        each!(self, one => one.no_new_data())
    }
}

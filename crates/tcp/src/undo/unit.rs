//! A detector of spurious reductions, whichever it is.

use super::dsack::Dsack;
use super::eifel::Eifel;
use super::f_rto::FRto;
use super::{Cause, Detector};
use crate::ack_context::AckContext;
use crate::one_of::one_of;
use crate::pos::Pos;

one_of! {
    /// One of the detectors.
    #[derive(Debug)]
    pub(crate) enum DetectorUnit as Detector {
        /// RFC 3522.
        Eifel(Eifel),
        /// RFC 3708.
        Dsack(Dsack),
        /// RFC 5682.
        FRto(FRto),
    }

    fn on_reduction(&mut self, cause: Cause, nxt: Pos);
    fn on_retransmission(&mut self, bytes: u64, stamp: Option<u32>);
    fn on_ack(&mut self, ack: &AckContext) -> bool;
    fn wants_new_data(&self) -> bool;
    fn on_new_data(&mut self);
    fn no_new_data(&mut self);
}

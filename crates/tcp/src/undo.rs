//! Undo: detects spurious losses, and takes their reductions back.
//!
//! Reordering, or a sudden delay, looks like a loss until the peer's answer to the retransmission arrives. A detector looks for
//! information that only the answer to the *original* transmission can have. When one is certain, the window returns to its earlier
//! value, and data that was marked lost is in flight again.

mod dsack;
mod eifel;
mod f_rto;
mod unit;

use crate::ack_context::AckContext;
use crate::pos::Pos;
use core::fmt;
use smallvec::SmallVec;
pub(crate) use unit::DetectorUnit;

/// Why the window was reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Acknowledgements reported a loss.
    Acknowledgements,
    /// The retransmission timer expired.
    Timeout,
}

/// A detector of reductions that were for nothing.
pub(crate) trait Detector: fmt::Debug + Send {
    /// The window is reduced; `nxt` is SND.NXT.
    fn on_reduction(&mut self, cause: Cause, nxt: Pos);

    /// `bytes` leave again, with this timestamp if there are timestamps.
    fn on_retransmission(&mut self, bytes: u64, stamp: Option<u32>);

    /// An acknowledgement. Returns whether it is now certain that the reduction was for nothing.
    fn on_ack(&mut self, ack: &AckContext) -> bool;

    /// Whether new data should leave before any retransmission, to learn more.
    fn wants_new_data(&self) -> bool {
        false
    }

    /// New data left.
    fn on_new_data(&mut self) {}

    /// There is no new data to send.
    fn no_new_data(&mut self) {}
}

/// Which detectors watch; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndoConfig {
    /// By timestamps (RFC 3522).
    pub eifel: bool,
    /// By reports of data that arrived twice (RFC 3708).
    pub dsack: bool,
    /// After a timeout, by two new segments (RFC 5682).
    pub f_rto: bool,
}

transom_base::setters! {
    const UndoConfig:
    with_eifel = eifel: bool,
    with_dsack = dsack: bool,
    with_f_rto = f_rto: bool,
}

impl UndoConfig {
    /// All of them.
    pub(crate) const ALL: UndoConfig = UndoConfig { eifel: true, dsack: true, f_rto: true };
}

/// The detectors that watch one reduction.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    detectors: SmallVec<[DetectorUnit; 3]>,
}

impl Watch {
    /// These detectors.
    pub(crate) fn new(config: UndoConfig) -> Self {
        let UndoConfig { eifel, dsack, f_rto } = config;
        let mut detectors = SmallVec::new();
        if eifel {
            detectors.push(DetectorUnit::Eifel(eifel::Eifel::default()));
        }
        if dsack {
            detectors.push(DetectorUnit::Dsack(dsack::Dsack::default()));
        }
        if f_rto {
            detectors.push(DetectorUnit::FRto(f_rto::FRto::default()));
        }
        Watch { detectors }
    }

    /// Whether there is no detector.
    pub(crate) fn is_empty(&self) -> bool {
        self.detectors.is_empty()
    }
}

/// All of them, asked as one.
impl Detector for Watch {
    fn on_reduction(&mut self, cause: Cause, nxt: Pos) {
        self.detectors.iter_mut().for_each(|one| one.on_reduction(cause, nxt));
    }

    fn on_retransmission(&mut self, bytes: u64, stamp: Option<u32>) {
        self.detectors.iter_mut().for_each(|one| one.on_retransmission(bytes, stamp));
    }

    fn on_ack(&mut self, ack: &AckContext) -> bool {
        // Every one has to see it.
        let mut found = false;
        for detector in &mut self.detectors {
            found |= detector.on_ack(ack);
        }
        found
    }

    fn wants_new_data(&self) -> bool {
        self.detectors.iter().any(|one| one.wants_new_data())
    }

    fn on_new_data(&mut self) {
        self.detectors.iter_mut().for_each(|one| one.on_new_data());
    }

    fn no_new_data(&mut self) {
        self.detectors.iter_mut().for_each(|one| one.no_new_data());
    }
}

//! Asynchronous reports of a connection to its application (RFC 9293 section 3.9.1.8).

use super::{Connection, IcmpError};

/// A report about a connection that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// Urgent data is announced, or more of it: this many bytes are left up to its end [MUST-32] [MUST-33].
    Urgent(u64),
    /// The network says this of the connection's packets [MUST-47].
    SoftError(IcmpError),
    /// The oldest segment has been retransmitted this often, R1 times at least, without an answer [SHLD-9]. It may be a SYN [MUST-22].
    Retransmitting(u32),
}

/// The reports that the application has not read, and whether calls report soft errors: bits, as every connection has them. A report that no
/// longer applies when the application asks is dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reports(u8);

impl Reports {
    pub(super) const BY_CALLS: u8 = 1;
    pub(super) const URGENT: u8 = 2;
    pub(super) const RETRANSMITTING: u8 = 4;

    pub(super) fn new(by_calls: bool) -> Self {
        Reports(if by_calls { Reports::BY_CALLS } else { 0 })
    }

    pub(super) fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    pub(super) fn set(&mut self, bit: u8, on: bool) {
        self.0 = if on { self.0 | bit } else { self.0 & !bit };
    }

    fn take(&mut self, bit: u8) -> bool {
        let was = self.has(bit);
        self.set(bit, false);
        was
    }
}

impl Connection {
    /// Takes the next report. Each is given once: urgent data again when its end moves, retransmission again after a pause. Reports are only
    /// made on request [SHLD-20].
    pub fn take_report(&mut self) -> Option<Report> {
        if self.notices.reports.take(Reports::URGENT)
            && let Some(left) = self.urgent_bytes()
        {
            return Some(Report::Urgent(left));
        }
        if let Some(error) = self.take_soft_error() {
            return Some(Report::SoftError(error));
        }
        let told = self.notices.reports.take(Reports::RETRANSMITTING);
        let retransmits = self.snd.retransmits;
        (told && retransmits >= self.profile.r1).then_some(Report::Retransmitting(retransmits))
    }
}

//! The partial reliability option: an experiment of this project's own, in the shared space of RFC 6994.
//!
//! ```text
//! in a SYN        253, 4, 0x50, 0x52                 data may be given up, and its loss be told
//! later           253, 8, 0x50, 0x52, four bytes     nothing before this sequence number will be sent (again)
//! ```
//!
//! It is for TCP what Forward-TSN-Supported and FORWARD TSN are for SCTP (RFC 3758 sections 3.1 and 3.2). The experiment
//! identifier is not registered with IANA.

use crate::Seq;

/// The experiment identifier (RFC 6994 section 3): "PR", after SCTP's PR-SCTP.
const EXPERIMENT: [u8; 2] = [0x50, 0x52];

/// The partial reliability option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartialReliability {
    /// On SYN segments: this end takes forward points.
    Permitted,
    /// On other segments: nothing before this sequence number will be sent, or sent again.
    ForwardPoint(Seq),
}

impl PartialReliability {
    /// The kind: one of the two that experiments share (RFC 6994).
    pub(super) const KIND: u8 = 253;

    /// Reads what follows kind and length; `None` if it is another experiment's, or of another length.
    pub(super) fn decode(data: &[u8]) -> Option<Self> {
        match *data.strip_prefix(&EXPERIMENT)? {
            [] => Some(PartialReliability::Permitted),
            [s0, s1, s2, s3] => {
                let seq = Seq::new(u32::from_be_bytes([s0, s1, s2, s3]));
                Some(PartialReliability::ForwardPoint(seq))
            }
            _ => None,
        }
    }

    /// The option's length with kind and length, a multiple of four.
    pub(super) const fn option_len(self) -> u8 {
        match self {
            PartialReliability::Permitted => 4,
            PartialReliability::ForwardPoint(_) => 8,
        }
    }

    /// Kind, length and experiment identifier.
    pub(super) const fn head(self) -> [u8; 4] {
        [Self::KIND, self.option_len(), EXPERIMENT[0], EXPERIMENT[1]]
    }

    /// The forward point behind them.
    pub(super) fn forward_point(self) -> Option<Seq> {
        match self {
            PartialReliability::Permitted => None,
            PartialReliability::ForwardPoint(seq) => Some(seq),
        }
    }
}

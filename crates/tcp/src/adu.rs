//! Application data units (ADUs) in a byte stream: application level framing (Clark and Tennenhouse, "Architectural Considerations for a
//! New Generation of Protocols", SIGCOMM 1990, section 5) over an unchanged TCP.
//!
//! TCP keeps no boundaries: offloads, middleboxes and retransmissions divide the stream in new ways. So the boundaries are in the stream
//! itself, as in Minion's uCOBS (Nowlan et al., "Fitting Square Pegs Through Round Pipes", NSDI 2012, section 5). A unit is encoded with
//! Consistent Overhead Byte Stuffing (Cheshire and Baker, SIGCOMM 1997). The encoding has no zero byte and costs one byte in 254. A zero
//! precedes and follows each unit. Data between two zeros is one whole unit, whatever part of the stream the receiver holds. Any program
//! can read and write the encoding over any TCP.
//!
//! `encode_unit` writes a unit for the stream, `Assembler` makes units of parts of the stream as they arrive.

mod assembler;
pub(crate) mod encoding;
mod ready;

pub(crate) use assembler::Assembler;

use crate::profile::ProfileError;

/// How units are taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AduConfig {
    /// The largest unit, in bytes before encoding. Larger ones are neither sent nor delivered.
    pub max: usize,
    /// Whether they are delivered in the order in which they were sent, or each as soon as all of it is there.
    pub ordered: bool,
}

transom_base::setters! {
    const AduConfig:
    with_max = max: usize,
    with_ordered = ordered: bool,
}

impl Default for AduConfig {
    /// Units of up to 16 KiB, in order.
    fn default() -> Self {
        AduConfig { max: 16 * 1024, ordered: true }
    }
}

impl AduConfig {
    /// The smallest receive buffer with which units of the largest size do not stop: while one waits to be complete there has to be
    /// as much room again for what completes it.
    pub(crate) fn least_receive_buffer(&self) -> usize {
        self.least_send_buffer().saturating_mul(2)
    }

    /// The smallest send buffer that takes a unit of the largest size.
    pub(crate) fn least_send_buffer(&self) -> usize {
        encoding::max_encoded_len(self.max)
    }

    /// Whether buffers of these sizes will do.
    pub(crate) fn check(&self, send: usize, receive: usize) -> Result<(), ProfileError> {
        let max = self.max;
        for (buffer, has, least) in [
            ("send", send, self.least_send_buffer()),
            ("receive", receive, self.least_receive_buffer()),
        ] {
            if has < least {
                return Err(ProfileError::UnitTooLarge { max, buffer, has, least });
            }
        }
        Ok(())
    }
}

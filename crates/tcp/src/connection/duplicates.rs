//! Duplicates before they mean a loss to the connection: `control::reordering` says how many are needed, here is what only a connection knows.

use super::Connection;
use super::output::Hold;

impl Connection {
    /// Duplicates that mean a loss to TCP.
    pub(super) fn own_loss_threshold(&self) -> u32 {
        self.control.own_dupthresh(self.snd.buffer.end(), || self.is_starved())
    }

    /// Whether there is no new data that would cause more duplicates (RFC 5827 section 3.2).
    pub(super) fn is_starved(&self) -> bool {
        let mss = u64::from(self.mss());
        matches!(self.new_data(mss, mss), Err(Hold::NoData | Hold::PeerWindow))
    }
}

//! The echo of DCTCP (RFC 8257 section 3.2): whether the last data was marked, packet by packet.
//!
//! An acknowledgement covers several packets. So when the mark changes, packets received before the change are acknowledged at
//! once with their echo. From this the sender knows how many bytes were marked.

use super::EcnFeedback;

/// DCTCP.CE of RFC 8257.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PerPacket {
    marked: bool,
}

impl EcnFeedback for PerPacket {
    fn on_data(&mut self, marked: bool, _reduced: bool) -> bool {
        core::mem::replace(&mut self.marked, marked) != marked
    }

    fn echo(&self) -> bool {
        self.marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 1 of RFC 8257.
    #[test]
    fn a_change_is_told_at_once() {
        let mut echo = PerPacket::default();
        let steps = [false, true, true, false, false, true].map(|marked| {
            let at_once = echo.on_data(marked, true);
            (at_once, echo.echo())
        });
        let expected = [
            (false, false),
            (true, true),
            (false, true),
            (true, false),
            (false, false),
            (true, true),
        ];
        assert_eq!(steps, expected);
    }
}

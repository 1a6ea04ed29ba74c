//! The echo of RFC 3168 section 6.1.3: from the first mark until the sender says that it has reacted.

use super::EcnFeedback;

/// One mark, echoed until CWR arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classic {
    echo: bool,
}

impl EcnFeedback for Classic {
    fn on_data(&mut self, marked: bool, reduced: bool) -> bool {
        // A mark on the packet with CWR is a new one.
        self.echo = marked || (self.echo && !reduced);
        false
    }

    fn echo(&self) -> bool {
        self.echo
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_echo_lasts_until_the_sender_has_reacted() {
        let mut echo = Classic::default();
        let mut on = |marked, reduced| {
            assert!(!echo.on_data(marked, reduced), "no hurry");
            echo.echo()
        };
        assert!(!on(false, false));
        assert!(on(true, false));
        assert!(on(false, false), "still");
        assert!(!on(false, true));
        assert!(on(true, true), "marked anew");
        assert!(!on(false, true));
    }
}

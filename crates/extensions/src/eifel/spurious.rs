//! How a timeout is seen to have been spurious: the segment for which the timer expired had not been lost, only late.
//!
//! A view allows three ways of detection; any of them is enough:
//! - The acknowledgement comes less than the least round-trip time after the segment left again: it cannot be for that transmission.
//! - The receiver tells that the segment arrived twice (DSACK, RFC 2883). If what was late was the acknowledgement it comes at once, else
//!   a round trip later.
//! - TCP itself has found out, by whichever detector its profile has, and taken its reduction back.
//!
//! The first errs only where the path has become shorter than it ever was: then an acknowledgement of the second transmission may come
//! that soon, too.

use transom_tcp::Pos;
use transom_tcp::extension::{Occasion, View, Wake};
use transom_tcp::time::{Duration, Instant};

/// The segment for which the timer last expired, and its state.
#[derive(Clone, Copy, Debug)]
struct Suspect {
    start: Pos,
    first_sent: Instant,
    /// When it left again, the last time.
    again: Option<Instant>,
    /// When it was acknowledged.
    acked: Option<Instant>,
    /// The reductions that TCP had undone by then.
    undone: u64,
}

/// Watches the timeouts of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watch {
    suspect: Option<Suspect>,
}

impl Watch {
    /// Processes an occasion. The extension has to be woken for [`Wake::TIMEOUT`], [`Wake::SEND`], [`Wake::ACK`] and
    /// [`Wake::DUPLICATE_ACK`]. If it shows that the last timeout was spurious, returns the time from the segment's first
    /// transmission to its acknowledgement. Once for each timeout.
    pub(crate) fn follow(&mut self, occasion: &Occasion, view: &View<'_>) -> Option<Duration> {
        if occasion.what.contains(Wake::TIMEOUT) {
            // What leaves again is the oldest.
            self.suspect = view.messages().next().map(|message| Suspect {
                start: message.range.start,
                first_sent: message.first_sent,
                again: None,
                acked: None,
                undone: view.counters().spurious_reductions,
            });
        }
        let suspect = self.suspect.as_mut()?;
        if occasion.sent.as_ref().is_some_and(|sent| sent.contains(&suspect.start)) {
            suspect.again = Some(occasion.now);
        }
        let ack = occasion.ack.as_ref()?;
        let mut too_soon = false;
        if ack.ack > suspect.start && suspect.acked.is_none() {
            suspect.acked = Some(occasion.now);
            let since = suspect.again.map(|again| occasion.now.since(again));
            too_soon = since.zip(view.min_rtt()).is_some_and(|(since, least)| since < least);
        }
        let acked = suspect.acked?;
        let twice = ack.duplicated.as_ref().is_some_and(|twice| twice.contains(&suspect.start));
        let undone = view.counters().spurious_reductions > suspect.undone;
        if too_soon || twice || undone {
            let took = acked.since(suspect.first_sent);
            self.suspect = None;
            return Some(took);
        }
        None
    }
}

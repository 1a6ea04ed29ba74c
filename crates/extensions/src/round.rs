//! Rounds and samples for extensions that measure: the same whether they are woken for every transmission, every acknowledgement or once
//! each round, because what has arrived since the last time is read from the ack list.

use transom_tcp::Pos;
use transom_tcp::extension::{Ack, View};
use transom_tcp::time::Duration;

/// Follows the rounds of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    /// SND.NXT at the beginning of the present round.
    end: Pos,
    /// Acknowledgements processed.
    seen: u64,
    /// The least sample of this round.
    least: Option<Duration>,
}

/// An item of the history since the last call, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// The next acknowledgement is beyond the data that was outstanding at the beginning of the round: the round has ended. With that acknowledgement
    /// and the least round-trip time of the round, its own sample included; `None` without a sample.
    RoundOver(&'a Ack, Option<Duration>),
    /// An acknowledgement.
    Ack(&'a Ack),
}

impl Rounds {
    /// From now on.
    pub(crate) fn begin(&mut self, view: &View<'_>) {
        *self = Rounds { end: view.snd_nxt(), seen: view.acks_seen(), least: None };
    }

    /// Processes the history since the last call.
    pub(crate) fn follow(&mut self, view: &View<'_>, mut each: impl FnMut(Step<'_>)) {
        let new = usize::try_from(view.acks_seen() - self.seen).unwrap_or(usize::MAX);
        self.seen = view.acks_seen();
        for ack in view.last_acks(new) {
            self.least = match (self.least, ack.rtt) {
                (Some(least), Some(rtt)) => Some(least.min(rtt)),
                (least, rtt) => least.or(rtt),
            };
            if ack.ack > self.end {
                self.end = view.snd_nxt();
                each(Step::RoundOver(ack, self.least.take()));
            }
            each(Step::Ack(ack));
        }
    }

    /// Processes the history since the last call, and drops its round-trip times: the round continues with later ones. Returns whether a round ended.
    pub(crate) fn pass(&mut self, view: &View<'_>, mut each: impl FnMut(&Ack)) -> bool {
        let mut over = false;
        self.follow(view, |step| match step {
            Step::RoundOver(..) => over = true,
            Step::Ack(ack) => each(ack),
        });
        self.least = None;
        over
    }
}

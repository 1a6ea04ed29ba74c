//! An extension that requests more than TCP's own values, without effect. It sets the variables as in figure 3 of icTCP.
//!
//! It shows the purpose of the safe ranges. In a simulation without them (the word `unconstrained`), flows with it take bandwidth from
//! others. Otherwise they are plain TCP, except where Table 1 leaves a choice: dupthresh.
//!
//! Differences from the figure, and choices that it leaves open:
//! - The amounts are parameters, and several variables can be set at once; the paper has one amount for each, and one variable in each panel.
//! - The requests are made again at each acknowledgement, duplicate, loss and timeout, from TCP's own values then. dupthresh is drawn evenly
//!   from 1 to the parameter; the paper only says "below and above three".
//! - The RTO stays at the first SRTT + RTTVAR that the extension sees.

use crate::catalogue::{Entry, choice};
use crate::scramble::Stream;
use transom_tcp::extension::{Extension, Limits, Occasion, Value, View, Wake};
use transom_tcp::time::Duration;

/// Its requests; none for a variable that is zero or false.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Greedy {
    /// cwnd: this many segments more.
    pub(crate) segments: u64,
    /// cwnd_cnt: this factor.
    pub(crate) cwnd_cnt: u64,
    /// ssthresh: this factor.
    pub(crate) ssthresh: u64,
    /// snd_una: this many segments lower.
    pub(crate) snd_una: u64,
    /// dupthresh: for each acknowledgement one from 1 to this, at random.
    pub(crate) dupthresh: u64,
    /// RTO: keeps SRTT + RTTVAR of the first sample.
    pub(crate) rto: bool,
    first_rto: Option<Duration>,
    stream: Stream,
}

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "greedy",
    source: "icTCP (OSDI 2004), figure 3",
    summary: "requests more than the safe range, without effect; for tests",
    parameters: &[
        ("cwnd", "0 segments more than TCP's own cwnd"),
        ("cwnd-cnt", "0 times TCP's own cwnd_cnt"),
        ("ssthresh", "0 times TCP's own ssthresh"),
        ("snd-una", "0 segments below TCP's own snd_una"),
        ("dupthresh", "0: at random from 1 to this"),
        ("rto", "own, or stuck: keeps the first SRTT + RTTVAR"),
    ],
    read: |arguments| {
        let greedy = Greedy {
            segments: arguments.number("cwnd")?.unwrap_or(0),
            cwnd_cnt: arguments.number("cwnd-cnt")?.unwrap_or(0),
            ssthresh: arguments.number("ssthresh")?.unwrap_or(0),
            snd_una: arguments.number("snd-una")?.unwrap_or(0),
            dupthresh: arguments.number("dupthresh")?.unwrap_or(0),
            rto: arguments.word("rto", &[("own", false), ("stuck", true)])?.unwrap_or(false),
            ..Greedy::default()
        };
        if greedy == Greedy::default() {
            return Err(arguments.impossible("give a request, as in greedy(cwnd=4)"));
        }
        Ok(choice(arguments, greedy))
    },
};

impl Greedy {
    fn ask(&mut self, view: &View<'_>, limits: &mut Limits) {
        if self.segments > 0 {
            let above = self.segments.saturating_mul(view.mss());
            limits.exactly(Value::Cwnd(view.cwnd().saturating_add(above)));
        }
        if self.cwnd_cnt > 0 {
            limits.exactly(Value::CwndCnt(view.window().cwnd_cnt.saturating_mul(self.cwnd_cnt)));
        }
        if self.ssthresh > 0 {
            limits.exactly(Value::Ssthresh(view.window().ssthresh.saturating_mul(self.ssthresh)));
        }
        if self.snd_una > 0 {
            let below = self.snd_una.saturating_mul(view.mss());
            limits.exactly(Value::SndUna(view.snd_una() - below));
        }
        if self.dupthresh > 0 {
            let number = 1 + self.stream.below(self.dupthresh);
            limits.exactly(Value::Dupthresh(u32::try_from(number).unwrap_or(u32::MAX)));
        }
        if self.rto {
            let estimate = view.estimate().map(|estimate| estimate.srtt + estimate.rttvar);
            self.first_rto = self.first_rto.or(estimate);
            if let Some(rto) = self.first_rto {
                limits.exactly(Value::Rto(rto));
            }
        }
    }
}

impl Extension for Greedy {
    fn name(&self) -> &str {
        "greedy"
    }

    fn wake_on(&self) -> Wake {
        Wake::ACK | Wake::DUPLICATE_ACK | Wake::LOSS | Wake::TIMEOUT
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        self.ask(view, limits);
    }

    fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        self.ask(view, limits);
    }
}

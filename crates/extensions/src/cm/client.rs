//! A TCP connection as a member of a macroflow.

use super::macroflow::{Member, Report};
use super::{Manager, Membership};
use crate::vegas::Poll;
use transom_tcp::extension::{Event, Extension, Limits, View, Wake, variable};

/// The extension. At each wake-up it reports the connection's state to the manager, and limits cwnd to the connection's share.
///
/// Once each round trip by default, and in any case when it begins to send after having had nothing to send, when a loss is found and when
/// the retransmission timer expires.
#[derive(Debug)]
pub struct Client {
    manager: Manager,
    macroflow: String,
    weight: u32,
    poll: Poll,
    /// Since it is attached.
    membership: Option<Membership>,
    /// At its last call, nothing was outstanding and there was nothing to send.
    idle: bool,
}

impl Client {
    pub(super) fn new(manager: Manager, macroflow: String, weight: u32) -> Self {
        Client { manager, macroflow, weight, poll: Poll::Round, membership: None, idle: true }
    }

    /// When it takes samples.
    pub fn polling(self, poll: Poll) -> Self {
        Client { poll, ..self }
    }

    fn limit(&mut self, view: &View<'_>, limits: &mut Limits) {
        let Some(membership) = &self.membership else { return };
        let outstanding = view.outstanding();
        let usable = outstanding.saturating_add(view.unsent()).min(view.snd_wnd());
        let report = Report {
            window: view.cwnd(),
            outstanding,
            usable,
            packet: view.mss(),
            rtt: view.srtt().zip(view.rttvar()),
            delivered: view.delivered(),
            lost: view.lost(),
            // The retransmission timer wakes it at the latest, for what is outstanding or about to be; but not if the connection is closed.
            expires: (usable > 0).then(|| view.now() + view.rto().times(2)),
        };
        self.idle = report.usable == 0;
        limits.at_most(variable::CWND, membership.report(report, view.now()));
    }
}

impl Extension for Client {
    fn name(&self) -> &str {
        "cm"
    }

    fn wake_on(&self) -> Wake {
        self.poll.wakes() | Wake::SEND | Wake::ROUND | Wake::LOSS | Wake::TIMEOUT
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        let member = Member { weight: self.weight, report: Report::default() };
        self.membership = Some(self.manager.join(self.macroflow.clone(), member));
        self.limit(view, limits);
    }

    fn on_wake(&mut self, event: &Event, view: &View<'_>, limits: &mut Limits) {
        if event.what != Wake::SEND || self.idle || self.poll == Poll::Send {
            self.limit(view, limits);
        }
    }
}

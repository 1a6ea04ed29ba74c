//! The Congestion Manager as congestion control: one window for a macroflow (RFC 3124 section 2), of which each connection has its share.
//!
//! A [`Shared`] is the macroflow and an [`Algorithm`]. Connections whose profiles choose it share its window, its slow-start threshold and its
//! round-trip time. Unlike the extension, this is trusted code. A connection's window can be wider than it would have become alone, since the other
//! connections have measured the path.
//!
//! - *Growth* is that of RFC 5681 for all together: slow start adds what is acknowledged to anyone, congestion avoidance one segment for each
//!   window of the macroflow's.
//! - *A loss* or a mark of any connection halves the window of all. Losses that others find later, of data sent before they learned of the reduction
//!   (RFC 6582's `recover`, for each of them), belong to the same congestion. After a timeout the macroflow begins again with one segment.
//! - *Shares* are by weight, and max-min fair. A connection that was not limited by the window at its last acknowledgement keeps what it used and
//!   leaves the rest to the others. A connection without events for several round trips leaves all of it. Each has one segment at least.
//! - *A new connection* begins with its share, or with RFC 6928's window if that is less. The others give up that much with their next
//!   acknowledgements. A closed connection leaves its share to the others. When the last one closes, the macroflow is forgotten.
//!
//! A connection's window changes only at events of that connection, because a controller is not called otherwise. So for up to a round trip the sum
//! of the windows may exceed the macroflow's.
//!
//! # What differs from the extension
//!
//! With the extension, n flows are n flows of TCP, each with its own window, which the extension only narrows. Together they grow by n segments in a
//! round trip, and a loss halves one of n windows. Here they are one flow: growth by one segment, and half of the whole window. The shares follow the
//! same function. So a single connection is the same in both, packet by packet, and is plain TCP. Of n connections that are always busy and lose the
//! same, each grows by k/n segments in k round trips of congestion avoidance; with the extension each grows by k (`golden_native` and
//! `golden_macroflow`). Flows other than TCP ([`Stream`](super::Stream)) have their own windows and take part in the extension only.

use super::macroflow::{Claim, part};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_tcp::congestion::{
    Algorithm, CongestionControl, CongestionEvent, Controller, Takeover, Window, half,
};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{AckContext, Estimate, Pos};

/// A member without events for this many smoothed round-trip times, and at least this long, has no share.
const SILENT_ROUNDS: u64 = 4;
const SILENT: Duration = Duration::from_secs(1);

/// A macroflow with one window. A handle: its clones are the same macroflow, and profiles that were given one share it.
///
/// ```
/// use transom_extensions::cm::Shared;
/// use transom_tcp::Profile;
/// use transom_tcp::congestion::CongestionChoice;
///
/// let macroflow = Shared::new("192.0.2.7");
/// let profile = |weight| Profile::default().with_congestion(CongestionChoice::new(macroflow.weighing(weight)));
/// let (_bulk, _urgent) = (profile(1), profile(3));
/// ```
#[derive(Clone, Debug)]
pub struct Shared {
    name: Arc<str>,
    weight: u32,
    state: Arc<Mutex<State>>,
}

/// The state of a macroflow with one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MacroflowInfo {
    /// Connections that are part of it.
    pub members: usize,
    /// The window of all together; RFC 5681's variables.
    pub window: Window,
    /// The round-trip time of the last report.
    pub rtt: Option<Estimate>,
}

#[derive(Debug)]
struct State {
    window: Window,
    members: BTreeMap<u64, Member>,
    next: u64,
    rtt: Option<Estimate>,
    reduction: Option<Reduction>,
}

/// The last reduction.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    /// Later losses do not belong to the same congestion.
    until: Instant,
    /// The member that found it, and the window before it.
    by: u64,
    prior: Window,
    /// Whether it was a timeout.
    timeout: bool,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    weight: u32,
    /// The bytes that it used, if the window did not limit it.
    content: Option<u64>,
    /// When it stops counting without an event.
    expires: Instant,
    /// The data whose losses count.
    since: SentSince,
}

/// How much of what a member has sent was sent since the last reduction.
#[derive(Clone, Copy, Debug)]
enum SentSince {
    /// Nothing was sent since.
    Nothing,
    /// Data beyond this position; data before it is not fully acknowledged.
    Beyond(Pos),
    /// All that is outstanding.
    All,
}

impl Shared {
    /// A macroflow with a name, such as the destination's. Connections of different macroflows share nothing, even if the names are equal.
    pub fn new(name: &str) -> Self {
        let window = Window { cwnd: 0, cwnd_cnt: 0, ssthresh: u64::MAX, mss: 1 };
        let members = BTreeMap::new();
        let state = State { window, members, next: 0, rtt: None, reduction: None };
        Shared { name: name.into(), weight: 1, state: Arc::new(Mutex::new(state)) }
    }

    /// The same macroflow, for connections of this weight: of two that are always busy the one with twice the weight has twice the window. No
    /// weight counts as one.
    #[must_use]
    pub fn weighing(&self, weight: u32) -> Self {
        Shared { weight: weight.max(1), ..self.clone() }
    }

    /// Its state; `None` while it has no members.
    pub fn info(&self) -> Option<MacroflowInfo> {
        let state = lock(&self.state);
        let known =
            MacroflowInfo { members: state.members.len(), window: state.window, rtt: state.rtt };
        Some(known).filter(|known| known.members > 0)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Nothing here leaves it half changed.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Algorithm for Shared {
    fn controller(&self) -> Controller {
        Controller::custom(Share { state: self.state.clone(), weight: self.weight, id: None })
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cm(macroflow={}", self.name)?;
        match self.weight {
            1 => f.write_str(")"),
            weight => write!(f, ", weight={weight})"),
        }
    }
}

impl State {
    fn expiry(&self, now: Instant) -> Instant {
        now + self.rtt.map_or(SILENT, |rtt| rtt.srtt.times(SILENT_ROUNDS)).max(SILENT)
    }

    /// The share of a member, in bytes.
    fn share(&self, id: u64, now: Instant) -> u64 {
        let Some(own) = self.members.get(&id) else { return self.window.cwnd };
        let others =
            self.members.iter().filter(|&(&other, member)| other != id && now < member.expires);
        let others =
            others.map(|(_, member)| Claim { weight: member.weight, need: member.content });
        part(u128::from(self.window.cwnd), own.weight, others).max(self.window.segment())
    }

    /// Whether no other member counts.
    fn is_alone(&self, id: u64, now: Instant) -> bool {
        self.members.iter().all(|(&other, member)| other == id || now >= member.expires)
    }

    /// FlightSize of all together, where only that of `id` is known: the window, if it holds anybody else back.
    fn flight(&self, id: u64, flight: u64, now: Instant) -> u64 {
        if self.is_alone(id, now) {
            return flight;
        }
        let counted =
            self.members.iter().filter(|&(&other, member)| other == id || now < member.expires);
        let mut used =
            counted.map(
                |(&other, member)| {
                    if other == id { member.content.map(|_| flight) } else { member.content }
                },
            );
        let sum = used.try_fold(0u64, |sum, used| Some(sum.saturating_add(used?)));
        sum.unwrap_or(self.window.cwnd)
    }

    /// A loss found by `id`, which has `flight` bytes outstanding; `first` of those for the same data. Returns whether it is a new congestion event
    /// rather than part of one that was answered. For a single connection each loss is new, as it keeps its own record (RFC 6582's `recover`, and RFC
    /// 5681 equation 4 for a timeout).
    fn reduce(&mut self, id: u64, flight: u64, timeout: bool, first: bool, now: Instant) -> bool {
        let alone = self.is_alone(id, now);
        let before =
            self.members.get(&id).is_some_and(|member| !matches!(member.since, SentSince::All));
        let answered = self.reduction.filter(|last| before && now < last.until);
        if !alone && answered.is_some_and(|last| last.timeout || !timeout) {
            return false;
        }
        let prior = answered.map_or(self.window, |last| last.prior);
        // A timeout soon after a loss is of the same losses: it takes the rest, but not half again.
        let takes_half = if alone { first } else { answered.is_none() };
        if takes_half {
            let flight = self.flight(id, flight, now);
            self.window.ssthresh = half(&self.window, flight);
        }
        self.window.cwnd_cnt = 0;
        let segment = self.window.segment();
        self.window.resize(if timeout { segment } else { self.window.ssthresh });
        let until = self.expiry(now);
        self.members.values_mut().for_each(|member| member.since = SentSince::Nothing);
        self.reduction = Some(Reduction { until, by: id, prior, timeout });
        true
    }
}

/// A connection's part in it.
#[derive(Debug)]
struct Share {
    state: Arc<Mutex<State>>,
    weight: u32,
    /// Since it has begun.
    id: Option<u64>,
}

impl Share {
    /// Becomes a member. `alone` is the window that it would have alone.
    fn join(&mut self, alone: Window, now: Instant) -> u64 {
        let mut state = lock(&self.state);
        if state.members.is_empty() {
            (state.window, state.reduction, state.rtt) = (alone, None, None);
        }
        let id = state.next;
        state.next += 1;
        let expires = state.expiry(now);
        let member = Member { weight: self.weight, content: None, expires, since: SentSince::All };
        state.members.insert(id, member);
        self.id = Some(id);
        state.share(id, now)
    }

    /// The connection's window is its share, and is in slow start as all are.
    fn settle(&self, state: &State, window: &mut Window, now: Instant) {
        let Some(id) = self.id else { return };
        window.resize(state.share(id, now));
        window.cwnd_cnt = 0;
        let all = &state.window;
        window.ssthresh = match all.ssthresh {
            u64::MAX => u64::MAX,
            ssthresh if all.in_slow_start() => {
                let scaled =
                    u128::from(ssthresh) * u128::from(window.cwnd) / u128::from(all.cwnd.max(1));
                u64::try_from(scaled).unwrap_or(u64::MAX).max(window.cwnd.saturating_add(1))
            }
            _ => window.cwnd,
        };
    }
}

impl CongestionControl for Share {
    fn name(&self) -> &'static str {
        "cm"
    }

    fn on_start(&mut self, window: &mut Window, now: Instant) {
        let share = self.join(*window, now);
        window.resize(share.min(Window::initial(window.mss).cwnd));
    }

    fn on_takeover(&mut self, window: &mut Window, takeover: &Takeover) {
        let share = self.join(*window, takeover.now);
        window.resize(share.min(window.cwnd));
    }

    fn on_sample(&mut self, window: &mut Window, ack: &AckContext) {
        let Some(id) = self.id else { return };
        let mut state = lock(&self.state);
        state.rtt = ack.estimate.or(state.rtt);
        let expires = state.expiry(ack.now);
        if let Some(member) = state.members.get_mut(&id) {
            let unused = !ack.cwnd_limited && !ack.recovering;
            member.content = unused.then_some(ack.prior_in_flight);
            member.expires = expires;
            member.since = match member.since {
                SentSince::Nothing => SentSince::Beyond(ack.nxt),
                SentSince::Beyond(point) if ack.una >= point => SentSince::All,
                other => other,
            };
        }
        if ack.recovering {
            // On the way to its share it is led by the reduction unit.
            window.resize(window.cwnd.min(state.share(id, ack.now)));
        } else {
            self.settle(&state, window, ack.now);
        }
    }

    // Of the macroflow, whose threshold the slow-start unit does not know.
    fn has_own_slow_start(&self) -> bool {
        true
    }

    fn on_ack(&mut self, window: &mut Window, acked: u64, ack: &AckContext) {
        let mut state = lock(&self.state);
        let alone = self.id.is_some_and(|id| state.is_alone(id, ack.now));
        let all = &mut state.window;
        let rest = if all.in_slow_start() {
            // A share bounds what the others would be exposed to; a flow by itself has the slow start of RFC 5681.
            let acked = if alone { ack.acked.saturating_sub(ack.given_up) } else { acked };
            all.slow_start(acked).min(all.cwnd)
        } else {
            acked
        };
        if rest > 0 {
            all.additive_increase(rest, all.cwnd);
        }
        self.settle(&state, window, ack.now);
    }

    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, now: Instant) {
        let Some(id) = self.id else { return };
        let mut state = lock(&self.state);
        match event {
            CongestionEvent::Loss { flight } | CongestionEvent::Ecn { flight } => {
                state.reduce(id, flight, false, true, now);
                self.settle(&state, window, now);
                // Where the reduction unit leads.
                window.ssthresh = window.cwnd.max(window.floor());
            }
            CongestionEvent::Timeout { flight, first } => {
                state.reduce(id, flight, true, first, now);
                self.settle(&state, window, now);
                window.resize(window.segment());
            }
            // The share is what it was; no burst into an empty pipe before the next acknowledgement.
            CongestionEvent::RecoveryEnd { flight } => {
                let segment = window.segment();
                window.resize(window.cwnd.min(flight.max(segment).saturating_add(segment)));
            }
            // What one does not use the others may; what nobody uses is not known to fit any more.
            CongestionEvent::Unvalidated { cwnd, ssthresh, idle: _ } => {
                if state.is_alone(id, now) {
                    state.window.ssthresh = state.window.ssthresh.max(ssthresh);
                    let most = state.window.cwnd.min(cwnd);
                    state.window.resize(most);
                }
                self.settle(&state, window, now);
                window.resize(window.cwnd.min(cwnd));
            }
            CongestionEvent::HandshakeLoss => {
                if state.is_alone(id, now) {
                    let segment = state.window.segment();
                    state.window.resize(segment);
                }
                window.resize(window.segment());
            }
        }
    }

    /// Only the member that found the loss can undo it, and only if nothing was reduced since.
    fn on_undo(&mut self, window: &mut Window, _prior: Window, now: Instant) {
        let mut state = lock(&self.state);
        if let Some(last) = state.reduction.filter(|last| Some(last.by) == self.id) {
            let all = &mut state.window;
            all.resize(all.cwnd.max(last.prior.cwnd));
            all.ssthresh = last.prior.ssthresh.max(all.floor());
            state.reduction = None;
        }
        self.settle(&state, window, now);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            lock(&self.state).members.remove(&id);
        }
    }
}

//! A companion flow: traffic that is not TCP's takes its rate from a TCP connection between the same two hosts (icTCP section 5.4.7, where
//! it stands in for DCCP).
//!
//! An extension of the connection ([`Companion::publisher`]) publishes what TCP knows of the path; it asks for nothing. The sender beside
//! it, over UDP for instance, asks an [`Allowance`] when it may send: window over round-trip time, or a share of that, evenly spaced.
//!
//! The paper says no more than that its UDP library obtains network information from an icTCP flow. What is made of it here:
//! - What counts is the window in use, with what other extensions of the connection leave of it: beside a background transfer the
//!   companion is one.
//! - With a share of one it is as a second TCP flow beside the first. Only losses of the connection count: nobody tells of those of the
//!   datagrams. Who wants to tell of them takes a stream of a [macroflow](crate::cm) instead.
//! - The connection has to carry something, or nothing is learnt: after four round trips (its retransmission timeout, if that is longer)
//!   without news the rate is halved, and again after as many more, as the no-feedback timer of TFRC does (RFC 5348 section 4.4).
//! - When the connection has gone nothing may be sent.
//!
//! It has no clock and no socket, and no name by which it could be chosen, as somebody has to hold the other end of it.

use crate::cm::rates::{loss_rate, rate};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_tcp::compose::Fraction;
use transom_tcp::extension::{Event, Extension, Limits, Variable, View, Wake};
use transom_tcp::recovery::Phase;
use transom_tcp::time::{Duration, Instant};

/// What is published of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// When.
    pub at: Instant,
    /// The window in use, in bytes.
    pub window: u64,
    /// A full segment, in bytes.
    pub mss: u64,
    /// Sent and not acknowledged, in bytes.
    pub outstanding: u64,
    /// The smoothed round-trip time.
    pub srtt: Duration,
    /// The least one.
    pub min_rtt: Duration,
    /// The retransmission timeout, with its back-off.
    pub rto: Duration,
    /// Of all that the connection sent, the part that was lost.
    pub loss: Fraction,
    /// Whether it is recovering from a loss.
    pub phase: Phase,
    /// The rate that TCP allows itself, in bytes per second: window over round-trip time.
    pub rate: u64,
}

impl Path {
    fn of(view: &View<'_>) -> Option<Path> {
        let srtt = view.srtt()?;
        let window = view.ruling(Variable::Cwnd).effective;
        Some(Path {
            at: view.now(),
            window,
            mss: view.mss(),
            outstanding: view.outstanding(),
            srtt,
            min_rtt: view.min_rtt().unwrap_or(srtt),
            rto: view.rto(),
            loss: loss_rate(view.delivered(), view.lost()),
            phase: view.phase(),
            rate: rate(window, srtt),
        })
    }

    /// The rate that is left of it at a later time: half of it for each four round trips, or timeouts, without news.
    pub fn rate_at(&self, now: Instant) -> u64 {
        let patience = self.srtt.times(4).max(self.rto).as_nanos().max(1);
        let halvings = now.since(self.at).as_nanos() / patience;
        u32::try_from(halvings).ok().and_then(|n| self.rate.checked_shr(n)).unwrap_or(0)
    }
}

#[derive(Debug, Default)]
struct State {
    /// Who publishes, and what it published last.
    current: Option<(u64, Path)>,
    publishers: u64,
}

/// What a connection and those that go beside it have in common. A handle: its clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Companion(Arc<Mutex<State>>);

impl Companion {
    /// Of which nothing is known yet.
    pub fn new() -> Self {
        Companion::default()
    }

    /// The extension that publishes. Attached to several connections, whoever published last counts.
    pub fn publisher(&self) -> Publisher {
        let mut state = self.state();
        state.publishers += 1;
        Publisher { companion: self.clone(), id: state.publishers }
    }

    /// What was published last; nothing before there is a round-trip time, and when the connection has gone.
    pub fn path(&self) -> Option<Path> {
        self.state().current.map(|(_, path)| path)
    }

    /// For a sender that may have such a `share` of the connection's rate, one at most.
    pub fn allowance(&self, share: Fraction) -> Allowance {
        let companion = self.clone();
        Allowance { companion, share: share.min(Fraction::ONE), debt: 0, settled: Instant::ZERO }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The extension of the connection: asks for nothing.
#[derive(Debug)]
pub struct Publisher {
    companion: Companion,
    id: u64,
}

impl Publisher {
    fn publish(&self, view: &View<'_>) {
        if let Some(path) = Path::of(view) {
            self.companion.state().current = Some((self.id, path));
        }
    }
}

impl Extension for Publisher {
    fn name(&self) -> &str {
        "companion"
    }

    fn wake_on(&self) -> Wake {
        Wake::ACK | Wake::DUPLICATE_ACK | Wake::LOSS | Wake::TIMEOUT
    }

    fn on_attach(&mut self, view: &View<'_>, _limits: &mut Limits) {
        self.publish(view);
    }

    fn on_wake(&mut self, _event: &Event, view: &View<'_>, _limits: &mut Limits) {
        self.publish(view);
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let mut state = self.companion.state();
        if state.current.is_some_and(|(id, _)| id == self.id) {
            state.current = None;
        }
    }
}

/// When a sender beside the connection may send: each packet puts it into debt, which is paid off at the rate that holds at the time.
#[derive(Debug)]
pub struct Allowance {
    companion: Companion,
    share: Fraction,
    /// What was sent beyond the rate, in billionths of a byte.
    debt: u128,
    settled: Instant,
}

const BYTE: u128 = 1_000_000_000;

impl Allowance {
    /// Bytes per second that may be sent now.
    pub fn rate(&self, now: Instant) -> u64 {
        self.companion.path().map_or(0, |path| self.share.of(path.rate_at(now)))
    }

    /// Whether a packet may leave now. None in advance: what was not used is not saved.
    pub fn may_send(&mut self, now: Instant) -> bool {
        let rate = self.settle(now);
        rate > 0 && self.debt == 0
    }

    /// A packet of `bytes` has left.
    pub fn on_send(&mut self, now: Instant, bytes: u64) {
        self.settle(now);
        self.debt = self.debt.saturating_add(u128::from(bytes) * BYTE);
    }

    /// When the next packet may leave, if the rate stays as it is; never, while nothing is known of the path. The rate may change with
    /// each acknowledgement.
    pub fn next_time(&mut self, now: Instant) -> Option<Instant> {
        let rate = u128::from(self.settle(now));
        let wait = self.debt.div_ceil(rate.max(1));
        (rate > 0).then(|| now + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX)))
    }

    /// What the time since the last look has paid off. Returns the rate.
    fn settle(&mut self, now: Instant) -> u64 {
        let rate = self.rate(now);
        let elapsed = u128::from(now.since(self.settled).as_nanos());
        self.debt = self.debt.saturating_sub(elapsed * u128::from(rate));
        self.settled = self.settled.max(now);
        rate
    }
}

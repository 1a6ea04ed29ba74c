//! A companion flow: traffic other than TCP takes its rate from a TCP connection between the same two hosts (icTCP section 5.4.7, where it
//! replaces DCCP).
//!
//! An extension of the connection ([`Companion::publisher`]) publishes TCP's state of the path and requests nothing. The companion sender,
//! over UDP for instance, asks an [`Allowance`] when it may send: window over round-trip time, or a share of that, evenly spaced.
//!
//! The paper only says that its UDP library obtains network information from an icTCP flow. The choices here:
//! - The effective window counts, as limited by other extensions of the connection: beside a background transfer, the companion is a
//!   background flow too.
//! - With a share of one it behaves like a second TCP flow. Only losses of the connection count, because nobody reports those of the
//!   datagrams. To report them, use a stream of a [macroflow](crate::cm) instead.
//! - The connection has to carry data, or there is no information. Without acknowledgements for four round trips (or its retransmission
//!   timeout, if that is longer) the rate is halved. It is halved again after each further such period, like the no-feedback timer of TFRC
//!   (RFC 5348 section 4.4).
//! - When the connection has gone nothing may be sent.
//!
//! It has no clock and no socket. It also has no name in the catalogue, because a program has to hold its other end.

use crate::cm::rates::{loss_rate, rate};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_tcp::arguments::Fraction;
use transom_tcp::extension::{Extension, ExtensionChoice, Limits, Occasion, Variable, View, Wake};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{Estimate, Phase};

/// The published state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompanionPath {
    /// When.
    pub at: Instant,
    /// The window in use, in bytes.
    pub window: u64,
    /// A full segment, in bytes.
    pub mss: u64,
    /// Sent and not acknowledged, in bytes.
    pub outstanding: u64,
    /// The round-trip time.
    pub rtt: Estimate,
    /// The least one.
    pub min_rtt: Duration,
    /// The retransmission timeout, with its back-off.
    pub rto: Duration,
    /// The share that was lost of everything that the connection sent.
    pub loss: Fraction,
    /// Whether it is recovering from a loss.
    pub phase: Phase,
    /// The rate that TCP allows itself, in bytes per second: window over round-trip time.
    pub rate: u64,
}

impl CompanionPath {
    fn of(view: &View<'_>) -> Option<CompanionPath> {
        let rtt = view.estimate()?;
        let window = view.ruling(Variable::Cwnd).effective;
        Some(CompanionPath {
            at: view.now(),
            window,
            mss: view.mss(),
            outstanding: view.outstanding(),
            rtt,
            min_rtt: view.min_rtt().unwrap_or(rtt.srtt),
            rto: view.rto(),
            loss: loss_rate(view.delivered(), view.counters().lost_bytes),
            phase: view.phase(),
            rate: rate(window, rtt.srtt),
        })
    }

    /// The rate at a later time: halved for each four round trips, or timeouts, without acknowledgements.
    fn rate_at(&self, now: Instant) -> u64 {
        let patience = self.rtt.srtt.times(4).max(self.rto).as_nanos().max(1);
        let halvings = now.since(self.at).as_nanos() / patience;
        u32::try_from(halvings).ok().and_then(|n| self.rate.checked_shr(n)).unwrap_or(0)
    }
}

#[derive(Debug, Default)]
struct State {
    /// The publishing connection, and its last state.
    current: Option<(u64, CompanionPath)>,
    publishers: u64,
}

/// The state that a connection and its companions share. A handle: its clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Companion(Arc<Mutex<State>>);

impl Companion {
    /// The extension that publishes. If it is attached to several connections, the last publication counts.
    pub fn publisher(&self) -> ExtensionChoice {
        let companion = self.clone();
        ExtensionChoice::new("companion", move || {
            let mut state = companion.state();
            state.publishers += 1;
            Box::new(Publisher { companion: companion.clone(), id: state.publishers })
        })
    }

    /// The last publication; `None` before the first round-trip time, and after the connection has ended.
    pub fn path(&self) -> Option<CompanionPath> {
        self.state().current.map(|(_, path)| path)
    }

    /// An allowance for `share` of the connection's rate, one at most.
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
struct Publisher {
    companion: Companion,
    id: u64,
}

impl Publisher {
    fn publish(&self, view: &View<'_>) {
        if let Some(path) = CompanionPath::of(view) {
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

    fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, _limits: &mut Limits) {
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

/// Decides when a companion sender may send. Each packet adds a debt, which is paid off at the present rate.
#[derive(Debug)]
pub struct Allowance {
    companion: Companion,
    share: Fraction,
    /// The bytes sent beyond the rate, in billionths of a byte.
    debt: u128,
    settled: Instant,
}

const BYTE: u128 = 1_000_000_000;

impl Allowance {
    /// Bytes per second that may be sent now.
    pub fn rate(&self, now: Instant) -> u64 {
        self.companion.path().map_or(0, |path| self.share.of(path.rate_at(now)))
    }

    /// Whether a packet may leave now. Unused allowance is not saved.
    pub fn may_send(&mut self, now: Instant) -> bool {
        let rate = self.settle(now);
        rate > 0 && self.debt == 0
    }

    /// A packet of `bytes` has left.
    pub fn on_send(&mut self, now: Instant, bytes: u64) {
        self.settle(now);
        self.debt = self.debt.saturating_add(u128::from(bytes) * BYTE);
    }

    /// When the next packet may leave at the present rate; never, while the path is unknown. The rate may change with each
    /// acknowledgement.
    pub fn next_time(&mut self, now: Instant) -> Option<Instant> {
        let rate = u128::from(self.settle(now));
        let wait = self.debt.div_ceil(rate.max(1));
        (rate > 0).then(|| now + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX)))
    }

    /// Pays off the debt for the time since the last call. Returns the rate.
    fn settle(&mut self, now: Instant) -> u64 {
        let rate = self.rate(now);
        let elapsed = u128::from(now.since(self.settled).as_nanos());
        self.debt = self.debt.saturating_sub(elapsed * u128::from(rate));
        self.settled = self.settled.max(now);
        rate
    }
}

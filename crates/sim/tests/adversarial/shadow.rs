//! A plain TCP beside a connection, which could have sent whatever the connection sends.
//!
//! It knows the connection only by its events, keeps the window that RFC 5681 would allow after the same acknowledgements, losses and
//! timeouts, and looks at every transmission and at every timeout. It is written from the RFCs alone, and for a sender of the simple kind: Reno,
//! reductions at once, none of them taken back.

use super::seeds::profile;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use transom_sim::Rng;
use transom_tcp::congestion::CongestionChoice;
use transom_tcp::extension::{Extension, Limits, Occasion, View, Wake};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{
    Estimate, PathMtuChoice, Phase, Profile, RecoveryChoice, ReductionChoice, UndoConfig,
};

/// RFC 5681 and RFC 6298, as far as they bound what may be sent.
#[derive(Debug)]
pub(super) struct Shadow {
    window: u64,
    counted: u64,
    ssthresh: u64,
    highest: u64,
    /// The last timeout, if nothing has been heard since, and TCP's own timeout then.
    silent: Option<(Instant, Duration)>,
    /// When the timer was last started for an acknowledgement or for the first data after everything had been acknowledged (RFC 6298 section 5), and
    /// TCP's own timeout then.
    started: Option<(Instant, Duration)>,
    looked: Arc<AtomicU64>,
    timed: Arc<AtomicU64>,
}

impl Shadow {
    /// One that counts the transmissions and the timeouts it has looked at.
    pub(super) fn new(looked: Arc<AtomicU64>, timed: Arc<AtomicU64>) -> Self {
        Shadow {
            window: 0,
            counted: 0,
            ssthresh: 0,
            highest: 0,
            silent: None,
            started: None,
            looked,
            timed,
        }
    }

    /// The range of RTO in Table 1 of icTCP, from where the timer was started: TCP's own timeout with its back-off. RFC 6298 sections 2.3 and 2.5
    /// with the variation's minimum of Linux 2.4, which the paper changed, and a minute at most.
    fn watch_timer(&mut self, occasion: &Occasion, view: &View<'_>) {
        let least = |backoffs| {
            let Estimate { srtt, rttvar } = view.estimate()?;
            let variation = rttvar.times(4).max(Duration::from_millis(200));
            Some((srtt + variation).doubled(backoffs).min(Duration::from_secs(60)))
        };
        if occasion.what.contains(Wake::TIMEOUT) {
            for (last, least) in self.silent.into_iter().chain(self.started.take()) {
                let waited = occasion.now.since(last);
                assert!(waited >= least, "a timeout after {waited:?} where {least:?} is the least");
                self.timed.fetch_add(1, Ordering::Relaxed);
            }
            self.silent = least(view.backoffs()).map(|least| (occasion.now, least));
            return;
        }
        if occasion.ack.is_some() {
            self.silent = None;
        }
        let acknowledged = occasion.ack.as_ref().is_some_and(|ack| ack.acked > 0);
        let first = occasion.sent.as_ref().is_some_and(|sent| sent.start == view.snd_una());
        let anew = least(0).map(|least| (occasion.now, least));
        if acknowledged && view.phase() == Phase::Recovery {
            // A partial acknowledgement need not start it anew (RFC 6582 section 4), but may (RFC 6675): the earlier end counts.
            let end = |(start, least): &(Instant, Duration)| *start + *least;
            self.started = self.started.into_iter().chain(anew).min_by_key(end);
        } else if acknowledged || (first && self.started.is_none() && self.silent.is_none()) {
            self.started = anew;
        }
    }

    /// Equations 2 and 3 of RFC 5681, by counting bytes.
    fn grow(&mut self, acked: u64, mss: u64) {
        let slow = acked.min(self.ssthresh.saturating_sub(self.window));
        self.window += slow;
        self.counted += acked - slow;
        while self.counted >= self.window {
            self.counted -= self.window;
            self.window += mss;
        }
    }

    /// Equation 4, with the window in the place of a flight that cannot be more.
    fn halve(&mut self, mss: u64) {
        self.ssthresh = (self.window / 2).max(2 * mss);
    }

    fn on_transmission(&mut self, occasion: &Occasion, view: &View<'_>) {
        let Some(sent) = &occasion.sent else { return };
        let mss = view.mss();
        if sent.end.get() <= self.highest {
            return; // sent again: dupthresh and RTO decide when, and that is not new data
        }
        self.highest = sent.end.get();
        // Increases come in whole segments, and two counts need not come to one at the same byte.
        let allowed = self.window + mss;
        let flight = view.in_flight();
        assert!(flight <= allowed.max(mss) + 1, "{flight} in flight where TCP allows {allowed}");
        let edge = view.snd_una() + view.snd_wnd();
        assert!(sent.end <= edge + 1, "beyond the peer's window");
        self.looked.fetch_add(1, Ordering::Relaxed);
    }
}

impl Extension for Shadow {
    fn name(&self) -> &str {
        "shadow"
    }

    fn wake_on(&self) -> Wake {
        Wake::all()
    }

    fn on_attach(&mut self, view: &View<'_>, _limits: &mut Limits) {
        self.window = view.cwnd();
        self.ssthresh = view.window().ssthresh;
        self.highest = view.snd_nxt().get();
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, _limits: &mut Limits) {
        let mss = view.mss();
        self.watch_timer(occasion, view);
        if occasion.what.contains(Wake::TIMEOUT) {
            if view.retransmits() == 1 {
                self.halve(mss);
            }
            self.window = mss;
            self.counted = 0;
        }
        if occasion.what.contains(Wake::LOSS) {
            self.halve(mss);
            self.window = self.ssthresh;
            self.counted = 0;
        } else if let Some(ack) = &occasion.ack
            && view.phase() != Phase::Recovery
        {
            self.grow(ack.acked, mss);
        }
        if occasion.what.contains(Wake::SEND) {
            self.on_transmission(occasion, view);
        }
        assert!(view.cwnd() <= self.window.max(mss) + mss, "{} > {}", view.cwnd(), self.window);
    }
}

/// A profile of the kind that it knows.
pub(super) fn simple(seed: u64, rng: &mut Rng) -> Profile {
    let profile = profile(seed, rng);
    let recovery = match profile.recovery {
        RecoveryChoice::RackTlp => RecoveryChoice::Sack,
        other => other,
    };
    profile
        .with_recovery(recovery)
        .with_congestion(CongestionChoice::reno())
        .with_slow_start(Profile::classic().slow_start)
        .with_reduction(ReductionChoice::AtOnce)
        .with_undo(UndoConfig::default())
        // The shadow counts in segments of one size.
        .with_path_mtu(PathMtuChoice::Icmp)
}

//! Stacks of extensions that ask for anything at any time, over adversarial networks: every byte arrives all the same, and a plain TCP
//! with the same history could have sent whatever was sent.
//!
//! That plain TCP is a [`Shadow`] beside each connection. It knows the connection only by its events, keeps the window that RFC 5681 would
//! allow after the same acknowledgements, losses and timeouts, and looks at every transmission. It is written from the RFCs alone,
//! and for a sender of the simple kind: Reno, reductions at once, none of them taken back.
//!
//! `TRANSOM_STACK_SEED=n` replays one seed with a trace, `TRANSOM_STACK_SEEDS=n` sets how many are run.

use super::exchange::{End, run_with};
use super::number;
use super::seeds::profile;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use transom_sim::pair::{Pair, Side};
use transom_sim::random::{Rng, Streams};
use transom_tcp::congestion::CongestionChoice;
use transom_tcp::extension::{
    Capabilities, Event, Extension, Interval, Limits, Variable, View, Wake, variable,
};
use transom_tcp::profile::{Profile, RecoveryChoice, ReductionChoice};
use transom_tcp::recovery::Phase;
use transom_tcp::time::{Duration, Instant};
use transom_tcp::undo::UndoConfig;

/// RFC 5681 and RFC 6298, as far as they bound what may be sent.
#[derive(Debug)]
struct Shadow {
    window: u64,
    counted: u64,
    ssthresh: u64,
    highest: u64,
    /// The last timeout, if nothing has been heard since, and the least that icTCP allows from there to the next.
    silent: Option<(Instant, Duration)>,
    looked: Arc<AtomicU64>,
}

impl Shadow {
    fn new(looked: Arc<AtomicU64>) -> Self {
        Shadow { window: 0, counted: 0, ssthresh: 0, highest: 0, silent: None, looked }
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

    fn on_transmission(&mut self, event: &Event, view: &View<'_>) {
        let Some(sent) = &event.sent else { return };
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
        self.ssthresh = view.ssthresh();
        self.highest = view.snd_nxt().get();
    }

    fn on_wake(&mut self, event: &Event, view: &View<'_>, _limits: &mut Limits) {
        let mss = view.mss();
        if event.what.contains(Wake::TIMEOUT) {
            if let Some((last, least)) = self.silent {
                let waited = event.now.since(last);
                assert!(waited >= least, "a timeout after {waited:?} where {least:?} is the least");
            }
            let estimate = view.srtt().zip(view.rttvar());
            self.silent = estimate.map(|(srtt, rttvar)| {
                // RFC 6298 section 2.5: a minute is the most.
                (event.now, (srtt + rttvar).doubled(view.backoffs()).min(Duration::from_secs(60)))
            });
            if view.retransmits() == 1 {
                self.halve(mss);
            }
            self.window = mss;
            self.counted = 0;
        }
        if event.ack.is_some() {
            self.silent = None;
        }
        if event.what.contains(Wake::LOSS) {
            self.halve(mss);
            self.window = self.ssthresh;
            self.counted = 0;
        } else if let Some(ack) = &event.ack
            && view.phase() != Phase::Recovery
        {
            self.grow(ack.acked, mss);
        }
        if event.what.contains(Wake::SEND) {
            self.on_transmission(event, view);
        }
        assert!(view.cwnd() <= self.window.max(mss) + mss, "{} > {}", view.cwnd(), self.window);
    }
}

/// Asks for anything, for a while at a time.
#[derive(Debug)]
struct Imp {
    rng: Rng,
    wakes: Wake,
    left: u32,
    asked: Arc<AtomicU64>,
}

impl Imp {
    fn mischief(&mut self, view: &View<'_>, limits: &mut Limits) {
        if self.left == 0 {
            limits.clear_all();
            limits.sleep();
            return;
        }
        self.left -= 1;
        let rng = &mut self.rng;
        limits.wake_at(view.now() + Duration::from_millis(rng.between(1, 1_500)));
        let variable = variable::ALL[rng.below(variable::COUNT as u64) as usize];
        if rng.below(3) == 0 {
            limits.clear(variable);
            return;
        }
        let own = view.ruling(variable).own;
        let near = match variable {
            Variable::RcvNxt | Variable::SndNxt | Variable::SndUna => {
                (own + rng.below(20_000)).saturating_sub(rng.below(20_000))
            }
            _ => match rng.below(4) {
                0 => rng.below(10),
                1 => own.saturating_mul(2),
                2 => own / 2,
                _ => rng.below(own.saturating_add(1).max(2)),
            },
        };
        let interval = match rng.below(3) {
            _ if variable == Variable::Retransmits => Interval::at_most(near), // not to be given up early
            0 => Interval::at_most(near),
            1 => Interval::at_least(near),
            _ => Interval::exactly(near),
        };
        // Long enough for the run's patience, all the same.
        let interval = match variable {
            Variable::Rto => Interval::exactly(near.min(3_000_000_000)),
            Variable::PacingRate => Interval::at_most(near.max(20_000)),
            _ => interval,
        };
        limits.set(variable, interval);
        self.asked.fetch_add(1, Ordering::Relaxed);
    }
}

impl Extension for Imp {
    fn name(&self) -> &str {
        "imp"
    }

    fn requires(&self) -> Capabilities {
        Capabilities::ACK_LIST | Capabilities::MESSAGE_LIST
    }

    fn wake_on(&self) -> Wake {
        self.wakes
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        self.mischief(view, limits);
    }

    fn on_wake(&mut self, event: &Event, view: &View<'_>, limits: &mut Limits) {
        // What is to be seen is there to be looked at.
        assert!(view.messages().count() as u64 <= view.outstanding());
        assert!(view.acks().count() <= view.acks_seen() as usize);
        if event.what.contains(Wake::TIMER) || self.rng.below(4) == 0 {
            self.mischief(view, limits);
        }
    }
}

fn simple(seed: u64, rng: &mut Rng) -> Profile {
    let profile = profile(seed, rng);
    let recovery = match profile.recovery {
        RecoveryChoice::RackTlp => RecoveryChoice::Sack,
        other => other,
    };
    Profile {
        recovery,
        congestion: CongestionChoice::reno(),
        slow_start: Profile::default().slow_start,
        reduction: ReductionChoice::AtOnce,
        undo: UndoConfig { eifel: false, dsack: false, f_rto: false },
        ..profile
    }
}

#[test]
fn whatever_extensions_ask_for_tcp_could_have_sent() {
    let looked = Arc::new(AtomicU64::new(0));
    let asked = Arc::new(AtomicU64::new(0));
    let one = |seed: u64, trace: bool| {
        let mut rng = Streams::new(seed).rng(102, 0);
        let mut attached = [false; 2];
        let meddle = |pair: &mut Pair, end: &End| {
            let Some(id) = end.id() else { return };
            let now = pair.now();
            let which = usize::from(end.side() == Side::B);
            let _ = pair.host(end.side()).with_connection(id, now, |connection| {
                if attached[which] || !connection.state().is_synchronized() {
                    return;
                }
                attached[which] = true;
                let shadow = Shadow::new(Arc::clone(&looked));
                connection.attach(now, Box::new(shadow)).unwrap();
                for _ in 0..rng.between(1, 4) {
                    let imp = Imp {
                        rng: Streams::new(seed).rng(103, rng.below(1 << 40)),
                        wakes: Wake::from_bits_truncate(rng.below(256) as u8),
                        left: rng.between(0, 60) as u32,
                        asked: Arc::clone(&asked),
                    };
                    let id = connection.attach(now, Box::new(imp));
                    if trace {
                        println!("{now:?} {:?} {id:?}", end.side());
                    }
                }
            });
        };
        run_with(seed, |rng| simple(seed, rng), trace, meddle);
    };
    if let Some(seed) = number("TRANSOM_STACK_SEED") {
        return one(seed, true);
    }
    let seeds = number("TRANSOM_STACK_SEEDS").unwrap_or(500);
    let failed: Vec<u64> = (0..seeds)
        .filter(|&seed| {
            let attempt = std::panic::AssertUnwindSafe(|| one(seed, false));
            let failed = std::panic::catch_unwind(attempt).is_err();
            if failed {
                eprintln!("seed {seed} failed; replay: TRANSOM_STACK_SEED={seed} cargo test -p transom-sim --test adversarial stacked");
            }
            failed
        })
        .collect();
    let some = &failed[..failed.len().min(20)];
    assert!(failed.is_empty(), "{} of {seeds} seeds failed, among them {some:?}", failed.len());
    let (looked, asked) = (looked.load(Ordering::Relaxed), asked.load(Ordering::Relaxed));
    println!("{asked} requests, {looked} transmissions looked at in {seeds} runs");
    assert!(asked > 20 * seeds && looked > 20 * seeds, "{asked} {looked}");
}

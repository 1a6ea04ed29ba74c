//! Stacks of extensions that ask for anything at any time, over adversarial networks. Every byte arrives all the same, and a plain TCP
//! with the same history could have sent whatever was sent. In what order they are attached, and how often, makes no difference.
//!
//! That plain TCP is a [`Shadow`] beside each connection.
//!
//! `TRANSOM_STACK_SEED=n` replays one seed with a trace, `TRANSOM_STACK_SEEDS=n` sets how many are run.

use super::exchange::{End, once_open, run_with};
use super::shadow::{Shadow, simple};
use super::{every_seed, number};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use transom_sim::{Pair, Rng, Side, Streams};
use transom_tcp::extension::{
    Capabilities, Extension, Interval, Limits, Occasion, Variable, View, Wake,
};
use transom_tcp::time::Duration;

/// Asks for anything, for a while at a time.
#[derive(Clone, Debug)]
struct Imp {
    rng: Rng,
    wakes: Wake,
    left: u32,
    asked: Arc<AtomicU64>,
}

impl Imp {
    fn mischief(&mut self, view: &View<'_>, limits: &mut Limits) {
        if self.left == 0 {
            *limits = Limits::default();
            return;
        }
        self.left -= 1;
        let rng = &mut self.rng;
        limits.wake_at(view.now() + Duration::from_millis(rng.between(1, 1_500)));
        let variable = Variable::ALL[rng.below(Variable::ALL.len() as u64) as usize];
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

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        // The values that a test reads are there.
        assert!(view.messages().count() as u64 <= view.outstanding());
        assert!(view.acks().count() <= view.acks_seen() as usize);
        if occasion.what.contains(Wake::TIMER) || self.rng.below(4) == 0 {
            self.mischief(view, limits);
        }
    }
}

impl Imp {
    fn any(seed: u64, rng: &mut Rng, asked: &Arc<AtomicU64>) -> Imp {
        Imp {
            rng: Streams::new(seed).rng(103, rng.below(1 << 40)),
            wakes: Wake::from_bits_truncate(rng.below(256) as u8),
            left: rng.between(0, 60) as u32,
            asked: Arc::clone(asked),
        }
    }
}

#[test]
fn whatever_extensions_ask_for_tcp_could_have_sent() {
    let looked = Arc::new(AtomicU64::new(0));
    let timed = Arc::new(AtomicU64::new(0));
    let asked = Arc::new(AtomicU64::new(0));
    let one = |seed: u64, trace: bool| {
        let mut rng = Streams::new(seed).rng(102, 0);
        let meddle = once_open(|side, connection, now| {
            let shadow = Shadow::new(Arc::clone(&looked), Arc::clone(&timed));
            connection.attach(now, Box::new(shadow)).unwrap();
            for _ in 0..rng.between(1, 4) {
                let imp = Imp::any(seed, &mut rng, &asked);
                let id = connection.attach(now, Box::new(imp));
                if trace {
                    println!("{now:?} {side:?} {id:?}");
                }
            }
        });
        run_with(seed, |rng| simple(seed, rng), trace, meddle);
    };
    let Some(seeds) = every_seed("TRANSOM_STACK_SEED", 500, "stacked", one) else { return };
    let [looked, timed, asked] = [looked, timed, asked].map(|count| count.load(Ordering::Relaxed));
    println!(
        "{asked} requests, {looked} transmissions and {timed} timeouts looked at in {seeds} runs"
    );
    assert!(asked > 20 * seeds && looked > 20 * seeds && timed > seeds, "{asked} {looked} {timed}");
}

/// Every packet of a run, and when it left, in one number.
fn packets(seed: u64, stack: impl Fn(Vec<Imp>) -> Vec<Imp>) -> (u64, u64) {
    let asked = Arc::new(AtomicU64::new(0));
    let mut rng = Streams::new(seed).rng(104, 0);
    let stacks = [(); 2].map(|()| {
        let imps = (0..rng.between(2, 4)).map(|_| Imp::any(seed, &mut rng, &asked)).collect();
        stack(imps)
    });
    let digest = Arc::new(Mutex::new(DefaultHasher::new()));
    let mut attach = once_open(|side, connection, now| {
        for imp in &stacks[usize::from(side == Side::B)] {
            connection.attach(now, Box::new(imp.clone())).unwrap();
        }
    });
    let mut tapped = false;
    let meddle = |pair: &mut Pair, end: &End| {
        if !tapped {
            tapped = true;
            let digest = Arc::clone(&digest);
            pair.set_middlebox(move |now, side, bytes| {
                (now.as_nanos(), side as u64, bytes.as_slice()).hash(&mut *digest.lock().unwrap());
                true
            });
        }
        attach(pair, end);
    };
    run_with(seed, |rng| simple(seed, rng), false, meddle);
    let digest = digest.lock().unwrap().finish();
    (digest, asked.load(Ordering::Relaxed))
}

/// Commutative and idempotent, as intervals are: seen in whole connections, with stacks whose layers never look at each other.
#[test]
fn neither_order_nor_copies_of_layers_make_a_difference() {
    let seeds = number("TRANSOM_STACK_SEEDS").unwrap_or(500) / 5;
    let mut telling = 0;
    for seed in 0..seeds {
        let (plain, _) = packets(seed, |_| Vec::new());
        let (digest, asked) = packets(seed, |imps| imps);
        let (reversed, _) = packets(seed, |imps| imps.into_iter().rev().collect());
        let (doubled, twice) = packets(seed, |imps| {
            let copies = imps.clone();
            imps.into_iter().chain(copies).collect()
        });
        assert_eq!(digest, reversed, "seed {seed}: in the other order");
        assert_eq!(digest, doubled, "seed {seed}: each of them twice");
        assert_eq!(twice, 2 * asked, "seed {seed}");
        telling += u64::from(digest != plain);
    }
    println!("{telling} of {seeds} stacks changed what was sent");
    assert!(telling > seeds / 2, "{telling} of {seeds}");
}

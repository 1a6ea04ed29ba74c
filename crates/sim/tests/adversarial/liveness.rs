//! With any extensions, a connection that its owner closes ends, and so does one with a user timeout whose data does not arrive.
//!
//! The extensions here have no restraint: they ask for the extremes of every variable, wake themselves at times that have passed, and go on until they
//! are detached. The network loses and reorders, and may go dead. The other end may stop reading, close, or keep still.
//!
//! `TRANSOM_LIVENESS_SEED=n` replays one seed, `TRANSOM_LIVENESS_SEEDS=n` sets how many are run.

use super::exchange::{host, link};
use super::{every_seed, seeds};
use transom_sim::link::{LinkConfig, LinkModel};
use transom_sim::{Pair, Rng, Side, Streams};
use transom_stack::{ConnectionId, ListenConfig};
use transom_tcp::extension::{Extension, Interval, Limits, Occasion, Variable, View, Wake};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{ConnectionError, Profile};

/// Asks for what keeps a connection alive or still for as long as possible.
#[derive(Debug)]
struct Fiend {
    rng: Rng,
    wakes: Wake,
}

impl Fiend {
    fn ask(&mut self, view: &View<'_>, limits: &mut Limits) {
        let rng = &mut self.rng;
        let variable = Variable::ALL[rng.below(Variable::ALL.len() as u64) as usize];
        let own = view.ruling(variable).own;
        let value = match rng.below(5) {
            0 => 0,
            1 => 1,
            2 => own,
            3 => own.saturating_mul(1 + rng.below(1000)),
            _ => u64::MAX,
        };
        let interval = match rng.below(3) {
            0 => Interval::at_most(value),
            1 => Interval::at_least(value),
            _ => Interval::exactly(value),
        };
        limits.set(variable, interval);
        match rng.below(8) {
            // Once in a while, or the layer does not live for long.
            0 if rng.below(20) == 0 => limits.wake_at(Instant::ZERO),
            1 => limits.wake_at(view.now() + Duration::from_micros(rng.below(2_000_000))),
            2 => limits.wake_at(Instant::FAR_FUTURE),
            _ => {}
        }
    }
}

impl Extension for Fiend {
    fn name(&self) -> &str {
        "fiend"
    }

    fn wake_on(&self) -> Wake {
        self.wakes
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        for _ in 0..1 + self.rng.below(4) {
            self.ask(view, limits);
        }
    }

    fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        if self.rng.below(4) == 0 {
            self.ask(view, limits);
        }
    }
}

fn attach(pair: &mut Pair, side: Side, id: ConnectionId, seed: u64, rng: &mut Rng) {
    let now = pair.now();
    for _ in 0..rng.between(1, 4) {
        let wakes = Wake::from_bits_truncate(rng.below(256) as u8);
        let fiend = Fiend { rng: Streams::new(seed).rng(105, rng.below(1 << 40)), wakes };
        // The connection may have failed already.
        let _ = pair.host(side).with_connection(id, now, |c| c.attach(now, Box::new(fiend)));
    }
}

/// Nothing gets through any more.
fn cut(pair: &mut Pair, seed: u64) {
    let dead: LinkConfig = "delay=1ms, loss=100%".parse().unwrap();
    for side in [Side::A, Side::B] {
        *pair.link(side) = LinkModel::new(&dead, Streams::new(seed), 7 + side as u64);
    }
}

/// Both write and read for a while.
fn talk(pair: &mut Pair, ends: [ConnectionId; 2], until: Instant, rng: &mut Rng) {
    let mut steps = 0;
    while pair.now() < until {
        for (side, id) in [Side::A, Side::B].into_iter().zip(ends) {
            let now = pair.now();
            let host = pair.host(side);
            if rng.below(4) == 0 {
                let bytes = vec![7; 1 + rng.below(20_000) as usize];
                let _ = host.write(id, now, &bytes);
            }
            if rng.below(3) == 0 {
                let _ = host.read(id, now, &mut vec![0; 1 + rng.below(50_000) as usize]);
            }
        }
        let next = (pair.now() + Duration::from_millis(10)).min(until);
        pair.step(next);
        steps += 1;
        assert!(steps < 2_000_000, "timers fire without effect at {:?}", pair.now());
    }
}

/// Lets time pass until nothing is left of a host's connections. The other end does nothing, or reads and closes too.
fn run_out(pair: &mut Pair, side: Side, other: Option<ConnectionId>, limit: Instant) -> bool {
    let mut steps = 0;
    while pair.host(side).connection_count() > 0 && pair.now() < limit {
        if let Some(id) = other {
            let now = pair.now();
            let host = pair.host(side.other());
            let mut buffer = vec![0; 100_000];
            while host.read(id, now, &mut buffer).is_ok_and(|n| n > 0) {}
            if host.connection(id).is_some_and(|c| c.end_of_stream() || c.error().is_some()) {
                host.close(id, now);
            }
        }
        let next = (pair.now() + Duration::from_secs(1)).min(limit);
        pair.step(next);
        steps += 1;
        assert!(steps < 2_000_000, "timers fire without effect at {:?}", pair.now());
    }
    pair.host(side).connection_count() == 0
}

struct Scene {
    pair: Pair,
    ends: [ConnectionId; 2],
    rng: Rng,
}

/// Two ends that have talked for a while, each with its fiends. None if the handshake did not come to an end.
fn scene(seed: u64, change: impl Fn(&mut Profile, &mut Rng)) -> Option<Scene> {
    let mut rng = Streams::new(seed).rng(106, 0);
    let mut make = |address| {
        let mut profile = seeds::profile(seed, &mut rng);
        // An orphan of a profile that may try for ever ends all the same.
        change(&mut profile, &mut rng);
        host(address, profile, &mut rng)
    };
    let (host_a, mut host_b) = (make("10.0.0.1"), make("10.0.0.2"));
    let listener = host_b.listen("0.0.0.0:80".parse().unwrap(), ListenConfig::default()).unwrap();
    let links = [link(&mut rng), link(&mut rng)];
    let mut pair = Pair::new(host_a, host_b, [&links[0], &links[1]], seed, Instant::ZERO);
    let remote = "10.0.0.2:80".parse().unwrap();
    let a = pair.host(Side::A).connect(Instant::ZERO, None, remote, None).unwrap();
    let limit = Instant::from_secs(200);
    let mut accepted = None;
    let open = pair.run_until(limit, |pair| {
        let (host, id) = (pair.host(Side::B), &mut accepted);
        *id = id.or_else(|| host.accept(listener).map(|(id, _)| id));
        let open = |c: &transom_tcp::Connection| c.state().is_synchronized();
        id.is_some() && pair.host(Side::A).connection(a).is_some_and(open)
    });
    let ends = [a, accepted?];
    if !open {
        return None;
    }
    for (side, id) in [Side::A, Side::B].into_iter().zip(ends) {
        attach(&mut pair, side, id, seed, &mut rng);
    }
    let until = pair.now() + Duration::from_millis(rng.below(5_000));
    talk(&mut pair, ends, until, &mut rng);
    Some(Scene { pair, ends, rng })
}

/// Two minutes with extensions; eight retransmissions or probes, the last of them a minute apart, and what was lost before; a minute in FIN-WAIT-2. A
/// path on which much is lost takes its time for a megabyte too, but gets on.
const ORPHAN: Duration = Duration::from_secs(120 + 9 * 60 + 60 + 3600);

#[test]
fn whatever_extensions_ask_for_a_closed_connection_ends() {
    let mut scenes = 0;
    let one = |seed: u64, _trace: bool| {
        let Some(Scene { mut pair, ends, mut rng }) = scene(seed, |_, _| {}) else { return };
        scenes += 1;
        if rng.below(3) == 0 {
            cut(&mut pair, seed);
        }
        let now = pair.now();
        pair.host(Side::A).close(ends[0], now);
        let other = (rng.below(2) == 0).then_some(ends[1]);
        let limit = now + ORPHAN;
        assert!(run_out(&mut pair, Side::A, other, limit), "A did not end");
        let now = pair.now();
        pair.host(Side::B).close(ends[1], now);
        let limit = now + ORPHAN;
        assert!(run_out(&mut pair, Side::B, None, limit), "B did not end");
    };
    let Some(seeds) = every_seed("TRANSOM_LIVENESS_SEED", 400, "a_closed_connection", one) else {
        return;
    };
    assert!(scenes > seeds / 2, "{scenes} of {seeds}");
}

#[test]
fn whatever_extensions_ask_for_a_user_timeout_ends_the_connection() {
    let mut scenes = 0;
    let timeout = Duration::from_secs(30);
    let one = |seed: u64, _trace: bool| {
        let set = |profile: &mut Profile, _: &mut Rng| {
            profile.user_timeout = Some(timeout);
            profile.keep_alive = None;
        };
        let Some(Scene { mut pair, ends, .. }) = scene(seed, set) else { return };
        let now = pair.now();
        cut(&mut pair, seed);
        let _ = pair.host(Side::A).write(ends[0], now, &[7; 1000]);
        let waits = |c: &transom_tcp::Connection| c.unacknowledged() > 0;
        if !pair.host(Side::A).connection(ends[0]).is_some_and(waits) {
            return; // The connection had ended before, or carries units that this is none of.
        }
        scenes += 1;
        // Until what was on its way has arrived, it is not cut.
        let limit = now + timeout + Duration::from_secs(2);
        pair.run_until(limit, |_| false);
        let error = pair.host(Side::A).connection(ends[0]).and_then(|c| c.error());
        assert_eq!(error, Some(ConnectionError::TimedOut), "{:?}", pair.now());
    };
    let Some(seeds) = every_seed("TRANSOM_LIVENESS_SEED", 400, "a_user_timeout", one) else {
        return;
    };
    assert!(scenes > seeds / 4, "{scenes} of {seeds}");
}

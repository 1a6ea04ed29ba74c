//! Two connections over a path that loses, duplicates, reorders and delays, from a seed.
//!
//! On every path: every byte arrives once and in order, both ends close in order, the flight stays within the
//! windows, nothing is sent for ever, and time ends. A failing seed is named by the panic.

use crate::common;

use common::world::{Path, Random, lossy, transfer};
use common::{Setup, secs};
use transom_tcp::{Profile, RecoveryChoice};

fn setups(seed: u64) -> [Setup; 2] {
    let mut random = Random::new(seed ^ 0xabcd);
    core::array::from_fn(|_| {
        let mut setup = Setup { profile: Profile::classic(), ..Setup::default() };
        setup.profile.options.timestamps = random.permille(500);
        setup.profile.options.window_scale = random.permille(700);
        if random.permille(400) {
            let old = [RecoveryChoice::NewReno, RecoveryChoice::Reno];
            setup.profile.recovery = old[usize::from(random.permille(300))];
            setup.profile.options.sack = random.permille(500);
        }
        if random.permille(300) {
            setup.path.max_super_segment = Some(20_000);
        }
        let buffer = 3_000 + random.below(60_000) as usize;
        setup.profile.nodelay = random.permille(300);
        setup = setup.receive_buffers(buffer, 65_535);
        // A path that loses every fourth packet needs more patience than the default. There is no host that would
        // answer for a connection that is gone.
        setup.profile.time_wait = secs(3600);
        setup.profile.r2 = Some(40);
        setup.profile.syn_r2 = 20;
        setup
    })
}

fn run(path: Path, seeds: std::ops::Range<u64>, most: u64) -> u64 {
    let mut carried = 0;
    for seed in seeds {
        let [a, b] = setups(seed);
        let mut world = lossy([&a, &b], path, seed);
        let bytes =
            [world.path.random.below(most) as usize, world.path.random.below(most / 4) as usize];
        transfer(&mut world, bytes, seed);
        carried += world.path.carried;
    }
    carried
}

#[test]
fn a_clean_path() {
    for seed in 0..60 {
        let delay = [10_000, 60_000, 300_000][seed as usize % 3];
        let path = Path { loss: 0, duplicate: 0, late: 0, delay, jitter: 0 };
        let [a, b] = setups(seed);
        let mut world = lossy([&a, &b], path, seed);
        transfer(&mut world, [200_000, 50_000], seed);
        for end in &world.ends {
            let counters = end.info().counters;
            assert_eq!(counters.retransmitted_segments, 0, "seed {seed}: nothing was lost");
            assert_eq!(counters.duplicate_bytes_received, 0, "seed {seed}");
        }
    }
}

#[test]
fn a_little_loss() {
    let path = Path { loss: 20, duplicate: 5, late: 5, delay: 10_000, jitter: 1_000 };
    run(path, 800..1100, 300_000);
}

#[test]
fn much_loss() {
    let path = Path { loss: 250, duplicate: 50, late: 50, delay: 5_000, jitter: 3_000 };
    run(path, 200..500, 60_000);
}

#[test]
fn wild_reordering() {
    let path = Path { loss: 5, duplicate: 200, late: 300, delay: 2_000, jitter: 30_000 };
    run(path, 500..800, 200_000);
}

#[test]
fn a_long_path() {
    let path = Path { loss: 10, duplicate: 10, late: 0, delay: 400_000, jitter: 50_000 };
    run(path, 400..440, 400_000);
}

/// The same seed is the same run, to the packet.
#[test]
fn runs_repeat() {
    let path = Path { loss: 100, duplicate: 50, late: 50, delay: 5_000, jitter: 3_000 };
    assert_eq!(run(path, 7..12, 50_000), run(path, 7..12, 50_000));
}

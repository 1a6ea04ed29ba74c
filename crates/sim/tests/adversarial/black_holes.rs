//! Paths that carry less than the hosts' interfaces and say nothing about it: with probes (RFC 4821) every byte arrives all the same, whatever else the
//! network does.
//!
//! `TRANSOM_HOLE_SEED=n` replays one seed with a trace, `TRANSOM_HOLE_SEEDS=n` sets how many are run.

use super::exchange::{End, run_with};
use super::{every_seed, seeds};
use transom_sim::link::LinkModel;
use transom_sim::{Pair, Rng, Side, Streams};
use transom_tcp::{PathMtuChoice, Profile};

fn profile(seed: u64, rng: &mut Rng) -> Profile {
    let profile = seeds::profile(seed, rng);
    // Data that a narrow path holds back has to be sent again until it arrives.
    profile.with_path_mtu(PathMtuChoice::Probing).with_r2(None)
}

#[test]
fn every_byte_passes_a_path_that_drops_what_is_large() {
    let (mut found, mut probes) = (0, 0);
    let one = |seed: u64, trace: bool| {
        let mut rng = Streams::new(seed).rng(107, 0);
        let mut narrowed = false;
        let (mut holes, mut sent) = ([0; 2], [0; 2]);
        run_with(
            seed,
            |rng| profile(seed, rng),
            trace,
            |pair: &mut Pair, end: &End| {
                if !narrowed {
                    narrowed = true;
                    for side in [Side::A, Side::B] {
                        let mut config = pair.link(side).config().clone();
                        // IPv6 knows no paths below 1280 bytes, and here nobody knows which it is.
                        config.mtu = u32::try_from(rng.between(1_280, 1_600))
                            .ok()
                            .and_then(core::num::NonZeroU32::new);
                        *pair.link(side) = LinkModel::new(&config, Streams::new(seed), side as u64);
                    }
                }
                let (side, now) = (end.side(), pair.now());
                let Some(connection) = end.id().and_then(|id| pair.host(side).connection(id))
                else {
                    return;
                };
                let info = connection.info(now);
                (holes[side as usize], sent[side as usize]) =
                    (info.black_holes, info.path_mtu_probes);
            },
        );
        found += holes.iter().sum::<u64>();
        probes += sent.iter().sum::<u64>();
    };
    let Some(seeds) = every_seed("TRANSOM_HOLE_SEED", 300, "black_holes", one) else { return };
    println!("{found} black holes found, {probes} probes sent in {seeds} runs");
    assert!(found > seeds / 20 && probes > seeds / 20, "{found} {probes}");
}

//! Learned extensions that learned nothing: networks of random weights, and of the worst ones, over adversarial networks. A plain TCP with the same
//! history could have sent whatever was sent, and everything arrives.
//!
//! `TRANSOM_POLICY_SEED=n` replays one seed with a trace, `TRANSOM_POLICY_SEEDS=n` sets how many are run.

use super::every_seed;
use super::exchange::{once_open, run_with};
use super::shadow::{Shadow, simple};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use transom_extensions::policy::{INPUTS, Network, extension};
use transom_sim::{Rng, Streams};

/// A policy: of two layers with random weights, or one layer that always says the same extremes.
fn network(rng: &mut Rng) -> Network {
    let period = rng.below(2) as u8;
    let mut layers = Vec::new();
    let mut layer = |inputs: usize, outputs: usize, shift: u8, number: &mut dyn FnMut() -> i64| {
        layers.extend((inputs as u16).to_le_bytes());
        layers.extend((outputs as u16).to_le_bytes());
        layers.extend([shift, 0, 0, 0]);
        (0..inputs * outputs).for_each(|_| layers.extend((number() as i16).to_le_bytes()));
        (0..outputs).for_each(|_| layers.extend((number() as i32).to_le_bytes()));
    };
    let count = if rng.below(3) == 0 {
        let extreme = [-32_767, 0, 32_767][rng.below(3) as usize];
        layer(INPUTS, 2, 0, &mut || extreme);
        1
    } else {
        let mut number = || rng.below(6000) as i64 - 3000;
        layer(INPUTS, 8, 10, &mut number);
        layer(8, 2, 10, &mut number);
        2
    };
    let head = [&b"TRPOLICY\x01\0\x01\0"[..], &[count, period, 0, 0]].concat();
    Network::read(&[head, layers].concat()).unwrap()
}

#[test]
fn no_policy_is_more_aggressive_than_tcp_and_everything_ends() {
    let [looked, timed] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let mut attached = 0;
    let one = |seed: u64, trace: bool| {
        let mut rng = Streams::new(seed).rng(106, 0);
        let meddle = once_open(|side, connection, now| {
            let shadow = Shadow::new(Arc::clone(&looked), Arc::clone(&timed));
            connection.attach(now, Box::new(shadow)).unwrap();
            let network = Arc::new(network(&mut rng));
            let policy = extension(network.period(), Box::new(network));
            let layer = connection.attach(now, policy);
            attached += u64::from(layer.is_ok());
            if trace {
                println!("{now:?} {side:?}: {layer:?}");
            }
        });
        run_with(seed, |rng| simple(seed, rng), trace, meddle);
    };
    let Some(seeds) = every_seed("TRANSOM_POLICY_SEED", 200, "policies", one) else { return };
    let [looked, timed] = [looked, timed].map(|count| count.load(Ordering::Relaxed));
    println!(
        "{looked} transmissions and {timed} timeouts looked at in {seeds} runs, {attached} policies"
    );
    assert!(looked > 20 * seeds && attached > seeds, "{looked} {attached}");
}

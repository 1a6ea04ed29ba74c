//! The extensions of the catalogue, in stacks of any of them, over adversarial networks. A plain TCP with the same history could have sent whatever
//! was sent.
//!
//! `TRANSOM_STACK_SEED=n` replays one seed with a trace, `TRANSOM_STACK_SEEDS=n` sets how many are run.

use super::every_seed;
use super::exchange::{once_open, run_with};
use super::shadow::{Shadow, simple};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use transom_extensions::{CATALOGUE, stack};
use transom_sim::Streams;

/// Each extension, with what it has to be told, and some in their other forms. `scramble` is not among them: what it asks may end its own flow, which
/// these runs take for a defect. [`stacked`](super::stacked) asks anything with more patience.
fn texts() -> Vec<String> {
    let needed = |name: &str| match name {
        "rate-cap" => "(rate=50kB)",
        "deadline" => "(bytes=100kB, within=20s)",
        "greedy" => "(cwnd=4)",
        _ => "",
    };
    let all = CATALOGUE.iter().filter(|entry| entry.name != "scramble");
    let plain = all.map(|entry| format!("{}{}", entry.name, needed(entry.name)));
    let others = [
        "vegas(poll=ack)",
        "vegas(poll=send)",
        "eifel(version=karn)",
        "eifel(version=adaptive)",
        "greedy(ssthresh=4)",
        "greedy(dupthresh=8)",
        "greedy(rto=stuck)",
    ];
    plain.chain(others.map(String::from)).collect()
}

#[test]
fn whatever_the_catalogue_asks_for_tcp_could_have_sent() {
    let texts = texts();
    for text in &texts {
        stack(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    let [looked, timed] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let mut tried: BTreeMap<String, u64> = BTreeMap::new();
    let one = |seed: u64, trace: bool| {
        let mut rng = Streams::new(seed).rng(105, 0);
        let meddle = once_open(|side, connection, now| {
            let shadow = Shadow::new(Arc::clone(&looked), Arc::clone(&timed));
            connection.attach(now, Box::new(shadow)).unwrap();
            for _ in 0..rng.between(1, 4) {
                let text = &texts[rng.below(texts.len() as u64) as usize];
                // A network that takes SACK or timestamps away takes some extensions with them.
                for choice in stack(text).unwrap() {
                    let layer = connection.attach(now, choice.extension());
                    *tried.entry(text.clone()).or_default() += u64::from(layer.is_ok());
                    if trace {
                        println!("{now:?} {side:?} {text}: {layer:?}");
                    }
                }
            }
        });
        run_with(seed, |rng| simple(seed, rng), trace, meddle);
    };
    let Some(seeds) = every_seed("TRANSOM_STACK_SEED", 500, "catalogued", one) else { return };
    let [looked, timed] = [looked, timed].map(|count| count.load(Ordering::Relaxed));
    println!(
        "{looked} transmissions and {timed} timeouts looked at in {seeds} runs; attached: {tried:?}"
    );
    assert!(looked > 20 * seeds && timed > seeds / 2, "{looked} {timed}");
    let never: Vec<&String> =
        texts.iter().filter(|text| tried.get(*text).is_none_or(|&times| times == 0)).collect();
    assert!(never.is_empty() || seeds < 500, "never attached: {never:?}");
}

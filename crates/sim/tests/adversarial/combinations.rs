//! Every choice of every unit together with every choice of every other: each pair moves its bytes intact through an adversarial
//! network, or is refused with the reason.
//!
//! The pairs are made of the words that profiles are composed of, so a new word or algorithm is covered as soon as it exists. With
//! `TRANSOM_TRIPLES=1` there are triples too, which takes long.

use super::exchange::run;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use transom_tcp::compose::{ComposeError, Unit, WORDS, compose_classic as compose};
use transom_tcp::congestion::ALGORITHMS;
use transom_tcp::time::Duration;
use transom_tcp::{FlowChoice, Profile, ReceiveWindowConfig};

/// All words, by their unit.
pub(super) fn words() -> Vec<(Unit, &'static str)> {
    let algorithms = ALGORITHMS.iter().map(|entry| entry.name).filter(|name| *name != "none");
    let congestion = algorithms.map(|name| (Unit::Congestion, name));
    WORDS.iter().map(|word| (word.unit, word.name)).chain(congestion).collect()
}

/// Small buffers, so that they matter, and a TIME-WAIT that ends, though not before a fixed timer has backed off a few times. A FIN whose
/// acknowledgement was lost must find it.
pub(super) fn tamed(profile: Profile) -> Profile {
    let max = if profile.options.window_scale { 1 << 20 } else { 65_535 };
    let flow = match profile.flow {
        FlowChoice::ReceiveWindow(_) => {
            FlowChoice::ReceiveWindow(ReceiveWindowConfig::new(40_000, max))
        }
        FlowChoice::Fixed(_) => FlowChoice::Fixed(40_000),
        FlowChoice::None { .. } => FlowChoice::None { memory: 40_000 },
    };
    profile
        .with_flow(flow)
        .with_send_buffer(50_000)
        .with_max_send_buffer(1 << 20)
        .with_time_wait(Duration::from_secs(60))
}

#[test]
fn every_pair_of_units_moves_its_bytes_or_is_refused() {
    let words = words();
    let mut texts = Vec::new();
    for (index, (unit, first)) in words.iter().enumerate() {
        for (other, second) in &words[index + 1..] {
            if other != unit || unit.none().is_some() {
                texts.push(format!("{first} + {second}"));
            }
        }
    }
    if std::env::var_os("TRANSOM_TRIPLES").is_some() {
        let third = |(_, third): &(Unit, &str)| {
            let third = *third;
            texts.iter().map(move |text| format!("{text} + {third}")).collect::<Vec<_>>()
        };
        texts = words.iter().flat_map(third).collect();
    }
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    let mut failed = Vec::new();
    let mut seed = 0;
    for text in &texts {
        let profile = match compose(text) {
            Ok(profile) => profile,
            Err(ComposeError::Profile(error)) => {
                *refused.entry(error.to_string()).or_default() += 1;
                continue;
            }
            // A triple may name a unit twice.
            Err(ComposeError::Twice { .. }) => continue,
            Err(error) => panic!("{text}: {error}"),
        };
        seed += 1;
        let moved = catch_unwind(AssertUnwindSafe(|| {
            run(seed, |_| tamed(profile.clone()), false);
        }));
        if moved.is_err() {
            eprintln!("{text} failed with seed {seed}");
            failed.push(text.clone());
        }
    }
    assert!(failed.is_empty(), "{} of {} failed: {failed:?}", failed.len(), texts.len());
    // Combinations that cannot work: SACK's recoveries without SACK, and what needs a window scale without it.
    println!("{seed} pairs moved their bytes; refused: {refused:#?}");
    assert!(seed as usize > texts.len() / 2, "most pairs can work");
    assert!(refused.keys().any(|why| why.contains("SACK option")), "{refused:?}");
}

//! Whole combinations: of every unit one choice at once, drawn by the seed, moves its bytes intact through an adversarial network, or is
//! refused with the reason.
//!
//! There are hundreds of millions of them. `TRANSOM_COMBINATIONS=n` sets how many are drawn, `TRANSOM_COMBINATION=n` replays one with a trace.

use super::combinations::{tamed, words};
use super::exchange::run;
use super::number;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use transom_sim::{Rng, Streams};
use transom_tcp::compose::{ComposeError, Unit, compose_classic as compose};

/// The words of each unit.
fn choices() -> Vec<(Unit, Vec<&'static str>)> {
    let mut choices: Vec<(Unit, Vec<&'static str>)> = Vec::new();
    for (unit, word) in words() {
        match choices.iter_mut().find(|(one, _)| *one == unit) {
            Some((_, all)) => all.push(word),
            None => choices.push((unit, vec![word])),
        }
    }
    choices
}

/// Of each unit a word, or none; of one whose words add up, several.
fn draw(choices: &[(Unit, Vec<&'static str>)], rng: &mut Rng) -> String {
    let mut text: Vec<&str> = Vec::new();
    for (unit, all) in choices {
        if unit.none().is_some() {
            // The word for none of them goes with no other.
            let none = unit.none();
            let some: Vec<&str> = all
                .iter()
                .copied()
                .filter(|word| none != Some(*word) && rng.below(3) == 0)
                .collect();
            match none {
                Some(none) if some.is_empty() && rng.below(2) == 0 => text.push(none),
                _ => text.extend(some),
            }
        } else if let Some(word) = all.get(rng.below(all.len() as u64 + 1) as usize) {
            text.push(word);
        }
    }
    text.join(" + ")
}

#[test]
fn whole_combinations_move_their_bytes_or_are_refused() {
    let choices = choices();
    let text = |seed: u64| draw(&choices, &mut Streams::new(seed).rng(900, 0));
    if let Some(seed) = number("TRANSOM_COMBINATION") {
        let text = text(seed);
        println!("{text}");
        let profile = tamed(compose(&text).unwrap_or_else(|error| panic!("{error}")));
        run(seed, |_| profile.clone(), true);
        return;
    }
    let wanted = number("TRANSOM_COMBINATIONS").unwrap_or(500);
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    let (mut moved, mut failed) = (0, Vec::new());
    for seed in 0..wanted {
        let text = text(seed);
        let profile = match compose(&text) {
            Ok(profile) => tamed(profile),
            Err(ComposeError::Profile(error)) => {
                *refused.entry(error.to_string()).or_default() += 1;
                continue;
            }
            Err(error) => panic!("{text}: {error}"),
        };
        let attempt = catch_unwind(AssertUnwindSafe(|| {
            run(seed, |_| profile.clone(), false);
        }));
        if attempt.is_err() {
            eprintln!(
                "{text} failed; replay: TRANSOM_COMBINATION={seed} cargo test -p transom-sim --test adversarial whole"
            );
            failed.push(text);
        }
        moved += 1;
    }
    println!("{moved} of {wanted} moved their bytes; refused: {refused:#?}");
    assert!(failed.is_empty(), "{} of {moved} failed: {failed:#?}", failed.len());
    assert!(moved > wanted / 10, "{moved} of {wanted}");
}

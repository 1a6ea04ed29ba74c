//! Streams over adversarial networks in virtual time: with units drawn by the seed, with every pair of units, and with whole combinations.

mod black_holes;
mod catalogued;
mod combinations;
mod delivery;
mod exchange;
mod fast_open;
mod liveness;
mod partial;
mod policies;
mod seeds;
mod shadow;
mod stacked;
mod swaps;
mod whole;

/// Runs `one` for each seed, or with a trace for the only one that the variable of this name has. With an S behind its name it has how many there
/// are. Panics if `one` does for any of them, and says how the tests called `tests` replay that. How many were run; nothing after an only one.
fn every_seed(
    variable: &str,
    usual: u64,
    tests: &str,
    mut one: impl FnMut(u64, bool),
) -> Option<u64> {
    if let Some(seed) = number(variable) {
        one(seed, true);
        return None;
    }
    let seeds = number(&format!("{variable}S")).unwrap_or(usual);
    let failed: Vec<u64> = (0..seeds)
        .filter(|&seed| {
            let attempt = std::panic::AssertUnwindSafe(|| one(seed, false));
            let failed = std::panic::catch_unwind(attempt).is_err();
            if failed {
                eprintln!("seed {seed} failed; replay: {variable}={seed} cargo test -p transom-sim --test adversarial {tests}");
            }
            failed
        })
        .collect();
    let some = &failed[..failed.len().min(20)];
    assert!(failed.is_empty(), "{} of {seeds} seeds failed, among them {some:?}", failed.len());
    Some(seeds)
}

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is not a number: {value}")))
}

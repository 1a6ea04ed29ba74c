//! Streams over adversarial networks in virtual time: with units drawn by the seed, with every pair of units, and with whole combinations.

mod catalogued;
mod combinations;
mod delivery;
mod exchange;
mod partial;
mod seeds;
mod shadow;
mod stacked;
mod swaps;
mod whole;

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is not a number: {value}")))
}

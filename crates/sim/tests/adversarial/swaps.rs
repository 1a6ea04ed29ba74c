//! Units exchanged at random on both ends while the bytes flow: every byte arrives all the same, and no exchange widens a window.
//!
//! `TRANSOM_SWAP_SEED=n` replays one seed with a trace, `TRANSOM_SWAP_SEEDS=n` sets how many are run.

use super::every_seed;
use super::exchange::{End, run_with};
use super::seeds::profile;
use std::cell::Cell;
use transom_sim::{Pair, Rng, Streams};
use transom_tcp::compose::{Composer, Unit, WORDS};
use transom_tcp::congestion::ALGORITHMS;
use transom_tcp::time::Instant;
use transom_tcp::{Connection, ConnectionState};

/// The words whose units can be exchanged, by unit.
fn exchangeable() -> Vec<(Unit, &'static str)> {
    let algorithms = ALGORITHMS.iter().map(|entry| entry.name).filter(|name| *name != "none");
    let congestion = algorithms.map(|name| (Unit::Congestion, name));
    let words = WORDS.iter().map(|word| (word.unit, word.name)).chain(congestion);
    words.filter(|(unit, _)| unit.exchangeable().is_ok()).collect()
}

/// One to four words for different units.
fn text(words: &[(Unit, &'static str)], rng: &mut Rng) -> String {
    let mut chosen: Vec<(Unit, &str)> = Vec::new();
    for _ in 0..rng.between(1, 4) {
        // Every second one is a controller, as there is most to go wrong.
        let unit = if rng.below(2) == 0 { Some(Unit::Congestion) } else { None };
        let of_unit: Vec<_> =
            words.iter().filter(|(other, _)| unit.is_none_or(|unit| unit == *other)).collect();
        let (unit, word) = *of_unit[rng.below(of_unit.len() as u64) as usize];
        if !chosen.iter().any(|(other, _)| *other == unit) {
            chosen.push((unit, word));
        }
    }
    chosen.iter().map(|(_, word)| *word).collect::<Vec<_>>().join(" + ")
}

/// What no exchange may change.
fn kept(info: &ConnectionState) -> impl PartialEq + std::fmt::Debug {
    let path = (info.srtt, info.rttvar, info.min_rtt, info.rto, info.delivered);
    let data = (info.snd_una, info.snd_nxt, info.rcv_nxt, info.in_flight, info.sacked, info.lost);
    (path, data, info.phase, info.recovery, info.retransmits, info.counters)
}

fn exchange(connection: &mut Connection, now: Instant, text: &str) {
    let before = connection.info(now);
    // A unit that does not fit the rest of the connection is refused, and nothing changes.
    let exchanged = Composer::default().exchange(connection, now, text).is_ok();
    let after = connection.info(now);
    assert!(after.cwnd <= before.cwnd, "{text}: {} after {}", after.cwnd, before.cwnd);
    assert!(after.cwnd >= u64::from(after.mss), "{text}: {}", after.cwnd);
    assert_eq!(kept(&after), kept(&before), "{text}");
    assert!(exchanged || after.congestion == before.congestion, "{text}");
}

#[test]
fn whatever_is_exchanged_every_byte_arrives() {
    let words = exchangeable();
    let exchanges = Cell::new(0u64);
    let one = |seed: u64, trace: bool| {
        // A stream of its own: the rest of the run follows from the seed as it does elsewhere.
        let mut rng = Streams::new(seed).rng(101, 0);
        let often = rng.between(1, 60);
        let meddle = |pair: &mut Pair, end: &End| {
            let Some(id) = end.id().filter(|_| rng.below(often) == 0) else { return };
            let text = text(&words, &mut rng);
            let now = pair.now();
            if trace {
                println!("{now:?} {:?} {text}", end.side());
            }
            let _ = pair.host(end.side()).with_connection(id, now, |connection| {
                exchange(connection, now, &text);
            });
            exchanges.set(exchanges.get() + 1);
        };
        run_with(seed, |rng| profile(seed, rng), trace, meddle);
    };
    let Some(seeds) = every_seed("TRANSOM_SWAP_SEED", 1_000, "swaps", one) else { return };
    println!("{} exchanges in {seeds} runs", exchanges.get());
    assert!(exchanges.get() > 10 * seeds, "{}", exchanges.get());
}

//! Streams of which data may be given up. Every byte is delivered once at its place or stands in one hole of which the reader is told,
//! the stream ends, nothing hangs, and nobody is told of a hole that its peer has not given up or that it has not lost patience with.

use super::every_seed;
use super::exchange::{End, run};
use super::seeds::profile;
use transom_sim::{Pair, Rng};
use transom_tcp::time::Duration;
use transom_tcp::{HoleChoice, PartialInfo, Persistence, Profile};

/// What a run came to, of both ends together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Bytes of which readers were told that they would never come.
    pub(super) skipped: u64,
    /// Bytes that readers got.
    pub(super) delivered: u64,
    /// Ends that would have given data up, but for a peer that had not agreed.
    refused: u64,
}

impl Outcome {
    fn add(&mut self, other: Outcome) {
        let Outcome { skipped, delivered, refused } = other;
        self.skipped += skipped;
        self.delivered += delivered;
        self.refused += refused;
    }
}

/// Looks at two ends that have read everything.
pub(super) fn judge(pair: &mut Pair, ends: &[End; 2]) -> Outcome {
    let now = pair.now();
    let mut look = |end: &End| {
        let connection = pair.host(end.side).connection(end.id().unwrap()).unwrap();
        let (profile, info) = (connection.profile(), connection.info(now));
        let partial = info.partial.unwrap_or_default();
        assert!(partial.agreed || partial.given_up_bytes == 0);
        if partial.persistence == Some(Persistence::NONE) && info.counters.timeouts < 3 {
            // But for the FIN, and what is taken up again after three announcements that nobody answered.
            assert!(info.counters.retransmitted_bytes <= info.counters.retransmitted_segments);
        }
        let refused = profile.persistence.is_some() && !partial.agreed;
        (partial, matches!(profile.holes, HoleChoice::Skip(_)), refused)
    };
    let looks = [look(&ends[0]), look(&ends[1])];
    let mut outcome = Outcome::default();
    for (index, end) in ends.iter().enumerate() {
        let ((ours, impatient, refused), (theirs, ..)) = (looks[index], looks[1 - index]);
        let PartialInfo { skipped_bytes, .. } = ours;
        assert_eq!(end.had.skipped, skipped_bytes, "the reader was told of all");
        assert!(impatient || skipped_bytes <= theirs.given_up_bytes, "{ours:?} {theirs:?}");
        outcome.add(Outcome {
            skipped: skipped_bytes,
            delivered: end.read,
            refused: u64::from(refused),
        });
    }
    outcome
}

fn partial(seed: u64, rng: &mut Rng) -> Profile {
    let profile = profile(seed, rng);
    let lifetime = Some(Duration::from_millis(rng.between(1, 2_000)));
    let retransmissions = Some(rng.below(3) as u16);
    let persistence = match rng.below(5) {
        0 => None,
        1 | 2 => Some(Persistence::NONE),
        3 => Some(Persistence::new(retransmissions, None)),
        _ => Some(Persistence::new(None, lifetime)),
    };
    let after = Duration::from_millis(rng.between(1, 1_000));
    let holes = match rng.below(4) {
        0 => HoleChoice::Skip(after),
        1 => HoleChoice::Accept,
        _ => HoleChoice::Wait,
    };
    profile.with_persistence(persistence).with_holes(holes)
}

#[test]
fn every_byte_arrives_once_or_is_in_a_hole() {
    let mut all = Outcome::default();
    let one = |seed: u64, trace: bool| {
        let outcome = run(seed, |rng| partial(seed, rng), trace);
        if trace {
            println!("{outcome:?}");
        }
        all.add(outcome);
    };
    let Some(seeds) = every_seed("TRANSOM_SEED", 1_500, "partial", one) else { return };
    println!("{all:?}");
    // There were holes, and they were the exception.
    assert!(all.skipped > 1_000 * seeds && all.skipped < all.delivered / 4, "{all:?}");
    assert!(all.refused > seeds / 10, "{all:?}");
}

//! The largest value of the last rounds, whatever a round is: round trips for what a path delivers, cycles of probing for what it could.

/// A maximum for each of the last `ROUNDS` rounds in which there was a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxByRound<const ROUNDS: usize> {
    /// The round's number and its maximum; zero for none.
    slots: [(u64, u64); ROUNDS],
    newest: u64,
}

impl<const ROUNDS: usize> Default for MaxByRound<ROUNDS> {
    fn default() -> Self {
        MaxByRound { slots: [(0, 0); ROUNDS], newest: 0 }
    }
}

impl<const ROUNDS: usize> MaxByRound<ROUNDS> {
    /// Adds a value of `round`; rounds do not go back.
    pub(super) fn add(&mut self, round: u64, value: u64) {
        self.newest = self.newest.max(round);
        if let Some(slot) = self.slots.get_mut((self.newest % ROUNDS as u64) as usize) {
            let old = if slot.0 == self.newest { slot.1 } else { 0 };
            *slot = (self.newest, old.max(value));
        }
    }

    /// The maximum of all rounds that are remembered, as of the last round with a value.
    pub(super) fn get(&self) -> u64 {
        self.of_last(ROUNDS as u64)
    }

    /// The maximum of this many rounds, up to the last round with a value.
    pub(super) fn of_last(&self, rounds: u64) -> u64 {
        let oldest = (self.newest + 1).saturating_sub(rounds);
        let fresh = self.slots.iter().filter(|(round, _)| *round >= oldest);
        fresh.map(|&(_, value)| value).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_rounds() {
        let mut filter = MaxByRound::<10>::default();
        assert_eq!(filter.get(), 0);
        filter.add(3, 100);
        filter.add(3, 80);
        for round in 4..=12 {
            filter.add(round, round);
            assert_eq!((filter.get(), filter.of_last(1)), (100, round));
        }
        filter.add(13, 5);
        assert_eq!((filter.get(), filter.of_last(2)), (12, 12));
        // After a pause of twenty rounds only the new value counts.
        filter.add(40, 2);
        assert_eq!(filter.get(), 2);
    }

    #[test]
    fn two_rounds() {
        let mut filter = MaxByRound::<2>::default();
        for (round, value, largest) in [(0, 7, 7), (1, 5, 7), (2, 3, 5), (2, 4, 5), (3, 1, 4)] {
            filter.add(round, value);
            assert_eq!(filter.get(), largest, "{round}");
        }
    }
}

//! Whether BBR's STARTUP has filled the pipe: the rate no longer grows by a quarter in three round trips.

/// The estimator of a full pipe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// The rate that the next has to exceed by a quarter.
    pub(super) rate: u64,
    rounds: u32,
    /// The pipe is full since the last reset.
    pub(super) now: bool,
    /// It was found full at some time.
    pub(super) reached: bool,
}

impl FullPipe {
    /// Looks again, beginning with `rate`.
    pub(super) fn reset(&mut self, rate: u64) {
        *self = FullPipe { rate, rounds: 0, now: false, reached: self.reached };
    }

    /// Takes the rate of a round trip, unless the sample is limited by something else than the path.
    pub(super) fn check(&mut self, round_starts: bool, rate: u64, limited: bool) {
        if self.now || !round_starts || limited {
            return;
        }
        if u128::from(rate) * 4 >= u128::from(self.rate) * 5 {
            self.reset(rate);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= 3;
        self.reached |= self.now;
    }
}

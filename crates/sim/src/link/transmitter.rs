//! Transmits the packets of a queue: at a constant rate, at the opportunities of a trace, or at once.

use super::LinkConfig;
use super::rate_trace::{OPPORTUNITY, Opportunities};
use super::serialiser::{Serialiser, Transmission};
use transom_tcp::time::Instant;

/// Sends one packet after the other.
#[derive(Clone, Debug)]
pub(super) enum Transmitter {
    /// At a constant rate, or at once.
    Constant(Serialiser),
    /// At the opportunities of a trace.
    Traced(Traced),
    /// Never: of a trace whose file has not been read.
    Silent,
}

impl Transmitter {
    pub(super) fn new(config: &LinkConfig) -> Self {
        match &config.rate_trace {
            Some(trace) => match trace.opportunities() {
                Some(opportunities) => Transmitter::Traced(Traced::new(opportunities.clone())),
                None => Transmitter::Silent,
            },
            None => Transmitter::Constant(Serialiser::new(config.rate)),
        }
    }

    /// Whether a packet that comes now has to wait. An opportunity of this very moment has passed when it comes.
    pub(super) fn must_wait(&self, now: Instant) -> bool {
        match self {
            Transmitter::Constant(serialiser) => serialiser.is_busy(now),
            Transmitter::Traced(_) | Transmitter::Silent => true,
        }
    }

    /// When the next packet's turn is, of those that wait.
    pub(super) fn turn(&self) -> Instant {
        match self {
            Transmitter::Constant(serialiser) => serialiser.free_at(),
            Transmitter::Traced(traced) => traced.turn(),
            Transmitter::Silent => Instant::FAR_FUTURE,
        }
    }

    /// Nothing waited until now.
    pub(super) fn idle_until(&mut self, now: Instant) {
        if let Transmitter::Traced(traced) = self {
            traced.idle_until(now);
        }
    }

    /// Accepts a packet of `len` bytes that came at `came`, behind all earlier ones.
    pub(super) fn transmit(&mut self, came: Instant, len: usize) -> Transmission {
        match self {
            Transmitter::Constant(serialiser) => serialiser.transmit(came, len),
            Transmitter::Traced(traced) => traced.transmit(came, len),
            Transmitter::Silent => {
                Transmission { begins: Instant::FAR_FUTURE, ends: Instant::FAR_FUTURE }
            }
        }
    }

    /// Opportunities of a trace until now, whether they were taken or not.
    pub(super) fn opportunities(&self, now: Instant) -> u64 {
        match self {
            Transmitter::Traced(traced) => traced.opportunities.until(now),
            Transmitter::Constant(_) | Transmitter::Silent => 0,
        }
    }
}

/// Sends at the opportunities of a trace. A packet leaves the queue at the first that has room for a byte of it, and is sent with
/// the one that has room for its last.
#[derive(Clone, Debug)]
pub(super) struct Traced {
    opportunities: Opportunities,
    /// The opportunity last used, or the time until which nothing waited.
    at: Instant,
    /// Bytes that it still has room for.
    left: u64,
    /// The number of the one after it.
    next: u64,
}

impl Traced {
    fn new(opportunities: Opportunities) -> Self {
        // Those at the start come before any packet.
        let next = opportunities.until(Instant::ZERO);
        Traced { opportunities, at: Instant::ZERO, left: 0, next }
    }

    fn turn(&self) -> Instant {
        if self.left > 0 { self.at } else { self.opportunities.time(self.next) }
    }

    fn idle_until(&mut self, now: Instant) {
        if now < self.at {
            return;
        }
        (self.at, self.left) = (now, 0);
        if self.opportunities.time(self.next) <= now {
            self.next = self.opportunities.until(now);
        }
    }

    fn transmit(&mut self, came: Instant, len: usize) -> Transmission {
        self.idle_until(came);
        if self.left == 0 {
            self.take();
        }
        let begins = self.at;
        let beyond = (len as u64).saturating_sub(self.left);
        if beyond > 0 {
            // The last of as many as it takes more.
            self.next = self.next.saturating_add(beyond.div_ceil(OPPORTUNITY) - 1);
            self.take();
            self.left -= (beyond - 1) % OPPORTUNITY + 1;
        } else {
            self.left -= len as u64;
        }
        Transmission { begins, ends: self.at }
    }

    fn take(&mut self) {
        self.at = self.opportunities.time(self.next);
        self.left = OPPORTUNITY;
        self.next = self.next.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traced(text: &str) -> Traced {
        Traced::new(Opportunities::parse(text).unwrap())
    }

    fn micros(at: Instant) -> u64 {
        at.as_nanos() / 1000
    }

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_take_several() {
        let mut traced = traced("2\n5\n5\n9\n");
        let mut send = |came, len| {
            let Transmission { begins, ends } = traced.transmit(at(came), len);
            (micros(begins), micros(ends))
        };
        assert_eq!(send(0, 700), (2_000, 2_000));
        assert_eq!(send(0, 800), (2_000, 2_000));
        // 1500 + 1500 + 1 bytes: of the one at 9 ms, 1499 are left.
        assert_eq!(send(1_000, 3_001), (5_000, 9_000));
        assert_eq!(send(2_000, 1_400), (9_000, 9_000));
        // 99 bytes now and one at 11 ms, when the trace has begun again.
        assert_eq!(send(8_999, 100), (9_000, 11_000));
    }

    #[test]
    fn a_packet_that_comes_with_an_opportunity_misses_it() {
        let mut traced = traced("1\n");
        assert_eq!(micros(traced.transmit(at(0), 100).ends), 1_000);
        // The rest of the first opportunity is gone, needed or not.
        assert_eq!(micros(traced.transmit(at(1_000), 100).ends), 2_000);
        assert_eq!(micros(traced.transmit(at(1_999), 100).ends), 2_000);
        assert_eq!(micros(traced.transmit(at(7_500), 1500).ends), 8_000);
        assert_eq!(micros(traced.turn()), 9_000);
    }

    #[test]
    fn the_start_comes_before_any_packet() {
        let mut traced = traced("0\n0\n4\n");
        assert_eq!(micros(traced.transmit(at(0), 1500).ends), 4_000);
        // Those of the next start are at the same time as the one of the end.
        assert_eq!(micros(traced.transmit(at(0), 3000).ends), 4_000);
        assert_eq!(micros(traced.transmit(at(0), 1).ends), 8_000);
    }

    #[test]
    fn an_endless_packet_saturates() {
        let mut traced = traced("1\n");
        assert_eq!(traced.transmit(at(0), usize::MAX).begins, at(1_000));
        assert_eq!(traced.transmit(at(0), usize::MAX).ends, Instant::FAR_FUTURE);
        assert_eq!(traced.transmit(at(0), 0).ends, Instant::FAR_FUTURE);
    }
}

//! CoDel: controlled delay (RFC 8289; the algorithm of its section 5).
//!
//! A queue is good while it absorbs bursts and bad while it stands. CoDel measures how long each packet has waited when
//! it leaves. Once every packet of an `interval` has waited at least `target`, it drops one, and then further ones
//! after interval/√2, interval/√3, …. The rate of loss-controlled flows falls with 1/√(loss rate), so it falls linearly
//! in time. The first packet that waited less ends it. If the queue stands again soon after, the drop rate resumes at
//! its last value.
//!
//! Nothing is dropped while no more than an MTU remains behind the packet: a link must not run dry for it. With `ecn`,
//! packets of ECN-capable transports are marked instead. A marked packet is transmitted, hence at most one packet is
//! marked per call, where several may be dropped. The queue's capacity is enforced as by drop-tail. Square roots are
//! those of integers, exact to the nanosecond.

use transom_base::time::{Duration, Instant};

use super::config::above_zero;
use super::{
    Admission, Cause, ConfigError, Discipline, Event, Fifo, Item, Length, Limit, RandomSource,
    Sink, mark,
};
use crate::parameters::{DURATION, LENGTH, LIMIT, SWITCH, Walk};

/// The parameters of [`CoDel`]. The default has those of RFC 8289, sections 4.3 and 4.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CoDelConfig {
    /// The queue's capacity.
    pub(super) limit: Limit,
    /// The acceptable waiting time: 5 to 10 % of `interval`.
    pub(super) target: Duration,
    /// How long packets must have waited longer before CoDel acts: about the longest round-trip time.
    pub(super) interval: Duration,
    /// A packet is not dropped if no more than this many bytes remain behind it.
    pub(super) mtu: u32,
    /// Whether packets of ECN-capable transports are marked instead of dropped.
    pub(super) ecn: bool,
}

impl Default for CoDelConfig {
    fn default() -> Self {
        CoDelConfig {
            limit: Limit::default(),
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            mtu: 1500,
            ecn: false,
        }
    }
}

impl CoDelConfig {
    /// # Errors
    /// [`ConfigError`] if the parameters make no sense together.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        above_zero(&[("target", self.target.is_zero())])?;
        if self.target > self.interval {
            return Err(ConfigError::TargetAboveInterval);
        }
        Ok(())
    }

    /// All parameters.
    pub(super) fn walk(&mut self, walk: &mut Walk<'_>) {
        walk.at("limit", &mut self.limit, LIMIT);
        walk.at("target", &mut self.target, DURATION);
        walk.at("interval", &mut self.interval, DURATION);
        walk.at("mtu", &mut self.mtu, LENGTH);
        walk.at("ecn", &mut self.ecn, SWITCH);
    }
}

/// A queue that drops or marks when packets have waited in it for too long.
#[derive(Clone, Debug)]
pub(super) struct CoDel<P> {
    config: CoDelConfig,
    fifo: Fifo<P>,
    state: State,
}

/// The state of CoDel for one queue, whoever has the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    /// When packets will have waited for an interval, if they do now.
    first_above: Option<Instant>,
    /// Whether packets are being dropped.
    dropping: bool,
    /// When the next one is due while `dropping`; about when the last one was otherwise.
    drop_next: Instant,
    /// Drops since the rate of drops began to grow.
    count: u64,
    /// `count` at the beginning of the present dropping state.
    last_count: u64,
}

impl<P> CoDel<P> {
    /// An empty queue.
    pub(super) fn new(config: CoDelConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(CoDel { config, fifo: Fifo::new(), state: State::new() })
    }

    /// When the next packet is due to be dropped or marked; `None` while the queue is considered good.
    #[cfg(test)]
    fn drop_next(&self) -> Option<Instant> {
        self.state.dropping.then_some(self.state.drop_next)
    }
}

/// How the sender gets the signal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signalled {
    Marked,
    Dropped,
}

/// When the next drop is due: `t` + interval / √count.
pub(super) fn control_law(t: Instant, interval: Duration, count: u64) -> Instant {
    let square = u128::from(interval.as_nanos()) * u128::from(interval.as_nanos());
    // The root of at most 2^128 fits.
    t + Duration::from_nanos((square / u128::from(count.max(1))).isqrt() as u64)
}

impl State {
    /// That of a queue that has had no packet.
    pub(super) const fn new() -> Self {
        State {
            first_above: None,
            dropping: false,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    /// Takes the oldest packet, and tells whether it may be dropped (`dodequeue` in the RFC).
    fn pop<P>(
        &mut self,
        config: &CoDelConfig,
        fifo: &mut Fifo<P>,
        now: Instant,
    ) -> Option<(Item<P>, bool)> {
        let Some(item) = fifo.pop() else {
            self.first_above = None;
            return None;
        };
        let below = item.waited(now) < config.target;
        if below || fifo.length().bytes <= u64::from(config.mtu) {
            self.first_above = None;
            return Some((item, false));
        }
        let first_above = *self.first_above.get_or_insert(now + config.interval);
        Some((item, now >= first_above))
    }

    /// Drops `item` and takes the next one, or marks it. The flag tells whether the packet returned may be dropped.
    fn signal<P>(
        &mut self,
        config: &CoDelConfig,
        fifo: &mut Fifo<P>,
        now: Instant,
        mut item: Item<P>,
        sink: &mut Sink<'_, P>,
    ) -> (Option<Item<P>>, bool, Signalled) {
        if config.ecn && item.is_ecn_capable() {
            mark(now, Cause::Delay, &mut item, sink);
            return (Some(item), true, Signalled::Marked);
        }
        sink(Event::Dropped { at: now, cause: Cause::Delay, item });
        match self.pop(config, fifo, now) {
            Some((next, ok_to_drop)) => (Some(next), ok_to_drop, Signalled::Dropped),
            None => (None, false, Signalled::Dropped),
        }
    }

    /// Takes the next packet of `fifo` to transmit (`deque` in the RFC).
    pub(super) fn dequeue<P>(
        &mut self,
        config: &CoDelConfig,
        fifo: &mut Fifo<P>,
        now: Instant,
        sink: &mut Sink<'_, P>,
    ) -> Option<Item<P>> {
        let interval = config.interval;
        let Some((item, mut ok_to_drop)) = self.pop(config, fifo, now) else {
            self.dropping = false;
            return None;
        };
        if !self.dropping {
            if !ok_to_drop {
                return Some(item);
            }
            let (next, ..) = self.signal(config, fifo, now, item, sink);
            self.dropping = true;
            // Drops of the last dropping state that were more than it started with. If it ended a short while ago, the
            // rate it had reached is a good one to start with (RFC 8289, section 5.5).
            let grown = self.count - self.last_count;
            let recently = now.since(self.drop_next) < interval.times(16);
            self.count = if grown > 1 && recently { grown } else { 1 };
            self.last_count = self.count;
            self.drop_next = control_law(now, interval, self.count);
            return next;
        }
        let mut current = Some(item);
        loop {
            if !ok_to_drop {
                self.dropping = false;
            }
            if !self.dropping || now < self.drop_next {
                return current;
            }
            let item = current.take()?;
            self.count = self.count.saturating_add(1);
            let signalled;
            (current, ok_to_drop, signalled) = self.signal(config, fifo, now, item, sink);
            if ok_to_drop {
                self.drop_next = control_law(self.drop_next, interval, self.count);
            }
            if signalled == Signalled::Marked {
                return current;
            }
        }
    }
}

impl<P: Send> Discipline<P> for CoDel<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        item: Item<P>,
        _: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Admission {
        self.fifo.admit(now, item, self.config.limit, sink)
    }

    fn dequeue(
        &mut self,
        now: Instant,
        _: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Option<Item<P>> {
        self.state.dequeue(&self.config, &mut self.fifo, now, sink)
    }

    fn length(&self) -> Length {
        self.fifo.length()
    }
}

#[cfg(test)]
mod tests;

//! A drop-tail queue in front of the serialiser.
//!
//! Because the serialiser's rate is constant, the time at which each packet leaves the queue is known when
//! it enters. The queue therefore holds only those times and the packets' lengths, and is brought up to
//! date at each call.

use std::collections::VecDeque;
use std::fmt;

use transom_tcp::time::{Duration, Instant};

use super::Traffic;
use crate::units::Limit;
use transom_router::queue::Length;

/// A change of a queue's length, or a packet it refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueSample {
    /// When it happened on the link.
    pub at: Instant,
    /// The event.
    pub event: QueueEvent,
    /// The queue's length afterwards.
    pub length: Traffic,
}

/// An event of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueEvent {
    /// A packet had to wait.
    Enqueued,
    /// A packet went on to the serialiser.
    Dequeued,
    /// A packet did not fit.
    Dropped,
}

/// Receives the samples of a queue, in the order of their time.
pub(crate) type QueueObserver = Box<dyn FnMut(QueueSample) + Send>;

/// A packet that waits.
#[derive(Clone, Copy)]
struct Waiting {
    came: Instant,
    leaves: Instant,
    len: usize,
}

/// The packets waiting for a serialiser.
pub(crate) struct DropTail {
    limit: Limit,
    waiting: VecDeque<Waiting>,
    length: Traffic,
    peak: Traffic,
    /// How long the packets that have left had waited, all together.
    delay: Duration,
    observer: Option<QueueObserver>,
}

impl DropTail {
    /// An empty queue.
    pub(crate) fn new(limit: Limit) -> Self {
        DropTail {
            limit,
            waiting: VecDeque::new(),
            length: Traffic::default(),
            peak: Traffic::default(),
            delay: Duration::ZERO,
            observer: None,
        }
    }

    /// Whether a packet of `len` bytes fits.
    pub(crate) fn admits(&self, len: usize) -> bool {
        let Traffic { packets, bytes } = self.length;
        self.limit.admits(Length { packets, bytes }, len)
    }

    /// Appends a packet that will leave at `leaves`, not earlier than the one before it.
    pub(crate) fn push(&mut self, now: Instant, leaves: Instant, len: usize) {
        self.waiting.push_back(Waiting { came: now, leaves, len });
        self.length.count(len);
        self.peak.packets = self.peak.packets.max(self.length.packets);
        self.peak.bytes = self.peak.bytes.max(self.length.bytes);
        self.report(now, QueueEvent::Enqueued);
    }

    /// Tells the observer of a packet that did not fit.
    pub(crate) fn refuse(&mut self, now: Instant) {
        self.report(now, QueueEvent::Dropped);
    }

    /// Removes the packets that have left by `now`, and tells `waited` how long each had waited.
    pub(crate) fn drain(&mut self, now: Instant, mut waited: impl FnMut(Duration)) {
        while let Some(Waiting { came, leaves, len }) =
            self.waiting.pop_front_if(|one| one.leaves <= now)
        {
            self.length.uncount(len);
            let delay = leaves.since(came);
            self.delay = self.delay + delay;
            waited(delay);
            self.report(leaves, QueueEvent::Dequeued);
        }
    }

    /// How long the packets that have left had waited, all together.
    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }

    /// The length of the queue, as of the last [`drain`](Self::drain).
    pub(crate) fn length(&self) -> Traffic {
        self.length
    }

    /// The most that ever waited.
    pub(crate) fn peak(&self) -> Traffic {
        self.peak
    }

    /// Sets who is told of each change.
    pub(crate) fn observe(&mut self, observer: QueueObserver) {
        self.observer = Some(observer);
    }

    fn report(&mut self, at: Instant, event: QueueEvent) {
        if let Some(observer) = &mut self.observer {
            observer(QueueSample { at, event, length: self.length });
        }
    }
}

impl fmt::Debug for DropTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DropTail")
            .field("limit", &self.limit)
            .field("length", &self.length)
            .field("peak", &self.peak)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    const fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn a_limit_in_bytes_counts_whole_packets() {
        let mut queue = DropTail::new(Limit::Bytes(3000));
        assert!(queue.admits(3000) && !queue.admits(3001));
        queue.push(at(0), at(10), 1500);
        assert!(queue.admits(1500) && !queue.admits(1501));
        queue.push(at(0), at(20), 1500);
        assert!(!queue.admits(1));
        queue.drain(at(10), |_| {});
        assert!(queue.admits(1500));
        assert_eq!(queue.peak(), Traffic { packets: 2, bytes: 3000 });
    }

    #[test]
    fn the_observer_sees_every_change_at_its_own_time() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let mut queue = DropTail::new(Limit::Packets(2));
        queue.observe(Box::new(move |sample| sink.lock().unwrap().push(sample)));
        queue.push(at(1), at(10), 100);
        queue.push(at(2), at(20), 50);
        assert!(!queue.admits(1));
        queue.refuse(at(3));
        let mut waited = Vec::new();
        queue.drain(at(9), |delay| waited.push(delay.as_nanos()));
        assert!(waited.is_empty());
        queue.drain(at(100), |delay| waited.push(delay.as_nanos()));
        assert_eq!(waited, [9, 18]);
        assert_eq!(queue.delay(), Duration::from_nanos(27));
        let sample = |nanos, event, packets, bytes| QueueSample {
            at: at(nanos),
            event,
            length: Traffic { packets, bytes },
        };
        assert_eq!(
            *seen.lock().unwrap(),
            [
                sample(1, QueueEvent::Enqueued, 1, 100),
                sample(2, QueueEvent::Enqueued, 2, 150),
                sample(3, QueueEvent::Dropped, 2, 150),
                sample(10, QueueEvent::Dequeued, 1, 50),
                sample(20, QueueEvent::Dequeued, 0, 0),
            ]
        );
    }
}

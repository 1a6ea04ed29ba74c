//! A queue whose discipline decides as time goes by.
//!
//! If a discipline may drop a packet while it waits, or mark it when it leaves, the packet's future is not known when it is
//! offered. So the packets themselves wait here, and the discipline chooses the next one each time the serialiser becomes free.
//! The model catches up when it is called, with the times at which each step was due. So the result does not depend on the calls.

use super::{QueueEvent, QueueObserver, QueueSample, Traffic};
use crate::random::Rng;
use std::fmt;
use transom_router::queue::{Admission, Discipline, Event, Flow, Item, Length};
use transom_tcp::time::Instant;
use transom_wire::ip::Ecn;

/// A packet that waits.
#[derive(Debug)]
pub(super) struct Waiting<P> {
    pub(super) packet: P,
    /// How many packets had been offered to the link before it.
    pub(super) index: u64,
    /// When it was offered.
    pub(super) sent: Instant,
}

/// A packet that the link dropped or duplicated after accepting it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate<P> {
    /// It will not be delivered.
    Gone(P),
    /// There is one more copy of it.
    Copied(P),
}

/// Decisions of the discipline about other packets, made by a call for one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdicts {
    /// Packets and bytes dropped that were in the queue already.
    pub(super) dropped: Traffic,
    /// Packets marked.
    pub(super) marked: u64,
}

/// Notes what a discipline decides.
struct DecisionRecorder<'a, P> {
    verdicts: Verdicts,
    /// A list of packets dropped or duplicated later, if the owner wants it.
    fates: Option<&'a mut Vec<Fate<P>>>,
}

impl<'a, P> DecisionRecorder<'a, P> {
    fn new(fates: Option<&'a mut Vec<Fate<P>>>) -> Self {
        DecisionRecorder { verdicts: Verdicts::default(), fates }
    }

    fn note(&mut self, event: Event<'_, Waiting<P>>) {
        match event {
            Event::Dropped { item, .. } => {
                self.verdicts.dropped.count(item.len);
                if let Some(fates) = &mut self.fates {
                    fates.push(Fate::Gone(item.packet.packet));
                }
            }
            Event::Marked { .. } => self.verdicts.marked += 1,
        }
    }
}

/// A discipline with the packets in it.
pub(super) struct Managed<P> {
    discipline: Box<dyn Discipline<Waiting<P>>>,
    rng: Rng,
    peak: Traffic,
    observer: Option<QueueObserver>,
    /// Packets dropped or duplicated after they had been admitted, if the owner wants them.
    fates: Option<Vec<Fate<P>>>,
}

impl<P> Managed<P> {
    pub(super) fn new(discipline: Box<dyn Discipline<Waiting<P>>>, rng: Rng) -> Self {
        Managed { discipline, rng, peak: Traffic::default(), observer: None, fates: None }
    }

    /// Offers a packet. Returns whether it was admitted, and what became of others.
    pub(super) fn offer(
        &mut self,
        now: Instant,
        waiting: Waiting<P>,
        len: usize,
        (ecn, flow): (Ecn, Flow),
    ) -> (bool, Verdicts) {
        let Managed { discipline, rng, observer, fates, .. } = self;
        let index = waiting.index;
        let mut recorder = DecisionRecorder::new(fates.as_mut());
        let before = discipline.length();
        let admission = discipline.enqueue(
            now,
            Item::new(waiting, len, ecn).of_flow(flow),
            &mut || rng.next_u64(),
            &mut |event| match event {
                // Its owner is told by what is returned.
                Event::Dropped { item, .. } if item.packet.index == index => {}
                other => recorder.note(other),
            },
        );
        let verdicts = recorder.verdicts;
        let length = traffic(discipline.length());
        let admitted = admission == Admission::Queued;
        if let Some(observer) = observer {
            if !admitted || verdicts.dropped.packets > 0 {
                observer(QueueSample {
                    at: now,
                    event: QueueEvent::Dropped,
                    length: traffic(before),
                });
            }
            if admitted {
                observer(QueueSample { at: now, event: QueueEvent::Enqueued, length });
            }
        }
        (admitted, verdicts)
    }

    /// Takes the next packet for the serialiser, which is free at `at`.
    pub(super) fn next(&mut self, at: Instant) -> (Option<Item<Waiting<P>>>, Verdicts) {
        let Managed { discipline, rng, observer, fates, .. } = self;
        let mut recorder = DecisionRecorder::new(fates.as_mut());
        let item =
            discipline.dequeue(at, &mut || rng.next_u64(), &mut |event| recorder.note(event));
        let verdicts = recorder.verdicts;
        let length = traffic(discipline.length());
        if let Some(observer) = observer {
            for _ in 0..verdicts.dropped.packets {
                observer(QueueSample { at, event: QueueEvent::Dropped, length });
            }
            if item.is_some() {
                observer(QueueSample { at, event: QueueEvent::Dequeued, length });
            }
        }
        (item, verdicts)
    }

    /// Notes that so much waits, after the serialiser has taken what it can.
    pub(super) fn note_peak(&mut self) {
        let length = self.length();
        self.peak.packets = self.peak.packets.max(length.packets);
        self.peak.bytes = self.peak.bytes.max(length.bytes);
    }

    /// The earliest time at which the discipline gives a packet, if it is not only the serialiser that decides.
    pub(super) fn ready_at(&self) -> Option<Instant> {
        self.discipline.ready_at()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.discipline.is_empty()
    }

    pub(super) fn length(&self) -> Traffic {
        traffic(self.discipline.length())
    }

    pub(super) fn peak(&self) -> Traffic {
        self.peak
    }

    pub(super) fn observe(&mut self, observer: QueueObserver) {
        self.observer = Some(observer);
    }

    pub(super) fn tell_fates(&mut self) {
        self.fates.get_or_insert_default();
    }

    pub(super) fn tells_fates(&self) -> bool {
        self.fates.is_some()
    }

    pub(super) fn tell(&mut self, fate: Fate<P>) {
        self.fates.get_or_insert_default().push(fate);
    }

    pub(super) fn take_fate(&mut self) -> Option<Fate<P>> {
        self.fates.as_mut()?.pop()
    }
}

fn traffic(length: Length) -> Traffic {
    Traffic { packets: length.packets, bytes: length.bytes }
}

impl<P> fmt::Debug for Managed<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Managed")
            .field("length", &self.length())
            .field("peak", &self.peak)
            .finish_non_exhaustive()
    }
}

//! The flows that are known: constant work per packet, constant memory.
//!
//! A set-associative table with two choices. A keyed hash (SipHash-1-3: an attacker chooses the addresses) names two buckets of eight slots; a flow
//! is in one of them. A new one goes to the emptier, so that the table is nearly full before a bucket overflows. A slot is one cache line. 16 bits
//! of the hash are stored separately and show which slot to read. For a million flows these tags are two megabytes, which fit a processor's cache.
//!
//! Old flows are removed bucket by bucket over time ([`sweep`](FlowTable::sweep)). When both buckets are full, old flows there make room, then the
//! oldest half-open flow. An active flow is never dropped for another; then the new one gets no record.
//!
//! The paper's router searched its table from the beginning, so a packet's cost grew with the flows. `FlowTable::searched` does the same, for
//! measurements: it finds a flow by going through the list of all, instead of by its hash. All else is the same.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::ops::Range;

use siphasher::sip::SipHasher13;

use super::flow::{FlowKey, Phase, Record};

/// Slots in a bucket.
const WAYS: usize = 8;
/// The tag of a slot that holds nothing.
const EMPTY: u16 = 0;

/// How many milliseconds something may be silent before it is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ages {
    /// A flow that is under way, or not understood.
    pub(super) idle: u32,
    /// One whose end has been seen.
    pub(super) closing: u32,
    /// A handshake.
    pub(super) opening: u32,
}

impl Ages {
    fn expired(&self, now: u32, record: &Record) -> bool {
        let limit = match &record.phase {
            Phase::Opening(_) => self.opening,
            Phase::Open(open) if open.closing => self.closing,
            Phase::Open(_) | Phase::Lost => self.idle,
        };
        age(now, record) > limit
    }
}

/// How long nothing of it has been seen. A clock that has gone back makes nothing old.
fn age(now: u32, record: &Record) -> u32 {
    let age = now.wrapping_sub(record.seen);
    if age > u32::MAX / 2 { 0 } else { age }
}

/// A flow's place: a cache line.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Slot {
    key: FlowKey,
    record: Record,
}

const _: () = assert!(size_of::<Slot>() == 64 && size_of::<Record>() == 28);

/// The counters of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableStats {
    /// Slots for flows.
    pub capacity: usize,
    /// Flows in it.
    pub flows: usize,
    /// Flows of them whose handshake has been seen.
    pub open: usize,
    /// Flows forgotten because nothing more was seen of them.
    pub expired: u64,
    /// Half-open flows that were dropped for others.
    pub evicted: u64,
    /// Flows there was no room for.
    pub refused: u64,
}

/// The flows that are known.
pub(super) struct FlowTable {
    tags: Vec<[u16; WAYS]>,
    slots: Vec<[Slot; WAYS]>,
    secret: [u8; 16],
    /// The bucket that is swept next.
    hand: usize,
    stats: TableStats,
    /// All flows, oldest first, if they are searched for.
    list: Option<Vec<(FlowKey, Place)>>,
}

impl core::fmt::Debug for FlowTable {
    /// Without the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FlowTable").field("stats", &self.stats).finish_non_exhaustive()
    }
}

/// The place of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    bucket: usize,
    way: usize,
}

/// A flow's hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowHash(u64);

impl FlowHash {
    fn buckets(self, count: usize) -> [usize; 2] {
        // The upper bits of either half choose.
        let choose = |half: u64| ((half * count as u64) >> 32) as usize;
        [choose(self.0 & 0xffff_ffff), choose(self.0 >> 32)]
    }

    fn tag(self) -> u16 {
        // And the lower ones tell apart.
        match self.0 as u16 ^ (self.0 >> 32) as u16 {
            EMPTY => 1,
            tag => tag,
        }
    }
}

impl FlowTable {
    /// An empty table with room for `flows`. It has half as many slots more, of 64 bytes and two for the tag: with a hundred thousand flows the
    /// first bucket overflows when three quarters of all slots are taken. If there is not enough memory, the table is smaller, or empty.
    ///
    /// `secret` is 16 bytes that no outsider can guess.
    pub(crate) fn new(flows: u32, secret: [u8; 16]) -> Self {
        let (mut tags, mut slots) = (Vec::new(), Vec::new());
        let mut buckets = (flows as usize).saturating_mul(3).div_ceil(2 * WAYS);
        while buckets > 0 && !reserve(&mut tags, &mut slots, buckets) {
            buckets /= 2;
        }
        tags.resize(buckets, [EMPTY; WAYS]);
        slots.resize(buckets, [Slot::default(); WAYS]);
        let stats = TableStats { capacity: buckets * WAYS, ..TableStats::default() };
        FlowTable { tags, slots, secret, hand: 0, stats, list: None }
    }

    /// The same, but flows are searched for from the first to the last, as in the paper. Work per packet grows with the flows.
    pub(crate) fn searched(flows: u32, secret: [u8; 16]) -> Self {
        FlowTable { list: Some(Vec::new()), ..FlowTable::new(flows, secret) }
    }

    /// Its counters.
    pub(crate) fn stats(&self) -> TableStats {
        self.stats
    }

    /// The flows and their records, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&FlowKey, &Record)> {
        let taken = |(tag, slot): (&u16, _)| (*tag != EMPTY).then_some(slot);
        let slots = self.tags.iter().flatten().zip(self.slots.iter().flatten()).filter_map(taken);
        slots.map(|slot: &Slot| (&slot.key, &slot.record))
    }

    pub(super) fn hash(&self, key: &FlowKey) -> FlowHash {
        let mut hasher = SipHasher13::new_with_key(&self.secret);
        key.hash(&mut hasher);
        FlowHash(hasher.finish())
    }

    /// The probable places of a flow, from the tags alone.
    ///
    /// All tags of both buckets are compared without a branch, which gives a bit for each. The position of a flow follows no pattern, so with a
    /// branch for each tag a processor would mispredict once or twice for each packet.
    fn likely(&self, hash: FlowHash) -> impl Iterator<Item = Place> {
        let buckets = hash.buckets(self.tags.len());
        let [first, second] = buckets.map(|bucket| self.equal(bucket, hash.tag()));
        let mut equal = first | second << WAYS;
        core::iter::from_fn(move || {
            let next = equal.trailing_zeros() as usize;
            equal &= equal.wrapping_sub(1);
            let bucket = buckets.get(next / WAYS)?;
            Some(Place { bucket: *bucket, way: next % WAYS })
        })
    }

    /// The ways of a bucket that have this tag, a bit for each.
    fn equal(&self, bucket: usize, tag: u16) -> u32 {
        let Some(tags) = self.tags.get(bucket) else { return 0 };
        tags.iter().enumerate().fold(0, |bits, (way, other)| bits | u32::from(*other == tag) << way)
    }

    /// Reads the tags of the flow's buckets, to bring them into the cache. It has no branch, so a processor continues with the next before the
    /// memory arrives. The result is meaningless.
    pub(super) fn touch_tags(&self, hash: FlowHash) -> u16 {
        let first = |bucket: usize| self.tags.get(bucket).map_or(0, |[tag, ..]| *tag);
        hash.buckets(self.tags.len()).into_iter().map(first).fold(0, |sum, tag| sum ^ tag)
    }

    /// Reads the flow's slot, to bring it into the cache. The result is meaningless.
    pub(super) fn touch(&self, hash: FlowHash) -> u32 {
        let slot = self.likely(hash).next().and_then(|place| self.slot(place));
        slot.map_or(0, |slot| slot.record.seen)
    }

    /// The places of the tags of the flow's buckets.
    pub(super) fn tags_at(&self, hash: FlowHash) -> [usize; 2] {
        let at = |bucket: usize| {
            self.tags.get(bucket).map_or(0, |tags| core::ptr::from_ref(tags).addr())
        };
        hash.buckets(self.tags.len()).map(at)
    }

    /// The probable place of the flow's slot, when its tags are there; zero if there is none.
    pub(super) fn slot_at(&self, hash: FlowHash) -> usize {
        let slot = self.likely(hash).next().and_then(|place| self.slot(place));
        slot.map_or(0, |slot| core::ptr::from_ref(slot).addr())
    }

    /// The addresses of its memory, for large pages.
    pub(super) fn memory(&self) -> [Range<usize>; 2] {
        let (tags, slots) = (self.tags.as_ptr_range(), self.slots.as_ptr_range());
        [tags.start.addr()..tags.end.addr(), slots.start.addr()..slots.end.addr()]
    }

    fn slot(&self, place: Place) -> Option<&Slot> {
        self.slots.get(place.bucket)?.get(place.way)
    }

    pub(super) fn find(&self, hash: FlowHash, key: &FlowKey) -> Option<Place> {
        if let Some(list) = &self.list {
            return list.iter().find(|(other, _)| other == key).map(|(_, place)| *place);
        }
        self.likely(hash).find(|place| self.slot(*place).is_some_and(|slot| slot.key == *key))
    }

    pub(super) fn record(&mut self, place: Place) -> Option<&mut Record> {
        Some(&mut self.slots.get_mut(place.bucket)?.get_mut(place.way)?.record)
    }

    /// Puts another phase in place of a flow's.
    pub(super) fn set_phase(&mut self, place: Place, phase: Phase) {
        let Some(record) = self.record(place) else { return };
        let was = record.is_open();
        record.phase = phase;
        let is = record.is_open();
        self.stats.open += usize::from(is);
        self.stats.open -= usize::from(was);
    }

    /// Remembers a flow that is not in it yet. `None` if there is no room.
    pub(super) fn insert(
        &mut self,
        hash: FlowHash,
        key: FlowKey,
        record: Record,
        ages: &Ages,
    ) -> Option<Place> {
        let place = self.room(hash, record.seen, ages);
        let Some((place, slot)) = place.and_then(|place| {
            let slot = self.slots.get_mut(place.bucket)?.get_mut(place.way)?;
            *self.tags.get_mut(place.bucket)?.get_mut(place.way)? = hash.tag();
            Some((place, slot))
        }) else {
            self.stats.refused += 1;
            return None;
        };
        *slot = Slot { key, record };
        self.list.iter_mut().for_each(|list| list.push((key, place)));
        self.stats.flows += 1;
        self.stats.open += usize::from(record.is_open());
        Some(place)
    }

    /// A free slot for a flow, if possible.
    fn room(&mut self, hash: FlowHash, now: u32, ages: &Ages) -> Option<Place> {
        let buckets = hash.buckets(self.tags.len());
        let free = |bucket: usize| {
            let tags = self.tags.get(bucket)?;
            let way = tags.iter().position(|tag| *tag == EMPTY)?;
            let taken = tags.iter().filter(|tag| **tag != EMPTY).count();
            Some((taken, Place { bucket, way }))
        };
        if let Some((_, place)) =
            buckets.into_iter().filter_map(free).min_by_key(|(taken, _)| *taken)
        {
            return Some(place);
        }
        let all =
            buckets.into_iter().flat_map(|bucket| (0..WAYS).map(move |way| Place { bucket, way }));
        let mut oldest: Option<(u32, Place)> = None;
        for place in all {
            let record = self.slot(place)?.record;
            if ages.expired(now, &record) {
                self.remove(place);
                self.stats.expired += 1;
                return Some(place);
            }
            let age = age(now, &record);
            if !record.is_open() && oldest.is_none_or(|(most, _)| age > most) {
                oldest = Some((age, place));
            }
        }
        let (_, place) = oldest?;
        self.remove(place);
        self.stats.evicted += 1;
        Some(place)
    }

    fn remove(&mut self, place: Place) {
        let tag = self.tags.get_mut(place.bucket).and_then(|tags| tags.get_mut(place.way));
        let Some(tag) = tag.filter(|tag| **tag != EMPTY) else { return };
        *tag = EMPTY;
        self.list.iter_mut().for_each(|list| list.retain(|(_, other)| *other != place));
        self.stats.flows -= 1;
        let open = self.record(place).is_some_and(|record| record.is_open());
        self.stats.open -= usize::from(open);
    }

    /// Removes what is old from the next bucket.
    pub(super) fn sweep(&mut self, now: u32, ages: &Ages) {
        if self.tags.is_empty() {
            return;
        }
        let bucket = self.hand;
        self.hand = (self.hand + 1) % self.tags.len();
        for way in 0..WAYS {
            let place = Place { bucket, way };
            let taken = self.tags.get(bucket).and_then(|tags| tags.get(way)) != Some(&EMPTY);
            if taken && self.slot(place).is_some_and(|slot| ages.expired(now, &slot.record)) {
                self.remove(place);
                self.stats.expired += 1;
            }
        }
    }

    /// How many times [`sweep`](Self::sweep) has to be called to go through all of it.
    pub(super) fn buckets(&self) -> usize {
        self.tags.len()
    }
}

/// Whether there is memory for this many buckets.
fn reserve(tags: &mut Vec<[u16; WAYS]>, slots: &mut Vec<[Slot; WAYS]>, buckets: usize) -> bool {
    tags.try_reserve_exact(buckets).is_ok() && slots.try_reserve_exact(buckets).is_ok()
}

#[cfg(test)]
mod tests;

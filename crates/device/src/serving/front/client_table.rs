//! The table of a front: who has a place, and who has to go when there is none left.

use std::collections::{HashMap, HashSet};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use super::source::Source;
use super::{ANSWER_LONGEST, ANSWER_PATIENCE, HEAD_PATIENCE};

/// How far a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its head is not complete.
    Head,
    /// It is answered.
    Answer,
    /// It has a live stream.
    Stream,
}

#[derive(Debug)]
struct Place {
    socket: Arc<TcpStream>,
    source: Source,
    stage: Stage,
    /// When this stage began.
    began: Instant,
    /// When it last took something of its answer.
    progress: Instant,
    /// Since when an answer waits for room.
    blocked: Option<Instant>,
}

impl Place {
    fn is_late(&self, now: Instant) -> bool {
        let since = |at: Instant| now.saturating_duration_since(at);
        let is_blocked = self.blocked.is_some_and(|at| since(at) > ANSWER_PATIENCE);
        match self.stage {
            Stage::Head => since(self.began) > HEAD_PATIENCE,
            Stage::Answer => is_blocked || since(self.began) > ANSWER_LONGEST,
            Stage::Stream => is_blocked,
        }
    }
}

/// The table.
#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    most_streams: usize,
    places: HashMap<u64, Place>,
    serial: u64,
}

impl Places {
    /// With so many places, and so many more for live streams.
    pub(super) fn new(most: usize, most_streams: usize) -> Self {
        Places { most, most_streams, places: HashMap::new(), serial: 0 }
    }

    /// Gives a new client a place, which another loses if there is no other.
    pub(super) fn enter(&mut self, socket: Arc<TcpStream>, source: Source, now: Instant) -> u64 {
        if self.ordinary().count() >= self.most {
            self.evict_ordinary(Some(source));
        }
        let id = self.serial;
        self.serial += 1;
        let place =
            Place { socket, source, stage: Stage::Head, began: now, progress: now, blocked: None };
        self.places.insert(id, place);
        id
    }

    /// Takes a place away, for its descriptor.
    pub(super) fn make_room(&mut self) {
        self.evict_ordinary(None);
    }

    fn ordinary(&self) -> impl Iterator<Item = (u64, &Place)> {
        self.of_kind(false)
    }

    fn of_kind(&self, streams: bool) -> impl Iterator<Item = (u64, &Place)> {
        let of_kind = move |place: &Place| (place.stage == Stage::Stream) == streams;
        self.places.iter().filter(move |(_, place)| of_kind(place)).map(|(&id, place)| (id, place))
    }

    fn counts(&self, streams: bool, newcomer: Option<Source>) -> HashMap<Source, usize> {
        let mut counts = HashMap::new();
        let sources = self.of_kind(streams).map(|(_, place)| place.source);
        sources.chain(newcomer).for_each(|source| *counts.entry(source).or_default() += 1);
        counts
    }

    /// Of the source that has most: first who has not asked yet, in the order of their coming; then who has taken nothing for longest.
    fn evict_ordinary(&mut self, newcomer: Option<Source>) {
        let counts = self.counts(false, newcomer);
        let rank = |place: &Place| {
            let count = counts.get(&place.source).copied().unwrap_or_default();
            (count, place.stage == Stage::Head, std::cmp::Reverse(place.progress))
        };
        let victim =
            self.ordinary().max_by_key(|(id, place)| (rank(place), std::cmp::Reverse(*id)));
        if let Some(id) = victim.map(|(id, _)| id) {
            self.evict(id);
        }
    }

    fn evict(&mut self, id: u64) {
        if let Some(place) = self.places.remove(&id) {
            // It may have ended by itself.
            let _ = place.socket.shutdown(Shutdown::Both);
        }
    }

    /// Makes a client's answer a live stream. If all streams are taken, a source that has more than this one loses its oldest.
    pub(super) fn begin_stream(&mut self, id: u64) -> bool {
        let Some(source) = self.places.get(&id).map(|place| place.source) else { return false };
        if self.of_kind(true).count() >= self.most_streams {
            let counts = self.counts(true, Some(source));
            let own = counts.get(&source).copied().unwrap_or_default();
            let count = |place: &Place| counts.get(&place.source).copied().unwrap_or_default();
            let others = self.of_kind(true).filter(|(_, place)| count(place) > own);
            let oldest = others.max_by_key(|(id, place)| (count(place), std::cmp::Reverse(*id)));
            match oldest.map(|(id, _)| id) {
                Some(oldest) => self.evict(oldest),
                None => return false,
            }
        }
        if let Some(place) = self.places.get_mut(&id) {
            place.stage = Stage::Stream;
        }
        true
    }

    /// A client has come to a stage.
    pub(super) fn reaches(&mut self, id: u64, stage: Stage, now: Instant) {
        if let Some(place) = self.places.get_mut(&id) {
            (place.stage, place.began, place.progress) = (stage, now, now);
        }
    }

    /// A client has taken something.
    pub(super) fn wrote(&mut self, id: u64, now: Instant) {
        if let Some(place) = self.places.get_mut(&id) {
            (place.progress, place.blocked) = (now, None);
        }
    }

    /// An answer waits for its client.
    pub(super) fn waits(&mut self, id: u64, now: Instant) {
        if let Some(place) = self.places.get_mut(&id) {
            place.blocked.get_or_insert(now);
        }
    }

    /// Takes the places of those whose time is over.
    pub(super) fn evict_late_ones(&mut self, now: Instant) {
        let late = self.places.iter().filter(|(_, place)| place.is_late(now));
        let late: Vec<_> = late.map(|(&id, _)| id).collect();
        late.into_iter().for_each(|id| self.evict(id));
    }

    /// Whether a client will be late at a time if nothing happens before.
    #[cfg(test)]
    pub(super) fn will_be_late(&self, id: u64, at: Instant) -> bool {
        self.places.get(&id).is_some_and(|place| place.is_late(at))
    }

    /// A client has gone.
    pub(super) fn leave(&mut self, id: u64) {
        self.places.remove(&id);
    }

    /// Whether this client still has a place.
    pub(super) fn has(&self, id: u64) -> bool {
        self.places.contains_key(&id)
    }

    /// All who have places.
    pub(super) fn present(&self) -> HashSet<u64> {
        self.places.keys().copied().collect()
    }

    /// Whether nobody has a place.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::time::Duration;

    fn socket() -> Arc<TcpStream> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Arc::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap())
    }

    const GOOD: Source = Source::User(1);
    const BAD: Source = Source::User(2);

    #[test]
    fn the_source_with_most_loses_its_oldest() {
        let (socket, now) = (socket(), Instant::now());
        let mut places = Places::new(4, 2);
        let mut enter = |source| {
            let id = places.enter(socket.clone(), source, now);
            (id, places.present())
        };
        let (good, _) = enter(GOOD);
        let bad = [0; 10].map(|_| enter(BAD).0);
        let (_, present) = enter(GOOD);
        assert!(present.contains(&good), "the one place of another source is not taken");
        assert!(bad[8..].iter().all(|id| present.contains(id)), "{present:?}");
        assert_eq!(present.len(), 4);
        // Alone, it is the oldest of its own that goes.
        let ids = [0; 10].map(|_| places.enter(socket.clone(), GOOD, now));
        assert!(places.has(ids[9]) && !places.has(good));
        assert_eq!(places.present().len(), 4);
    }

    #[test]
    fn clients_with_a_request_stay_longer_than_silent_ones() {
        let (socket, now) = (socket(), Instant::now());
        let mut places = Places::new(3, 2);
        let asked = places.enter(socket.clone(), BAD, now);
        let slow = places.enter(socket.clone(), BAD, now);
        places.reaches(asked, Stage::Answer, now);
        places.reaches(slow, Stage::Answer, now);
        for n in 1..10 {
            let later = now + Duration::from_millis(n);
            places.wrote(asked, later);
            places.enter(socket.clone(), BAD, later);
        }
        assert!(places.has(asked) && places.has(slow));
        // When all are being answered, it is who has taken nothing for longest.
        let last = *places.present().iter().max().unwrap();
        places.reaches(last, Stage::Answer, now + Duration::from_millis(11));
        places.enter(socket.clone(), BAD, now + Duration::from_millis(12));
        assert!(places.has(asked) && !places.has(slow));
    }

    #[test]
    fn streams_have_places_of_their_own_and_a_reserve() {
        let (socket, now) = (socket(), Instant::now());
        let mut places = Places::new(100, 2);
        let mut enter = |source| {
            let id = places.enter(socket.clone(), source, now);
            (id, places.begin_stream(id))
        };
        let (first, second, third) = (enter(BAD), enter(BAD), enter(BAD));
        assert_eq!((first.1, second.1, third.1), (true, true, false));
        let (good, again) = (enter(GOOD), enter(GOOD));
        assert_eq!((good.1, again.1), (true, false), "one of two for each");
        assert!(!places.has(first.0) && places.has(second.0) && places.has(good.0));
    }

    #[test]
    fn each_stage_has_its_time() {
        let (socket, now) = (socket(), Instant::now());
        let mut places = Places::new(100, 2);
        let mut enter = |stage| {
            let id = places.enter(socket.clone(), BAD, now);
            places.reaches(id, stage, now);
            id
        };
        let (head, blocked) = (enter(Stage::Head), enter(Stage::Answer));
        let (answered, stream) = (enter(Stage::Answer), enter(Stage::Stream));
        places.waits(blocked, now);
        let mut after = |patience: Duration| {
            places.evict_late_ones(now + patience + Duration::from_nanos(1));
            [head, blocked, answered, stream].map(|id| places.has(id))
        };
        assert_eq!(after(HEAD_PATIENCE), [false, true, true, true]);
        assert_eq!(after(ANSWER_PATIENCE), [false, false, true, true]);
        assert_eq!(after(ANSWER_LONGEST), [false, false, false, true]);
        places.waits(stream, now);
        places.wrote(stream, now);
        places.evict_late_ones(now + ANSWER_LONGEST);
        assert!(places.has(stream), "what was written is not waited for");
        places.waits(stream, now);
        places.evict_late_ones(now + ANSWER_LONGEST);
        assert!(places.is_empty());
    }
}

//! Units that are complete and have not been taken.
//!
//! They lie one behind the other in one ring, each behind its place and length in a few bytes. A peer may send units of two bytes of
//! stream each; a vector for every one of them would cost twenty times that.

use crate::pos::Pos;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

/// The queue of complete units.
#[derive(Debug)]
pub(super) struct Ready {
    ring: VecDeque<u8>,
    /// Bytes of the stream that they took.
    wire: usize,
    /// The starts of the last unit that was put in, and of the last one taken out: places are kept as differences.
    put: Pos,
    taken: Pos,
    count: usize,
}

impl Ready {
    /// None.
    pub(super) fn new() -> Self {
        let start = Pos::INITIAL;
        Ready { ring: VecDeque::new(), wire: 0, put: start, taken: start, count: 0 }
    }

    /// Bytes of the stream that they took, without delimiters.
    pub(super) fn wire(&self) -> usize {
        self.wire
    }

    /// Bytes of memory that they take.
    pub(super) fn bytes(&self) -> usize {
        self.ring.len()
    }

    /// Bytes of memory owned.
    pub(super) fn memory(&self) -> usize {
        self.ring.capacity()
    }

    /// Gives unused memory back.
    pub(super) fn release(&mut self) {
        if self.count == 0 {
            self.ring = VecDeque::new();
        }
    }

    /// Begins a unit of `len` bytes at `range` of the stream. Its bytes follow with [`Ready::extend`].
    pub(super) fn begin(&mut self, range: &Range<Pos>, len: usize) {
        let wire = range.end.since(range.start);
        let step = range.start.get().wrapping_sub(self.put.get()) as i64;
        // Small steps of either sign become small numbers.
        self.put_number((step << 1 ^ step >> 63) as u64);
        self.put_number(wire);
        self.put_number(len as u64);
        self.put = range.start;
        self.wire += wire as usize;
        self.count += 1;
    }

    /// The next bytes of the unit that was begun last.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.ring.extend(bytes);
    }

    /// The position of the next unit in the stream.
    pub(super) fn next_start(&self) -> Option<Pos> {
        let mut ring = self.ring.iter().copied();
        (self.count > 0).then(|| self.after_taken(number(&mut || ring.next())))
    }

    /// Takes the next unit, replacing the contents of `unit`, and returns its position.
    pub(super) fn take(&mut self, unit: &mut Vec<u8>) -> Option<Range<Pos>> {
        let (range, len) = self.pop()?;
        unit.clear();
        let (front, back) = self.ring.as_slices();
        let here = front.len().min(len);
        unit.extend_from_slice(&front[..here]);
        unit.extend_from_slice(&back[..len - here]);
        self.ring.drain(..len);
        Some(range)
    }

    /// Drops the next unit and says how many bytes of the stream it took.
    pub(super) fn drop_next(&mut self) -> Option<usize> {
        let (range, len) = self.pop()?;
        self.ring.drain(..len);
        Some(range.end.since(range.start) as usize)
    }

    fn pop(&mut self) -> Option<(Range<Pos>, usize)> {
        self.count = self.count.checked_sub(1)?;
        let ring = &mut self.ring;
        let mut next = || ring.pop_front();
        let (step, wire, len) = (number(&mut next), number(&mut next), number(&mut next));
        self.taken = self.after_taken(step);
        self.wire -= wire as usize;
        Some((self.taken..self.taken + wire, len as usize))
    }

    fn after_taken(&self, step: u64) -> Pos {
        let step = (step >> 1) as i64 ^ -((step & 1) as i64);
        if step < 0 { self.taken - step.unsigned_abs() } else { self.taken + step as u64 }
    }

    fn put_number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.ring.push_back(number as u8 | 0x80);
            number >>= 7;
        }
        self.ring.push_back(number as u8);
    }
}

/// A number in groups of seven bits, the lowest first; all but the last have the top bit set.
fn number(next: &mut dyn FnMut() -> Option<u8>) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = next().unwrap_or(0);
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_come_out_as_they_went_in_whatever_their_places() {
        let place = |at: u64, len: u64| Pos::FIRST_DATA + at..Pos::FIRST_DATA + at + len;
        let mut ready = Ready::new();
        let mut unit = std::vec![1, 2, 3];
        assert_eq!((ready.take(&mut unit), ready.next_start()), (None, None));
        let units = [(1, 5, &b"ab"[..]), (1 << 40, 300, b"c"), (7, 1, b""), (9, 130, &[7; 128])];
        for round in 0..3 {
            for (at, wire, bytes) in units {
                ready.begin(&place(at, wire), bytes.len());
                let (one, other) = bytes.split_at(bytes.len() / 2);
                ready.extend(one);
                ready.extend(other);
            }
            assert_eq!((ready.count, ready.wire()), (4, 436));
            for (at, wire, bytes) in units {
                assert_eq!(ready.next_start(), Some(place(at, wire).start), "round {round}");
                assert_eq!(ready.take(&mut unit), Some(place(at, wire)));
                assert_eq!(unit, bytes);
            }
            assert_eq!((ready.count, ready.wire(), ready.bytes()), (0, 0, 0));
        }
        ready.begin(&place(3, 4), 2);
        ready.extend(b"xy");
        assert_eq!((ready.drop_next(), ready.drop_next()), (Some(4), None));
        ready.release();
        assert_eq!(ready.memory(), 0);
    }

    #[test]
    fn small_units_cost_little_more_than_their_part_of_the_stream() {
        let mut ready = Ready::new();
        for at in 0..10_000 {
            let start = Pos::FIRST_DATA + 1 + 2 * at;
            ready.begin(&(start..start + 1), 0);
        }
        assert!(ready.bytes() <= 2 * 20_000, "{} bytes", ready.bytes());
    }
}

//! The sequence numbers of one way: where they lie, and which of them can be.
//!
//! A number of 32 bits has no meaning without others near it. One that is far away moves everything behind it, so none is believed that lies
//! outside of any window that was possible when it came: a challenge ACK of an older connection, a stranger's segment. The bounds:
//!
//! - data that begins at or before the end of all data is possible, as far back as the receiver's window reaches below its acknowledgement;
//! - data behind a gap is possible up to a window beyond the right edge that the receiver has told, because the capture may lack packets;
//! - an acknowledgement is possible up to what was sent, or what may have been sent by that edge;
//! - nothing lies before a SYN that was seen.
//!
//! A capture may lack more than a window. Then both ends go on at other numbers, and they agree about them: data that was not possible is
//! acknowledged by the other end. A capture of one way has no acknowledgements; there, three such segments in a row, each behind the other,
//! are as good. A stranger has neither, as the end that it pretends to speak to answers with the true numbers.

use transom_wire::Seq;

/// The most that a window is taken for while its scale is unknown, in bytes. The largest one is 1 GiB, which is no bound at all.
const MOST_UNKNOWN: i64 = 1 << 26;
/// The least that a window is taken for: that of a SYN, which is not scaled.
const LEAST: i64 = 65_535;
/// So near must numbers lie to agree.
const NEAR: i64 = 1 << 20;
/// So many segments in a row, each behind the other, are believed without an acknowledgement.
const IN_A_ROW: u32 = 3;
/// The largest window (RFC 7323 section 2.3).
const LARGEST: i64 = 65_535 << 14;

/// The numbers of one way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    /// A sequence number and its position, near the front.
    reference: Option<(Seq, i64)>,
    /// Whether the SYN was seen; it is at zero.
    has_syn: bool,
    /// The end of all that was sent, and of all that was acknowledged.
    pub(crate) front: Option<i64>,
    pub(crate) acked: Option<i64>,
    /// The right edge that the receiver has told, furthest right, and its largest window.
    edge: Option<i64>,
    window: i64,
    /// The end of data that was not possible, and how many such segments came in a row.
    suspect: Option<(i64, u32)>,
    /// An acknowledgement that was not possible.
    suspect_ack: Option<i64>,
}

impl Numbers {
    /// The position of a sequence number: of all that have these lower 32 bits, the one closest to the front. `None` before the first.
    pub(crate) fn locate(&self, seq: Seq) -> Option<i64> {
        let (near, position) = self.reference?;
        Some(position + i64::from(seq.get().wrapping_sub(near.get()) as i32))
    }

    /// The position of a number that is believed. The first one is at zero.
    pub(crate) fn place(&mut self, seq: Seq) -> i64 {
        self.locate(seq).unwrap_or_else(|| {
            self.reference = Some((seq, 0));
            0
        })
    }

    /// A number that is believed has this position; later ones are looked for around the furthest.
    pub(crate) fn advance(&mut self, seq: Seq, position: i64) {
        if self.reference.is_none_or(|(_, there)| position > there) {
            self.reference = Some((seq, position));
        }
    }

    /// The SYN has this number: it is at zero. How much the positions so far have to be moved.
    pub(crate) fn begin(&mut self, isn: Seq) -> i64 {
        let shift = -self.locate(isn).unwrap_or(0);
        self.has_syn = true;
        match &mut self.reference {
            Some((_, position)) => *position += shift,
            None => self.reference = Some((isn, 0)),
        }
        let moved = [&mut self.front, &mut self.acked, &mut self.edge, &mut self.suspect_ack];
        moved.into_iter().flatten().for_each(|position| *position += shift);
        self.suspect = None;
        shift
    }

    /// The SYN that was not seen, or not yet, has this number.
    pub(crate) fn expect(&mut self, isn: Seq) {
        if self.reference.is_none() {
            self.reference = Some((isn, 0));
        }
    }

    /// The window that is taken for possible.
    fn reach(&self) -> i64 {
        // A capture of one way says nothing of windows.
        if self.edge.is_none() && !self.has_syn { MOST_UNKNOWN } else { self.window.max(LEAST) }
    }

    /// Whether data of `space` bytes can begin there. Remembers it if not.
    pub(crate) fn is_possible(&mut self, seq: Seq, space: u32) -> bool {
        let Some(start) = self.locate(seq) else { return true };
        let end = start + i64::from(space);
        let (Some(lowest), highest) = self.bounds() else { return true };
        if (lowest..=highest).contains(&start) {
            if space > 0 {
                self.suspect = None;
            }
            return true;
        }
        if self.suspect_ack.take_if(|ack| (start - *ack).abs() <= NEAR).is_some() {
            // Both ends agree: the capture lacks what lies between.
            return self.resume(start);
        }
        if space == 0 {
            return false;
        }
        let is_behind = |last: i64| start >= last && start - last <= NEAR;
        let count = match self.suspect {
            Some((last, count)) if is_behind(last) => count + 1,
            _ => 1,
        };
        let is_far = (start - highest).abs() > LARGEST;
        if count >= IN_A_ROW && self.acked.is_none() && !is_far {
            return self.resume(start);
        }
        self.suspect = Some((end, count));
        false
    }

    /// The way goes on here. Numbers from before are as far as they were.
    fn resume(&mut self, front: i64) -> bool {
        self.front = Some(self.front.map_or(front, |last| last.max(front)));
        // What the receiver has told meanwhile is not known.
        let edge = front + self.reach();
        self.edge = self.edge.map(|last| last.max(edge));
        (self.suspect, self.suspect_ack) = (None, None);
        true
    }

    /// Where data may begin.
    fn bounds(&self) -> (Option<i64>, i64) {
        let known = [self.front, self.acked].into_iter().flatten();
        let Some(front) = known.clone().max() else { return (None, 0) };
        let low = self.acked.unwrap_or(front) - self.reach();
        let low = if self.has_syn { low.max(0) } else { low };
        let high = self.edge.map_or(front, |edge| edge.max(front));
        (Some(low.min(front)), high + self.reach())
    }

    /// Whether the other end can acknowledge this. Remembers it if not.
    pub(crate) fn can_be_acknowledged(&mut self, ack: Seq) -> bool {
        let Some(position) = self.locate(ack) else { return true };
        let Some(known) = [self.front, self.acked].into_iter().flatten().max() else {
            return !self.has_syn || position > 0;
        };
        let low = if self.has_syn { 0 } else { self.acked.unwrap_or(known) - self.reach() };
        // Without an edge the receiver has not spoken yet: what a SYN or a first flight may carry.
        let high = self.edge.map_or(known + self.reach(), |edge| edge.max(known));
        // A FIN, or a probe beyond the window, takes one more.
        if (low..=high + 1).contains(&position) {
            self.suspect_ack = None;
            return true;
        }
        if let Some((end, _)) = self.suspect.take_if(|(end, _)| (position - *end).abs() <= NEAR) {
            return self.resume(end);
        }
        self.suspect_ack = Some(position);
        false
    }

    /// The receiver tells a window with an acknowledgement that is believed: in bytes, or the field if its scale is not known.
    pub(crate) fn told(&mut self, position: i64, window: Option<u64>, field: u16) {
        let window = match window {
            Some(window) => i64::try_from(window).unwrap_or(LARGEST).min(LARGEST),
            None => (i64::from(field) << 14).min(MOST_UNKNOWN),
        };
        self.window = self.window.max(window);
        let edge = position + window;
        self.edge = Some(self.edge.map_or(edge, |last| last.max(edge)));
    }
}

//! Giving up: lost data that will not be retransmitted.
//!
//! Such a record stays on the scoreboard, outside of the flight, until the peer has moved over it. The peer needs only one
//! position: the first record that may still arrive or will be retransmitted.

use super::{SegmentStatus, Sent, SentList};
use crate::pos::Pos;
use crate::time::Instant;

impl SentList {
    /// Gives up everything lost below `end` that is `hopeless`. A record that reaches beyond `end` is split there. With
    /// `repaired_too` also what was sent again and may still arrive, otherwise only what waits to be. Returns the bytes newly
    /// given up.
    pub(crate) fn give_up(
        &mut self,
        end: Pos,
        repaired_too: bool,
        hopeless: impl Fn(&Sent) -> bool,
    ) -> u64 {
        let mut newly = 0;
        let mut index = if repaired_too { 0 } else { self.index_of(self.next_lost_hint) };
        while let Some(&record) = self.list.get(index)
            && record.start < end
        {
            let SegmentStatus { sacked, lost, given_up, .. } = record.status;
            let candidate =
                record.status.is_to_be_repaired() || (repaired_too && lost && !sacked && !given_up);
            if candidate && hopeless(&record) {
                self.split(index, end);
                let status =
                    SegmentStatus { lost: true, given_up: true, ..SegmentStatus::default() };
                self.set_status(index, status);
                newly += self.list.get(index).map_or(0, Sent::len);
            }
            index += 1;
        }
        newly
    }

    /// Data that was given up waits for retransmission after all.
    pub(crate) fn take_up_again(&mut self) {
        for index in 0..self.list.len() {
            let status = self.list[index].status;
            if status.given_up {
                self.set_status(index, SegmentStatus { given_up: false, ..status });
            }
        }
        self.next_lost_hint = self.start;
    }

    /// From `from` on, or from SND.UNA, over everything that was given up or has arrived: the position before which nothing will
    /// be sent any more.
    pub(crate) fn given_up_upto(&self, from: Pos) -> Pos {
        let mut upto = from.max(self.start);
        let mut index = self.index_of(upto);
        while let Some(record) = self.list.get(index)
            && (record.status.given_up || record.status.sacked)
        {
            upto = record.end;
            index += 1;
        }
        upto
    }

    /// When the oldest data was first sent that is lost and neither repaired nor given up; searches from `from` on.
    pub(crate) fn oldest_unrepaired(&self, from: Pos) -> Option<Instant> {
        if self.lost_bytes == 0 {
            return None;
        }
        let unrepaired = |record: &&Sent| {
            let SegmentStatus { sacked, lost, given_up, .. } = record.status;
            lost && !sacked && !given_up
        };
        let from = self.index_of(from);
        self.list.iter().skip(from).find(unrepaired).map(|record| record.first_sent)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, p, ten_segments};
    use super::super::{Delivered, SentList};

    #[test]
    fn abandoned_data_is_neither_in_flight_nor_repaired_nor_delivered() {
        let mut sent = ten_segments();
        let mut d = Delivered::default();
        // Segments 0 and 2 are lost, 1, 3, 4 and 5 have arrived, the rest may still.
        sent.sack(p(100)..p(200), 100, at(20), &mut d);
        sent.sack(p(300)..p(600), 100, at(20), &mut d);
        assert_eq!(sent.mark_lost_below(p(300)), 200);
        assert_eq!(sent.given_up_upto(p(0)), p(0), "nothing is given up yet");
        assert_eq!(sent.give_up(p(1000), false, |_| true), 200);
        assert_eq!(sent.give_up(p(1000), false, |_| true), 0, "once");
        assert_eq!(sent.in_flight(), 400);
        assert_eq!(sent.next_lost(), None);
        assert_eq!(sent.first_unsacked_in(p(0)..p(600)), None);
        assert_eq!(sent.given_up_upto(p(0)), p(600), "over all that has arrived, too");
        sent.check().unwrap();
        // The receiver moves over the holes: 200 bytes of what it acknowledges had not arrived, and their transmissions tell
        // nothing of the round trip.
        let mut d = Delivered::default();
        sent.acknowledge(p(600), at(40), &mut d);
        assert_eq!((d.acked, d.given_up, d.acked_not_sacked), (600, 200, 0));
        assert_eq!((d.rtt, d.lowest_original), (None, None));
        sent.check().unwrap();
    }

    #[test]
    fn the_end_of_the_stream_is_not_given_up() {
        let mut sent = SentList::new(p(0), at(0));
        // 100 bytes and the FIN behind them in one transmission.
        sent.push(p(101), at(1));
        sent.mark_all_lost();
        assert_eq!(sent.give_up(p(100), false, |_| true), 100);
        assert_eq!(sent.next_lost(), Some(p(100)..p(101)), "the FIN is sent again");
        assert_eq!(sent.given_up_upto(p(0)), p(100));
        sent.check().unwrap();
    }

    #[test]
    fn only_the_hopeless_is_given_up() {
        let mut sent = ten_segments();
        sent.mark_all_lost();
        // Sent before the fourth millisecond: three segments.
        assert_eq!(sent.oldest_unrepaired(p(0)), Some(at(1)));
        assert_eq!(sent.give_up(p(1000), false, |record| record.first_sent < at(4)), 300);
        assert_eq!(sent.next_lost(), Some(p(300)..p(400)));
        assert_eq!(sent.oldest_unrepaired(p(0)), Some(at(4)));
        // The fourth is sent again, and given up while that copy is on its way.
        sent.retransmit(p(300), 100, 100, at(20));
        assert_eq!(sent.give_up(p(1000), false, |record| record.first_sent < at(5)), 0);
        assert_eq!(sent.in_flight(), 100);
        assert_eq!(sent.give_up(p(1000), true, |record| record.first_sent < at(5)), 100);
        assert_eq!(sent.in_flight(), 0);
        assert_eq!(sent.given_up_upto(p(0)), p(400));
        // A timeout changes nothing in that; taking it up again does.
        sent.mark_all_lost();
        assert_eq!(sent.given_up_upto(p(0)), p(400));
        sent.take_up_again();
        assert_eq!(sent.next_lost(), Some(p(0)..p(100)));
        assert_eq!(sent.given_up_upto(p(0)), p(0));
        sent.check().unwrap();
    }
}

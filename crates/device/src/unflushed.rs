//! Packets that a device keeps until its caller flushes, so that they leave by few system calls.

use std::io::IoSlice;
use std::ops::Range;

use rustix::io::Errno;

/// So many packets are kept at most.
pub(crate) const MOST: usize = 64;
/// So long is the longest packet that is kept, in bytes. To copy a longer one costs more than the system call that it saves.
pub(crate) const LONGEST: usize = 2048;

/// Packets in the order in which they leave. Its memory grows once, to [`MOST`] times [`LONGEST`] bytes at most.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    bytes: Vec<u8>,
    /// Where each packet ends.
    ends: Vec<usize>,
    /// How many were lost since that was asked last.
    lost: usize,
}

impl Kept {
    /// Keeps a packet that comes in parts. Says whether there is room for it: a packet that is too long never has any.
    pub(crate) fn keep(&mut self, parts: &[&[u8]]) -> bool {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if self.is_full() || length > LONGEST {
            return false;
        }
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.ends.push(self.bytes.len());
        true
    }

    /// Whether there is no packet.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether there is no room for one more packet.
    pub(crate) fn is_full(&self) -> bool {
        self.ends.len() >= MOST
    }

    /// How many packets there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A packet by its number; empty beyond the last.
    pub(crate) fn packet(&self, number: usize) -> &[u8] {
        self.bytes.get(self.place(number)).unwrap_or_default()
    }

    /// The same, to be changed.
    pub(crate) fn packet_mut(&mut self, number: usize) -> &mut [u8] {
        let place = self.place(number);
        self.bytes.get_mut(place).unwrap_or_default()
    }

    fn place(&self, number: usize) -> Range<usize> {
        let end = |number: usize| self.ends.get(number).copied().unwrap_or(self.bytes.len());
        let start = number.checked_sub(1).map_or(0, end);
        start..end(number).max(start)
    }

    /// Has `send` send all of them, in order; then there are none. `send` gets those that are left, and says how many of them it sent, or why it
    /// did not send the first. That one is lost then, as it would be alone, and the next is tried.
    pub(crate) fn send_by(&mut self, mut send: impl FnMut(&[IoSlice<'_>]) -> Result<usize, Errno>) {
        let mut packets = [IoSlice::new(&[]); MOST];
        let mut start = 0;
        for (packet, end) in packets.iter_mut().zip(&self.ends) {
            *packet = IoSlice::new(self.bytes.get(start..*end).unwrap_or_default());
            start = *end;
        }
        let mut left = packets.get(..self.ends.len()).unwrap_or_default();
        while !left.is_empty() {
            let done = match send(left) {
                Err(Errno::INTR) => 0,
                Ok(sent) if sent > 0 => sent,
                Ok(_) | Err(_) => {
                    self.lost += 1;
                    1
                }
            };
            left = left.get(done..).unwrap_or_default();
        }
        self.clear();
    }

    /// Forgets all packets.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// How many were lost since the last call.
    pub(crate) fn take_lost(&mut self) -> usize {
        std::mem::take(&mut self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(packets: &[&str]) -> Kept {
        let mut kept = Kept::default();
        for packet in packets {
            let (first, second) = packet.as_bytes().split_at(packet.len() / 2);
            assert!(kept.keep(&[first, second]));
        }
        kept
    }

    /// Sends with these answers, one after the other, and says what was offered to each, and how many were lost.
    fn send(mut kept: Kept, answers: &[Result<usize, Errno>]) -> (Vec<Vec<String>>, usize) {
        let mut offers = Vec::new();
        let mut answers = answers.iter();
        kept.send_by(|packets| {
            let texts = packets.iter().map(|packet| String::from_utf8(packet.to_vec()).unwrap());
            offers.push(texts.collect());
            *answers.next().unwrap()
        });
        assert!(answers.next().is_none(), "it did not ask often enough");
        assert!(kept.is_empty());
        (offers, kept.take_lost())
    }

    #[test]
    fn packets_leave_in_order_by_one_call() {
        let (offers, lost) = send(kept(&["one", "two", "three"]), &[Ok(3)]);
        assert_eq!(offers, [["one", "two", "three"]]);
        assert_eq!(lost, 0);
    }

    /// As a socket answers whose buffer is full after the first: the rest is offered again, and what is refused then is lost alone.
    #[test]
    fn a_packet_that_a_full_device_refuses_is_lost_and_the_rest_are_tried() {
        let answers = [Ok(1), Err(Errno::AGAIN), Ok(2)];
        let (offers, lost) = send(kept(&["one", "two", "three", "four"]), &answers);
        assert_eq!(offers[1], ["two", "three", "four"]);
        assert_eq!(offers[2], ["three", "four"]);
        assert_eq!(lost, 1);
    }

    #[test]
    fn an_error_in_the_middle_counts_one_packet_and_a_signal_none() {
        let answers = [Ok(1), Err(Errno::INTR), Err(Errno::NETDOWN), Err(Errno::NETDOWN)];
        let (offers, lost) = send(kept(&["one", "two", "three"]), &answers);
        assert_eq!(offers[1], offers[2]);
        assert_eq!(lost, 2);
    }

    /// A call that sends nothing and has no error would otherwise be made for ever.
    #[test]
    fn a_device_that_takes_nothing_loses_each_packet_once() {
        let (_, lost) = send(kept(&["one", "two"]), &[Ok(0), Ok(0)]);
        assert_eq!(lost, 2);
    }

    #[test]
    fn room_is_bounded_by_number_and_length() {
        let mut kept = Kept::default();
        assert!(!kept.keep(&[&[0; LONGEST], &[0]]));
        assert!(kept.is_empty());
        for _ in 0..MOST {
            assert!(!kept.is_full());
            assert!(kept.keep(&[&[0; LONGEST]]));
        }
        assert!(kept.is_full());
        assert!(!kept.keep(&[b"one more"]));
        assert_eq!(kept.len(), MOST);
    }

    #[test]
    fn losses_are_told_once() {
        let mut kept = kept(&["one"]);
        kept.send_by(|_| Err(Errno::NOBUFS));
        assert_eq!(kept.take_lost(), 1);
        assert_eq!(kept.take_lost(), 0);
    }
}

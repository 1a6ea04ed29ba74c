//! All queues of an interface as one: frames come in by any of them, and leave by the first.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::XdpError;
use super::rings::Rings;

/// The most queues of an interface. The memory for the frames of each is locked: 32 MB of the first, 8 MB of each other one.
pub(super) const MOST: usize = 16;
/// So many frames come from one queue before the next one has its turn.
const TURN: usize = 16;

/// The queues. There is at least one.
pub(super) struct Queues {
    first: Rings,
    others: Vec<Rings>,
    turns: Turns,
}

impl Queues {
    /// Opens a socket on each queue of the interface with this number.
    pub(super) fn open(interface: &str, index: u32) -> Result<Self, XdpError> {
        let first = Rings::open(index, 0)?;
        let mut others = Vec::new();
        for queue in 1..=MOST {
            match Rings::open(index, queue as u32) {
                // There is no such queue (xsk_reg_pool_at_qid() of Linux' net/xdp/xsk.c).
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => break,
                Err(error) => return Err(error),
                Ok(_) if queue == MOST => {
                    return Err(XdpError::Queues { interface: interface.into(), most: MOST });
                }
                Ok(rings) => others.push(rings),
            }
        }
        Ok(Queues { turns: Turns::of(1 + others.len()), first, others })
    }

    /// The queues by their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = &Rings> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The descriptors that show that there are frames.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.all().map(AsFd::as_fd)
    }

    /// Copies a frame that came by any queue into `out`, and says how long it is; `None` if there is none.
    pub(super) fn receive(&mut self, out: &mut [u8]) -> Option<usize> {
        let Queues { first, others, turns } = self;
        turns.next(|queue| match queue.checked_sub(1) {
            None => first.receive(out),
            Some(other) => others.get_mut(other)?.receive(out),
        })
    }

    /// As [`Rings::send`].
    pub(super) fn send<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
        self.first.send(parts)
    }

    /// As [`Rings::flush`].
    pub(super) fn flush(&mut self) {
        self.first.flush();
    }
}

/// Whose turn it is, so that a busy queue does not keep the others waiting.
struct Turns {
    count: usize,
    current: usize,
    left: usize,
}

impl Turns {
    fn of(count: usize) -> Self {
        Turns { count, current: 0, left: TURN }
    }

    /// Asks the queues until one has something, beginning with the one whose turn it is. A queue that has nothing loses its turn.
    fn next<T>(&mut self, mut ask: impl FnMut(usize) -> Option<T>) -> Option<T> {
        // One more than there are: the first may just have had its turn.
        for _ in 0..=self.count {
            if self.left > 0
                && let Some(found) = ask(self.current)
            {
                self.left -= 1;
                return Some(found);
            }
            self.current = (self.current + 1) % self.count;
            self.left = TURN;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out of queues with so many frames, as numbers of queues.
    fn order(mut frames: Vec<usize>) -> Vec<usize> {
        let mut turns = Turns::of(frames.len());
        let mut next = || {
            turns.next(|queue| {
                frames[queue] = frames[queue].checked_sub(1)?;
                Some(queue)
            })
        };
        std::iter::from_fn(&mut next).collect()
    }

    #[test]
    fn one_queue_has_all_turns() {
        assert_eq!(order(vec![3 * TURN]), vec![0; 3 * TURN]);
        assert_eq!(order(vec![0]), []);
    }

    #[test]
    fn a_busy_queue_does_not_keep_others_waiting() {
        let order = order(vec![100, 0, 1]);
        assert_eq!(order.len(), 101);
        assert_eq!(order.iter().position(|queue| *queue == 2), Some(TURN));
    }

    #[test]
    fn a_frame_in_any_queue_is_found() {
        for at in 0..4 {
            let mut frames = vec![0; 4];
            frames[at] = TURN + 1;
            assert_eq!(order(frames), vec![at; TURN + 1]);
        }
    }
}

//! Turns among flows: two lists in rounds, by bytes (deficit round robin).
//!
//! RFC 8290, section 4.2, in words: a flow that begins to wait is in the list of *new* flows, which have their turn before the *old* ones. A flow
//! that has used up its credit goes to the end of the old ones and gets another quantum. A flow that has nothing left goes from the new to the old
//! ones first, so that one that comes and goes cannot starve those that stay. From the old ones it leaves.

use alloc::collections::VecDeque;

/// Which list a flow is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum List {
    /// In none: it has nothing waiting.
    #[default]
    Idle,
    New,
    Old,
}

/// A flow's place among the others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    pub(super) list: List,
    /// Bytes that it may still send in this round.
    pub(super) credit: i64,
}

impl Turn {
    /// A packet of `len` bytes is sent.
    pub(super) fn spend(&mut self, len: usize) {
        // A packet of no length would cost nothing, and its flow would never end its turn.
        self.credit = self.credit.saturating_sub_unsigned(len.max(1) as u64);
    }
}

/// The flows that have something waiting, or had a moment ago.
#[derive(Clone, Debug)]
pub(super) struct Rounds<K> {
    new: VecDeque<K>,
    old: VecDeque<K>,
}

impl<K: Copy> Rounds<K> {
    pub(super) const fn new() -> Self {
        Rounds { new: VecDeque::new(), old: VecDeque::new() }
    }

    /// A flow has something waiting. It becomes a new one with this credit, if it is in no list.
    pub(super) fn wake(&mut self, flow: K, turn: &mut Turn, credit: i64) {
        if turn.list == List::Idle {
            *turn = Turn { list: List::New, credit };
            self.new.push_back(flow);
        }
    }

    /// A flow that had to wait for its time goes on among the old ones.
    pub(super) fn resume(&mut self, flow: K, turn: &mut Turn) {
        turn.list = List::Old;
        self.old.push_back(flow);
    }

    /// The flow whose turn it is.
    pub(super) fn first(&self) -> Option<K> {
        self.new.front().or(self.old.front()).copied()
    }

    /// The first flow has used up its credit: it gets another quantum, and waits for its next turn.
    pub(super) fn pass(&mut self, turn: &mut Turn, quantum: i64) {
        turn.credit = turn.credit.saturating_add(quantum.max(1));
        if let Some(flow) = self.new.pop_front().or_else(|| self.old.pop_front()) {
            self.resume(flow, turn);
        }
    }

    /// The first flow has nothing left. Whether it has left the lists.
    pub(super) fn finish(&mut self, turn: &mut Turn) -> bool {
        if let Some(flow) = self.new.pop_front() {
            if self.old.is_empty() {
                turn.list = List::Idle;
                return true;
            }
            self.resume(flow, turn);
            return false;
        }
        self.old.pop_front();
        turn.list = List::Idle;
        true
    }

    /// The first flow leaves its list, to wait for a time.
    pub(super) fn suspend(&mut self, turn: &mut Turn) {
        let _ = self.new.pop_front().or_else(|| self.old.pop_front());
        turn.list = List::Old;
    }

    /// All flows in the lists.
    pub(super) fn iter(&self) -> impl Iterator<Item = K> + '_ {
        self.new.iter().chain(&self.old).copied()
    }
}

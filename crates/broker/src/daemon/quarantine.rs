//! Connections of ended holders: how long they stay in quarantine, and when their peers are probed.
//!
//! A connection comes in when its holder ends or gives its port up. It leaves when its peer has shown that it knows nothing of it any more (the
//! programs notice that), or when a TIME-WAIT has passed in which the peer has sent nothing. Meanwhile the programs let nobody hear or send a segment in it,
//! whoever has the port by then. So a server that starts anew has its port at once.
//!
//! Here are the times alone. The connections themselves are in a pinned map ([`Table`]), which outlives the broker.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use super::layout::{Flow, MAX_QUARANTINED, Quarantined};

/// The most connections of one user. Those beyond are left to [`Hold`](super::layout::Hold).
pub(super) const MAX_PER_USER: usize = 65_536;
/// The pause after a batch of probes.
pub(super) const PAUSE: Duration = Duration::from_millis(10);
/// The most connections in a batch: 20,000 probes a second at most.
const BATCH: usize = 200;
/// The pauses before each probe. The first probe has the peer send a segment, which the kernel resets. The second one finds out whether the reset has
/// arrived. Others follow if one of them was lost; the last pause repeats until the end.
const PAUSES: [Duration; 7] = [
    Duration::ZERO,
    Duration::from_millis(250),
    Duration::from_millis(750),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];

/// The connections in quarantine, and their peers.
pub(super) trait Table {
    /// What is known of a connection; nothing if it is not in quarantine any more.
    fn held(&self, flow: &Flow) -> Option<Quarantined>;
    /// Ends a quarantine.
    fn release(&self, flow: &Flow);
    /// Probes a peer. No two probes of a connection have the same sequence number.
    fn probe(&self, flow: &Flow, nonce: u32, attempt: u32);
}

/// A connection that waits for its next probe.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    flow: Flow,
    user: u32,
    due: Duration,
    attempt: u32,
}

/// The connections in quarantine, by their next probe.
#[derive(Debug, Default)]
pub(super) struct Quarantine {
    /// A queue for each pause: so each is in the order of its times.
    queues: [VecDeque<Waiting>; PAUSES.len()],
    users: BTreeMap<u32, usize>,
    count: usize,
    /// Nothing is sent before this time.
    rest_until: Duration,
}

impl Quarantine {
    /// How many connections there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Takes connections of a user. `place` puts one into the table. Returns the ends of those that were not taken: for want of room, or because `place` has
    /// failed.
    pub(super) fn admit(
        &mut self,
        user: u32,
        flows: impl IntoIterator<Item = Flow>,
        now: Duration,
        mut place: impl FnMut(&Flow) -> bool,
    ) -> BTreeSet<SocketAddr> {
        let mut left_out = BTreeSet::new();
        for flow in flows {
            let of_user = self.users.get(&user).copied().unwrap_or(0);
            if of_user >= MAX_PER_USER || self.count >= MAX_QUARANTINED || !place(&flow) {
                left_out.insert(flow.own);
                continue;
            }
            self.restore(user, flow, now);
        }
        left_out
    }

    /// Goes on with a connection that is in the table already.
    pub(super) fn restore(&mut self, user: u32, flow: Flow, now: Duration) {
        *self.users.entry(user).or_default() += 1;
        self.count += 1;
        self.queues[0].push_back(Waiting { flow, user, due: now, attempt: 0 });
    }

    /// Does what is due, a batch at most. Returns when to be called again; nothing if there is no connection.
    pub(super) fn run(&mut self, now: Duration, table: &impl Table) -> Option<Duration> {
        if now < self.rest_until {
            return self.next_due();
        }
        let mut left = BATCH;
        while left > 0 {
            let Some((stage, waiting)) = self.take_due(now) else { break };
            left -= 1;
            self.handle(stage, waiting, now, table);
        }
        self.rest_until = now + PAUSE;
        self.next_due()
    }

    /// The one that has waited longest of those that are due.
    fn take_due(&mut self, now: Duration) -> Option<(usize, Waiting)> {
        let due = |queue: &VecDeque<Waiting>| queue.front().map(|waiting| waiting.due);
        let stages = self.queues.iter().enumerate();
        let fronts = stages.filter_map(|(stage, queue)| Some((due(queue)?, stage)));
        let (_, stage) = fronts.filter(|(due, _)| *due <= now).min()?;
        Some((stage, self.queues[stage].pop_front()?))
    }

    fn next_due(&self) -> Option<Duration> {
        let fronts = self.queues.iter().filter_map(|queue| queue.front());
        Some(fronts.map(|waiting| waiting.due).min()?.max(self.rest_until))
    }

    fn handle(&mut self, stage: usize, waiting: Waiting, now: Duration, table: &impl Table) {
        let held = table.held(&waiting.flow);
        let Some(held) = held.filter(|held| held.until > now) else {
            if held.is_some() {
                table.release(&waiting.flow);
            }
            self.count -= 1;
            if let Some(count) = self.users.get_mut(&waiting.user) {
                *count -= 1;
                if *count == 0 {
                    self.users.remove(&waiting.user);
                }
            }
            return;
        };
        table.probe(&waiting.flow, held.nonce, waiting.attempt);
        let next = (stage + 1).min(PAUSES.len() - 1);
        let attempt = waiting.attempt.wrapping_add(1);
        self.queues[next].push_back(Waiting { due: now + PAUSES[next], attempt, ..waiting });
    }
}

#[cfg(test)]
mod tests;

//! The ledger of flows.

use super::Sent;
use crate::measure::OutsideSample;
use crate::network::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use transom_stack::ConnectionId;
use transom_tcp::time::{Duration, Instant};

/// A flow's number, chosen by the builder of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// One flow: all that one source sends to one sink, over one connection or many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flow {
    /// Its sender's host, and the connection that was opened last. The sender is who sends what is delivered: with requests, who
    /// answers.
    pub sender: Option<(NodeId, ConnectionId)>,
    /// When its first connection was opened.
    pub started: Option<Instant>,
    /// When its sender had nothing more to send and all of it had arrived.
    pub finished: Option<Instant>,
    /// Bytes that the receiving application has got.
    pub delivered: u64,
    /// Bytes that never came: holes that the receiving application was told of.
    pub skipped: u64,
    /// The counters of its sender.
    pub sent: Sent,
    /// Extensions that connections of its sender did not have, or not to the end, and why: each text once.
    pub departures: BTreeSet<String>,
    /// How long each transfer took, from its opening to its last byte at the receiver.
    pub completions: Vec<(Instant, Duration)>,
    /// The last known state of a sender outside of the network; `None` for one within.
    pub outside: Option<OutsideSample>,
}

/// All flows of a network.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    flows: Vec<Flow>,
    /// Transfers under way, by the sender's address: when they began.
    begun: BTreeMap<(FlowId, SocketAddr), Instant>,
    /// Transfers whose beginning stands in another ledger: when they ended, and in which order.
    ended: BTreeMap<(FlowId, SocketAddr), (Instant, u64)>,
    /// Such transfers so far.
    ends: u64,
    /// Hosts with connections that send for flows.
    sending: BTreeSet<NodeId>,
}

impl Ledger {
    /// The flows, by number.
    pub(crate) fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// A flow, to be written to.
    pub fn flow(&mut self, id: FlowId) -> &mut Flow {
        let index = id.0 as usize;
        if index >= self.flows.len() {
            self.flows.resize_with(index + 1, Flow::default);
        }
        &mut self.flows[index]
    }

    /// A host has a connection that sends for a flow.
    pub(super) fn follows(&mut self, host: NodeId) {
        self.sending.insert(host);
    }

    /// The hosts that send for flows.
    pub(crate) fn sending(&self) -> Vec<NodeId> {
        self.sending.iter().copied().collect()
    }

    /// A transfer begins.
    pub(super) fn begin(&mut self, flow: FlowId, sender: SocketAddr, now: Instant) {
        self.begun.insert((flow, sender), now);
    }

    /// The receiver has all that the sender at this address sent.
    pub(super) fn complete(&mut self, flow: FlowId, sender: SocketAddr, now: Instant) {
        match self.begun.remove(&(flow, sender)) {
            Some(begun) => self.flow(flow).completions.push((now, now.since(begun))),
            None => {
                self.ended.insert((flow, sender), (now, self.ends));
                self.ends += 1;
            }
        }
    }

    /// Takes over everything that another ledger has, which is empty afterwards: that of a host outside, for one.
    /// Transfers that began in the one and ended in the other are complete then.
    pub fn absorb(&mut self, other: &mut Ledger) {
        let Ledger { flows, begun, ended, ends, sending } = std::mem::take(other);
        for (id, theirs) in (0..).map(FlowId).zip(flows) {
            // Exhaustive, so that nothing new is forgotten.
            let Flow {
                sender,
                started,
                finished,
                delivered,
                skipped,
                sent,
                mut departures,
                mut completions,
                outside,
            } = theirs;
            let ours = self.flow(id);
            ours.sender = sender.or(ours.sender);
            ours.started = [ours.started, started].into_iter().flatten().min();
            ours.finished = ours.finished.max(finished);
            ours.delivered += delivered;
            ours.skipped += skipped;
            ours.sent.add(sent);
            ours.departures.append(&mut departures);
            ours.outside = outside.or(ours.outside);
            if !completions.is_empty() {
                ours.completions.append(&mut completions);
                ours.completions.sort_by_key(|(at, _)| *at);
            }
        }
        self.begun.extend(begun);
        let before = self.ends;
        self.ended.extend(ended.into_iter().map(|(key, (at, order))| (key, (at, before + order))));
        self.ends += ends;
        self.sending.extend(sending);
        let matched = self.ended.iter().filter(|(key, _)| self.begun.contains_key(key));
        let mut matched: Vec<_> = matched.map(|(key, (_, order))| (*order, *key)).collect();
        matched.sort_unstable();
        for (_, key) in matched {
            if let (Some(begun), Some((ended, _))) =
                (self.begun.remove(&key), self.ended.remove(&key))
            {
                let completions = &mut self.flow(key.0).completions;
                completions.push((ended, ended.since(begun)));
                completions.sort_by_key(|(at, _)| *at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowId = FlowId(1);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_transfer_from_one_ledger_to_another_is_complete_when_they_are_one() {
        let sender: SocketAddr = "10.0.0.1:5".parse().unwrap();
        let (mut inside, mut outside) = (Ledger::default(), Ledger::default());
        inside.begin(FLOW, sender, at(10));
        outside.complete(FLOW, sender, at(35));
        outside.flow(FLOW).delivered = 7;
        inside.flow(FLOW).delivered = 5;
        outside.flow(FLOW).skipped = 2;
        inside.flow(FLOW).skipped = 1;
        inside.absorb(&mut outside);
        let flow = &inside.flows()[1];
        assert_eq!(flow.completions, [(at(35), Duration::from_millis(25))]);
        assert_eq!((flow.delivered, flow.skipped), (12, 3));
        // Nothing is taken over twice.
        inside.absorb(&mut outside);
        assert_eq!(inside.flows()[1].delivered, 12);
        assert_eq!(inside.flows()[1].completions.len(), 1);

        // The other way round, with an end that was known first.
        inside.complete(FLOW, sender, at(50));
        outside.begin(FLOW, sender, at(40));
        inside.absorb(&mut outside);
        assert_eq!(inside.flows()[1].completions[1], (at(50), Duration::from_millis(10)));
    }

    #[test]
    fn of_two_ledgers_the_first_start_and_the_last_end_count() {
        let (mut ours, mut theirs) = (Ledger::default(), Ledger::default());
        let flow = |started, finished| Flow {
            started: Some(at(started)),
            finished: Some(at(finished)),
            ..Flow::default()
        };
        *ours.flow(FLOW) = flow(3, 8);
        *theirs.flow(FLOW) = flow(2, 9);
        ours.absorb(&mut theirs);
        assert_eq!(ours.flows()[1], flow(2, 9));
        assert_eq!(theirs.flows(), []);
    }
}

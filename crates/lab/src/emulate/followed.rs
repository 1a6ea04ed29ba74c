//! The connections that send for flows, and their counters.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Weak;

use transom_device::tcp_info;
use transom_sim::link::Traffic;
use transom_sim::measure::{OutsideSample, SentSample};
use transom_sim::traffic::FlowId;
use transom_tcp::{ConnectionState, Untold};

/// The state of one of the kernel's sockets.
pub(super) fn state_of(socket: &impl AsFd) -> Option<ConnectionState> {
    ConnectionState::of_tcp_info(tcp_info(socket).ok()?.as_bytes())
}

/// The counters of a flow's senders over all its connections, as far as the kernel reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) payload: Option<u64>,
    pub(super) retransmissions: u64,
    pub(super) timeouts: Option<u64>,
}

impl Totals {
    pub(super) const NONE: Totals =
        Totals { payload: Some(0), retransmissions: 0, timeouts: Some(0) };

    /// With what one more connection has counted.
    pub(super) fn and(self, info: &ConnectionState) -> Totals {
        let counters = &info.counters;
        let told = |flag, count| (!info.untold.contains(flag)).then_some(count);
        let sum = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        Totals {
            payload: sum(self.payload, told(Untold::BYTES_SENT, counters.bytes_sent)),
            retransmissions: self.retransmissions + counters.retransmitted_segments,
            timeouts: sum(self.timeouts, told(Untold::TIMEOUTS, counters.timeouts)),
        }
    }

    /// The sample of a sender with the kernel's TCP, in the form of the simulator's recorder: the packets that came from it, these counters, and
    /// the state of its present connection. Values that the kernel does not report stay unknown.
    pub(super) fn sample(
        self,
        packets: Traffic,
        present: Option<ConnectionState>,
    ) -> OutsideSample {
        let sent = SentSample {
            packets: Some(packets.packets),
            bytes: Some(packets.bytes),
            payload: self.payload,
            retransmissions: Some(self.retransmissions),
            timeouts: self.timeouts,
            fast_recoveries: None,
        };
        OutsideSample { sent, sender: present.map(Into::into) }
    }

    /// The greater of each: counters never decrease.
    pub(super) fn at_least(self, before: Totals) -> Totals {
        Totals {
            payload: self.payload.max(before.payload),
            retransmissions: self.retransmissions.max(before.retransmissions),
            timeouts: self.timeouts.max(before.timeouts),
        }
    }
}

/// The connections of a host that send for flows.
#[derive(Clone, Debug, Default)]
pub(super) struct Followed {
    /// By number, which is the order in which they were opened. The descriptors are not kept open by this.
    present: BTreeMap<u64, (FlowId, Weak<OwnedFd>)>,
    /// The counters of connections that have ended.
    past: BTreeMap<FlowId, Totals>,
}

impl Followed {
    pub(super) fn begins(&mut self, flow: FlowId, number: u64, socket: Weak<OwnedFd>) {
        self.present.insert(number, (flow, socket));
    }

    pub(super) fn ends(&mut self, flow: FlowId, number: u64, last: Option<ConnectionState>) {
        self.present.remove(&number);
        let past = self.past.entry(flow).or_insert(Totals::NONE);
        if let Some(info) = last {
            *past = past.and(&info);
        }
    }

    /// Asks the kernel: for each flow the counters of all its connections, and the state of the last one that was opened, if it
    /// still exists.
    pub(super) fn ask(&self) -> BTreeMap<FlowId, (Totals, Option<ConnectionState>)> {
        let mut told: BTreeMap<FlowId, (Totals, Option<ConnectionState>)> =
            self.past.iter().map(|(flow, past)| (*flow, (*past, None))).collect();
        for (flow, socket) in self.present.values() {
            let info = socket.upgrade().and_then(|socket| state_of(&*socket));
            let (totals, last) = told.entry(*flow).or_insert((Totals::NONE, None));
            if let Some(info) = &info {
                *totals = totals.and(info);
            }
            *last = info;
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;

    /// A connection over loopback over which so many bytes have been sent.
    fn connection(bytes: usize) -> (Arc<OwnedFd>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(&vec![0; bytes]).unwrap();
        receiver.read_exact(&mut vec![0; bytes]).unwrap();
        (Arc::new(sender.into()), receiver)
    }

    #[test]
    fn counts_of_ended_connections_stay() {
        let flow = FlowId(3);
        let ((one, _a), (other, _b)) = (connection(1000), connection(500));
        let mut followed = Followed::default();
        followed.begins(flow, 1, Arc::downgrade(&one));
        followed.begins(flow, 2, Arc::downgrade(&other));
        let (totals, last) = followed.ask()[&flow];
        if totals.payload.is_none() {
            eprintln!("SKIPPED: this kernel does not tell how much was sent");
            return;
        }
        assert_eq!(totals.payload, Some(1500));
        assert_eq!(last.unwrap().counters.bytes_sent, 500);
        followed.ends(flow, 2, state_of(&*other));
        drop(other);
        let (totals, last) = followed.ask()[&flow];
        assert_eq!((totals.payload, last.unwrap().counters.bytes_sent), (Some(1500), 1000));
        // One that has gone before it was said is not there.
        drop(one);
        let (now, last) = followed.ask()[&flow];
        assert_eq!((now.payload, last), (Some(500), None));
        assert_eq!(now.at_least(totals).payload, Some(1500));
    }
}

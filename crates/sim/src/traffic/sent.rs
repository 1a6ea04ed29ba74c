//! The counters of a flow's senders.

use crate::link::Traffic;
use transom_tcp::Counters;

/// The counters of a flow's senders, over all its connections, past ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// IP packets and their bytes, headers included.
    pub packets: Traffic,
    /// The counters of TCP; zero for other traffic.
    pub counters: SendCounters,
}

impl Sent {
    /// The same of others.
    pub(crate) fn add(&mut self, more: Sent) {
        let Sent { packets, counters } = more;
        self.packets.packets += packets.packets;
        self.packets.bytes += packets.bytes;
        self.counters.add(counters);
    }

    /// A packet of `len` bytes is sent.
    pub(crate) fn packet(&mut self, len: usize) {
        self.packets.count(len);
    }
}

/// The counters of connections that send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendCounters {
    /// Payload bytes, retransmissions included.
    pub payload: u64,
    /// Segments sent again; a SYN-ACK, which is sent before there is a connection, does not count.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times fast recovery began.
    pub fast_recoveries: u64,
}

impl SendCounters {
    /// The increase since it was `before`.
    pub(crate) fn since(self, before: SendCounters) -> SendCounters {
        let SendCounters { payload, retransmissions, timeouts, fast_recoveries } = self;
        SendCounters {
            payload: payload - before.payload,
            retransmissions: retransmissions - before.retransmissions,
            timeouts: timeouts - before.timeouts,
            fast_recoveries: fast_recoveries - before.fast_recoveries,
        }
    }

    pub(crate) fn add(&mut self, more: SendCounters) {
        let SendCounters { payload, retransmissions, timeouts, fast_recoveries } = more;
        self.payload += payload;
        self.retransmissions += retransmissions;
        self.timeouts += timeouts;
        self.fast_recoveries += fast_recoveries;
    }
}

impl From<&Counters> for SendCounters {
    fn from(counters: &Counters) -> Self {
        SendCounters {
            payload: counters.bytes_sent,
            retransmissions: counters.retransmitted_segments,
            timeouts: counters.timeouts,
            fast_recoveries: counters.fast_recoveries,
        }
    }
}

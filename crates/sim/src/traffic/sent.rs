//! What has been sent for a flow.

use crate::link::Traffic;
use transom_tcp::connection::Counters;

/// What the senders of a flow have sent so far, over all its connections, those included that are no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// IP packets and their bytes, headers included.
    pub packets: Traffic,
    /// What TCP has counted; zero for other traffic.
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

/// What connections count of what they send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// What has been added since it was `before`.
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

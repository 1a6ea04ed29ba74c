//! The counters of a flow's senders.

use crate::link::Traffic;
use transom_tcp::Counters;

/// The counters of a flow's senders, over all its connections, past ones included. Those of TCP are zero for other traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// IP packets and their bytes, headers included.
    pub packets: Traffic,
    /// Payload bytes of TCP, retransmissions included.
    pub payload: u64,
    /// Segments sent again; a SYN-ACK, which is sent before there is a connection, does not count.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times fast recovery began.
    pub fast_recoveries: u64,
}

impl Sent {
    /// The same of others.
    pub(crate) fn add(&mut self, more: Sent) {
        let Sent { packets, payload, retransmissions, timeouts, fast_recoveries } = more;
        self.packets.packets += packets.packets;
        self.packets.bytes += packets.bytes;
        self.payload += payload;
        self.retransmissions += retransmissions;
        self.timeouts += timeouts;
        self.fast_recoveries += fast_recoveries;
    }

    /// The increase of TCP's counters since they were `before`. Packets are counted one by one.
    pub(crate) fn since(self, before: Sent) -> Sent {
        let Sent { packets: _, payload, retransmissions, timeouts, fast_recoveries } = self;
        Sent {
            packets: Traffic::default(),
            payload: payload - before.payload,
            retransmissions: retransmissions - before.retransmissions,
            timeouts: timeouts - before.timeouts,
            fast_recoveries: fast_recoveries - before.fast_recoveries,
        }
    }
}

impl From<&Counters> for Sent {
    fn from(counters: &Counters) -> Self {
        Sent {
            packets: Traffic::default(),
            payload: counters.bytes_sent,
            retransmissions: counters.retransmitted_segments,
            timeouts: counters.timeouts,
            fast_recoveries: counters.fast_recoveries,
        }
    }
}

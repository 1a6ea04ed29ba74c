//! What has been sent for a flow.

use crate::link::Traffic;
use transom_tcp::connection::Counters;

/// What the senders of a flow have sent so far, over all its connections, those included that are no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// IP packets and their bytes, headers included.
    pub packets: Traffic,
    /// What TCP has counted; zero for other traffic.
    pub counted: Counted,
}

impl Sent {
    /// The same of others.
    pub(crate) fn add(&mut self, more: Sent) {
        let Sent { packets, counted } = more;
        self.packets.packets += packets.packets;
        self.packets.bytes += packets.bytes;
        self.counted.add(counted);
    }

    /// A packet of `len` bytes is sent.
    pub(crate) fn packet(&mut self, len: usize) {
        self.packets.count(len);
    }
}

/// What connections count of what they send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Payload bytes, retransmissions included.
    pub payload: u64,
    /// Segments sent again; a SYN-ACK, which is sent before there is a connection, does not count.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times fast recovery began.
    pub fast_recoveries: u64,
}

impl Counted {
    /// What has been added since it was `before`.
    pub(crate) fn since(self, before: Counted) -> Counted {
        let Counted { payload, retransmissions, timeouts, fast_recoveries } = self;
        Counted {
            payload: payload - before.payload,
            retransmissions: retransmissions - before.retransmissions,
            timeouts: timeouts - before.timeouts,
            fast_recoveries: fast_recoveries - before.fast_recoveries,
        }
    }

    pub(crate) fn add(&mut self, more: Counted) {
        let Counted { payload, retransmissions, timeouts, fast_recoveries } = more;
        self.payload += payload;
        self.retransmissions += retransmissions;
        self.timeouts += timeouts;
        self.fast_recoveries += fast_recoveries;
    }
}

impl From<&Counters> for Counted {
    fn from(counters: &Counters) -> Self {
        Counted {
            payload: counters.bytes_sent,
            retransmissions: counters.retransmitted_segments,
            timeouts: counters.timeouts,
            fast_recoveries: counters.fast_recoveries,
        }
    }
}

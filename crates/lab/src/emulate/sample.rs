//! The sample of a sender with the kernel's TCP, in the form of the simulator's recorder. Values that the kernel does not report stay
//! unknown.

use transom_sim::link::Traffic;
use transom_sim::measure::{OutsideSample, SentSample};
use transom_tcp::ConnectionState;

use super::followed::Totals;

/// The sample: the packets that came from the sender, its counters, and the state of its present connection.
pub(super) fn of(
    packets: Traffic,
    totals: Totals,
    present: Option<&ConnectionState>,
) -> OutsideSample {
    OutsideSample {
        sent: SentSample {
            packets: Some(packets.packets),
            bytes: Some(packets.bytes),
            payload: totals.payload,
            retransmissions: Some(totals.retransmissions),
            timeouts: totals.timeouts,
            fast_recoveries: None,
        },
        sender: present.map(|&state| state.into()),
    }
}

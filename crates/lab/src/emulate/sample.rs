//! The sample of a sender with the kernel's TCP, in the form of the simulator's recorder. Values that the kernel does not report stay
//! unknown.

use transom_device::kernel_tcp::KernelTcpInfo;
use transom_sim::link::Traffic;
use transom_sim::measure::{OutsideSample, SenderSample, SentSample};

use super::followed::Totals;

/// The sample: the packets that came from the sender, its counters, and the state of its present connection.
pub(super) fn of(
    packets: Traffic,
    totals: Totals,
    present: Option<&KernelTcpInfo>,
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
        sender: present.map(sender),
    }
}

fn sender(info: &KernelTcpInfo) -> SenderSample {
    SenderSample {
        cwnd: info.cwnd,
        ssthresh: info.ssthresh,
        in_flight: info.in_flight,
        mss: u32::try_from(info.mss).unwrap_or(u32::MAX),
        srtt: Some(info.srtt).filter(|srtt| !srtt.is_zero()),
        last_rtt: None,
        rto: info.rto,
    }
}

//! What is known of a sender that has the kernel's TCP, as the simulator's recorder has it. What the kernel does not tell stays unknown.

use transom_device::kernel_tcp::KernelTcpInfo;
use transom_sim::link::Traffic;
use transom_sim::measure::{OutsideSample, SenderSample, SentSample};

use super::followed::Totals;

/// What is known: the packets that came from it, what it has counted, and what it tells of its present connection.
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

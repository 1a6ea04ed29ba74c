//! The sending end's variables, sampled while it sends.

use super::network::PeerStream;
use transom_net::TcpStream;
use transom_report::transfer::Sample;

/// The sender of a transfer.
pub(crate) enum Sender {
    Transom(TcpStream),
    Peer(PeerStream),
}

impl Sender {
    pub(crate) fn look(&self) -> Option<Sample> {
        match self {
            Sender::Transom(stream) => stream.info().ok().as_ref().map(Sample::from),
            Sender::Peer(peer) => match (peer.kernel_info(), peer.transom_info()) {
                (Some(info), _) => Some(Sample {
                    cwnd: info.cwnd,
                    ssthresh: info.ssthresh,
                    in_flight: info.outstanding,
                    srtt: Some(info.srtt),
                    last_rtt: None,
                    min_rtt: None,
                    retransmitted: info.retransmitted_segments,
                    timeouts: None,
                }),
                (None, info) => info.as_ref().map(Sample::from),
            },
        }
    }
}

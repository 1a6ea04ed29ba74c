//! Round trips, for tests by hand with segments of 1000 bytes.

use crate::common::{Peer, seg};
use transom_tcp::extension::Variable;

/// A round trip later everything outstanding is acknowledged, segment by segment. Returns the window in use, in segments.
pub(crate) fn round(peer: &mut Peer, rtt: u64) -> u64 {
    let segments = peer.info().in_flight / 1000;
    peer.wait(rtt);
    let first = peer.acked();
    for n in 1..=segments as i64 {
        peer.recv(seg().ack(first + 1000 * n)).drain();
    }
    peer.connection.ruling(Variable::Cwnd).effective / 1000
}

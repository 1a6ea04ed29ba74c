//! A connection to itself: both ports and both addresses the same. RFC 9293 appendix A.2 names it as a case in which
//! the sequence check of the main text needs care: each segment is its own answer.

use crate::common;

use common::{ISS, Peer, Setup};
use std::sync::Arc;
use transom_tcp::time::Instant;
use transom_tcp::{Connection, Endpoint, State};
use transom_wire::Seq;

/// Gives the connection everything it sent; returns how many segments that were.
fn loop_back(peer: &mut Peer) -> usize {
    let sent = peer.drain();
    for out in &sent {
        peer.deliver(&out.header, &out.payload);
    }
    peer.pump();
    sent.len()
}

#[test]
fn a_connection_to_itself_opens_carries_data_and_closes() {
    let setup = Setup::default().timestamps().scale(0);
    let ports = Endpoint { local_port: 7, remote_port: 7 };
    let now = Instant::ZERO;
    let profile = Arc::new(setup.profile);
    let connection = Connection::connect(profile, ports, setup.path, Seq::new(ISS), 7_000, now);
    let mut peer = Peer::wrap(connection, now);
    peer.pump();
    for _ in 0..10 {
        peer.wait(1);
        loop_back(&mut peer);
    }
    peer.expect_state(State::Established);

    let mut read = 0;
    peer.write(50_000);
    for _ in 0..200 {
        peer.wait(1);
        loop_back(&mut peer);
        let readable = peer.connection.readable();
        if readable > 0 {
            peer.read(readable);
            read += readable;
        }
    }
    assert_eq!(read, 50_000, "what was written comes back, in order");
    assert_eq!(peer.info().unacknowledged, 0);
    assert_eq!(peer.info().counters.timeouts, 0);

    peer.shutdown();
    let mut segments = 0;
    for _ in 0..20 {
        peer.wait(1);
        segments += loop_back(&mut peer);
    }
    // The FIN is its own simultaneous close.
    peer.expect_state(State::TimeWait);
    assert!(segments < 10, "{segments} segments to close");
    assert!(peer.connection.end_of_stream());
}

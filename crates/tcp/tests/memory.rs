//! What a connection costs while nothing happens on it.

use crate::common;

use common::{Setup, seg};
use transom_tcp::Profile;

/// Buffers are lazy and are given back: an idle connection is little more than its state.
#[test]
fn an_idle_connection_is_small() {
    let setup = Setup { profile: Profile::classic(), ..Setup::default() }.timestamps().scale(7);
    let mut peer = setup.active();
    let fresh = peer.connection.memory();
    assert!(fresh <= 2048, "{fresh} bytes before the first data");
    peer.write(100_000);
    for i in 1..=200 {
        let acked = (i * 988).min(100_001);
        peer.recv(seg().ack(acked).data(1000)).read(1000);
    }
    assert_eq!(peer.info().unacknowledged, 0);
    assert!(peer.connection.memory() > 50_000, "buffers are kept for a while");
    peer.wait(11_000);
    assert!(peer.connection.memory() <= 2048, "{} bytes when idle", peer.connection.memory());
    // And it goes on as if nothing had been.
    peer.drain();
    peer.write(3000).recv(seg().data(500)).read(500);
    assert_eq!(peer.ranges().len(), 4);
}

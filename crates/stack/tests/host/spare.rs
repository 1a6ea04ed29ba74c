//! Memory of send buffers, which the connections of a host pass on to each other.

use crate::harness::*;
use transom_tcp::BLOCK;
use transom_tcp::time::Duration;
use transom_wire::Flags;

/// Two connections send the same amount, one after the other: the second one uses the memory of the first.
#[test]
fn memory_of_sent_data_serves_another_connection() {
    let mut host = Host::new();
    let listener = host.listen(service());
    let ends = [4000, 4001];
    let mut ends = ends.map(|port| Peer::connect(&mut host, listener, at(PEER, port), service()));
    let data = stream(BLOCK);
    for (peer, id) in &mut ends {
        host.write_all(*id, &data);
        assert_eq!((host.stack.memory().held, host.stack.memory().spare), (BLOCK, 0));
        let mut sent = host.sent();
        while host.stack.memory().held > 0 {
            assert!(!sent.is_empty());
            peer.receive(&sent);
            sent = host.inject(&peer.segment(Flags::ACK, &[]));
        }
        assert_eq!(host.stack.memory().spare, BLOCK);
    }
    // A host in which nothing happens for a while gives it back, though its connections stay.
    host.run_for(Duration::from_secs(3));
    assert_eq!(host.stack.memory().spare, 0);
    // And so does one whose connections have gone.
    for (peer, id) in &mut ends {
        host.write_all(*id, &data);
        peer.receive(&host.sent());
        host.inject(&peer.segment(Flags::ACK, &[]));
        host.close(*id);
        host.inject(&peer.segment(Flags::RST | Flags::ACK, &[]));
    }
    assert_eq!(host.stack.connection_count(), 0);
    host.run_for(Duration::from_secs(3));
    assert_eq!(host.stack.memory().spare, 0);
}

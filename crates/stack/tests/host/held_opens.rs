//! Active opens that hold their last acknowledgement, at a host.

use crate::harness::*;
use transom_stack::{ConnectionId, SocketError};
use transom_tcp::time::Duration;
use transom_tcp::{Connection, Setting, Signal, State};
use transom_wire::Flags;

/// A held open whose SYN is answered.
fn answered(host: &mut Host) -> (Peer, ConnectionId) {
    let limit = Duration::from_secs(20);
    let id = host.connect(at(PEER, 80));
    let hold = |connection: &mut Connection| connection.set(Setting::HoldAnswer(limit));
    host.call(|stack, now| stack.with_connection(id, now, hold)).unwrap();
    let syn = host.sent_one();
    let (from, to) = syn.ends();
    let peer = Peer { ack: syn.tcp().seq + 1, ..Peer::new(to, from) };
    let header =
        transom_wire::TcpHeader { options: bare_options(), ..peer.header(Flags::SYN | Flags::ACK) };
    assert!(host.inject(&peer.packet(&header, &[])).is_empty());
    assert_eq!(host.count(id, Signal::Answered), 1);
    assert_eq!(host.state(id), State::SynSent);
    (Peer { seq: peer.seq + 1, ..peer }, id)
}

fn release(host: &mut Host, id: ConnectionId) -> Result<(), SocketError> {
    host.call(|stack, now| stack.with_connection(id, now, |connection| connection.release(now)))
}

#[test]
fn the_handshake_is_completed_by_its_owner() {
    let mut host = Host::new();
    let (mut peer, id) = answered(&mut host);
    assert!(host.advance(Duration::from_secs(10)).is_empty());
    assert_eq!(release(&mut host, id), Ok(()));
    assert_eq!(host.sent_one().flags(), Flags::ACK);
    assert_eq!(host.count(id, Signal::Connected), 1);
    peer.assert_alive(&mut host, id);
    // Twice is once.
    assert_eq!(release(&mut host, id), Ok(()));
}

/// Whatever ends it, the peer hears, and nothing is left of it.
#[test]
fn an_open_that_comes_to_nothing_resets_the_peer() {
    let ends: [fn(&mut Host, ConnectionId); 3] = [
        |host, id| host.call(|stack, now| stack.abort(id, now)),
        |host, id| host.close(id),
        |host, id| {
            host.run_for(Duration::from_secs(21));
            assert_eq!(host.count(id, Signal::Closed), 1);
            host.close(id);
        },
    ];
    for end in ends {
        let mut host = Host::new();
        let (peer, id) = answered(&mut host);
        end(&mut host, id);
        let reset = host.sent_one().tcp();
        assert_eq!((reset.flags, reset.seq), (Flags::RST, peer.ack));
        assert_eq!(host.stack.connection_count(), 0);
        assert_eq!(release(&mut host, id), Err(SocketError::NotFound));
        assert_eq!(host.stack.next_timeout(), None);
    }
}

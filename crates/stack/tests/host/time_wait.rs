//! TIME-WAIT: what is answered, what may take its place, and how many there are.

use crate::harness::*;
use transom_stack::{ConnectError, ListenConfig};
use transom_tcp::State;
use transom_tcp::time::Duration;
use transom_wire::{Flags, Options, Timestamps};

/// A connection from the listener that has just entered TIME-WAIT on the host's side.
fn waiting(options: Options) -> (Host, Peer) {
    let mut host = Host::new();
    let listener = host.listen(service());
    let mut peer = Peer::new(at(PEER, 4000), service());
    peer.shake(&mut host, options);
    let id = host.accept(listener);
    peer.close_after(&mut host, id);
    assert_eq!((host.stack.time_wait_count(), host.stack.connection_count()), (1, 0));
    (host, peer)
}

/// The peer's next SYN, that much later by sequence number and by timestamp.
fn again(peer: &Peer, seq: i32, time: Option<i32>) -> (Peer, Options) {
    let timestamps = time.map(|time| {
        let last = peer.timestamps.unwrap().value;
        Timestamps { value: last.wrapping_add_signed(time), echo: 0 }
    });
    let next = Peer { seq: peer.seq + seq as u32, timestamps: None, ..*peer };
    (next, Options { timestamps, ..usual_options() })
}

/// [RFC8200-8.2-1]
#[test]
fn it_lasts_for_two_segment_lifetimes_and_leaves_no_timer() {
    let (mut host, peer) = waiting(usual_options());
    host.advance(Duration::from_millis(59_999));
    assert_eq!(host.stack.time_wait_count(), 1);
    host.advance(Duration::from_millis(1));
    assert_eq!((host.stack.time_wait_count(), host.stack.next_timeout()), (0, None));
    assert_eq!(one(host.inject(&peer.segment(Flags::ACK, &[]))).flags(), Flags::RST);
}

/// [MUST-13] RFC 9293 section 3.10.7.4: a FIN that comes again is acknowledged again, and the time starts over.
#[test]
fn a_repeated_fin_is_acknowledged_and_starts_the_time_over() {
    let (mut host, peer) = waiting(usual_options());
    host.advance(Duration::from_secs(40));
    let fin = Peer { seq: peer.seq - 1, ..peer };
    let ack = one(host.inject(&fin.segment(Flags::FIN | Flags::ACK, &[]))).tcp();
    assert_eq!((ack.flags, ack.seq, ack.ack), (Flags::ACK, peer.ack, peer.seq));
    host.advance(Duration::from_secs(40));
    assert_eq!(host.stack.time_wait_count(), 1);
    host.advance(Duration::from_secs(20));
    assert_eq!(host.stack.time_wait_count(), 0);
}

/// RFC 1337: a reset does not end it.
#[test]
fn a_reset_is_ignored() {
    let (mut host, peer) = waiting(usual_options());
    assert!(host.inject(&peer.segment(Flags::RST, &[])).is_empty());
    assert_eq!(host.stack.time_wait_count(), 1);
}

/// [MAY-2] RFC 6191 section 2: a SYN with a later timestamp is a new connection, whatever its sequence number. The host's new
/// sequence numbers lie beyond the old ones.
#[test]
fn a_later_timestamp_opens_it_again() {
    for (seq, time) in [(1_000, 1), (-1_000_000, 1), (0, 50)] {
        let (mut host, old) = waiting(usual_options());
        let (mut peer, options) = again(&old, seq, Some(time));
        let answer = one(host.inject(&peer.syn(options))).tcp();
        assert_eq!(answer.flags, Flags::SYN | Flags::ACK);
        assert!(answer.seq.after(old.ack), "{} is not beyond {}", answer.seq, old.ack);
        assert_eq!((host.stack.time_wait_count(), host.stack.half_open_count()), (0, 1));
        let ack = peer.answer(&answer, options);
        assert!(host.inject(&ack).is_empty());
        assert_eq!(host.stack.connection_count(), 1);
    }
}

/// [MAY-2] RFC 6191 section 2: otherwise the sequence number has to be beyond the old ones.
#[test]
fn without_a_later_timestamp_the_sequence_number_decides() {
    let cases = [
        (usual_options(), 1, Some(0), true),
        (usual_options(), -1, Some(0), false),
        (usual_options(), 1_000, Some(-1), false),
        (Options { timestamps: None, ..usual_options() }, 1, None, true),
        (Options { timestamps: None, ..usual_options() }, -1, None, false),
    ];
    for (options, seq, time, opens) in cases {
        let (mut host, old) = waiting(options);
        let (peer, options) = again(&old, seq, time);
        let answer = one(host.inject(&peer.syn(options))).tcp();
        if opens {
            assert_eq!(answer.flags, Flags::SYN | Flags::ACK);
            assert!(answer.seq.after(old.ack));
        } else {
            // The old connection's last acknowledgement (RFC 5961 section 4).
            assert_eq!((answer.flags, answer.seq, answer.ack), (Flags::ACK, old.ack, old.seq));
            assert_eq!(host.stack.time_wait_count(), 1);
        }
    }
}

/// [MAY-2] asks for a new initial sequence number beyond the old ones, which a cookie cannot promise; and a listener that has no
/// room opens nothing. The old connection stays protected then.
#[test]
fn without_room_it_is_not_given_up() {
    for backlogs in [(1, 128), (128, 1)] {
        let mut host = Host::new();
        let (syn_backlog, backlog) = backlogs;
        let config = ListenConfig::default().with_syn_backlog(syn_backlog).with_backlog(backlog);
        let listener = host.listen_with(service(), config);
        let (mut old, id) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
        old.close_after(&mut host, id);
        let mut other = Peer::new(at(PEER, 4001), service());
        if backlog == 1 {
            other.shake(&mut host, usual_options());
        } else {
            host.inject(&other.syn(usual_options()));
        }
        let (peer, options) = again(&old, 1_000, Some(1));
        let sent = host.inject(&peer.syn(options));
        assert!(sent.is_empty(), "{sent:?}");
        assert_eq!(host.stack.time_wait_count(), 1);
    }
    // Nor if nobody listens any more.
    let mut host = Host::new();
    let listener = host.listen(service());
    let (mut old, id) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    old.close_after(&mut host, id);
    host.call(|stack, now| stack.close_listener(listener, now));
    let (peer, options) = again(&old, 1_000, Some(1));
    assert!(host.inject(&peer.syn(options)).is_empty());
    assert_eq!(host.stack.time_wait_count(), 1);
}

/// A host that opened the connection may open it again when its timestamps tell the two apart (RFC 6191): a second later.
#[test]
fn an_active_open_reuses_it_when_timestamps_allow() {
    let mut host = Host::new();
    let local = at(HOST, 5000);
    let id = host.connect_from(local, at(PEER, 80));
    let syn = host.sent_one();
    let mut peer = Peer::welcome(&mut host, &syn);
    peer.close_after(&mut host, id);
    let refused = host.call(|stack, now| stack.connect(now, Some(local), at(PEER, 80), None));
    assert_eq!(refused, Err(ConnectError::InUse));
    host.advance(Duration::from_millis(1_500));
    host.connect_from(local, at(PEER, 80));
    let new = host.sent_one().tcp();
    assert!(new.seq.after(peer.ack));
    let (old, new) = (syn.tcp().options.timestamps.unwrap(), new.options.timestamps.unwrap());
    assert!(new.value.wrapping_sub(old.value) as i32 > 1_000);
    assert_eq!(host.stack.time_wait_count(), 0);

    // Without timestamps it has to wait for the end.
    let mut host = Host::with(|_, profile| profile.options.timestamps = false);
    let id = host.connect_from(local, at(PEER, 80));
    let syn = host.sent_one();
    let mut peer = Peer::welcome(&mut host, &syn);
    peer.close_after(&mut host, id);
    host.advance(Duration::from_secs(59));
    let refused = host.call(|stack, now| stack.connect(now, Some(local), at(PEER, 80), None));
    assert_eq!(refused, Err(ConnectError::InUse));
    host.advance(Duration::from_secs(1));
    host.connect_from(local, at(PEER, 80));
}

#[test]
fn there_is_a_bound_and_the_oldest_makes_room() {
    let mut host = Host::with(|config, _| config.max_time_wait = 3);
    let listener = host.listen(service());
    let mut peers: Vec<Peer> = (4000..4005)
        .map(|port| {
            let (mut peer, id) = Peer::connect(&mut host, listener, at(PEER, port), service());
            peer.close_after(&mut host, id);
            host.advance(Duration::from_secs(1));
            peer
        })
        .collect();
    assert_eq!(host.stack.time_wait_count(), 3);
    let known = |host: &mut Host, peer: &Peer| {
        let fin = Peer { seq: peer.seq - 1, ..*peer };
        one(host.inject(&fin.segment(Flags::FIN | Flags::ACK, &[]))).flags() == Flags::ACK
    };
    let remembered: Vec<bool> = peers.iter().map(|peer| known(&mut host, peer)).collect();
    assert_eq!(remembered, [false, false, true, true, true]);
    // One that was opened again and closed again counts once.
    let (mut reopened, options) = again(&peers.pop().unwrap(), 1_000, Some(10));
    reopened.shake(&mut host, options);
    let id = host.accept(listener);
    reopened.close_after(&mut host, id);
    assert_eq!(host.stack.time_wait_count(), 3);
    host.advance(Duration::from_secs(120));
    assert_eq!((host.stack.time_wait_count(), host.stack.next_timeout()), (0, None));
}

#[test]
fn received_data_can_be_read_in_time_wait() {
    let mut host = Host::new();
    let listener = host.listen(service());
    let (mut peer, id) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    host.call(|stack, now| stack.shutdown_write(id, now)).unwrap();
    let fin = host.sent_one();
    peer.receive(&[fin]);
    peer.send(&mut host, b"last words");
    host.inject(&peer.segment(Flags::FIN | Flags::ACK, &[]));
    assert_eq!(host.stack.time_wait_count(), 1);
    assert!(matches!(host.state(id), State::TimeWait | State::Closed));
    assert_eq!(host.read(id), b"last words");
    host.close(id);
    assert_eq!((host.stack.connection_count(), host.stack.time_wait_count()), (0, 1));
}

/// [MAY-2] Beyond the old numbers also when the old connection has used them faster than the clock counts: a megabyte in no time,
/// where the clock takes four seconds.
#[test]
fn new_numbers_lie_beyond_those_of_a_fast_connection() {
    let send = |host: &mut Host, peer: &mut Peer, id| {
        for _ in 0..10 {
            host.write_all(id, &stream(100_000));
            let mut sent = host.sent();
            while !sent.is_empty() {
                peer.receive(&sent);
                sent = host.inject(&peer.segment(Flags::ACK, &[]));
            }
        }
        peer.close_after(host, id);
        host.advance(Duration::from_millis(1_500));
    };
    let mut host = Host::new();
    let local = at(HOST, 5000);
    let id = host.connect_from(local, at(PEER, 80));
    let syn = host.sent_one();
    let mut peer = Peer::welcome(&mut host, &syn);
    send(&mut host, &mut peer, id);
    assert!(peer.ack.distance_from(syn.tcp().seq) > 1_000_000);
    host.connect_from(local, at(PEER, 80));
    assert!(host.sent_one().tcp().seq.after(peer.ack));

    let listener = host.listen(service());
    let (mut old, id) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    send(&mut host, &mut old, id);
    let (peer, options) = again(&old, 1_000, Some(10));
    assert!(one(host.inject(&peer.syn(options))).tcp().seq.after(old.ack));
}

/// An entry that replaced another lasts as long as any, not as long as the other would have.
#[test]
fn a_successor_has_its_own_time() {
    let mut host = Host::with(|config, _| config.max_time_wait = 1);
    let listener = host.listen(service());
    for port in [4000, 4001] {
        host.advance(Duration::from_secs(30));
        let (mut peer, id) = Peer::connect(&mut host, listener, at(PEER, port), service());
        peer.close_after(&mut host, id);
    }
    host.advance(Duration::from_millis(59_999));
    assert_eq!(host.stack.time_wait_count(), 1);
    host.advance(Duration::from_millis(1));
    assert_eq!(host.stack.time_wait_count(), 0);
}

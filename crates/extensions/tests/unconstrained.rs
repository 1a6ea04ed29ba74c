//! The mode without safe ranges, by hand: for connections of a simulation, and for no others.

use crate::common::{Peer, Setup, seg};
use transom_extensions::stack;
use transom_tcp::PathInfo;
use transom_tcp::extension::Variable;

/// A connection with the extensions from the handshake on, with their safe ranges or without. It has less to send than would fill TCP's own window: whether more
/// leaves is watched by what stands around the connection here, which takes it for a fault.
fn peer(text: &str, unconstrained: bool) -> Peer {
    let choices = stack(text).unwrap().into_iter();
    let choices: Vec<_> = match unconstrained {
        true => choices.map(|choice| choice.unconstrained()).collect(),
        false => choices.collect(),
    };
    let setup = Setup::default().profile(|profile| profile.extensions = choices);
    let path = PathInfo { simulated: true, ..setup.path };
    let mut peer = Setup { path, ..setup }.active();
    peer.write(10_000).drain();
    peer
}

/// Acknowledges one segment, 100 ms later; returns cwnd in bytes.
fn ack(peer: &mut Peer) -> u64 {
    let first = peer.info().snd_una.stream_offset() as i64 + 1;
    peer.wait(100).recv(seg().ack(first + 1000)).drain();
    peer.info().cwnd
}

/// Ten segments are the initial window; without the range four more are used.
#[test]
fn cwnd_four_segments_larger() {
    let used = |unconstrained| {
        peer("greedy(cwnd=4)", unconstrained).connection.ruling(Variable::Cwnd).effective
    };
    assert_eq!((used(false), used(true)), (10_000, 14_000));
}

/// In slow start an acknowledgement is worth what it acknowledges: one segment, or what seems to be nine.
#[test]
fn snd_una_eight_segments_lower() {
    assert_eq!(ack(&mut peer("greedy(snd-una=8)", false)), 11_000);
    assert_eq!(ack(&mut peer("greedy(snd-una=8)", true)), 19_000);
}

/// After three duplicates ssthresh is five segments, and with the fourth segment repeated everything is acknowledged: congestion avoidance. Kept to
/// its range, an ssthresh of twice as much changes nothing; without it, slow start goes on to ten segments.
#[test]
fn ssthresh_twice_as_large() {
    let grown = |unconstrained| {
        let mut peer = peer("greedy(ssthresh=2)", unconstrained);
        peer.wait(100);
        for _ in 0..3 {
            peer.recv(seg().ack(1)).drain();
        }
        peer.wait(100).recv(seg().ack(10_001)).drain();
        assert_eq!(peer.info().cwnd, 5000);
        peer.write(20_000).drain();
        ack(&mut peer)
    };
    assert_eq!(grown(false), 5000, "a fifth of a window");
    assert_eq!(grown(true), 6000, "slow start");
}

/// A profile that lifts the ranges lifts none on a connection that is not simulated.
#[test]
fn ranges_stay_on_a_real_path() {
    let choices = stack("greedy(cwnd=4)").unwrap().into_iter().map(|choice| choice.unconstrained());
    let choices: Vec<_> = choices.collect();
    let mut peer = Setup::default().profile(|profile| profile.extensions = choices).active();
    peer.write(10_000).drain();
    assert_eq!(peer.connection.ruling(Variable::Cwnd).effective, 10_000);
}

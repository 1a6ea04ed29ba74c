//! What the Eifel timer does about spurious timeouts, on real connections, worked by hand.
//!
//! Segments are 1000 bytes, the handshake takes 100 ms: SRTT is 100 ms, RTTVAR 50. TCP's own timeout is 120 ms and nothing else ([`without_own`]), so that
//! the extension's own can be seen.

use crate::common::{Peer, Setup, seg};
use transom_extensions::stack;
use transom_tcp::extension::Variable;
use transom_tcp::time::Duration;
use transom_tcp::{FixedConfig, TimerChoice};

fn attach(peer: &mut Peer, text: &str) {
    peer.attach(stack(text).unwrap()[0].extension());
}

/// As icTCP has it for this extension: TCP's own algorithm is switched off. What is left of it is a least timeout, and the back-off.
fn without_own() -> Setup {
    let rto = Duration::from_millis(120);
    let timer = TimerChoice::Fixed(FixedConfig::default().with_rto(rto));
    let setup = Setup::default();
    Setup { profile: setup.profile.clone().with_timer(timer), ..setup }
}

/// From the handshake's SRTT 100 and RTTVAR 50, a sample of 100 and one of 20 ms, in microseconds:
/// `karn`: RTTVAR 37.5, RTO 100 + 150; then RTTVAR 37.5 + (80 − 37.5)/4 = 48.125 and SRTT 90: up to 282.5, though the path became faster.
/// `no-spike`: the same, then RTTVAR stays and SRTT is 90: 240.
/// `full`, n = 3: RTTVAR 50 − 50/9 = 44.444, RTO 100 + 133.333; then SRTT 100 − 80/3 = 73.333: 206.666.
#[test]
fn eifel_by_hand() {
    for (version, expected) in [
        ("karn", [250_000, 282_500]),
        ("no-spike", [250_000, 240_000]),
        ("full", [233_333, 206_666]),
    ] {
        let mut peer = without_own().active();
        attach(&mut peer, &format!("eifel(version={version})"));
        peer.write(1000).drain();
        peer.wait(100).recv(seg().ack(1001));
        let rto = |peer: &Peer| peer.connection.ruling(Variable::Rto).effective / 1000;
        let first = rto(&peer);
        peer.write(1000).drain();
        peer.wait(20).recv(seg().ack(2001));
        assert_eq!([first, rto(&peer)], expected, "{version}");
        // The timer keeps it, and twice that after a timeout.
        peer.write(1000).drain();
        let (began, timeouts) = (peer.now, peer.info().counters.timeouts);
        peer.next_timer();
        assert_eq!(peer.info().counters.timeouts, timeouts + 1);
        let waited = peer.now.since(began).as_nanos() / 1000;
        assert_eq!(waited, expected[1], "{version}");
        assert_eq!(rto(&peer) / 10, expected[1] * 2 / 10, "{version}");
    }
}

/// Beside RFC 6298's timer it only lengthens. Karn's version is that timer. The others want less, 240 and 206.666 ms, and get TCP's own, 282.5.
#[test]
fn eifel_never_shortens_what_tcp_has() {
    for version in ["karn", "no-spike", "full"] {
        let mut peer = Setup::default().active();
        attach(&mut peer, &format!("eifel(version={version})"));
        for (rtt, ack) in [(100, 1001), (20, 2001)] {
            peer.write(1000).drain();
            peer.wait(rtt).recv(seg().ack(ack));
        }
        assert_eq!(peer.connection.ruling(Variable::Rto).effective / 1000, 282_500, "{version}");
    }
}

/// Timeouts of the adaptive Eifel timer, in microseconds, with a margin that loses half of itself with each round trip (no back-off but
/// where it is said): 1. As the full one: SRTT 100, RTTVAR 50 − 50/9 = 44.444, n = 3; of the margin of 133.333 half is left: 166.666.
/// 2. The acknowledgement takes 170: the timer expires, and it comes 3.3 ms after the segment left again. SRTT is 170, RTTVAR 85, all of
/// the margin is back:
///    170 + 255 = 425, twice that for the back-off, which a sample alone ends.
/// 3. A sample of 100: SRTT 170 − 70/3 = 146.666, RTTVAR 85; the margin of 255 is halved: 274.166.
/// 4. Now 170 ms are in time: DELTA = 23.333, SRTT 146.666 + 23.333/3 = 154.444, RTTVAR 85 − 61.666/9 = 78.148, of 234.444 a quarter: 213.055.
#[test]
fn adaptive_eifel_by_hand() {
    let mut peer = without_own().active();
    attach(&mut peer, "eifel(version=adaptive, decay=0.5)");
    let expected = [(100, 0, 166_666), (170, 1, 850_000), (100, 1, 274_166), (170, 1, 213_055)];
    for (rtt, timeouts, rto) in expected {
        peer.write(1000).drain();
        peer.wait(rtt);
        peer.ack_all();
        assert_eq!(peer.info().counters.timeouts, timeouts, "{rtt}");
        assert_eq!(peer.connection.ruling(Variable::Rto).effective / 1000, rto, "{rtt}");
    }
}

/// A hole that stays open: the first of ten segments is lost, and all its repairs. Selective acknowledgements of the others and of what follows
/// come a round trip of 100 ms later, one by one, and the round trip never ends. The timeout is that of a flight of ten at most: SRTT + 10·RTTVAR,
/// with SRTT of 100 ms and RTTVAR of 50 at first. Without the limit n would be the number of samples, 200.
#[test]
fn a_hole_that_stays_open_does_not_raise_the_timeout() {
    let mut peer = without_own().active();
    attach(&mut peer, "eifel");
    peer.write(250_000).drain();
    peer.wait(100);
    let mut end = 1001;
    for _ in 0..200 {
        end += 1000;
        let sent = peer.info().snd_nxt.stream_offset() as i64 + 1;
        peer.recv(seg().ack(1).sack(&[(1001, end.min(sent))])).drain();
        let rto = peer.connection.ruling(Variable::Rto).effective / 1_000_000;
        assert!(rto <= 100 + 10 * 50, "{rto} ms after {end}");
    }
    assert_eq!(peer.info().counters.timeouts, 0);
}

/// The same late acknowledgement, but 100 ms after the segment left again: it may be for either, and nothing follows from it. The one that
/// tells of it twice makes the difference.
#[test]
fn adaptive_eifel_believes_a_dsack() {
    let margin = |dsack: bool| {
        let mut peer = without_own().active();
        attach(&mut peer, "eifel(version=adaptive, decay=0)");
        peer.write(1000).drain();
        peer.wait(100);
        peer.ack_all();
        peer.write(2000).drain();
        // 233.333 ms and 100.
        peer.wait(334);
        assert_eq!(peer.info().counters.timeouts, 1);
        peer.recv(seg().ack(2001)).drain();
        let twice = seg().ack(3001);
        peer.recv(if dsack { twice.sack(&[(1001, 2001)]) } else { twice }).drain();
        peer.connection.ruling(Variable::Rto).effective / 1000
    };
    // As it was, 233.333, or SRTT 334 and RTTVAR 167: 334 + 2·3·167, as m is doubled. Twice that for the back-off.
    assert_eq!(margin(true), 2 * (334_000 + 6 * 167_000));
    assert_eq!(margin(false), 466_666);
}

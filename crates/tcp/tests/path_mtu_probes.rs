//! Path MTU discovery without ICMP (RFC 4821, RFC 8899), by hand: a path that carries less than the interface, and says nothing.
//!
//! The interface takes 1500 bytes; a segment has 40 bytes of headers.

use crate::common;

use common::{ISS, Peer, Setup, seg};
use transom_tcp::{IcmpError, PathMtuChoice, Phase, State};
use transom_wire::Seq;

fn probing() -> Setup {
    Setup::default().mss(Some(1460)).profile(|p| p.path_mtu = PathMtuChoice::Probing)
}

/// Sends `total` bytes over a path that carries `path` bytes. Returns once everything has arrived, with the packets' sizes.
fn transfer(peer: &mut Peer, total: usize, path: i64) -> Vec<i64> {
    let (mut written, mut sizes) = (0, Vec::new());
    let (mut next, mut beyond) = (peer.info().snd_una.stream_offset() as i64 + 1, Vec::new());
    let end = next + total as i64;
    for _ in 0..100_000 {
        while written < total {
            let space = peer.connection.writable().unwrap_or(0).min(total - written);
            if space == 0 {
                break;
            }
            peer.write(space);
            written += space;
        }
        let sent = peer.ranges();
        if sent.is_empty() {
            if next == end {
                return sizes;
            }
            peer.next_timer();
            continue;
        }
        peer.wait(10);
        for (from, upto) in sent {
            sizes.push(upto - from + 40);
            if upto - from + 40 > path {
                continue; // Nobody says so.
            }
            beyond.push((from, upto));
            beyond.sort_unstable();
            while let Some(&(_, upto)) = beyond.iter().find(|&&(f, u)| f <= next && next < u) {
                next = upto;
            }
            beyond.retain(|&(from, _)| from > next);
            let blocks: Vec<_> = beyond.iter().rev().take(3).copied().collect();
            peer.recv(seg().ack(next).sack(&blocks));
        }
    }
    panic!("it does not end: {}", peer.summary());
}

/// A segment that times out three times is too large. The base passes, and the rest is searched for.
#[test]
fn a_black_hole_is_found() {
    let mut peer = probing().active();
    let sizes = transfer(&mut peer, 2_000_000, 1400);
    let info = peer.info();
    assert_eq!(info.black_holes, 1);
    assert!(info.path_mtu > 1400 - 16 && info.path_mtu <= 1400, "{}", info.path_mtu);
    // By hand, in path_mtu.rs: of nine probes five are too large.
    assert_eq!(info.path_mtu_probes, 9);
    let probes: Vec<_> = sizes.iter().filter(|&&size| size > 1400 && size < 1500).collect();
    assert_eq!(probes, [&1425, &1425, &1425, &1406, &1406, &1406]);
    // The window came down for the timeouts before the size was suspected, and for no probe.
    assert_eq!((info.counters.timeouts, info.counters.fast_recoveries), (3, 0));
}

/// Where the base does not pass either, three more timeouts show that.
#[test]
fn a_narrow_black_hole_is_found() {
    let mut peer = probing().active();
    transfer(&mut peer, 2_000_000, 600);
    let info = peer.info();
    assert_eq!(info.black_holes, 2);
    assert!(info.path_mtu > 600 - 16 && info.path_mtu <= 600, "{}", info.path_mtu);
}

/// Without probing such a connection ends by R2.
#[test]
fn without_probes_a_black_hole_is_the_end() {
    let mut peer = Setup::default().mss(Some(1460)).active();
    peer.write(14_600).wait(2_000_000).expect_state(State::Closed);
}

/// Timeouts of small segments say nothing about sizes.
#[test]
fn a_path_that_loses_everything_is_no_black_hole() {
    let mut peer = probing().active();
    peer.write(1000).wait(60_000);
    assert_eq!((peer.info().black_holes, peer.info().path_mtu), (0, 1500));
}

/// A probe that is lost among others is a loss like others: the window comes down for them.
#[test]
fn losses_beside_a_probe_count() {
    let mut setup = probing();
    setup.path.mtu = 1200;
    let mut peer = setup.active();
    // The size has to be known to pass, and there is something to search for.
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(1200), Seq::new(common::ISS + 1));
    transfer(&mut peer, 100_000, 1500);
    peer.wait(600_000).write(40_000);
    let sent = peer.ranges();
    let probe = sent.iter().position(|(from, upto)| upto - from == 1460).expect("a probe");
    let before = peer.info().cwnd;
    // The probe and what follows it are lost.
    let acked = sent[probe].0;
    let blocks = [(sent[probe + 2].0, sent[probe + 5].1)];
    peer.recv(seg().ack(acked)).recv(seg().ack(acked).sack(&blocks));
    let info = peer.info();
    assert_eq!((info.phase, info.counters.fast_recoveries), (Phase::Recovery, 1));
    assert!(info.ssthresh < before, "{info:?}");
}

/// A report of less than the floor takes DF from ordinary packets. Probes have it, so a forged report is found out, and DF comes back.
#[test]
fn probes_find_out_a_forged_report_below_the_floor() {
    let mut peer = probing().active();
    peer.write(14_600).drain();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(300), Seq::new(ISS.wrapping_add(1)));
    peer.pump();
    peer.drain();
    assert_eq!((peer.info().path_mtu, peer.connection.dont_fragment()), (552, false));
    peer.wait(10).recv(seg().ack(14_601));
    let sizes = transfer(&mut peer, 50_000, 1500);
    assert_eq!(sizes.first(), Some(&1026), "halfway to 1500");
    assert!(peer.info().path_mtu >= 1026 && peer.connection.dont_fragment());
}

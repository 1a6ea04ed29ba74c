//! Other bytes for positions that were received already, and window scales beyond what there is.

use crate::harness::*;
use transom_tcp::time::Duration;
use transom_wire::{Flags, Options};

/// The bytes that arrived first stay, whatever a later segment claims (the attack on intrusion detection of Ptacek and Newsham).
#[test]
fn the_first_bytes_stay() {
    let mut victim = Victim::new();
    let (peer, id) = Peer::connect(&mut victim, ATTACKER, usual_options());
    victim.limits.packets = 2;
    // Beyond a gap of 100 bytes, three islands.
    for from in [100, 200, 300] {
        victim.inject(&peer.at(Flags::ACK, from, 0, &[b'a'; 50]));
    }
    // Over them: exactly, shifted to both sides, across, and around all of them.
    for (from, len) in [(100, 50), (90, 50), (120, 50), (140, 70), (80, 300), (199, 52), (350, 1)] {
        victim.inject(&peer.at(Flags::ACK, from, 0, &vec![b'z'; len]));
    }
    // And the start, with bytes for everything again.
    victim.inject(&peer.segment(Flags::ACK, &[b'y'; 400]));
    let got = victim.read(id);
    let mut expected = vec![b'y'; 400];
    expected[80..380].fill(b'z');
    for island in [100..150, 200..250, 300..350] {
        expected[island].fill(b'a');
    }
    // (90..100 came with the second, 80..90 with the fifth; all of them are z.)
    assert_eq!(String::from_utf8(got), String::from_utf8(expected));
    // Over what was read already.
    victim.inject(&peer.segment(Flags::ACK, &[b'x'; 400]));
    victim.inject(&peer.at(Flags::ACK, 390, 0, &[b'x'; 20]));
    assert_eq!(victim.read(id), [b'x'; 10]);
}

#[test]
fn a_fin_does_not_move() {
    let mut victim = Victim::new();
    let (mut peer, id) = Peer::connect(&mut victim, ATTACKER, usual_options());
    victim.limits.packets = 2;
    // A FIN behind 10 bytes that have not arrived; then one before and one behind it, and data behind it.
    victim.inject(&peer.at(Flags::ACK | Flags::FIN, 10, 0, &[]));
    victim.inject(&peer.at(Flags::ACK | Flags::FIN, 5, 0, &[]));
    victim.inject(&peer.at(Flags::ACK | Flags::FIN, 20, 0, &[]));
    victim.inject(&peer.at(Flags::ACK, 8, 0, b"89 and beyond the end"));
    peer.send(&mut victim, b"01234567");
    assert_eq!(victim.read(id), b"0123456789");
    assert!(victim.connection(id).end_of_stream());
    assert_eq!(victim.last().ack, peer.seq + 3, "two bytes and the FIN");
}

/// RFC 7323 section 2.3: a shift above 14 is used as 14.
#[test]
fn a_window_scale_over_14_is_14() {
    for shift in [14, 15, 31, 32, 63, 64, 255] {
        let mut victim = Victim::new();
        let options = Options { window_scale: Some(shift), ..usual_options() };
        let (peer, id) = Peer::connect(&mut victim, ATTACKER, options);
        assert_eq!(victim.info(id).window_scale.unwrap().0, 14, "{shift}");
        assert_eq!(victim.info(id).snd_wnd, 65_535 << 14, "{shift}");
        // And back again to nothing.
        let peer = Peer { window: 0, ..peer };
        victim.inject(&peer.segment(Flags::ACK, &[]));
        assert_eq!(victim.info(id).snd_wnd, 0, "{shift}");
    }
}

/// A peer that was given scale factors and windows of every kind is sent no more than it offered.
#[test]
fn the_flight_stays_within_a_window_that_jumps_about() {
    let mut victim = Victim::with(|_, profile, _| profile.nodelay = true);
    victim.limits.packets = 2_000;
    let options = Options { window_scale: Some(14), ..usual_options() };
    let (mut peer, id) = Peer::connect(&mut victim, ATTACKER, options);
    for (round, window) in [1u16, 0, 65_535, 2, 0, 0, 3, 1, 65_535, 0, 4].into_iter().enumerate() {
        peer.window = window;
        victim.write(id, &stream(round + 30_000)[round..]);
        peer.acknowledge(&mut victim);
        let info = victim.info(id);
        // Data sent under a larger window stays sent [SHLD-15]; nothing is added.
        assert!(info.snd_nxt.since(info.snd_una) <= (u64::from(window) << 14).max(info.in_flight));
        let held_back = info.snd_nxt;
        if window == 0 {
            victim.advance(Duration::from_millis(50));
            assert_eq!(victim.info(id).snd_nxt, held_back, "data left into a closed window");
        }
    }
}

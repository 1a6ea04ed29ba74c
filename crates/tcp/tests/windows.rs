//! Windows: scaled, large, shrinking, growing (RFC 9293 section 3.8.6, RFC 7323 section 2).

use crate::common;
use transom_tcp::Setting;

use common::{Setup, seg};
use transom_tcp::{LimitedBy, State};

/// [MUST-1] [REC-1] The peer's window is scaled, except in its SYN.
#[test]
fn windows_above_64_kib_are_used() {
    let setup = Setup::default().scale(7).window(1000);
    let mut peer = setup.active();
    assert_eq!(peer.info().snd_wnd, 1000, "a SYN's window is as it says");
    peer.recv(seg().win(65_535));
    assert_eq!(peer.info().snd_wnd, 65_535 << 7);
    // Fill 300 000 bytes: the congestion window grows with every acknowledgement.
    peer.connection.set(Setting::SendBuffer(1 << 20));
    peer.write(1_000_000);
    let mut acked = 1;
    while peer.info().cwnd < 300_000 {
        peer.drain();
        acked += 1000;
        peer.recv(seg().ack(acked).win(65_535));
    }
    assert!(peer.info().snd_nxt.since(peer.info().snd_una) > 65_535 * 4);
    assert_eq!(peer.info().limited_by, LimitedBy::CongestionWindow);
}

/// Our own: the scale fits the largest buffer, what is advertised is a multiple, the edge never moves left [SHLD-14].
#[test]
fn our_window_is_scaled() {
    let mut peer = Setup::default().scale(0).receive_buffers(1 << 20, 4 << 20).active();
    assert_eq!(peer.scale, 7, "4 MiB / 65535 takes seven bits");
    peer.recv(seg().data(1000)).recv(seg().data(1000));
    // 1048576 - 2000 = 1046576, rounded up to 8177 units of 128.
    assert_eq!(peer.advertised(), 1_046_656);
    let mut edge = 2001 + peer.advertised();
    for _ in 0..500 {
        peer.recv(seg().data(997));
        for out in peer.drain() {
            let right = out.ack() as u64 + (u64::from(out.header.window) << 7);
            // A promised window is kept; the field can express it in steps of 128 bytes only (RFC 7323 section 2.4).
            assert!(right + 127 >= edge, "{right} after {edge}");
            edge = edge.max(right);
        }
    }
    assert!(edge <= 1 + (1 << 20) + 2 * 128 + 1000, "no more than the buffer was offered: {edge}");
}

/// A peer of small segments cannot move the edge by rounding while nobody reads.
#[test]
fn rounding_does_not_grow_the_window() {
    let mut peer = Setup::default().scale(0).receive_buffers(64 << 10, 4 << 20).active();
    assert_eq!(peer.scale, 7);
    let mut taken = 0;
    for _ in 0..3000 {
        // As much as the connection takes of a segment smaller than the unit.
        peer.recv(seg().seq(1 + taken as i64).data(100)).wait(40);
        taken = peer.connection.readable();
    }
    assert!(taken <= (64 << 10) + 128, "{taken} bytes in a buffer of 65536");
    assert_eq!(peer.advertised(), 0);
}

/// [MUST-34] [SHLD-15] A window that shrinks below what is out: no new data, [SHLD-16] the rest is retransmitted, and
/// it works on.
#[test]
fn a_shrinking_window() {
    let mut peer = Setup::default().active();
    peer.write(20_000);
    assert_eq!(peer.ranges().len(), 10);
    // 2000 acknowledged, 3000 offered: 5000 bytes are now beyond the edge.
    peer.run_to(200).recv(seg().ack(2001).win(3000)).silent();
    assert_eq!(peer.info().snd_wnd, 3000);
    peer.recv(seg().ack(4001).win(1000)).silent();
    peer.next_timer();
    assert_eq!(peer.ranges(), [(4001, 5001)], "within the window, as usual");
    peer.recv(seg().ack(5001).win(10_000));
    peer.wait(5_000);
    let mut acked = 5001;
    while acked < 20_001 {
        if let Some(&(_, upto)) = peer.ranges().iter().max_by_key(|range| range.1) {
            acked = acked.max(upto);
        }
        peer.recv(seg().ack(acked).win(10_000)).wait(300);
    }
    assert_eq!(peer.info().unacknowledged, 0);
    peer.expect_state(State::Established);
}

/// A window of one byte less than what waits, or of one byte.
#[test]
fn odd_windows() {
    for window in [1, 2, 3, 17, 999, 1001, 1999] {
        let mut peer = Setup::default().window(window).active();
        peer.write(5000);
        let mut acked = 1;
        let mut rounds = 0;
        while acked < 5001 {
            for out in peer.drain() {
                acked = acked.max(out.end());
            }
            peer.recv(seg().ack(acked));
            peer.wait(1);
            rounds += 1;
            assert!(rounds < 6000, "window {window}: stuck at {acked}");
        }
    }
}

/// Buffers that the application makes smaller do not take back what was promised.
#[test]
fn a_smaller_buffer_keeps_its_promises() {
    let mut peer = Setup::default().receive_buffer(20_000).active();
    peer.recv(seg().data(1000)).recv(seg().data(1000)).drain();
    let edge = 2001 + peer.advertised();
    peer.connection.set(Setting::ReceiveBuffer(5_000));
    let mut next = 2001;
    while next + 1000 <= edge {
        peer.recv(seg().data(1000)).wait(40);
        next += 1000;
        assert_eq!(next + peer.advertised(), edge, "the right edge stays");
    }
    assert_eq!(peer.connection.readable(), next as usize - 1);
}

/// A larger one is offered at once when the window was closed.
#[test]
fn a_larger_buffer_opens_a_closed_window() {
    let mut peer = Setup::default().receive_buffer(4_000).active();
    for _ in 0..4 {
        peer.recv(seg().data(1000));
    }
    peer.drain();
    peer.connection.set(Setting::ReceiveBuffer(20_000));
    peer.pump();
    peer.expect(&["A 1:1 ack 4001"]);
    assert_eq!(peer.advertised(), 16_000);
}

/// A reader that keeps up makes the buffer grow with what arrives in a round trip, up to its maximum.
#[test]
fn the_receive_buffer_tunes_itself() {
    let mut peer = Setup::default().scale(0).receive_buffers(64 << 10, 1 << 20).active();
    for _ in 0..40 {
        let mut room = peer.info().rcv_wnd;
        while room >= 1000 {
            peer.recv(seg().data(1000));
            room -= 1000;
        }
        let readable = peer.connection.readable();
        peer.wait(100).read(readable);
    }
    assert_eq!(peer.info().rcv_buffer, 1 << 20);
}

/// We offer to scale windows, and the peer does not.
fn unscaled() -> Setup {
    Setup::default().profile(|profile| profile.options.window_scale = true)
}

/// A receiver that reads each segment as it arrives sends an acknowledgement for every second one, and none of them twice. It makes no difference
/// whether the window can say how large the buffer is: without scaling it cannot.
#[test]
fn reading_brings_out_no_acknowledgements_of_its_own() {
    let buffers = [(128 << 10, 6 << 20), (1 << 20, 6 << 20), (20_000, 20_000), (65_535, 65_535)];
    for (initial, max) in buffers {
        for setup in [unscaled(), Setup::default().scale(7)] {
            for len in [1000, 100] {
                let mut peer = setup.clone().receive_buffers(initial, max).active();
                let mut acks = Vec::new();
                for _ in 0..1000 {
                    peer.recv(seg().data(len)).wait(1).read(len).wait(1);
                    acks.extend(peer.drain().iter().map(|out| (out.ack(), out.header.window)));
                }
                let case = format!("{initial} {max} {:?} {len}", peer.scale);
                assert!(acks.len() <= 510, "{case}: {} acknowledgements", acks.len());
                assert!(acks.windows(2).all(|two| two[0].0 < two[1].0), "{case}: {acks:?}");
            }
        }
    }
}

/// A reader that comes back after a while, and takes little at a time from a full buffer, opens the window when there is room for a segment, and says
/// no more until there is half of the window.
#[test]
fn a_window_that_opens_is_told_a_few_times() {
    for setup in [unscaled(), Setup::default().scale(7)] {
        let mut peer = setup.receive_buffers(128 << 10, 6 << 20).active();
        while peer.advertised() >= 1000 {
            peer.recv(seg().data(1000)).drain();
        }
        peer.wait(100).drain();
        let mut told = 0;
        while peer.connection.readable() > 0 {
            peer.read(peer.connection.readable().min(500)).wait(1);
            told += peer.drain().len();
        }
        assert!(told <= 4, "{told} window updates");
        assert!(peer.advertised() >= 32_768, "{}", peer.advertised());
    }
}

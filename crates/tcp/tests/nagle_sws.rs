//! Small segments: Nagle's algorithm (RFC 9293 section 3.7.4), the sender's and the receiver's avoidance of silly
//! windows (section 3.8.6.2), and PSH (section 3.9.1.2).

use crate::common;
use transom_tcp::Setting;

use common::{Setup, seg};

/// [SHLD-7] One small segment is out at a time; what is written meanwhile is gathered. [MAY-16] [SHLD-27]
#[test]
fn small_writes_are_gathered() {
    let mut peer = Setup::default().active();
    peer.write(10).expect(&["PA 1:11 ack 1"]);
    for _ in 0..50 {
        peer.write(10).silent();
    }
    peer.recv(seg().ack(11)).expect(&["PA 11:511 ack 1"]);
    peer.write(400).write(100).silent();
    // A full segment waits for nobody; the rest does.
    peer.write(700).expect(&["A 511:1511 ack 1"]);
    peer.recv(seg().ack(511)).expect(&["PA 1511:1711 ack 1"]);
}

/// Minshall's refinement: only an earlier small segment holds a small one back.
#[test]
fn the_tail_of_a_large_write_does_not_wait() {
    let mut peer = Setup::default().active();
    peer.write(2500).expect(&["A 1:1001 ack 1", "A 1001:2001 ack 1", "PA 2001:2501 ack 1"]);
    peer.write(300).silent();
    peer.recv(seg().ack(2001)).silent();
    peer.recv(seg().ack(2501)).expect(&["PA 2501:2801 ack 1"]);
}

/// [MUST-17] The application can switch it off, for good or for once.
#[test]
fn nodelay() {
    let mut peer = Setup::default().active();
    peer.connection.set(Setting::NoDelay(true));
    for i in 0..5 {
        peer.write(10).expect(&[&format!("PA {}:{} ack 1", 1 + i * 10, 11 + i * 10)]);
    }
    peer.connection.set(Setting::NoDelay(false));
    peer.write(10).silent();
    peer.connection.set(Setting::NoDelay(true));
    peer.pump();
    peer.expect(&["PA 51:61 ack 1"]);
    assert!(peer.connection.settings().nodelay);
    let mut peer = Setup::default().profile(|profile| profile.nodelay = true).active();
    peer.write(1).write(1).expect(&["PA 1:2 ack 1", "PA 2:3 ack 1"]);
}

/// [MUST-60] What Nagle's algorithm holds goes with the acknowledgement, or with the close, or after a retransmission.
#[test]
fn nothing_is_held_for_ever() {
    let mut peer = Setup::default().active();
    peer.write(10).write(10).expect(&["PA 1:11 ack 1"]);
    peer.shutdown().expect(&["FPA 11:22 ack 1"]);
    let mut peer = Setup::default().active();
    peer.write(10).write(10).drain();
    peer.wait(400).expect(&["A 1:11 ack 1"]); // more is queued now
    peer.recv(seg().ack(11)).expect(&["PA 11:21 ack 1"]);
}

/// [MUST-61] PSH is on the segment that empties the queue, and on no other. [SHLD-28] Segments are full where they can
/// be.
#[test]
fn push_marks_the_end_of_what_is_queued() {
    let mut peer = Setup::default().window(3500).active();
    peer.write(5000);
    peer.expect(&["A 1:1001 ack 1", "A 1001:2001 ack 1", "A 2001:3001 ack 1"]);
    peer.recv(seg().ack(3001)).expect(&["A 3001:4001 ack 1", "PA 4001:5001 ack 1"]);
    peer.wait(300).drain();
    peer.recv(seg().ack(5001)).shutdown().expect(&["FA 5001:5002 ack 1"]);
}

/// [SHLD-28] A super-segment is made of full segments, whatever the windows leave; the device cuts it.
#[test]
fn super_segments_are_made_of_full_segments() {
    let mut setup = Setup::default().window(3500);
    setup.path.max_super_segment = Some(64_000);
    let mut peer = setup.active();
    peer.write(9_300).expect(&["A 1:3001 ack 1"]);
    assert_eq!(peer.last.as_ref().unwrap().segment_size, Some(1000));
    peer.recv(seg().ack(3001).win(5_999)).expect(&["A 3001:8001 ack 1"]);
    peer.recv(seg().ack(8001)).expect(&["PA 8001:9301 ack 1"]);
    assert_eq!(peer.last.as_ref().unwrap().segment_size, Some(1000), "1000 and 300");
    peer.recv(seg().ack(9301)).write(700).expect(&["PA 9301:10001 ack 1"]);
    assert_eq!(peer.last.as_ref().unwrap().segment_size, None);
    // The device's limit is rounded down to whole segments.
    peer.recv(seg().ack(10_001).win(60_000));
    peer.connection.set(Setting::MaxSuperSegment(Some(4_700)));
    peer.write(9_000);
    peer.expect(&["A 10001:14001 ack 1", "A 14001:18001 ack 1", "PA 18001:19001 ack 1"]);
}

/// [MUST-38] A window of less than a segment is used only if all that is queued fits, or half of the largest window.
#[test]
fn the_sender_avoids_silly_windows() {
    let mut peer = Setup::default().window(4000).active();
    peer.write(4000).drain();
    peer.recv(seg().ack(4001).win(0));
    peer.write(3000).silent();
    peer.recv(seg().ack(4001).win(400)).silent();
    peer.recv(seg().ack(4001).win(900)).silent();
    peer.recv(seg().ack(4001).win(1200)).expect(&["A 4001:5001 ack 1"]);
    // The rest of the window, 200, is silly again.
    peer.recv(seg().ack(5001).win(200)).silent();
    // With a small largest window, half of it will do.
    let mut peer = Setup::default().window(800).active();
    peer.write(3000).expect(&["A 1:801 ack 1"]);
    peer.recv(seg().ack(801).win(300)).silent();
    peer.recv(seg().ack(801).win(400)).expect(&["A 801:1201 ack 1"]);
}

/// The override (section 3.8.6.2.1): a silly window that stays is used after 0.1 to 1 s.
#[test]
fn a_silly_window_that_stays_is_used() {
    let mut peer = Setup::default().window(4000).active();
    peer.write(4000).drain();
    peer.recv(seg().ack(4001).win(0));
    peer.write(3000);
    peer.recv(seg().ack(4001).win(400)).silent();
    let since = peer.millis();
    peer.next_timer();
    let waited = peer.millis() - since;
    assert!((100..=1000).contains(&waited), "{waited} ms");
    peer.expect(&["A 4001:4401 ack 1"]);
    peer.recv(seg().ack(4401).win(100)).silent();
}

/// [MUST-39] The receiver opens its window by a segment or half its buffer at least, and [SHLD-14] never takes back.
#[test]
fn the_receiver_avoids_silly_windows() {
    let mut peer = Setup::default().receive_buffer(8000).active();
    let mut edge = 0;
    for _ in 0..8 {
        peer.recv(seg().data(1000));
    }
    peer.wait(100).drain();
    assert_eq!(peer.advertised(), 0);
    for step in 0..80 {
        peer.read(100);
        for out in peer.drain() {
            let right = out.ack() as u64 + u64::from(out.header.window);
            assert!(right >= edge, "the edge moved left at step {step}");
            assert!(edge == 0 || right == edge || right >= edge + 1000, "{right} after {edge}");
            edge = right;
        }
    }
    // 8001 + 1000 + 1000, then half of the buffer.
    assert_eq!(edge, 14_001);
    // The same when the peer's probes ask all the time.
    let mut peer = Setup::default().receive_buffer(8000).active();
    for _ in 0..8 {
        peer.recv(seg().data(1000));
    }
    peer.wait(100).drain();
    for _ in 0..9 {
        peer.read(100).recv(seg().seq(8001).data(1));
        assert_eq!(peer.advertised(), 0, "less than a segment of room is no room");
    }
    peer.read(100).drain();
    assert_eq!(peer.advertised(), 1000);
}

/// [MAY-16] Several small writes before anything could leave become full segments.
#[test]
fn writes_before_the_handshake_become_full_segments() {
    let setup = Setup::default();
    let mut peer = setup.connecting();
    for _ in 0..30 {
        peer.write(100);
    }
    peer.drain();
    setup.accept(&mut peer);
    peer.expect(&["A 1:1001 ack 1", "A 1001:2001 ack 1", "PA 2001:3001 ack 1"]);
}

//! Transfers that hold back for others, by a deadline or by the receiver's window, on real connections, worked by hand.
//!
//! Segments are 1000 bytes, the initial window is 10 of them, the handshake takes 100 ms.

use crate::common::{Peer, Setup, seg};
use transom_extensions::stack;
use transom_tcp::extension::Variable;

fn attach(peer: &mut Peer, text: &str) {
    peer.attach(stack(text).unwrap()[0].extension());
}

/// 100 kB in 10 s, of which two are the reserve: 12 500 bytes per second, a segment each 80 ms. What is left over the time that is left
/// after that; and nothing after eight seconds.
#[test]
fn a_deadline_paces() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "deadline(bytes=100kB, within=10s)");
    let rate = |peer: &Peer| peer.connection.ruling(Variable::PacingRate).requested;
    assert_eq!(rate(&peer).unwrap().high(), 12_500);
    peer.write(60_000);
    peer.run_to(300);
    let times: Vec<_> = peer.drain().iter().map(|out| out.at.as_millis()).collect();
    assert_eq!(times, [100, 179, 259]);
    // Two seconds from the beginning three segments have arrived: 97 000 bytes in six seconds.
    peer.run_to(2100).drain();
    peer.recv(seg().ack(3001)).drain();
    assert_eq!(rate(&peer).unwrap().high(), 16_167);
    // Without any event the time runs out all the same.
    peer.run_to(8099).drain();
    assert!(rate(&peer).unwrap().high() > 1_000_000);
    peer.run_to(8101).drain();
    assert_eq!(rate(&peer), None);
}

/// Once all is delivered it asks for nothing, however early.
#[test]
fn a_deadline_is_over_with_its_bytes() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "deadline(bytes=2kB, within=2s)");
    peer.write(10_000);
    // 1250 bytes per second: a segment at once, and one after 800 ms. It aims at 1600.
    peer.wait(100).recv(seg().ack(1001));
    peer.wait(900).drain();
    peer.recv(seg().ack(2001)).drain();
    assert_eq!(peer.connection.ruling(Variable::PacingRate).requested, None);
    assert_eq!(peer.connection.layers().count(), 1);
}

/// 60 kB in 5 s, of which four are planned for: 15 kB a second. Nice as long as that much was delivered; TCP when it was not; and Nice again.
#[test]
fn a_deadline_is_nice_while_there_is_time() {
    let mut peer = Setup::default().active();
    let text = "deadline(bytes=60kB, within=5s, hold-back=nice)";
    attach(&mut peer, text);
    let limited = |peer: &Peer| peer.connection.ruling(Variable::Cwnd).requested.is_some();
    peer.write(64_000).drain();
    assert!(limited(&peer));
    peer.wait(100);
    peer.ack_all();
    // 10 000 of 60 000 after 100 ms. They would do for 666.
    assert!(limited(&peer));
    peer.wait(600);
    assert!(limited(&peer), "it has not looked yet");
    let una = peer.acked();
    peer.recv(seg().ack(una + 1000)).drain();
    assert!(limited(&peer), "11 000 do for 733");
    peer.wait(300).drain();
    assert!(!limited(&peer));
    peer.ack_all();
    peer.wait(100);
    peer.ack_all();
    assert!(limited(&peer), "{} delivered", peer.info().snd_una.stream_offset());
}

/// The receiver's window in use, or what is asked for: RLWND.
fn rlwnd(peer: &Peer) -> u64 {
    peer.connection.ruling(Variable::RcvWnd).requested.unwrap().high()
}

/// A round trip later so many segments arrive in one burst, and are read.
fn burst(peer: &mut Peer, rtt: u64, segments: usize) -> u64 {
    peer.wait(rtt);
    peer.recv_batch(std::iter::repeat_n(seg().data(988), segments)).read(988 * segments);
    peer.drain();
    rlwnd(peer)
}

fn receiver() -> Peer {
    let mut peer = Setup::default().timestamps().active();
    attach(&mut peer, "rledbat");
    peer
}

/// Segments are 988 bytes, as there are timestamps. LEDBAT++ begins with two; with a base of 100 ms GAIN is 1/⌈120/100⌉ = 1/2: of each
/// segment that arrives half is added in slow start.
#[test]
fn rledbat_by_hand() {
    let mut peer = receiver();
    assert_eq!(rlwnd(&peer), 1976);
    assert_eq!(burst(&mut peer, 100, 2), 1976 + 2 * 494);
    assert_eq!(burst(&mut peer, 100, 3), 2964 + 3 * 494);
    assert_eq!(burst(&mut peer, 100, 4), 4446 + 4 * 494);
    // 50 ms in queues are more than three quarters of 60: slow start is over, and half a segment is added in a round trip; 5928 of 6422
    // bytes are a little less.
    let (edge, window) = (peer.info().rcv_nxt + peer.info().rcv_wnd, burst(&mut peer, 150, 6));
    assert!((6422 + 430..=6422 + 456).contains(&window), "{window}");
    // What was offered stays: 15 of 65 kB are used up.
    assert_eq!(peer.info().rcv_nxt + peer.info().rcv_wnd, edge);
    // Two round trips after slow start all flows are to see the empty path.
    assert_eq!(burst(&mut peer, 150, 1), window + 988 * 494 / window);
    assert_eq!(burst(&mut peer, 150, 1), 1976);
    // A sender that goes on by what it was promised comes to its end, and is then held to two segments.
    for _ in 0..5 {
        burst(&mut peer, 1, 9);
    }
    assert_eq!(peer.info().rcv_nxt + peer.info().rcv_wnd, edge);
    assert!(peer.info().rcv_wnd >= rlwnd(&peer));
}

/// Half a window more than what is asked for in a round trip shows that the sender makes use of it; a segment now and then does not.
#[test]
fn rledbat_does_not_grow_unused() {
    let mut peer = receiver();
    burst(&mut peer, 100, 2);
    burst(&mut peer, 100, 3);
    let window = burst(&mut peer, 100, 4);
    for _ in 0..3 {
        burst(&mut peer, 100, 1);
    }
    let idle = rlwnd(&peer);
    for _ in 0..10 {
        assert_eq!(burst(&mut peer, 100, 1), idle);
    }
    assert!(idle < window + 2 * 494);
}

/// A hole that is open for a round trip was a loss, and RLWND is half of what it was; one that is filled at once was none.
#[test]
fn rledbat_tells_a_loss_from_reordering() {
    let after = |open: u64| {
        let mut peer = receiver();
        burst(&mut peer, 100, 2);
        burst(&mut peer, 100, 3);
        assert_eq!(burst(&mut peer, 100, 4), 6422);
        let next = 1 + 9 * 988;
        // Both echo the last acknowledgement of the burst before.
        let (echo, clock) = (peer.last_tsval, peer.clock);
        peer.wait(100).recv(seg().seq(next + 988).data(988));
        let stamp = clock.wrapping_add(peer.millis() as u32);
        peer.wait(open).recv(seg().seq(next).ts(stamp, echo).data(988)).drain();
        rlwnd(&peer)
    };
    // 6422/2, and a little growth for two segments.
    assert!((3211..3211 + 494).contains(&after(110)), "{}", after(110));
    assert!(after(1) > 6422);
}

/// Where everything happens within a tick of the clock, a round trip is one. 1/GAIN is 16, the most, as 120 ms are more than 16 times 1 ms: each
/// segment adds 61.75 bytes, as long as those of the same millisecond are half of the window. 32 segments double it.
#[test]
fn rledbat_counts_no_time_as_a_tick() {
    let grown = || {
        let mut peer = receiver();
        let windows = [2, 2, 2].map(|segments| burst(&mut peer, 0, segments));
        assert_eq!(windows, [1976 + 123, 1976 + 247, 1976 + 370]);
        assert_eq!(burst(&mut peer, 0, 26), 2 * 1976);
        assert_eq!(peer.info().counters.bytes_accepted, 32 * 988);
        peer
    };
    // What fills a hole within the tick was reordered; a tick later it was lost.
    let after = |open: u64| {
        let mut peer = grown();
        let next = 1 + 32 * 988;
        let (echo, stamp) = (peer.last_tsval, peer.clock.wrapping_add(peer.millis() as u32));
        peer.recv(seg().seq(next + 988).data(988));
        peer.wait(open).recv(seg().seq(next).ts(stamp, echo).data(988)).drain();
        rlwnd(&peer)
    };
    assert!((3952..3952 + 124).contains(&after(0)), "{}", after(0));
    assert!((1976..1976 + 124).contains(&after(1)), "{}", after(1));
}

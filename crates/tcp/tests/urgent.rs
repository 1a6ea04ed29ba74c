//! Urgent data (RFC 9293 section 3.8.5).

use crate::common;

use common::{Setup, seg};
use transom_tcp::{Report, Signal, State};

/// [MUST-30] [MUST-62] The pointer names the octet behind the urgent data; segments before it carry URG. [SHLD-13]
/// Nothing is urgent unless the application insists.
#[test]
fn urgent_data_is_announced() {
    let mut peer = Setup::default().active();
    peer.write(100).expect(&["PA 1:101 ack 1"]);
    peer.recv(seg().ack(101)).write_urgent(5).expect(&["PUA 101:106 ack 1 urg 5"]);
    peer.recv(seg().ack(106)).write(10).expect(&["PA 106:116 ack 1"]);
    // A retransmission announces it as well.
    let mut peer = Setup::default().active();
    peer.write_urgent(1500);
    peer.expect(&["UA 1:1001 ack 1 urg 1500", "PUA 1001:1501 ack 1 urg 500"]);
    peer.run_to(400).expect(&["UA 1:1001 ack 1 urg 1500"]);
}

/// [MUST-31] A run of any length: as far as the pointer reaches, then further.
#[test]
fn a_long_run_of_urgent_data() {
    let mut peer = Setup::default().scale(4).active();
    peer.write_urgent(100_000);
    let mut end = 1;
    let mut announced = 0;
    while end < 100_001 {
        for out in peer.drain() {
            let pointer = out.seq() + i64::from(out.header.urgent);
            assert_eq!(pointer, (out.seq() + 65_535).min(100_001), "{}", out.line());
            assert!(pointer >= announced, "it does not recede");
            announced = pointer;
            end = out.end();
        }
        peer.recv(seg().ack(end));
    }
    assert_eq!(announced, 100_001);
}

/// It is announced although the window is closed, by whatever leaves (section 3.10.2).
#[test]
fn a_closed_window_does_not_silence_it() {
    let mut peer = Setup::default().window(1000).active();
    peer.write(1000).recv(seg().ack(1001).win(0)).drain();
    peer.write_urgent(10).silent();
    peer.recv(seg().ack(1001).data(10).win(0)).wait(100).expect(&["UA 1001:1001 ack 11 urg 10"]);
    peer.next_timer();
    peer.expect(&["UA 1001:1002 ack 11 urg 10"]);
}

/// [MUST-32] [MUST-47] The application is told when urgent data is announced and each time there is more, and
/// [MUST-33] can ask how much is left.
#[test]
fn the_application_is_told() {
    let mut peer = Setup::default().active();
    assert_eq!(peer.connection.urgent_bytes(), None);
    // Announced before it arrives.
    peer.recv(seg().urg(500));
    assert_eq!(peer.take_signals(), [Signal::Urgent]);
    assert_eq!(peer.connection.urgent_bytes(), Some(500));
    peer.recv(seg().urg(500)).recv(seg().urg(400));
    assert_eq!(peer.take_signals(), [], "no advance, and it does not recede");
    peer.recv(seg().data(300).urg(500));
    assert_eq!(peer.take_signals(), [Signal::Readable]);
    peer.read(100);
    assert_eq!(peer.connection.urgent_bytes(), Some(400));
    peer.recv(seg().data(300).urg(300));
    assert_eq!(peer.take_signals(), [Signal::Readable, Signal::Urgent]);
    peer.read(500);
    assert_eq!(peer.connection.urgent_bytes(), None, "all of it was read");
    // A pointer into what was read already is no news.
    peer.recv(seg().seq(401).data(200).urg(50));
    assert_eq!(peer.connection.urgent_bytes(), None);
    // Nobody has taken a report: of what is over none is given. The next says how much is left when it is taken, and comes again for more.
    assert_eq!(peer.connection.take_report(), None);
    peer.recv(seg().urg(20)).recv(seg().urg(30));
    assert_eq!(peer.connection.take_report(), Some(Report::Urgent(30)));
    assert_eq!(peer.connection.take_report(), None);
    peer.recv(seg().data(10)).read(10);
    assert_eq!(peer.connection.take_report(), None);
    peer.recv(seg().urg(25));
    assert_eq!(peer.connection.take_report(), Some(Report::Urgent(25)));
}

/// Nonsense is survived: zero, far beyond, on a bare FIN, after the FIN.
#[test]
fn nonsense_is_survived() {
    let mut peer = Setup::default().active();
    peer.recv(seg().data(10).urg(0));
    assert_eq!(peer.connection.urgent_bytes(), None);
    peer.recv(seg().data(10).urg(65_535));
    assert_eq!(peer.connection.urgent_bytes(), Some(65_545));
    peer.recv(seg().fin().urg(9)).expect_state(State::CloseWait);
    peer.take_signals();
    peer.recv(seg().seq(21).urg(65_535));
    assert!(!peer.take_signals().contains(&Signal::Urgent), "the stream is over");
    peer.read(20);
}

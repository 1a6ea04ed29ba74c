//! What an application may ask for: output that waits for more, records that are not joined, and low-water marks.

use crate::common;
use transom_tcp::Setting;

use common::{Peer, Setup, seg};
use transom_tcp::{RecoveryChoice, Signal, WriteError, WriteOptions};

fn more() -> WriteOptions {
    WriteOptions::default().with_more(true)
}

fn record() -> WriteOptions {
    WriteOptions::default().with_end_of_record(true)
}

fn active() -> Peer {
    Setup::default().active()
}

// ----- TCP_CORK and MSG_MORE -----

#[test]
fn a_corked_connection_sends_full_segments_alone() {
    let mut peer = active();
    peer.connection.set(Setting::Cork(true));
    assert!(peer.connection.settings().cork);
    peer.write(400).write(400).silent();
    peer.write(400).expect(&["A 1:1001 ack 1"]);
    // Nor does an acknowledgement let the rest go, as it would with Nagle's algorithm alone.
    peer.recv(seg().ack(1001)).silent();
    peer.connection.set(Setting::Cork(false));
    peer.pump();
    peer.expect(&["PA 1001:1201 ack 1"]);
}

/// The ceiling of Linux: 200 ms, from when the tail began to wait.
#[test]
fn held_data_leaves_after_200_ms() {
    let mut peer = active();
    peer.connection.set(Setting::Cork(true));
    let start = peer.millis();
    peer.write(400).wait(150).write(100).silent();
    peer.run_to(start + 199).silent();
    peer.run_to(start + 200).expect(&["PA 1:501 ack 1"]);
    // The next data waits anew.
    peer.recv(seg().ack(501));
    let start = peer.millis();
    peer.write(10).run_to(start + 199).silent();
    peer.run_to(start + 200).expect(&["PA 501:511 ack 1"]);
}

#[test]
fn window_updates_do_not_put_it_off() {
    let mut peer = active();
    peer.connection.set(Setting::Cork(true));
    let start = peer.millis();
    peer.write(400);
    for n in 1..20 {
        peer.wait(10).recv(seg().win(30_000 + n)).silent();
    }
    peer.run_to(start + 200).expect(&["PA 1:401 ack 1"]);
}

/// Also while earlier data is unacknowledged, on a path that is slower than that.
#[test]
fn the_ceiling_holds_while_data_is_in_flight() {
    let mut peer = Setup { rtt: 900, ..Setup::default() }.active();
    peer.connection.set(Setting::Cork(true));
    peer.write(1000).expect(&["PA 1:1001 ack 1"]);
    let start = peer.millis();
    peer.write(10).run_to(start + 200).expect(&["PA 1001:1011 ack 1"]);
}

#[test]
fn corking_wins_over_nodelay_but_nodelay_pushes_what_is_queued() {
    let mut peer = active();
    peer.connection.set(Setting::NoDelay(true));
    peer.connection.set(Setting::Cork(true));
    peer.write(10).silent();
    peer.connection.set(Setting::NoDelay(true));
    peer.pump();
    peer.expect(&["PA 1:11 ack 1"]);
    peer.write(10).silent();
    // Without the cork Nagle's algorithm stays off.
    peer.connection.set(Setting::Cork(false));
    peer.write(10).expect(&["PA 11:31 ack 1"]);
    peer.write(10).expect(&["PA 31:41 ack 1"]);
}

#[test]
fn the_end_of_the_stream_takes_what_is_held_along() {
    let mut peer = active();
    peer.connection.set(Setting::Cork(true));
    peer.write(10).silent();
    peer.shutdown().expect(&["FPA 1:12 ack 1"]);
}

#[test]
fn urgent_data_is_not_held() {
    let mut peer = active();
    peer.connection.set(Setting::Cork(true));
    peer.write_urgent(3).expect(&["PUA 1:4 ack 1 urg 3"]);
}

#[test]
fn more_holds_one_write_back_for_the_next() {
    let mut peer = active();
    peer.write_with(300, more()).silent();
    peer.write(200).expect(&["PA 1:501 ack 1"]);
    peer.recv(seg().ack(501));
    peer.write_with(1200, more()).expect(&["A 501:1501 ack 1"]);
    peer.recv(seg().ack(1501)).silent();
    peer.write_with(10, more()).silent();
    peer.wait(200).expect(&["PA 1501:1711 ack 1"]);
    // Uncorking is asking for it too, as on Linux.
    peer.recv(seg().ack(1711));
    peer.write_with(10, more()).silent();
    peer.connection.set(Setting::Cork(false));
    peer.connection.set(Setting::Cork(true));
    peer.connection.set(Setting::Cork(false));
    peer.pump();
    peer.expect(&["PA 1711:1721 ack 1"]);
}

/// A closed window is probed as ever, and its opening lets go what is due.
#[test]
fn a_corked_tail_and_a_closed_window() {
    let mut peer = active();
    peer.write(1000).drain();
    peer.recv(seg().ack(1001).win(0));
    peer.connection.set(Setting::Cork(true));
    peer.write(10);
    // The persist timer: one byte beyond the window.
    peer.wait(400).expect(&["A 1001:1002 ack 1"]);
    peer.recv(seg().ack(1001).win(5000)).silent();
    peer.wait(199).silent();
    peer.wait(1).expect(&["PA 1001:1011 ack 1"]);
}

// ----- MSG_EOR -----

#[test]
fn no_segment_has_bytes_of_two_records() {
    let mut peer = active();
    peer.connection.set(Setting::NoDelay(true));
    peer.recv(seg().win(0));
    // Queued together: 1300 + 200 + 700, and 100 of the next.
    peer.write_with(1300, record()).write_with(200, record()).write_with(700, record()).write(100);
    peer.silent();
    peer.recv(seg().win(60_000)).expect(&[
        "A 1:1001 ack 1",
        "PA 1001:1301 ack 1",
        "PA 1301:1501 ack 1",
        "PA 1501:2201 ack 1",
        "PA 2201:2301 ack 1",
    ]);
}

/// The last record is like any small segment: Nagle's algorithm holds it while another one is out.
#[test]
fn nagle_holds_the_last_record_alone() {
    let mut peer = active();
    peer.write_with(100, record()).expect(&["PA 1:101 ack 1"]);
    peer.write_with(100, record()).silent();
    // More follows: it will not grow.
    peer.write_with(100, record()).expect(&["PA 101:201 ack 1"]);
    peer.recv(seg().ack(201)).expect(&["PA 201:301 ack 1"]);
}

#[test]
fn a_super_segment_ends_with_its_record() {
    let mut setup = Setup::default();
    setup.path.max_super_segment = Some(64_000);
    let mut peer = setup.active();
    peer.recv(seg().win(0));
    peer.write_with(2500, record()).write_with(3000, record()).silent();
    peer.recv(seg().win(60_000)).expect(&["PA 1:2501 ack 1", "PA 2501:5501 ack 1"]);
}

#[test]
fn records_stay_apart_when_they_are_sent_again() {
    for recovery in [RecoveryChoice::Sack, RecoveryChoice::GoBackN, RecoveryChoice::RackTlp] {
        let mut setup = Setup::default().profile(|profile| profile.recovery = recovery);
        setup.path.max_super_segment = Some(64_000);
        let mut peer = setup.active();
        peer.connection.set(Setting::NoDelay(true));
        for _ in 0..6 {
            peer.write_with(150, record());
        }
        peer.drain();
        let mut again = Vec::new();
        for _ in 0..12 {
            peer.wait(400);
            let ranges = peer.ranges();
            // Only what is sent again in order arrives.
            let mut acked = peer.acked();
            for &(start, end) in ranges.iter().filter(|range| range.0 != 751) {
                acked = if start == acked { end } else { acked };
            }
            again.extend(ranges);
            peer.recv(seg().ack(acked));
        }
        assert!(again.len() >= 6, "{recovery:?}: {again:?}");
        for (start, end) in again {
            assert_eq!(((start - 1) % 150, end - start), (0, 150), "{recovery:?}");
        }
    }
}

#[test]
fn so_many_records_and_no_more() {
    let mut peer = active();
    peer.recv(seg().win(0));
    for _ in 0..4096 {
        peer.write_with(1, record());
    }
    let refused = peer.connection.write_with(peer.now, b"x", record());
    assert_eq!(refused, Err(WriteError::WouldBlock));
    assert!(peer.connection.memory() < 100_000);
    // Bytes are taken, and room is told of.
    peer.recv(seg().win(60_000));
    while peer.info().unacknowledged > 0 {
        peer.ack_all();
    }
    assert!(peer.take_signals().contains(&Signal::Writable));
    peer.write_with(1, record());
}

// ----- TCP_NOTSENT_LOWAT -----

#[test]
fn unsent_data_is_bounded() {
    let mut peer = Setup::default().window(4000).active();
    peer.connection.set(Setting::NotsentLowWater(3000));
    assert_eq!(peer.connection.settings().notsent_low_water, 3000);
    // Data that leaves at once makes room for more.
    assert_eq!(peer.write_some(50_000), 3000);
    assert_eq!(peer.write_some(50_000), 3000);
    peer.drain();
    // The window is full now: 2000 bytes are unsent.
    assert_eq!(peer.connection.writable(), Ok(1000));
    assert!(!peer.connection.is_writable());
    assert_eq!(peer.write_some(50_000), 1000);
    assert_eq!(peer.write_some(50_000), 0);
    peer.take_signals();
    // 1000 leave: 2000 are left, which is more than half of the mark.
    peer.recv(seg().ack(1001).win(4000));
    assert!(!peer.take_signals().contains(&Signal::Writable) && !peer.connection.is_writable());
    peer.recv(seg().ack(2001).win(4000));
    assert!(peer.take_signals().contains(&Signal::Writable));
    assert!(peer.connection.is_writable());
    // Without the mark the send buffer decides.
    peer.connection.set(Setting::NotsentLowWater(0));
    assert!(peer.connection.writable().unwrap() > 100_000);
}

/// As on Linux a segment is begun where there is any room.
#[test]
fn a_small_mark_does_not_make_small_writes() {
    let mut peer = active();
    peer.connection.set(Setting::NotsentLowWater(1));
    assert_eq!(peer.write_some(5000), 1000);
    peer.expect(&["PA 1:1001 ack 1"]);
    assert_eq!(peer.connection.write_zeros(peer.now, 5000), Ok(1000));
}

#[test]
fn raising_the_mark_makes_room() {
    let mut peer = Setup::default().window(2000).active();
    peer.connection.set(Setting::NotsentLowWater(1000));
    while peer.write_some(50_000) > 0 {}
    peer.take_signals();
    peer.connection.set(Setting::NotsentLowWater(8000));
    assert!(peer.take_signals().contains(&Signal::Writable));
}

// ----- SO_RCVLOWAT -----

#[test]
fn a_reader_is_told_from_the_low_water_mark_on() {
    let mut peer = active();
    peer.connection.set(Setting::ReceiveLowWater(1500));
    peer.recv(seg().data(1000));
    assert!(
        !peer.take_signals().contains(&Signal::Readable) && !peer.connection.has_enough(usize::MAX)
    );
    // A reader that wants less has enough.
    assert!(peer.connection.has_enough(1000) && !peer.connection.has_enough(1001));
    peer.recv(seg().data(600));
    assert!(
        peer.take_signals().contains(&Signal::Readable) && peer.connection.has_enough(usize::MAX)
    );
    peer.read(1600);
    peer.recv(seg().data(700));
    assert!(peer.take_signals().is_empty());
    // A lower mark tells at once.
    peer.connection.set(Setting::ReceiveLowWater(700));
    assert!(peer.take_signals().contains(&Signal::Readable));
    peer.connection.set(Setting::ReceiveLowWater(0));
    assert_eq!(peer.connection.settings().receive_low_water, 1);
}

#[test]
fn the_end_of_the_stream_is_told_below_the_mark() {
    let mut peer = active();
    peer.connection.set(Setting::ReceiveLowWater(1500));
    peer.recv(seg().data(100));
    assert!(!peer.connection.has_enough(usize::MAX));
    peer.recv(seg().fin());
    assert!(
        peer.take_signals().contains(&Signal::Readable) && peer.connection.has_enough(usize::MAX)
    );
    let mut peer = active();
    peer.connection.set(Setting::ReceiveLowWater(1500));
    peer.recv(seg().data(100)).recv(seg().rst().seq(101));
    assert!(peer.connection.has_enough(usize::MAX), "the error");
}

/// A mark that the receive buffer can never reach does not lock the reader out.
#[test]
fn half_of_the_receive_buffer_is_enough() {
    let mut peer = Setup::default().receive_buffer(10_000).active();
    peer.connection.set(Setting::ReceiveLowWater(1 << 30));
    for _ in 0..4 {
        peer.recv(seg().data(1000));
    }
    assert!(!peer.connection.has_enough(usize::MAX));
    peer.recv(seg().data(1000));
    assert!(peer.connection.has_enough(usize::MAX));
}

// ----- TCP_LINGER2 -----

#[test]
fn an_orphan_waits_a_bounded_time_for_the_peers_fin() {
    for (asked, lasts) in [(None, 60_000), (Some(5_000), 5_000)] {
        let mut peer = active();
        if let Some(millis) = asked {
            peer.connection.set(Setting::FinWait2(common::ms(millis)));
        }
        peer.close().expect(&["FA 1:2 ack 1"]);
        peer.recv(seg().ack(2));
        let start = peer.millis();
        peer.run_to(start + lasts - 1);
        assert_eq!(peer.state(), transom_tcp::State::FinWait2);
        peer.run_to(start + lasts);
        assert_eq!(peer.state(), transom_tcp::State::Closed);
    }
    // Not at all.
    let mut peer = active();
    peer.connection.set(Setting::FinWait2(common::ms(0)));
    peer.close().drain();
    peer.recv(seg().ack(2));
    assert_eq!(peer.state(), transom_tcp::State::Closed);
    // A program that keeps its socket waits as long as it likes.
    let mut peer = active();
    peer.connection.set(Setting::FinWait2(common::ms(5)));
    peer.shutdown().drain();
    peer.recv(seg().ack(2)).wait(100_000);
    assert_eq!(peer.state(), transom_tcp::State::FinWait2);
}

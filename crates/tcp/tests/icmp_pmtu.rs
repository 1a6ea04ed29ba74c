//! What ICMP reports (RFC 9293 section 3.9.2.2, RFC 5927) and path MTU discovery (RFC 1191, RFC 8201).

use crate::common;
use transom_tcp::Setting;

use common::{ISS, Peer, Setup, seg};
use transom_tcp::{
    CongestionChoice, ConnectionError, IcmpError, PathMtuDiscovery, ReadError, Signal, State,
    WriteError,
};
use transom_wire::Seq;

fn quoted(relative: i64) -> Seq {
    Seq::new(ISS.wrapping_add(relative as u32))
}

/// Ten segments of 1460 bytes are out.
fn bulk() -> Peer {
    let mut peer = Setup::default().mss(Some(1460)).active();
    peer.write(14_600);
    assert_eq!(peer.ranges().len(), 10);
    peer
}

/// [MUST-54] An error counts only if it quotes something in flight.
#[test]
fn only_what_is_in_flight_can_be_reported() {
    let mut peer = bulk();
    peer.recv(seg().ack(2921));
    for seq in [0, 1, 2920, 14_601, 1 << 30] {
        peer.connection.on_icmp(peer.now, IcmpError::TooBig(1300), quoted(seq));
        peer.connection.on_icmp(peer.now, IcmpError::HostUnreachable, quoted(seq));
    }
    assert_eq!(peer.info().counters.icmp_rejected, 10);
    assert_eq!(peer.info().path_mtu, 1500);
    assert!(!peer.take_signals().contains(&Signal::Trouble));
    peer.connection.on_icmp(peer.now, IcmpError::HostUnreachable, quoted(2921));
    assert!(peer.take_signals().contains(&Signal::Trouble), "[MUST-47] told unasked");
}

/// [SHLD-20] A program that ignores errors pays nothing: for any number of them one event waits, and the last error replaces
/// the others.
#[test]
fn reports_nobody_takes_hold_nothing_up() {
    let mut peer = bulk();
    peer.take_signals();
    for _ in 0..1_000 {
        peer.connection.on_icmp(peer.now, IcmpError::HostUnreachable, quoted(1));
        peer.connection.on_icmp(peer.now, IcmpError::TimeExceeded, quoted(1));
    }
    peer.recv(seg().ack(14_601));
    assert_eq!(peer.info().unacknowledged, 0);
    let reports = peer.take_signals().into_iter().filter(|&event| event == Signal::Trouble);
    assert_eq!(reports.count(), 1);
    assert_eq!(peer.connection.take_soft_error(), Some(IcmpError::TimeExceeded));
}

/// [MUST-56] [SHLD-26] [SHLD-25] No error ends a synchronized connection (RFC 5927 section 5.2); the application can
/// learn of it.
#[test]
fn no_error_ends_a_synchronized_connection() {
    let errors = [
        IcmpError::NetworkUnreachable,
        IcmpError::HostUnreachable,
        IcmpError::PortUnreachable,
        IcmpError::Prohibited,
        IcmpError::TimeExceeded,
        IcmpError::ParameterProblem,
    ];
    for error in errors {
        let mut peer = bulk();
        peer.connection.on_icmp(peer.now, error, quoted(1));
        peer.pump();
        peer.silent().expect_state(State::Established);
        assert_eq!(peer.connection.take_soft_error(), Some(error));
        assert_eq!(peer.connection.take_soft_error(), None);
        peer.recv(seg().ack(14_601));
        assert_eq!(peer.info().unacknowledged, 0);
    }
}

/// [SHLD-25] If the peer is silent from then on, the connection ends with what the network said of it, as on Linux.
#[test]
fn a_soft_error_explains_a_timeout() {
    let errors = [IcmpError::HostUnreachable, IcmpError::PortUnreachable, IcmpError::HostIsolated];
    for error in errors {
        let mut peer = bulk();
        peer.wait(1_000);
        peer.connection.on_icmp(peer.now, error, quoted(1));
        // That the application was told of it makes no difference.
        assert_eq!(peer.connection.take_soft_error(), Some(error));
        peer.wait(2_000_000).expect_state(State::Closed);
        assert_eq!(peer.connection.error(), Some(ConnectionError::Unreachable(error)));
    }
}

/// The peer was heard after it: that error is over.
#[test]
fn a_soft_error_before_the_peer_was_heard_explains_nothing() {
    let mut peer = bulk();
    peer.connection.on_icmp(peer.now, IcmpError::HostUnreachable, quoted(1));
    peer.wait(100).recv(seg().ack(1461));
    peer.wait(2_000_000).expect_state(State::Closed);
    assert_eq!(peer.connection.error(), Some(ConnectionError::TimedOut));
}

/// An attempt to connect ends with it too.
#[test]
fn a_soft_error_explains_why_nobody_answered() {
    let mut peer = Setup::default().profile(|p| p.syn_r2 = 3).connecting();
    peer.connection.on_icmp(peer.now, IcmpError::NetworkUnreachable, Seq::new(ISS));
    peer.run_to(100_000).expect_state(State::Closed);
    let error = ConnectionError::Unreachable(IcmpError::NetworkUnreachable);
    assert_eq!(peer.connection.error(), Some(error));
}

/// Calls tell of a soft error once, if that is wanted: a writer at once, a reader when there is nothing to read.
#[test]
fn calls_tell_of_soft_errors_if_that_is_wanted() {
    let mut peer = bulk();
    let error = IcmpError::HostUnreachable;
    peer.connection.on_icmp(peer.now, error, quoted(1));
    assert_eq!(peer.connection.read(peer.now, &mut [0; 10]), Err(ReadError::WouldBlock));
    peer.connection.set(Setting::SoftErrors(true));
    assert_eq!(peer.connection.pending_soft_error(), Some(error));
    assert_eq!(peer.connection.write(peer.now, &[7; 10]), Err(WriteError::Soft(error)));
    assert_eq!(peer.connection.pending_soft_error(), None);
    assert_eq!(peer.connection.read(peer.now, &mut [0; 10]), Err(ReadError::WouldBlock));
    peer.connection.on_icmp(peer.now, error, quoted(1));
    peer.recv(seg().data(10)).read(10);
    assert_eq!(peer.connection.read(peer.now, &mut [0; 10]), Err(ReadError::Soft(error)));
    assert_eq!(peer.connection.read(peer.now, &mut [0; 10]), Err(ReadError::WouldBlock));
    peer.expect_state(State::Established);
}

/// RFC 1191 sections 3 and 6.5: the smaller MTU is used, what was too big is sent again at once, and cwnd stays.
#[test]
fn a_smaller_path_mtu_recuts_the_flight() {
    let mut peer = bulk();
    let cwnd = peer.info().cwnd;
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(1300), quoted(1));
    peer.pump();
    let info = peer.info();
    assert_eq!((info.path_mtu, info.mss), (1300, 1260));
    assert_eq!(info.cwnd, cwnd, "this is not congestion");
    let ranges = peer.ranges();
    assert_eq!(ranges.first(), Some(&(1, 1261)));
    assert_eq!(ranges.last().unwrap().1, 14_601);
    assert!(ranges.iter().all(|(from, upto)| upto - from <= 1260));
    assert!(
        ranges.windows(2).all(|pair| pair[0].1 == pair[1].0),
        "everything, in order: {ranges:?}"
    );
    peer.wait(100).recv(seg().ack(14_601));
    let info = peer.info();
    assert_eq!((info.counters.timeouts, info.counters.fast_recoveries), (0, 0));
    assert!(info.cwnd >= cwnd && info.ssthresh == u64::MAX, "neither at the end of the repair");
    // The late reports about the other nine say nothing new.
    peer.write(5000).drain();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(1300), quoted(14_601));
    peer.pump();
    peer.silent();
}

/// Without a next-hop MTU the plateaus of RFC 1191 section 7.1 are stepped down.
#[test]
fn old_routers_name_no_mtu() {
    let mut peer = bulk();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(0), quoted(1));
    peer.pump();
    assert_eq!(peer.info().path_mtu, 1492);
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(0), quoted(1));
    peer.pump();
    assert_eq!(peer.info().path_mtu, 1006);
}

/// Never upwards, and never below the floor: 552 bytes unless the profile says otherwise, 1280 for IPv6 (RFC 8201 section 4).
#[test]
fn implausible_mtus_are_bounded() {
    let mut peer = bulk();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(9000), quoted(1));
    assert_eq!(peer.info().path_mtu, 1500);
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(20), quoted(1));
    assert_eq!((peer.info().path_mtu, peer.info().mss), (552, 512));
    let setup = Setup::default().mss(Some(1460)).profile(|p| p.min_path_mtu = 68);
    let mut peer = setup.active();
    peer.write(14_600).drain();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(20), quoted(1));
    assert_eq!((peer.info().path_mtu, peer.info().mss), (68, 28));
    let mut setup = Setup::default().mss(Some(1440));
    setup.path.ip_header = 40;
    let mut peer = setup.active();
    peer.write(3000).drain();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(600), quoted(1));
    assert_eq!(peer.info().path_mtu, 1280);
}

/// RFC 5927 section 7.2: a segment that fits the claimed MTU was not too big for it.
#[test]
fn a_report_about_a_small_segment_is_a_forgery() {
    let mut peer = Setup::default().mss(Some(1460)).active();
    peer.write(100).drain();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(1300), quoted(1));
    assert_eq!((peer.info().path_mtu, peer.info().counters.icmp_rejected), (1500, 1));
}

/// RFC 5927 section 7.2: once segments of the present size have arrived, a report waits. If what it names is acknowledged it was false.
#[test]
fn a_report_is_not_believed_against_the_evidence() {
    let mut peer = bulk();
    peer.recv(seg().ack(1461)).drain();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(576), quoted(2921));
    peer.pump();
    peer.silent();
    peer.wait(100).recv(seg().ack(4381)).drain();
    assert_eq!((peer.info().path_mtu, peer.info().counters.icmp_rejected), (1500, 1));
    // Nothing comes of it later.
    peer.wait(5_000).recv(seg().ack(14_601));
    assert_eq!(peer.info().path_mtu, 1500);
}

/// RFC 1191 section 3: an IPv4 path that carries less than the floor is sent packets of the floor's size without DF. Everything leaves again so, and
/// after ten minutes the whole MTU is tried, with DF.
#[test]
fn below_the_floor_packets_may_be_fragmented() {
    let mut peer = bulk();
    let cwnd = peer.info().cwnd;
    assert!(peer.connection.dont_fragment());
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(551), quoted(1));
    peer.pump();
    assert_eq!((peer.info().path_mtu, peer.info().cwnd), (552, cwnd));
    assert!(!peer.connection.dont_fragment() && peer.connection.path_state().is_narrow);
    let ranges = peer.ranges();
    assert_eq!((ranges.first(), ranges.last().unwrap().1), (Some(&(1, 513)), 14_601));
    // The late reports about the other nine say nothing new.
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(300), quoted(1461));
    peer.pump();
    peer.silent();
    peer.wait(100).recv(seg().ack(14_601));
    peer.wait(599_000).write(512).recv(seg().ack(15_113));
    assert!(!peer.connection.dont_fragment());
    peer.wait(1_000).write(2_920).drain();
    assert_eq!((peer.info().path_mtu, peer.connection.dont_fragment()), (1500, true));
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(500), quoted(15_113));
    assert_eq!((peer.info().path_mtu, peer.connection.dont_fragment()), (552, false));
}

/// The path becomes narrower still: the segments have the floor's size already, and leave again as they were.
#[test]
fn at_the_floor_df_alone_is_given_up() {
    let mut peer = bulk();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(552), quoted(1));
    assert!(peer.connection.dont_fragment(), "the floor itself passes whole");
    peer.pump();
    let before = peer.ranges();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(400), quoted(1));
    assert_eq!((peer.info().path_mtu, peer.connection.dont_fragment()), (552, false));
    peer.pump();
    assert_eq!(peer.ranges(), before);
}

/// RFC 5927 section 7.2 asks for the same evidence as above the floor.
#[test]
fn df_is_not_given_up_without_evidence() {
    // A segment that fits what is claimed.
    let mut peer = Setup::default().mss(Some(1460)).active();
    peer.write(300).drain();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(340), quoted(1));
    assert!(peer.connection.dont_fragment());
    assert_eq!(peer.info().counters.icmp_rejected, 1);
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(339), quoted(1));
    assert!(!peer.connection.dont_fragment());
    // One that arrives.
    let mut peer = bulk();
    peer.recv(seg().ack(1461)).drain();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(300), quoted(2921));
    peer.wait(100).recv(seg().ack(4381)).drain();
    assert_eq!((peer.info().path_mtu, peer.info().counters.icmp_rejected), (1500, 1));
    assert!(peer.connection.dont_fragment());
    // One that times out.
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(300), quoted(4381));
    assert!(peer.connection.dont_fragment());
    peer.next_timer();
    assert_eq!((peer.info().path_mtu, peer.connection.dont_fragment()), (552, false));
}

/// As on Linux, `DO` keeps DF, and IPv6 has no fragments on the way.
#[test]
fn some_packets_are_never_fragmented() {
    let setup = Setup::default().mss(Some(1460));
    let mut peer = setup.profile(|p| p.path_mtu_discovery = PathMtuDiscovery::Do).active();
    peer.write(3000).drain();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(300), quoted(1));
    assert_eq!((peer.info().path_mtu, peer.connection.dont_fragment()), (552, true));
    let mut setup = Setup::default().mss(Some(1440));
    setup.path.ip_header = 40;
    let mut peer = setup.active();
    peer.write(3000).drain();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(600), quoted(1));
    assert_eq!((peer.info().path_mtu, peer.connection.path_state().fragments), (1280, false));
}

/// A path that is known to fragment from the start, down to an interface of the floor's size.
#[test]
fn a_path_known_to_fragment() {
    for mtu in [552, 1500] {
        let mut setup = Setup::default().mss(Some(1460));
        (setup.path.mtu, setup.path.interface_mtu) = (552, mtu);
        let mut peer = setup.active();
        peer.connection.expect_fragments(peer.now);
        peer.write(100).recv(seg().ack(101));
        assert!(!peer.connection.dont_fragment());
        peer.run_to(601_000);
        peer.write(100).recv(seg().ack(201));
        assert_eq!((peer.info().path_mtu, peer.connection.dont_fragment()), (mtu, true));
    }
}

/// If it times out, the report was true. Everything is cut anew, and the window is not reduced for it.
#[test]
fn a_report_is_believed_when_its_segment_times_out() {
    let mut peer = bulk();
    peer.recv(seg().ack(1461)).drain();
    let cwnd = peer.info().cwnd;
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(1300), quoted(1461));
    peer.next_timer();
    assert_eq!((peer.info().path_mtu, peer.info().cwnd), (1300, cwnd));
    assert_eq!(peer.ranges().first(), Some(&(1461, 2721)));
    peer.recv(seg().ack(14_601));
    assert_eq!(peer.info().unacknowledged, 0);
}

/// One forged report about four megabytes in flight makes as many segments as the floor allows, and no more.
#[test]
fn a_forged_report_does_not_make_crumbs() {
    let setup = Setup::default().mss(Some(1460)).scale(7).window(65_535);
    let mut peer = setup.profile(|p| p.congestion = CongestionChoice::none()).active();
    peer.connection.set(Setting::SendBuffer(4 << 20));
    peer.recv(seg().win(65_535)).write(4 << 20).drain();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(68), quoted(1));
    peer.pump();
    assert_eq!(peer.info().path_mtu, 552);
    assert!(peer.ranges().len() <= (4 << 20) / 512 + 1);
}

/// RFC 1191 section 6.3, RFC 8201 section 4: a larger MTU is tried after ten minutes, when there is something to send.
#[test]
fn a_larger_mtu_is_tried_after_ten_minutes() {
    let mut peer = bulk();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(1300), quoted(1));
    peer.pump();
    peer.wait(100).recv(seg().ack(14_601));
    peer.wait(599_000).write(1260).recv(seg().ack(15_861));
    assert_eq!(peer.info().path_mtu, 1300);
    peer.wait(1_000).write(4_380);
    assert_eq!(peer.info().path_mtu, 1500);
    assert_eq!(peer.ranges().last().map(|&(from, upto)| upto - from), Some(1460));
    // Still too big: back again, and ten more minutes.
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(1300), quoted(15_861));
    peer.pump();
    assert_eq!(peer.info().path_mtu, 1300);
    peer.recv(seg().ack(20_241)).wait(500_000).write(100).drain();
    assert_eq!(peer.info().path_mtu, 1300);
}

/// Nothing is woken up again.
#[test]
fn a_report_about_a_closed_connection() {
    let mut peer = bulk();
    peer.abort().drain();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(1300), quoted(1));
    peer.pump();
    peer.silent();
    assert_eq!(peer.connection.next_timeout(), None);
}

/// A path known to be narrow from the start is believed for ten minutes too.
#[test]
fn a_cached_mtu_expires() {
    let mut setup = Setup::default().mss(Some(1460));
    setup.path.mtu = 1400;
    let mut peer = setup.active();
    peer.write(100).recv(seg().ack(101));
    assert_eq!(peer.info().path_mtu, 1400);
    peer.run_to(601_000);
    peer.write(100).recv(seg().ack(201));
    assert_eq!(peer.info().path_mtu, 1500);
}

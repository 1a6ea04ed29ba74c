//! TCP Fast Open on a connection (RFC 7413), in traces worked by hand.

use crate::common;

use common::{ISS, PORTS, Peer, Setup, ms, pattern, secs, seg};
use std::sync::Arc;
use transom_tcp::packet::Payload;
use transom_tcp::time::Instant;
use transom_tcp::{
    Connection, ConnectionError, FastOpenFailure, FastOpenInfo, FastOpenOutcome, IcmpError,
    Segment, State,
};
use transom_wire::{Ecn, FastOpen, Flags, Options, Seq};

fn cookie(byte: u8) -> FastOpen {
    FastOpen::new(&[byte; 8]).unwrap()
}

/// A client that opens with `option` and has written `len` bytes before its SYN leaves; the server's MSS was `mss`.
fn opening(setup: &Setup, option: FastOpen, mss: u16, held: bool, len: usize) -> Peer {
    let now = Instant::ZERO;
    let profile = Arc::new(setup.profile.clone());
    let mut connection = Connection::connect(profile, PORTS, setup.path, Seq::new(ISS), 7_000, now);
    connection.open_fast(option, mss, held);
    let mut peer = Peer::wrap(connection, now);
    peer.window = setup.window;
    match len {
        0 => peer.pump(),
        len => _ = peer.write(len),
    }
    peer
}

/// The server's SYN-ACK, which acknowledges up to `ack`, a round trip later.
fn answer(setup: &Setup, peer: &mut Peer, ack: i64, cookie: Option<FastOpen>) {
    peer.wait(setup.rtt);
    let options = Options { fast_open: cookie, ..setup.syn_options(peer) };
    peer.recv(seg().syn().ack(ack).options(options));
}

fn outcome(peer: &mut Peer) -> Option<FastOpenOutcome> {
    peer.connection.take_fast_open_outcome()
}

/// RFC 7413 section 4.2.1: the first connection asks for a cookie, and its data waits for the handshake. Section 4.2.2: the next one has its data in
/// the SYN, and data that the SYN-ACK acknowledges is not sent again.
#[test]
fn a_cookie_is_asked_for_and_used() {
    let setup = Setup::default();
    let mut peer = opening(&setup, FastOpen::REQUEST, 0, false, 300);
    peer.expect(&["S 0:1 cookie?"]);
    answer(&setup, &mut peer, 1, Some(cookie(7)));
    peer.expect(&["PA 1:301 ack 1"]);
    let given = FastOpenOutcome {
        cookie: Some(cookie(7)),
        mss: 1000,
        requested: true,
        lost: false,
        refused: false,
    };
    assert_eq!(outcome(&mut peer), Some(given));
    assert_eq!(outcome(&mut peer), None, "once");
    let none = FastOpenInfo { syn_data_acked: false, failure: FastOpenFailure::NoCookie };
    assert_eq!(peer.info().fast_open, none);

    let mut peer = opening(&setup, cookie(7), 1000, false, 300);
    peer.expect(&["S 0:301 cookie 8"]);
    answer(&setup, &mut peer, 301, None);
    peer.expect(&["A 301:301 ack 1"]);
    assert_eq!(peer.info().fast_open, FastOpenInfo { syn_data_acked: true, ..Default::default() });
    assert_eq!(peer.info().srtt, Some(ms(100)), "the SYN was measured");
    assert_eq!(peer.info().since_data_sent, Some(ms(100)));
    assert_eq!((peer.info().unacknowledged, peer.info().cwnd), (0, 10_000), "no growth for it");
    peer.write(10).expect(&["PA 301:311 ack 1"]);
    let used =
        FastOpenOutcome { cookie: None, mss: 1000, requested: false, lost: false, refused: false };
    assert_eq!(outcome(&mut peer), Some(used));
}

/// The SYN takes what the server's segment took the last time, or the path, with the options; the rest follows with the acknowledgement.
#[test]
fn a_syn_takes_one_segment() {
    let setup = Setup::default();
    // MSS 4, SACK-permitted 4 with its padding, cookie 12.
    let mut peer = opening(&setup, cookie(1), 1000, false, 2500);
    peer.expect(&["S 0:981 cookie 8"]);
    answer(&setup, &mut peer, 981, None);
    peer.expect(&["A 981:1981 ack 1", "PA 1981:2501 ack 1"]);
    let mut peer = opening(&setup, cookie(1), 9000, false, 2500);
    peer.expect(&["S 0:1441 cookie 8"]);
    // A cookie for which there is no room among the options is not sent, nor is data.
    let long = FastOpen::new(&[3; 16]).unwrap();
    let crowded = Setup::default().timestamps().scale(3).partial(|_| {}).profile(|profile| {
        profile.user_timeout = Some(secs(30));
        profile.advertise_user_timeout = true;
    });
    let mut peer = opening(&crowded, long, 1000, false, 100);
    let sent = peer.drain().remove(0);
    assert_eq!((sent.payload.len(), sent.header.options.fast_open), (0, None));
}

/// A SYN-ACK for the SYN alone, or for a part: the rest leaves at once, as for the first time, and nothing takes it for a loss.
#[test]
fn data_that_is_not_taken_leaves_again_at_once() {
    let setup = Setup::default();
    for (ack, line) in [(1, "PA 1:301 ack 1"), (101, "PA 101:301 ack 1")] {
        let mut peer = opening(&setup, cookie(7), 1000, false, 300);
        peer.drain();
        answer(&setup, &mut peer, ack, Some(cookie(8)));
        peer.expect(&[line]);
        let info = peer.info();
        assert_eq!(info.fast_open.failure, FastOpenFailure::DataNotAcked);
        assert_eq!((info.cwnd, info.ssthresh), (10_000, u64::MAX));
        assert_eq!(info.counters.retransmitted_segments, 0);
        assert_eq!(outcome(&mut peer).unwrap().cookie, Some(cookie(8)));
        peer.recv(seg().ack(301)).silent();
        assert_eq!(peer.info().unacknowledged, 0);
    }
    // It had been taken after all: the acknowledgement comes before the data could leave again.
    let mut peer = opening(&setup, cookie(7), 1000, false, 300);
    peer.drain();
    peer.wait(100);
    let options = setup.syn_options(&peer);
    peer.recv(seg().syn().ack(1).win(0).options(options)).expect(&["A 1:1 ack 1"]);
    peer.recv(seg().ack(301).win(5000)).silent();
    assert_eq!(peer.info().unacknowledged, 0);
    peer.write(5).expect(&["PA 301:306 ack 1"]);
    // Data that never left is not acknowledged.
    let mut peer = opening(&setup, cookie(7), 1000, false, 300);
    peer.drain();
    answer(&setup, &mut peer, 302, None);
    peer.expect(&["R 302:302", "S 0:1"]).expect_state(State::SynSent);
}

/// RFC 7413 section 4.2.2: a SYN that is not answered is repeated without data and without the option. The answer may still acknowledge the data.
#[test]
fn a_lost_syn_is_repeated_without() {
    let setup = Setup::default();
    for (option, first) in
        [(cookie(7), "0 S 0:301 cookie 8"), (FastOpen::REQUEST, "0 S 0:1 cookie?")]
    {
        let mut peer = opening(&setup, option, 1000, false, 300);
        peer.run_to(3_500);
        peer.expect_timed(&[first, "1000 S 0:1", "3000 S 0:1"]);
        answer(&setup, &mut peer, 1, None);
        peer.expect(&["PA 1:301 ack 1"]);
        let lost = FastOpenOutcome {
            cookie: None,
            mss: 1000,
            requested: option.is_request(),
            lost: true,
            refused: false,
        };
        assert_eq!(outcome(&mut peer), Some(lost));
        let failure = match option.is_request() {
            true => FastOpenFailure::NoCookie,
            false => FastOpenFailure::SynRetransmitted,
        };
        assert_eq!(peer.info().fast_open.failure, failure);
    }
    let mut peer = opening(&setup, cookie(7), 1000, false, 300);
    peer.run_to(1_500).drain();
    answer(&setup, &mut peer, 301, None);
    peer.expect(&["A 301:301 ack 1"]);
    assert_eq!(peer.info().fast_open, FastOpenInfo { syn_data_acked: true, ..Default::default() });
}

/// RFC 7413 section 4.1.3.1: the negative responses. An answer that takes no data counts unless it brings another cookie, which the next SYN can use.
#[test]
fn negative_responses_are_told() {
    let setup = Setup::default();
    let told = |ack, given: Option<FastOpen>| {
        let mut peer = opening(&setup, cookie(7), 1000, false, 300);
        peer.drain();
        answer(&setup, &mut peer, ack, given);
        let outcome = outcome(&mut peer).unwrap();
        (outcome.lost, outcome.refused)
    };
    assert_eq!(told(1, None), (false, true));
    assert_eq!(told(1, Some(cookie(7))), (false, true));
    assert_eq!(told(1, Some(cookie(8))), (false, false));
    assert_eq!((told(301, None), told(100, None)), ((false, false), (false, false)));
    // Without data there is nothing to refuse.
    let mut peer = opening(&setup, cookie(7), 1000, false, 0);
    peer.expect(&["S 0:1 cookie 8"]);
    answer(&setup, &mut peer, 1, None);
    assert!(!outcome(&mut peer).unwrap().refused);
}

/// The same section: no answer at all, and errors of the network.
#[test]
fn silence_and_errors_are_negative_responses() {
    let setup = Setup::default();
    let lost = |peer: &mut Peer| outcome(peer).map(|outcome| (outcome.lost, outcome.requested));
    for option in [cookie(7), FastOpen::REQUEST] {
        let begun = || {
            let mut peer = opening(&setup, option, 1000, false, 300);
            peer.drain();
            peer
        };
        let negative = Some((true, option.is_request()));
        // Given up by the timer, and by the program after the first repetition; before, it says nothing.
        let mut peer = begun();
        peer.wait(600_000).expect_state(State::Closed);
        assert_eq!(lost(&mut peer), negative);
        let mut peer = begun();
        peer.wait(1_500).close().expect_state(State::Closed);
        assert_eq!(lost(&mut peer), negative);
        let mut peer = begun();
        peer.wait(500).close().expect_state(State::Closed);
        assert_eq!(lost(&mut peer), None);
        // An error that ends the attempt, and one that does not.
        let mut peer = begun();
        peer.connection.on_icmp(peer.now, IcmpError::PortUnreachable, Seq::new(ISS));
        assert_eq!((peer.state(), lost(&mut peer)), (State::Closed, negative));
        let mut peer = begun();
        peer.connection.on_icmp(peer.now, IcmpError::Prohibited, Seq::new(ISS));
        answer(&setup, &mut peer, 1, None);
        assert_eq!(lost(&mut peer), negative);
        // A forged one does not count against an answer that only that SYN can have.
        let mut peer = begun();
        peer.connection.on_icmp(peer.now, IcmpError::Prohibited, Seq::new(ISS));
        answer(&setup, &mut peer, 1, Some(cookie(8)));
        assert_eq!(lost(&mut peer), Some((false, option.is_request())));
        // Nor does one about the SYN without the option, whose predecessor was lost; and that was.
        let mut peer = begun();
        peer.wait(1_500);
        peer.connection.on_icmp(peer.now, IcmpError::Prohibited, Seq::new(ISS));
        answer(&setup, &mut peer, 1, None);
        assert_eq!(lost(&mut peer), negative);
        // A reset is an answer of the host.
        let mut peer = begun();
        peer.recv(seg().seq(0).rst_ack(1)).expect_state(State::Closed);
        assert_eq!(lost(&mut peer), None);
    }
    // The data was taken, though the first answer was lost.
    let mut peer = opening(&setup, cookie(7), 1000, false, 300);
    peer.wait(1_500).drain();
    answer(&setup, &mut peer, 301, None);
    assert_eq!(lost(&mut peer), Some((false, false)));
    // A SYN that has not left was not refused.
    let mut peer = opening(&setup, cookie(7), 1000, true, 0);
    peer.close();
    assert_eq!(lost(&mut peer), None);
}

/// A held SYN waits for data, for a FIN, or for somebody who reads; without a cookie there is nothing to wait for.
#[test]
fn a_held_syn_waits_for_data() {
    let setup = Setup::default();
    let mut peer = opening(&setup, cookie(7), 1000, true, 0);
    peer.run_to(60_000).silent();
    assert!(peer.connection.opening().holds_syn && peer.connection.next_timeout().is_none());
    peer.write(20).expect(&["S 0:21 cookie 8"]);
    answer(&setup, &mut peer, 21, None);
    assert_eq!(peer.info().since_data_sent, Some(ms(100)), "and not a minute");
    let mut peer = opening(&setup, cookie(7), 1000, true, 0);
    peer.silent().shutdown().expect(&["S 0:1 cookie 8"]);
    let mut peer = opening(&setup, cookie(7), 1000, true, 0);
    assert!(peer.connection.read(peer.now, &mut [0; 9]).is_err());
    peer.pump();
    peer.expect(&["S 0:1 cookie 8"]);
    opening(&setup, FastOpen::REQUEST, 0, true, 0).expect(&["S 0:1 cookie?"]);
    // An answer to data that has not left is ignored.
    let mut peer = opening(&setup, cookie(7), 1000, true, 0);
    answer(&setup, &mut peer, 1, None);
    peer.silent().expect_state(State::SynSent);
    // Given up before anything left.
    let mut peer = opening(&setup, cookie(7), 1000, true, 0);
    peer.close().silent().expect_state(State::Closed);
}

/// Written, shut down: the FIN goes with the acknowledgement of the SYN-ACK.
#[test]
fn a_fin_follows_at_once() {
    let setup = Setup::default();
    let mut peer = opening(&setup, cookie(7), 1000, false, 300);
    peer.shutdown().expect(&["S 0:301 cookie 8"]);
    answer(&setup, &mut peer, 301, None);
    peer.expect(&["FA 301:302 ack 1"]).expect_state(State::FinWait1);
    let mut peer = opening(&setup, cookie(7), 1000, false, 300);
    peer.shutdown().drain();
    answer(&setup, &mut peer, 1, None);
    peer.expect(&["FPA 1:302 ack 1"]).expect_state(State::FinWait1);
    peer.recv(seg().ack(302)).silent().expect_state(State::FinWait2);
}

/// A reset refuses the connection whether it acknowledges the data or the SYN alone; one that acknowledges more is none.
#[test]
fn a_refusal() {
    let setup = Setup::default();
    for (ack, state) in [(1, State::Closed), (301, State::Closed), (302, State::SynSent)] {
        let mut peer = opening(&setup, cookie(7), 1000, false, 300);
        peer.drain();
        peer.recv(seg().seq(0).rst_ack(ack)).silent().expect_state(state);
    }
    let mut peer = opening(&setup, cookie(7), 1000, false, 300);
    peer.connection.on_icmp(peer.now, IcmpError::PortUnreachable, Seq::new(ISS));
    assert_eq!(peer.connection.error(), Some(ConnectionError::Refused));
}

/// The SYN with its data was too big for the path: an ordinary one leaves at once, and the data in smaller segments behind it.
#[test]
fn a_syn_that_is_too_big() {
    let setup = Setup::default();
    let mut peer = opening(&setup, cookie(7), 1460, false, 1400);
    peer.expect(&["S 0:1401 cookie 8"]);
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(800), Seq::new(ISS));
    peer.pump();
    peer.expect(&["S 0:1"]);
    answer(&setup, &mut peer, 1, None);
    assert_eq!(peer.ranges(), [(1, 761)], "one segment: the SYN had to be repeated");
    let told = outcome(&mut peer).unwrap();
    assert!(!told.lost && !told.refused, "nobody dislikes the option");
    // A report that the SYN alone cannot have caused is not believed.
    let mut peer = opening(&setup, FastOpen::REQUEST, 0, false, 0);
    peer.drain();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(800), Seq::new(ISS));
    assert_eq!((peer.info().path_mtu, peer.info().counters.icmp_rejected), (1500, 1));
}

/// [MUST-10] SYNs that cross, with data in ours: whichever part the peer has kept is not sent again.
#[test]
fn syns_cross() {
    let setup = Setup::default();
    for (ack, line) in [(301, "A 301:301 ack 11"), (1, "PA 1:301 ack 11")] {
        let mut peer = opening(&setup, cookie(7), 1000, false, 300);
        peer.drain();
        let options = setup.syn_options(&peer);
        peer.recv(seg().syn().no_ack().options(options)).expect(&["SA 0:1 ack 1"]);
        peer.recv(seg().ack(ack).data(10)).wait(40).expect(&[line]);
        peer.expect_state(State::Established);
        peer.recv(seg().ack(301)).silent();
        assert_eq!(peer.info().unacknowledged, 0);
    }
}

/// A server's connection that begins with a SYN, `len` bytes in it, and a valid cookie.
fn accepted(setup: &Setup, len: usize, flags: Flags, reply: Option<FastOpen>) -> Peer {
    let (half, mut peer) = setup.half_open();
    let data: Vec<u8> = (0..len as u64).map(pattern).collect();
    let options = setup.syn_options(&peer);
    let (header, _) = peer.build(&seg().seq(0).syn().no_ack().flags(flags).options(options));
    let syn = Segment {
        header: &header,
        payload: Payload::borrowed(&data),
        segment_size: None,
        ecn: Ecn::NotEct,
    };
    let profile = Arc::new(setup.profile.clone());
    peer.connection = Connection::from_half_open(profile, &half, peer.now);
    peer.connection.begin_fast(peer.now, &syn, reply);
    peer.next = 1 + len as i64;
    peer.pump();
    peer
}

/// Section 4.2.2: the data is read and answered before the handshake is complete, within the initial window.
#[test]
fn a_server_answers_before_the_handshake_is_complete() {
    let setup = Setup::default();
    let mut peer = accepted(&setup, 300, Flags::empty(), None);
    peer.expect(&["SA 0:1 ack 301"]).expect_state(State::SynReceived);
    assert_eq!(peer.last.as_ref().unwrap().header.window, 65_535 - 300);
    peer.read(300);
    peer.write(30_000);
    let ranges = peer.ranges();
    assert_eq!((ranges.first(), ranges.last()), (Some(&(1, 1001)), Some(&(9001, 10_001))));
    peer.run_to(100);
    peer.recv(seg().ack(1));
    peer.expect_state(State::Established).silent();
    assert_eq!(peer.info().srtt, Some(ms(100)));
    assert!(peer.info().fast_open.syn_data_acked && peer.connection.opening().is_fast);
    peer.recv(seg().ack(10_001));
    assert_eq!(peer.ranges().first(), Some(&(10_001, 11_001)));
}

/// The peer's acknowledgement of data completes the handshake as well as one of the SYN.
#[test]
fn an_acknowledgement_of_data_completes_the_handshake() {
    let setup = Setup::default();
    let mut peer = accepted(&setup, 10, Flags::empty(), Some(cookie(9)));
    peer.expect(&["SA 0:1 ack 11 cookie 8"]);
    peer.write(500).expect(&["PA 1:501 ack 11"]);
    peer.shutdown().expect(&["FA 501:502 ack 11"]);
    peer.recv(seg().ack(502)).silent().expect_state(State::FinWait2);
    assert_eq!(peer.info().unacknowledged, 0);
}

/// A FIN in the SYN is not acknowledged: it comes again.
#[test]
fn a_fin_in_the_syn_comes_again() {
    let setup = Setup::default();
    let mut peer = accepted(&setup, 10, Flags::FIN, None);
    peer.expect(&["SA 0:1 ack 11"]).expect_state(State::SynReceived);
    peer.recv(seg().seq(11).fin()).expect(&["A 1:1 ack 12"]).expect_state(State::CloseWait);
}

/// The SYN-ACK is lost, and the answer with it: both leave again, the data once it is acknowledged or one segment at a time.
#[test]
fn syn_ack_and_answer_are_repeated() {
    let setup = Setup::default();
    let mut peer = accepted(&setup, 10, Flags::empty(), Some(cookie(9)));
    peer.write(2500).drain();
    peer.run_to(1_000);
    peer.expect_timed(&["1000 SA 0:1 ack 11", "1000 A 1:1001 ack 11"]);
    peer.recv(seg().ack(1001)).expect_state(State::Established);
    assert_eq!(peer.ranges(), [(1001, 2001), (2001, 2501)]);
    assert_eq!(peer.info().unacknowledged, 1500);
    peer.recv(seg().ack(2501)).silent();
    assert_eq!(peer.info().unacknowledged, 0);
}

/// Section 2.1: the network doubles a SYN with data, or the client repeats it without. The stream has its data once.
#[test]
fn a_doubled_syn_is_answered_and_not_read_again() {
    let setup = Setup::default();
    let mut peer = accepted(&setup, 300, Flags::empty(), None);
    peer.drain();
    let options = setup.syn_options(&peer);
    peer.recv(seg().seq(0).syn().no_ack().data(300).options(options)).expect(&["SA 0:1 ack 301"]);
    peer.recv(seg().seq(0).syn().no_ack().options(options)).expect(&["SA 0:1 ack 301"]);
    assert_eq!(peer.info().readable, 300);
    // Not for ever: what asks may be forged.
    for _ in 0..30 {
        peer.recv(seg().seq(0).syn().no_ack().options(options));
    }
    assert_eq!(peer.drain().len(), 8, "ten a second");
    // Another SYN, or the same once the handshake is complete, is a challenge's business (RFC 5961 section 4).
    peer.wait(500);
    peer.recv(seg().seq(301).ack(1)).drain();
    peer.expect_state(State::Established);
    assert_eq!(
        peer.info().rto,
        secs(1),
        "which of the SYN-ACKs it was is not known, but none was lost"
    );
    peer.wait(600);
    peer.recv(seg().seq(0).syn().no_ack().data(300).options(options)).expect(&["A 1:1 ack 301"]);
    peer.read(300);
    assert_eq!(peer.info().readable, 0);
}

/// Three events end a connection before the handshake is complete: a reset at RCV.NXT, too many repetitions, the application.
#[test]
fn the_end_before_the_handshake() {
    let setup = Setup::default();
    let mut peer = accepted(&setup, 300, Flags::empty(), None);
    peer.drain();
    peer.recv(seg().seq(1).rst()).expect_state(State::SynReceived);
    peer.recv(seg().seq(302).rst()).expect(&["A 1:1 ack 301"]).expect_state(State::SynReceived);
    peer.recv(seg().seq(301).rst()).silent().expect_state(State::Closed);
    assert_eq!(peer.connection.error(), Some(ConnectionError::Reset));
    // Unread data resets (RFC 9293 section 3.6.1, as in ESTABLISHED) [SHLD-3].
    let mut peer = accepted(&setup, 300, Flags::empty(), None);
    peer.drain();
    peer.close().expect(&["RA 1:1 ack 301"]).expect_state(State::Closed);
    // Read and closed: a FIN.
    let mut peer = accepted(&setup, 300, Flags::empty(), None);
    peer.drain();
    peer.read(300).close().expect(&["FA 1:2 ack 301"]);
    peer.recv(seg().seq(301).ack(2)).expect_state(State::FinWait2);
    // It is in use: no ICMP message ends it.
    let mut peer = accepted(&setup, 300, Flags::empty(), None);
    peer.connection.on_icmp(peer.now, IcmpError::PortUnreachable, Seq::new(ISS));
    peer.expect_state(State::SynReceived);
    peer.run_to(300_000).expect_state(State::Closed);
    assert_eq!(
        peer.connection.error(),
        Some(ConnectionError::Unreachable(IcmpError::PortUnreachable))
    );
}

/// The answer that left early counts for the user timeout from when it was sent, whatever completes the handshake.
#[test]
fn the_user_timeout_of_an_early_answer() {
    let setup = Setup::default().profile(|profile| profile.user_timeout = Some(secs(10)));
    let mut peer = accepted(&setup, 300, Flags::empty(), None);
    peer.read(300);
    peer.write(500).wait(100);
    peer.recv(seg().ack(1)).expect_state(State::Established);
    peer.run_to(9_000).expect_state(State::Established);
    peer.run_to(10_100).expect_state(State::Closed);
    assert_eq!(peer.connection.error(), Some(ConnectionError::TimedOut));
}

/// A SYN that is larger than the first window is taken as far as that goes.
#[test]
fn data_beyond_the_window() {
    let setup = Setup::default().receive_buffer(2048);
    let mut peer = accepted(&setup, 3000, Flags::empty(), None);
    peer.expect(&["SA 0:1 ack 2049"]);
    assert_eq!(peer.last.as_ref().unwrap().header.window, 0);
    peer.read(2048).drain();
}

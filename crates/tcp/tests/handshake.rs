//! Opening a connection (RFC 9293 sections 3.5 and 3.10.7.3, RFC 7323 sections 2 and 3, RFC 6298 section 5.7).

use crate::common;

use common::{Setup, ms, seg};
use transom_tcp::time::Duration;
use transom_tcp::{ConnectionError, IcmpError, Profile, Signal, State};
use transom_wire::{Flags, Options, Seq, Timestamps};

/// A connection as applications get it: all options on.
fn full() -> Setup {
    let mut setup = Setup { profile: Profile::classic(), ..Setup::default() };
    setup = setup.timestamps().scale(7);
    setup
}

/// RFC 9293 figure 6, with every option. [MUST-14] [SHLD-5] [MAY-3] [MUST-4]
#[test]
fn three_way_handshake_with_every_option() {
    let setup = full();
    let mut peer = setup.connecting();
    let syn = peer.last.clone().unwrap().header;
    peer.expect(&["S 0:1"]);
    assert_eq!(syn.flags, Flags::SYN);
    assert_eq!(syn.options.mss, Some(1460), "1500 - 20 - 20");
    // 6 MiB at most: 6291456 >> 7 = 49152 fits 16 bits, >> 6 does not.
    assert_eq!(syn.options.window_scale, Some(7));
    assert!(syn.options.sack_permitted);
    // RFC 7323 section 3.2: TSecr is zero where there is nothing to echo.
    assert_eq!(syn.options.timestamps, Some(Timestamps { value: 7_000, echo: 0 }));
    assert_eq!(syn.window, 65_535, "never scaled in a SYN");

    setup.accept(&mut peer);
    peer.expect(&["A 1:1 ack 1"]);
    peer.expect_state(State::Established);
    let ack = peer.last.clone().unwrap().header;
    assert_eq!(ack.options.timestamps, Some(Timestamps { value: 7_100, echo: 5_100 }));
    assert_eq!(ack.options.mss, None, "[MUST-65] only SYNs carry it");
    assert_eq!(peer.take_signals(), [Signal::Connected, Signal::Writable]);
    let info = peer.info();
    assert_eq!(info.mss, 988, "1000 less the twelve bytes of timestamps in each segment");
    assert_eq!(info.srtt, Some(ms(100)));
    assert_eq!(info.rto, ms(300), "100 + 4 × 50");
    // RFC 6928: min(10 × 988, max(2 × 988, 14600)).
    assert_eq!(info.cwnd, 9_880);
    assert_eq!(info.window_scale, Some((7, 7)));
}

/// [MUST-65] The MSS option goes into no segment but a SYN.
#[test]
fn no_mss_option_after_the_syn() {
    let mut peer = full().active();
    peer.write(3000).recv(seg().data(10)).wait(1000).shutdown();
    let sent = peer.drain();
    assert!(sent.len() >= 5);
    for out in sent {
        let Options { mss, window_scale, sack_permitted, .. } = out.header.options;
        assert_eq!((mss, window_scale, sack_permitted), (None, None, false), "{}", out.line());
    }
}

/// A peer without options gets a connection without them, and the default MSS. [MUST-15]
#[test]
fn options_the_peer_did_not_offer_are_not_used() {
    let setup = Setup { mss: None, sack: false, ..Setup::default() };
    let offered = full();
    let ours = Setup { profile: offered.profile, ..setup };
    let mut peer = ours.connecting();
    peer.wait(100).recv(seg().syn());
    peer.expect(&["S 0:1", "A 1:1 ack 1"]);
    let info = peer.info();
    assert_eq!(info.mss, 536);
    assert!(!info.sack && !info.timestamps);
    assert_eq!(info.window_scale, None);
    assert_eq!(peer.last.as_ref().unwrap().header.options, Options::default());
    // Neither scaled when received nor when sent.
    peer.recv(seg().win(1000));
    assert_eq!(peer.info().snd_wnd, 1000);
}

/// [MUST-15] IPv6: 1220.
#[test]
fn the_default_mss_of_ipv6_is_1220() {
    let mut setup = Setup::default().mss(None);
    setup.path.ip_header = 40;
    let mut peer = setup.connecting();
    assert_eq!(peer.last.as_ref().unwrap().header.options.mss, Some(1440), "1500 - 40 - 20");
    peer.recv(seg().syn());
    assert_eq!(peer.info().mss, 1220);
}

/// [MUST-16] The smaller of what the peer takes and what the path carries. [MUST-67] [SHLD-6]
#[test]
fn the_effective_mss_is_the_smaller_of_both() {
    let mut setup = Setup::default().mss(Some(1460));
    setup.path.mtu = 1400;
    let peer = setup.active();
    assert_eq!(peer.info().mss, 1360, "the path: 1400 - 40");
    let mut peer = setup.connecting();
    let announced = peer.drain()[0].header.options.mss;
    assert_eq!(announced, Some(1460), "what the interface takes, not what the path carries");
    let peer = setup.clone().mss(Some(900)).active();
    assert_eq!(peer.info().mss, 900, "the peer");
    let peer = Setup { timestamps: true, ..setup.timestamps() }.active();
    assert_eq!(peer.info().mss, 1348, "less the options: 1400 - 40 - 12");
}

/// RFC 9293 section 3.10.7.3: an acknowledgement of something else is answered with a reset and
/// changes nothing.
#[test]
fn an_unacceptable_ack_in_syn_sent_is_reset() {
    let mut peer = Setup::default().connecting();
    peer.expect(&["S 0:1"]);
    peer.recv(seg().seq(500).ack(7)).expect(&["R 7:7", "S 0:1"]);
    // The SYN is repeated only once.
    for ack in [0, -5, 2, 70_000] {
        peer.recv(seg().seq(500).ack(ack));
        peer.expect(&[&format!("R {ack}:{ack}")]);
        peer.recv(seg().seq(500).ack(ack).syn()).expect(&[&format!("R {ack}:{ack}")]);
        peer.recv(seg().seq(500).rst_ack(ack)).silent();
        peer.expect_state(State::SynSent);
    }
    // A bare reset does not acknowledge the SYN and is ignored; so is a segment with neither SYN nor RST.
    peer.recv(seg().seq(0).rst()).recv(seg().seq(5)).recv(seg().seq(5).fin()).silent();
    peer.expect_state(State::SynSent);
    peer.recv(seg().seq(0).rst_ack(1)).silent();
    peer.expect_state(State::Closed);
    assert_eq!(peer.connection.error(), Some(ConnectionError::Refused));
    assert!(peer.connection.is_finished());
}

/// The peer still has a connection between the same ports in TIME-WAIT and acknowledges that one. Our reset ends it, and the repeated SYN opens the new
/// connection at once. Nothing was lost, so the start is not cautious; but the round-trip time is not known (Karn).
#[test]
fn a_connection_in_the_way_costs_no_timeout() {
    let setup = Setup::default();
    let mut peer = setup.connecting();
    peer.expect(&["S 0:1"]);
    peer.wait(10).recv(seg().seq(500).ack(900_000)).expect(&["R 900000:900000", "S 0:1"]);
    let options = setup.syn_options(&peer);
    peer.wait(10).recv(seg().syn().options(options)).expect(&["A 1:1 ack 1"]);
    peer.expect_state(State::Established);
    let info = peer.info();
    assert_eq!((info.srtt, info.counters.timeouts), (None, 0));
    assert_eq!(info.rto, Duration::from_secs(1));
    assert!(info.cwnd > 1_000, "{}", info.cwnd);
}

/// RFC 6298 section 2.1 and 5.5: 1, 2, 4 … seconds; then three minutes at the least. [MUST-22] [MUST-23]
#[test]
fn the_syn_is_retransmitted_with_back_off_for_three_minutes() {
    let mut peer = Setup::default().connecting();
    let mut times = vec![];
    while peer.state() == State::SynSent {
        peer.next_timer();
        times.extend(peer.drain().iter().map(|out| {
            assert_eq!(out.line(), "S 0:1");
            out.at.as_millis()
        }));
        assert!(peer.millis() < 1_000_000, "never gives up");
    }
    assert_eq!(times[..7], [0, 1_000, 3_000, 7_000, 15_000, 31_000, 63_000]);
    assert!(peer.millis() >= 180_000, "gave up after {} ms", peer.millis());
    assert_eq!(peer.connection.error(), Some(ConnectionError::TimedOut));
    assert!(peer.take_signals().contains(&Signal::Trouble), "R1 was reported");
}

/// RFC 6298 section 5.7 and RFC 5681 section 3.1: after a lost SYN, three seconds and one segment.
#[test]
fn a_lost_syn_makes_the_start_cautious() {
    let setup = Setup::default();
    let mut peer = setup.connecting();
    peer.run_to(1_500);
    peer.recv(seg().syn().options(setup.syn_options(&peer)));
    peer.drain();
    let info = peer.info();
    assert_eq!(info.srtt, None, "Karn: the SYN was sent twice");
    assert_eq!(info.rto, Duration::from_secs(3));
    assert_eq!(info.cwnd, 1_000);
    peer.write(5_000).expect(&["A 1:1001 ack 1"]);
    peer.run_to(4_499).silent();
    peer.run_to(4_500).expect(&["A 1:1001 ack 1"]);
}

/// Data written before the handshake is over goes with the acknowledgement of the SYN-ACK (RFC 9293 section 3.10.7.3).
#[test]
fn queued_data_rides_on_the_ack_of_the_syn_ack() {
    let setup = Setup::default();
    let mut peer = setup.connecting();
    peer.write(1_500).expect(&["S 0:1"]);
    setup.accept(&mut peer);
    peer.expect(&["A 1:1001 ack 1", "PA 1001:1501 ack 1"]);
}

/// Data and FIN may come with the SYN-ACK; they are not lost.
#[test]
fn data_and_fin_on_the_syn_ack_are_taken() {
    let setup = Setup::default();
    let mut peer = setup.connecting();
    peer.drain();
    peer.recv(seg().seq(0).syn().bytes(b"hello").fin().options(setup.syn_options(&peer)));
    peer.expect(&["A 1:1 ack 7"]);
    peer.expect_state(State::CloseWait);
    assert_eq!(peer.read_all(), b"hello");
    assert!(peer.connection.end_of_stream());
}

/// The SYN-ACK comes again when our ACK was lost; it is answered, and nothing changes (RFC 5961 section 4).
#[test]
fn a_repeated_syn_ack_is_acknowledged_again() {
    let setup = Setup::default();
    let mut peer = setup.active();
    let options = setup.syn_options(&peer);
    peer.recv(seg().seq(0).syn().options(options)).expect(&["A 1:1 ack 1"]);
    peer.expect_state(State::Established);
}

/// Refused while our SYN is out, by ICMP: only what quotes our SYN counts.
#[test]
fn icmp_ends_an_attempt_only_if_it_quotes_the_syn() {
    let mut peer = Setup::default().connecting();
    let iss = Seq::new(common::ISS);
    peer.connection.on_icmp(peer.now, IcmpError::PortUnreachable, iss + 1);
    peer.connection.on_icmp(peer.now, IcmpError::PortUnreachable, iss - 1);
    peer.expect_state(State::SynSent);
    assert_eq!(peer.info().counters.icmp_rejected, 2);
    peer.connection.on_icmp(peer.now, IcmpError::HostUnreachable, iss);
    peer.expect_state(State::SynSent);
    assert_eq!(peer.connection.take_soft_error(), Some(IcmpError::HostUnreachable));
    peer.connection.on_icmp(peer.now, IcmpError::PortUnreachable, iss);
    peer.expect_state(State::Closed);
    assert_eq!(peer.connection.error(), Some(ConnectionError::Refused));
}

/// Closing before anything came back deletes the connection (RFC 9293 section 3.10.4).
#[test]
fn close_and_abort_in_syn_sent_send_nothing() {
    let mut peer = Setup::default().connecting();
    peer.write(10).drain();
    peer.close().silent();
    peer.expect_state(State::Closed);
    assert_eq!(peer.connection.error(), None);
    assert_eq!(peer.connection.next_timeout(), None);
    let mut peer = Setup::default().connecting();
    peer.drain();
    peer.abort().silent();
    assert_eq!(peer.connection.error(), Some(ConnectionError::Aborted));
}

/// A window scale above 14 is used as 14 (RFC 7323 section 2.3), and an MSS that would make crumbs is raised.
#[test]
fn absurd_options_are_survived() {
    let mut peer = full().scale(255).mss(Some(1)).connecting();
    peer.drain();
    let options = full().scale(255).mss(Some(1)).syn_options(&peer);
    peer.recv(seg().syn().options(options));
    peer.expect(&["A 1:1 ack 1"]);
    let info = peer.info();
    assert_eq!(info.window_scale, Some((14, 7)));
    assert_eq!(info.mss, 52, "64 less timestamps");
    peer.recv(seg().ts(5_001, 7_000).win(65_535));
    assert_eq!(
        peer.info().snd_wnd,
        65_535 << 14,
        "[MUST-1] [REC-1] windows are unsigned, and wide"
    );
}

//! What limits of an extension do to a connection, variable by variable, worked by hand; and what becomes of extensions that fail.
//!
//! Segments are 1000 bytes, the initial window is 10 of them, SRTT is 100 ms, RTTVAR 50 and RTO 300 ms at the start.

use crate::common;

use common::puppet::{Puppet, acting, asking, puppet};
use common::{Setup, ms, seg};
use std::sync::{Arc, Mutex};
use transom_tcp::extension::{
    AckKind, AttachError, Capabilities, Decider, Extension, ExtensionChoice, Fault, Interval,
    Limits, MAX_LAYERS, Value, Variable, Wake,
};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{ConnectionError, LimitedBy, Pos};

fn pos(n: u64) -> Pos {
    Pos::INITIAL + n
}

/// 4500 bytes are four segments; TCP's own window stays, and does not grow while it is not what limits the flow.
#[test]
fn cwnd_counts_in_whole_segments() {
    let mut peer = Setup::newreno().active();
    peer.attach(asking(|_, limits| limits.at_most(Value::Cwnd(4500))));
    peer.write(30_000).expect_ranges(&[(1, 1001), (1001, 2001), (2001, 3001), (3001, 4001)]);
    assert_eq!(peer.info().cwnd, 10_000);
    assert_eq!(peer.info().limited_by, LimitedBy::VirtualWindow);
    peer.wait(100).recv(seg().ack(2001)).expect_ranges(&[(4001, 5001), (5001, 6001)]);
    assert_eq!(peer.info().cwnd, 10_000);
    let ruling = peer.connection.ruling(Variable::Cwnd);
    assert_eq!((ruling.own, ruling.effective), (10_000, 4500));
}

/// More than TCP's own: TCP's own.
#[test]
fn cwnd_is_never_more_than_tcps_own() {
    let mut peer = Setup::newreno().active();
    peer.attach(asking(|_, limits| limits.exactly(Value::Cwnd(40_000))));
    assert_eq!(peer.write(30_000).ranges().len(), 10);
    assert_eq!(peer.connection.ruling(Variable::Cwnd).decided_by, Decider::SafeRange);
}

/// Less than a segment is a window of nothing; what wakes the flow again is the clock.
#[test]
fn a_window_below_one_waits_for_the_clock() {
    let mut peer = Setup::newreno().active();
    peer.attach(Box::new(Puppet {
        first: Some(Box::new(|view, limits| {
            limits.at_most(Value::Cwnd(0));
            limits.wake_at(view.now() + ms(50));
        })),
        then: Box::new(|event, view, limits| {
            assert!(event.what.contains(Wake::TIMER));
            limits.at_most(Value::Cwnd(view.mss()));
        }),
        ..puppet()
    }));
    peer.write(3000).silent();
    peer.run_to(149).silent();
    peer.run_to(150).expect_ranges(&[(1, 1001)]);
}

/// Retransmission is not held back: the oldest segment goes again after the timeout though the window is closed.
#[test]
fn a_closed_virtual_window_does_not_stop_repairs() {
    let mut peer = Setup::newreno().active();
    peer.write(2000).drain();
    peer.attach(asking(|_, limits| limits.at_most(Value::Cwnd(0))));
    peer.run_to(400).expect(&["A 1:1001 ack 1"]);
}

/// In congestion avoidance with 10 segments, 10,000 acknowledged bytes open it by one; with the count held at 1000 they do not. When it is
/// released, what was withheld is one increase, and no more.
#[test]
fn cwnd_cnt_holds_growth_back() {
    for held in [false, true] {
        let mut peer = Setup::newreno().active();
        peer.attach(asking(|view, limits| limits.at_most(Value::Ssthresh(view.cwnd()))));
        let hold = asking(move |_, limits| {
            if held {
                limits.at_most(Value::CwndCnt(1000));
            }
        });
        let id = peer.connection.attach(peer.now, hold).unwrap();
        peer.write(60_000).drain();
        for n in 1..=12 {
            peer.recv(seg().ack(1 + 1000 * n)).drain();
        }
        let expected = if held { (10_000, 10_000) } else { (11_000, 2000) };
        assert_eq!((peer.info().cwnd, peer.info().cwnd_cnt), expected);
        peer.connection.detach(peer.now, id).unwrap();
        peer.recv(seg().ack(13_001)).drain();
        let expected = if held { (11_000, 1000) } else { (11_000, 3000) };
        assert_eq!((peer.info().cwnd, peer.info().cwnd_cnt), expected);
    }
}

/// Slow start from 10 segments would add one for each acknowledged; with ssthresh at 12 it ends there.
#[test]
fn ssthresh_ends_slow_start() {
    let mut peer = Setup::newreno().active();
    peer.attach(asking(|_, limits| limits.at_most(Value::Ssthresh(12_000))));
    peer.write(60_000).drain();
    for n in 1..=5 {
        peer.recv(seg().ack(1 + 1000 * n)).drain();
    }
    // Two by slow start; the other three count towards the thirteenth. TCP's own threshold is as far away as before.
    let info = peer.info();
    assert_eq!((info.cwnd, info.cwnd_cnt, info.ssthresh), (12_000, 3000, u64::MAX));
}

/// The offered window shrinks as data arrives, and data within a promised window is taken.
#[test]
fn rcv_wnd_limits_the_peer_without_taking_back() {
    let mut peer = Setup::newreno().receive_buffer(10_000).active();
    peer.attach(asking(|_, limits| limits.at_most(Value::RcvWnd(2000))));
    assert_eq!(peer.info().rcv_wnd, 10_000);
    for n in 0..9 {
        peer.recv(seg().seq(1 + n * 1000).data(1000)).read(1000);
    }
    // 9000 of the 10,000 promised are used up: what is left of the promise, and the least that is asked for.
    assert_eq!(peer.info().rcv_wnd, 2000);
    assert_eq!(peer.info().counters.bytes_accepted, 9000);
    assert_eq!(peer.connection.ruling(Variable::RcvWnd).effective, 2000);
}

/// From an acknowledgement of ours to the first segment that echoes it: the handshake's, of 100 ms, then one that comes back after 180: 7/8·100 + 180/8.
#[test]
fn a_receiver_sees_the_round_trip_time() {
    let mut peer = Setup::default().timestamps().active();
    let seen: Arc<Mutex<Vec<_>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let note = acting(Wake::DATA, move |_, view, _| {
        let millis = |span: Duration| span.as_millis();
        let last = view.last_rcv_rtt().map(|(at, rtt)| (at.as_millis(), millis(rtt)));
        kept.lock().unwrap().push((view.rcv_rtt().map(millis), last));
    });
    peer.attach(note);
    peer.wait(100).recv(seg().data(1000));
    // The same echo says nothing more.
    peer.wait(10).recv(seg().data(1000));
    peer.wait(180).recv(seg().data(1000));
    let first = (Some(100), Some((200, 100)));
    assert_eq!(*seen.lock().unwrap(), [first, first, (Some(110), Some((390, 180)))]);
    let mut without = Setup::default().active();
    let none =
        acting(Wake::DATA, |_, view, _| assert_eq!(view.rcv_rtt().zip(view.last_rcv_rtt()), None));
    without.attach(none);
    without.wait(100).recv(seg().data(1000));
}

/// Data before the virtual RCV.NXT is answered and not taken; when the limit has gone, it is.
#[test]
fn rcv_nxt_rejects_segments() {
    let mut peer = Setup::newreno().active();
    let id = peer
        .connection
        .attach(
            peer.now,
            asking(|view, limits| limits.at_least(Value::RcvNxt(view.rcv_nxt() + 2000))),
        )
        .unwrap();
    peer.drain();
    peer.recv(seg().seq(1).data(1000)).expect(&["A 1:1 ack 1"]);
    assert_eq!(peer.connection.request_counters().segments_rejected, 1);
    assert_eq!(peer.info().readable, 0);
    peer.connection.detach(peer.now, id).unwrap();
    peer.recv(seg().seq(1).data(1000));
    assert_eq!(peer.info().readable, 1000);
}

/// Acknowledgements before the virtual SND.UNA are not believed; one at it is, with all that it acknowledges.
#[test]
fn snd_una_rejects_old_acknowledgements() {
    let mut peer = Setup::newreno().active();
    peer.write(5000).drain();
    peer.attach(asking(|_, limits| limits.at_least(Value::SndUna(pos(3001)))));
    peer.wait(100).recv(seg().ack(2001));
    assert_eq!(peer.info().snd_una, pos(1));
    peer.recv(seg().ack(3001));
    assert_eq!(peer.info().snd_una, pos(3001));
    assert_eq!(peer.connection.request_counters().acks_rejected, 1);
}

/// Acknowledgements beyond the virtual SND.NXT are not believed. It cannot be before the virtual SND.UNA.
#[test]
fn snd_nxt_rejects_new_acknowledgements() {
    let mut peer = Setup::newreno().active();
    peer.write(5000).drain();
    peer.attach(asking(|_, limits| limits.at_most(Value::SndNxt(pos(3001)))));
    peer.wait(100).recv(seg().ack(4001));
    assert_eq!(peer.info().snd_una, pos(1));
    peer.recv(seg().ack(3001));
    assert_eq!(peer.info().snd_una, pos(3001));
    assert_eq!(peer.connection.ruling(Variable::SndNxt).effective, pos(3001).get());
    peer.attach(asking(|_, limits| limits.at_least(Value::SndUna(pos(4001)))));
    assert_eq!(peer.connection.ruling(Variable::SndNxt).effective, pos(4001).get());
}

/// With one duplicate enough, fast retransmit comes with the first; with six, not with the third. Never more than cwnd holds.
#[test]
fn dupthresh_moves_fast_retransmit() {
    for (asked, used, needed) in [(1, 1, 1), (6, 6, 6), (100, 10, 10)] {
        let mut peer = Setup::newreno().active();
        peer.attach(asking(move |_, limits| limits.exactly(Value::Dupthresh(asked))));
        assert_eq!(peer.connection.ruling(Variable::Dupthresh).effective, used);
        peer.write(30_000).drain();
        peer.wait(100);
        for n in 1..=needed {
            assert_eq!(peer.info().counters.fast_recoveries, 0, "before duplicate {n} of {needed}");
            peer.recv(seg().ack(1)).drain();
        }
        assert_eq!(peer.info().counters.fast_recoveries, 1, "{needed}");
    }
}

/// SRTT is 100 ms and RTTVAR 50, so that TCP's own timeout is 300 ms: less cannot be had. After the timeout it is twice that.
#[test]
fn rto_has_a_floor() {
    for asked in [10, 150, 299] {
        let mut peer = Setup::newreno().active();
        peer.attach(asking(move |_, limits| limits.exactly(Value::Rto(ms(asked)))));
        peer.write(500);
        peer.run_to(1000);
        peer.expect_timed(&["100 PA 1:501 ack 1", "400 PA 1:501 ack 1", "1000 PA 1:501 ack 1"]);
        assert_eq!(peer.info().rto, Duration::from_millis(1200), "TCP's own");
    }
}

/// Samples that come while the timer runs do not shorten it. TCP's own expires at 400 ms. The first segment is lost, and the selective acknowledgement of the
/// second takes 60 ms: SRTT falls to 95, RTTVAR to 47.5, and TCP's own timeout to 285. A layer asks for one millisecond more then.
#[test]
fn a_smaller_estimate_does_not_shorten_a_timer_that_runs() {
    let mut peer = Setup::default().active();
    peer.attach(Box::new(Puppet {
        wakes: Wake::ACK | Wake::DUPLICATE_ACK,
        then: Box::new(|_, view, limits| limits.exactly(Value::Rto(view.rto() + ms(1)))),
        ..puppet()
    }));
    peer.write(2000).drain();
    peer.wait(60).recv(seg().ack(1).sack(&[(1001, 2001)])).drain();
    assert_eq!(peer.connection.ruling(Variable::Rto).effective, ms(286).as_nanos());
    peer.run_to(399).silent();
    peer.run_to(400).expect(&["A 1:1001 ack 1"]);
}

/// A longer one takes effect while the timer runs, from when it was started.
#[test]
fn a_longer_rto_holds_for_what_is_out_already() {
    let mut peer = Setup::newreno().active();
    peer.attach(asking(|_, _| {}));
    peer.write(500).drain();
    peer.wait(50);
    peer.attach(asking(|_, limits| limits.at_least(Value::Rto(ms(700)))));
    peer.run_to(799).silent();
    peer.run_to(800).expect(&["PA 1:501 ack 1"]);
}

/// One that never comes holds no longer than somebody asks for it: then the timer is TCP's own again, from when it was started; at once if
/// that has passed. Nor does it hold when a shorter one is asked for.
#[test]
fn an_rto_that_never_comes_goes_with_its_layer() {
    for (until, due) in [(350, 400), (10_000, 10_000)] {
        let mut peer = Setup::newreno().active();
        let forever = asking(|_, limits| limits.at_least(Value::Rto(Duration::MAX)));
        let layer = peer.connection.attach(peer.now, forever).unwrap();
        peer.write(500).drain();
        peer.run_to(until).silent();
        let now = peer.now;
        assert!(peer.connection.detach(now, layer).is_some());
        peer.pump();
        if due > until {
            peer.run_to(due - 1).silent();
        }
        peer.run_to(due).expect(&["PA 1:501 ack 1"]);
    }
    let mut peer = Setup::newreno().active();
    peer.attach(asking(|_, limits| limits.at_least(Value::Rto(Duration::MAX))));
    let layer = peer.connection.layers().next().unwrap().id;
    peer.write(500).drain();
    peer.wait(100);
    peer.attach(asking(|_, limits| limits.at_least(Value::Rto(ms(700)))));
    let now = peer.now;
    assert!(peer.connection.detach(now, layer).is_some());
    peer.run_to(799).drain();
    assert_eq!(peer.info().counters.timeouts, 0);
    peer.run_to(800);
    assert_eq!(peer.info().counters.timeouts, 1);
}

/// The connection is given up after two retransmissions; with the count at none it is not.
#[test]
fn retransmits_postpone_giving_up() {
    for held in [false, true] {
        let mut peer = Setup::newreno().profile(|profile| profile.r2 = Some(2)).active();
        if held {
            peer.attach(asking(|_, limits| limits.exactly(Value::Retransmits(0))));
        }
        peer.write(500);
        peer.run_to(20_000);
        let error = peer.connection.error();
        assert_eq!(error, (!held).then_some(ConnectionError::TimedOut));
    }
}

/// 100,000 bytes a second are a segment every ten milliseconds, one of slack at the start.
#[test]
fn pacing_keeps_a_rate() {
    let mut peer = Setup::newreno().active();
    peer.attach(asking(|_, limits| limits.at_most(Value::PacingRate(100_000))));
    peer.write(10_000);
    peer.run_to(300);
    peer.expect_timed(&[
        "100 A 1:1001 ack 1",
        "109 A 1001:2001 ack 1",
        "119 A 2001:3001 ack 1",
        "129 A 3001:4001 ack 1",
        "139 A 4001:5001 ack 1",
        "149 A 5001:6001 ack 1",
        "159 A 6001:7001 ack 1",
        "169 A 7001:8001 ack 1",
        "179 A 8001:9001 ack 1",
        "189 PA 9001:10001 ack 1",
    ]);
}

/// What wakes, and when: a transmission, an acknowledgement that ends a round, a duplicate, a loss, a timeout, data of the peer.
#[test]
fn events_wake_those_that_wait() {
    let mut peer = Setup::newreno().active();
    let seen: Arc<Mutex<Vec<(u64, Wake)>>> = Arc::default();
    let extension = Puppet { wakes: Wake::all() - Wake::SEND, seen: Arc::clone(&seen), ..puppet() };
    peer.attach(Box::new(extension));
    let sends: Arc<Mutex<Vec<(u64, Wake)>>> = Arc::default();
    let extension = Puppet { wakes: Wake::SEND, seen: Arc::clone(&sends), ..puppet() };
    peer.attach(Box::new(extension));
    peer.write(5000).drain();
    assert_eq!(sends.lock().unwrap().len(), 5);
    peer.wait(100).recv(seg().ack(1001));
    for _ in 0..3 {
        peer.recv(seg().ack(1001));
    }
    peer.drain();
    peer.wait(2000).drain();
    peer.recv(seg().ack(1001).data(10));
    // Behind a hole, and into it; what arrives again is not new.
    peer.recv(seg().seq(21).ack(1001).data(10));
    peer.recv(seg().seq(21).ack(1001).data(10));
    peer.recv(seg().seq(11).ack(1001).data(10));
    let dup = Wake::DUPLICATE_ACK;
    let mut seen = seen.lock().unwrap().clone();
    let timeouts = seen.iter().filter(|(_, what)| what.contains(Wake::TIMEOUT)).count();
    assert_eq!(timeouts as u64, peer.info().counters.timeouts);
    assert!(timeouts > 0);
    seen.retain(|(_, what)| !what.contains(Wake::TIMEOUT));
    let at = 200;
    assert_eq!(
        seen,
        [
            (at, Wake::ACK | Wake::ROUND),
            (at, dup),
            (at, dup),
            (at, dup | Wake::LOSS),
            (at + 2000, Wake::DATA),
            (at + 2000, Wake::DATA),
            (at + 2000, Wake::DATA),
        ]
    );
}

/// The message list and the ack list.
#[test]
fn the_lists_say_what_happened() {
    let mut peer = Setup::default().active();
    let seen = Arc::new(Mutex::new(vec![]));
    let into = Arc::clone(&seen);
    let extension =
        Puppet { requires: Capabilities::ACK_LIST | Capabilities::MESSAGE_LIST, ..puppet() };
    peer.attach(Box::new(Puppet {
        wakes: Wake::ACK | Wake::DUPLICATE_ACK,
        then: Box::new(move |_, view, _| {
            let waiting: Vec<_> = view.messages().map(|message| message.sacked).collect();
            let past: Vec<_> = view.past_messages().map(|message| message.rtt()).collect();
            let acks: Vec<_> = view.acks().map(|ack| ack.kind).collect();
            let mut last: Vec<_> = view.last_acks(9).map(|ack| ack.kind).collect();
            assert_eq!(view.last_acks(1).next(), view.acks().next());
            last.reverse();
            assert_eq!(last, acks);
            into.lock().unwrap().push((waiting, past, acks));
        }),
        ..extension
    }));
    peer.write(3000).drain();
    peer.wait(100).recv(seg().ack(1001));
    peer.wait(5).recv(seg().ack(1001).sack(&[(2001, 3001)]));
    // The peer reports that it got the first segment twice.
    peer.recv(seg().ack(1001).sack(&[(1, 1001)]));
    let seen = seen.lock().unwrap();
    let first = vec![Some(ms(100))];
    let same_window = AckKind::NEW_DATA;
    assert_eq!(seen[0], (vec![false, false], first.clone(), vec![same_window]));
    let second = AckKind::SACK | AckKind::DUPLICATE;
    assert_eq!(seen[1], (vec![false, true], first.clone(), vec![second, same_window]));
    assert_eq!(seen[2].2[0], AckKind::DSACK);
}

/// Layers do not see what another asks for in answer to the same event, in whatever order they are woken.
#[test]
fn all_layers_see_the_same() {
    let mut peer = Setup::newreno().active();
    let seen = Arc::new(Mutex::new(vec![]));
    for most in [5000, 7000] {
        let into = Arc::clone(&seen);
        peer.attach(acting(Wake::ACK, move |_, view, limits| {
            into.lock().unwrap().push(view.ruling(Variable::Cwnd).effective);
            limits.at_most(Value::Cwnd(most));
        }));
    }
    peer.write(3000).drain();
    peer.wait(100).recv(seg().ack(1001));
    peer.recv(seg().ack(2001));
    assert_eq!(*seen.lock().unwrap(), [10_000, 10_000, 5000, 5000]);
}

/// An extension that fails is detached with its limits, the others stay, and its departure is reported.
#[test]
fn a_layer_that_fails_is_detached() {
    let mut peer = Setup::newreno().active();
    peer.attach(acting(Wake::ACK, |_, _, limits| {
        limits.at_most(Value::Cwnd(1000));
        limits.between(Value::Dupthresh(5), Value::Dupthresh(2));
    }));
    peer.attach(asking(|_, limits| limits.at_most(Value::Cwnd(5000))));
    peer.write(30_000).drain();
    peer.wait(100).recv(seg().ack(1001)).expect_ranges(&[(5001, 6001)]);
    let departure = peer.connection.poll_departure().unwrap();
    assert_eq!(departure.reason, Fault::Nonsense(Variable::Dupthresh).into());
    assert_eq!(departure.name, "puppet");
    assert_eq!(peer.connection.poll_departure(), None);
    assert_eq!(peer.connection.layers().count(), 1);
}

/// An extension that lacks something, and one too many, are refused with the reason.
#[test]
fn extensions_that_cannot_be_attached_are_refused() {
    let mut peer = Setup::newreno().connecting();
    let refused = peer.connection.attach(peer.now, asking(|_, _| {}));
    assert_eq!(refused, Err(AttachError::NotEstablished));
    let mut peer = Setup::newreno().active();
    let wants = Puppet { requires: Capabilities::SACK | Capabilities::ACK_LIST, ..puppet() };
    let refused = peer.connection.attach(peer.now, Box::new(wants));
    assert_eq!(refused, Err(AttachError::Lacks(Capabilities::SACK)));
    let broken = asking(|_, limits| limits.fail(Fault::Panicked));
    let refused = peer.connection.attach(peer.now, broken);
    assert_eq!(refused, Err(AttachError::Failed(Fault::Panicked)));
    for _ in 0..MAX_LAYERS {
        peer.attach(asking(|_, _| {}));
    }
    let refused = peer.connection.attach(peer.now, asking(|_, _| {}));
    assert_eq!(refused, Err(AttachError::TooMany));
}

/// A profile's extensions are there as soon as the handshake is complete, at either end. Those that cannot be attached are reported.
#[test]
fn a_profile_brings_its_extensions() {
    let narrow = || asking(|view, limits| limits.at_most(Value::Cwnd(2 * view.mss())));
    let wants = || -> Box<dyn Extension> {
        Box::new(Puppet { requires: Capabilities::TIMESTAMPS, ..puppet() })
    };
    let setup = Setup::default().profile(|profile| {
        profile.extensions =
            vec![ExtensionChoice::new("narrow", narrow), ExtensionChoice::new("wants", wants)];
    });
    for mut peer in [setup.active(), setup.passive()] {
        assert_eq!(peer.write(30_000).ranges().len(), 2);
        let departure = peer.connection.poll_departure().unwrap();
        assert_eq!((departure.layer, departure.name.as_str()), (None, "wants"));
        assert_eq!(departure.reason, AttachError::Lacks(Capabilities::TIMESTAMPS).into());
    }
}

/// A connection that is gone wakes nobody, also not by the clock.
#[test]
fn a_closed_connection_wakes_nobody() {
    let mut peer = Setup::newreno().active();
    let seen: Arc<Mutex<Vec<(u64, Wake)>>> = Arc::default();
    let waits = Puppet {
        wakes: Wake::all(),
        first: Some(Box::new(|view, limits| limits.wake_at(view.now() + ms(5000)))),
        seen: Arc::clone(&seen),
        ..puppet()
    };
    peer.attach(Box::new(waits));
    assert_eq!(peer.connection.next_timeout(), Some(peer.now + ms(5000)));
    peer.recv(seg().seq(1).rst());
    assert_eq!(peer.connection.error(), Some(ConnectionError::Reset));
    assert_eq!(peer.connection.next_timeout(), None);
    peer.run_to(10_000);
    assert_eq!(seen.lock().unwrap().len(), 0);
}

/// A conflict leaves TCP's own value, and is counted once for as long as it lasts.
#[test]
fn a_conflict_is_recorded() {
    let mut peer = Setup::newreno().active();
    peer.attach(asking(|_, limits| limits.at_most(Value::Cwnd(2000))));
    let id = peer
        .connection
        .attach(peer.now, asking(|_, limits| limits.at_least(Value::Cwnd(3000))))
        .unwrap();
    assert_eq!(peer.write(30_000).ranges().len(), 10);
    let ruling = peer.connection.ruling(Variable::Cwnd);
    assert!(ruling.conflict && ruling.effective == 10_000);
    assert_eq!(peer.connection.request_counters().conflicts[Variable::Cwnd as usize], 1);
    peer.connection.detach(peer.now, id);
    assert_eq!(peer.connection.ruling(Variable::Cwnd).requested, Some(Interval::at_most(2000)));
    assert_eq!(peer.now, Instant::ZERO + ms(100));
}

/// Limits that are replaced as a whole hold like those that are changed one by one, in either direction.
#[test]
fn limits_may_be_replaced_as_a_whole() {
    let mut peer = Setup::default().active();
    let mut saved: Option<Limits> = None;
    let layer = Puppet {
        wakes: Wake::ACK,
        first: Some(Box::new(|_, limits| limits.at_most(Value::Cwnd(3000)))),
        then: Box::new(move |_, _, limits| match saved.take() {
            None => saved = Some(std::mem::take(limits)),
            Some(before) => *limits = before,
        }),
        ..puppet()
    };
    peer.connection.attach(peer.now, Box::new(layer)).unwrap();
    peer.write(100_000).drain();
    assert_eq!(peer.connection.ruling(Variable::Cwnd).effective, 3000);
    peer.wait(100).recv(seg().ack(1001)).drain();
    let ruling = peer.connection.ruling(Variable::Cwnd);
    assert_eq!((ruling.effective, ruling.requested), (ruling.own, None), "taken back");
    peer.wait(100).recv(seg().ack(2001)).drain();
    assert_eq!(peer.connection.ruling(Variable::Cwnd).effective, 3000, "and asked for again");
}

/// The timeout in use is in the information that a layer sees, though no layer is in its place while it looks.
#[test]
fn the_timeout_in_use_is_seen_from_within() {
    let mut peer = Setup::default().active();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = seen.clone();
    let layer = Puppet {
        wakes: Wake::ACK,
        first: Some(Box::new(|_, limits| limits.exactly(Value::Rto(ms(5000))))),
        then: Box::new(move |_, view, _| notes.lock().unwrap().push(view.info().effective_rto)),
        ..puppet()
    };
    peer.connection.attach(peer.now, Box::new(layer)).unwrap();
    peer.write(1000).drain();
    peer.wait(100).recv(seg().ack(1001)).drain();
    assert_eq!(*seen.lock().unwrap(), [ms(5000)]);
    assert_eq!(peer.info().effective_rto, ms(5000));
    assert!(peer.info().rto < ms(5000), "TCP's own");
}

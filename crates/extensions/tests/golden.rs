//! Extensions on real connections, worked by hand from their papers.
//!
//! Segments are 1000 bytes, the initial window is 10 of them, the handshake takes 100 ms.

use crate::common::world::Random;
use crate::common::{Peer, Setup, ms, seg};
use crate::rounds::round;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use transom_extensions::{Budget, Guarded, stack};
use transom_tcp::State;
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::extension::{
    DepartureReason, Extension, Fault, Limits, Occasion, Value, Variable, View, Wake,
};

fn attach(peer: &mut Peer, text: &str) {
    for choice in stack(text).unwrap() {
        peer.attach(choice.extension());
    }
}

/// A queue of half a round trip from the third round on, until the fifth, and none afterwards:
/// 1. The first acknowledgement ends a round, and doubling pauses. 2. It goes on: 20. 3. A pause; the least sample is still the old one.
/// 4. 20·50/150 = 6.7 segments in queues: slow start is over. 5. and 6. More than four: one less. 7. and 8. None: one more.
const ROUNDS: [(u64, u64); 8] =
    [(100, 10), (100, 20), (150, 20), (150, 20), (150, 19), (150, 18), (100, 19), (100, 20)];

#[test]
fn vegas_by_hand() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "vegas(poll=ack)");
    peer.write(250_000).drain();
    let windows = ROUNDS.map(|(rtt, _)| round(&mut peer, rtt));
    assert_eq!(windows, ROUNDS.map(|(_, window)| window));
    assert!(peer.info().cwnd > 20_000, "TCP's own window is its own");
}

/// The native one does the same, round by round.
#[test]
fn native_vegas_does_the_same() {
    let vegas = compose("vegas").unwrap().congestion;
    let mut peer = Setup::default().profile(|profile| profile.congestion = vegas).active();
    peer.write(250_000).drain();
    let windows = ROUNDS.map(|(rtt, _)| round(&mut peer, rtt));
    assert_eq!(windows, ROUNDS.map(|(_, window)| window));
}

/// Looking once each round decides the same from the end of slow start on: there the window changes at the round's end only.
#[test]
fn vegas_decides_once_each_round_however_often_it_looks() {
    let windows = ["round", "ack", "send"].map(|poll| {
        let mut peer = Setup::default().active();
        // Slow start is over at once.
        attach(
            &mut peer,
            &format!("vegas(poll={poll}, gamma=0) + limited-slow-start(max-ssthresh=2)"),
        );
        peer.write(250_000).drain();
        for _ in 0..4 {
            round(&mut peer, 150);
        }
        [150, 150, 100, 100, 130, 130, 130].map(|rtt| round(&mut peer, rtt))
    });
    assert_eq!(windows[0], windows[1]);
    assert_eq!(windows[1], windows[2]);
}

/// TCP halves its window for a loss, and Vegas's is no wider than that.
#[test]
fn vegas_follows_a_reduction() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "vegas(poll=ack)");
    peer.write(250_000).drain();
    round(&mut peer, 100);
    round(&mut peer, 100);
    peer.wait(100);
    let una = peer.acked();
    for n in 1..=3 {
        peer.recv(seg().ack(una).sack(&[(una + 1000, una + 1000 + 1000 * n)])).drain();
    }
    assert_eq!(peer.info().counters.fast_recoveries, 1);
    let ruling = peer.connection.ruling(Variable::Cwnd);
    assert!(
        ruling.effective <= peer.info().cwnd
            && ruling.effective == ruling.own.min(ruling.effective)
    );
    assert!(ruling.requested.unwrap().high() <= ruling.own);
}

/// minRTT is 100, maxRTT 150: late is what takes more than 105 ms. 3. In the first late round only its first acknowledgement has been judged, one
/// of twenty packets. 4. to 7. Then all of them are late: 20, 10, 5 and 2.5 segments are halved, and what is used are whole ones. 8. One
/// of the last two and one that travelled alone, which shows nothing: no more than half. Fewer than two segments in queues: one more.
const NICE: [(u64, u64); 8] =
    [(100, 10), (100, 20), (150, 20), (150, 10), (150, 5), (150, 2), (150, 1), (150, 2)];

#[test]
fn nice_by_hand() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "nice(poll=ack)");
    peer.write(250_000).drain();
    let windows = NICE.map(|(rtt, _)| round(&mut peer, rtt));
    assert_eq!(windows, NICE.map(|(_, window)| window));
}

/// The native one does the same, round by round.
#[test]
fn native_nice_does_the_same() {
    let nice = compose("nice").unwrap().congestion;
    let mut peer = Setup::default().profile(|profile| profile.congestion = nice).active();
    peer.write(250_000).drain();
    let windows = NICE.map(|(rtt, _)| round(&mut peer, rtt));
    assert_eq!(windows, NICE.map(|(_, window)| window));
}

/// All delays of `NICE` are within the noise: the windows are those of a path without delays, as the extension and as the native controller.
#[test]
fn delays_within_the_noise_change_nothing() {
    let windows = |text: &str, native: bool, rtts: [u64; 8]| {
        let native = native.then(|| compose(text).unwrap().congestion);
        let is_native = native.is_some();
        let setup = Setup::default().profile(|profile| {
            profile.congestion = native.unwrap_or_else(|| profile.congestion.clone());
        });
        let mut peer = setup.active();
        if !is_native {
            attach(&mut peer, &format!("{}, poll=ack)", text.trim_end_matches(')')));
        }
        peer.write(250_000).drain();
        rtts.map(|rtt| round(&mut peer, rtt))
    };
    for native in [false, true] {
        let still = windows("nice(alpha=2)", native, [100; 8]);
        assert_eq!(windows("nice(noise=60ms)", native, NICE.map(|(rtt, _)| rtt)), still);
        assert!(still[7] > 20, "{still:?}");
    }
}

/// After every acknowledgement of so many rounds, each of a round-trip time that is drawn: the window in use, and what left.
fn each_acknowledgement(peer: &mut Peer, seed: u64, rounds: u32) -> Vec<(u64, Vec<(i64, i64)>)> {
    let mut random = Random::new(seed);
    let mut trace = vec![];
    for _ in 0..rounds {
        let segments = peer.info().in_flight / 1000;
        // Room for what is sent next.
        let room = peer.connection.writable().unwrap();
        peer.write(room).drain();
        // Mostly a short queue, at times a longer one or none; no timeout.
        let longest = [3, 10, 10, 60][random.below(4) as usize];
        peer.wait(100 + random.below(longest));
        let first = peer.acked();
        for n in 1..=segments as i64 {
            peer.recv(seg().ack(first + 1000 * n));
            let left = peer.ranges();
            trace.push((peer.connection.ruling(Variable::Cwnd).effective, left));
        }
    }
    trace
}

/// Native and as extensions, over two hundred rounds with queues of any length: the same window after each acknowledgement, and the same segments.
///
/// Nice as far as its window is two segments at least. Below, a native controller paces, and an extension closes the window and opens it again
/// (`nice_goes_below_one`). Losses and timeouts are in `golden_native`.
#[test]
fn native_controllers_do_the_same_acknowledgement_by_acknowledgement() {
    for (name, enough) in [("vegas", 30_000), ("nice", 5000)] {
        let mut compared = 0;
        for seed in 0..20 {
            let mut extension = Setup::default().active();
            attach(&mut extension, &format!("{name}(poll=ack)"));
            let native = compose(name).unwrap().congestion;
            let mut native =
                Setup::default().profile(|profile| profile.congestion = native).active();
            let [one, other] =
                [&mut extension, &mut native].map(|peer| each_acknowledgement(peer, seed, 200));
            let wide = |&(window, _): &&(u64, _)| name == "vegas" || *window >= 2000;
            let wide = one.iter().take_while(wide).count();
            for at in 0..wide {
                assert_eq!(one[at], other[at], "{name}, seed {seed}, acknowledgement {at}");
            }
            compared += wide;
        }
        assert!(compared > enough, "{name}: {compared}");
    }
}

/// A window of 1/n is one segment for a round trip and none for n − 1: with every pair of segments late, the rests between them grow to
/// 47 smoothed round trips, and no further.
#[test]
fn nice_goes_below_one() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "nice(poll=ack)");
    peer.write(250_000).drain();
    // What is out is acknowledged, and what that lets out is the first of what is late.
    round(&mut peer, 100);
    peer.recv(seg().ack(peer.info().snd_nxt.stream_offset() as i64 + 1)).drain();
    let (mut longest, mut last) = (0, peer.now);
    let mut on_the_way = VecDeque::new();
    let mut sent = 0;
    for _ in 0..60_000 {
        peer.wait(1);
        while on_the_way.front().is_some_and(|&(due, _)| due <= peer.now) {
            let (_, ack) = on_the_way.pop_front().unwrap();
            peer.recv(seg().ack(ack));
        }
        for out in peer.drain() {
            // Since it last sent, less the round trip of that, in smoothed round trips.
            let srtt = peer.info().srtt.unwrap();
            let rested = peer.now.since(last).as_nanos().saturating_sub(150_000_000);
            longest = longest.max(rested / srtt.as_nanos());
            last = peer.now;
            sent += 1;
            on_the_way.push_back((peer.now + ms(150), out.end()));
        }
    }
    assert!(sent < 200, "{sent} segments in 400 round trips, most of them at the beginning");
    assert_eq!(longest, 47);
}

/// RFC 3742: with max_ssthresh = 8 segments and a window of 10, K = int(10/4) = 2: half a segment for each that is acknowledged, until with 12 segments K is 3.
#[test]
fn limited_slow_start_by_hand() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "limited-slow-start(max-ssthresh=8)");
    peer.write(250_000).drain();
    peer.wait(100);
    let mut windows = vec![];
    for n in 1..=10 {
        peer.recv(seg().ack(1 + 1000 * n)).drain();
        windows.push(peer.connection.ruling(Variable::Cwnd).effective);
    }
    assert_eq!(
        windows,
        [10_500, 11_000, 11_500, 12_000, 12_333, 12_666, 12_999, 13_332, 13_665, 13_998]
    );
    assert_eq!(peer.info().cwnd, 20_000);
}

/// With two segments out, one duplicate is all that can come: it is enough. Without the extension a timeout repairs the loss.
#[test]
fn efr_repairs_a_small_window() {
    for extended in [false, true] {
        let mut peer = Setup::newreno().active();
        if extended {
            attach(&mut peer, "efr");
        }
        peer.write(2000).drain();
        peer.wait(100).recv(seg().ack(1));
        let expected: &[&str] = if extended { &["A 1:1001 ack 1"] } else { &[] };
        peer.expect(expected);
    }
}

/// The first segment comes after five later ones: a DSACK says that sending it again was for nothing. Six duplicates are one more
/// than that reordering brought; after a timeout it is three again.
#[test]
fn rr_learns_the_length_of_a_reordering() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "rr");
    peer.write(10_000).drain();
    peer.wait(100);
    for n in 1..=5 {
        peer.recv(seg().ack(1).sack(&[(1001, 1001 + 1000 * n)])).drain();
    }
    assert_eq!(peer.info().counters.fast_recoveries, 1, "for nothing");
    peer.recv(seg().ack(6001)).drain();
    peer.recv(seg().ack(6001).sack(&[(1, 1001)])).drain();
    let ruling = peer.connection.ruling(Variable::Dupthresh);
    let most = peer.info().cwnd * 9 / 10 / 1000;
    assert_eq!(ruling.effective, 6.min(most.max(3)), "window {}", peer.info().cwnd);
    peer.run_to(10_000);
    assert!(peer.info().counters.timeouts > 0);
    assert_eq!(peer.connection.ruling(Variable::Dupthresh).effective, 3);
}

#[test]
fn a_rate_cap_spaces_what_leaves() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "rate-cap(rate=100kB)");
    peer.write(10_000);
    peer.run_to(150);
    let times: Vec<_> = peer.drain().iter().map(|out| out.at.as_millis()).collect();
    assert_eq!(times, [100, 109, 119, 129, 139, 149]);
}

/// Two that narrow the same variable: the narrower counts.
#[test]
fn extensions_stack() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "vegas(poll=ack) + limited-slow-start(max-ssthresh=8) + rr + efr");
    peer.write(250_000).drain();
    round(&mut peer, 100);
    let used = round(&mut peer, 100);
    // Vegas alone has 20 then (above), Limited Slow-Start 13 and what the second round adds to it.
    assert!((13..20).contains(&used), "{used}");
}

#[derive(Debug)]
struct Panics;

impl Extension for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn wake_on(&self) -> Wake {
        Wake::ACK
    }

    fn on_wake(&mut self, _occasion: &Occasion, _view: &View<'_>, limits: &mut Limits) {
        limits.at_most(Value::Cwnd(0));
        panic!("on purpose");
    }
}

#[derive(Debug)]
struct Dawdles(Mutex<u32>);

impl Extension for Dawdles {
    fn name(&self) -> &str {
        "dawdles"
    }

    fn wake_on(&self) -> Wake {
        Wake::ACK
    }

    fn on_wake(&mut self, _occasion: &Occasion, _view: &View<'_>, _limits: &mut Limits) {
        *self.0.lock().unwrap() += 1;
        std::thread::sleep(std::time::Duration::from_millis(3));
    }
}

/// It is gone with its limits, the flow goes on, and who asks is told why.
#[test]
fn a_panic_detaches_the_layer() {
    let mut peer = Setup::default().active();
    peer.connection
        .attach(peer.now, Box::new(Guarded::against_panics(|| Box::new(Panics))))
        .unwrap();
    peer.write(250_000).drain();
    peer.wait(100).recv(seg().ack(1001)).drain();
    assert_eq!(peer.connection.poll_departure().unwrap().reason, Fault::Panicked.into());
    assert_eq!(peer.connection.ruling(Variable::Cwnd).requested, None);
    assert_eq!(peer.info().in_flight, peer.info().cwnd);
}

/// Three calls in a row that take too long are too many.
#[test]
fn an_extension_that_dawdles_is_detached() {
    let mut peer = Setup::default().active();
    let mut budget = Budget::default();
    budget.allowed = ms(1);
    let slow = Guarded::by_the_clock(|| Box::new(Dawdles(Mutex::new(0))), Arc::new(budget));
    peer.connection.attach(peer.now, Box::new(slow)).unwrap();
    peer.write(250_000).drain();
    for n in 1..=3 {
        assert_eq!(peer.connection.poll_departure(), None);
        peer.recv(seg().ack(1 + 1000 * n)).drain();
    }
    let reason = peer.connection.poll_departure().unwrap().reason;
    let DepartureReason::Fault(Fault::Overran { allowed, took }) = reason else {
        panic!("{reason}");
    };
    assert!(allowed == ms(1) && took > allowed);
}

/// 2^62 segments of 1000 bytes are more than can be counted: it asks for the most that can, and has TCP's own.
#[test]
fn greedy_asks_for_more_than_can_be_counted() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "greedy(cwnd=4611686018427387904)");
    let ruling = peer.connection.ruling(Variable::Cwnd);
    assert_eq!((ruling.requested.unwrap().high(), ruling.effective), (u64::MAX, 10_000));
}

/// Half of the variables are left alone at each event, and what is asked of the others is asked of every one of them sooner or later; the same seed
/// asks the same. Whatever it is, what is used stays within the safe range.
#[test]
fn scramble_asks_anything_and_gets_what_is_safe() {
    let requests = |text: &str| {
        let mut peer = Setup::default().active();
        attach(&mut peer, text);
        peer.write(250_000).drain();
        let mut asked = Vec::new();
        for _ in 0..300 {
            peer.wait(100);
            if peer.info().state == State::Closed {
                break; // What it asks of `retransmits` may have it given up.
            }
            let next = peer.info().snd_nxt.stream_offset() as i64 + 1;
            let wakes = peer.connection.request_counters().wakes;
            peer.recv(seg().ack((peer.acked() + 1000).min(next))).drain();
            if peer.connection.request_counters().wakes == wakes {
                continue; // It was not asked anew.
            }
            for variable in Variable::ALL {
                let ruling = peer.connection.ruling(variable);
                let bare = ruling.effective == ruling.own;
                assert!(bare || ruling.safe.contains(ruling.effective), "{variable}: {ruling:?}");
                asked.push((variable, ruling.requested));
            }
        }
        asked
    };
    let asked = requests("scramble(seed=1)");
    assert_eq!(asked, requests("scramble(seed=1)"));
    assert_ne!(asked, requests("scramble(seed=2)"));
    // What one seed asks often ends its connection soon.
    let asked: Vec<_> =
        (1..=100).flat_map(|seed| requests(&format!("scramble(seed={seed})"))).collect();
    for variable in Variable::ALL {
        let of_it: Vec<_> = asked.iter().filter(|(other, _)| *other == variable).collect();
        let some = of_it.iter().filter(|(_, requested)| requested.is_some()).count();
        // Draws of one half: with a hundred of them the deviation is a twentieth.
        let draws = of_it.len();
        assert!(draws >= 100 && some > draws / 4 && some < draws * 3 / 4, "{some} of {draws}");
    }
}

/// With `outside` it asks for what is outside of the safe ranges and no further outside than it is told; so TCP's own is used, or the lower end of the range of dupthresh and the timeout. What a variable
/// is multiplied by stays for so many round trips, and then something else is drawn.
#[test]
fn scramble_stays_outside_as_far_as_it_is_told() {
    let mut asked_of = [0; Variable::ALL.len()];
    let mut draws = 0;
    for seed in 0..100 {
        let mut peer = Setup::default().active();
        attach(&mut peer, &format!("scramble(outside=3, hold=4, seed={seed})"));
        peer.write(250_000).drain();
        let mut drawn = None;
        for _ in 0..40 {
            peer.wait(100);
            let sent = peer.info().snd_nxt;
            let next = (peer.acked() + 1000).min(sent.stream_offset() as i64 + 1);
            peer.recv(seg().ack(next)).drain();
            let rulings = Variable::ALL.map(|variable| peer.connection.ruling(variable));
            let now: Vec<_> = rulings.iter().map(|ruling| ruling.requested.is_some()).collect();
            draws += usize::from(drawn.as_ref() != Some(&now));
            drawn = Some(now);
            for (index, ruling) in rulings.iter().enumerate() {
                let Some(requested) = ruling.requested else { continue };
                let (own, asked) = (u128::from(ruling.own), u128::from(requested.low()));
                assert_eq!(requested.low(), requested.high());
                let (near, used) = match Variable::ALL[index] {
                    Variable::RcvNxt | Variable::SndUna => {
                        ((1000..=3000).contains(&(own - asked)), ruling.own)
                    }
                    // What was let leave left after it was asked.
                    Variable::SndNxt => (
                        (1000..=3000).contains(&(asked - u128::from(sent.get()))),
                        ruling.effective,
                    ),
                    Variable::Dupthresh => (asked == 0, 1),
                    Variable::Rto => {
                        let least = u128::from(ruling.safe.low());
                        (asked >= least / 3 && asked <= least, ruling.safe.low())
                    }
                    // There is no pacing, and TCP's own has no limit: a window in each round trip.
                    Variable::PacingRate => {
                        let info = peer.info();
                        let round = u128::from(info.srtt.unwrap().as_nanos());
                        let rate = u128::from(info.cwnd) * 1_000_000_000 / round;
                        (asked >= rate && asked <= 3 * rate, ruling.effective)
                    }
                    _ => (asked >= own && asked <= 3 * own, ruling.own),
                };
                assert!(near && ruling.effective == used, "{}: {ruling:?}", Variable::ALL[index]);
                asked_of[index] += 1;
            }
        }
    }
    let never = Variable::ALL.into_iter().zip(asked_of).filter(|(_, times)| *times == 0);
    let never: Vec<_> = never.map(|(variable, _)| variable).collect();
    assert_eq!(never, [Variable::Retransmits]);
    // 100 connections with 40 acknowledgements each, of which one in four at most is a hold later than the last draw.
    assert!((200..=1100).contains(&draws), "{draws}");
}

//! Extensions that are congestion controls, on real connections, worked by hand from their sources' equations.
//!
//! Segments are 1000 bytes, the initial window is 10 of them, the handshake takes 100 ms.

use crate::common::world::{self, Path, lossy};
use crate::common::{Peer, Setup, seg};
use transom_extensions::stack;
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::congestion::CongestionChoice;
use transom_tcp::extension::{Decider, Variable};
use transom_tcp::{
    Counting, EcnChoice, EcnConfig, Phase, Profile, RecoveryChoice, ReductionChoice,
    ValidationChoice,
};
use transom_wire::Flags;

fn attach(peer: &mut Peer, text: &str) {
    for choice in stack(text).unwrap() {
        peer.attach(choice.extension());
    }
}

fn sent(peer: &Peer) -> i64 {
    peer.info().snd_nxt.stream_offset() as i64 + 1
}

/// The window that is asked for, and the one that is used.
fn windows(peer: &Peer) -> (u64, u64) {
    let ruling = peer.connection.ruling(Variable::Cwnd);
    (ruling.requested.unwrap().high(), ruling.effective)
}

/// After so many milliseconds all that is outstanding is acknowledged at once.
fn answer(peer: &mut Peer, rtt: u64) {
    peer.wait(rtt);
    peer.recv(seg().ack(sent(peer))).drain();
}

/// The same. Returns the window that is asked for.
fn round(peer: &mut Peer, rtt: u64) -> u64 {
    answer(peer, rtt);
    windows(peer).0
}

/// After so many milliseconds all that is outstanding is acknowledged segment by segment.
fn each(peer: &mut Peer, rtt: u64) {
    peer.wait(rtt);
    for ack in (peer.acked() + 1000..=sent(peer)).step_by(1000) {
        peer.recv(seg().ack(ack)).drain();
    }
}

/// A round trip later the oldest segment is found lost, with three selective acknowledgements; and another one later all is acknowledged.
fn lose_one(peer: &mut Peer, rtt: u64) {
    peer.wait(rtt);
    let una = peer.acked();
    for n in 1..=3 {
        peer.recv(seg().ack(una).sack(&[(una + 1000, una + 1000 + 1000 * n)])).drain();
    }
}

/// With a reduction that takes effect at once, and timeouts that are far.
fn at_once() -> Setup {
    Setup::default().min_rto(1000).profile(|profile| profile.reduction = ReductionChoice::AtOnce)
}

/// RFC 3465 section 2.2, L = 2: five segments acknowledged at once count for two. TCP's own window takes all five.
#[test]
fn abc_limits_what_an_acknowledgement_counts_for() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "abc");
    peer.write(250_000).drain();
    peer.wait(100).recv(seg().ack(5001));
    assert_eq!((peer.info().cwnd, windows(&peer)), (15_000, (12_000, 12_000)));
    peer.recv(seg().ack(10_001));
    assert_eq!((peer.info().cwnd, windows(&peer)), (20_000, (14_000, 14_000)));
    // Section 2.3: in the slow start after a timeout for one. From one segment to two, and all that is outstanding to three.
    peer.next_timer();
    assert_eq!(peer.info().counters.timeouts, 1);
    assert_eq!(windows(&peer), (1000, 1000));
    peer.wait(10);
    peer.recv(seg().ack(peer.acked() + 1000));
    assert_eq!(windows(&peer), (2000, 2000));
    peer.wait(10);
    peer.recv(seg().ack(peer.acked() + 4000));
    assert_eq!(windows(&peer).0, 3000);
}

/// Where a receiver acknowledges each segment, byte counting is Reno, in slow start and after it: there is nothing to be limited.
#[test]
fn abc_is_reno_where_nobody_divides() {
    let mut peer = at_once().active();
    attach(&mut peer, "abc");
    peer.write(250_000).drain();
    for _ in 0..2 {
        each(&mut peer, 100);
        assert_eq!(windows(&peer).1, peer.info().cwnd);
    }
    lose_one(&mut peer, 100);
    assert_eq!(peer.info().counters.fast_recoveries, 1);
    for _ in 0..5 {
        peer.wait(100);
        for ack in (peer.acked() + 1000..=sent(&peer)).step_by(1000) {
            peer.recv(seg().ack(ack)).drain();
            assert_eq!(peer.connection.ruling(Variable::Cwnd).effective, peer.info().cwnd);
        }
    }
    assert!((20_000..30_000).contains(&peer.info().cwnd), "{}", peer.info().cwnd);
}

/// The receiver divides its acknowledgements (Savage and others 1999): ten for a segment are ten segments to a sender that counts them, and one
/// to who counts bytes.
#[test]
fn abc_corrects_for_ack_division() {
    let counts = |profile: &mut Profile| profile.counting = Counting::Acks;
    let mut peer = Setup::default().profile(counts).active();
    attach(&mut peer, "abc");
    peer.write(250_000).drain();
    peer.wait(100);
    for n in 1..=10 {
        peer.recv(seg().ack(1 + 100 * n));
    }
    assert_eq!((peer.info().cwnd, windows(&peer)), (20_000, (11_000, 11_000)));
}

/// With a filter that forgets everything a sample is the estimate. Round trips of 400 ms, of which 300 are a queue: the first
/// acknowledgement of the second one comes 400 ms after that of the first, and 10 000 bytes later: 25 000 a second, 2500 in 100 ms. The
/// first that tells of the loss comes another 400 ms and 20 000 bytes later: 50 000 a second, 5000 in 100 ms. Half of the 40 segments that
/// are out would be 20.
#[test]
fn westwood_falls_to_what_the_path_carries() {
    let mut peer = at_once().active();
    attach(&mut peer, "westwood(filter=0)");
    peer.write(250_000).drain();
    each(&mut peer, 100);
    each(&mut peer, 400);
    assert_eq!((windows(&peer).1, peer.info().in_flight), (40_000, 40_000));
    lose_one(&mut peer, 400);
    assert_eq!(peer.info().cwnd, 20_000);
    assert_eq!(windows(&peer), (5000, 5000));
    let ruling = peer.connection.ruling(Variable::Ssthresh);
    assert_eq!((ruling.own, ruling.effective), (20_000, 5000));
    // It grows from there as Reno does, a segment each round trip, and TCP's own window waits.
    peer.recv(seg().ack(sent(&peer))).drain();
    let before = windows(&peer).1;
    each(&mut peer, 100);
    each(&mut peer, 100);
    assert_eq!((windows(&peer).1 - before, peer.info().cwnd), (2000, 20_000));
}

/// A path without a queue carries the whole window, 20 000 bytes in 100 ms: that is more than half, and half is what is used.
#[test]
fn westwood_gains_nothing_from_a_loss_that_means_nothing() {
    let mut peer = at_once().active();
    attach(&mut peer, "westwood(filter=0)");
    peer.write(250_000).drain();
    each(&mut peer, 100);
    each(&mut peer, 100);
    lose_one(&mut peer, 100);
    peer.recv(seg().ack(sent(&peer))).drain();
    let used = windows(&peer).1;
    assert!(used == 20_000 && peer.info().cwnd == used, "{used}");
}

/// The first loss leaves 20 segments: f(p) = 1/20 = √(2p/3) + 12·√(3p/8)·p·(1 + 32p²), which p = 0.003523 solves (0.048463 + 0.001537): an
/// interval of 283.8 segments. So long the window stays, where Reno's grows by one each round trip. With 400 segments since the loss the present
/// interval is the average, p = 1/400: √(2p/3) = 0.0408248, 12·√(3p/8)·p·1.0002 = 0.0009187; 1000/0.0417436 = 23 955.
#[test]
fn tfrc_grows_more_gradually_than_reno() {
    let mut peer = at_once().active();
    attach(&mut peer, "tfrc");
    peer.write(250_000).drain();
    for own in [20_000, 40_000] {
        answer(&mut peer, 100);
        let ruling = peer.connection.ruling(Variable::Cwnd);
        assert_eq!(
            (ruling.requested, ruling.effective),
            (None, own),
            "no limit before the first loss"
        );
    }
    lose_one(&mut peer, 100);
    let start = peer.acked();
    assert_eq!(windows(&peer), (20_000, 20_000));
    // All that was out is acknowledged, 40 segments.
    answer(&mut peer, 100);
    let mut rounds = 0;
    while peer.acked() - start + 20_000 <= 283_000 {
        peer.write(20_000).drain();
        assert_eq!(round(&mut peer, 100), 20_000, "{rounds}");
        rounds += 1;
    }
    assert_eq!(rounds, 12);
    // Until 400 segments are through: the last of them alone.
    while peer.acked() - start < 400_000 {
        peer.write(20_000).drain();
        peer.wait(100);
        let most = (start + 400_000).min(sent(&peer));
        peer.recv(seg().ack(most)).drain();
    }
    let (asked, _) = windows(&peer);
    assert_eq!(asked, 23_955);
}

/// Before the second loss event 160 segments: shorter than the first interval, 283.8, which it is averaged with: 221.9. p = 0.004506:
/// √(2p/3) = 0.054811, 12·√(3p/8)·p·1.0006 = 0.002224; 1000/0.057035 = 17 533. But TCP has halved its own window, which was the segment
/// above that lets it go no further, and that is less.
#[test]
fn tfrc_falls_with_reno() {
    let mut peer = at_once().active();
    attach(&mut peer, "tfrc");
    peer.write(250_000).drain();
    for _ in 0..2 {
        answer(&mut peer, 100);
    }
    lose_one(&mut peer, 100);
    let start = peer.acked();
    answer(&mut peer, 100);
    while peer.acked() - start < 160_000 {
        peer.write(20_000).drain();
        peer.wait(100);
        let most = (start + 160_000).min(sent(&peer));
        peer.recv(seg().ack(most)).drain();
    }
    peer.write(20_000).drain();
    lose_one(&mut peer, 100);
    let (asked, used) = windows(&peer);
    assert!(asked.abs_diff(17_533) < 20, "{asked}");
    assert_eq!((used, peer.info().cwnd), (10_500, 10_500));
    // A timeout at the same byte is the same event.
    peer.next_timer();
    assert_eq!((peer.info().counters.timeouts, windows(&peer).0), (1, asked));
}

/// 20 000 bytes in each smoothed round trip of 100 ms.
#[test]
fn tfrc_limits_the_rate() {
    let mut peer = at_once().active();
    attach(&mut peer, "tfrc(by=rate)");
    peer.write(250_000).drain();
    for _ in 0..2 {
        answer(&mut peer, 100);
    }
    lose_one(&mut peer, 100);
    let ruling = peer.connection.ruling(Variable::PacingRate);
    assert_eq!(ruling.effective, 200_000);
    assert_eq!(peer.connection.ruling(Variable::Cwnd).requested, None);
}

/// α = 4 and γ = 1/2, one sample a round trip, baseRTT 100 ms: 1. No queue: slow start, 20. 2. A sample of 200 weighs 3/20: RTT 115; by the
/// sample, 10 of 20 segments are queued, which is more than α/2: slow start is over. 3. RTT 115 + 85·3/20 = 127.75; 20 000/1.2775 = 15 655,
/// and half of the way to that and 4000 more is 19 827. 4. RTT 127.75 + 72.25·3/19.827 = 138.682; 19 827/1.38682 + 4000 = 18 296, half way
/// 19 061. 5. The queue is gone: RTT 138.682 − 38.682·3/19.061 = 132.594; 19 061/1.32594 + 4000 = 18 375, half way 18 717. TCP's own window
/// stays at 40.
#[test]
fn fast_by_hand() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "fast(alpha=4)");
    peer.write(250_000).drain();
    let windows = [100, 200, 200, 200, 100].map(|rtt| round(&mut peer, rtt));
    let expected = [20_000u64, 20_000, 19_827, 19_061, 18_717];
    assert!(
        windows.iter().zip(expected).all(|(window, expected)| window.abs_diff(expected) <= 1),
        "{windows:?}"
    );
    assert_eq!(peer.info().cwnd, 40_000);
}

/// α = 20 wants more than TCP has, which is one segment a round trip: the request follows TCP's own window a segment above it.
#[test]
fn fast_grows_no_faster_than_tcp() {
    let mut peer = at_once().active();
    attach(&mut peer, "fast");
    peer.write(250_000).drain();
    round(&mut peer, 100);
    lose_one(&mut peer, 100);
    peer.recv(seg().ack(sent(&peer))).drain();
    assert_eq!(peer.info().cwnd, 10_000);
    for n in 1..=5 {
        round(&mut peer, 100);
        let (asked, used) = windows(&peer);
        assert_eq!((used, peer.info().cwnd), (10_000 + 1000 * n, 10_000 + 1000 * n));
        assert_eq!(asked, used + 1000);
    }
}

/// Two segments at first, and GAIN = 1/⌈2·60/100⌉ = 1/2: 1. 2 + 2/2 = 3. 2. 3 + 3/2 = 4.5. 3. 4 are used: 4.5 + 4/2 = 6.5. 4. 50 ms of
/// queue are more than three quarters of 60: slow start is over, and in two smoothed round trips of 100 + 50/8 ms the window slows down.
/// Below the target it grows: 6/6.5 of a segment's half, 461.5 bytes. 5. The time has not come (150 of 212.5 ms): 6/6.961 of a half more,
/// 430.97 bytes, and what the division before left over. 6. Now it has: two.
#[test]
fn ledbat_plus_plus_by_hand() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "ledbat-plus-plus");
    peer.write(250_000).drain();
    assert_eq!(peer.info().in_flight, 2000);
    let windows = [100, 100, 100, 150, 150, 150].map(|rtt| round(&mut peer, rtt));
    assert_eq!(windows, [3000, 4500, 6500, 6961, 7392, 2000]);
    let asked = windows;
    // Two segments for two round trips, and back by half of what is acknowledged to where it was.
    let back: Vec<_> = (0..12).map(|_| round(&mut peer, 100)).collect();
    assert_eq!(back[..2], [2000, 2000], "{back:?}");
    assert!(back.windows(2).all(|pair| pair[0] <= pair[1]), "{back:?}");
    assert!(back.contains(&4500) || back.contains(&3000), "{back:?}");
    assert!(back.iter().any(|&window| window >= asked[4]), "{back:?}");
    assert!(peer.info().cwnd >= 10_000, "TCP's own window is its own: {}", peer.info().cwnd);
}

/// Twice the target: W·(120/60 − 1) − GAIN is more than W/2, which is therefore what a round trip takes.
#[test]
fn ledbat_plus_plus_gives_way() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "ledbat-plus-plus");
    peer.write(250_000).drain();
    for rtt in [100, 100, 100, 150] {
        round(&mut peer, rtt);
    }
    // 6961; six of its segments are acknowledged: 6000/2 less.
    assert_eq!(round(&mut peer, 210), 6961 - 3000);
}

/// Segments of 100 bytes, so that 400 of them fit into a window without scaling: where HighSpeed differs. By the table of RFC 3649's
/// appendix B from 347 to 495 segments a(w) is 4, and b(w) = b(347) = 0.5 − 0.4·ln(347/38)/ln(83000/38) = 0.38494.
fn high(congestion: &str, extension: &str) -> (Vec<String>, Vec<(u64, u64)>, Peer) {
    let congestion = compose(congestion).unwrap().congestion;
    let mut peer =
        at_once().mss(Some(100)).profile(|profile| profile.congestion = congestion).active();
    attach(&mut peer, extension);
    let (mut lines, mut windows) = (vec![], vec![]);
    let mut look = |peer: &mut Peer| {
        let now = peer.now.as_millis();
        lines.extend(peer.drain().iter().map(|out| format!("{now} {}", out.line())));
        let ruling = peer.connection.ruling(Variable::Cwnd);
        windows.push((peer.info().cwnd, ruling.requested.map_or(0, |asked| asked.high())));
    };
    peer.write(250_000);
    look(&mut peer);
    let round = |peer: &mut Peer, look: &mut dyn FnMut(&mut Peer)| {
        peer.wait(100);
        for ack in (peer.acked() + 100..=sent(peer)).step_by(100) {
            peer.recv(seg().ack(ack));
            look(peer);
        }
    };
    // 10, 20, 40, 80, 160, 320 segments, and 80 more.
    for _ in 0..5 {
        round(&mut peer, &mut look);
    }
    peer.wait(100);
    let una = peer.acked();
    for n in 1..=80 {
        peer.recv(seg().ack(una + 100 * n));
        look(&mut peer);
    }
    let una = peer.acked();
    for n in 1..=3 {
        peer.recv(seg().ack(una).sack(&[(una + 100, una + 100 + 100 * n)]));
        look(&mut peer);
    }
    peer.wait(100);
    peer.recv(seg().ack(sent(&peer)));
    look(&mut peer);
    peer.write(80_000);
    for _ in 0..3 {
        round(&mut peer, &mut look);
    }
    // A timeout, and what follows.
    peer.next_timer();
    look(&mut peer);
    for _ in 0..4 {
        round(&mut peer, &mut look);
    }
    (lines, windows, peer)
}

/// Half of 400 segments is what is left to Reno, and 61.5 % to HighSpeed. The extension asks for that, and the connection does, byte for byte
/// and at the same times, what it does without.
#[test]
fn highspeed_gains_nothing() {
    let (plain, reno, _) = high("reno", "");
    let (extended, asked, peer) = high("reno", "highspeed");
    assert_eq!(plain, extended);
    let own: Vec<_> = asked.iter().map(|&(own, _)| own).collect();
    assert_eq!(own, reno.iter().map(|&(own, _)| own).collect::<Vec<_>>());
    assert!(asked.iter().all(|&(own, asked)| asked == 0 || asked >= own), "{asked:?}");
    let decided = peer.connection.ruling(Variable::Cwnd).decided_by;
    assert!(decided == Decider::Tcp, "{decided:?}");

    // The native one has more, and so much was asked for.
    let (_, native, _) = high("highspeed", "");
    let halved = |pair: &[(u64, u64)]| (pair[0].0, pair[1].0) == (40_000, 20_000);
    let lost = reno.windows(2).position(halved).unwrap() + 1;
    let native = native.get(lost).map_or(0, |&(own, _)| own);
    assert!(native.abs_diff(24_602) <= 1, "{native}");
    let asked = asked[lost..].iter().map(|&(_, asked)| asked).find(|&asked| asked > 0).unwrap();
    assert!(asked.abs_diff(24_602) <= 500, "{asked}");
}

/// What becomes of a transfer over a path that loses, duplicates and reorders; everything in it hangs on every packet before. Also how
/// often extensions were woken, and the last window.
fn transfer(seed: u64, extension: &str) -> (String, u64, u64) {
    let setup = || {
        let mut setup = Setup::default();
        (setup.path.mtu, setup.path.interface_mtu) = (140, 140);
        let profile = &mut setup.profile;
        profile.congestion = CongestionChoice::reno();
        if seed.is_multiple_of(2) {
            profile.reduction = ReductionChoice::AtOnce;
        }
        profile.undo.dsack = seed.is_multiple_of(3);
        profile.undo.f_rto = seed.is_multiple_of(5);
        profile.r2 = Some(40);
        profile.syn_r2 = 20;
        profile.extensions = stack(extension).unwrap();
        setup
    };
    // Half of the paths leave a window room to grow to where HighSpeed differs.
    let (loss, late) = [(0, 0), (1, 0), (20, 10), (100, 10)][seed as usize % 4];
    let path = Path { loss, duplicate: late, late, delay: 20_000, jitter: 300 * late };
    let mut world = lossy([&setup(), &setup()], path, seed);
    world::transfer(&mut world, [300_000, 20_000], seed);
    let end = |peer: &Peer| format!("{:?} {:?} {}", peer.now, peer.info().counters, peer.summary());
    let summary =
        format!("{} {}, {}", world.path.carried, end(&world.ends[0]), end(&world.ends[1]));
    let wakes = world.ends.iter().map(|end| end.connection.request_counters().wakes).sum();
    (summary, wakes, world.ends[0].info().cwnd)
}

/// The same on paths that do anything, with timeouts and reductions that are taken back.
#[test]
fn highspeed_changes_nothing_on_any_path() {
    let mut widest = 0;
    for seed in 0..40 {
        let (plain, none, cwnd) = transfer(seed, "");
        let (extended, wakes, _) = transfer(seed, "highspeed");
        assert_eq!(plain, extended, "seed {seed}");
        assert!(none == 0 && wakes > 1000, "{none} {wakes}");
        widest = widest.max(cwnd);
    }
    assert!(widest > 30_000, "{widest}");
}

/// Whatever they make of it, what is written arrives, over paths that lose and reorder as well.
#[test]
fn every_controller_gets_through() {
    for text in ["abc", "westwood", "tfrc", "tfrc(by=rate)", "fast", "ledbat-plus-plus"] {
        for seed in 0..8 {
            let (_, wakes, _) = transfer(seed, text);
            assert!(wakes > 10, "{text}: {wakes}");
        }
    }
    transfer(1, "abc + westwood + tfrc + fast + ledbat-plus-plus + highspeed");
}

/// After a rest TCP begins again with ten segments, and slow start leads to where the loss before had left it, 20 segments (RFC 5681
/// section 4.1). The controller beside it is told, and where each segment is acknowledged alone there is nothing between the two.
/// Validation makes it three quarters of the window of about 30 instead (RFC 7661 section 4.4.3).
#[test]
fn a_rest_is_a_rest_for_both() {
    for choice in [ValidationChoice::RestartWindow, ValidationChoice::Cwv] {
        let mut peer = at_once().profile(|profile| profile.validation = choice).active();
        attach(&mut peer, "abc");
        peer.write(100_000).drain();
        each(&mut peer, 100);
        each(&mut peer, 100);
        lose_one(&mut peer, 100);
        for _ in 0..8 {
            peer.write(30_000).drain();
            each(&mut peer, 100);
        }
        while peer.info().in_flight > 0 {
            each(&mut peer, 100);
        }
        let before = peer.info();
        assert!((28_000..34_000).contains(&before.cwnd), "{}", before.cwnd);
        // Six minutes: RFC 7661 lets a window stand for five.
        peer.wait(360_000);
        peer.write(200_000).drain();
        let after = peer.info();
        assert!(after.cwnd < before.cwnd, "{choice:?}");
        assert_eq!(after.ssthresh > before.ssthresh, choice == ValidationChoice::Cwv);
        for _ in 0..4 {
            peer.wait(100);
            for ack in (peer.acked() + 1000..=sent(&peer)).step_by(1000) {
                peer.recv(seg().ack(ack)).drain();
                assert_eq!(windows(&peer).1, peer.info().cwnd, "{choice:?}");
            }
        }
        assert!(peer.info().cwnd > after.ssthresh, "{}", peer.info().cwnd);
    }
}

/// A mark halves both (RFC 3168 section 6.1.2): 20 segments become 10, and HighSpeed asks for no more than a segment above its own 10.
#[test]
fn a_mark_is_a_mark_for_both() {
    let config = EcnConfig::default().with_offer(true);
    let setup = at_once().profile(|profile| profile.ecn = EcnChoice::Classic(config));
    let mut peer = setup.connecting();
    peer.drain();
    let options = setup.syn_options(&peer);
    peer.wait(100).recv(seg().syn().flags(Flags::ECE).options(options)).drain();
    attach(&mut peer, "highspeed");
    peer.write(100_000).drain();
    each(&mut peer, 100);
    assert_eq!(windows(&peer), (21_000, 20_000));
    peer.wait(100);
    let ack = seg().ack(peer.acked() + 1000).flags(Flags::ACK | Flags::ECE);
    peer.recv(ack).drain();
    let half = peer.info().cwnd;
    assert!((10_000..=10_500).contains(&half), "{half}");
    let (asked, used) = windows(&peer);
    assert!(asked.abs_diff(half + 1000) <= 1000 && used == half, "{asked} {used} {half}");
}

/// RFC 8985 section 6.3: one selective acknowledgement after a round trip of 100 ms, and another 25 later the reordering timer finds the first
/// segment lost, without an acknowledgement. Both windows are half of 10 segments. All that was out is acknowledged in two parts, the last of a segment: it leaves them where
/// they are, and the next round trip adds a segment to each. Who had missed it would still have 10, and ask for a segment more than TCP's own.
///
/// In the round trip after that the timer finds a loss that was none: the segment was late, and a D-SACK says that it came twice. Both have again
/// what they had, 6 segments, and an ssthresh of 5, so that the next round trip adds one. Who took the window of before the first loss
/// for that would be in slow start.
#[test]
fn a_loss_that_a_timer_finds_is_a_loss_for_both() {
    let setup = at_once().profile(|profile| {
        profile.recovery = RecoveryChoice::RackTlp;
        profile.undo.dsack = true;
    });
    let mut peer = setup.active();
    attach(&mut peer, "abc");
    peer.write(250_000).drain();
    let lose = |peer: &mut Peer| {
        peer.wait(100);
        let una = peer.acked();
        peer.recv(seg().ack(una).sack(&[(una + 1000, una + 2000)])).drain();
        assert_eq!(peer.info().phase, Phase::Disorder);
        peer.wait(40);
        assert_eq!(peer.info().phase, Phase::Recovery);
        una
    };
    lose(&mut peer);
    assert_eq!(peer.info().cwnd, 5000);
    peer.wait(60);
    // Limited Transmit had sent an eleventh.
    peer.recv(seg().ack(peer.acked() + 10_000)).drain();
    let end = peer.acked() + 1000;
    peer.recv(seg().ack(end)).drain();
    assert_eq!(peer.info().phase, Phase::Open);
    assert_eq!((peer.info().cwnd, windows(&peer)), (5000, (5000, 5000)));
    each(&mut peer, 100);
    assert_eq!((peer.info().cwnd, windows(&peer)), (6000, (6000, 6000)));
    let una = lose(&mut peer);
    assert_eq!(peer.info().cwnd, 3000);
    peer.wait(60);
    let nxt = sent(&peer);
    peer.recv(seg().ack(nxt).sack(&[(una, una + 1000)])).drain();
    assert_eq!(peer.info().counters.spurious_reductions, 1);
    assert_eq!((peer.info().cwnd, windows(&peer)), (6000, (6000, 6000)));
    each(&mut peer, 100);
    assert_eq!((peer.info().cwnd, windows(&peer)), (7000, (7000, 7000)));
}

/// Beside one that wants less, that one is heard: wanting more is no contradiction.
#[test]
fn highspeed_is_no_conflict() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "highspeed + abc(limit=1)");
    peer.write(250_000).drain();
    peer.wait(100).recv(seg().ack(5001));
    assert_eq!((peer.info().cwnd, windows(&peer).1), (15_000, 11_000));
    assert_eq!(peer.connection.request_counters().conflicts, [0; 11]);
}

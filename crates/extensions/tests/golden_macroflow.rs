//! The Congestion Manager as congestion control: one window for several connections, worked by hand; and four flows on one link beside the extension's four,
//! round by round.
//!
//! Segments are 1000 bytes, the initial window is 10 of them, the handshake takes 100 ms.

use crate::common::{Peer, Setup, seg};
use std::sync::Arc;
use transom_extensions::cm::{Manager, Shared};
use transom_extensions::{stack, stack_sharing};
use transom_sim::link::LinkConfig;
use transom_sim::{Pair, Side};
use transom_stack::{ListenConfig, Stack, StackConfig};
use transom_tcp::Profile;
use transom_tcp::congestion::CongestionChoice;
use transom_tcp::extension::Variable;
use transom_tcp::time::Instant;

fn member(macroflow: &Shared) -> Peer {
    let congestion = CongestionChoice::new(macroflow.clone());
    let setup = Setup::default().profile(|profile| {
        profile.congestion = congestion;
        profile.undo.dsack = true;
    });
    setup.active()
}

/// With plenty to send.
fn busy(macroflow: &Shared) -> Peer {
    let mut peer = member(macroflow);
    peer.write(64_000).drain();
    peer
}

fn cwnd(peer: &Peer) -> u64 {
    peer.info().cwnd
}

fn together(macroflow: &Shared) -> u64 {
    macroflow.info().unwrap().window.cwnd
}

/// Three later segments are reported.
fn lose(peer: &mut Peer) {
    let una = peer.acked();
    for n in 1..=3 {
        peer.recv(seg().ack(una).sack(&[(una + 1000, una + 1000 + 1000 * n)])).drain();
    }
}

/// The first begins the macroflow with ten segments, the second takes half of them. A round trip later the first's ten are acknowledged: its window is half
/// of ten by now, and so much counts (RFC 5681: one window at most), 10 + 5 = 15, of which it has 7.5. The second's five make it 20, of which it has ten. The
/// first's seven: 27, 13.5.
///
/// The second finds a loss: 13.5 for all, 6.75 for each. In the round trip after it the first one's acknowledgement of 13 counts for its 6.75, in
/// congestion avoidance half of what another segment takes; and its own loss was sent before, and is the same.
#[test]
fn one_window_for_two() {
    let macroflow = Shared::new("peer");
    assert_eq!(macroflow.info(), None);
    let (mut one, mut two) = (busy(&macroflow), busy(&macroflow));
    assert_eq!([cwnd(&one), cwnd(&two), together(&macroflow)], [10_000, 5000, 10_000]);
    let round = |peer: &mut Peer| {
        peer.wait(100);
        peer.ack_all();
        (cwnd(peer), together(&macroflow))
    };
    assert_eq!(round(&mut one), (7500, 15_000));
    assert_eq!(round(&mut two), (10_000, 20_000));
    assert_eq!(round(&mut one), (13_500, 27_000));

    two.wait(100);
    lose(&mut two);
    assert_eq!((cwnd(&two), two.info().ssthresh, together(&macroflow)), (6750, 6750, 13_500));
    assert_eq!(cwnd(&one), 13_500, "it has not heard of it");
    one.wait(50);
    let half = one.acked() + 6000;
    one.recv(seg().ack(half)).drain();
    assert_eq!((cwnd(&one), together(&macroflow)), (6750, 13_500));
    lose(&mut one);
    assert_eq!(one.info().counters.fast_recoveries, 1);
    assert_eq!((cwnd(&one), together(&macroflow)), (6750, 13_500));
    assert_eq!(macroflow.info().unwrap().window.ssthresh, 13_500);
}

/// A loss that was none is taken back for all, by who had found it: 10 segments are halved, and are 10 again.
#[test]
fn a_needless_reduction_is_taken_back_for_all() {
    let macroflow = Shared::new("peer");
    let (mut one, mut two) = (busy(&macroflow), busy(&macroflow));
    two.wait(100);
    lose(&mut two);
    assert_eq!((cwnd(&two), together(&macroflow)), (2500, 5000));
    one.wait(110);
    one.recv(seg().ack(1001)).drain();
    // 5000 and 1000 for each window of them: still 5000.
    assert_eq!((cwnd(&one), together(&macroflow)), (2500, 5000));
    two.wait(20);
    let all = two.info().snd_nxt.stream_offset() as i64 + 1;
    two.recv(seg().ack(all).sack(&[(1, 1001)])).drain();
    assert_eq!(two.info().counters.spurious_reductions, 1);
    assert_eq!((cwnd(&two), together(&macroflow)), (5000, 10_000));
    one.wait(20).recv(seg().ack(2001)).drain();
    assert!(cwnd(&one) >= 5000 && together(&macroflow) >= 10_000);
}

/// A timeout is one of all: one segment together, and one for each, who has to have one.
#[test]
fn a_timeout_begins_anew() {
    let macroflow = Shared::new("peer");
    let (mut one, mut two) = (busy(&macroflow), busy(&macroflow));
    // 300 ms after the first segment.
    one.wait(300).drain();
    assert_eq!(one.info().counters.timeouts, 1);
    assert_eq!((cwnd(&one), together(&macroflow)), (1000, 1000));
    assert_eq!(macroflow.info().unwrap().window.ssthresh, 5000);
    two.wait(299).recv(seg().ack(1001)).drain();
    // Slow start: a segment for the one that was acknowledged.
    assert_eq!((cwnd(&two), together(&macroflow)), (1000, 2000));
    // The other one's timeout, after another 300 ms, is of what it had sent before: of the same congestion. Those that follow it for more than
    // a second are not.
    two.wait(500).drain();
    assert_eq!((two.info().counters.timeouts, cwnd(&two), together(&macroflow)), (1, 1000, 2000));
    two.wait(3000).drain();
    assert_eq!((cwnd(&two), together(&macroflow)), (1000, 1000));
}

/// Two parts of three and one; who uses 2000 of its 5000 leaves the rest; and who has gone leaves all.
#[test]
fn shares_by_weight_and_use() {
    let macroflow = Shared::new("peer");
    let heavy = busy(&macroflow.weighing(2));
    let light = busy(&macroflow);
    assert_eq!([cwnd(&heavy), cwnd(&light)], [10_000, 3333]);
    assert_eq!(macroflow.info().unwrap().members, 2);
    drop((heavy, light));
    assert_eq!(macroflow.info(), None);

    let mut one = busy(&macroflow);
    let mut two = member(&macroflow);
    two.write(2000).drain();
    two.wait(100);
    two.ack_all();
    one.wait(100);
    one.recv(seg().ack(1001)).drain();
    // Eleven, of which the other one is content with two.
    assert_eq!((cwnd(&one), together(&macroflow)), (9000, 11_000));
    // Nobody hears of the other one for more than a second.
    one.wait(1000);
    one.recv(seg().ack(2001)).drain();
    assert_eq!(cwnd(&one), together(&macroflow));
    drop(two);
    one.recv(seg().ack(3001)).drain();
    assert_eq!((cwnd(&one), macroflow.info().unwrap().members), (together(&macroflow), 1));
}

/// The windows that two busy connections use, after each acknowledgement of each, in rounds of 100 ms: all is acknowledged, segment by segment, to one and the other in turn. In round
/// `lossy` the first segment of both is lost.
fn two_in_step(mut peers: [Peer; 2], rounds: u64, lossy: u64) -> Vec<Vec<[u64; 2]>> {
    let used = |peers: &[Peer; 2]| {
        [0, 1].map(|index: usize| peers[index].connection.ruling(Variable::Cwnd).effective)
    };
    let mut trace = vec![];
    for round in 0..rounds {
        peers.iter_mut().for_each(|peer| {
            let room = peer.connection.writable().unwrap();
            peer.write(room).drain();
            peer.wait(100);
        });
        let firsts = [0, 1].map(|index: usize| peers[index].acked());
        let out = [0, 1].map(|index: usize| peers[index].info().in_flight as i64 / 1000);
        let mut looks = vec![];
        for n in 1..=out[0].max(out[1]) {
            for (index, peer) in peers.iter_mut().enumerate().filter(|(index, _)| n <= out[*index])
            {
                let first = firsts[index];
                if round != lossy {
                    peer.recv(seg().ack(first + 1000 * n)).drain();
                } else if n > 1 {
                    peer.recv(seg().ack(first).sack(&[(first + 1000, first + 1000 * n)])).drain();
                }
            }
            looks.push(used(&peers));
        }
        if round == lossy {
            // What was lost has been repeated.
            for peer in &mut peers {
                let all = peer.wait(100).info().snd_nxt.stream_offset() as i64 + 1;
                peer.recv(seg().ack(all)).drain();
            }
        }
        trace.push(looks);
    }
    trace
}

/// Acknowledgement by acknowledgement, with the same losses: k rounds after the native two had W in congestion avoidance they have W + k/2 each, and the extension's W + k, both to a
/// segment. That is how far they part between losses: in a macroflow of n each grows by k/n in k rounds, and n flows by k.
#[test]
fn two_in_step_beside_the_extension() {
    let macroflow = Shared::new("peer");
    let native = two_in_step([busy(&macroflow), busy(&macroflow)], 24, 2);
    let manager = Manager::default();
    let extended = |_| {
        let extensions = stack_sharing("cm(poll=ack)", &manager).unwrap();
        let setup = Setup::default().profile(|profile| {
            profile.extensions = extensions;
            profile.undo.dsack = true;
        });
        let mut peer = setup.active();
        peer.write(64_000).drain();
        peer
    };
    let extension = two_in_step([0, 1].map(extended), 24, 2);
    // The loss was in the third round; of slow start after it the native ones need longer, as what was in flight at its end is shared as well.
    const CALM: usize = 7;
    let grown = |trace: &[Vec<[u64; 2]>], in_a_round: u64| {
        let base = trace[CALM][0];
        for (k, looks) in (0u64..).zip(&trace[CALM..]) {
            for windows in looks {
                for (window, base) in windows.iter().zip(base) {
                    let least = base + k * in_a_round;
                    assert!(
                        window + 1000 >= least && *window <= least + 1000,
                        "round {k}: {window} from {base}"
                    );
                }
            }
        }
        looks(trace)
    };
    let compared = grown(&native, 500) + grown(&extension, 1000);
    assert!(compared > 500, "{compared}");
    // Never does the macroflow have more than two flows would: of the two windows the native is the narrower one throughout.
    for (natives, extensions) in native.iter().zip(&extension) {
        let [natives, extensions] = [natives, extensions].map(|looks| looks.last().unwrap());
        assert!(natives.iter().zip(extensions).all(|(one, other)| one <= other));
    }
}

fn looks(trace: &[Vec<[u64; 2]>]) -> usize {
    trace.iter().map(Vec::len).sum()
}

/// Each look, 240 ms after the one before: the window that each of the four connections uses, in bytes; and what each has delivered at the end.
fn four(profile: Profile) -> (Vec<[u64; 4]>, [u64; 4]) {
    let link: LinkConfig = "rate=1Mbit/s, delay=119ms, queue=40 packets".parse().unwrap();
    let profile = Arc::new(profile);
    let host = |address: &str| {
        let config = StackConfig::new(vec![(address.parse().unwrap(), 24)]);
        Stack::new(config.with_profile(profile.clone()), Instant::ZERO).unwrap()
    };
    let (alice, mut bob) = (host("10.0.0.1"), host("10.0.0.2"));
    let listener = bob.listen("0.0.0.0:80".parse().unwrap(), ListenConfig::default()).unwrap();
    let mut pair = Pair::new(alice, bob, [&link, &link], 1, Instant::ZERO);
    let remote = "10.0.0.2:80".parse().unwrap();
    let mut connect = |at: u64| {
        let at = Instant::from_millis(at);
        pair.run_until(at, |_| false);
        pair.host(Side::A).connect(at, None, remote, None).unwrap()
    };
    let ids = [0, 100, 200, 300].map(&mut connect);
    let (mut looks, mut servers, mut buffer) = (vec![], vec![], vec![0; 65_536]);
    for look in 2..500u64 {
        for tick in 1..=24 {
            let now = Instant::from_millis(look * 240 + tick * 10);
            for id in ids {
                while matches!(pair.host(Side::A).write(id, now, &buffer), Ok(1..)) {}
            }
            let bob = pair.host(Side::B);
            servers.extend(std::iter::from_fn(|| bob.accept(listener)).map(|(id, _)| id));
            for &id in &servers {
                while matches!(bob.read(id, now, &mut buffer), Ok(1..)) {}
            }
            pair.run_until(now, |_| false);
        }
        let alice = pair.host(Side::A);
        looks.push(ids.map(|id| alice.connection(id).unwrap().ruling(Variable::Cwnd).effective));
    }
    let now = pair.now();
    let delivered = ids.map(|id| {
        let info = pair.host(Side::A).connection(id).unwrap().info(now);
        info.snd_una.stream_offset()
    });
    (looks, delivered)
}

/// Largest less smallest.
fn spread(windows: &[u64; 4]) -> u64 {
    windows.iter().max().unwrap() - windows.iter().min().unwrap()
}

/// What the four have together after so many looks, from there to where it falls the next time: how much more in each look; and at each fall what is
/// left of it in thousandths, two looks later, when everyone has heard.
fn slopes_and_falls(looks: &[[u64; 4]]) -> (Vec<u64>, Vec<u64>) {
    let sums: Vec<u64> = looks.iter().map(|windows| windows.iter().sum()).collect();
    let (mut slopes, mut falls) = (vec![], vec![]);
    for at in 1..sums.len() - 2 {
        let (before, now) = (sums[at - 1], sums[at]);
        match now.checked_sub(before) {
            Some(more) => slopes.push(more),
            None if before - now > 2000 && sums[at + 1] <= now => {
                let peak = before.max(*sums[at.saturating_sub(3)..at].iter().max().unwrap());
                falls.push(sums[at + 2] * 1000 / peak);
            }
            None => {}
        }
    }
    (slopes, falls)
}

/// 28 segments are on the way and 40 in the queue. Look by look, from after the slow start and what it lost:
///
/// - Both are even. The one window is the same for all four to the quarter of a segment that the macroflow has grown by since the first of them looked;
///   except in the two looks where it falls. The extension's differ by as much as one has lost and the others have not: it may only take
///   from them.
/// - Both carry what the link does, and each flow a quarter of it.
/// - They must differ in how they grow and fall: one window grows by a segment in a round trip, and falls to half. Four windows grow by four
///   (as long as their own is all that is used), and where one of them falls to half, the sum falls to seven eighths.
#[test]
fn four_flows_beside_the_extension() {
    let native = CongestionChoice::new(Shared::new("peer"));
    let profile = Profile::classic().with_max_segment(Some(1012));
    let (native, carried) = four(profile.clone().with_congestion(native));
    let (extension, carried_too) = four(profile.with_extensions(stack("cm").unwrap()));
    for carried in [carried, carried_too] {
        // 119.5 s at 1 Mbit/s, and 52 bytes of headers to 1000.
        let link: u64 = 119_500 * 125 * 1000 / 1052;
        let sum: u64 = carried.iter().sum();
        assert!(sum > link * 95 / 100 && sum <= link, "{sum} of {link}");
        assert!(
            carried.iter().all(|&one| one.abs_diff(sum / 4) < sum / 4 * 3 / 100),
            "{carried:?}"
        );
    }
    let (native, extension) = (&native[60..], &extension[60..]);
    let looks = native.iter().zip(&native[1..]).zip(&native[2..]);
    let calm = looks.filter(|&((a, b), c)| {
        a.iter().sum::<u64>() <= b.iter().sum() && b.iter().sum::<u64>() <= c.iter().sum()
    });
    let spreads: Vec<u64> = calm.map(|(_, windows)| spread(windows)).collect();
    assert!(spreads.len() > 400 && spreads.iter().all(|&one| one <= 250), "{spreads:?}");
    let uneven = extension.iter().filter(|windows| spread(windows) > 1000).count();
    assert!(uneven > extension.len() / 4, "{uneven}");

    let (slopes, falls) = slopes_and_falls(native);
    let (slopes_too, falls_too) = slopes_and_falls(extension);
    assert!(slopes.iter().all(|&more| more <= 1000));
    assert!(slopes_too.iter().all(|&more| more <= 4000));
    let mean = |values: &[u64]| values.iter().sum::<u64>() / values.len() as u64;
    assert!(mean(&slopes_too) > 2 * mean(&slopes));
    assert!(falls.len() > 2 && falls.iter().all(|fall| (490..560).contains(fall)), "{falls:?}");
    assert!(falls_too.len() > falls.len() && mean(&falls_too) > 600, "{falls_too:?}");
}

//! The native Vegas and Nice beside the extensions of that name on paths that lose and reorder packets: with fast recoveries, timeouts, and reductions
//! that are taken back.

use crate::common::world::{Path, lossy, transfer};
use crate::common::{Peer, Setup, seg};
use transom_extensions::cm::Shared;
use transom_extensions::stack;
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::congestion::CongestionChoice;
use transom_tcp::extension::Variable;

/// A full segment, in bytes.
const MSS: u64 = 1460;

/// What must be the same, and behind bars what need not: TCP's own window, and what is acknowledged.
fn look(peer: &Peer) -> String {
    if !peer.state().is_synchronized() {
        return String::new();
    }
    let info = peer.info();
    let used = peer.connection.ruling(Variable::Cwnd).effective;
    let counters = info.counters;
    let reductions = [counters.fast_recoveries, counters.timeouts, counters.spurious_reductions];
    let acked = info.snd_una.stream_offset();
    let phase = info.phase.name();
    format!("{phase} {used} {} {reductions:?} | {} | {acked}", info.in_flight, info.cwnd)
}

struct Run {
    trace: Vec<String>,
    reductions: [u64; 3],
}

fn run(name: &str, seed: u64, extension: bool) -> Run {
    let mut setup = Setup::default();
    setup.profile.undo = compose("undo").unwrap().undo;
    if extension {
        setup.profile.extensions = stack(&format!("{name}(poll=ack)")).unwrap();
    } else if name == "cm" {
        setup.profile.congestion = CongestionChoice::new(Shared::new("peer"));
    } else {
        setup.profile.congestion = compose(name).unwrap().congestion;
    }
    (setup.profile.r2, setup.profile.syn_r2) = (Some(40), 20);
    let path = Path {
        // With more there are silences, after which the native ones begin anew.
        loss: [0, 10, 30, 60][seed as usize % 4],
        duplicate: 0,
        late: seed / 4 % 2 * 5,
        delay: 50_000,
        jitter: seed % 7 * 3000,
    };
    let mut world = lossy([&setup, &Setup::default()], path, seed);
    world.path.look = Some(look);
    transfer(&mut world, [300_000, 0], seed);
    let counters = world.ends[0].info().counters;
    Run {
        trace: world.path.trace,
        reductions: [counters.fast_recoveries, counters.timeouts, counters.spurious_reductions],
    }
}

/// What must be the same of a line.
fn same(line: &str) -> &str {
    line.split(" | ").next().unwrap_or(line)
}

/// TCP's own window in a line.
fn own(line: &str) -> u64 {
    line.split(" | ").nth(1).map_or(0, |window| window.parse().unwrap())
}

/// Packet by packet they are the same until the native one goes where an extension must not: its window beyond what TCP's own is beside the extension
/// (icTCP's Table 1). Nice below two segments is another matter too: a native one paces, an extension closes the window for a time.
#[test]
fn they_part_only_where_the_safe_range_ends() {
    for name in ["vegas", "nice"] {
        let (mut lines, mut wide, mut narrow) = (0, 0, 0);
        // Runs in which, before they parted, there had been a recovery, a timeout, a reduction taken back.
        let mut seen = [0; 3];
        for seed in 0..200 {
            let [extension, native] = [run(name, seed, true), run(name, seed, false)];
            let both = extension.trace.iter().zip(&native.trace);
            let parted = both.clone().position(|(one, other)| same(one) != same(other));
            let until = parted.unwrap_or(native.trace.len());
            lines += until;
            for (index, count) in seen.iter_mut().enumerate() {
                let happened = |line: &String| reductions(line).is_some_and(|all| all[index] > 0);
                *count += usize::from(native.trace[..until].iter().any(happened));
            }
            match parted {
                None => {
                    assert_eq!(extension.trace.len(), native.trace.len(), "{name}, seed {seed}");
                    assert_eq!(extension.reductions, native.reductions);
                }
                Some(at) => {
                    let (one, other) = (&extension.trace[at], &native.trace[at]);
                    let beyond = own(other) > own(one);
                    let below = name == "nice" && own(other) < 2 * MSS;
                    assert!(beyond || below, "{name}, seed {seed}:\n{one}\n{other}");
                    wide += usize::from(beyond);
                    narrow += usize::from(!beyond);
                }
            }
        }
        println!("{name}: {lines} lines, parted {wide} above and {narrow} below; {seen:?}");
        assert!(lines > 15_000 && seen.iter().all(|&runs| runs > 0), "{name}: {lines} {seen:?}");
        assert!(seen[0] > 100 && seen[1] > 20, "{name}: {seen:?}");
    }
}

/// A macroflow of one is a flow. Packet by packet the native Congestion Manager and the extension do the same, whatever is lost, repaired, timed out and taken back.
#[test]
fn a_macroflow_of_one_is_the_same_native_and_as_an_extension() {
    let mut seen = [0; 3];
    for seed in 0..200 {
        let [extension, native] = [run("cm", seed, true), run("cm", seed, false)];
        for (at, (one, other)) in extension.trace.iter().zip(&native.trace).enumerate() {
            assert_eq!(one, other, "seed {seed}, line {at}");
        }
        assert_eq!(extension.trace.len(), native.trace.len(), "seed {seed}");
        for (count, reductions) in seen.iter_mut().zip(native.reductions) {
            *count += usize::from(reductions > 0);
        }
    }
    println!("recoveries, timeouts and what was taken back: in {seen:?} of 200 runs");
    assert!(seen.iter().all(|&runs| runs > 20), "{seen:?}");
}

/// The reductions in a line.
fn reductions(line: &str) -> Option<[u64; 3]> {
    let list = line.split_once('[')?.1.split_once(']')?.0;
    let mut numbers = list.split(", ").map(|number| number.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

/// Ten segments of 1000 bytes are out, and twice nothing comes: the second timeout is for the same data, and slow start still ends at five segments (RFC 5681
/// section 3.1). Rounds of 100 ms follow.
fn silenced(mut peer: Peer) -> Vec<u64> {
    peer.write(250_000).drain();
    while peer.info().counters.timeouts < 2 {
        peer.wait(100).drain();
    }
    let mut windows = vec![];
    for _ in 0..12 {
        peer.wait(100);
        let info = peer.info();
        let (first, out) = (peer.acked(), (info.in_flight / 1000).max(1) as i64);
        for n in 1..=out {
            peer.recv(seg().ack(first + 1000 * n)).drain();
        }
        windows.push(peer.connection.ruling(Variable::Cwnd).effective / 1000);
    }
    windows
}

#[test]
fn a_second_timeout_for_the_same_data_leaves_the_threshold() {
    for name in ["vegas", "nice"] {
        let mut extension = Setup::default().active();
        for choice in stack(&format!("{name}(poll=ack)")).unwrap() {
            extension.attach(choice.extension());
        }
        let native = compose(name).unwrap().congestion;
        let native = Setup::default().profile(|profile| profile.congestion = native).active();
        let [extension, native] = [extension, native].map(silenced);
        assert_eq!(extension, native, "{name}");
        assert!(extension.contains(&5), "{name}: {extension:?}");
    }
}

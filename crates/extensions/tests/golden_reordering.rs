//! RR as an extension and RR as a unit of the stack (`rr` in a profile): the same, packet by packet.
//!
//! Two connections transfer over paths that reorder by up to ten times their delay, lose and duplicate. Of every packet that leaves its time, its header and
//! its data are compared, and after every packet that arrives the threshold of duplicates that is used.

use crate::common::world::{Path, lossy, transfer};
use crate::common::{Peer, Setup};
use transom_extensions::stack;
use transom_tcp::State;
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::extension::Variable;

/// Window and threshold in segments, phase and timeouts. Nobody is woken any more for what closes a connection.
fn look(peer: &Peer) -> String {
    if peer.state() == State::Closed {
        return "closed".into();
    }
    let info = peer.info();
    let threshold = peer.connection.ruling(Variable::Dupthresh).effective;
    let window = info.cwnd / u64::from(info.mss);
    format!("cwnd {window} dupthresh {threshold} {} {}", info.phase.name(), info.counters.timeouts)
}

struct Run {
    trace: Vec<String>,
    highest: u64,
    recoveries: u64,
    timeouts: u64,
}

fn run(seed: u64, extension: bool, native: bool) -> Run {
    let mut setup = Setup::default();
    let text = if seed.is_multiple_of(3) { "sack" } else { "sack + dsack" };
    let units = compose(&if native { format!("{text} + rr") } else { text.into() }).unwrap();
    (setup.profile.undo, setup.profile.reordering) = (units.undo, units.reordering);
    setup.profile.extensions = stack(if extension { "rr" } else { "" }).unwrap();
    (setup.profile.r2, setup.profile.syn_r2) = (Some(40), 20);
    let loss = if seed.is_multiple_of(4) { 30 } else { 0 };
    let path = Path {
        loss,
        duplicate: 5,
        late: 10 + seed % 5 * 10,
        delay: 10_000,
        jitter: seed % 7 * 3000,
    };
    let mut world = lossy([&setup, &setup], path, seed);
    world.path.look = Some(look);
    transfer(&mut world, [300_000, 20_000], seed);
    let counters = [0, 1].map(|end| world.ends[end].info().counters);
    let threshold =
        |line: &String| line.split("dupthresh ").nth(1)?.split(' ').next()?.parse().ok();
    let highest = world.path.trace.iter().filter_map(threshold).max().unwrap();
    let sum = |count: fn(&transom_tcp::Counters) -> u64| counters.iter().map(count).sum();
    Run {
        highest,
        recoveries: sum(|counters| counters.fast_recoveries),
        timeouts: sum(|counters| counters.timeouts),
        trace: world.path.trace,
    }
}

/// They differ in one thing, which has to be so: an extension's threshold is at most the window (icTCP's Table 1), and the unit's is never below TCP's own
/// three. With a window of two segments that is two and three. Until there, and where it does not come to that, every line is the same.
#[test]
fn the_unit_does_what_the_extension_does() {
    let (mut same, mut highest, mut recoveries, mut timeouts) = (0, 0, [0, 0], 0);
    for seed in 0..100 {
        let [extension, native] = [run(seed, true, false), run(seed, false, true)];
        let different = extension.trace.iter().zip(&native.trace).find(|(one, other)| one != other);
        match different {
            None => {
                assert_eq!(extension.trace.len(), native.trace.len(), "seed {seed}");
                same += 1;
            }
            Some((one, other)) => {
                let narrow = one.contains("cwnd 2 dupthresh 2 ");
                let expected = one.replace("dupthresh 2 ", "dupthresh 3 ");
                assert!(narrow && *other == expected, "seed {seed}:\n{one}\n{other}");
            }
        }
        highest = highest.max(native.highest);
        recoveries[0] += run(seed, false, false).recoveries;
        recoveries[1] += native.recoveries;
        timeouts += native.timeouts;
    }
    println!(
        "{same} of 100 the same to the end, highest {highest}, {recoveries:?} recoveries, {timeouts} timeouts"
    );
    assert!(same >= 30, "{same} of 100 runs are the same to their end");
    assert!(highest > 10 && timeouts > 10, "the runs have what is compared: {highest} {timeouts}");
    assert!(recoveries[1] < recoveries[0], "and it does what it is for: {recoveries:?}");
}

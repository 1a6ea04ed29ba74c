//! Transfers between Transom and the kernel over paths that lose, reorder, duplicate, damage and delay packets, in real time.
//! Every byte must arrive once, in order and unharmed, in both directions, whoever opens the connection.
//!
//! Sizes are chosen by how fast Reno goes on such a path (about 1.2 · MSS / (RTT · √loss)), so that all of it takes a minute
//! or two.

use std::thread;

use crate::support::{Lab, ROLES, VERSIONS, both_ways};
use transom_lab::{PathConfig, PathReport};

const KIB: u64 = 1 << 10;

/// Both directions of the path alike, `bytes` each way, for both versions and roles at the same time.
fn transfer(link: &str, bytes: u64) -> Option<Vec<PathReport>> {
    thread::scope(|scope| {
        let mut runs = Vec::new();
        for version in VERSIONS {
            for role in ROLES {
                runs.push(scope.spawn(move || {
                    let seed = 1 + version as u64 * 2 + role as u64;
                    let config = PathConfig {
                        egress: link.parse().unwrap_or_else(|error| panic!("{error}")),
                        ingress: link.parse().unwrap_or_else(|error| panic!("{error}")),
                        seed,
                    };
                    let lab = Lab::behind(&config)?;
                    both_ways(&lab, version, role, bytes, true, seed);
                    let report = lab.monitor.as_ref().unwrap().report();
                    let damaged = lab.stack.counters().bad_checksum;
                    Some((report, damaged))
                }));
            }
        }
        let mut reports = Vec::new();
        let mut damaged = 0;
        for run in runs {
            let (report, bad) = run.join().unwrap()?;
            damaged += bad;
            reports.push(report);
        }
        // Damage by the links on the way here is found. Damage to an IPv4 header or to an address shows otherwise, and
        // some packets arrive after the end.
        let corrupted: u64 = reports.iter().map(|report| report.ingress.corrupted).sum();
        assert!(damaged <= corrupted);
        assert!(corrupted < 20 || damaged > corrupted / 2, "{damaged} of {corrupted}");
        Some(reports)
    })
}

/// Whether something happened on every link of every run: else the test has tested nothing.
fn everywhere(reports: &[PathReport], count: impl Fn(&transom_sim::link::Counters) -> u64) -> bool {
    reports.iter().all(|report| count(&report.egress) > 0 && count(&report.ingress) > 0)
}

#[test]
fn a_thousandth_lost_over_one_millisecond() {
    let Some(reports) = transfer("delay=1ms, loss=0.1%", 16 * 1024 * KIB) else { return };
    assert!(everywhere(&reports, |link| link.lost.packets));
}

#[test]
fn a_hundredth_lost_over_ten_milliseconds() {
    let Some(reports) = transfer("delay=10ms, loss=1%", 2048 * KIB) else { return };
    assert!(everywhere(&reports, |link| link.lost.packets));
}

#[test]
fn a_twentieth_lost_over_ten_milliseconds() {
    let Some(reports) = transfer("delay=5ms, loss=5%", 1024 * KIB) else { return };
    assert!(everywhere(&reports, |link| link.lost.packets));
}

#[test]
fn reordered() {
    let Some(reports) = transfer("delay=5ms, reorder=2% by 4ms", 4096 * KIB) else { return };
    assert!(everywhere(&reports, |link| link.reordered));
}

#[test]
fn jitter_that_reorders() {
    let link = "delay=5ms, jitter=uniform(0ms, 3ms), jitter-order=free";
    let Some(reports) = transfer(link, 4096 * KIB) else { return };
    assert!(everywhere(&reports, |link| link.delivered.packets));
}

#[test]
fn duplicated() {
    let Some(reports) = transfer("delay=2ms, duplicate=5%", 8192 * KIB) else { return };
    assert!(everywhere(&reports, |link| link.duplicated.packets));
}

#[test]
fn damaged() {
    let Some(reports) = transfer("delay=2ms, corrupt=1%", 4096 * KIB) else { return };
    assert!(everywhere(&reports, |link| link.corrupted));
}

#[test]
fn everything_at_once() {
    let link = "delay=10ms, jitter=uniform(2ms), loss=1%, duplicate=1%, corrupt=1%, \
                reorder=1% by 5ms";
    let Some(reports) = transfer(link, 1024 * KIB) else { return };
    assert!(everywhere(&reports, |link| link.lost.packets + link.corrupted));
}

#[test]
fn a_long_path() {
    let Some(reports) = transfer("delay=200ms", 2048 * KIB) else { return };
    assert!(everywhere(&reports, |link| link.delivered.packets));
}

#[test]
fn a_long_path_with_losses() {
    let Some(reports) = transfer("delay=100ms, loss=0.5%", 768 * KIB) else { return };
    assert!(everywhere(&reports, |link| link.delivered.packets));
}

#[test]
fn a_bottleneck_with_a_short_queue() {
    let link = "rate=20Mbit/s, delay=10ms, queue=30 packets";
    let Some(reports) = transfer(link, 4096 * KIB) else { return };
    assert!(reports.iter().all(|report| report.egress.queue_full.packets > 0), "{reports:?}");
}

//! What is seen of a link's window control, against values worked by hand.

use super::*;

/// Datagrams of 1000 bytes every 0.4 ms over a link that takes 0.8 ms for each, until its queue is full.
const OVERLOAD: &str = r#"
[scenario]
name = "overload"
duration = "80ms"
sample-interval = "9900us"
[hosts.a]
[hosts.b]
[routers.middle]
[[links]]
from = "a"
to = "middle"
[[links]]
name = "path"
from = "middle"
to = "b"
rate = "10Mbit/s"
queue = "50 packets"
there = { window = "target-window(upper=35 packets, lower=15 packets)" }
[[flows]]
name = "datagrams"
from = "a"
to = "b"
kind = "on-off-udp"
rate = "20Mbit/s"
payload = "972B"
on = "60s"
"#;

/// The i-th datagram, from zero, finds ⌈i/2⌉ − 1 of those before it waiting. Fewer than 15 are found by the first 31, of which each raises the target by
/// 1000/64, rounded down to 15 bytes. More than 35 are found from the 73rd on; each fifteenth of these, from the 87th, halves it, but not below 536 bytes.
#[test]
fn the_target_goes_by_the_papers_rule() {
    let seen = run(&resolved(OVERLOAD), 1);
    let way = |back: bool| {
        let is_it = |one: &&LinkObservations| one.name.as_str() == "path" && one.back == back;
        &seen.links.iter().find(is_it).unwrap().samples
    };
    let targets: Vec<u64> = way(false).iter().filter_map(|sample| sample.window?.target).collect();
    // Up to each sample, 25 more datagrams have come, less one now and then.
    let expected = [
        // The first comes at once.
        65_536 + 15,
        65_536 + 25 * 15,
        65_536 + 31 * 15,
        66_001,
        33_000,
        8_250,
        2_062,
        1_031,
        536,
    ];
    assert_eq!(targets, expected);
    assert!(way(true).iter().all(|sample| sample.window.is_none()));
}

#[test]
fn the_target_is_a_measure() {
    let bands = r#"
[[expect]]
measure = "window-target"
link = "path"
statistic = "min"
min = "536B"
max = "536B"
[[expect]]
measure = "window-target"
link = "path"
from = "19ms"
until = "60ms"
min = "1B"
[[expect]]
measure = "window-target"
link = "path"
reaches = "66kB"
max = "19800us"
[[expect]]
measure = "window-target"
link = "path"
stays-above = "1kB"
max = "1s"
[[expect]]
measure = "windows-rewritten"
link = "path"
max = 0
"#;
    let scenario = resolved(&format!("{OVERLOAD}{bands}"));
    let judged = judge(&scenario, &run(&scenario, 1));
    let values: Vec<Vec<f64>> = judged.iter().map(|one| one.values.clone()).collect();
    let mean = (66_001 + 66_001 + 33_000 + 8_250 + 2_062) as f64 / 5.0;
    // It does not stay above 1 kB, so there is no time from which on it does.
    assert_eq!(values, [vec![536.0], vec![mean], vec![19.8e6], vec![], vec![0.0]]);
    let passed: Vec<bool> = judged.iter().map(|one| one.passed).collect();
    assert_eq!(passed, [true, true, true, false, true]);
}

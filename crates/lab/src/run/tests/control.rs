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
there = { window = "target-window(upper=35 packets, lower=15 packets, rule=section-3.2)" }
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
    let expected = [
        // The first comes at once, and up to 9.9 ms there are 25.
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

/// Ten segments of 1460 bytes, each acknowledged, to a receiver that offers 20,000 bytes whatever it has.
const TRANSFER: &str = r#"
[scenario]
name = "transfer"
duration = "5s"
[hosts.a]
profile = { tcp = "minimal" }
[hosts.b]
profile = { tcp = "minimal + immediate-ack", recv-buffer = "20000B" }
[routers.middle]
[[links]]
from = "a"
to = "middle"
[[links]]
name = "path"
from = "middle"
to = "b"
rate = "10Mbit/s"
delay = "10ms"
there = { window = "target-window(upper=35 packets, lower=15 packets, initial=2kB, most=2kB, rule=section-3.2)" }
[[flows]]
name = "file"
from = "a"
to = "b"
kind = "transfer"
size = "14600B"
"#;

/// What is counted in a scenario: acknowledgements, those rewritten, flows, what is not known, what cannot be, what is held.
fn counts(scenario: &str, more: &str) -> Vec<f64> {
    let measures = [
        "acks-seen",
        "windows-rewritten",
        "flows-opened",
        "acks-unknown",
        "acks-implausible",
        "acks-held",
    ];
    let band =
        |one: &str| format!("[[expect]]\nmeasure = \"{one}\"\nlink = \"path\"\nmin = 0\n{more}");
    let scenario = resolved(&format!("{scenario}{}", measures.map(band).concat()));
    judge(&scenario, &run(&scenario, 1)).into_iter().flat_map(|one| one.values).collect()
}

/// The n-th acknowledgement of a segment may say 20,000 − 1460 n bytes, as what the SYN's answer has offered is not taken back. The receiver says
/// more each time. So all ten are rewritten. The last segment bears the FIN, and its acknowledgement the receiver's.
#[test]
fn every_acknowledgement_is_counted() {
    assert_eq!(counts(TRANSFER, ""), [10.0, 10.0, 1.0, 0.0, 0.0, 0.0]);
    // After the first second nothing happens.
    assert_eq!(counts(TRANSFER, "from = \"1s\"\n"), [0.0; 6]);
}

/// All ten segments come to the queue at once, where each takes 1.2 ms. The n-th acknowledgement is back 2.032 ms after its segment has gone: 8 − n are waiting
/// then, and as long as there are any it is held.
#[test]
fn held_acknowledgements_are_counted() {
    let text = TRANSFER.replace("delay = \"10ms\"", "delay = \"1ms\"");
    let (before, after) = text.split_once("target-window(").unwrap();
    let after = after.split_once(')').unwrap().1;
    let text = format!("{before}ack-delay(above=1B){after}");
    assert_eq!(counts(&text, ""), [10.0, 0.0, 0.0, 0.0, 0.0, 7.0]);
}

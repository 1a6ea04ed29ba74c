//! Window control on an emulated link, between hosts whose TCP is the kernel's.

use super::*;
use transom_sim::measure::LinkSample;

/// When slow start is over on this path.
const SLOW_START: Instant = Instant::from_millis(500);

/// What the link to the receiver saw with this policy, of a kernel's Reno that sends for as long as it runs; `None` where the machine did not let it.
fn bottleneck(policy: &str) -> Option<(Vec<LinkSample>, u64)> {
    let sender = "kind = \"kernel\"\ncongestion = \"reno\"";
    let link = format!(
        "rate = \"10Mbit/s\"\ndelay = \"2ms\"\nqueue = \"50 packets\"\nthere = {{ window = \"{policy}\" }}"
    );
    let text = pair(sender, KERNEL, &link, "4s", "kind = \"bulk\"\ncount = 4");
    let (emulated, _) = run_undisturbed(&text)?;
    let delivered = emulated.flows.iter();
    let delivered = delivered.filter_map(|flow| flow.samples.last()).map(|last| last.delivered);
    Some((emulated.links[0].samples.clone(), delivered.sum()))
}

fn overflows_after_slow_start(samples: &[LinkSample]) -> u64 {
    let overflows = |sample: &LinkSample| sample.counters.queue_full.packets;
    let before = samples.iter().rfind(|sample| sample.at <= SLOW_START).map_or(0, overflows);
    samples.last().map_or(0, overflows) - before
}

/// Section 4.1 of the paper on window control, with other numbers: drop-tail's queue overflows again and again, the controlled one not after slow
/// start, and the link stays as full.
#[test]
fn a_kernels_windows_are_brought_down() {
    if !allowed() {
        return;
    }
    let Some((without, delivered_without)) = bottleneck("none") else { return };
    let policy = "target-window(upper=25 packets, lower=10 packets, rule=section-3.2)";
    let Some((with, delivered)) = bottleneck(policy) else { return };
    assert!(overflows_after_slow_start(&without) > 0, "the queue was never full");
    assert_eq!(overflows_after_slow_start(&with), 0);
    assert!(delivered * 100 > delivered_without * 95, "{delivered}, {delivered_without} without");
    assert!(without.iter().all(|sample| sample.window.is_none()));
    let control = with.last().and_then(|sample| sample.window).unwrap();
    assert!(control.rewritten > 100, "{control:?}");
    assert_eq!((control.unknown, control.implausible), (0, 0), "{control:?}");
    assert!(control.target.is_some_and(|target| target < 65_536), "{control:?}");
}

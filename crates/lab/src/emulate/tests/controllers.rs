//! CUBIC and BBR: Transom's in the simulator and the kernel's in the emulator, on the same path, where the same packets are lost.
//!
//! The comparison does not depend on when the emulator's threads wake up: windows as shares of the window before the loss, as functions of
//! the time since; the bottleneck's rate, and what a controller derives from it; what comes round in cycles. The bands come from the
//! specifications and from how finely can be seen, and say so.

use super::traces::{Trace, w_cubic};
use super::*;
use crate::run::{Observations, RunOptions, simulate};
use transom_sim::measure::{FlowSample, SenderSample};

/// Transom to Transom, simulated.
fn simulated(profile: &str, link: &str, seconds: &str) -> Observations {
    let sender = format!("profile = {{ tcp = \"{profile}\" }}");
    let text = pair(&sender, "", link, seconds, "kind = \"bulk\"").replace("\"50ms\"", "\"10ms\"");
    let options = RunOptions::new(Path::new(""));
    simulate(&resolved(&text), 1, options, |_, _| true).unwrap().unwrap()
}

/// The kernel to the kernel, emulated; `None` where the machine did not let it.
fn emulated(congestion: &str, link: &str, seconds: &str) -> Option<Observations> {
    let sender = format!("kind = \"kernel\"\ncongestion = \"{congestion}\"");
    let text = pair(&sender, KERNEL, link, seconds, "kind = \"bulk\"");
    let text = text.replace("\"50ms\"", "\"10ms\"");
    run_undisturbed(&text).map(|(observations, _)| observations)
}

/// RFC 9438, section 4.6: the share that a loss leaves.
const BETA: f64 = 0.7;

/// Where a stage of CUBIC's congestion avoidance comes from and goes to, in segments, and when it begins.
struct Stage {
    begin: f64,
    epoch: f64,
    w_max: f64,
    /// K, in seconds (equation 2).
    k: f64,
}

impl Stage {
    /// The one after a loss, with a window below that of the loss before: fast convergence (section 4.7) makes W_max (1 + β)/2 of it. It begins
    /// when recovery ends, a round trip later.
    fn after(trace: &Trace, cut: usize, round: f64) -> Stage {
        let cut = &trace.cuts[cut];
        let w_max = cut.before * (1.0 + BETA) / 2.0;
        let k = ((w_max - cut.after) / 0.4).cbrt();
        Stage { begin: cut.at.as_secs_f64() + round, epoch: cut.after, w_max, k }
    }

    /// The window of a trace after this share of K.
    fn window(&self, trace: &Trace, share: f64) -> f64 {
        let at = self.begin + share * self.k;
        trace.at(Instant::from_micros((at * 1e6) as u64))
    }
}

/// Two packets are lost, on a way of 200 ms, where for seconds CUBIC's window is above what Reno's would be: one in slow start, and one while the
/// window is on its way back. The first loss comes at whatever window slow start has in that round trip. The second leaves β of the window (section
/// 4.6), and then everything follows from that window: W_max from fast convergence, K from both, and W(t) (section 4.2).
///
/// The bands. The rest of some hundred segments is β to within two segments, because the kernel's windows are whole segments. The window aims at
/// W_cubic(t + RTT), so it is not below W_cubic(t) nor above W_cubic(t + RTT), but for 3 %: two segments and a half of the least that there are, 80.
/// As shares of W_max, after the same shares of K, the two windows are the same function. Each may be 3 % from it, in opposite directions, so they
/// differ by 6 % at most.
#[test]
fn cubic_is_the_kernels_cubic() {
    if !allowed() {
        return;
    }
    let link = "delay = \"100ms\"\n[links.there]\nloss = \"packets(102, 1002)\"";
    let Some(theirs) = emulated("cubic", link, "9s") else { return };
    let ours = simulated("cubic", link, "9s");
    let round = 0.2;
    let traces = [&ours, &theirs].map(|seen| Trace::of(&seen.flows[0].samples));
    let stages = ["Transom", "the kernel"].into_iter().zip(&traces).map(|(whose, trace)| {
        eprintln!("{whose}: {:?}", trace.cuts);
        assert_eq!(trace.cuts.len(), 2, "{whose}");
        let left = trace.cuts[1].after / trace.cuts[1].before;
        assert!((BETA - 0.02..=BETA + 0.02).contains(&left), "{whose} keeps {left}");
        let stage = Stage::after(trace, 1, round);
        for tenths in 3..=14 {
            let t = f64::from(tenths) / 10.0 * stage.k;
            let low = w_cubic(t, stage.w_max, stage.epoch);
            let high = w_cubic(t + round, stage.w_max, stage.epoch);
            let window = stage.window(trace, f64::from(tenths) / 10.0);
            let band = 0.97 * low..=1.03 * high;
            assert!(band.contains(&window), "{whose}, {t:.2} s: {window:.1}, not within {band:?}");
        }
        stage
    });
    let [ours, theirs]: [Stage; 2] = stages.collect::<Vec<_>>().try_into().ok().unwrap();
    let mut widest: f64 = 0.0;
    for tenths in 3..=14 {
        let share = f64::from(tenths) / 10.0;
        let [our, their] = [(&ours, &traces[0]), (&theirs, &traces[1])]
            .map(|(stage, trace)| stage.window(trace, share) / stage.w_max);
        widest = widest.max((our / their - 1.0).abs());
    }
    eprintln!(
        "K is {:.2} s and {:.2} s; the two differ by {:.1} %",
        ours.k,
        theirs.k,
        100.0 * widest
    );
    assert!(widest <= 0.06, "{widest}");
}

/// A flow's samples between two times, in seconds, while it has a sender.
fn between(samples: &[FlowSample], from: f64, until: f64) -> Vec<(f64, SenderSample)> {
    let all = samples.iter().filter_map(|one| Some((one.at.as_secs_f64(), one.sender?)));
    all.filter(|(at, _)| (from..until).contains(at)).collect()
}

/// Not a number if there are none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What can be seen of BBR on a path whose bandwidth and delay are known.
#[derive(Debug)]
struct Model {
    /// Bits per second that arrive in PROBE_BW.
    goodput: f64,
    /// The window in PROBE_BW, in segments.
    window: f64,
    /// The median time from one probe for bandwidth to the next, in seconds.
    cycle: f64,
    /// What the window falls to for a loss, as shares of what it was.
    dips: Vec<f64>,
    /// From when to when the window is four segments, in seconds.
    probe_rtt: (f64, f64),
    /// The window after that, in segments.
    restored: f64,
}

impl Model {
    fn of(samples: &[FlowSample], losses: u64) -> Model {
        let segments = |bytes: u64, one: &SenderSample| bytes as f64 / f64::from(one.mss);
        let window = |one: &SenderSample| segments(one.cwnd, one);
        let steady = between(samples, 1.5, 9.8);
        let usual = median(steady.iter().map(|(_, one)| window(one)).collect());
        // A probe fills the path by a quarter more, which then drains.
        let flights: Vec<_> =
            steady.iter().map(|(at, one)| (*at, segments(one.in_flight, one))).collect();
        let cruising = median(flights.iter().map(|(_, flight)| *flight).collect());
        let (mut probes, mut probing) = (Vec::new(), false);
        for (at, flight) in flights {
            if !probing && flight > 1.09 * cruising {
                probes.push(at);
            }
            probing = flight > if probing { 1.06 } else { 1.09 } * cruising;
        }
        let cycles = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // The least window within a few round trips of a retransmission.
        let resent: Vec<f64> = samples
            .windows(2)
            .filter(|pair| pair[1].sent.retransmissions > pair[0].sent.retransmissions)
            .map(|pair| pair[1].at.as_secs_f64())
            .collect();
        assert_eq!(samples.last().unwrap().sent.retransmissions, Some(losses));
        let dips = resent.iter().map(|&at| {
            let near = between(samples, at - 0.02, at + 0.2);
            near.iter().map(|(_, one)| window(one)).fold(f64::INFINITY, f64::min) / usual
        });
        let least: Vec<f64> = between(samples, 9.0, 14.0)
            .iter()
            .filter(|(_, one)| (window(one) - 4.0).abs() < 0.01)
            .map(|(at, _)| *at)
            .collect();
        let ends = [least.first(), least.last()].map(|at| at.copied().unwrap_or(f64::NAN));
        let probe_rtt = (ends[0], ends[1]);
        let after = between(samples, probe_rtt.1 + 0.2, 13.9);
        let [first, last] = [1.5, 9.8]
            .map(|at| samples.iter().rev().find(|one| one.at.as_secs_f64() <= at).unwrap());
        let bits = (last.delivered - first.delivered) as f64 * 8.0;
        Model {
            goodput: bits / last.at.since(first.at).as_secs_f64(),
            window: usual,
            cycle: median(cycles),
            dips: dips.collect(),
            probe_rtt,
            restored: median(after.iter().map(|(_, one)| window(one)).collect()),
        }
    }
}

/// The bottleneck takes 833 packets a second, and the way there and back takes 40 ms, and 41.2 ms for a packet that is serialised: 34 packets. Two packets
/// are lost while the flow probes for bandwidth.
///
/// What follows from the draft (draft-cardwell-iccrg-bbr-congestion-control-00), and the bands:
/// - *The rate* is the bottleneck's (section 4.1.1): 95 % of it at least, as probing leaves nothing unused on average.
/// - *The window* is twice the product of 34 segments, and three quanta of two segments (4.2.3.2): 74, and 75 by rounding up. The kernel rounds up to an even number, adds two
///   while it probes, and what acknowledgements had gathered at most of late, which on a machine that stands still for 10 ms is nine segments: up
///   to a quarter more.
/// - *The cycle* has eight phases of one round trip (4.3.4.2), the least of 40 ms, and at most one with the queue that probing makes, 50 ms: 320 to
///   400 ms, and 10 ms for when samples are taken, either way. Transom's only: the kernel's sends more while acknowledgements gather, and which of its
///   peaks is a probe is not to be seen for sure.
/// - *A loss* reduces the window to what is in flight for one round trip (4.2.3.4), and then it is what it was. In flight are three to five quarters of the
///   product, and the window is 2.2 to 2.75 products: a share of 0.27 to 0.57, and more by what is acknowledged until it is seen, 0.65. The kernel's flight is
///   larger by what acknowledgements have gathered, on a busy machine nearly as large as its window: 0.95.
/// - *PROBE_RTT* begins when the least round-trip time was not seen for ten seconds (4.3.5). It was seen in the first round trips, before there was a
///   queue, at 0.3 s at the latest, and it takes a round trip to notice. It lasts until the flight has fallen to four segments, a round trip with
///   what is in the queue, and 200 ms and a round trip from then. Then the window is what it was, to a tenth. The kernel's has the part of what
///   acknowledgements have gathered before and after, and either may be a quarter more.
#[test]
fn bbr_is_the_kernels_bbr() {
    if !allowed() {
        return;
    }
    let link = "rate = \"10Mbit/s\"\ndelay = \"20ms\"\nqueue = \"500 packets\"\n\
                [links.there]\nloss = \"packets(3000, 5000)\"";
    let Some(theirs) = emulated("bbr", link, "14s") else { return };
    let ours = simulated("bbr + pacing", link, "14s");
    let [ours, theirs] = [&ours, &theirs].map(|seen| Model::of(&seen.flows[0].samples, 2));
    eprintln!("Transom: {ours:?}\nthe kernel: {theirs:?}");
    for (whose, model) in [("Transom", &ours), ("the kernel", &theirs)] {
        let rate = 10e6 * 1448.0 / 1500.0;
        assert!((0.95 * rate..=1.005 * rate).contains(&model.goodput), "{whose}: {model:?}");
        assert_eq!(model.dips.len(), 2, "{whose}: {model:?}");
        assert!(model.dips.iter().all(|dip| (0.27..=0.95).contains(dip)), "{whose}: {model:?}");
        let (from, until) = model.probe_rtt;
        assert!((10.0..=10.5).contains(&from), "{whose}: {model:?}");
        assert!((0.2..=0.4).contains(&(until - from)), "{whose}: {model:?}");
    }
    let back = |model: &Model| model.restored / model.window;
    assert!((0.9..=1.1).contains(&back(&ours)), "{ours:?}");
    assert!((0.8..=1.25).contains(&back(&theirs)), "{theirs:?}");
    assert!((0.31..=0.41).contains(&ours.cycle), "{ours:?}");
    assert!(ours.dips.iter().all(|dip| *dip <= 0.65), "{ours:?}");
    assert!((74.0..=76.0).contains(&ours.window), "{ours:?}");
    let more = theirs.window / ours.window;
    assert!((0.97..=1.25).contains(&more), "{more}");
}

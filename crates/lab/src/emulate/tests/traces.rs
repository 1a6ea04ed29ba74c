//! The windows of a kernel's TCP, seen through the emulator, against Transom's in the simulator and against an RFC's equation.

use super::*;
use transom_sim::measure::FlowSample;

/// A loss that was noticed.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) at: Instant,
    /// The window at the sample before it, and the threshold after it, in segments.
    pub(super) before: f64,
    pub(super) after: f64,
}

/// A flow's window over time, in segments.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) windows: Vec<(Instant, f64)>,
    pub(super) cuts: Vec<Cut>,
}

impl Trace {
    pub(super) fn of(samples: &[FlowSample]) -> Trace {
        let seen: Vec<_> = samples
            .iter()
            .filter_map(|one| Some((one.at, one.sender?, one.sent.retransmissions?)))
            .collect();
        let segments = |bytes: u64, mss: u32| bytes as f64 / f64::from(mss);
        let cuts = seen.windows(2).filter_map(|pair| {
            let [(_, before, sent_again), (at, after, now_sent_again)] = pair else { return None };
            (now_sent_again > sent_again).then_some(Cut {
                at: *at,
                before: segments(before.cwnd, before.mss),
                after: segments(after.ssthresh?, after.mss),
            })
        });
        Trace {
            cuts: cuts.collect(),
            windows: seen.iter().map(|(at, one, _)| (*at, segments(one.cwnd, one.mss))).collect(),
        }
    }

    /// The window at a time, as of the sample before.
    pub(super) fn at(&self, at: Instant) -> f64 {
        self.windows.iter().rev().find(|(time, _)| *time <= at).map_or(f64::NAN, |(_, cwnd)| *cwnd)
    }

    /// By how many segments per `round` the window grows between two times.
    fn slope(&self, from: Instant, until: Instant, round: Duration) -> f64 {
        let rounds = until.since(from).as_secs_f64() / round.as_secs_f64();
        (self.at(until) - self.at(from)) / rounds
    }
}

/// The packets of a flow that are lost, counted from its SYN.
const LOST: [u32; 3] = [102, 1002, 2402];

/// From noticing one loss to noticing the next, a sender has sent as many packets as are between the two that were lost, and what was in
/// flight at the second more, and less what was in flight at the first, which is twice the threshold. A window that grows by one segment per round
/// trip from w to W sends (W² - w²)/2 meanwhile, and w in each round trip in which it does not grow: that of recovery, that of the first
/// window after it, and another for what is seen late. Windows are known to a segment.
fn may_have_sent(between: f64, cuts: &[Cut], whose: &str) {
    let (w, most) = (cuts[0].after, cuts[1].before);
    let sent = between + most - 2.0 * w;
    let grown = |w: f64, most: f64| (most.powi(2) - w.powi(2)) / 2.0;
    let band = grown(w + 1.0, most - 1.0)..=grown(w, most + 1.0) + 3.0 * w;
    assert!(band.contains(&sent), "{whose}: {sent} packets, not {band:?}: {cuts:?}");
}

/// The same packets are lost of Transom's Reno in the simulator and of the kernel's in the emulator. In both there is nothing that takes time
/// but 20 ms each way.
///
/// The bands. The first loss is in slow start, in whose round trip the window goes from 80 segments to 112, and it is noticed somewhere in between,
/// wherever acknowledgements are when it is. The threshold is half of 80 to 112, and from there on the two differ. After that the window changes
/// slowly: each loss halves it (RFC 5681, equation 4) to 10 %, and in between it grows by one segment per round trip (RFC 5681, section 3.1) to 15
/// %. How many packets are sent between two losses is known ([`may_have_sent`]), which ties the windows to each other. And what the first loss made
/// different has nearly gone by the third: by the same arithmetic 15 segments more after the first are 4 % more before the third, and the band is
/// 10 %.
#[test]
fn the_same_losses_make_the_same_sawtooth() {
    if !allowed() {
        return;
    }
    let [first, second, third] = LOST;
    let link =
        format!("delay = \"20ms\"\n[links.there]\nloss = \"packets({first}, {second}, {third})\"");
    let round = Duration::from_millis(40);
    let scenario = |host: &str| {
        pair(host, host, &link, "4s", "kind = \"bulk\"").replace("\"50ms\"", "\"10ms\"")
    };
    let simulated = resolved(&scenario(""));
    let simulated =
        crate::run::simulate(&simulated, 1, RunOptions::new(Path::new("")), |_, _| true)
            .unwrap()
            .unwrap();
    let kernel = scenario("kind = \"kernel\"\ncongestion = \"reno\"");
    let Some((emulated, _)) = run_undisturbed(&kernel) else { return };
    let traces = [&simulated, &emulated].map(|seen| Trace::of(&seen.flows[0].samples));
    for (whose, trace) in ["Transom", "the kernel"].into_iter().zip(&traces) {
        let shown: Vec<String> = trace
            .cuts
            .iter()
            .map(|cut| format!("{:?}: {:.1} to {:.1}", cut.at, cut.before, cut.after))
            .collect();
        eprintln!("{whose}: {}", shown.join(", "));
        assert_eq!(trace.cuts.len(), 3, "{whose}");
        assert!((40.0..=56.0).contains(&trace.cuts[0].after), "{whose}");
        for cut in &trace.cuts[1..] {
            let ratio = cut.after / cut.before;
            assert!((0.45..=0.55).contains(&ratio), "{whose}: {cut:?}");
        }
        for (pair, lost) in trace.cuts.windows(2).zip(LOST.windows(2)) {
            may_have_sent(f64::from(lost[1] - lost[0]), pair, whose);
            // Recovery takes a round trip, and one more until the window is what it should be.
            let from = pair[0].at + round + round + round;
            let slope = trace.slope(from, pair[1].at - Duration::from_millis(10), round);
            assert!((0.85..=1.15).contains(&slope), "{whose}: {slope} segments per round trip");
        }
    }
    let [ours, theirs] = traces.map(|trace| trace.cuts[2].before);
    assert!((0.9..=1.1).contains(&(theirs / ours)), "{ours} and {theirs} segments at the end");
    // The segments that were sent again are those that were lost.
    for seen in [&simulated, &emulated] {
        let last = seen.flows[0].samples.last().unwrap();
        assert_eq!((last.sent.retransmissions, last.sent.timeouts.unwrap_or(0)), (Some(3), 0));
    }
}

/// RFC 9438: W_cubic(t) = C·(t − K)³ + W_max (equation 1), K = ∛((W_max − cwnd_epoch)/C) (equation 2), C = 0.4, β = 0.7.
pub(super) fn w_cubic(t: f64, w_max: f64, epoch: f64) -> f64 {
    const C: f64 = 0.4;
    let k = ((w_max - epoch) / C).cbrt();
    C * (t - k).powi(3) + w_max
}

/// One packet of the kernel's CUBIC is lost, on a way of 200 ms, where for seconds its window is above what Reno's would be. The loss is in the round
/// trip in which slow start goes from 80 segments to 110, so the threshold is β of something in between, and W_max is the threshold over β. From
/// there the window aims at W_cubic(t + RTT) (section 4.4), which it reaches within a round trip. It is nowhere below W_cubic(t) and nowhere above
/// W_cubic(t + RTT), but for 3 %, which are the two segments that rounding and sampling every 20 ms can make of 77.
#[test]
fn a_kernels_cubic_follows_the_rfcs_curve() {
    if !allowed() {
        return;
    }
    const BETA: f64 = 0.7;
    let link = "delay = \"100ms\"\n[links.there]\nloss = \"packets(102)\"";
    let cubic = "kind = \"kernel\"\ncongestion = \"cubic\"";
    let text = pair(cubic, KERNEL, link, "7s", "kind = \"bulk\"").replace("\"50ms\"", "\"20ms\"");
    let Some((emulated, _)) = run_undisturbed(&text) else { return };
    let trace = Trace::of(&emulated.flows[0].samples);
    let [cut] = &trace.cuts[..] else { panic!("{:?}", trace.cuts) };
    let (w_max, epoch) = (cut.after / BETA, cut.after);
    eprintln!("at {:?} from {w_max:.1} to {epoch:.1} segments", cut.at);
    // Section 4.6. The window was what it was at the sample before, or has grown since; HyStart may have made it grow slowly.
    assert!((BETA * (cut.before - 1.0)..=BETA * 112.0).contains(&epoch), "{cut:?}");
    // The epoch begins when recovery ends, a round trip after the loss was noticed.
    let round = 0.2;
    let begin = cut.at.as_secs_f64() + round;
    let mut compared = 0;
    for (at, window) in &trace.windows {
        let t = at.as_secs_f64() - begin;
        if t < 2.0 * round {
            continue;
        }
        let expected = w_cubic(t, w_max, epoch);
        // Section 4.3, equation 4: where Reno would have more, it is Reno's.
        let reno = epoch + 3.0 * (1.0 - BETA) / (1.0 + BETA) * t / round;
        if reno > expected {
            break;
        }
        let aim = w_cubic(t + round, w_max, epoch);
        let band = 0.97 * expected..=1.03 * aim;
        assert!(band.contains(window), "at {t:.2} s: {window:.1}, which is not within {band:?}");
        compared += 1;
    }
    eprintln!("{compared} windows are on the curve");
    assert!(compared > 100, "{compared}");
}

#[test]
fn w_cubic_by_hand() {
    // W_max = 100 and cwnd_epoch = 70: K = ∛75 = 4.217.
    assert!((w_cubic(0.0, 100.0, 70.0) - 70.0).abs() < 1e-9);
    assert!((w_cubic(4.217_163_326_508_746, 100.0, 70.0) - 100.0).abs() < 1e-9);
    assert!((w_cubic(1.0, 100.0, 70.0) - 86.68).abs() < 0.01);
}

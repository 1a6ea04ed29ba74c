//! What holds for every congestion control algorithm, whatever the path, the peer and the clock do.
//!
//! Acknowledgements, losses, timeouts, marks, undos and idle times in any order, with any numbers: nothing panics, cwnd is one segment at
//! least and never absurd, ssthresh is two segments at least. And each algorithm's text, read again, is the same text.

use proptest::prelude::*;
use transom_tcp::arguments::{ArgumentError, Arguments};
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::congestion::{
    ALGORITHMS, CongestionChoice, CongestionControl, CongestionEvent, Window,
};
use transom_tcp::slow_start::{SlowStart, Standard};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{AckContext, Estimate, LostTransmission, Pos, RateSample};
use transom_wire::Timestamps;

fn read(text: &str) -> Result<CongestionChoice, ArgumentError> {
    let mut arguments = Arguments::read(text)?;
    let name = arguments.choice();
    let entry = ALGORITHMS.iter().find(|entry| entry.name == name).expect("a known name");
    let choice = (entry.read)(&mut arguments)?;
    arguments.finish()?;
    Ok(choice)
}

/// Parameters at the edges of what each algorithm takes.
const TEXTS: &[&str] = &[
    "none",
    "reno",
    "cubic",
    "cubic(c=0.000001)",
    "cubic(c=100, beta=0.000001, fast-convergence=off, beyond-prior=off, before-loss=1)",
    "cubic(beta=0.999999)",
    "ltcp",
    "ltcp(rule=double, layers=12)",
    "ltcp(beta=0.4, rule=double, wt=1, layers=30)",
    "ltcp(thresholds=50/200/500/1000)",
    "ltcp(beta=0.046, layers=64)",
    "ltcp(beta=0.999999, layers=2)",
    "highspeed",
    "scalable",
    "scalable(a=1, b=0.999999, low=0)",
    "scalable(a=0.000001, low=18446744073709551615)",
    "bic",
    "bic(smax=18446744073709551615, smin=0.000001, beta=0.999999, low=0)",
    "bic(smax=1, smin=1)",
    "htcp",
    "multcp",
    "multcp(n=1000)",
    "multcp(n=1)",
    "westwood",
    "westwood(filter=0)",
    "vegas",
    "vegas(alpha=0, beta=0, gamma=0)",
    "vegas(alpha=1000000, beta=1000000)",
    "fast",
    "fast(alpha=1000000, gamma=1)",
    "nice",
    "nice(fraction=0, threshold=0)",
    "lp",
    "lp(threshold=0, delay=round-trip)",
    "ledbat",
    "ledbat(target=1ns, gain=0.000001, slow-start=on)",
    "ledbat(target=25ms, delay=round-trip)",
    "ledbat++",
    "ledbat++(target=1ns)",
    "ledbat++(target=1s)",
    "dctcp",
    "dctcp(g=1, alpha=0)",
    "dctcp(g=0.000001)",
    "prague",
    "prague(g=1, alpha=0, rtt=1ms, fallback=off)",
    "prague(rtt=100ms)",
    "bbr",
    "bbr(phase=6)",
    "bbr3",
];

/// Every algorithm is there with its defaults, and its name is its text.
#[test]
fn names() {
    for entry in ALGORITHMS {
        let choice = read(entry.name).unwrap();
        assert_eq!((choice.name(), choice.to_string()), (entry.name, entry.name.to_string()));
        assert!(!entry.source.is_empty() && !entry.summary.is_empty());
        let same = ALGORITHMS.iter().filter(|other| other.name == entry.name).count();
        assert_eq!(same, 1, "{}", entry.name);
        assert!(TEXTS.contains(&entry.name), "{} is not in the list above", entry.name);
        let error = read(&format!("{}(no-such=1)", entry.name)).unwrap_err();
        assert!(matches!(error, ArgumentError::Unknown { .. }), "{error}");
    }
}

/// A text with parameters that differ is its choice's text; written, read and written again it stays the same.
#[test]
fn texts() {
    for &text in TEXTS {
        let choice = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(choice.to_string(), text);
        let again = read(&choice.to_string()).unwrap();
        assert_eq!((again.to_string(), &again), (choice.to_string(), &choice));
    }
    // Written otherwise it is the same choice.
    for (text, short) in [
        ("cubic(c=0.4, beta=70%)", "cubic"),
        ("ltcp(layers=18,wt=50,rule=paper)", "ltcp"),
        ("ledbat(target=0.1s)", "ledbat"),
        ("multcp( n = 3 )", "multcp(n=3)"),
    ] {
        assert_eq!(read(text).unwrap().to_string(), short);
    }
}

/// Each text is also a word of a composed profile.
#[test]
fn words() {
    for &text in TEXTS.iter().filter(|text| **text != "none") {
        let profile = compose(&format!("sack + {text} + prr")).unwrap();
        assert_eq!(profile.congestion.to_string(), text);
    }
}

/// Parameters that cannot work are refused, with the numbers.
#[test]
fn refusals() {
    for (text, reason) in [
        ("cubic(c=0)", "cubic: c is above 0 and at most 100, not 0"),
        ("cubic(beta=1)", "cubic: beta is between 0 and 1, not 1"),
        ("ltcp(layers=1)", "ltcp: there are between 2 and 64 layers, not 1"),
        (
            "ltcp(beta=0.2)",
            "ltcp: beta = 0.2 has to be below 0.2 for layer 14: a loss at W_14 = 22750 could cost more than one layer, \
             as W_13 = 18200 (equation 12)",
        ),
        (
            "ltcp(thresholds=50/x)",
            "ltcp: thresholds are packets, written like thresholds=50/200/500",
        ),
        (
            "scalable(a=2)",
            "scalable: a is above 0 and at most 1, b between 0 and 1, not 2 and 0.125",
        ),
        ("bic(smin=33)", "bic: smin is above 0 and at most smax, not 33 with smax = 32"),
        ("multcp(n=0)", "multcp: n is between 1 and 1000, not 0"),
        ("westwood(filter=1)", "westwood: filter is below 1, not 1"),
        ("vegas(alpha=5)", "vegas: alpha is at most beta, not 5 with beta = 4"),
        ("nice(fraction=1)", "nice: fraction and threshold are below 1, not 1 and 0.1"),
        ("lp(threshold=1)", "lp: threshold is below 1, not 1"),
        ("ledbat(target=101ms)", "ledbat: target is above 0 and at most 100ms, not 101ms"),
        ("ledbat(gain=0)", "ledbat: gain is above 0 and at most 1, not 0"),
        ("ledbat++(target=2s)", "ledbat++: target is above 0 and at most 1s, not 2s"),
        ("fast(alpha=0)", "fast: alpha is between 1 and 1000000, not 0"),
        ("fast(gamma=0)", "fast: gamma is above 0 and at most 1, not 0"),
        ("dctcp(g=0)", "dctcp: g is above 0 and, as alpha, at most 1, not 0 and 1"),
        ("prague(g=0)", "prague: g is above 0 and, as alpha, at most 1, not 0 and 1"),
        ("prague(rtt=101ms)", "prague: rtt is at most 100ms, not 101ms"),
        ("bbr(phase=7)", "bbr: phase is between 0 and 6, not 7"),
        ("ltcp(thresholds=50/200, wt=9)", "ltcp has no parameter `wt`; it has beta, thresholds"),
    ] {
        assert_eq!(read(text).unwrap_err().to_string(), reason, "{text}");
    }
}

/// Something that happens to a controller.
#[derive(Clone, Debug)]
enum Step {
    Ack(Box<AckContext>),
    Event(CongestionEvent),
    Lost(LostTransmission),
    /// The window as it was so many steps ago comes back.
    Undo(usize),
}

/// Small numbers, plausible ones, and any.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => 0u64..4,
        5 => 1u64..3000,
        5 => 1u64..20_000_000,
        1 => any::<u64>(),
    ]
}

fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![
        6 => 1_000u64..400_000_000,
        1 => Just(0u64),
        1 => 0u64..3_000_000_000_000,
        1 => any::<u64>(),
    ]
    .prop_map(Duration::from_nanos)
}

fn ack() -> impl Strategy<Value = AckContext> {
    let amounts = (number(), number(), number(), number(), number(), number());
    let times = (
        prop_oneof![8 => 0u64..500_000_000, 1 => any::<u64>()],
        proptest::option::of(span()),
        proptest::option::of(span()),
        proptest::option::of(span()),
        span(),
    );
    let flags = any::<[bool; 6]>();
    let stamps = proptest::option::of((any::<u32>(), any::<u32>()));
    let rate = proptest::option::of((number(), span(), number(), number(), number()));
    (amounts, times, flags, stamps, rate).prop_map(
        |((acked, sacked, lost, flight, after, delivered), times, flags, stamps, rate)| {
            let (at, rtt, srtt, min_rtt, _) = times;
            AckContext {
                now: Instant::from_nanos(at), // later: an offset from the last one
                una: Pos::FIRST_DATA + acked,
                nxt: Pos::FIRST_DATA + flight,
                acked,
                sacked,
                lost,
                duplicate: flags[0],
                has_sack: sacked > 0,
                included_retransmission: flags[1],
                rtt,
                estimate: srtt.map(|srtt| Estimate { srtt, rttvar: srtt.over(2) }),
                min_rtt,
                timestamps: stamps.map(|(value, echo)| Timestamps { value, echo }),
                round_start: flags[2],
                delivered,
                recovering: flags[3] && flags[1],
                rate: rate.map(|(delivered, interval, prior_delivered, in_flight, lost)| {
                    RateSample {
                        delivered,
                        interval,
                        prior_delivered,
                        in_flight,
                        lost,
                        app_limited: flags[0],
                    }
                }),
                prior_in_flight: flight,
                in_flight: after,
                cwnd_limited: flags[4],
                ecn_echo: flags[5],
                mss: 1000,
                ..AckContext::default()
            }
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => ack().prop_map(|ack| Step::Ack(Box::new(ack))),
        1 => number().prop_map(|flight| Step::Event(CongestionEvent::Loss { flight })),
        1 => (number(), any::<bool>())
            .prop_map(|(flight, first)| Step::Event(CongestionEvent::Timeout { flight, first })),
        1 => number().prop_map(|flight| Step::Event(CongestionEvent::Ecn { flight })),
        1 => number().prop_map(|flight| Step::Event(CongestionEvent::RecoveryEnd { flight })),
        1 => (number(), number(), any::<bool>()).prop_map(|(cwnd, ssthresh, idle)| {
            Step::Event(CongestionEvent::Unvalidated { cwnd, ssthresh, idle })
        }),
        1 => Just(Step::Event(CongestionEvent::HandshakeLoss)),
        1 => (1usize..20).prop_map(Step::Undo),
        2 => ((number(), number()), number(), number(), number(), any::<bool>()).prop_map(
            |((start, bytes), in_flight, lost, delivered, app_limited)| {
                let start = Pos::FIRST_DATA + start;
                Step::Lost(LostTransmission {
                    now: Instant::ZERO, // later: the present
                    range: start..start + bytes,
                    in_flight,
                    lost,
                    delivered,
                    app_limited,
                })
            },
        ),
    ]
}

/// As the connection does it: first the samples, then growth.
fn acknowledge(controller: &mut dyn CongestionControl, window: &mut Window, ack: &AckContext) {
    controller.on_sample(window, ack);
    if ack.acked == 0 || !ack.cwnd_limited || ack.recovering {
        return;
    }
    let mut acked = ack.acked;
    if window.in_slow_start() && !controller.has_own_slow_start() {
        acked = Standard::default().grow(window, acked, ack);
    }
    if acked > 0 {
        controller.on_ack(window, acked, ack);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn nothing_breaks_a_controller(
        which in 0..TEXTS.len(),
        mss in prop_oneof![1u32..10, 500u32..9000, Just(65_535u32)],
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let choice = read(TEXTS[which]).unwrap();
        let mut controller = choice.controller();
        let mut window = Window::initial(mss);
        let mut now = Instant::from_secs(1);
        controller.on_start(&mut window, now);
        let mut history = vec![window];
        for step in steps {
            match step {
                Step::Ack(mut ack) => {
                    now += Duration::from_nanos(ack.now.as_nanos());
                    ack.now = now;
                    ack.mss = mss;
                    acknowledge(&mut controller, &mut window, &ack);
                }
                Step::Event(event) => controller.on_event(&mut window, event, now),
                Step::Lost(lost) => {
                    controller.on_lost(&mut window, &LostTransmission { now, ..lost });
                }
                Step::Undo(ago) => {
                    let prior = history[history.len().saturating_sub(ago)..][0];
                    controller.on_undo(&mut window, prior, now);
                }
            }
            let segment = u64::from(mss);
            prop_assert!(window.cwnd >= segment, "{choice}: cwnd {} of {mss}", window.cwnd);
            prop_assert!(window.cwnd <= Window::WIDEST, "{choice}: cwnd {}", window.cwnd);
            prop_assert!(window.ssthresh >= 2 * segment, "{choice}: {}", window.ssthresh);
            prop_assert_eq!(window.mss, mss);
            if let Some(rate) = controller.pacing_rate(&window) {
                prop_assert!(rate > 0, "{} stops", &choice);
            }
            history.push(window);
        }
    }
}

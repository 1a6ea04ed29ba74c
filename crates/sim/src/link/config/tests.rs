//! Options as people write them, and the errors they get.

use transom_tcp::time::Duration;

use super::*;

fn config(text: &str) -> LinkConfig {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> String {
    text.parse::<LinkConfig>().map(|config| panic!("{text} is {config:?}")).unwrap_err().to_string()
}

#[test]
fn the_empty_text_is_the_perfect_link() {
    assert_eq!(config(""), LinkConfig::default());
    assert_eq!(serde_json::from_str::<LinkConfig>("{}").unwrap(), LinkConfig::default());
}

#[test]
fn a_command_line() {
    let parsed = config(
        "rate=10Mbit/s, policer=5Mbit/s burst 20kB, delay=20ms, delay-spread=3ms, queue=64KiB, loss=gilbert(1%, 25%, 50%), duplicate=0.1%, \
         window=target-window(upper=40kB, lower=20kB), \
         bleach=ce + ect1, corrupt=0.2% by 3 bits, reorder=1% by 5ms, jitter=uniform(2ms), jitter-order=free, mtu=1500",
    );
    let percent = |n| Probability::ratio(n, 100);
    let expected = LinkConfig {
        rate: Rate::from_bits_per_sec(10_000_000),
        rate_trace: None,
        rate_trace_sha256: None,
        policer: Some("5Mbit/s burst 20kB".parse().unwrap()),
        queue: crate::units::Limit::Bytes(65_536).into(),
        window: Some("target-window(upper=40kB, lower=20kB)".parse().unwrap()),
        delay: Duration::from_millis(20),
        delay_spread: Duration::from_millis(3),
        jitter: Some(Jitter::Uniform { min: Duration::ZERO, max: Duration::from_millis(2) }),
        jitter_order: JitterOrder::Free,
        loss: Loss::GilbertElliott {
            good_to_bad: percent(1),
            bad_to_good: percent(25),
            bad_loss: percent(50),
            good_loss: Probability::ZERO,
        },
        duplicate: Probability::ratio(1, 1000),
        bleach: "ect1 + ce".parse().unwrap(),
        corrupt: Corrupt { probability: Probability::ratio(1, 500), bits: 3 },
        reorder: Reorder { probability: percent(1), extra: Duration::from_millis(5).into() },
        mtu: NonZeroU32::new(1500),
    };
    assert_eq!(parsed, expected);
}

#[test]
fn a_configuration_file() {
    let parsed: LinkConfig = serde_json::from_str(
        r#"{"rate": "10Mbit/s", "delay": "20ms", "queue": "64KiB", "loss": "packets(3, 7, 20-29)",
            "duplicate": 0.001, "jitter-order": "free", "mtu": 1500}"#,
    )
    .unwrap();
    let expected = config(
        "rate=10Mbit/s, delay=20ms, queue=64KiB, loss=packets(3, 7, 20-29), duplicate=0.1%, \
         jitter-order=free, mtu=1500 bytes",
    );
    assert_eq!(parsed, expected);
}

#[test]
fn a_configuration_file_with_a_mistake_says_what_to_write() {
    let error = |json: &str| serde_json::from_str::<LinkConfig>(json).unwrap_err().to_string();
    assert!(error(r#"{"rat": "1Mbit/s"}"#).contains("unknown field `rat`"));
    assert!(error(r#"{"rate": 10}"#).contains("expected a rate such as \"10Mbit/s\""));
    assert!(error(r#"{"rate": "0Mbit/s"}"#).contains("at least 1bit/s"));
    assert!(
        error(r#"{"delay": "20"}"#).contains("needs a unit to be a duration: one of ns, us, ms")
    );
    assert!(error(r#"{"loss": "101%"}"#).contains("out of range for a probability"));
    assert!(error(r#"{"mtu": 0}"#).contains("nonzero"));
    assert!(error(r#"{"jitter-order": "maybe"}"#).contains("expected `keep` or `free`"));
}

#[test]
fn a_command_line_with_a_mistake_says_what_to_write() {
    assert_eq!(
        error("rate=0Mbit/s"),
        "link option `rate`: `0Mbit/s` is out of range for a rate: at least 1bit/s (for a link without \
         a rate limit, leave the rate out)"
    );
    assert_eq!(
        error("rate=10Mbit/s, speed=3"),
        "there is no link option `speed`: the options are rate, rate-trace, policer, queue, window, delay, delay-spread, jitter, jitter-order, \
         loss, duplicate, bleach, corrupt, reorder, mtu"
    );
    assert_eq!(error("fast"), "`fast` is not a link option: write NAME=VALUE, such as delay=20ms");
    assert_eq!(error("delay=1ms, delay=2ms"), "the link option `delay` is given twice");
    assert_eq!(
        error("reorder=1%"),
        "link option `reorder`: `1%` is not a reordering: write PROBABILITY by DURATION, such as 1% by \
         10ms, or by a distribution, such as 1% by normal(25ms, 8ms)"
    );
    for (text, part) in [
        ("reorder=1% by 0ms", "not reordered"),
        ("loss=often", "gilbert("),
        ("loss=gilbert(1%)", "gilbert("),
        ("loss=gilbert(1%, 0%)", "never leave the bad state"),
        ("loss=packets(9-3)", "packets(3, 7, 20-29)"),
        ("loss=packets(some)", "packets(3, 7, 20-29)"),
        ("loss=120%", "from 0 to 1"),
        ("jitter=5ms", "uniform(MAX)"),
        ("jitter=uniform(5ms, 2ms)", "exceeds"),
        ("jitter=pareto(5ms, 0)", "from 0.001"),
        ("jitter=pareto(5ms, 1.5, 1ms)", "exceeds"),
        ("jitter=triangular(1ms)", "uniform(MAX)"),
        ("jitter-order=no", "keep or free"),
        ("bleach=ect2", "ect1 + ce"),
        ("corrupt=1% by 0 bits", "from 1 to 64"),
        ("corrupt=1% by 65 bits", "from 1 to 64"),
        ("mtu=0", "above zero"),
        ("queue=100", "needs a unit"),
    ] {
        assert!(error(text).contains(part), "{text}: {}", error(text));
    }
}

#[test]
fn setting_fails_without_changing_anything() {
    let mut changed = config("delay=1ms");
    assert!(changed.set("delay", "soon").is_err());
    assert_eq!(changed, config("delay=1ms"));
}

/// The random part is drawn once, uniformly, and is the same for both directions.
#[test]
fn a_spread_of_the_delay_is_drawn_for_a_link() {
    let drawn = |text: &str, seed: u64| {
        let mut config = config(text);
        config.settle_delay(|| crate::random::Streams::new(seed).rng(0, 6));
        assert!(config.delay_spread.is_zero());
        config.delay.as_nanos()
    };
    let delays: Vec<u64> =
        (0..1000).map(|seed| drawn("delay=1ms, delay-spread=2ms", seed)).collect();
    assert!(delays.iter().all(|delay| (1_000_000..3_000_000).contains(delay)));
    let mean = delays.iter().sum::<u64>() / 1000;
    assert!((1_950_000..2_050_000).contains(&mean), "{mean}");
    assert_eq!(drawn("delay=1ms, delay-spread=2ms", 7), delays[7], "again");
    // Twice the spread, twice the part.
    let twice = drawn("delay=1ms, delay-spread=4ms", 7) - 1_000_000;
    assert!(twice.abs_diff(2 * (delays[7] - 1_000_000)) <= 1);
    let mut fixed = config("delay=1ms");
    fixed.settle_delay(|| panic!("a link without a spread draws nothing"));
    assert_eq!(fixed, config("delay=1ms"));
}

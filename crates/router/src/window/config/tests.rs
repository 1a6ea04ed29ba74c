//! Policies as text.

use std::string::ToString;

use super::super::Rule;
use super::*;
use crate::queue::Threshold;

fn read(text: &str) -> PolicyConfig {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> ControlConfigError {
    match text.parse::<PolicyConfig>() {
        Err(error) => error,
        Ok(config) => panic!("{text} was read as {config}"),
    }
}

#[test]
fn every_form_reads_back() {
    for text in [
        "target-window(upper=35 packets, lower=15 packets)",
        "target-window(upper=70kB, lower=30kB, halve-after=15kB, raise=1/8, initial=10kB, most=64KiB, rule=section-3.2, naive)",
        "target-window(upper=35 packets, lower=15 packets, rule=section-3.2, syn-windows)",
        "fair-share(queue=20kB, syn-windows)",
        "explicit-window(queue=50 packets)",
        "explicit-window(queue=50 packets, mss=1000B, interval=20ms)",
        "ack-delay(above=20kB)",
        "ack-delay(above=20kB, rate=10Mbit/s, most=100ms)",
        "fair-share(queue=20kB)",
        "fair-share(queue=20kB, rate=1500bit/s, rtt=20ms)",
        "none",
    ] {
        let config = read(text);
        assert_eq!(read(&config.to_string()), config, "{text} became {config}");
    }
    assert_eq!(
        read("target-window(lower=15 packets, upper=35 packets)").to_string(),
        "target-window(upper=35 packets, lower=15 packets, halve-after=15 packets, raise=1/64, initial=64KiB, \
         most=1MiB)"
    );
}

#[test]
fn some_policies_have_a_target() {
    for (text, has) in [
        ("target-window(upper=35 packets, lower=15 packets)", true),
        ("explicit-window(queue=50 packets)", true),
        ("ack-delay(above=20kB)", false),
        ("fair-share(queue=20kB)", false),
        ("none", false),
    ] {
        let config = read(text).on_link(10_000_000);
        assert_eq!(config.has_target(), has, "{text}");
        assert_eq!(config.build().unwrap().target().is_some(), has, "{text}");
    }
}

#[test]
fn three_policies_remember_no_flows() {
    for (text, remembers) in [
        ("target-window(upper=35 packets, lower=15 packets)", true),
        ("target-window(upper=35 packets, lower=15 packets, naive)", false),
        ("explicit-window(queue=50 packets)", false),
        ("ack-delay(above=20kB)", false),
        ("fair-share(queue=20kB)", true),
        ("none", true),
    ] {
        let policy = read(text).on_link(10_000_000).build().unwrap();
        assert_eq!(policy.per_flow(), remembers, "{text}");
    }
}

#[test]
fn the_paper_s_parameters() {
    let expected = TargetWindowConfig {
        upper: Threshold::Packets(35),
        lower: Threshold::Packets(15),
        halve_after: Threshold::Packets(15),
        raise_shift: 6,
        initial: NonZeroU64::new(65_536).unwrap(),
        most: NonZeroU64::new(1_048_576).unwrap(),
        rule: Rule::AppendixB,
        syn_windows: false,
        naive: false,
    };
    let config = read("target-window(upper=35 packets, lower=15 packets)");
    assert_eq!(config, PolicyConfig::TargetWindow(expected));
}

#[test]
fn senseless_configurations_are_refused() {
    for (text, said) in [
        ("red(5)", "`red(5)` is not a window policy"),
        ("target-window(upper=35 packets", "is not a window policy"),
        (
            "target-window(upper=35 packets)",
            "target-window needs `lower`, such as lower=15 packets",
        ),
        ("ack-delay", "ack-delay needs `above`"),
        ("none()", "`none()` is not a window policy"),
        ("none(upper=3 packets)", "is not a window policy"),
        (
            "target-window(upper=15 packets, lower=15 packets)",
            "`lower` (15 packets) must be below its `upper` (15 packets)",
        ),
        ("target-window(upper=30kB, lower=15 packets)", "must both count packets, or both bytes"),
        ("target-window(upper=0 packets, lower=0 packets)", "`upper` must be above zero"),
        (
            "target-window(upper=40kB, lower=0B)",
            "`lower` must be above zero: no queue is shorter, so the target could never rise",
        ),
        ("target-window(upper=2 packets, lower=0 packets)", "`lower` must be above zero"),
        (
            "target-window(upper=3 packets, lower=1 packet, halve-after=0B)",
            "`halve-after` must be above zero",
        ),
        (
            "target-window(upper=3 packets, lower=1 packet, initial=2MiB)",
            "`initial` (2097152 B) is above its `most` (1048576 B)",
        ),
        (
            "target-window(upper=3 packets, lower=1 packet, raise=1/63)",
            "`1/63` is not a value of target-window's `raise`",
        ),
        ("target-window(upper=3, lower=1 packet)", "`3` is not a value of target-window's `upper`"),
        (
            "target-window(upper=3 packets, lower=1 packet, lower=2 packets)",
            "`lower` is given twice",
        ),
        (
            "target-window(upper=3 packets, lower=1 packet, naive, syn-windows)",
            "`syn-windows` needs a flow table, which `naive` does not have",
        ),
        ("fair-share(queue=1kB, syn-windows=2)", "write true or false"),
        ("ack-delay(above=1kB, syn-windows)", "has no parameter `syn-windows`"),
        ("explicit-window(queue=9 packets, syn-windows)", "has no parameter `syn-windows`"),
        ("target-window(above=3)", "has no parameter `above`: it has upper, lower"),
        ("explicit-window(queue=0 packets)", "`queue` must be above zero"),
        (
            "explicit-window(queue=10 packets, mss=70000B)",
            "`70000B` is not a value of explicit-window's `mss`",
        ),
        ("fair-share(queue=1kB, rate=0bit/s)", "`0bit/s` is not a value of fair-share's `rate`"),
        ("fair-share(queue=1kB, rtt=0ms)", "`rtt` must be above zero"),
    ] {
        let error = refused(text).to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn a_threshold_beyond_the_queue_is_refused() {
    let policy = read("target-window(upper=50 packets, lower=15 packets)");
    assert_eq!(policy.fits(Limit::Packets(51)), Ok(()));
    let error = policy.fits(Limit::Packets(50)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a queue limited to 50 packets never exceeds target-window's `upper` (50 packets); lower it"
    );
    // Nothing is known of packets in a queue that counts bytes.
    assert_eq!(policy.fits(Limit::Bytes(1000)), Ok(()));
    assert!(read("ack-delay(above=20kB)").fits(Limit::Bytes(20_000)).is_err());
}

#[test]
fn the_link_s_rate() {
    let policy = read("fair-share(queue=20kB)");
    assert!(matches!(policy.build(), Err(ControlConfigError::Missing { parameter: "rate", .. })));
    assert_eq!(policy.on_link(1_000_000), read("fair-share(queue=20kB, rate=1Mbit/s)"));
    let given = read("fair-share(queue=20kB, rate=2Mbit/s)");
    assert_eq!(given.on_link(1_000_000), given);
    assert!(given.build().is_ok());
}

#[test]
fn bounds_of_a_control() {
    let sound = ControlConfig::new(read("ack-delay(above=1kB)"));
    let refused = |change: fn(&mut ControlConfig)| {
        let mut config = sound;
        change(&mut config);
        config.validate().unwrap_err().to_string()
    };
    assert_eq!(sound.validate(), Ok(()));
    assert!(refused(|config| config.idle = Duration::from_millis(999)).contains("a second"));
    assert!(refused(|config| config.flows = u32::MAX).contains("at most 16777216 flows"));
    assert!(refused(|config| config.mss = 0).contains("`mss` must be above zero"));
}

/// The table in the documentation names the parameters that there are.
#[test]
fn the_table_has_every_parameter() {
    for name in ["target-window", "explicit-window", "ack-delay", "fair-share"] {
        let ControlConfigError::Argument(ArgumentError::Unknown { known, .. }) =
            refused(&std::format!("{name}(nothing)"))
        else {
            panic!("{name} has a parameter `nothing`");
        };
        let named = |line: &&str| line.contains(&std::format!("`{name}`"));
        let mut rows =
            include_str!("../config.rs").lines().filter(|line| line.starts_with("/// | "));
        let row = rows.find(named).unwrap_or_else(|| panic!("{name} is not in the table"));
        for parameter in known {
            assert!(row.contains(&std::format!("`{parameter}`")), "{name}: {parameter}");
        }
    }
}

//! Queues as text.

use std::string::ToString;

use transom_base::arguments::Fraction;

use super::*;
use crate::probability::Probability;
use crate::queue::Threshold;

fn read(text: &str) -> Config {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> ConfigError {
    match text.parse::<Config>() {
        Err(error) => error,
        Ok(config) => panic!("{text} was read as {config}"),
    }
}

#[test]
fn the_form_in_the_documentation() {
    let expected = RedConfig {
        limit: Limit::Packets(50),
        min: Threshold::Packets(6),
        max: Threshold::Packets(18),
        weight: Probability::ratio(1, 100),
        max_p: Probability::ratio(1, 20),
        packet_size: 1000,
        transmission: Some(Duration::from_micros(800)),
        gentle: true,
        ecn: true,
    };
    let text = "red(50 packets, min=6, max = 18, w=0.01, p=1/20, packet=1000B, transmission=0.8ms, gentle, ecn)";
    assert_eq!(read(text).0, Choice::Red(expected));
    let text = "red(min=30kB, max=90 kB, limit=200kB, gentle=false)";
    let expected = RedConfig {
        limit: Limit::Bytes(200_000),
        min: Threshold::Bytes(30_000),
        max: Threshold::Bytes(90_000),
        ..RedConfig::default()
    };
    assert_eq!(read(text).0, Choice::Red(expected));
    let expected = CoDelConfig {
        target: Duration::from_millis(13),
        interval: Duration::from_millis(200),
        mtu: 9000,
        ecn: true,
        ..CoDelConfig::default()
    };
    assert_eq!(read("codel(target=13ms, interval=0.2s, mtu=9000, ecn)").0, Choice::CoDel(expected));
    let expected = PieConfig {
        limit: Limit::Unlimited,
        target: Duration::from_millis(20),
        update: Duration::from_millis(30),
        burst: Duration::from_millis(100),
        alpha: Fraction::from_millionths(250_000),
        beta: Fraction::from_millionths(2_500_000),
        bytes: true,
        packet_size: 1000,
        departure_rate: true,
        derandomize: true,
        ecn: true,
        ecn_limit: Probability::ratio(1, 5),
    };
    let text = "pie(unlimited, target=20ms, update=30ms, burst=100ms, alpha=0.25, beta=2.5, bytes, packet=1kB, \
                departure-rate, derandomize, ecn, ecn-limit=20%)";
    assert_eq!(read(text).0, Choice::Pie(expected));
}

#[test]
fn a_limit_alone_is_drop_tail() {
    assert_eq!(read("100 packets").0, Choice::DropTail { limit: Limit::Packets(100) });
    assert_eq!(read("drop-tail(64KiB)").0, Choice::DropTail { limit: Limit::Bytes(65_536) });
    assert_eq!(read("drop-head").0, Choice::DropHead { limit: Limit::default() });
    assert_eq!(read("unlimited").to_string(), "drop-tail(unlimited)");
}

#[test]
fn the_defaults_are_those_of_the_papers() {
    assert_eq!(
        read("red").to_string(),
        "red(1000 packets, min=5, max=15, w=0.002, p=0.02, packet=1500B)"
    );
    assert_eq!(
        read("codel").to_string(),
        "codel(1000 packets, target=5ms, interval=100ms, mtu=1500B)"
    );
    assert_eq!(
        read("pie").to_string(),
        "pie(1000 packets, target=15ms, update=15ms, burst=150ms, alpha=0.125, beta=1.25, packet=1500B, \
         ecn-limit=0.1)"
    );
    assert_eq!(
        read("fq-codel").to_string(),
        "fq-codel(10240 packets, flows=1024, target=5ms, interval=100ms, quantum=1514B, mtu=1500B, ecn=true)"
    );
    assert_eq!(
        read("dualpi2").to_string(),
        "dualpi2(10000 packets, target=15ms, update=16ms, alpha=0.16, beta=3.2, coupling=2, threshold=800us, \
         range=400us, mtu=1500B, classic=0.0625, ecn=true)"
    );
    assert_eq!(
        read("cake").to_string(),
        "cake(4MiB, flows=1024, overhead=0, mpu=0B, rtt=100ms, isolation=triple, ecn=true)"
    );
    assert_eq!(
        read("fq").to_string(),
        "fq(10000 packets, flow-limit=100, quantum=3028B, initial-quantum=15140B, refill=40ms)"
    );
}

#[test]
fn displayed_configurations_read_back() {
    for text in [
        "drop-tail(1 packet)",
        "drop-head(100kB)",
        "red(90 packets, min=1, max=2, w=1, p=1/3, transmission=7ns, gentle, ecn)",
        "red(limit=1MiB, min=1501B, max=64KiB, ecn)",
        "codel(target=1us, interval=33ms, mtu=0, ecn)",
        "pie(target=1ms, burst=0, beta=0, bytes, departure-rate, derandomize, ecn, ecn-limit=1/7)",
        "fq-codel(1MiB, flows=7, quantum=300B, ce-threshold=1ms, l4s, ecn=false)",
        "dualpi2(target=5ms, coupling=3, threshold=0, range=0, classic=1/7, ecn=false)",
        "cake(bandwidth=18.5Mbit/s, overhead=-4, mpu=84, isolation=destination, rtt=30ms)",
        "fq(100kB, flow-limit=3, maxrate=1500bit/s, refill=0, ce-threshold=5ms)",
    ] {
        let config = read(text);
        assert_eq!(read(&config.to_string()), config, "{config}");
    }
}

#[test]
fn nonsense_is_refused_with_what_to_write_instead() {
    for text in ["", "fifo", "red(min=1", "100", "(", "red)", "drop tail"] {
        assert!(matches!(refused(text), ConfigError::NotAQueue(_)), "{text}");
    }
    for text in ["codel(gentle)", "red(5)", "drop-tail(ecn)", "pie(ecn, 100 packets)", "red(,)"] {
        assert!(
            matches!(refused(text), ConfigError::Argument(ArgumentError::Unknown { .. })),
            "{text}"
        );
    }
    for text in [
        "red(min=x)",
        "red(gentle=maybe)",
        "red(p=2)",
        "red(w=-1)",
        "codel(target=5)",
        "codel(mtu=5 packets)",
        "pie(alpha=1Hz)",
        "pie(limit=3)",
        "red(min=unlimited)",
        "codel(target)",
        "fq-codel(flows=-1)",
        "dualpi2(classic=2)",
        "cake(bandwidth=5)",
        "cake(isolation=hosts)",
        "fq(maxrate=0bit/s)",
    ] {
        assert!(
            matches!(refused(text), ConfigError::Argument(ArgumentError::Value { .. })),
            "{text}"
        );
    }
    assert!(matches!(
        refused("red(gentle, gentle)"),
        ConfigError::Argument(ArgumentError::Twice { .. })
    ));
    assert!(matches!(
        refused("red(9 packets, limit=9 packets)"),
        ConfigError::Argument(ArgumentError::Twice { .. })
    ));
    for text in ["red(min=3kB)", "red(min=3, max=9kB)", "red(max=9kB, min=3 packets)"] {
        assert_eq!(refused(text), ConfigError::MixedUnits, "{text}");
    }
    assert_eq!(
        refused("codel(target=5)").to_string(),
        "`5` is not a value of codel's `target`: write 20ms or 1.5s"
    );
    assert_eq!(
        refused("codel(gentle)").to_string(),
        "codel has no parameter `gentle`: it has limit, target, interval, mtu, ecn"
    );
}

#[test]
fn impossible_parameters_are_refused() {
    let cases = [
        ("red(min=15, max=15)", ConfigError::Thresholds { min: 15, max: 15 }),
        ("red(5 packets)", ConfigError::NeverReached { min: 5, limit: 5 }),
        ("red(w=0)", ConfigError::Zero { parameter: "w" }),
        ("red(p=0)", ConfigError::Zero { parameter: "p" }),
        ("red(packet=0)", ConfigError::Zero { parameter: "packet" }),
        ("red(transmission=0)", ConfigError::Zero { parameter: "transmission" }),
        (
            "red(limit=unlimited, max=274877906944)",
            ConfigError::TooLarge { parameter: "max", most: 274_877_906_943 },
        ),
        ("codel(target=0)", ConfigError::Zero { parameter: "target" }),
        ("codel(target=101ms)", ConfigError::TargetAboveInterval),
        ("pie(target=0)", ConfigError::Zero { parameter: "target" }),
        ("pie(update=0)", ConfigError::Zero { parameter: "update" }),
        ("pie(alpha=0)", ConfigError::Zero { parameter: "alpha" }),
        ("pie(packet=0)", ConfigError::Zero { parameter: "packet" }),
        ("fq-codel(flows=0)", ConfigError::Zero { parameter: "flows" }),
        ("fq-codel(flows=65537)", ConfigError::TooLarge { parameter: "flows", most: 65_536 }),
        ("fq-codel(quantum=0)", ConfigError::Zero { parameter: "quantum" }),
        ("dualpi2(target=0)", ConfigError::Zero { parameter: "target" }),
        ("dualpi2(coupling=0)", ConfigError::Zero { parameter: "coupling" }),
        ("dualpi2(classic=0)", ConfigError::Zero { parameter: "classic" }),
        ("cake(flows=7)", ConfigError::Zero { parameter: "flows" }),
        ("cake(rtt=0)", ConfigError::Zero { parameter: "rtt" }),
        ("fq(flow-limit=0)", ConfigError::Zero { parameter: "flow-limit" }),
    ];
    for (text, expected) in cases {
        assert_eq!(refused(text), expected, "{text}");
    }
}

#[test]
fn a_link_tells_red_how_long_a_packet_takes() {
    let transmission = |config: Config| match config.0 {
        Choice::Red(red) => red.transmission,
        other => panic!("{other:?}"),
    };
    // 12,000 bits at 10 Mbit/s.
    assert_eq!(transmission(read("red").on_link(10_000_000)), Some(Duration::from_micros(1200)));
    let given = read("red(transmission=1ms)");
    assert_eq!(given.on_link(10_000_000), given);
    // No rate, or one beyond the clock: the shortest time there is.
    assert_eq!(transmission(read("red").on_link(0)), Some(Duration::from_nanos(1)));
    assert_eq!(transmission(read("red").on_link(u64::MAX)), Some(Duration::from_nanos(1)));
    assert_eq!(read("codel").on_link(1), read("codel"));
}

#[test]
fn a_parameter_that_cannot_be_set_changes_nothing() {
    let mut config = read("red(min=30kB, max=90kB)");
    let before = config;
    for (parameter, value) in [("min", "5s"), ("w", "x"), ("target", "5ms"), ("limit", "lots")] {
        assert!(config.set(parameter, value).is_err());
        assert_eq!(config, before);
    }
    config.set("max", "60kB").unwrap();
    config.set("gentle", "true").unwrap();
    assert_eq!(config, read("red(min=30kB, max=60kB, gentle)"));
}

/// The table in the documentation names the parameters that there are.
#[test]
fn the_table_has_every_parameter() {
    let names =
        ["drop-tail", "drop-head", "red", "codel", "pie", "fq-codel", "dualpi2", "cake", "fq"];
    for name in names {
        let ConfigError::Argument(ArgumentError::Unknown { known, .. }) =
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

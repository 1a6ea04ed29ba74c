//! Texts and the integers they stand for, worked out by hand.

use proptest::prelude::*;
use transom_tcp::time::Duration;

use super::*;

fn rate(text: &str) -> u64 {
    text.parse::<Rate>().map_or_else(|error| panic!("{text}: {error}"), Rate::bits_per_sec)
}

#[test]
fn rates() {
    for (text, bits) in [
        ("10Mbit/s", 10_000_000),
        ("1.5 Gb/s", 1_500_000_000),
        (" 64kbps ", 64_000),
        ("1e9 bit/s", 1_000_000_000),
        ("2.5e-1 Mbit", 250_000),
        ("1.25MB/s", 10_000_000),
        ("1KiB/s", 8_192),
        ("1Mibit/s", 1_048_576),
        ("1bit/s", 1),
        ("33.333333kbit/s", 33_333),
    ] {
        assert_eq!(rate(text), bits, "{text}");
    }
}

#[test]
fn nonsense_rates_say_what_to_write() {
    let error = |text: &str| text.parse::<Rate>().unwrap_err();
    assert!(matches!(error("fast"), UnitError::Malformed { .. }));
    assert!(matches!(error(""), UnitError::Malformed { .. }));
    assert!(matches!(error("-1Mbit/s"), UnitError::Malformed { .. }));
    assert!(matches!(error("10"), UnitError::Unit { .. }));
    assert!(matches!(error("10 parsecs"), UnitError::Unit { .. }));
    assert!(matches!(error("1.2.3Mbit/s"), UnitError::Unit { .. }));
    assert!(matches!(error("0Mbit/s"), UnitError::OutOfRange { .. }));
    assert!(matches!(error("0.1bit/s"), UnitError::OutOfRange { .. }));
    assert!(matches!(error("1e30Tbit/s"), UnitError::OutOfRange { .. }));
    assert_eq!(
        error("10").to_string(),
        "`10` needs a unit to be a rate: one of bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s (also b/s, bps, \
         and B/s for bytes)"
    );
}

#[test]
fn durations() {
    for (text, nanos) in [
        ("20ms", 20_000_000),
        ("1.5 s", 1_500_000_000),
        ("250us", 250_000),
        ("250µs", 250_000),
        ("0.5min", 30_000_000_000),
        ("7ns", 7),
        ("1.4999ns", 1),
        ("1.5ns", 2),
        ("0", 0),
        ("0ms", 0),
    ] {
        assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanos)), "{text}");
    }
    assert!(matches!(parse_duration("20"), Err(UnitError::Unit { .. })));
    assert!(matches!(parse_duration("soon"), Err(UnitError::Malformed { .. })));
    assert!(matches!(parse_duration("0.1ns"), Err(UnitError::OutOfRange { .. })));
    assert!(matches!(parse_duration("1e12s"), Err(UnitError::OutOfRange { .. })));
}

fn from_json(text: &str) -> serde_json::Result<Probability> {
    probability_text::deserialize(&mut serde_json::Deserializer::from_str(text))
}

#[test]
fn probabilities_are_exact_and_agree_however_written() {
    let parts = |text: &str| text.parse::<Probability>().map(Probability::parts).unwrap();
    assert_eq!(parts("50%"), 1 << 62);
    assert_eq!(parts("0.5"), 1 << 62);
    assert_eq!(parts("25%"), 1 << 61);
    assert_eq!(parts("100%"), 1 << 63);
    assert_eq!(parts("1"), 1 << 63);
    assert_eq!(parts("0"), 0);
    // 2^63 × 0.005 = 46116860184273879.04
    assert_eq!(parts("0.5%"), 46_116_860_184_273_879);
    assert_eq!(parts("0.005"), parts("0.5%"));
    assert_eq!(parts("5e-3"), parts("0.5%"));
    // 2^63 × 10^-12 = 9223372.04
    assert_eq!(parts("1e-12"), 9_223_372);
    assert_eq!(from_json("0.005").unwrap().parts(), parts("0.5%"));
    assert_eq!(from_json("1").unwrap(), Probability::ONE);
}

#[test]
fn nonsense_probabilities_are_errors() {
    let error = |text: &str| text.parse::<Probability>().unwrap_err();
    assert!(matches!(error("101%"), UnitError::OutOfRange { .. }));
    assert!(matches!(error("1.5"), UnitError::OutOfRange { .. }));
    assert!(matches!(error("1e-30"), UnitError::OutOfRange { .. }));
    assert!(matches!(error("-1%"), UnitError::Malformed { .. }));
    assert!(matches!(error("1 in 3"), UnitError::Malformed { .. }));
    assert!(from_json("-1").is_err());
    assert_eq!("25%".parse(), Ok(Probability::ratio(1, 4)));
}

#[test]
fn queue_limits() {
    for (text, limit) in [
        ("100 packets", Limit::Packets(100)),
        ("1 packet", Limit::Packets(1)),
        ("100p", Limit::Packets(100)),
        ("64KiB", Limit::Bytes(65_536)),
        ("64 kB", Limit::Bytes(64_000)),
        ("1.5MB", Limit::Bytes(1_500_000)),
        ("0 packets", Limit::Packets(0)),
        ("unlimited", Limit::Unlimited),
    ] {
        assert_eq!(text.parse(), Ok(limit), "{text}");
    }
    assert!(matches!("100".parse::<Limit>(), Err(UnitError::Unit { .. })));
    assert!(matches!("many".parse::<Limit>(), Err(UnitError::Malformed { .. })));
    assert!(matches!("0.2 packets".parse::<Limit>(), Err(UnitError::OutOfRange { .. })));
}

#[test]
fn values_print_in_the_largest_unit_that_divides_them() {
    assert_eq!("10Mbit/s".parse::<Rate>().unwrap().to_string(), "10Mbit/s");
    assert_eq!("1.5Gb/s".parse::<Rate>().unwrap().to_string(), "1500Mbit/s");
    assert_eq!("0.5%".parse::<Probability>().unwrap().to_string(), "0.005");
    assert_eq!(DurationText(Duration::from_micros(1500)).to_string(), "1500us");
    assert_eq!("65536B".parse::<Limit>().unwrap().to_string(), "64KiB");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_and_value_are_inverse(value in 0u64.., exponent in 0u32..64) {
        let value = value >> exponent;
        if let Some(rate) = Rate::from_bits_per_sec(value) {
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }
        let duration = Duration::from_nanos(value);
        prop_assert_eq!(parse_duration(&DurationText(duration).to_string()), Ok(duration));
        for limit in [Limit::Packets(value), Limit::Bytes(value)] {
            prop_assert_eq!(limit.to_string().parse(), Ok(limit));
        }
        let probability = Probability::ratio(value, u64::MAX);
        prop_assert_eq!(probability.to_string().parse(), Ok(probability));
    }

    #[test]
    fn no_text_panics(text in ".*") {
        let _ = text.parse::<Rate>();
        let _ = text.parse::<Probability>();
        let _ = text.parse::<Limit>();
        let _ = parse_duration(&text);
    }

    #[test]
    fn no_number_panics(text in "[0-9]{0,25}[.]?[0-9]{0,25}(e[+-]?[0-9]{0,12})?(%|ms|Mbit/s|KiB)?") {
        let _ = text.parse::<Rate>();
        let _ = text.parse::<Probability>();
        let _ = text.parse::<Limit>();
        let _ = parse_duration(&text);
    }
}

//! For every scenario, the canonical form of its canonical form is the same, and is a scenario.

use super::*;
use proptest::prelude::*;

#[track_caller]
fn stands_still(text: &str) {
    for variant in Scenario::parse("test.toml", text).unwrap().sweep() {
        let canonical = variant.resolved.to_toml();
        let again = resolved(&canonical);
        assert_eq!(again, variant.resolved);
        assert_eq!(again.to_toml(), canonical);
        assert_eq!(again.to_json(), variant.resolved.to_json());
        assert_eq!(again.id(7, "1.0", false), variant.resolved.id(7, "1.0", false));
    }
}

#[test]
fn templates_stand_still() {
    for (_, template) in TEMPLATES {
        stands_still(template);
    }
}

/// The bytes themselves: they are the same on every machine, and so is the identity.
#[test]
fn the_canonical_form_is_this() {
    let one = resolved(&minimal(
        "[[expect]]\nmeasure = \"goodput\"\nmin = \"9.0 Mbit/s\"\n[measure]\nflows = [\"cwnd\", \"goodput\"]\nlinks = []",
    ));
    assert_eq!(
        one.to_toml(),
        r#"[scenario]
name = "test"
duration = "10s"
warm-up = "0ms"
sample-interval = "100ms"

[hosts.a]
kind = "transom"
mtu = 1500

[hosts.b]
kind = "transom"
mtu = 1500

[[links]]
name = "a-b"
from = "a"
to = "b"

[links.there]
rate = "10Mbit/s"
queue = "1000 packets"
delay = "10ms"
jitter-order = "keep"
loss = "0"
duplicate = "0"
corrupt = "0 by 1 bits"
reorder = "0 by 0ms"

[links.back]
rate = "10Mbit/s"
queue = "1000 packets"
delay = "10ms"
jitter-order = "keep"
loss = "0"
duplicate = "0"
corrupt = "0 by 1 bits"
reorder = "0 by 0ms"

[[flows]]
name = "bulk"
from = "a"
to = "b"
start = "0ms"
kind = "bulk"

[measure]
flows = ["goodput", "cwnd"]
links = []
capture = []
log = []

[[expect]]
measure = "goodput"
flows = ["bulk"]
statistic = "each"
from = "0ms"
until = "10s"
min = "9Mbit/s"
"#
    );
}

#[test]
fn the_identity_is_of_what_decides_the_outcome() {
    let id = |text: &str| resolved(text).id(1, "1.0", false);
    let text = minimal("");
    let same = id(&text);
    assert_eq!(same.to_string().len(), 64);
    assert_eq!(same.short(), same.to_string()[..12]);
    // Written in another way, called something else, drawn otherwise, expected to do something else.
    for (from, to) in [
        ("10Mbit/s", "10000 kbit/s"),
        ("[hosts.a]\n[hosts.b]", "[hosts.b]\n[hosts.a]\nmtu = 1500"),
        ("name = \"test\"", "name = \"other\"\ntitle = \"Title\"\ndescription = \"…\""),
        ("kind = \"bulk\"", "kind = \"bulk\"\n[measure]\nflows = []\nlinks = []"),
        (
            "kind = \"bulk\"",
            "kind = \"bulk\"\n[[expect]]\nmeasure = \"goodput\"\nmin = \"1Mbit/s\"",
        ),
    ] {
        assert!(text.contains(from));
        assert_eq!(id(&text.replacen(from, to, 1)), same, "{to}");
    }
    for (from, to) in [
        ("10Mbit/s", "11Mbit/s"),
        ("duration = \"10s\"", "duration = \"11s\""),
        ("[hosts.b]", "[hosts.b]\nprofile = { tcp = \"sack\" }"),
        ("kind = \"bulk\"", "kind = \"bulk\"\nstart = \"1s\""),
        ("kind = \"bulk\"", "kind = \"bulk\"\n[measure]\ncapture = [\"a-b\"]"),
    ] {
        assert!(text.contains(from));
        assert_ne!(id(&text.replacen(from, to, 1)), same, "{to}");
    }
    let one = resolved(&text);
    assert_ne!(one.id(2, "1.0", false), same);
    assert_ne!(one.id(1, "1.1", false), same);
    // An emulated run is another run.
    assert_ne!(one.id(1, "1.0", true), same);
    assert_ne!(one.id(1, "1.0", true), one.id(2, "1.0", true));
}

/// Scenarios put together from pieces, all of them right.
fn scenario() -> impl Strategy<Value = String> {
    let topology = prop_oneof![
        (1..4u32).prop_map(|n| (
            format!("kind = \"dumbbell\"\npairs = {n}"),
            "bottleneck",
            "sender",
            "receiver"
        )),
        (1..4u32).prop_map(|n| (
            format!("kind = \"chain\"\nhops = {n}\ncross-traffic = true"),
            "hop",
            "cross-source",
            "cross-sink"
        )),
        (2..5u32).prop_map(|n| (
            format!("kind = \"star\"\nleaves = {n}"),
            "link",
            "leaf1",
            "leaf2"
        )),
    ];
    let link = (1..10_000u64, 0..10_000u64, 1..500u32, 0..100u32).prop_map(|(rate, delay, queue, loss)| {
        format!(
            "rate = \"{rate}kbit/s\", delay = \"{delay}us\", queue = \"{queue} packets\", back = {{ loss = \"{loss}%\" }}"
        )
    });
    let traffic = prop_oneof![
        Just("kind = \"bulk\"".to_string()),
        (1..u32::MAX).prop_map(|size| format!("kind = \"transfer\"\nsize = \"{size} bytes\"")),
        (1..100_000u32, 1..3000u32).prop_map(|(scale, shape)| format!(
            "kind = \"web\"\nobject = \"pareto({scale}B, {shape}e-3)\"\nthink-time = \"exponential({scale}us)\""
        )),
        (1..100_000u32).prop_map(|rate| format!("kind = \"on-off-udp\"\nrate = \"{rate}kbit/s\"\noff = \"uniform(1s, {rate}s)\"")),
        (1..100_000u32).prop_map(|rate| format!("kind = \"app-limited\"\nrate = \"{rate}bit/s\"")),
    ];
    let more = (1..4u32, 0..1000u32, proptest::option::of(0..1000u32), any::<bool>());
    (topology, link, traffic, more, 1..3usize).prop_map(
        |((topology, name, from, to), link, traffic, (count, stagger, bound, nodelay), points)| {
            let nagle = if nodelay { "nodelay" } else { "nagle" };
            let bound = bound.map_or(String::new(), |bound| {
                format!("[[expect]]\nmeasure = \"goodput\"\nstatistic = \"mean\"\nmin = \"{bound}.5kbit/s\"\n")
            });
            let delays = ["\"5ms\"", "\"7ms\""][..points].join(", ");
            format!(
                "[scenario]\nname = \"p\"\nduration = \"100s\"\n[topology]\n{topology}\n{name} = {{ {link} }}\n\
                 [[flows]]\nname = \"f\"\nfrom = \"{from}\"\nto = \"{to}\"\ncount = {count}\nstagger = \"{stagger}ms\"\n\
                 profile = {{ tcp = \"{nagle}\" }}\n{traffic}\n{bound}[sweep]\ntopology.{name}.delay = [{delays}]\n"
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_resolved_scenario_resolves_to_itself(text in scenario()) {
        stands_still(&text);
    }

    #[test]
    fn no_text_panics(text in ".*") {
        let _ = Scenario::parse("", &text);
    }

    /// Mistakes of all kinds: a piece of a right scenario is lost, or something else in its place.
    #[test]
    fn no_mistake_panics(text in scenario(), at in any::<prop::sample::Index>(), len in 0..20usize, new in "[a-z0-9\"\\[\\]{}=. \n]{0,6}") {
        let mut text = text;
        let at = at.index(text.len());
        text.replace_range(at..(at + len).min(text.len()), &new);
        if let Err(errors) = Scenario::parse("", &text) {
            prop_assert!(!errors.diagnostics.is_empty());
            prop_assert!(errors.to_string().contains("nothing was run"));
        }
    }
}

//! Which points a sweep has, and in which order.

use super::*;

fn swept(rest: &str) -> Vec<Variant> {
    let scenario = Scenario::parse("test.toml", &minimal(rest)).unwrap();
    let variants: Vec<Variant> = scenario.sweep().collect();
    assert_eq!(variants.len(), scenario.points());
    variants
}

fn settings(variants: &[Variant]) -> Vec<String> {
    let text = |variant: &Variant| {
        variant.settings.iter().map(|one| one.value.clone()).collect::<Vec<_>>().join(" ")
    };
    variants.iter().map(text).collect()
}

#[test]
fn the_axis_written_last_varies_fastest() {
    // Not in alphabetical order.
    let variants = swept(
        "[sweep]\n\"scenario.duration\" = [\"5s\", \"6s\"]\nlinks.a-b.rate = [\"1Mbit/s\", \"2Mbit/s\", \"3Mbit/s\"]",
    );
    assert_eq!(
        settings(&variants),
        ["5s 1Mbit/s", "5s 2Mbit/s", "5s 3Mbit/s", "6s 1Mbit/s", "6s 2Mbit/s", "6s 3Mbit/s",]
    );
    assert_eq!(variants[4].number, 4);
    assert_eq!(variants[4].settings[1].path, "links.a-b.rate");
    let resolved = &variants[4].resolved;
    assert_eq!(resolved.scenario.duration.to_string(), "6s");
    assert_eq!(resolved.links[0].back.rate.unwrap().to_string(), "2Mbit/s");
}

#[test]
fn zipped_lists_go_side_by_side() {
    let variants = swept(
        "[sweep]\nzip = true\nscenario.duration = [\"5s\", \"6s\"]\nlinks.0.rate = [\"1Mbit/s\", \"2Mbit/s\"]",
    );
    assert_eq!(settings(&variants), ["5s 1Mbit/s", "6s 2Mbit/s"]);
}

#[test]
fn omitted_keys_and_tables_can_be_swept() {
    let variants = swept(
        "[sweep]\nhosts.a.profile = [{ tcp = \"no-sack\" }, { keepalive = true, tcp = \"nodelay\" }]\n\
         \"links.a-b.there.loss\" = [\"0\", \"1%\"]",
    );
    assert_eq!(
        settings(&variants),
        [
            "{ tcp = \"no-sack\" } 0",
            "{ tcp = \"no-sack\" } 1%",
            "{ keepalive = true, tcp = \"nodelay\" } 0",
            "{ keepalive = true, tcp = \"nodelay\" } 1%",
        ]
    );
    let loss = |variant: &Variant| variant.resolved.links[0].there.loss.to_string();
    assert_eq!(variants.iter().map(loss).collect::<Vec<_>>(), ["0", "0.01", "0", "0.01"]);
    assert_eq!(variants[1].resolved.links[0].back.loss.to_string(), "0");
    let host = |variant: &Variant| variant.resolved.hosts.values().next().unwrap().profile.clone();
    let said =
        |variant: &Variant| (host(variant).tcp.unwrap().to_string(), host(variant).keepalive);
    assert_eq!(said(&variants[0]), ("no-sack".into(), None));
    assert_eq!(said(&variants[2]), ("nodelay".into(), Some(true)));
}

#[test]
fn bands_can_be_for_some_points() {
    let variants = swept(
        "[sweep]\nlinks.a-b.rate = [\"1Mbit/s\", \"2Mbit/s\"]\n\
         [[expect]]\nmeasure = \"goodput\"\nmin = \"0.9Mbit/s\"\nwhen = { links.a-b.rate = \"1Mbit/s\" }\n\
         [[expect]]\nmeasure = \"goodput\"\nmin = \"1.8Mbit/s\"\nwhen = { \"links.a-b.rate\" = \"2Mbit/s\" }",
    );
    let least = |variant: &Variant| {
        variant.resolved.expect.iter().map(|band| band.min.unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(least(&variants[0]), ["900kbit/s"]);
    assert_eq!(least(&variants[1]), ["1800kbit/s"]);
}

#[test]
fn bands_can_compare_points() {
    let variants = swept(
        "[sweep]\nhosts.a.profile.tcp = [\"sack\", \"no-sack\"]\nlinks.a-b.there.loss = [\"1%\", \"2%\"]\n\
         [[expect]]\nmeasure = \"goodput\"\nmax = 1\nrelative-to = { at = { hosts.a.profile.tcp = \"sack\" } }",
    );
    assert!(variants.iter().all(|variant| variant.resolved.expect.is_empty()));
    // With SACK it would be compared with itself; without, with the same loss.
    let baselines = |variant: &Variant| {
        variant.comparisons.iter().map(|comparison| comparison.baseline).collect::<Vec<_>>()
    };
    let all: Vec<_> = variants.iter().map(baselines).collect();
    assert_eq!(all, [vec![], vec![], vec![0], vec![1]]);
    let band = &variants[2].comparisons[0].band;
    assert_eq!(band.max, Some(Bound::Number("1".parse().unwrap())));
    assert_eq!(band.relative_to.as_ref(), Some(&band.quantity));
    assert!(!band.difference);
}

/// A difference has the unit of what is compared, and its bounds too.
#[test]
fn bands_can_be_about_a_difference() {
    let variants = swept(
        "[sweep]\nhosts.a.profile.tcp = [\"sack\", \"no-sack\"]\n\
         [[expect]]\nmeasure = \"goodput\"\nmin = \"1Mbit/s\"\n\
         relative-to = { at = { hosts.a.profile.tcp = \"sack\" }, difference = true }",
    );
    let band = &variants[1].comparisons[0].band;
    assert!(band.difference && band.unit() == Unit::Rate);
    assert_eq!(band.min, Some(Bound::Rate("1Mbit/s".parse().unwrap())));
    let stored = serde_json::to_string(band).unwrap();
    assert_eq!(serde_json::from_str::<Band>(&stored).unwrap(), *band);
}

/// Where lists go side by side, the point that a band is compared with has all the values it names, in whichever order they stand: not the first that
/// has the last of them.
#[test]
fn compared_points_have_all_values() {
    let lists = "[sweep]\nzip = true\nhosts.a.profile.tcp = [\"sack\", \"sack\", \"no-sack\", \"no-sack\"]\n\
                 links.a-b.there.loss = [\"1%\", \"2%\", \"1%\", \"2%\"]\n";
    let baselines = |at: &str| {
        let band = format!(
            "[[expect]]\nmeasure = \"goodput\"\nmax = 1\nrelative-to = {{ at = {{ {at} }} }}"
        );
        let each = |variant: &Variant| variant.comparisons.first().map(|one| one.baseline);
        swept(&format!("{lists}{band}")).iter().map(each).collect::<Vec<_>>()
    };
    for at in [
        "hosts.a.profile.tcp = \"no-sack\", links.a-b.there.loss = \"1%\"",
        "links.a-b.there.loss = \"1%\", hosts.a.profile.tcp = \"no-sack\"",
    ] {
        assert_eq!(baselines(at), [Some(2), Some(2), None, Some(2)], "{at}");
    }
    let none = "[sweep]\nzip = true\nhosts.a.profile.tcp = [\"sack\", \"no-sack\"]\n\
                links.a-b.there.loss = [\"1%\", \"2%\"]\n[[expect]]\nmeasure = \"goodput\"\nmax = 1\n\
                relative-to = { at = { hosts.a.profile.tcp = \"sack\", links.a-b.there.loss = \"2%\" } }";
    assert!(refused(&minimal(none)).contains("no point of the sweep has these values"));
}

/// A claim's control is another point of the sweep, where its band must fail; or there is a reason why there is none.
#[test]
fn claims_name_their_controls() {
    let sweep = "[sweep]\nhosts.a.profile.tcp = [\"sack\", \"no-sack\"]\nlinks.a-b.there.loss = [\"1%\", \"2%\"]\n";
    let band = |control: &str| {
        format!(
            "{sweep}[[expect]]\nmeasure = \"goodput\"\nmin = \"1Mbit/s\"\nwhen = {{ hosts.a.profile.tcp = \"sack\" }}\n\
             claim = {{ name = \"more\", says = \"more\", calibrated = true, control = {control} }}"
        )
    };
    let variants = swept(&band("{ hosts.a.profile.tcp = \"no-sack\" }"));
    let controls: Vec<Vec<usize>> = variants
        .iter()
        .map(|one| one.controls.iter().map(|control| control.point).collect())
        .collect();
    assert_eq!(controls, [vec![2], vec![3], vec![], vec![]]);
    let claim = variants[0].resolved.expect[0].claim.clone().unwrap();
    assert_eq!((claim.name.as_deref(), claim.calibrated, claim.ours), (Some("more"), true, false));
    let variants = swept(&band("\"none: the paper has no other\""));
    assert!(variants.iter().all(|one| one.controls.is_empty()));
    assert!(refused(&minimal(&band("\"nothing\""))).contains("\"none: \" and the reason"));
    assert!(refused(&minimal(&band("\"none: \""))).contains("\"none: \" and the reason"));
    let itself = band("{ hosts.a.profile.tcp = \"sack\" }");
    assert!(refused(&minimal(&itself)).contains("control is another point of the sweep"));
    assert!(refused(&minimal(&band("{ hosts.b.profile.tcp = \"sack\" }"))).contains("hosts.b"));
}

#[test]
fn a_sweep_has_an_end() {
    let list = format!("[{}]", "\"5s\", ".repeat(400));
    let sweep = format!(
        "[sweep]\nscenario.duration = {list}\nlinks.a-b.delay = {list}\nflows.bulk.stagger = {list}"
    );
    let said = refused(&minimal(&sweep));
    assert!(said.contains("64000000 points of the sweep are more than the 100000"), "{said}");
}

/// Lists that go side by side go together where a band names a value of one of them; and a value may be a table.
#[test]
fn bands_name_points_of_lists_side_by_side_and_of_tables() {
    let band = "[[expect]]\nmeasure = \"goodput\"\nmax = 2\n";
    let variants = swept(&format!(
        "{band}when = {{ scenario.warm-up = \"2s\" }}\nrelative-to = {{ at = {{ scenario.duration = \"5s\" }} }}\n\
         [sweep]\nzip = true\nscenario.duration = [\"5s\", \"6s\", \"7s\"]\nscenario.warm-up = [\"1s\", \"2s\", \"2s\"]",
    ));
    let baselines: Vec<Vec<usize>> = variants
        .iter()
        .map(|one| one.comparisons.iter().map(|comparison| comparison.baseline).collect())
        .collect();
    // The value 2s is in the list twice.
    assert_eq!(baselines, [vec![], vec![0], vec![0]]);
    let variants = swept(&format!(
        "{band}when = {{ hosts.a = {{ profile = {{ tcp = \"no-sack\" }} }} }}\nrelative-to = {{ flow = \"bulk\" }}\n\
         [sweep]\nhosts.a = [{{ mtu = 1400 }}, {{ profile = {{ tcp = \"no-sack\" }} }}]",
    ));
    let bands: Vec<usize> = variants.iter().map(|one| one.resolved.expect.len()).collect();
    assert_eq!(bands, [0, 1]);
}

/// A unit of a table is swept by itself.
#[test]
fn a_unit_can_be_swept() {
    let variants = swept(
        "[sweep]\nhosts.a.profile.tcp.congestion = [\"reno\", \"ltcp(beta=0.1)\"]\n\
         hosts.a.profile.tcp.recovery = [\"sack\", \"rack-tlp\"]",
    );
    let texts: Vec<String> = variants
        .iter()
        .map(|one| {
            one.resolved.hosts[&Name::new("a").unwrap()].profile.tcp.as_ref().unwrap().to_string()
        })
        .collect();
    let all =
        ["reno + sack", "reno + rack-tlp", "ltcp(beta=0.1) + sack", "ltcp(beta=0.1) + rack-tlp"];
    assert_eq!(texts, all);
}

//! A scenario that no machine can run is refused, with the estimate and the key to change.

use super::*;

/// The one problem and its hint, without the place.
#[track_caller]
fn too_much(text: &str) -> (String, String) {
    let errors = Scenario::parse("test.toml", text).expect_err("it is too much");
    let [one] = &errors.diagnostics[..] else { panic!("{errors}") };
    (one.message.clone(), one.hint.clone().unwrap_or_default())
}

#[track_caller]
fn says_of(text: &str, parts: &[&str]) {
    let (what, hint) = too_much(text);
    for part in parts {
        assert!(what.contains(part) || hint.contains(part), "{part:?} is not in: {what}\n{hint}");
    }
}

#[test]
fn samples() {
    let with = |line: &str| minimal("").replace("duration = \"10s\"", line);
    says(
        &with("duration = \"10s\"\nsample-interval = \"1ns\""),
        r#"
error: with a `sample-interval` of 1ns in 10s there are about 3.0e10 samples: 10000000001 for each of 1 flow and of 2 directions of links; 20000000 are the most
 --> test.toml:4:19
  |
4 | sample-interval = "1ns"
  |                   ^^^^^
  = hint: `sample-interval` can be 2us or more; a shorter `duration` helps too
"#,
    );
    assert!(
        Scenario::parse("test.toml", &with("duration = \"10s\"\nsample-interval = \"2us\""))
            .is_ok()
    );
    // Nobody wrote the interval: it is the duration that is too long.
    let (what, _) = too_much(&with("duration = \"10000000s\"").replace("10Mbit/s", "10kbit/s"));
    assert!(what.contains("a `sample-interval` of 100ms in 10000000s"), "{what}");
    // A thousand flows have a thousand times the samples.
    let many =
        minimal("count = 1000").replace("[scenario]", "[scenario]\nsample-interval = \"100us\"");
    says_of(&many, &["for each of 1000 flows", "`sample-interval` can be 1ms or more"]);
}

#[test]
fn packets() {
    let with = |rate: &str, more: &str| {
        minimal("").replace("10Mbit/s", rate).replace("kind = \"bulk\"", more)
    };
    // A window of 8 MB in 20 ms is what a flow has at the most, however fast the link is.
    assert!(Scenario::parse("test.toml", &with("100Tbit/s", "kind = \"bulk\"")).is_ok());
    let (long, bulk) =
        ("duration = \"24000000min\"\nsample-interval = \"60min\"", "kind = \"bulk\"");
    let text = with("10Mbit/s", bulk).replace("duration = \"10s\"", long);
    says_of(
        &text,
        &["is estimated to take 1.2e12 packets", "most over link `a-b`", "shorten `duration`"],
    );
    let udp = "kind = \"on-off-udp\"\nrate = \"100Tbit/s\"";
    says_of(&with("100Tbit/s", udp), &["2.4e11 packets and writes", "lower"]);
    let bytewise = "kind = \"app-limited\"\nrate = \"1Tbit/s\"\nwrite = \"1 bytes\"";
    says_of(&with("1Gbit/s", bytewise), &["most by applications", "raise `write`"]);
    // Of a fast link that is little used there is nothing to say.
    let web = "kind = \"web\"\nobject = \"10kB\"\nthink-time = \"1s\"";
    assert!(Scenario::parse("test.toml", &with("100Tbit/s", web)).is_ok());
    let text = with("10Mbit/s", "kind = \"transfer\"\nsize = \"1EB\"");
    assert!(text.parse::<toml::Table>().is_ok());
    let text = with("10Mbit/s", "kind = \"transfer\"\nsize = \"1000000000GB\"");
    assert!(Scenario::parse("test.toml", &text).is_ok(), "it is cut where the run ends");
}

#[test]
fn loops_without_time_are_refused() {
    let timeless = |flow: &str| {
        let link = minimal("").replace("rate = \"10Mbit/s\"\ndelay = \"10ms\"\n", "");
        link.replace("kind = \"bulk\"", flow)
    };
    let answers = "kind = \"request-response\"\nresponse = \"1kB\"";
    for endless in ["kind = \"bulk\"", answers] {
        says_of(
            &timeless(endless),
            &["flow `bulk`", "neither a `rate` nor a `delay`", "give a link on its way"],
        );
    }
    for ends in [
        "kind = \"transfer\"\nsize = \"1MB\"",
        "kind = \"on-off-udp\"\nrate = \"1Mbit/s\"",
        &format!("{answers}\nrequests = 10"),
        &format!("{answers}\nthink-time = \"1ms\""),
    ] {
        assert!(Scenario::parse("test.toml", &timeless(ends)).is_ok(), "{ends}");
    }
    // The kernel takes its time.
    let kernel = timeless("kind = \"bulk\"").replace("[hosts.b]", "[hosts.b]\nkind = \"kernel\"");
    assert!(Scenario::parse("test.toml", &kernel).is_ok());
}

#[test]
fn runs_and_connections() {
    let seeds: Vec<String> = (0..1001).map(|seed| seed.to_string()).collect();
    let seeds = format!("[scenario]\nseeds = [{}]", seeds.join(", "));
    let sizes: Vec<String> = (1..=1000).map(|size| format!("\"{size}ms\"")).collect();
    let sweep = format!("[sweep]\nlinks.a-b.delay = [{}]", sizes.join(", "));
    let text = minimal(&sweep).replace("[scenario]", &seeds);
    says_of(
        &text,
        &["1000 points of the sweep with 1001 seeds each are 1001000 runs", "fewer `seeds`"],
    );
    // Each run is bearable, and all of them are not.
    let fine = text.replace("duration = \"10s\"", "duration = \"10s\"\nsample-interval = \"1ms\"");
    let fine = fine.replace("1000, ", "").replace(", 1000]", "]");
    says_of(&fine, &["the 1000000 runs take about 3.0e10 samples together"]);
    let web = "kind = \"web\"\nobject = \"1kB\"\nthink-time = \"1s\"\nobjects = 1000000\nconnections = 200000";
    let text = minimal("").replace("kind = \"bulk\"", web);
    says_of(
        &text,
        &["200000 connections of web traffic at the same time are more than the 100000"],
    );
}

#[test]
fn a_dumbbell_is_bounded_by_its_bottleneck() {
    // A thousand senders without a limit of their own share 1 Gbit/s: 83,333 packets a second, over three links each.
    let text = |minutes: u32| {
        format!(
            "[scenario]\nname = \"d\"\nduration = \"{minutes}min\"\nsample-interval = \"60min\"\n\
             [topology]\nkind = \"dumbbell\"\npairs = 1000\nbottleneck = {{ rate = \"1Gbit/s\", delay = \"1ms\" }}\n\
             [[flows]]\nname = \"f\"\nfrom = \"sender\"\nto = \"receiver\"\nkind = \"bulk\"\n"
        )
    };
    let estimate = |minutes: u32| {
        let scenario = Scenario::parse("d.toml", &text(minutes));
        scenario.err().map(|errors| errors.diagnostics[0].message.clone())
    };
    assert_eq!(estimate(60), None);
    assert!(estimate(60_000).unwrap().contains("packets"));
}

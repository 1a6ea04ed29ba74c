//! Links whose rate follows a trace.

use super::*;
use std::path::Path;

/// A scenario in a directory of its own, with a file beside it.
fn load(link: &str, trace: &str) -> Result<Resolved, String> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("cellular.trace"), trace).unwrap();
    let file = directory.path().join("test.toml");
    let text = minimal("").replace("rate = \"10Mbit/s\"\n", &format!("{link}\n"));
    std::fs::write(&file, text).unwrap();
    let scenario = Scenario::load(&file, None).map_err(|errors| errors.to_string())?;
    Ok(scenario.sweep().next().unwrap().resolved)
}

#[test]
fn a_trace_is_part_of_the_identity_and_of_the_canonical_form() {
    let one = load("rate-trace = \"cellular.trace\"", "1\n2\n").unwrap();
    let other = load("rate-trace = \"cellular.trace\"", "1\n3\n").unwrap();
    assert_ne!(one.id(1, "1", false), other.id(1, "1", false));
    let link = &one.links[0];
    assert_eq!(link.there, link.back);
    assert_eq!(
        link.there.rate_trace.as_ref().and_then(|trace| trace.unread()),
        Some("cellular.trace")
    );
    // Of "1\n2\n".
    let sum = "a6e2b7a040683432de03a18fd8a1939a2fdf82585b364bfc874bdd4095c4cae1";
    assert_eq!(link.there.rate_trace_sha256.as_deref(), Some(sum));
    let canonical = one.to_toml();
    assert!(canonical.contains(&format!("rate-trace-sha256 = \"{sum}\"")), "{canonical}");
    // It resolves to itself beside its file, and is refused beside another.
    for (content, agrees) in [("1\n2\n", true), ("1\n4\n", false)] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("cellular.trace"), content).unwrap();
        let file = directory.path().join("test.toml");
        std::fs::write(&file, &canonical).unwrap();
        match Scenario::load(&file, None) {
            Ok(scenario) if agrees => assert_eq!(scenario.sweep().next().unwrap().resolved, one),
            Err(errors) if !agrees => {
                assert!(errors.to_string().contains("the file's SHA-256 is "), "{errors}");
            }
            other => panic!("{content:?}: {other:?}"),
        }
    }
}

/// No file is read for steps, so a scenario that is only a text can have them.
#[test]
fn steps_need_no_file() {
    let steps = "rate-trace = \"steps(40Mbit/s for 10s, 10Mbit/s for 10s)\"";
    let resolved = load(steps, "").unwrap();
    let text = minimal("").replace("rate = \"10Mbit/s\"", steps);
    let scenario = Scenario::parse("test", &text).unwrap();
    assert_eq!(scenario.sweep().next().unwrap().resolved, resolved);
    let link = &resolved.links[0].there;
    // 25 Mbit/s, in whole packets of 1500 bytes.
    assert_eq!(link.mean_rate().map(|rate| rate.bits_per_sec()), Some(41_666 * 12_000 / 20));
    assert_eq!(RateTraces::new(Path::new("/nonexistent")).read(link).as_ref().ok(), Some(link));
    let error = load(&format!("{steps}\nrate-trace-sha256 = \"00\""), "").unwrap_err();
    assert!(error.contains("steps of a rate are in no file"), "{error}");
    let error = load("rate-trace = \"steps(40Mbit/s)\"", "").unwrap_err();
    assert!(error.contains("steps(RATE for DURATION, ...)"), "{error}");
}

#[test]
fn one_way_has_a_rate_of_its_own_instead() {
    let mixed = load("rate = \"10Mbit/s\"\nback.rate-trace = \"cellular.trace\"", "1\n").unwrap();
    let link = &mixed.links[0];
    assert!(link.there.rate.is_some() && link.there.rate_trace.is_none());
    assert!(link.back.rate.is_none() && link.back.rate_trace.is_some());
    let mixed = load("rate-trace = \"cellular.trace\"\nthere.rate = \"10Mbit/s\"", "1\n").unwrap();
    let link = &mixed.links[0];
    assert!(link.there.rate.is_some() && link.there.rate_trace.is_none());
    assert!(link.back.rate.is_none() && link.back.rate_trace.is_some());
}

#[test]
fn mistakes_are_shown_with_their_place() {
    let said = |link: &str, trace: &str| load(link, trace).unwrap_err();
    let named = "rate-trace = \"cellular.trace\"";
    for (trace, message) in [
        ("", "has no entries"),
        ("# nothing\n", "has no entries"),
        ("0\n", "is 0, but a trace must last longer than that"),
        ("3\n2\n", "line 2 of the trace"),
        ("3\n2\n", "goes back in time"),
        ("1\n1.5\n", "line 2 of the trace"),
        ("1\n1.5\n", "is not a whole number of milliseconds"),
        ("\u{0}", "is not a whole number of milliseconds"),
    ] {
        let said = said(named, trace);
        assert!(said.contains(message) && said.contains("cellular.trace"), "{trace:?}: {said}");
        assert!(said.contains("test.toml:"), "{said}");
    }
    for (link, message) in [
        ("rate-trace = \"other.trace\"", "other.trace cannot be read"),
        ("rate-trace = \"/dev/zero\"", "/dev/zero is not a file"),
        ("rate-trace = \".\"", "is not a file"),
        (
            "rate = \"1Mbit/s\"\nrate-trace = \"cellular.trace\"",
            "either a `rate` or a `rate-trace`",
        ),
        ("rate-trace-sha256 = \"00\"", "there is no `rate-trace` to have it"),
        (
            "rate-trace = 3",
            "expected a rate trace such as \"cellular.trace\" or \"steps(40Mbit/s for 10s)\", found the number 3",
        ),
        ("rate-trace = \"cellular.trace\"\nrate-trace-sha256 = \"00\"", "the file's SHA-256 is "),
    ] {
        let said = said(link, "1\n");
        assert!(said.contains(message), "{link}: {said}");
    }
}

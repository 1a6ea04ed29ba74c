//! Each mistake, and exactly what is said about it.

mod bands;
mod control;
mod costs;
mod network;
mod profiles;

use super::*;

/// A whole scenario that is wrong in one place.
#[track_caller]
fn says(text: &str, expected: &str) {
    let said = refused(text);
    let footer = "\n1 problem in test.toml; nothing was run";
    assert_eq!(said, format!("{}\n{footer}", expected.trim_matches('\n')), "\n{said}");
}

/// The minimal scenario with a replacement that makes it wrong.
#[track_caller]
fn changed(right: &str, wrong: &str, expected: &str) {
    let text = minimal("");
    assert!(text.contains(right), "{right}");
    says(&text.replacen(right, wrong, 1), expected);
}

#[test]
fn syntax() {
    changed(
        "duration = \"10s\"",
        "duration = \"10s",
        r#"
error: this is not TOML: invalid basic string, expected `"`
 --> test.toml:3:16
  |
3 | duration = "10s
  |                ^
"#,
    );
}

#[test]
fn unknown_keys() {
    changed(
        "duration",
        "duraton",
        r#"
error: there is no `duraton` here
 --> test.toml:3:1
  |
3 | duraton = "10s"
  | ^^^^^^^
  = hint: did you mean `duration`?
"#,
    );
    changed(
        "from = \"a\"\nto = \"b\"\nrate",
        "form = \"a\"\nto = \"b\"\nrate",
        r#"
error: there is no `form` here
 --> test.toml:7:1
  |
7 | form = "a"
  | ^^^^
  = hint: did you mean `from`?
"#,
    );
    changed(
        "rate = ",
        "rte = ",
        r#"
error: there is no `rte` here
 --> test.toml:9:1
  |
9 | rte = "10Mbit/s"
  | ^^^
  = hint: did you mean `rate`?
"#,
    );
    changed(
        "kind = \"bulk\"",
        "kind = \"bulk\"\nsize = \"1MB\"",
        r#"
error: there is no `size` here
  --> test.toml:16:1
   |
16 | size = "1MB"
   | ^^^^
   = hint: there is kind, name, from, to, start, stop, stagger, count, profile
"#,
    );
    changed(
        "[hosts.b]",
        "[hosts.b.profil]",
        r#"
error: there is no `profil` here
 --> test.toml:5:10
  |
5 | [hosts.b.profil]
  |          ^^^^^^
  = hint: did you mean `profile`?
"#,
    );
}

#[test]
fn a_key_that_is_missing_is_reported_once() {
    says(
        &minimal("").replace("duration = \"10s\"\n", ""),
        r#"
error: `duration` is missing
 --> test.toml:1:1
  |
1 | [scenario]
  | ^^^^^^^^^^
"#,
    );
    // It is there, and wrong: that it is missing need not be said too.
    changed(
        "duration = \"10s\"",
        "duration = 10",
        r#"
error: expected a time such as "20ms", found the number 10
 --> test.toml:3:12
  |
3 | duration = 10
  |            ^^
"#,
    );
    changed(
        "kind = \"bulk\"",
        "kind = \"transfer\"",
        r#"
error: `size` is missing
  --> test.toml:11:1
   |
11 | [[flows]]
   | ^^^^^^^^^
"#,
    );
}

#[test]
fn units() {
    changed(
        "10Mbit/s",
        "10",
        r#"
error: `10` needs a unit to be a rate: one of bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s (also b/s, bps, and B/s for bytes)
 --> test.toml:9:8
  |
9 | rate = "10"
  |        ^^^^
"#,
    );
    changed(
        "10Mbit/s",
        "0Mbit/s",
        r#"
error: `0Mbit/s` is out of range for a rate: at least 1bit/s (for a link without a rate limit, leave the rate out)
 --> test.toml:9:8
  |
9 | rate = "0Mbit/s"
  |        ^^^^^^^^^
"#,
    );
    changed(
        "\"10ms\"",
        "\"10 furlongs\"",
        r#"
error: `10 furlongs` needs a unit to be a duration: one of ns, us, ms, s, min
  --> test.toml:10:9
   |
10 | delay = "10 furlongs"
   |         ^^^^^^^^^^^^^
"#,
    );
}

#[test]
fn times() {
    changed(
        "\"10s\"",
        "\"0s\"",
        r#"
error: `duration` must be above zero
 --> test.toml:3:12
  |
3 | duration = "0s"
  |            ^^^^
"#,
    );
    changed(
        "\"10s\"",
        "\"10s\"\nwarm-up = \"10s\"",
        r#"
error: `warm-up` is 10s, but must be shorter than the duration, 10s
 --> test.toml:4:11
  |
4 | warm-up = "10s"
  |           ^^^^^
"#,
    );
    changed(
        "kind = \"bulk\"",
        "kind = \"bulk\"\nstart = \"5s\"\nstop = \"5s\"",
        r#"
error: `stop` is 5s, but must be after the start, 5s
  --> test.toml:17:8
   |
17 | stop = "5s"
   |        ^^^^
"#,
    );
    changed(
        "kind = \"bulk\"",
        "kind = \"bulk\"\nstart = \"uniform(1s, 20s)\"",
        r#"
error: `start` is 20s, but must be before the end of the run, 10s
  --> test.toml:16:9
   |
16 | start = "uniform(1s, 20s)"
   |         ^^^^^^^^^^^^^^^^^^
"#,
    );
    changed(
        "kind = \"bulk\"",
        "kind = \"bulk\"\nstart = \"exponential(1s)\"",
        r#"
error: `start` is a time or uniform(EARLIEST, LATEST), not exponential(1s): without a latest time a flow could start after the end of the run
  --> test.toml:16:9
   |
16 | start = "exponential(1s)"
   |         ^^^^^^^^^^^^^^^^^
"#,
    );
    changed(
        "kind = \"bulk\"",
        "kind = \"bulk\"\nstart = \"uniform(1s, 2s)\"\nstagger = \"1s\"\ncount = 2",
        r#"
error: `stagger` needs a fixed `start`: flows that draw their starts differ already
  --> test.toml:17:11
   |
17 | stagger = "1s"
   |           ^^^^
"#,
    );
    changed(
        "kind = \"bulk\"",
        "kind = \"bulk\"\nstagger = \"5s\"\ncount = 3",
        r#"
error: `start` is 10s, but must be before the end of the run, 10s
  --> test.toml:16:11
   |
16 | stagger = "5s"
   |           ^^^^
"#,
    );
}

#[test]
fn choices_and_types() {
    changed(
        "kind = \"bulk\"",
        "kind = \"blk\"",
        r#"
error: there is no `blk` to choose
  --> test.toml:15:8
   |
15 | kind = "blk"
   |        ^^^^^
   = hint: did you mean `bulk`?
"#,
    );
    changed(
        "[hosts.b]",
        "[hosts.b]\ncount = 0",
        r#"
error: expected a whole number above zero, found the number 0
 --> test.toml:6:9
  |
6 | count = 0
  |         ^
"#,
    );
    changed(
        "[hosts.b]",
        "[hosts.b]\nprofile = { keepalive = \"no\" }",
        r#"
error: expected true or false, found the text "no"
 --> test.toml:6:25
  |
6 | profile = { keepalive = "no" }
  |                         ^^^^
"#,
    );
    changed(
        "[hosts.b]",
        "[hosts.b]\nmtu = 99999999999999999999",
        r#"
error: expected a number below 2^63, found a larger one
 --> test.toml:6:7
  |
6 | mtu = 99999999999999999999
  |       ^^^^^^^^^^^^^^^^^^^^
"#,
    );
    says(
        &minimal("[sweep]\n\"scenario.duration\" = \"5s\""),
        r#"
error: expected a list of values, found the text "5s"
  --> test.toml:17:23
   |
17 | "scenario.duration" = "5s"
   |                       ^^^^
"#,
    );
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let text = minimal("[[expect]]\nmeasure = \"jitter\"\nmin = 1")
        .replace("duration", "duraton")
        .replace("10Mbit/s", "10")
        .replace("to = \"b\"\nkind", "to = \"c\"\nkind");
    let said = refused(&text);
    let headings: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(
        headings,
        [
            "error: there is no `duraton` here",
            "error: `10` needs a unit to be a rate: one of bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s (also b/s, bps, and B/s for bytes)",
            "error: there is no host called `c`",
            "error: there is no `jitter` to choose",
        ]
    );
    assert!(said.ends_with("4 problems in test.toml; nothing was run"));
}

#[test]
fn an_empty_file_says_what_is_missing() {
    let said = refused("");
    for missing in ["`[scenario]` is missing", "has no hosts", "has no flows"] {
        assert!(said.contains(missing), "{said}");
    }
}

#[test]
fn places_are_counted_in_characters() {
    changed(
        "name = \"test\"",
        "name = \"test\"\ntitle = \"Flüsse →\" # ← λ\ndescription = { ö = \"ä\" }",
        r#"
error: this is not TOML: invalid unquoted key, expected letters, numbers, `-`, `_`
 --> test.toml:4:17
  |
4 | description = { ö = "ä" }
  |                 ^
"#,
    );
    changed(
        "delay = \"10ms\"",
        "\tdelay = \"ä\"",
        "
error: `ä` is not a duration: write it like 20ms or 1.5s
  --> test.toml:10:10
   |
10 | \tdelay = \"ä\"
   | \t        ^^^
",
    );
}

#[test]
fn a_repeated_mistake_is_reported_once() {
    let text =
        minimal("").replace("kind = \"bulk\"", "kind = \"bulk\"\nstagger = \"1s\"\ncount = 1000");
    assert!(refused(&text).ends_with("\n1 problem in test.toml; nothing was run"));
    let mut text = minimal("");
    for number in 0..300 {
        text += &format!("[hosts.h{number}]\n");
    }
    let said = refused(&text);
    assert!(said.ends_with("300 problems in test.toml, of which 100 are shown; nothing was run"));
    assert_eq!(said.matches("error: ").count(), 100);
}

/// A companion needs a flow of Transom's TCP whose data leaves the same host.
#[test]
fn companions_are_beside_a_connection() {
    let with = |flow: &str| {
        minimal(&format!(
            "[[flows]]\nname = \"udp\"\nfrom = \"a\"\nto = \"b\"\nkind = \"on-off-udp\"\nrate = \"1Mbit/s\"\n\
             [[flows]]\nname = \"beside\"\nkind = \"companion\"\n{flow}"
        ))
    };
    let fits = with("from = \"a\"\nto = \"b\"\nbeside = \"bulk\"");
    assert_eq!(resolved(&fits).flows.len(), 3);
    for (flow, message) in [
        ("from = \"a\"\nto = \"b\"\nbeside = \"bulky\"", "there is no flow called `bulky`"),
        (
            "from = \"a\"\nto = \"b\"\nbeside = \"udp\"",
            "`udp` is no flow of TCP that sends data from `a`",
        ),
        (
            "from = \"b\"\nto = \"a\"\nbeside = \"bulk\"",
            "`bulk` is no flow of TCP that sends data from `b`",
        ),
        ("from = \"a\"\nto = \"b\"", "`beside` is missing"),
        ("from = \"a\"\nto = \"b\"\nbeside = \"bulk\"\npayload = \"70kB\"", "at most 65507 bytes"),
    ] {
        let said = refused(&with(flow));
        assert!(said.contains(message), "{flow}: {said}");
    }
    let kernel = fits.replace("[hosts.a]", "[hosts.a]\nkind = \"kernel\"");
    let said = refused(&kernel);
    assert!(said.contains("a companion needs Transom's TCP at `from`"), "{said}");
}

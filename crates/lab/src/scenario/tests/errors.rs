//! Each mistake, and exactly what is said about it.

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
fn names() {
    changed(
        "[hosts.b]",
        "[hosts.b]\n[hosts.\"2b\"]",
        r#"
error: `2b` cannot be a name
 --> test.toml:6:8
  |
6 | [hosts."2b"]
  |        ^^^^
  = hint: names begin with a letter and go on with letters, digits, `-` and `_`
"#,
    );
    says(
        &minimal("[[flows]]\nname = \"bulk\"\nfrom = \"b\"\nto = \"a\"\nkind = \"bulk\""),
        r#"
error: there are two flows called `bulk`
  --> test.toml:17:8
   |
17 | name = "bulk"
   |        ^^^^^^
"#,
    );
    says(
        &minimal("[routers.a]"),
        r#"
error: there are two nodes called `a`
  --> test.toml:16:10
   |
16 | [routers.a]
   |          ^
"#,
    );
    says(
        &minimal("[[links]]\nfrom = \"a\"\nto = \"b\""),
        r#"
error: there are two links called `a-b`
  --> test.toml:16:1
   |
16 | [[links]]
   | ^^^^^^^^^
   = hint: give one of them a `name`
"#,
    );
}

#[test]
fn ends() {
    changed(
        "to = \"b\"\nkind",
        "to = \"bb\"\nkind",
        r#"
error: there is no host called `bb`
  --> test.toml:14:6
   |
14 | to = "bb"
   |      ^^^^
   = hint: did you mean `b`?
"#,
    );
    changed(
        "from = \"a\"\nto = \"b\"\nrate",
        "from = \"a\"\nto = \"gateway\"\nrate",
        r#"
error: there is no node called `gateway`
 --> test.toml:8:6
  |
8 | to = "gateway"
  |      ^^^^^^^^^
  = hint: there is a, b
"#,
    );
    changed(
        "from = \"a\"\nto = \"b\"\nkind",
        "from = \"b\"\nto = \"b\"\nkind",
        r#"
error: this flow leads from `b` to itself
  --> test.toml:14:6
   |
14 | to = "b"
   |      ^^^
"#,
    );
    changed(
        "[hosts.b]",
        "[routers.b]",
        r#"
error: `b` is a router, and flows begin and end at hosts
  --> test.toml:14:6
   |
14 | to = "b"
   |      ^^^
   = hint: add a host, and a link from it to the router
"#,
    );
    says(
        &minimal("[hosts.c]\ncount = 2\n[hosts.d]\ncount = 3\n[[links]]\nfrom = \"c\"\nto = \"d\""),
        r#"
error: `c` are 2 and `d` are 3: they cannot be paired
  --> test.toml:22:6
   |
22 | to = "d"
   |      ^^^
   = hint: pair a group with a single node, or with a group of the same size
"#,
    );
}

#[test]
fn ways() {
    says(
        &minimal("[hosts.c]"),
        r#"
error: no link leads to `c`
  --> test.toml:16:8
   |
16 | [hosts.c]
   |        ^
   = hint: join it to the network: [[links]] from = "c", to = …
"#,
    );
    // Over a host there is no way.
    says(
        &minimal(
            "[hosts.c]\n[[links]]\nfrom = \"b\"\nto = \"c\"\n[[flows]]\nname = \"far\"\nfrom = \"a\"\nto = \"c\"\n\
             kind = \"bulk\"",
        ),
        r#"
error: there is no way from `a` to `c`
  --> test.toml:23:6
   |
23 | to = "c"
   |      ^^^
   = hint: ways lead over links and routers; hosts do not forward
"#,
    );
    says(
        &minimal("[hosts.c]\n[hosts.d]\n[[links]]\nfrom = \"c\"\nto = \"d\""),
        r#"
error: the network falls apart: nothing joins `a` and `c`
  --> test.toml:16:8
   |
16 | [hosts.c]
   |        ^
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
fn programs_need_the_kernels_tcp_and_a_name() {
    let text = minimal("").replacen("[hosts.b]", "[hosts.b]\nkind = \"kernel\"", 1);
    let program =
        "kind = \"program\"\nserver = []\nclient = [\"curl\", \"http://{address}:{port}/\"]";
    let said = refused(&text.replacen("kind = \"bulk\"", program, 1));
    let expected = r#"
error: `a` has Transom's TCP, and programs need a host of kind "kernel"
  --> test.toml:14:8
   |
14 | from = "a"
   |        ^^^

error: `server` begins with the name of a program
  --> test.toml:17:10
   |
17 | server = []
   |          ^^

2 problems in test.toml; nothing was run"#;
    assert_eq!(said, expected.trim_start_matches('\n'), "\n{said}");
}

#[test]
fn what_does_not_go_together() {
    changed(
        "[hosts.b]",
        "[hosts.b]\ncongestion = \"cubic\"",
        r#"
error: `congestion` is for a host of kind "kernel"; for Transom's TCP, write profile.tcp
 --> test.toml:6:14
  |
6 | congestion = "cubic"
  |              ^^^^^^^
"#,
    );
    changed(
        "[hosts.b]",
        "[hosts.b]\necn = true",
        r#"
error: `ecn` is for a host of kind "kernel"
 --> test.toml:6:7
  |
6 | ecn = true
  |       ^^^^
"#,
    );
    changed(
        "[hosts.b]",
        "[hosts.b]\nkind = \"kernel\"\nprofile = { tcp = \"no-sack\" }",
        r#"
error: `profile` is for Transom's TCP, and this host has the kernel's
 --> test.toml:7:11
  |
7 | profile = { tcp = "no-sack" }
  |           ^^^^^^^^^^^^^^^^^^^
"#,
    );
    changed(
        "[hosts.b]",
        "[hosts.b]\nprofile = { tcp = \"no-window-scale\", recv-buffer = \"1MiB\" }",
        r#"
error: a receive buffer of 1048576 bytes needs the window scale option
 --> test.toml:6:11
  |
6 | profile = { tcp = "no-window-scale", recv-buffer = "1MiB" }
  |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"#,
    );
}

#[test]
fn bands() {
    let band = |rest: &str| minimal(&format!("[[expect]]\n{rest}"));
    says(
        &band("measure = \"goodput\"\nflow = \"blk\"\nmin = \"9Mbit/s\""),
        r#"
error: there is no flow called `blk`
  --> test.toml:18:8
   |
18 | flow = "blk"
   |        ^^^^^
   = hint: did you mean `bulk`?
"#,
    );
    says(
        &band("measure = \"goodput\"\nmin = 9"),
        r#"
error: `9` needs a unit to be a rate: one of bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s (also b/s, bps, and B/s for bytes)
  --> test.toml:18:7
   |
18 | min = 9
   |       ^
"#,
    );
    says(
        &band("measure = \"goodput\""),
        r#"
error: `min` or `max` is missing
  --> test.toml:16:1
   |
16 | [[expect]]
   | ^^^^^^^^^^
"#,
    );
    says(
        &band("measure = \"goodput\"\nmin = \"2Mbit/s\"\nmax = \"1Mbit/s\""),
        r#"
error: `min` is 2Mbit/s, but must be at most `max`, 1Mbit/s
  --> test.toml:18:7
   |
18 | min = "2Mbit/s"
   |       ^^^^^^^^^
"#,
    );
    says(
        &band("measure = \"drops\"\nlink = \"ab\"\nmax = 3"),
        r#"
error: there is no link called `ab`
  --> test.toml:18:8
   |
18 | link = "ab"
   |        ^^^^
   = hint: did you mean `a-b`?
"#,
    );
    says(
        &band("measure = \"drops\"\nlink = \"a-b\"\nflow = \"bulk\"\nmax = 3"),
        r#"
error: this measure is of a link, not of a flow
  --> test.toml:19:8
   |
19 | flow = "bulk"
   |        ^^^^^^
"#,
    );
    says(
        &band("measure = \"rtt\"\nstatistic = \"sum\"\nmax = \"3s\""),
        r#"
error: "each" and "sum" are for measures with one value for each flow
  --> test.toml:18:13
   |
18 | statistic = "sum"
   |             ^^^^^
"#,
    );
    says(
        &band("measure = \"jain\"\nflow = \"bulk\"\nmin = 0.9"),
        r#"
error: fairness is between two flows at least
  --> test.toml:18:8
   |
18 | flow = "bulk"
   |        ^^^^^^
"#,
    );
    says(
        &band("measure = \"goodput\"\nrelative-to = { measure = \"rtt\" }\nmin = 0.9"),
        r#"
error: a quotient needs two measures of the same unit
  --> test.toml:18:27
   |
18 | relative-to = { measure = "rtt" }
   |                           ^^^^^
"#,
    );
}

#[test]
fn sweeps() {
    let sweep = |rest: &str| minimal(&format!("[sweep]\n{rest}"));
    says(
        &sweep("\"flows.blk.start\" = [\"1s\"]"),
        r#"
error: the sweep's path leads to nothing: there is no `flows.blk`
  --> test.toml:17:1
   |
17 | "flows.blk.start" = ["1s"]
   | ^^^^^^^^^^^^^^^^^
   = hint: a path is made of names and dots, such as topology.bottleneck.rate or flows.NAME.size
"#,
    );
    says(
        &sweep("\"links.a-b.rat\" = [\"1Mbit/s\"]"),
        r#"
error: there is no `rat` here
  --> test.toml:17:1
   |
17 | "links.a-b.rat" = ["1Mbit/s"]
   | ^^^^^^^^^^^^^^^
   = hint: did you mean `rate`?
"#,
    );
    // What is wrong at one point only says at which.
    says(
        &sweep("links.a-b.rate = [\"1Mbit/s\", \"2\"]\nscenario.duration = [\"5s\", \"6s\"]"),
        r#"
error: `2` needs a unit to be a rate: one of bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s (also b/s, bps, and B/s for bytes)
  --> test.toml:17:30
   |
17 | links.a-b.rate = ["1Mbit/s", "2"]
   |                              ^^^
   = with links.a-b.rate = 2, scenario.duration = 5s
"#,
    );
    says(
        &sweep("zip = true\nlinks.a-b.rate = [\"1Mbit/s\"]\nscenario.duration = [\"5s\", \"6s\"]"),
        r#"
error: with `zip`, all lists are of one length, but this has 2 values and the first has 1
  --> test.toml:19:10
   |
19 | scenario.duration = ["5s", "6s"]
   |          ^^^^^^^^
"#,
    );
    says(
        &sweep("scenario.duration = []"),
        r#"
error: the scenario has no value to sweep over in this list
  --> test.toml:17:21
   |
17 | scenario.duration = []
   |                     ^^
"#,
    );
    says(
        &minimal(
            "[sweep]\nscenario.duration = [\"5s\"]\n[[expect]]\nmeasure = \"goodput\"\nmin = \"1Mbit/s\"\n\
             when = { \"scenario.duration\" = \"6s\" }",
        ),
        r#"
error: there is no value in the sweep called `6s`
  --> test.toml:21:32
   |
21 | when = { "scenario.duration" = "6s" }
   |                                ^^^^
   = hint: did you mean `5s`?
"#,
    );
}

#[test]
fn presets() {
    let star = |options: &str| {
        format!(
            "[scenario]\nname = \"s\"\nduration = \"1s\"\n[topology]\nkind = \"star\"\n{options}\n[[flows]]\nname = \"f\"\n\
             from = \"leaf1\"\nto = \"leaf2\"\nkind = \"bulk\""
        )
    };
    // Who is not there because the topology cannot be read is not missed.
    says(
        &star("leaves = 2"),
        r#"
error: `link` is missing
 --> test.toml:4:1
  |
4 | [topology]
  | ^^^^^^^^^^
"#,
    );
    says(
        &star("leaves = 2\nlink = { rate = \"1Mbit/s\", back = { los = \"1%\" } }"),
        r#"
error: there is no `los` here
 --> test.toml:7:37
  |
7 | link = { rate = "1Mbit/s", back = { los = "1%" } }
  |                                     ^^^
  = hint: did you mean `loss`?
"#,
    );
    says(
        &star("leaves = 2\nlink = {}\n[hosts.leaf]\ncount = 3"),
        r#"
error: the topology has said how many `leaf` there are
 --> test.toml:9:9
  |
9 | count = 3
  |         ^
"#,
    );
    says(
        &star("leaves = 4000000000\nlink = {}"),
        r#"
error: 4000000000 leaves are more than the 100000 that a scenario may have
 --> test.toml:4:1
  |
4 | [topology]
  | ^^^^^^^^^^
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
fn what_is_wrong_everywhere_is_not_said_everywhere() {
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

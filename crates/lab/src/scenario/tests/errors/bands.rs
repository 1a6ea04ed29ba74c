//! Mistakes about what is expected, and about what is swept over.

use super::*;

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
error: the sweep's path names no parameter: there is no `flows.blk`
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
    // A mistake at a single point names the point.
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

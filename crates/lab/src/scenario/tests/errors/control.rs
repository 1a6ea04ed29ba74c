//! Mistakes about window control that is not there.

use super::*;

const TARGET: &str = "target-window(upper=35 packets, lower=15 packets)";

/// The minimal scenario with a window policy on the way there, and `more` after it.
fn with(policy: &str, more: &str) -> String {
    let there = format!("delay = \"10ms\"\nthere = {{ window = \"{policy}\" }}");
    minimal(more).replace("delay = \"10ms\"", &there)
}

/// The same with a sweep of the policy at which the first point has none.
fn swept(more: &str) -> String {
    with("none", &format!("[sweep]\nlinks.a-b.there.window = [\"none\", \"{TARGET}\"]\n{more}"))
}

fn is_right(text: &str) {
    if let Err(errors) = Scenario::parse("test.toml", text) {
        panic!("{errors}");
    }
}

#[test]
fn a_link_without_it() {
    let band = "[[expect]]\nmeasure = \"windows-rewritten\"\nlink = \"a-b\"\nmin = 1";
    says(
        &minimal(band),
        r#"
error: `a-b` has no window control on the way there
  --> test.toml:18:8
   |
18 | link = "a-b"
   |        ^^^^^
"#,
    );
    is_right(&with(TARGET, band));
    says(
        &with(TARGET, &format!("{band}\ndirection = \"back\"")),
        r#"
error: `a-b` has no window control on the way back
  --> test.toml:19:8
   |
19 | link = "a-b"
   |        ^^^^^
"#,
    );
    for measure in ["acks-seen", "acks-unknown", "acks-implausible", "acks-held", "flows-opened"] {
        let other = band.replace("windows-rewritten", measure);
        assert!(refused(&minimal(&other)).contains("has no window control"), "{measure}");
        is_right(&with("fair-share(queue=20kB)", &other));
    }
}

#[test]
fn a_policy_without_a_target() {
    let band = "[[expect]]\nmeasure = \"window-target\"\nlink = \"a-b\"\nmin = \"1kB\"";
    for policy in [TARGET, "explicit-window(queue=50 packets)"] {
        is_right(&with(policy, band));
    }
    assert!(refused(&minimal(band)).contains("`a-b` has no window control on the way there"));
    says(
        &with("fair-share(queue=20kB)", band),
        r#"
error: `fair-share` has no target that all flows share
  --> test.toml:19:8
   |
19 | link = "a-b"
   |        ^^^^^
"#,
    );
}

#[test]
fn at_some_points_of_a_sweep() {
    let band = "[[expect]]\nmeasure = \"window-target\"\nlink = \"a-b\"\nmin = \"1kB\"";
    says(
        &swept(band),
        r#"
error: `a-b` has no window control on the way there
  --> test.toml:21:8
   |
21 | link = "a-b"
   |        ^^^^^
   = with links.a-b.there.window = none
"#,
    );
    is_right(&swept(&format!("{band}\nwhen = {{ links.a-b.there.window = \"{TARGET}\" }}")));
}

#[test]
fn where_the_divisor_is_measured() {
    let relative = |to: &str, at: &str| {
        swept(&format!(
            "[[expect]]\nmeasure = \"windows-rewritten\"\nlink = \"a-b\"\nmin = 1\nwhen = {{ links.a-b.there.window = \
             \"{TARGET}\" }}\nrelative-to = {{ {to}at = {{ links.a-b.there.window = \"{at}\" }} }}"
        ))
    };
    says(
        &relative("", "none"),
        r#"
error: `a-b` has no window control on the way there
  --> test.toml:24:15
   |
24 | relative-to = { at = { links.a-b.there.window = "none" } }
   |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   = with links.a-b.there.window = none
"#,
    );
    // Not here, but there.
    is_right(&swept(&format!(
        "[[expect]]\nmeasure = \"drops\"\nlink = \"a-b\"\nmin = 1\n\
         relative-to = {{ measure = \"acks-seen\", at = {{ links.a-b.there.window = \"{TARGET}\" }} }}"
    )));
    is_right(&relative("measure = \"drops\", ", "none"));
    // At the point that is the divisor's, nothing is compared.
    let all = "[[expect]]\nmeasure = \"acks-seen\"\nlink = \"a-b\"\nmin = 1\n\
               relative-to = { measure = \"drops\", at = { links.a-b.there.window = \"none\" } }";
    is_right(&swept(all));
    let here = "[[expect]]\nmeasure = \"drops\"\nlink = \"a-b\"\nmin = 1\nrelative-to = { measure = \"acks-seen\" }";
    assert!(refused(&minimal(here)).contains("has no window control"));
    is_right(&with(TARGET, here));
}

#[test]
fn series_of_it() {
    let series = "[measure]\nlinks = [\"drops\", \"window-target\"]";
    says(
        &minimal(series),
        r#"
error: no link has window control, so there is nothing of this to draw
  --> test.toml:17:19
   |
17 | links = ["drops", "window-target"]
   |                   ^^^^^^^^^^^^^^^
"#,
    );
    let delays = format!("[sweep]\nlinks.a-b.there.delay = [\"1ms\", \"2ms\"]\n{series}");
    says(
        &minimal(&delays),
        r#"
error: no link has window control, so there is nothing of this to draw
  --> test.toml:19:19
   |
19 | links = ["drops", "window-target"]
   |                   ^^^^^^^^^^^^^^^
"#,
    );
    // One point is enough. Empty parts are not in the canonical form, which can be read.
    let scenario = Scenario::parse("test.toml", &swept(series)).unwrap();
    let drawn: Vec<Vec<LinkSeries>> =
        scenario.sweep().map(|point| point.resolved.measure.links).collect();
    assert_eq!(drawn, [vec![LinkSeries::Drops], vec![LinkSeries::Drops, LinkSeries::WindowTarget]]);
    scenario.sweep().for_each(|point| is_right(&point.resolved.to_toml()));
}

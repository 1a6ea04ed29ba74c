//! `transom lab new`, `check` and `schema` from the outside.

use crate::support::run;
use std::fs;

#[test]
fn a_new_scenario_is_valid() {
    let directory = tempfile::tempdir().unwrap();
    for kind in ["dumbbell", "chain", "star", "network"] {
        let file = directory.path().join(format!("{kind}.toml"));
        let file = file.to_str().unwrap();
        run(["lab", "new", file, "--kind", kind]).success();
        let checked = run(["lab", "check", file]).success();
        assert!(checked.text().contains(" run"), "{}", checked.text());
        assert_eq!(checked.stderr, "");
        run(["lab", "new", file]).fails_with(1, "exists already");
        run(["lab", "new", file, "--force"]).success();
        let written = fs::read(file).unwrap();
        assert_eq!(written, run(["lab", "new", "-"]).success().stdout);
    }
}

#[test]
fn a_resolved_scenario_is_a_scenario() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("new.toml");
    let file = file.to_str().unwrap();
    run(["lab", "new", file]).success();
    let point = run(["lab", "check", file, "--resolved", "--point", "2"]).success();
    assert!(point.text().starts_with("# Point 2 of 3\n# topology.bottleneck.queue = 50 packets\n"));
    let resolved = directory.path().join("resolved.toml");
    fs::write(&resolved, &point.stdout).unwrap();
    let resolved = resolved.to_str().unwrap();
    let (there, again) = (
        ["lab", "check", file, "--json", "--resolved"],
        ["lab", "check", resolved, "--json", "--resolved"],
    );
    let (there, again) = (run(there).success().json(), run(again).success().json());
    assert_eq!(there["runs"], 3);
    assert_eq!(there["points"][1]["resolved"], again["points"][0]["resolved"]);
    assert_eq!(there["points"][1]["runs"], again["points"][0]["runs"]);
    run(["lab", "check", file, "--point", "4"]).fails_with(1, "has 3 points; there is no point 4");
}

#[test]
fn mistakes_are_shown_with_their_place() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("wrong.toml");
    let template = run(["lab", "new", "-"]).success().text();
    let line = 1 + template.lines().position(|line| line.starts_with("pairs = 2")).unwrap();
    fs::write(&file, template.replace("pairs = 2", "pears = 2")).unwrap();
    let file = file.to_str().unwrap();
    let checked = run(["lab", "check", file]).fails_with(1, "hint: did you mean `pairs`?");
    assert!(checked.stderr.contains(&format!("{file}:{line}:1\n")), "{}", checked.stderr);
    let checked = run(["lab", "check", file, "--json"]).fails_with(1, "");
    let json = checked.json();
    assert_eq!(json["ok"], false);
    assert_eq!(
        (&json["errors"][0]["line"], &json["errors"][0]["column"]),
        (&line.into(), &1.into())
    );
    run(["lab", "check", "/no/such/file"]).fails_with(1, "the file cannot be read: No such file");
}

#[test]
fn the_schema_is_json() {
    let schema: serde_json::Value =
        serde_json::from_str(&run(["lab", "schema"]).success().text()).unwrap();
    assert!(schema["properties"]["scenario"].is_object());
}

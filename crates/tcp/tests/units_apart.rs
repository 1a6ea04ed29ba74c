//! No unit's file mentions another unit's choice, and the connection mentions no choice at all: read from the sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms of the units.
const ROOMS: [&str; 12] = [
    "ack_policy",
    "congestion",
    "ecn",
    "flow",
    "ordering",
    "pacing",
    "recovery",
    "reduction",
    "rto",
    "slow_start",
    "undo",
    "validation",
];

/// What lies in the rooms and is no choice, but shared by them or for their tests.
const NO_CHOICES: [&str; 14] = [
    "arithmetic",
    "bottleneck",
    "choice",
    "controller",
    "delay",
    "filter",
    "piece",
    "received",
    "store",
    "takeover",
    "tests",
    "trace",
    "retransmissions",
    "unit",
];

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// All source files at or below a place.
fn files(place: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(place).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The choices of each room: the modules directly in it.
fn choices() -> BTreeMap<&'static str, Vec<String>> {
    let of = |room: &&'static str| {
        let files = fs::read_dir(sources().join(room)).into_iter().flatten();
        let stems = files.filter_map(|entry| {
            let path = entry.unwrap().path();
            let stem = path.file_stem()?.to_str()?.to_owned();
            (path.is_file() && !NO_CHOICES.contains(&stem.as_str())).then_some(stem)
        });
        (*room, stems.collect())
    };
    ROOMS.iter().map(of).collect()
}

/// The code of a file: without comments, and without its tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The choices of other rooms than `own` that a file's code names, as `room::choice`.
fn named(path: &Path, own: Option<&str>, choices: &BTreeMap<&str, Vec<String>>) -> Vec<String> {
    let code = code(path);
    let others = choices.iter().filter(|(room, _)| own != Some(**room));
    let all =
        others.flat_map(|(room, names)| names.iter().map(move |name| format!("{room}::{name}")));
    all.filter(|one| {
        // Followed by something that goes on with a path, or ends it: not by the rest of a longer name.
        code.match_indices(one.as_str()).any(|(at, _)| {
            let next = code[at + one.len()..].chars().next();
            next.is_none_or(|next| !next.is_alphanumeric() && next != '_')
        })
    })
    .collect()
}

#[test]
fn no_unit_mentions_another_units_choice() {
    let choices = choices();
    assert!(choices["congestion"].len() >= 18 && choices["recovery"].len() >= 4, "{choices:?}");
    let mut seen = 0;
    for room in ROOMS {
        let mut files_of_it = Vec::new();
        files(&sources().join(room), &mut files_of_it);
        files_of_it.push(sources().join(room).with_extension("rs"));
        for path in files_of_it {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap();
            // The driver of the golden traces combines several units.
            if stem == "tests" || stem == "test_trace" {
                continue;
            }
            seen += 1;
            let named = named(&path, Some(room), &choices);
            assert!(named.is_empty(), "{} mentions {named:?}", path.display());
        }
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn neither_the_connection_nor_its_engine_mentions_a_choice() {
    let choices = choices();
    let mut all = vec![sources().join("connection.rs"), sources().join("control.rs")];
    files(&sources().join("connection"), &mut all);
    files(&sources().join("control"), &mut all);
    assert!(all.len() > 10, "{all:?}");
    for path in all {
        let named = named(&path, None, &choices);
        assert!(named.is_empty(), "{} mentions {named:?}", path.display());
    }
}

/// The check sees what it looks for: the grammar, whose business it is, names those with parameters.
#[test]
fn named_units_are_found() {
    let choices = choices();
    let named = named(&sources().join("compose/grammar.rs"), None, &choices);
    for one in ["rto::eifel", "slow_start::limited", "flow::receive_window"] {
        assert!(named.iter().any(|name| name == one), "{one} is not in {named:?}");
    }
}

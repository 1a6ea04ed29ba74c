//! Parts of a sweep are put together, or it is said why not.

use super::*;
use std::path::PathBuf;
use tempfile::TempDir;

/// The parts, and their directories.
fn parts(text: &str, of: usize) -> (TempDir, Vec<PathBuf>) {
    let directory = tempdir().unwrap();
    let paths = (1..=of).map(|number| {
        let path = directory.path().join(format!("part{number}"));
        let store = Store::create(&path).unwrap();
        Sweep::new(text, Some(&format!("{number}/{of}"))).run(&store);
        path
    });
    let paths = paths.collect();
    (directory, paths)
}

fn refused(inputs: &[PathBuf], output: &Path) -> String {
    let error = merge(inputs, output).unwrap_err().to_string();
    assert!(!output.exists(), "{error}");
    error
}

#[test]
fn parts_make_the_whole() {
    let whole = tempdir().unwrap();
    Sweep::new(SHARED, None).run(&Store::create(whole.path()).unwrap());
    let (directory, mut inputs) = parts(SHARED, 3);
    // The first point is in two parts, and with it what the others are compared with.
    let waiting = |path: &PathBuf| -> usize {
        Store::open(path).unwrap().runs().unwrap().iter().map(|run| run.manifest.waiting()).sum()
    };
    assert_eq!(inputs.iter().map(waiting).collect::<Vec<_>>(), [1, 1, 2]);
    inputs.reverse();
    let output = directory.path().join("merged");
    let (merged, _) = merge(&inputs, &output).unwrap();
    for mut run in merged.runs().unwrap() {
        assert_eq!(merged.compare(&mut run).unwrap(), run.manifest.point > 1);
        assert_eq!(run.manifest.waiting(), 0);
    }
    assert!(tree(&output) == tree(whole.path()));
    // Once more changes nothing; and a part of what is there is enough with the rest.
    drop(merged);
    merge(&inputs[..1], &output).unwrap();
    assert!(tree(&output) == tree(whole.path()));
}

#[test]
fn missing_runs_are_listed() {
    let (directory, inputs) = parts(SHARED, 3);
    let output = directory.path().join("merged");
    let error = refused(&inputs[1..2], &output);
    assert!(error.contains("shard 1/3 is in none") && error.contains("shard 3/3"), "{error}");
    assert!(!error.contains("shard 2/3"), "{error}");
    let run = Sweep::new(SHARED, Some("2/3")).plan.own().next().unwrap().directory.clone();
    fs::remove_dir_all(inputs[1].join(run)).unwrap();
    let error = refused(&inputs, &output);
    let expected = format!("1 of the 2 runs of {} are not finished", inputs[1].display());
    assert!(error.contains(&expected), "{error}");
    let nothing = directory.path().join("nothing");
    assert!(refused(std::slice::from_ref(&nothing), &output).contains("there are no results in"));
}

#[test]
fn results_of_different_scenarios_are_refused() {
    let (directory, inputs) = parts(SHARED, 2);
    let output = directory.path().join("merged");
    let with = |text: &str, shard: &str, expected: &str| {
        let other = directory.path().join("other");
        Sweep::new(text, Some(shard)).run(&Store::create(&other).unwrap());
        let error = refused(&[inputs[0].clone(), other.clone()], &output);
        fs::remove_dir_all(&other).unwrap();
        assert!(error.contains(expected), "{error}");
    };
    with(&SHARED.replace("1.001", "1.002"), "2/2", "runs of different scenarios");
    with(&SHARED.replace("[1, 2]", "[1, 3]"), "2/2", "runs with different seeds");
    with(SHARED, "2/3", "different numbers of shards");
    let plan = fs::read_to_string(inputs[1].join("results.json")).unwrap();
    fs::write(inputs[1].join("results.json"), plan.replace(crate::VERSION, "0.0.1")).unwrap();
    assert!(refused(&inputs, &output).contains("different versions of the program"));
    fs::remove_file(inputs[1].join("results.json")).unwrap();
    assert!(refused(&inputs, &output).contains("has no results.json"));
}

#[test]
fn the_same_run_has_to_be_the_same() {
    let (directory, mut inputs) = parts(SHARED, 2);
    let output = directory.path().join("merged");
    // As if another machine had got something else: with hashes that fit.
    let sweep = Sweep::new(SHARED, Some("2/2"));
    let other = directory.path().join("other");
    let store = Store::create(&other).unwrap();
    sweep.run(&store);
    let planned = sweep.plan.own().next().unwrap();
    let variant = sweep.scenario.point(planned.point - 1).unwrap();
    let mut seen = sweep.seen(planned);
    seen.flows[0].samples[3].delivered += 1;
    let run = Run { plan: &sweep.plan, planned, variant: &variant };
    store.begin(planned).unwrap().finish(run, &seen).unwrap();
    inputs.push(other.clone());
    let error = refused(&inputs, &output);
    assert!(error.contains(&planned.directory) && error.contains("flows."), "{error}");
    assert!(error.contains("part2") && error.contains("other"), "{error}");
    // Damaged on the way.
    let path = inputs[0].join(&sweep.plan.runs[0].directory).join("links.csv");
    fs::write(&path, "nothing").unwrap();
    assert!(refused(&inputs[..2], &output).contains("links.csv is damaged"));
}

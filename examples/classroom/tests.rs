//! The exercises can be solved, and are not solved as they are given out.

use std::path::PathBuf;
use std::process::Command;

/// An example that Cargo has built beside this test.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let profile: PathBuf = test.ancestors().nth(2).unwrap().to_owned();
    Command::new(profile.join("examples").join(name))
}

fn judged(name: &str) -> (bool, String) {
    let output = example(name).output().unwrap_or_else(|error| {
        panic!("{name} is not built ({error}): cargo test -p transom-examples builds the examples")
    });
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn the_solutions_are_accepted() {
    for name in ["aimd_solution", "vegas_solution"] {
        let (solved, text) = judged(name);
        assert!(solved && text.contains("Solved."), "{name}: {text}");
    }
}

#[test]
fn an_exercise_is_not_solved_when_it_is_given_out() {
    let (solved, text) = judged("aimd");
    assert!(!solved && text.contains("MISSED  growth"), "{text}");
    // Vegas as given out works where nothing is wrong with the path.
    let (solved, text) = judged("vegas");
    assert!(!solved && text.contains("ok      smooth path: rate"), "{text}");
    assert!(text.contains("MISSED  rough path: rate"), "{text}");
}

//! The exercises can be solved, and are not solved as they are given out.

use std::process::Command;

/// What a program prints, and whether it is content.
fn judged(program: &str) -> (bool, String) {
    let output = Command::new(program).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn the_solutions_are_accepted() {
    for name in [env!("CARGO_BIN_EXE_aimd_solution"), env!("CARGO_BIN_EXE_vegas_solution")] {
        let (solved, text) = judged(name);
        assert!(solved && text.contains("Solved."), "{name}: {text}");
    }
}

#[test]
fn an_exercise_is_not_solved_when_it_is_given_out() {
    let (solved, text) = judged(env!("CARGO_BIN_EXE_aimd"));
    assert!(!solved && text.contains("MISSED  growth"), "{text}");
    // Vegas as given out works where nothing is wrong with the path.
    let (solved, text) = judged(env!("CARGO_BIN_EXE_vegas"));
    assert!(!solved && text.contains("ok      smooth path: rate"), "{text}");
    assert!(text.contains("MISSED  rough path: rate"), "{text}");
}

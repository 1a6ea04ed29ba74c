//! The exercise that is a scenario: its solution is accepted, and the exercise as given out is not.

use std::path::Path;

use crate::support::run;

#[test]
fn the_queue_exercise_can_be_solved() {
    let classroom = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/classroom");
    let results = tempfile::tempdir().unwrap();
    let judged = |file: &str, name: &str| {
        let (file, out) = (classroom.join(file), results.path().join(name));
        run(["lab", "run", "--quiet", "--output", out.to_str().unwrap(), file.to_str().unwrap()])
    };
    judged("solutions/queue.toml", "solved").success();
    let ended = judged("queue.toml", "given");
    assert_eq!(ended.code, Some(1), "{}\n{}", ended.text(), ended.stderr);
    assert!(ended.text().contains("FAILED"), "{}", ended.text());
}

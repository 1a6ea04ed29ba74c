//! The example in Python beside a real transfer.

use crate::support::{Scene, requested};
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};
use transom_tcp::extension::Variable;

#[test]
fn vegas_in_python_narrows_a_transfer() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/remote/vegas.py");
    let mut scene = Scene::new();
    let mut command = Command::new("python3");
    command.arg("-B").arg(example).arg(scene.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("SKIPPED: python3 is not installed, so nobody tries the example in Python");
            return;
        }
        Err(error) => panic!("python3: {error}"),
    };
    scene.until("the example's attachment", |stream| {
        let layers = stream.with_connection(|connection, _| connection.layers().count());
        (layers.unwrap() > 0).then_some(())
    });
    assert_eq!(scene.layers(), ["vegas.py"]);
    // Rounds go by until its answer to one of them holds.
    while scene.requested(Variable::Cwnd).is_none() {
        scene.transfer(100_000);
    }
    scene.transfer(1_000_000);
    let asked = requested(&scene.ours, Variable::Cwnd).expect("it goes on asking");
    let info = scene.ours.info().unwrap();
    let mss = u64::from(info.mss);
    assert!(asked.low() == 0 && asked.high() >= 2 * mss, "{asked:?}, of at least two segments");

    // At its end it says what it missed, and that all was well.
    let Scene { ours, theirs, .. } = &mut scene;
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    theirs.shutdown(std::net::Shutdown::Write).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complained.is_empty(), "{said}{complained}");
    assert!(said.contains("rounds missed"), "{said}");
}

//! C programs whose connections are shown to `transom top` and `transom dash`.

use crate::support::{Link, Program, c_source, compiler, finish};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use transom_live::{Collector, Row, Sources};

/// The program, once it has connected, and what it says about that.
fn connected(
    program: &Program,
    runtime: &Path,
    status: &str,
) -> (Child, BufReader<ChildStdout>, String) {
    let mut command = program.command();
    command.env("XDG_RUNTIME_DIR", runtime).env("TRANSOM_STATUS", status);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.starts_with("connected"), "{line}");
    (child, output, line)
}

fn collect_rows(runtime: &Path) -> Vec<Row> {
    let snapshot = Collector::in_directory(Sources::Transom, &runtime.join("transom")).look();
    assert_eq!(snapshot.troubles, Vec::<String>::new());
    snapshot.rows
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    finish(child);
}

#[test]
fn the_connections_of_all_stacks_are_shown_if_the_environment_asks_for_it() {
    let Some(compiler) = compiler() else { return };
    let program = Program::build(&compiler, &c_source("status.c"), Link::Shared);
    let runtime = tempfile::tempdir().unwrap();
    let (child, _output, line) = connected(&program, runtime.path(), "1");
    assert_eq!(line, "connected \n");
    let rows = collect_rows(runtime.path());
    let mut ends: Vec<String> = rows.iter().map(|row| row.local.ip().to_string()).collect();
    ends.sort();
    // A child of fork has ended meanwhile, and one of the stacks is open for its socket alone.
    assert_eq!(ends, ["192.0.2.1", "192.0.2.2"], "{rows:?}");
    assert!(rows.iter().all(|row| row.source.is_of("program") && row.state() == "established"));
    assert_eq!(
        rows.iter()
            .map(|row| (row.tcp.counters.bytes_sent, row.tcp.counters.bytes_accepted))
            .fold((0, 0), |(a, b), (c, d)| (a + c, b + d)),
        (5, 5)
    );
    end(child);
    let left = std::fs::read_dir(runtime.path().join("transom")).unwrap().count();
    assert_eq!(left, 0, "the sockets go with the program");
    let (child, ..) = connected(&program, runtime.path(), "0");
    assert_eq!(collect_rows(runtime.path()).len(), 0);
    end(child);
}

#[test]
fn a_directory_that_others_can_write_is_reported_and_does_no_harm() {
    let Some(compiler) = compiler() else { return };
    let program = Program::build(&compiler, &c_source("status.c"), Link::Static);
    let runtime = tempfile::tempdir().unwrap();
    let directory = runtime.path().join("transom");
    std::fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).unwrap();
    let (child, _output, line) = connected(&program, runtime.path(), "1");
    assert!(line.contains("TRANSOM_STATUS") && line.contains("other users"), "{line}");
    end(child);
}

//! Sweeps that an engine distributes: HyperQueue and Ray with two workers each, and the script for Slurm.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::support::{Ended, transom, wait};

/// Two points with three seeds each, a band of each run and one that compares them.
const SWEEP: &str = r#"
[scenario]
name = "spread"
duration = "1s"
seeds = [1, 2, 3]

[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "2Mbit/s", delay = "5ms", queue = "20 packets", loss = "1%" }

[[flows]]
name = "bulk"
from = "sender"
to = "receiver"
kind = "bulk"

[sweep]
topology.bottleneck.delay = ["5ms", "10ms"]

[[expect]]
measure = "goodput"
flow = "bulk"
statistic = "sum"
relative-to = { at = { topology.bottleneck.delay = "5ms" } }
max = 2
"#;

/// HyperQueue with two workers, until standard input ends.
const HYPERQUEUE: &str = r#"
import sys
from hyperqueue import LocalCluster
from hyperqueue.cluster import WorkerConfig
with LocalCluster() as cluster:
    for _ in range(2):
        cluster.start_worker(WorkerConfig(cores=1))
    print("READY", cluster.cluster.server_dir, flush=True)
    sys.stdin.read()
"#;

/// Ray with two nodes, until standard input ends.
const RAY: &str = r#"
import sys
from ray.cluster_utils import Cluster
node = dict(num_cpus=1, object_store_memory=80 * 1024 * 1024)
cluster = Cluster(initialize_head=True, head_node_args=dict(include_dashboard=False, **node))
try:
    cluster.add_node(**node)
    print("READY", cluster.address, flush=True)
    sys.stdin.read()
finally:
    cluster.shutdown()
"#;

/// Stands in for Slurm: checks a script, and runs all of its tasks but the one that `SPOILT` names.
const SBATCH: &str = r#"#!/bin/bash
set -e
script=${!#}
bash -n "$script"
[ "$1" = --test-only ] && exit 0
[ "$1" = --wait ]
last=$(sed -n 's/^#SBATCH --array=0-//p' "$script")
for task in $(seq 0 "$last"); do
    [ "$task" = "$SPOILT" ] || SLURM_ARRAY_TASK_ID=$task bash "$script"
done
[ -z "$SPOILT" ]
"#;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Place(tempfile::tempdir().unwrap());
        fs::write(place.path("scenario.toml"), SWEEP).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(transom());
        command.current_dir(&self.0).args(arguments.split_whitespace());
        command
    }

    #[track_caller]
    fn run(&self, arguments: &str) -> Ended {
        wait(&mut self.command(arguments))
    }

    /// A program for this place.
    fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Whether these results are those of one machine, byte for byte.
    #[track_caller]
    fn is_whole(&self, results: &str) {
        if !self.path("whole").exists() {
            self.run("lab run scenario.toml -o whole").success();
        }
        let differ =
            wait(Command::new("diff").arg("-r").args([self.path(results), self.path("whole")]));
        assert_eq!(differ.code, Some(0), "{}", differ.text());
    }

    /// The names of the runs.
    fn runs(&self, results: &str) -> Vec<String> {
        let plan = fs::read(self.path(results).join("results.json")).unwrap();
        let plan: serde_json::Value = serde_json::from_slice(&plan).unwrap();
        let runs = plan["runs"].as_array().unwrap();
        runs.iter().map(|run| run["directory"].as_str().unwrap().to_owned()).collect()
    }
}

/// A Python that has a module.
fn python(module: &str) -> Option<PathBuf> {
    let python = std::env::var_os("TRANSOM_PYTHON").unwrap_or_else(|| "python3".into());
    let tried = Command::new(&python)
        .args(["-c", &format!("import {module}")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if tried.is_ok_and(|status| status.success()) {
        return Some(python.into());
    }
    println!("SKIPPED: a sweep with {module} (no Python has the module {module})");
    None
}

/// A cluster, which ends with its standard input.
struct Cluster {
    child: Child,
    input: Option<ChildStdin>,
    address: String,
}

impl Cluster {
    fn start(python: &Path, program: &str) -> Self {
        let mut child = Command::new(python)
            .args(["-c", program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut cluster = Cluster { child, input, address: String::new() };
        for line in lines.map_while(Result::ok) {
            if let Some(address) = line.strip_prefix("READY ") {
                cluster.address = address.into();
                return cluster;
            }
        }
        panic!("the cluster did not start");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// A sweep by an engine, resumed by it after a run was removed.
fn is_spread(module: &str, program: &str, variable: &str) {
    let Some(python) = python(module) else { return };
    let place = Place::new();
    let cluster = Cluster::start(&python, program);
    let run = || {
        let arguments = format!("lab run scenario.toml --engine {module} -o spread");
        let mut command = place.command(&arguments);
        wait(command.env("TRANSOM_PYTHON", &python).env(variable, &cluster.address))
    };
    let first = run().success().text();
    assert_eq!(first.matches("of 1 bands hold").count(), 3, "{first}");
    place.is_whole("spread");

    let removed = place.runs("spread").remove(4);
    fs::remove_dir_all(place.path("spread").join(removed)).unwrap();
    let again = run().success().text();
    assert!(again.contains("5 of 6 runs were there already."), "{again}");
    place.is_whole("spread");

    // A task that cannot be started is named, and nothing of it stays.
    let removed = place.runs("spread").remove(2);
    fs::remove_dir_all(place.path("spread").join(&removed)).unwrap();
    let copy = place.path("gone");
    fs::copy(transom(), &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    // The driver of the engine removes the program before it hands out the task.
    let wrapper =
        format!("#!/bin/sh\nrm -f '{}'\nexec '{}' \"$@\"\n", copy.display(), python.display());
    let wrapper = place.program("removing", &wrapper);
    let mut command = Command::new(&copy);
    command.current_dir(&place.0).args([
        "lab",
        "run",
        "scenario.toml",
        "--engine",
        module,
        "-o",
        "spread",
    ]);
    let failed = wait(command.env("TRANSOM_PYTHON", wrapper).env(variable, &cluster.address));
    assert!(
        failed.stderr.contains(&format!("the run {removed} (point 1, seed 3) failed")),
        "{}",
        failed.stderr
    );
    failed.fails_with(1, "1 of 6 runs are missing: their tasks failed");
    run().success();
    place.is_whole("spread");
}

#[test]
fn hyperqueue_makes_a_sweep() {
    is_spread("hyperqueue", HYPERQUEUE, "HQ_SERVER_DIR");
}

#[test]
fn ray_makes_a_sweep() {
    is_spread("ray", RAY, "RAY_ADDRESS");
}

#[test]
fn an_engine_that_is_missing_is_named() {
    let place = Place::new();
    let run = |engine: &str, python: &Path| {
        let mut command = place.command(&format!("lab run scenario.toml --engine {engine}"));
        wait(command.env("TRANSOM_PYTHON", python))
    };
    run("ray", Path::new("/nowhere/python3"))
        .fails_with(1, "cannot start /nowhere/python3, which the engine ray needs");
    if wait(Command::new("python3").arg("--version")).code == Some(0) {
        // A Python without the modules that others have installed.
        let bare = place.program("bare", "#!/bin/sh\nexec python3 -I -S \"$@\"\n");
        run("ray", &bare).fails_with(1, "the Python module ray is missing in");
        run("hyperqueue", &bare).fails_with(1, "`pip install hyperqueue`");
    } else {
        println!("SKIPPED: an engine without its module (python3 is not installed)");
    }
    if let Some(python) = python("hyperqueue") {
        let mut command = place.command("lab run scenario.toml --engine hyperqueue");
        command.env("TRANSOM_PYTHON", python).env("HQ_SERVER_DIR", place.path("none"));
        wait(&mut command).fails_with(1, "no HyperQueue server answers");
    }
}

#[test]
fn slurm_gets_a_script() {
    let place = Place::new();
    let without = || {
        let mut command = place.command("lab run scenario.toml --engine slurm -o spread");
        wait(command.env("PATH", "/usr/bin:/bin"))
    };
    let written = without().success().text();
    assert!(written.contains("6 of 6 runs are missing."), "{written}");
    let script = place.path("spread/.engine/slurm.sh");
    assert_eq!(wait(Command::new("bash").arg("-n").arg(&script)).code, Some(0));
    match Command::new("shellcheck").arg(&script).output() {
        Ok(checked) => {
            assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
        }
        Err(_) => println!("SKIPPED: the script for Slurm by shellcheck (it is not installed)"),
    }
    if Command::new("sbatch").arg("--version").output().is_ok() {
        let tested = wait(Command::new("sbatch").arg("--test-only").arg(&script));
        assert_eq!(tested.code, Some(0), "{}", tested.stderr);
    } else {
        println!("SKIPPED: the script for Slurm by sbatch (it is not installed)");
    }
    // Two of its tasks, as Slurm starts them.
    for task in ["0", "4"] {
        let mut command = Command::new("bash");
        wait(command.arg(&script).env("SLURM_ARRAY_TASK_ID", task)).success();
    }
    let written = without().success().text();
    assert!(written.contains("4 of 6 runs are missing."), "{written}");

    let refused = wait(
        place
            .command("lab run scenario.toml --engine slurm --submit -o spread")
            .env("PATH", place.path("nothing")),
    );
    refused.fails_with(1, "the program sbatch is missing");

    place.program("bin/sbatch", SBATCH);
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
    let submit = |spoilt: &str| {
        let mut command = place.command("lab run scenario.toml --engine slurm --submit -o spread");
        wait(command.env("PATH", &path).env("SPOILT", spoilt))
    };
    let failed = submit("1");
    assert!(failed.stderr.contains("failed: its task left no message"), "{}", failed.stderr);
    failed.fails_with(1, "1 of 6 runs are missing: their tasks failed");
    let whole = submit("").success().text();
    assert!(whole.contains("5 of 6 runs were there already."), "{whole}");
    place.is_whole("spread");
}

#[test]
fn a_task_keeps_to_the_plan() {
    let place = Place::new();
    place.run("lab run scenario.toml -o spread").success();
    let run = place.runs("spread").remove(0);
    let task = |name: &str| place.run(&format!("lab task scenario.toml -o spread {name}"));
    task(&run).success();
    task("000000000000").fails_with(1, "plans no run 000000000000");
    fs::write(place.path("scenario.toml"), SWEEP.replace("2Mbit/s", "3Mbit/s")).unwrap();
    task(&run).fails_with(1, "was planned with another scenario than scenario.toml");
    place.run(&format!("lab task scenario.toml -o nowhere {run}")).fails_with(1, "no results");
}

#[test]
fn options_that_an_engine_cannot_follow_are_refused() {
    let place = Place::new();
    let refused = |arguments: &str, why: &str| {
        place.run(&format!("lab run scenario.toml {arguments}")).fails_with(1, why);
    };
    refused("--submit", "--submit is for --engine slurm");
    refused("--engine ray --emulate", "--emulate is for --engine local");
    refused("--engine slurm --jobs 2", "--jobs is for --engine local");
}

//! Results of runs: resumed, divided, put together, listed. With the real command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Ended, TABLE, finish, transom, wait};
use rustix::process::{Pid, Signal, kill_process};
use transom_lab::results::Store;

/// Two points, two seeds, a band of each run and one that compares them.
const SWEEP: &str = r#"
[scenario]
name = "sweep"
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
topology.bottleneck.delay = ["5ms", "10ms", "20ms"]

[[expect]]
measure = "utilisation"
link = "bottleneck"
min = 0.1
max = 1.001

[[expect]]
measure = "goodput"
flow = "bulk"
statistic = "sum"
relative-to = { at = { topology.bottleneck.delay = "5ms" } }
max = 2
"#;

/// A directory with a scenario in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new(scenario: &str) -> Self {
        let place = Place(tempfile::tempdir().unwrap());
        place.write(scenario);
        place
    }

    fn write(&self, scenario: &str) {
        fs::write(self.path("scenario.toml"), scenario).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(transom());
        command.current_dir(&self.0).args(arguments.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    #[track_caller]
    fn run(&self, arguments: &str) -> Ended {
        wait(&mut self.command(arguments))
    }

    /// Whether two directories have the same files with the same bytes, and if not, in what they differ.
    #[track_caller]
    fn same(&self, one: &str, other: &str) {
        let differ = wait(Command::new("diff").arg("-r").args([self.path(one), self.path(other)]));
        assert_eq!(differ.code, Some(0), "{}", differ.text());
    }
}

fn runs(directory: &Path) -> usize {
    Store::open(directory).map(|store| store.runs().unwrap().len()).unwrap_or(0)
}

/// Waits until something holds.
#[track_caller]
fn until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "it takes too long");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

#[test]
fn an_interrupted_sweep_goes_on_where_it_was() {
    // After a few quick runs come some that last.
    let lasting = SWEEP
        .replace("[sweep]", "[sweep]\nzip = true\nscenario.duration = [\"1s\", \"1s\", \"1800s\"]")
        .replace("at = {", "at = { scenario.duration = \"1s\",")
        .replace("duration = \"1s\"\n", "duration = \"1s\"\nsample-interval = \"100ms\"\n")
        .replace("[1, 2, 3]", "[1, 2]");
    let place = Place::new(&lasting);
    let child = place.command("lab run scenario.toml --jobs 1 -o broken").spawn().unwrap();
    until(|| runs(&place.path("broken")) >= 3);
    interrupt(&child);
    let ended = finish(child);
    assert_eq!(ended.code, Some(130), "{}{}", ended.text(), ended.stderr);
    let there = runs(&place.path("broken"));
    assert!((3..6).contains(&there), "{there}");
    let missing = format!("interrupted: {} of 6 runs are missing", 6 - there);
    assert!(ended.stderr.contains(&missing), "{}", ended.stderr);
    // Nothing is left of unfinished runs, and finished ones can be read.
    for entry in fs::read_dir(place.path("broken")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.starts_with('.'), "{name}");
    }
    let store = Store::open(&place.path("broken")).unwrap();
    assert!(store.runs().unwrap().iter().all(|run| run.observations().unwrap().packets > 0));
    let listed = place.run("lab list broken").success().text();
    assert_eq!(listed.matches("missing").count(), 6 - there, "{listed}");

    let again = place.run("lab run scenario.toml -o broken").success().text();
    assert!(again.contains(&format!("{there} of 6 runs were there already.")), "{again}");
    place.run("lab run scenario.toml -o whole").success();
    place.same("broken", "whole");
}

/// A process that is killed cannot clean up behind it.
#[test]
fn the_next_run_cleans_up_after_a_killed_one() {
    let place = Place::new(&SWEEP.replace("duration = \"1s\"", "duration = \"600s\""));
    let child = place.command("lab run scenario.toml -o killed").spawn().unwrap();
    let unfinished = || {
        let entries = fs::read_dir(place.path("killed")).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(".unfinished")).count()
    };
    until(|| unfinished() > 0);
    // Two programs do not write to the same place.
    let other = place.run("lab run scenario.toml -o killed --point 1 --seed 1");
    other.fails_with(1, "another program is writing results to killed");
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    assert_eq!(finish(child).code, None);
    assert!(unfinished() > 0);
    place.write(SWEEP);
    place.run("lab run scenario.toml -o killed").success();
    place.run("lab run scenario.toml -o whole").success();
    place.same("killed", "whole");
}

#[test]
fn parts_put_together_are_the_whole() {
    let place = Place::new(SWEEP);
    let whole = place.run("lab run scenario.toml -o whole").success().text();
    assert_eq!(whole.matches("bands hold").count(), 9, "{whole}");
    for part in 1..=3 {
        let one = place.run(&format!("lab run scenario.toml --shard {part}/3 -o part{part}"));
        // With three seeds, each part has one of them; so all that is compared is there.
        assert_eq!(one.success().text().matches("bands hold").count(), 3);
    }
    let missing = place.run("lab merge part1 part3 -o merged");
    missing.fails_with(1, "shard 2/3 is in none of the directories");
    assert!(!place.path("merged").exists());
    let merged = place.run("lab merge part3 part1 part2 -o merged").success().text();
    assert!(merged.contains("In 9 of 9 runs, all that is expected holds."), "{merged}");
    place.same("merged", "whole");

    // In four parts, comparisons are torn apart and wait for the merge.
    let mut waiting = 0;
    for part in 1..=4 {
        let one =
            place.run(&format!("lab run scenario.toml --shard {part}/4 -o quarter{part} --json"));
        let json = one.success().json();
        let runs = json["runs"].as_array().unwrap();
        waiting += runs.iter().map(|run| run["waiting"].as_u64().unwrap()).sum::<u64>();
    }
    assert!(waiting > 0);
    place.run("lab merge quarter1 quarter2 quarter3 quarter4 -o all").success();
    place.same("all", "whole");

    place.write(&SWEEP.replace("max = 2", "max = 3"));
    place.run("lab run scenario.toml --shard 2/3 -o other").success();
    let refused = place.run("lab merge part1 other part3 -o refused");
    refused.fails_with(1, "part1 and other have runs of different scenarios");
    assert!(!place.path("refused").exists());
    let wrong = place.run("lab run scenario.toml --shard 4/3");
    assert!(wrong.stderr.contains("write I/N, such as 2/3"), "{}", wrong.stderr);
}

#[test]
fn stored_points_are_not_run_again() {
    let place = Place::new(SWEEP);
    place.run("lab run scenario.toml").success();
    place.run("lab run scenario.toml -o before").success();
    let again = place.run("lab run scenario.toml --json").success().json();
    assert_eq!(again["already"], 9);
    // One run of the sweep; the others stay in the plan.
    let one = place.run("lab run scenario.toml --point 2 --seed 3 --json").success().json();
    assert_eq!(one["runs"].as_array().unwrap().len(), 1);
    assert_eq!((&one["runs"][0]["point"], &one["runs"][0]["seed"]), (&2.into(), &3.into()));
    assert_eq!(one["already"], 1);
    place.same("results/sweep", "before");
    let fresh = place.run("lab run scenario.toml --fresh").success().text();
    assert!(!fresh.contains("already"), "{fresh}");
    place.same("results/sweep", "before");
    // Another band needs no run, and is judged.
    place.write(&SWEEP.replace("min = 0.1", "min = 1"));
    let judged = place.run("lab run scenario.toml --json");
    assert_eq!(judged.code, Some(1));
    assert_eq!((&judged.json()["already"], &judged.json()["passed"]), (&9.into(), &false.into()));
    let page = |results: &str| {
        let store = Store::open(&place.path(results)).unwrap();
        let run = store.runs().unwrap().remove(0);
        fs::read_to_string(run.directory.join("report.html")).unwrap()
    };
    assert_ne!(page("results/sweep"), page("before"));
    assert!(page("before").contains("transom lab run scenario.toml --point 1 --seed 1"));
    place.run("lab run scenario.toml -o after --quiet");
    place.same("results/sweep", "after");
    // A run that is damaged is run again, and only it.
    let damaged = place.path("after").join(one["runs"][0]["id"].as_str().unwrap().split_at(12).0);
    let table = format!("flows.{TABLE}");
    fs::write(damaged.join(&table), "nothing").unwrap();
    let repaired = place.run("lab run scenario.toml -o after --json");
    assert_eq!(repaired.json()["already"], 8);
    assert!(repaired.stderr.contains(&format!("{table} is damaged")), "{}", repaired.stderr);
    place.same("results/sweep", "after");
    let none = place.run("lab run scenario.toml --point 4");
    none.fails_with(1, "has 3 points; there is no point 4");
}

#[test]
fn results_are_listed() {
    let place = Place::new(SWEEP);
    place.run("lab list").fails_with(1, "there is no directory results");
    place.run("lab list .").fails_with(1, "there are no results in .");
    place.run("lab run scenario.toml --point 2").success();
    let listed = place.run("lab list results/sweep").success().text();
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines[0], "sweep: 3 of 9 runs are finished");
    assert!(lines[1].starts_with("run           point  seed  state"), "{listed}");
    assert_eq!(lines.len(), 11, "{listed}");
    // The comparison with the first point waits for it.
    assert_eq!(listed.matches("  waiting  ").count(), 3, "{listed}");
    assert_eq!(listed.matches("missing").count(), 6, "{listed}");
    let column = lines[1].find("settings").unwrap();
    let settings: Vec<&str> = lines[2..].iter().map(|line| &line[column..]).collect();
    assert_eq!(settings[3], "delay = 10ms");
    let json = place.run("lab list results/sweep --json").success().json();
    let finished: Vec<bool> =
        json["runs"].as_array().unwrap().iter().map(|run| run["finished"] == true).collect();
    assert_eq!(finished, [false, false, false, true, true, true, false, false, false]);
    assert_eq!(json["runs"][0]["settings"][0]["value"], "5ms");
    assert!(json["runs"][3]["bytes"].as_u64().unwrap() > 1000);

    place.run("lab run scenario.toml").success();
    let all = place.run("lab list").success().text();
    let words: Vec<&str> = all.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words[..7], ["results/sweep", "sweep", "9", "of", "9", "9", "0"], "{all}");
    // Another scenario in the same place: the runs of before are none of its own.
    place.write(&SWEEP.replace("\"20 packets\"", "\"30 packets\""));
    place.run("lab run scenario.toml --seed 7").success();
    let both = place.run("lab list results/sweep").success().text();
    assert!(both.starts_with("sweep: 3 of 3 runs are finished"), "{both}");
    assert_eq!(both.matches("orphaned").count(), 9, "{both}");
    let json = place.run("lab list --json").success().json();
    assert_eq!(json["results"][0]["finished"], 3);
}

/// The most memory that a process has had so far, in bytes.
fn peak(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// The program forgets a run's data when it is written: all runs together have far more data than the program ever needs.
#[test]
fn hundreds_of_runs_need_the_memory_of_a_few() {
    let delays: Vec<String> = (1..=100).map(|ms| format!("\"{ms}ms\"")).collect();
    let many = SWEEP
        .replace("[\"5ms\", \"10ms\", \"20ms\"]", &format!("[{}]", delays.join(", ")))
        .replace("duration = \"1s\"", "duration = \"1s\"\nsample-interval = \"2ms\"")
        .replace("min = 0.1", "min = 0");
    let place = Place::new(&many);
    let mut child = place.command("lab run scenario.toml -o many --json --jobs 2").spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || std::io::read_to_string(stdout).unwrap());
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        most = most.max(peak(&child).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(20));
    }
    let text = reader.join().unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["runs"].as_array().unwrap().len(), 300);
    // What one of them has seen: at 500 moments, two flows and ten ways of links.
    let store = Store::open(&place.path("many")).unwrap();
    let seen = store.runs().unwrap().remove(0).observations().unwrap();
    let samples: usize = seen.links.iter().map(|link| link.samples.len()).sum();
    let of_all = 300 * samples as u64 * size_of::<transom_sim::measure::LinkSample>() as u64;
    eprintln!("at most {} MB; all have seen {} MB", most / 1_000_000, of_all / 1_000_000);
    assert!(most > 0 && most < of_all / 3, "{most} bytes; all runs together have seen {of_all}");
}

/// A line for each run with every measure, whether anything is expected or not; and one word for each state.
#[test]
fn a_sweep_has_a_line_for_each_run() {
    let plain = SWEEP.split("[[expect]]").next().unwrap();
    let place = Place::new(plain);
    let ran = place.run("lab run scenario.toml").success();
    assert!(
        ran.text().contains("goodput Mbit/s"),
        "the terminal ends with numbers: {}",
        ran.text()
    );
    let summary = fs::read_to_string(place.path("results/sweep/summary.csv")).unwrap();
    let lines: Vec<Vec<&str>> = summary.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        lines[0][..6],
        ["run", "scenario", "point", "seed", "state", "topology.bottleneck.delay"]
    );
    assert_eq!(lines.len(), 10, "{summary}");
    assert!(
        lines[1..].iter().all(|line| line.len() == lines[0].len() && line[4] == "done"),
        "{summary}"
    );
    let column = |name: &str| {
        let place = lines[0].iter().position(|head| *head == name);
        let place = place.unwrap_or_else(|| panic!("no {name} in {:?}", lines[0]));
        lines[1..].iter().map(|line| line[place].parse::<f64>().unwrap()).collect::<Vec<_>>()
    };
    assert!(column("goodput_bps").iter().all(|rate| (1e5..1e8).contains(rate)));
    // The round trip is at least twice the delay of the link that is swept.
    let round_trips = column("rtt_mean_s");
    assert!(round_trips[0] >= 0.010 && round_trips[8] >= 0.040, "{round_trips:?}");
    assert_eq!(column("links.bottleneck.there.drops").len(), 9);
    let listed = place.run("lab list results/sweep").success().text();
    assert_eq!(listed.matches("  done  ").count(), 9, "{listed}");
    assert!(place.path("results/sweep/summary.parquet").exists() == cfg!(feature = "parquet"));
}

/// Runs of a scenario before it was changed are named, and removed when they are asked to be.
#[test]
fn orphans_are_named_and_removed() {
    let place = Place::new(SWEEP);
    place.run("lab run scenario.toml --seed 7").success();
    let none = place.run("lab prune results/sweep").success().text();
    assert!(none.contains("Every run is one of the scenario's."), "{none}");
    // Other seeds, and other shards, are of the same scenario.
    place.run("lab run scenario.toml --seed 8 --shard 1/3").success();
    let none = place.run("lab prune results/sweep").success().text();
    assert!(none.contains("Every run is one of the scenario's."), "{none}");
    fs::remove_dir_all(place.path("results/sweep")).unwrap();
    place.run("lab run scenario.toml --seed 7").success();
    place.write(&SWEEP.replace("\"20 packets\"", "\"30 packets\""));
    let ran = place.run("lab run scenario.toml --seed 7").success();
    assert!(ran.stderr.contains("3 runs in results/sweep are of another form"), "{}", ran.stderr);
    let said = place.run("lab prune results/sweep").success().text();
    assert!(said.contains("--yes removes them"), "{said}");
    assert_eq!(place.run("lab list results/sweep").success().text().matches("orphaned").count(), 3);
    place.run("lab prune results/sweep --yes").success();
    let listed = place.run("lab list results/sweep").success().text();
    assert!(!listed.contains("orphaned") && listed.starts_with("sweep: 3 of 3"), "{listed}");
}

/// Two sweeps are one page, and so are a run and a file of flent; a run becomes such a file and comes back.
#[test]
fn results_are_compared() {
    let place = Place::new(SWEEP);
    place.run("lab run scenario.toml -o before").success();
    place.write(&SWEEP.replace("\"20 packets\"", "\"60 packets\""));
    place.run("lab run scenario.toml -o after").success();
    place.run("lab compare before after -o both.html").success();
    let page = fs::read_to_string(place.path("both.html")).unwrap();
    assert!(page.contains("<h1>before and after"), "{}", &page[..2000.min(page.len())]);
    let run = fs::read_dir(place.path("before")).unwrap().flatten();
    let run = run.map(|entry| entry.path()).find(|path| path.join("run.json").exists()).unwrap();
    let run = run.to_str().unwrap();
    place.run(&format!("lab flent {run} -o run.flent.gz")).success();
    place.run(&format!("lab compare run.flent.gz {run} -o one.html")).success();
    let page = fs::read_to_string(place.path("one.html")).unwrap();
    assert!(page.contains("run: TCP bulk"), "the series of both are there");
    place.run("lab compare run.flent.gz before").fails_with(1, "name one of its runs");
    fs::write(place.path("odd.flent"), "{}").unwrap();
    place.run(&format!("lab compare odd.flent {run}")).fails_with(1, "no file of flent");
}
